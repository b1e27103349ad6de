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
from tcpcast.captures.losses import (
    late_packets,
    loss_evidence,
    needless_packets,
    path_rtt_s,
    sharing,
)

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

UNSEEN = (APPLICATION, PACING, REORDERING, SEND_BUFFER)
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
PARTLY = 0.3
"""Share for a full receive window or send buffer without losses, as the congestion window grows
until something limits it; and at a tap away from the sender, which does not see the time until a
window update reaches the sender. Slow readers have 0.42 to 0.56, other causes at most 0.01."""
RUNS_DRY = 0.5
"""Segments per RTT that are not full, at and above which the sender runs out of data: writes of 64
kB every 50 ms have 0.85, 16 kB every 10 ms 0.94; a send buffer that is full 0.10, a link 0.04."""
UNPROMPTED = 0.3
"""Share of the new bytes that no acknowledgement triggered: applications 0.61 and more, other
limits up to 0.24, a send buffer 0.51 (but it does not run dry)."""
DRAINED = 0.55
"""Mean flight over the largest up to which the flight drains between writes, so that data come from
the application: 0.38 to 0.5. A full send buffer has 0.63 and more."""
EVEN = 0.05
"""Variation of the gaps between bursts that no acknowledgement triggered, for a sender with a
pacing rate: 0.001 to 0.043; a link has 0.10 and more, BBR 0.13."""
ENOUGH_GAPS = 50
WINDOW_FILLED = (0.8, 1.1)
"""Bytes per RTT over the receiver's largest window, if the window is the limit."""
ENOUGH_LATE = 10
LATE = 0.005
"""Share of the packets that arrive after later ones: 0.046 to 0.048 with 5 % reordered, else below
0.002."""
POLICED = 0.18
"""Variation of the rate between losses: a policer 0.044 to 0.136, random bursts of loss 0.29 and
more (Flach et al., An Internet-wide analysis of traffic policing, 2016, section 3)."""
POLICED_LOSSES = 5
"""Fewer loss indications do not show such a rate."""
BBR_POLICED = 0.06
"""Share of the packets of BBR that a policer drops: 0.08 to 0.10. At 1 and 3 % of random loss,
through which BBR keeps its rate, 0.01 to 0.04 are lost."""
NO_QUEUE = 0.12
"""Queueing delay at losses over the RTT below which there is no queue: policers have 0.003 to 0.07,
links with a buffer of a quarter of the RTT 0.27 to 0.33."""
NO_QUEUE_AWAY = 0.06
"""Mean delay by timestamps over the RTT, likewise: policers have 0.004 to 0.04, such links 0.09 and
more."""
QUEUE = 0.22
"""Queueing delay over the RTT at and above which losses come at a full queue: links have 0.27 and
more, losses without a full link 0.01 to 0.18."""
STANDING = 0.5
"""Median RTT above its minimum, over that, at and above which a queue stands most of the time: four
and five flows at one link have 0.7 and more, random loss at most 0.24."""
ALONE = 0.65
"""Rate over that of the link, where it was seen, that a flow alone at a full link reaches: 0.73 and
more. With random loss, a delayed acknowledgement or a burst looks like a queue: 0.31 to 0.61."""
LONG_QUEUE = 1.0
"""Queueing delay over the RTT at and above which a link is full, whatever else happens: 0.46
with 5 % of the packets late, 1.9 with a full link and some late packets."""
BBR_STEADY = 0.2
"""Variation of the rate between losses below which BBR keeps the rate of its link."""
BBR_FULL = 0.8
"""Rate over that of the link, where it was seen, at and above which BBR fills the link: 0.96 at 3 %
of loss, where losses are too close for the rates between them."""
INITIAL_WINDOW = 10
"""Packets (RFC 6928)."""
ENOUGH_LOSSES = 5
EXPLAINED = (0.6, 3.0)
"""Measured rate over PFTK's within which losses explain it, where the sender's window is unseen:
random loss has 1.0 to 2.0, links 0.8 and more; a paced sender 0.32, an idle one 0.43."""
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
    repaired: Column
    """Packets were retransmitted."""
    lost: Column
    """Packets retransmitted, without those that were needless."""
    losses: Column
    rate_variation: Column
    flight_mean: Column
    """Mean flight over the largest; NaN away from the sender."""
    usual_queue: Column
    """Median RTT above its minimum, over that."""
    queue: Column
    """Queueing delay over the RTT: at losses, or by timestamps before a receiver."""
    bbr: Column
    link_used: Column
    """Rate over that of the link, where it was seen."""
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
            flight = table["flight_mean_bytes"] / table["flight_max_bytes"]
            usual = table["rtt_karn_p50_s"] / table["rtt_min_s"] - 1
            link_used = table["goodput_bps"] / table["bottleneck_rate_bps"]
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
            late=late_packets(table),
            repaired=table["retransmissions"] > 0,
            lost=table["retransmissions"] - needless_packets(table),
            losses=table["td"] + table["to"],
            rate_variation=table["loss_rate_variation"],
            flight_mean=np.where(away, np.nan, flight),
            usual_queue=usual,
            queue=queue,
            bbr=table["looks_like"] == BBR,
            link_used=link_used,
            over_model=over_model,
            whole=table["syn_captured"] & (table["retransmissions"] == 0),
        )

    def mostly(self, *limits: str) -> Column:
        """Return where some states of the sender took most of the time."""
        return np.asarray(sum(np.nan_to_num(self.shares[name]) for name in limits) >= MOSTLY)

    def partly(self, limit: str) -> Column:
        """Return True for rows with a state for part of the time, and less of the application."""
        share, idle = (np.nan_to_num(self.shares[name]) for name in (limit, "application"))
        return np.asarray((share >= PARTLY) & (share > idle))


def _receiver(seen: Evidence) -> Column:
    """Find closed or full receive windows (T-RAT), and those that the rate fills."""
    low, high = WINDOW_FILLED
    filled = seen.away & (seen.window_filled >= low) & (seen.window_filled <= high)
    held = seen.mostly("receiver_window") | (seen.limited_by == "receiver_window")
    held |= seen.partly("receiver_window") & (seen.away | (seen.losses == 0))
    return np.asarray(held | filled & (seen.losses == 0))


def _paced(seen: Evidence) -> Column:
    """Find bursts that leave at even gaps, without waiting for acknowledgements."""
    even = (seen.pacing_variation <= EVEN) & (seen.pacing_gaps >= ENOUGH_GAPS)
    return np.asarray(~seen.away & even & ~_dry(seen))


def _dry(seen: Evidence) -> Column:
    return np.asarray(seen.short_per_rtt >= RUNS_DRY)


def _application(seen: Evidence) -> Column:
    """Find senders that are idle, or run out of data in most round trips."""
    written = seen.away | (seen.unprompted >= UNPROMPTED) | (seen.flight_mean <= DRAINED)
    several = seen.round_trips > 2
    return np.asarray((seen.limited_by == "application") | _dry(seen) & written & several)


def _short_transfer(seen: Evidence) -> Column:
    """Find transfers that end in slow start (RFC 5681, section 3.1)."""
    doublings = np.ceil(np.log2(1 + seen.packets / INITIAL_WINDOW))
    few = (seen.packets >= FEWEST) & (seen.packets <= LONG)
    quick = seen.whole & few & (seen.round_trips <= doublings - 0.5)
    return np.asarray((seen.limited_by == "slow_start") | seen.away & quick)


def _send_buffer(seen: Evidence) -> Column:
    """Find flights of a constant size below the receiver's window."""
    full = seen.partly("send_buffer") & (seen.losses == 0)
    return np.asarray((seen.limited_by == "send_buffer") | full)


def _reordering(seen: Evidence) -> Column:
    """Find packets that arrive late more often than they are lost (RFC 4737)."""
    many = (seen.late >= ENOUGH_LATE) & (seen.late >= LATE * seen.packets)
    more = (seen.late > seen.lost) & seen.repaired
    return np.asarray(many & more & ~(seen.queue >= LONG_QUEUE))


def _policer(seen: Evidence) -> Column:
    """Find losses above a rate without a queue before them (Flach et al., 2016)."""
    none = seen.queue <= np.where(seen.away, NO_QUEUE_AWAY, NO_QUEUE)
    dropped = ~seen.bbr | (seen.lost >= BBR_POLICED * seen.packets)
    return np.asarray(_one_rate(seen) & none & dropped & ~_idle(seen))


def _one_rate(seen: Evidence) -> Column:
    """Find losses that come when the sender exceeds one rate."""
    return np.asarray((seen.rate_variation <= POLICED) & (seen.losses >= POLICED_LOSSES))


def _link(seen: Evidence) -> Column:
    """Find full queues, and BBR that keeps the rate of its link through losses."""
    standing = (seen.queue >= QUEUE) & ((seen.losses > 0) | seen.away)
    steady = seen.bbr & (seen.rate_variation <= BBR_STEADY) & (seen.losses >= ENOUGH_LOSSES)
    steady |= seen.bbr & (seen.link_used >= BBR_FULL)
    congested = seen.away | seen.mostly("congestion_window", "loss_recovery", "bottleneck")
    full = (standing & ~_varies(seen) | steady | _one_rate(seen)) & ~_idle(seen)
    return np.asarray(congested & full | (seen.limited_by == "bottleneck"))


def _idle(seen: Evidence) -> Column:
    """Find rates below what losses allow, at a tap that does not show why the sender waits."""
    return np.asarray(seen.away & (seen.over_model < EXPLAINED[0]))


def _varies(seen: Evidence) -> Column:
    """Find rates far below that of the link, and no queue most of the time."""
    varies = ~(seen.rate_variation <= POLICED) & (seen.link_used < ALONE)
    return np.asarray(varies & (seen.usual_queue < STANDING) & (seen.queue < LONG_QUEUE))


def _loss(seen: Evidence) -> Column:
    """Find losses that cut the congestion window, or away from the sender explain the rate."""
    low, high = EXPLAINED
    explained = seen.away & (seen.over_model >= low) & (seen.over_model <= high)
    explained &= ~(seen.rate_variation <= POLICED)
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
    Rule(SEND_BUFFER, _send_buffer),
    Rule(TIMEOUT, lambda seen: np.asarray(seen.limited_by == "timeout")),
    Rule(REORDERING, _reordering),
    Rule(POLICER, _policer),
    Rule(LINK, _link),
    Rule(LOSS, _loss),
    Rule(CONGESTION_WINDOW, lambda seen: np.isin(seen.limited_by, CUT)),
)
"""The procedure: the first rule that holds names the cause."""


def decided(seen: Evidence) -> Column:
    """Return the cause of each direction: that of the first rule that holds."""
    causes = np.full(seen.away.size, UNKNOWN, dtype="<U18")
    for rule in reversed(RULES):
        causes[rule.holds(seen)] = rule.cause
    return causes


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
    causes = decided(Evidence.of(table | found))
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
