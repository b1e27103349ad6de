"""The cause of each direction's rate: rules over measured evidence, in the order of trust.

A rule names a cause and the evidence that it needs. The first rule that holds decides. Without a
rule that holds, the cause is ``unknown``: a wrong verdict costs more than none. Every threshold is
a constant, with the values that were measured on both sides of it: captures of a Linux kernel with
a known cause, at the sender, in the middle and at the receiver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tcpcast.captures.control import BBR
from tcpcast.captures.losses import loss_evidence, path_rtt_s, sharing

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.captures.table import Table

    Column = np.ndarray[Any, Any]

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

UNSEEN = (APPLICATION, PACING, REORDERING)
"""Causes with which flights show neither the congestion control nor the rate of the link."""

STATES = {
    APPLICATION: ("application",),
    RECEIVER: ("receiver_window",),
    SEND_BUFFER: ("send_buffer",),
    SHORT_TRANSFER: ("slow_start",),
    TIMEOUT: ("timeout",),
    LINK: ("bottleneck",),
    LOSS: ("congestion_window", "loss_recovery"),
    CONGESTION_WINDOW: ("congestion_window", "loss_recovery"),
}
"""States of the sender that show a cause by themselves; all others need further evidence."""

MOVED = {
    APPLICATION: (("send_buffer", "congestion_window", "bottleneck"), "application"),
    PACING: (("send_buffer", "congestion_window", "bottleneck"), "application"),
    REORDERING: (("bottleneck",), "congestion_window"),
    LINK: (("congestion_window", "loss_recovery"), "bottleneck"),
}
"""States that a cause explains by another one."""

CUT = ("congestion_window", "loss_recovery")
"""Limits that losses explain."""

MOSTLY = 0.5
"""Share of the time at and above which a state of the sender decides."""
RUNS_DRY = 0.5
"""Segments per RTT that are not full, at and above which the sender runs out of data: writes of 64
kB every 50 ms have 0.85, 16 kB every 10 ms 0.94; a send buffer that is full 0.10, a link 0.04."""
UNPROMPTED = 0.3
"""Share of the new bytes that no acknowledgement triggered: applications 0.61 and more, other
limits up to 0.24, a send buffer 0.51 (but it does not run dry)."""
PACED = 0.8
"""Share for a sender with a pacing rate: 0.96."""
EVEN = 0.05
"""Variation of the gaps between its bursts: 0.012; a link has 0.10 and more, BBR 0.18."""
ENOUGH_GAPS = 50
WINDOW_FILLED = (0.8, 1.1)
"""Bytes per RTT over the receiver's largest window, if the window is the limit."""
ENOUGH_LATE = 10
LATE = 0.005
"""Share of the packets that arrive after later ones: 0.048 with 5 % reordered, else below 0.002."""
POLICED = 0.08
"""Variation of the rate between losses: a policer 0.044 to 0.054, random bursts of loss 0.29 and
more (Flach et al., An Internet-wide analysis of traffic policing, 2016, section 3)."""
POLICED_LOSSES = 6
"""Fewer loss indications do not show such a rate."""
NO_QUEUE = 0.12
"""Queueing delay at losses over the RTT below which there is no queue: a policer has 0.07."""
QUEUE = 0.3
"""Queueing delay over the RTT at and above which there is a standing queue: links have
0.9 and more, losses without a full link 0.16 to 0.18."""
LONG_QUEUE = 1.0
"""Queueing delay over the RTT at and above which a link is full, whatever else happens: 0.46
with 5 % of the packets late, 1.9 with a full link and some late packets."""
BBR_STEADY = 0.2
"""Variation of the rate between losses below which BBR keeps the rate of its link."""
INITIAL_WINDOW = 10
"""Packets (RFC 6928)."""
ENOUGH_LOSSES = 5
EXPLAINED = (0.3, 3.0)
"""Measured rate over PFTK's within which losses explain it, where the sender's window is unseen."""
FEWEST = 10
"""Packets of a transfer that are too few to tell."""
LONG = 1000
"""Packets of a transfer that is not short."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Measured evidence of each direction, a column per fact; NaN and False where it is unseen."""

    limited_by: Column
    shares: dict[str, Column]
    away: Column
    """The tap is away from the sender: what the sender waited for does not show."""
    unprompted: Column
    short_per_rtt: Column
    pacing_gaps: Column
    pacing_variation: Column
    window_filled: Column
    zero_windows: Column
    round_trips: Column
    packets: Column
    late: Column
    retransmitted: Column
    losses: Column
    rate_variation: Column
    queue: Column
    """Queueing delay over the RTT: at losses, or by timestamps before a receiver."""
    bbr: Column
    over_model: Column
    whole: Column

    @classmethod
    def of(cls, table: Table) -> Evidence:
        """Return the evidence in the table of directions."""
        away = np.isin(table["tap_side"], ("receiver", "middle"))
        rtt = path_rtt_s(table)
        with np.errstate(divide="ignore", invalid="ignore"):
            round_trips = table["duration_s"] / rtt
            filled = table["goodput_bps"] / 8 * rtt / table["window_max_bytes"]
            queue = np.where(
                away, table["queue_delay_s"] / rtt, table["queue_at_loss_s"] / table["rtt_min_s"]
            )
            unprompted = table["unprompted_bytes"] / table["unique_bytes"]
            short_per_rtt = table["short_segments"] / round_trips
            over_model = table["send_rate_pps"] / table["pftk_pps"]
        return cls(
            limited_by=table["limited_by"],
            shares={name[6:]: table[name] for name in table if name.startswith("share_")},
            away=away,
            unprompted=unprompted,
            short_per_rtt=short_per_rtt,
            pacing_gaps=table["pacing_gaps"],
            pacing_variation=table["pacing_variation"],
            window_filled=filled,
            zero_windows=table["zero_windows"],
            round_trips=round_trips,
            packets=table["data_packets"],
            late=table["out_of_order"] + np.where(away, 0, table["late_packets"]),
            retransmitted=table["retransmissions"],
            losses=table["td"] + table["to"],
            rate_variation=table["loss_rate_variation"],
            queue=queue,
            bbr=table["looks_like"] == BBR,
            over_model=over_model,
            whole=table["syn_captured"] & (table["retransmissions"] == 0),
        )

    def mostly(self, *limits: str) -> Column:
        """Return where some states of the sender took most of the time."""
        return np.asarray(sum(np.nan_to_num(self.shares[name]) for name in limits) >= MOSTLY)


def _receiver(seen: Evidence) -> Column:
    """Find closed or full receive windows (T-RAT), and those that the rate fills."""
    low, high = WINDOW_FILLED
    filled = seen.away & (seen.window_filled >= low) & (seen.window_filled <= high)
    held = seen.mostly("receiver_window") | (seen.limited_by == "receiver_window")
    return np.asarray(held | filled & (seen.losses == 0))


def _paced(seen: Evidence) -> Column:
    """Find packets that leave at even gaps, without waiting for acknowledgements."""
    even = (seen.pacing_variation <= EVEN) & (seen.pacing_gaps >= ENOUGH_GAPS)
    return np.asarray(~seen.away & even & (seen.unprompted >= PACED) & ~_dry(seen))


def _dry(seen: Evidence) -> Column:
    return np.asarray(seen.short_per_rtt >= RUNS_DRY)


def _application(seen: Evidence) -> Column:
    """Find senders that are idle, or run out of data in most round trips."""
    written = seen.away | (seen.unprompted >= UNPROMPTED)
    several = seen.round_trips > 2
    return np.asarray((seen.limited_by == "application") | _dry(seen) & written & several)


def _short_transfer(seen: Evidence) -> Column:
    """Find transfers that end in slow start (RFC 5681, section 3.1)."""
    doublings = np.ceil(np.log2(1 + seen.packets / INITIAL_WINDOW))
    few = (seen.packets >= FEWEST) & (seen.packets <= LONG)
    quick = seen.whole & few & (seen.round_trips <= doublings - 0.5)
    return np.asarray((seen.limited_by == "slow_start") | seen.away & quick)


def _reordering(seen: Evidence) -> Column:
    """Find packets that arrive late more often than they are lost (RFC 4737)."""
    many = (seen.late >= ENOUGH_LATE) & (seen.late >= LATE * seen.packets)
    more = (seen.late > seen.retransmitted) & (seen.retransmitted > 0)
    return np.asarray(many & more & ~(seen.queue >= LONG_QUEUE))


def _policer(seen: Evidence) -> Column:
    """Find losses above a rate without a queue before them (Flach et al., 2016)."""
    return np.asarray(_one_rate(seen) & (seen.queue <= NO_QUEUE) & ~seen.bbr)


def _one_rate(seen: Evidence) -> Column:
    """Find losses that come when the sender exceeds one rate."""
    return np.asarray((seen.rate_variation <= POLICED) & (seen.losses >= POLICED_LOSSES))


def _link(seen: Evidence) -> Column:
    """Find full queues, and BBR that keeps the rate of its link through losses."""
    standing = (seen.queue >= QUEUE) & ((seen.losses > 0) | seen.away)
    steady = seen.bbr & (seen.rate_variation <= BBR_STEADY) & (seen.losses >= ENOUGH_LOSSES)
    congested = seen.away | seen.mostly("congestion_window", "loss_recovery", "bottleneck")
    full = standing | steady | _one_rate(seen)
    return np.asarray(congested & full | (seen.limited_by == "bottleneck"))


def _loss(seen: Evidence) -> Column:
    """Find losses that cut the congestion window, or away from the sender explain the rate."""
    low, high = EXPLAINED
    explained = seen.away & (seen.over_model >= low) & (seen.over_model <= high)
    cut = np.isin(seen.limited_by, CUT)
    return np.asarray(cut & (seen.losses > 0) | explained & (seen.losses >= ENOUGH_LOSSES))


class Rule(NamedTuple):
    """A cause, and the function that says where the evidence is enough for it."""

    cause: str
    holds: Callable[[Evidence], Column]


RULES = (
    Rule(RECEIVER, _receiver),
    Rule(PACING, _paced),
    Rule(APPLICATION, _application),
    Rule(SHORT_TRANSFER, _short_transfer),
    Rule(SEND_BUFFER, lambda seen: np.asarray(seen.limited_by == "send_buffer")),
    Rule(TIMEOUT, lambda seen: np.asarray(seen.limited_by == "timeout")),
    Rule(REORDERING, _reordering),
    Rule(POLICER, _policer),
    Rule(LINK, _link),
    Rule(LOSS, _loss),
    Rule(CONGESTION_WINDOW, lambda seen: np.isin(seen.limited_by, CUT)),
)
"""The procedure: the first rule that holds names the cause."""


def judged(table: Table, rounds: Table, loss_indications: Table) -> Table:
    """Return ``cause`` of each direction, and the evidence that needs more than one table.

    Parameters
    ----------
    table
        The table of directions, with ``looks_like`` and the rates of models.
    rounds, loss_indications
        The tables of these names.
    """
    found = loss_evidence(table, rounds, loss_indications)
    seen = Evidence.of(table | found)
    causes = np.full(table["src"].size, UNKNOWN, dtype="<U18")
    for rule in reversed(RULES):
        causes[rule.holds(seen)] = rule.cause
    natural = np.zeros(causes.size, dtype=bool)
    for cause, limits in STATES.items():
        natural |= (causes == cause) & np.isin(table["limited_by"], limits)
    shared = sharing(table, rounds, loss_indications, np.flatnonzero(causes == LINK))
    return found | shared | {"cause": causes, "cause_evident": ~natural & (causes != UNKNOWN)}


def refined(table: Table) -> Table:
    """Return the columns that the cause corrects, so that no figure contradicts it.

    Time in states that only look like others is moved to the state that the cause names. Without
    a full window neither congestion control nor the rate of the link shows.
    """
    causes = table["cause"]
    changed = {
        name: table[name].copy() for name in table if name.startswith(("share_", "limited_by"))
    }
    for cause, (states, target) in MOVED.items():
        rows = np.flatnonzero((causes == cause) & table["cause_evident"])
        for state in states:
            changed[f"share_{target}"][rows] += changed[f"share_{state}"][rows]
            changed[f"share_{state}"][rows] = 0.0
        names = [name for name in changed if name.startswith("share_")]
        most = np.nan_to_num(np.stack([changed[name][rows] for name in names])).argmax(axis=0)
        changed["limited_by"][rows] = np.array([name[6:] for name in names])[most]
    unseen = np.isin(causes, UNSEEN)
    control = np.where(unseen, UNKNOWN, table["looks_like"])
    seen = table["bottleneck_rate_bps"]
    # The link carried the goodput; np.maximum keeps NaN.
    link = np.where(unseen, np.nan, np.maximum(seen, np.nan_to_num(table["goodput_bps"])))
    return changed | {"looks_like": control, "bottleneck_rate_bps": link}
