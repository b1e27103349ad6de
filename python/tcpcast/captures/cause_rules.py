"""Determines the cause that limits the rate of each direction, by rules on measured evidence.

A rule consists of a cause and the required evidence. The first rule that holds decides. If no rule
holds, the cause is ``unknown``. Every threshold is a constant. Its docstring states the values
measured on both sides of the threshold, in captures of Linux with known causes, at the sender, in
the middle of the path and at the receiver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tcpcast.captures.congestion_control import BBR
from tcpcast.captures.loss_evidence import (
    loss_origin_columns,
    path_rtt_s,
    rate_growth_ratios,
    reordered_packets,
    sharing_flow_columns,
    unnecessary_retransmissions,
)
from tcpcast.captures.table import is_tap_at_sender, is_tap_away

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.array_types import Table

    Column = np.ndarray[Any, Any]

NO_RESPONSE = "no_response"
APPLICATION = "application"
PACING = "application_pacing"
RECEIVER = "receiver"
SEND_BUFFER = "send_buffer"
SHORT_TRANSFER = "short_transfer"
REORDERING = "reordering"
POLICER = "policer"
LINK = "link"
LOSS = "loss"
TIMEOUT = "timeout"
CONGESTION_WINDOW = "congestion_window"
UNKNOWN = "unknown"

CAUSES_WITHOUT_FULL_WINDOW = (APPLICATION, PACING, REORDERING, SEND_BUFFER)
"""Causes for which data in flight do not reveal the congestion control and the link rate."""

STATES_BY_CAUSE = {
    APPLICATION: ("application",),
    RECEIVER: ("receiver_window",),
    SEND_BUFFER: ("send_buffer",),
    SHORT_TRANSFER: ("slow_start",),
    TIMEOUT: ("timeout",),
    LINK: ("bottleneck",),
    LOSS: ("congestion_window", "loss_recovery"),
    CONGESTION_WINDOW: ("congestion_window", "loss_recovery"),
}
"""States of the sender that imply a cause; in other states, the cause needs further evidence."""

MISDETECTED_STATES = {
    APPLICATION: (("send_buffer", "congestion_window", "bottleneck"), "application"),
    PACING: (("send_buffer", "congestion_window", "bottleneck"), "application"),
    REORDERING: (("bottleneck",), "congestion_window"),
    LINK: (("congestion_window", "loss_recovery"), "bottleneck"),
    SEND_BUFFER: (("congestion_window",), "send_buffer"),
}
"""By cause: states that the analysis detects by mistake, and the state that replaces them."""

LOSS_STATES = ("congestion_window", "loss_recovery")
"""States of the sender that losses explain."""

MIN_MAIN_STATE_SHARE = 0.5
"""Minimum share of the time for a state of the sender to be the cause."""
MIN_FULL_BUFFER_SHARE = 0.3
"""Lower minimum share for a full receive window or send buffer. It applies without losses and ECN
marks, because the congestion window grows until another limit applies. It also applies at taps away
from the sender, which miss the time until a window update reaches the sender. Slow readers have a
share of 0.42 to 0.56, other causes at most 0.01."""
MIN_SILENT_SHARE = 0.3
"""Minimum share of the time in which the receiver no longer responded, for this to be the cause."""
MIN_OUTAGE_SHARE = 0.2
"""Minimum share of the time in timeouts of an outage of the path, for this to be the cause although
the sender spends more time in another state. A fault has priority over a setting."""
MIN_OUTAGE_TIMEOUTS = 3
"""Minimum number of consecutive timeouts that indicate an outage of the path: three copies of the
same data were lost."""
MIN_SHORT_SEGMENTS_PER_RTT = 0.5
"""Minimum number of non-full segments per RTT for a sender that runs out of data. The number is
0.85 for writes of 64 kB every 50 ms, 0.94 for writes of 16 kB every 10 ms, 0.10 for a full send
buffer, and 0.04 for a full link."""
MIN_UNPROMPTED_SHARE = 0.3
"""Minimum share of new bytes not triggered by an ACK, for an application limit. Applications have
0.61 or more, other limits up to 0.24. A full send buffer has 0.51, but few non-full segments."""
MAX_DRAINED_FLIGHT_RATIO = 0.55
"""Maximum ratio of mean to maximum flight for an application limit, with which data in flight drain
between writes. Application limits have 0.38 to 0.5, a full send buffer 0.63 or more."""
MAX_PACING_VARIATION = 0.05
"""Maximum coefficient of variation of the gaps between bursts not triggered by ACKs, for a sender
with a pacing rate. Such senders have 0.001 to 0.043, links 0.10 or more, BBR 0.13."""
MIN_PACING_GAPS = 50
WINDOW_FILL_RANGE = (0.8, 1.1)
"""Range of the ratio of bytes per RTT to the largest receiver window, if the window is the
limit."""
MIN_REORDERED_PACKETS = 10
MIN_REORDERED_SHARE = 0.005
"""Minimum share of reordered packets. Captures with 5 % reordering have 0.046 to 0.048, captures
without reordering below 0.002."""
MAX_POLICED_RATE_VARIATION = 0.18
"""Maximum coefficient of variation of the rate between losses, for a policer. Policers have 0.044
to 0.136, random bursts of loss 0.29 or more (Flach et al., An Internet-wide analysis of traffic
policing, 2016, section 3)."""
MIN_POLICED_LOSSES = 5
"""Minimum number of loss indications to determine a policed rate."""
MIN_POLICED_BBR_LOSS_SHARE = 0.06
"""Minimum loss ratio of a BBR flow that indicates a policer. With a policer, BBR loses 0.08 to
0.10; with 1 and 3 % random loss, which does not affect BBR's rate, 0.01 to 0.04."""
MAX_EMPTY_QUEUE_RATIO = 0.12
"""Ratio of queueing delay at losses to RTT below which the path has no queue. Policers have 0.003
to 0.07, links with a buffer of 25 % of the RTT 0.27 to 0.33."""
MAX_EMPTY_MEAN_QUEUE_RATIO = 0.06
"""Ratio of mean queueing delay, measured by timestamps, to RTT below which the path has no queue.
Policers have 0.004 to 0.04, links with a buffer of 25 % of the RTT 0.09 or more."""
MIN_FULL_QUEUE_RATIO = 0.22
"""Minimum ratio of queueing delay to RTT for losses at a full queue. Full links have 0.27 or more,
losses without a full link 0.01 to 0.18."""
MIN_STANDING_QUEUE_RATIO = 0.5
"""A queue stands if the median RTT exceeds the lowest RTT by at least this share of the lowest RTT.
The share is 0.7 or more with four and five flows on one link, and at most 0.24 with random loss.
Behind such a queue, non-full segments do not show that the sender ran out of data: scp and rsync,
which write blocks, fill a link with 0.67 to 1.05 of them per RTT and a ratio of queueing delay to
RTT of 0.83; applications that run out of data have a ratio of at most 0.21."""
MIN_SINGLE_FLOW_LINK_SHARE = 0.65
"""Minimum ratio of rate to link rate, if known, for a single flow on a full link. Full links have
0.73 or more. Random loss has 0.31 to 0.61; there, a delayed ACK or a burst looks like a queue."""
MIN_LONG_QUEUE_RATIO = 1.0
"""Minimum ratio of queueing delay to RTT for a full link regardless of other evidence. The ratio is
0.46 with 5 % reordered packets, and 1.9 with a full link and some reordered packets."""
MAX_BBR_RATE_VARIATION = 0.2
"""Coefficient of variation of the rate between losses below which BBR sends at the link rate."""
MIN_BBR_LINK_SHARE = 0.8
"""Minimum ratio of rate to link rate, if known, with which BBR fills the link. The ratio is 0.96
with 3 % loss, where losses are too close to measure rates between them."""
MIN_CONSTANT_FLIGHT_ROUND_TRIPS = 20
MIN_ROUND_TRIPS_PER_FLIGHT_PACKET = 0.7
"""Minimum number of round trips per packet in flight to see that a window does not grow: Reno,
whose window grows most slowly, is then 1.27 times as fast in the second half."""
MAX_CONSTANT_FLIGHT_GROWTH = 1.15
"""Maximum ratio of the rates late and early in a transfer for a constant flight, without a queue.
The data in flight of BBR differ from round to round, but not its rate. BBR with a full send buffer
has 1.04 to 1.09, Reno after these round trips 1.27 or more."""
MAX_NO_QUEUE_RATIO = 0.05
"""Maximum ratio of median queueing delay to the lowest RTT for a path without a queue. Full send
buffers have 0 to 0.02, links that BBR fills 0.1 or more."""
MAX_NO_QUEUE_STATE_SHARE = 0.02
"""Maximum share of the time with a standing queue for a path without a queue."""
INITIAL_WINDOW = 10
"""Initial window in packets (RFC 6928)."""
MIN_LOSS_INDICATIONS = 5
LOSS_EXPLAINED_RATE_RANGE = (0.6, 3.0)
"""Range of the ratio of measured rate to PFTK's rate in which losses explain the rate, if the
sender's window is unknown. The ratio is 1.0 to 2.0 for random loss, 0.8 or more for full links,
0.32 for a paced sender, and 0.43 for an idle sender."""
MIN_TRANSFER_PACKETS = 10
"""Minimum number of packets of a transfer for a verdict."""
MAX_SHORT_TRANSFER_PACKETS = 1000
"""Maximum number of packets of a short transfer."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Columns with measured evidence on each direction; NaN or False if unknown."""

    limited_by: Column
    shares: dict[str, Column]
    is_tap_at_sender: Column
    """True if the tap is known to be at the sender, so the sender's limits are visible."""
    is_tap_away: Column
    """True if the tap is known not to be at the sender. Rules for these taps use the RTT of the
    path, which is unknown at a tap with an unknown position."""
    unprompted_share: Column
    short_segments_per_rtt: Column
    pacing_gaps: Column
    pacing_variation: Column
    window_fill_ratio: Column
    round_trips: Column
    packets: Column
    reordered_packets: Column
    has_retransmissions: Column
    """True if packets were retransmitted."""
    necessary_retransmissions: Column
    """Number of necessary retransmissions."""
    loss_indications: Column
    window_reductions: Column
    """Number of window reductions because of ECN marks."""
    rate_variation: Column
    mean_flight_ratio: Column
    """Ratio of mean to maximum flight; NaN unless the tap is at the sender."""
    mean_flight_pkts: Column
    rate_growth: Column
    """Ratio of the rates late and early in the transfer."""
    median_queue_ratio: Column
    """Ratio of median to minimum RTT, minus 1."""
    queue_ratio: Column
    """Ratio of queueing delay to RTT: the delay at losses or, for other taps, its mean."""
    is_bbr: Column
    link_rate_share: Column
    """Ratio of rate to link rate, if known."""
    measured_to_pftk_ratio: Column
    is_lossless_from_syn: Column
    silent_share: Column
    """Share of the time at the end in which the receiver responded to nothing."""
    consecutive_timeouts: Column
    """Maximum number of consecutive timeouts."""

    @classmethod
    def from_table(cls, table: Table) -> Evidence:
        """Return the evidence from the table of directions."""
        away, here, rtt = is_tap_away(table), is_tap_at_sender(table), path_rtt_s(table)
        needed = table["retransmissions"] - unnecessary_retransmissions(table)
        with np.errstate(divide="ignore", invalid="ignore"):
            round_trips = table["duration_s"] / rtt
            at_losses = np.where(here, table["queue_at_loss_s"] / table["rtt_min_s"], np.nan)
            queue = np.where(away, table["queue_delay_s"] / rtt, at_losses)
            flight = table["flight_mean_bytes"] / table["flight_max_bytes"]
            return cls(
                limited_by=table["limited_by"],
                shares={name[6:]: table[name] for name in table if name.startswith("share_")},
                is_tap_at_sender=here,
                is_tap_away=away,
                unprompted_share=table["unprompted_bytes"] / table["unique_bytes"],
                short_segments_per_rtt=table["short_segments"] / round_trips,
                pacing_gaps=table["pacing_gaps"],
                pacing_variation=table["pacing_variation"],
                window_fill_ratio=table["goodput_bps"] / 8 * rtt / table["window_max_bytes"],
                round_trips=round_trips,
                packets=table["data_packets"],
                reordered_packets=reordered_packets(table),
                has_retransmissions=table["retransmissions"] > 0,
                necessary_retransmissions=needed,
                loss_indications=table["td"] + table["to"],
                window_reductions=table["window_reductions"],
                rate_variation=table["loss_rate_variation"],
                mean_flight_ratio=np.where(here, flight, np.nan),
                mean_flight_pkts=table["flight_mean_bytes"] / table["segment_bytes"],
                rate_growth=table["rate_growth"],
                median_queue_ratio=table["rtt_karn_p50_s"] / table["rtt_min_s"] - 1,
                queue_ratio=queue,
                is_bbr=table["looks_like"] == BBR,
                link_rate_share=table["goodput_bps"] / table["bottleneck_rate_bps"],
                measured_to_pftk_ratio=table["send_rate_pps"] / table["pftk_pps"],
                is_lossless_from_syn=table["syn_captured"] & (table["retransmissions"] == 0),
                silent_share=table["receiver_silence_s"] / table["duration_s"],
                consecutive_timeouts=table["max_backoff"],
            )

    def is_mostly_in_states(self, *limits: str) -> Column:
        """Return a mask of rows that spend most of the time in these states."""
        return np.asarray(
            sum(np.nan_to_num(self.shares[name]) for name in limits) >= MIN_MAIN_STATE_SHARE
        )

    def is_mostly_explained_by(self, cause: str) -> Column:
        """Return a mask of rows in which no other state lasts longer than the states of a cause.

        These are the state of the cause, the states that :data:`MISDETECTED_STATES` replaces, and
        unknown states. The capture shows the other states directly.
        """
        states, target = MISDETECTED_STATES[cause]
        of_cause = {target, UNKNOWN, *states}
        shares = {name: np.nan_to_num(share) for name, share in self.shares.items()}
        explained = sum(share for name, share in shares.items() if name in of_cause)
        others = [share for name, share in shares.items() if name not in of_cause]
        return np.asarray(explained >= np.max(others, axis=0))

    def has_full_buffer(self, limit: str) -> Column:
        """Return a mask of rows with a full buffer for long (:data:`MIN_FULL_BUFFER_SHARE`)."""
        share, idle = (np.nan_to_num(self.shares[name]) for name in (limit, "application"))
        return np.asarray((share >= MIN_FULL_BUFFER_SHARE) & (share > idle))


def _has_outage(evidence: Evidence) -> Column:
    """Detect long outages of the path that do not result from losses of single packets."""
    long = np.nan_to_num(evidence.shares["timeout"]) >= MIN_OUTAGE_SHARE
    several = evidence.consecutive_timeouts >= MIN_OUTAGE_TIMEOUTS
    return np.asarray(long & several & ~np.isin(evidence.limited_by, LOSS_STATES))


def _is_receiver_limited(evidence: Evidence) -> Column:
    """Detect closed or full receive windows (T-RAT), and rates that fill the window."""
    low, high = WINDOW_FILL_RANGE
    filled = (
        evidence.is_tap_away
        & (evidence.window_fill_ratio >= low)
        & (evidence.window_fill_ratio <= high)
    )
    held = evidence.is_mostly_in_states("receiver_window") | (
        evidence.limited_by == "receiver_window"
    )
    held |= evidence.has_full_buffer("receiver_window") & (
        evidence.is_tap_away | ~_is_window_reduced(evidence)
    )
    return np.asarray(held | filled & (evidence.loss_indications == 0))


def _is_window_reduced(evidence: Evidence) -> Column:
    """Detect losses and ECN marks, which reduce the congestion window."""
    return np.asarray((evidence.loss_indications > 0) | (evidence.window_reductions > 0))


def _is_paced(evidence: Evidence) -> Column:
    """Detect bursts that are sent at even gaps without waiting for acks."""
    even = (evidence.pacing_variation <= MAX_PACING_VARIATION) & (
        evidence.pacing_gaps >= MIN_PACING_GAPS
    )
    # BBR paces as well, at the rate of a link that is full.
    explained = evidence.is_mostly_explained_by(PACING) & (evidence.limited_by != "bottleneck")
    return np.asarray(evidence.is_tap_at_sender & even & ~_runs_out_of_data(evidence) & explained)


def _runs_out_of_data(evidence: Evidence) -> Column:
    return np.asarray(evidence.short_segments_per_rtt >= MIN_SHORT_SEGMENTS_PER_RTT)


def _is_application_limited(evidence: Evidence) -> Column:
    """Detect senders that are idle or run out of data in most round trips."""
    written = (
        evidence.is_tap_away & ~(evidence.queue_ratio >= MIN_STANDING_QUEUE_RATIO)
        | (evidence.unprompted_share >= MIN_UNPROMPTED_SHARE)
        | (evidence.mean_flight_ratio <= MAX_DRAINED_FLIGHT_RATIO)
    )
    several = evidence.round_trips > 2
    dry = _runs_out_of_data(evidence) & written & several
    return np.asarray(
        (evidence.limited_by == "application") | dry & evidence.is_mostly_explained_by(APPLICATION)
    )


def _is_short_transfer(evidence: Evidence) -> Column:
    """Detect transfers that end in slow start (RFC 5681, section 3.1)."""
    doublings = np.ceil(np.log2(1 + evidence.packets / INITIAL_WINDOW))
    few = (evidence.packets >= MIN_TRANSFER_PACKETS) & (
        evidence.packets <= MAX_SHORT_TRANSFER_PACKETS
    )
    quick = evidence.is_lossless_from_syn & few & (evidence.round_trips <= doublings - 0.5)
    return np.asarray((evidence.limited_by == "slow_start") | evidence.is_tap_away & quick)


def _is_send_buffer_limited(evidence: Evidence) -> Column:
    """Detect flights of a constant size below the receiver's window."""
    full = evidence.has_full_buffer("send_buffer") & ~_is_window_reduced(evidence)
    return np.asarray(
        (evidence.limited_by == "send_buffer") | full | _has_constant_flight(evidence)
    )


def _has_constant_flight(evidence: Evidence) -> Column:
    """Detect senders whose data in flight do not grow, although nothing on the path limits them.

    Without losses and queues, every congestion control increases its window. BBR's window is not
    constant from round to round, so its rounds do not show the send buffer.
    """
    free = (
        ~_is_window_reduced(evidence)
        & ~evidence.has_retransmissions
        & (evidence.median_queue_ratio <= MAX_NO_QUEUE_RATIO)
        & (np.nan_to_num(evidence.shares["bottleneck"]) <= MAX_NO_QUEUE_STATE_SHARE)
    )
    long = evidence.round_trips >= np.fmax(
        MIN_CONSTANT_FLIGHT_ROUND_TRIPS,
        MIN_ROUND_TRIPS_PER_FLIGHT_PACKET * evidence.mean_flight_pkts,
    )
    waits = evidence.is_mostly_in_states("congestion_window", "send_buffer")
    constant = evidence.rate_growth <= MAX_CONSTANT_FLIGHT_GROWTH
    return np.asarray(evidence.is_tap_at_sender & free & long & waits & constant)


def _is_reordered(evidence: Evidence) -> Column:
    """Detect packets that are reordered more often than lost (RFC 4737)."""
    many = (evidence.reordered_packets >= MIN_REORDERED_PACKETS) & (
        evidence.reordered_packets >= MIN_REORDERED_SHARE * evidence.packets
    )
    more = (
        evidence.reordered_packets > evidence.necessary_retransmissions
    ) & evidence.has_retransmissions
    return np.asarray(many & more & ~(evidence.queue_ratio >= MIN_LONG_QUEUE_RATIO))


def _is_policed(evidence: Evidence) -> Column:
    """Detect losses above a certain rate without a queue before each loss (Flach et al., 2016)."""
    none = evidence.queue_ratio <= np.where(
        evidence.is_tap_away, MAX_EMPTY_MEAN_QUEUE_RATIO, MAX_EMPTY_QUEUE_RATIO
    )
    dropped = ~evidence.is_bbr | (
        evidence.necessary_retransmissions >= MIN_POLICED_BBR_LOSS_SHARE * evidence.packets
    )
    return np.asarray(_has_rate_ceiling(evidence) & none & dropped & ~_is_idle(evidence))


def _has_rate_ceiling(evidence: Evidence) -> Column:
    """Detect losses that occur whenever the sender exceeds a certain rate."""
    return np.asarray(
        (evidence.rate_variation <= MAX_POLICED_RATE_VARIATION)
        & (evidence.loss_indications >= MIN_POLICED_LOSSES)
    )


def _is_link_limited(evidence: Evidence) -> Column:
    """Detect full queues, and BBR senders that keep the link rate despite losses."""
    standing = (evidence.queue_ratio >= MIN_FULL_QUEUE_RATIO) & (
        (evidence.loss_indications > 0) | evidence.is_tap_away
    )
    steady = (
        evidence.is_bbr
        & (evidence.rate_variation <= MAX_BBR_RATE_VARIATION)
        & (evidence.loss_indications >= MIN_LOSS_INDICATIONS)
    )
    steady |= evidence.is_bbr & (evidence.link_rate_share >= MIN_BBR_LINK_SHARE)
    congested = evidence.is_tap_away | evidence.is_mostly_in_states(
        "congestion_window", "loss_recovery", "bottleneck"
    )
    full = (standing & ~_rate_varies(evidence) | steady | _has_rate_ceiling(evidence)) & ~_is_idle(
        evidence
    )
    return np.asarray(congested & full | (evidence.limited_by == "bottleneck"))


def _is_idle(evidence: Evidence) -> Column:
    """Detect senders far slower than PFTK, which are idle at times.

    Only for taps away from the sender: captures at the sender show idle times directly.
    """
    return np.asarray(
        evidence.is_tap_away & (evidence.measured_to_pftk_ratio < LOSS_EXPLAINED_RATE_RANGE[0])
    )


def _rate_varies(evidence: Evidence) -> Column:
    """Detect rates far below the link rate without a standing queue."""
    varies = ~(evidence.rate_variation <= MAX_POLICED_RATE_VARIATION) & (
        evidence.link_rate_share < MIN_SINGLE_FLOW_LINK_SHARE
    )
    return np.asarray(
        varies
        & (evidence.median_queue_ratio < MIN_STANDING_QUEUE_RATIO)
        & (evidence.queue_ratio < MIN_LONG_QUEUE_RATIO)
    )


def _is_loss_limited(evidence: Evidence) -> Column:
    """Detect losses that reduce the congestion window or, at other taps, explain the rate."""
    low, high = LOSS_EXPLAINED_RATE_RANGE
    explained = (
        evidence.is_tap_away
        & (evidence.measured_to_pftk_ratio >= low)
        & (evidence.measured_to_pftk_ratio <= high)
    )
    explained &= ~(evidence.rate_variation <= MAX_POLICED_RATE_VARIATION)
    cut = np.isin(evidence.limited_by, LOSS_STATES)
    return np.asarray(
        cut & (evidence.loss_indications > 0)
        | explained & (evidence.loss_indications >= MIN_LOSS_INDICATIONS)
    )


class Rule(NamedTuple):
    """A cause, and a function that returns a mask of rows with sufficient evidence for it."""

    cause: str
    has_evidence: Callable[[Evidence], Column]


RULES = (
    # Receivers that responded to none of at least three copies of the last data.
    Rule(NO_RESPONSE, lambda evidence: np.asarray(evidence.silent_share >= MIN_SILENT_SHARE)),
    Rule(TIMEOUT, _has_outage),
    Rule(RECEIVER, _is_receiver_limited),
    Rule(PACING, _is_paced),
    Rule(APPLICATION, _is_application_limited),
    Rule(SHORT_TRANSFER, _is_short_transfer),
    Rule(SEND_BUFFER, _is_send_buffer_limited),
    Rule(TIMEOUT, lambda evidence: np.asarray(evidence.limited_by == "timeout")),
    Rule(REORDERING, _is_reordered),
    Rule(POLICER, _is_policed),
    Rule(LINK, _is_link_limited),
    Rule(LOSS, _is_loss_limited),
    Rule(CONGESTION_WINDOW, lambda evidence: np.isin(evidence.limited_by, LOSS_STATES)),
)
"""Rules in order of precedence; the first rule that holds determines the cause."""


def causes_by_rules(evidence: Evidence) -> Column:
    """Return the cause of each direction by the first rule that holds."""
    causes = np.full(evidence.is_tap_away.size, UNKNOWN, dtype="<U18")
    for rule in reversed(RULES):
        causes[rule.has_evidence(evidence)] = rule.cause
    return causes


def cause_columns(table: Table, rounds: Table, loss_indications: Table) -> Table:
    """Return the column ``cause``, and columns of evidence that require several tables.

    Parameters
    ----------
    table
        The table of directions, with ``looks_like`` and the rates of models.
    rounds, loss_indications
        Tables of rounds and loss indications.
    """
    found = loss_origin_columns(table, rounds, loss_indications)
    found["rate_growth"] = rate_growth_ratios(table, rounds)
    causes = causes_by_rules(Evidence.from_table(table | found))
    natural = np.zeros(causes.size, dtype=bool)
    for cause, limits in STATES_BY_CAUSE.items():
        natural |= (causes == cause) & np.isin(table["limited_by"], limits)
    shared = sharing_flow_columns(table, rounds, loss_indications, np.flatnonzero(causes == LINK))
    return found | shared | {"cause": causes, "cause_evident": ~natural & (causes != UNKNOWN)}


def correct_columns_by_cause(table: Table) -> Table:
    """Return corrected columns, so that no value contradicts the cause.

    Time in states detected by mistake (:data:`MISDETECTED_STATES`) is added to the state of the
    cause. If no window is full, congestion control and link rate become unknown.
    """
    causes = table["cause"]
    changed = {
        name: table[name].copy() for name in table if name.startswith(("share_", "limited_by"))
    }
    for cause, (states, target) in MISDETECTED_STATES.items():
        rows = np.flatnonzero((causes == cause) & table["cause_evident"])
        for state in states:
            changed[f"share_{target}"][rows] += changed[f"share_{state}"][rows]
            changed[f"share_{state}"][rows] = 0.0
        names = [name for name in changed if name.startswith("share_")]
        most = np.nan_to_num(np.stack([changed[name][rows] for name in names])).argmax(axis=0)
        changed["limited_by"][rows] = np.array([name[6:] for name in names])[most]
    unseen = np.isin(causes, CAUSES_WITHOUT_FULL_WINDOW)
    control = np.where(unseen, UNKNOWN, table["looks_like"])
    seen = table["bottleneck_rate_bps"]
    # The link rate is at least the goodput; np.maximum keeps NaN.
    link = np.where(unseen, np.nan, np.maximum(seen, np.nan_to_num(table["goodput_bps"])))
    return changed | {"looks_like": control, "bottleneck_rate_bps": link}
