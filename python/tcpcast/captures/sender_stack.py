"""Selects the stack that is most similar to the senders of a capture."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tcpcast.captures.congestion_control import (
    BBR,
    CUBIC,
    CUBIC_REDUCTION_RANGE,
    MIN_BBR_REDUCTION,
    RENO,
    RENO_REDUCTION_RANGE,
    UNKNOWN,
)
from tcpcast.scenario.modern_tcp import get_congestion_control, is_modern

if TYPE_CHECKING:
    from tcpcast.array_types import Table

    Column = np.ndarray[Any, Any]

LINUX_TIMEOUT_MINUS_RTT_S = (0.15, 0.3)
"""Range of first timeout minus RTT in seconds for Linux, whose RTO is the RTT plus at least 200 ms.
By RFC 6298, the RTO is at least 1 s."""

MIN_IDENTIFIED_SHARE = 0.2
"""Minimum share of packets in flows with identified congestion control, to choose a stack by it."""
MIN_FLOWS = 20
"""Minimum number of short transfers to identify the congestion control if each has few losses."""

_STACK_OF_CONTROL = {RENO: "linux-reno", CUBIC: "linux-cubic", BBR: "linux-bbr"}
_CONTROL_EVIDENCE = {
    RENO: "losses halve the window",
    CUBIC: "losses reduce the window to 70 %",
    BBR: "losses do not reduce the data in flight",
}
"""Text on the evidence for each congestion control."""


class Sender(NamedTuple):
    """The TCP stack of the captured senders.

    Attributes
    ----------
    stack
        The most similar preset.
    evidence
        The evidence in the capture.
    timestamps
        True if packets carry timestamps; classic stacks of the papers do not.
    """

    stack: str
    evidence: str
    timestamps: bool

    @property
    def is_modern(self) -> bool:
        """True for a modern Linux stack, which has Linux's timers and delayed ACKs."""
        return is_modern(self.stack)

    @property
    def is_rate_based(self) -> bool:
        """True if losses do not determine the rate."""
        return get_congestion_control(self.stack) == BBR


def identify_sender(table: Table) -> Sender:
    """Return the stack for a set of flows, weighted by packets.

    Parameters
    ----------
    table
        Rows of ``connections``.

    Notes
    -----
    SACK is visible only in handshakes and recoveries. If a capture has neither, a modern stack is
    assumed. Without SACK, timestamps or a first timeout of RTT + 200 ms distinguish Linux from the
    senders of the papers.
    """
    control = identified_congestion_control(table)
    stamped = _holds_for_most_packets(
        table, table["timestamps"] | np.isfinite(table["rtt_timestamps_mean_s"])
    )
    sack = _holds_for_most_packets(table, table["sack"] | (table["by_sack"] > 0))
    # SACK is visible in handshakes and at losses.
    if not sack and not (table["syn_captured"] | (table["td"] > 0)).any():
        return Sender(
            "linux-cubic",
            "most common stack; the capture does not show the stack of the sender",
            stamped,
        )
    if sack or control in (CUBIC, BBR):
        if control != UNKNOWN:
            return Sender(
                _STACK_OF_CONTROL[control],
                f"behaves like {control}: {_CONTROL_EVIDENCE[control]}",
                stamped,
            )
        return Sender(
            "linux-cubic",
            "most common stack with SACK; the windows do not show the congestion control",
            stamped,
        )
    if stamped:
        return Sender("linux-reno-classic", "timestamps, but no SACK", stamped)
    if (
        LINUX_TIMEOUT_MINUS_RTT_S[0]
        <= first_timeout_minus_rtt_s(table)
        <= LINUX_TIMEOUT_MINUS_RTT_S[1]
    ):
        return Sender("linux-reno-classic", "no SACK; timeouts as in Linux", stamped)
    return Sender("rfc-newreno", "neither SACK nor timestamps", timestamps=False)


def identified_congestion_control(table: Table) -> str:
    """Return the identified congestion control with the most packets.

    If too few flows are identified, the median window reduction of many short transfers decides.
    """
    known, packets = table["looks_like"] != UNKNOWN, table["data_packets"]
    if packets[known].sum() < MIN_IDENTIFIED_SHARE * packets.sum() or not known.any():
        # The congestion control that matches the median window reduction, or "unknown".
        left = table["window_reduction"][np.isfinite(table["window_reduction"])]
        if left.size < MIN_FLOWS:
            return UNKNOWN
        usual = float(np.median(left))
        by = {
            RENO: RENO_REDUCTION_RANGE,
            CUBIC: CUBIC_REDUCTION_RANGE,
            BBR: (MIN_BBR_REDUCTION, np.inf),
        }
        return next((name for name, (low, high) in by.items() if low <= usual <= high), UNKNOWN)
    names, at = np.unique(table["looks_like"][known], return_inverse=True)
    return str(names[np.bincount(at, weights=packets[known]).argmax()])


def first_timeout_s(table: Table) -> float:
    """Return T0, the mean first timeout over all sequences of timeouts; NaN if there is none."""
    return _mean_over_timeout_sequences(table["t0_s"], table)


def first_timeout_minus_rtt_s(table: Table) -> float:
    """Return T0 minus the mean RTT of the flows with timeouts in seconds; NaN if there is none."""
    return _mean_over_timeout_sequences(table["t0_s"] - table["rtt_mean_s"], table)


def _mean_over_timeout_sequences(values: Column, table: Table) -> float:
    """Return the mean over all sequences of timeouts; NaN if there is none."""
    weights = table["to"]
    known = np.isfinite(values) & (weights > 0)
    return float(np.average(values[known], weights=weights[known])) if known.any() else math.nan


def min_rto_s(table: Table) -> float:
    """Return the minimum RTO of a Linux sender in seconds; NaN if the default, 200 ms, is possible.

    The RTO of Linux exceeds the RTT by at least the minimum RTO, and by more if the RTT varies.
    Therefore only an excess below 200 ms proves a smaller minimum.
    """
    beyond = first_timeout_minus_rtt_s(table)
    return max(beyond, 0.004) if beyond < LINUX_TIMEOUT_MINUS_RTT_S[0] else math.nan


def _holds_for_most_packets(table: Table, which: Column) -> bool:
    """Return True if a condition holds for most packets."""
    weights = np.fmax(table["data_packets"], 1)
    return bool(weights[which].sum() * 2 > weights.sum())
