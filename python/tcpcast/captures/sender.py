"""Which stack the flows of a capture are replayed by: the one that their senders look like."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tcpcast.captures.control import BBR, CUBIC, HALVED, KEPT, NOT_CUT, RENO, UNKNOWN
from tcpcast.scenario.modern_tcp import control_of, is_modern

if TYPE_CHECKING:
    from tcpcast.captures import Table

    Column = np.ndarray[Any, Any]

LINUX_TIMER = (0.15, 0.3)
"""A first timeout less the RTT, s: Linux waits 200 ms, RFC 6298 a second and more in all."""

TELLING = 0.2
"""Share of the packets of flows that look like a congestion control, from which on they decide."""
FEWEST_FLOWS = 20
"""Fewer short transfers do not tell by a loss or two each."""

_OF_CONTROL = {RENO: "linux-reno", CUBIC: "linux-cubic", BBR: "linux-bbr"}
_MARK = {
    RENO: "losses halve its windows",
    CUBIC: "losses leave 0.7 of its windows",
    BBR: "its flight follows a rate, and not losses",
}
"""Why a direction looks like a congestion control."""


class Sender(NamedTuple):
    """The TCP of the senders.

    Attributes
    ----------
    stack
        The preset that is nearest.
    why
        What of the capture says so.
    timestamps
        Whether packets carry timestamps; classic stacks of the papers never do.
    """

    stack: str
    why: str
    timestamps: bool

    @property
    def todays(self) -> bool:
        """Whether it is one of today's Linux, with its own timers and delayed acks."""
        return is_modern(self.stack)

    @property
    def paced(self) -> bool:
        """Whether losses do not set its rate."""
        return control_of(self.stack) == BBR


def sender_of(table: Table) -> Sender:
    """Return the stack of flows together, each by its packets.

    Parameters
    ----------
    table
        Rows of ``connections``.

    Notes
    -----
    SACK shows in the handshake and in recoveries; a capture without either tells nothing of it, and
    the flows are taken for today's. Without SACK, timestamps or a first timeout of RTT + 200 ms
    tell Linux from the senders of the papers.
    """
    control = looks_of(table)
    stamped = _most(table, table["timestamps"] | np.isfinite(table["rtt_timestamps_mean_s"]))
    sack = _most(table, table["sack"] | (table["by_sack"] > 0))
    if not sack and not _told(table):
        return Sender("linux-cubic", "what most use: the capture shows no other", stamped)
    if sack or control in (CUBIC, BBR):
        if control != UNKNOWN:
            return Sender(_OF_CONTROL[control], f"looks like {control}: {_MARK[control]}", stamped)
        return Sender("linux-cubic", "SACK, and its windows tell no other: what most use", stamped)
    if stamped:
        return Sender("linux-reno-classic", "timestamps, but no SACK", stamped)
    if LINUX_TIMER[0] <= timer_beyond_rtt(table) <= LINUX_TIMER[1]:
        return Sender("linux-reno-classic", "no SACK; its timeouts are those of Linux", stamped)
    return Sender("rfc-newreno", "neither SACK nor timestamps", timestamps=False)


def looks_of(table: Table) -> str:
    """Return the congestion control that most packets look like, of those that look like any.

    Where these are few, many short transfers together tell by what their losses leave.
    """
    known, packets = table["looks_like"] != UNKNOWN, table["data_packets"]
    if packets[known].sum() < TELLING * packets.sum() or not known.any():
        return _reduced(table)
    names, at = np.unique(table["looks_like"][known], return_inverse=True)
    return str(names[np.bincount(at, weights=packets[known]).argmax()])


def _reduced(table: Table) -> str:
    """Return what the median window after by before a loss looks like; unknown of a few flows."""
    left = table["window_reduction"][np.isfinite(table["window_reduction"])]
    if left.size < FEWEST_FLOWS:
        return UNKNOWN
    usual = float(np.median(left))
    by = {RENO: HALVED, CUBIC: KEPT, BBR: (NOT_CUT, np.inf)}
    return next((name for name, (low, high) in by.items() if low <= usual <= high), UNKNOWN)


def first_timeout_s(table: Table) -> float:
    """Return T0, the mean first timeout of the flows' sequences; NaN where there was none."""
    return _by_sequence(table["t0_s"], table)


def timer_beyond_rtt(table: Table) -> float:
    """Return T0 less the mean RTT of the flows that had timeouts, s; NaN where none had."""
    return _by_sequence(table["t0_s"] - table["rtt_mean_s"], table)


def _by_sequence(values: Column, table: Table) -> float:
    """Return the mean over the flows' sequences of timeouts; NaN where there was none."""
    weights = table["to"]
    known = np.isfinite(values) & (weights > 0)
    return float(np.average(values[known], weights=weights[known])) if known.any() else math.nan


def min_rto_s(table: Table) -> float:
    """Return the least timeout that Linux must have had, s; NaN where its own, 200 ms, may be it.

    Linux waits that much longer than the RTT, and longer where the RTT varies: only a shorter wait
    tells.
    """
    beyond = timer_beyond_rtt(table)
    return max(beyond, 0.004) if beyond < LINUX_TIMER[0] else math.nan


def _told(table: Table) -> bool:
    """Say whether the capture would show SACK: in handshakes, or at losses."""
    return bool((table["syn_captured"] | (table["td"] > 0)).any())


def _most(table: Table, which: Column) -> bool:
    """Say whether something holds for most packets."""
    weights = np.fmax(table["data_packets"], 1)
    return bool(weights[which].sum() * 2 > weights.sum())
