"""The ``tcp`` table of a scenario for a capture: the most similar stack, and measured values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast.captures.capture_stats import (
    MIN_DELAYED_ACK_PACKETS,
    CaptureStats,
    pps_predicted_from_losses,
)
from tcpcast.captures.congestion_control import UNKNOWN
from tcpcast.captures.model_rates import LINUX_MIN_RTO_MINUS_RTT_S
from tcpcast.captures.replay_toml import Entry, time_in_scenario_syntax
from tcpcast.captures.sender_stack import first_timeout_s, min_rto_s

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_ACK_GROWTH_PKTS = 0.75
"""Growth in packets per round below which windows are assumed to grow by ACKs (1/b per round);
above it, by acknowledged packets (1 per round)."""

MIN_AMPLE_WINDOW_RATIO = 2.0
"""Minimum ratio of the largest announced window to the largest flight for a window without
effect."""

CUBIC_REDUCTION_RANGE = (0.6, 0.8)
"""Range of the factor by which a loss reduces CUBIC's window: 0.7 (Reno: 0.5, BBR: larger)."""

MIN_DIFFERENCE_RATIO = 1.25
"""Ratio of the larger to the smaller value above which two values are considered different."""


def tcp_entries(stats: CaptureStats) -> Iterator[Entry]:
    """Yield the values of the table ``tcp``.

    Modern stacks have the delayed ACKs and timers of Linux; classic stacks have the measured
    delayed ACKs and timers.
    """
    yield Entry("tcp", "stack", stats.sender.stack, stats.sender.evidence)
    if stats.sender.is_modern and not stats.sender.timestamps:
        yield Entry("tcp", "timestamps", value=False, comment="none captured")
    window = stats.packet_weighted_mean("initial_window_pkts")
    if window >= 1:
        yield Entry("tcp", "initial_window", round(window), "packets sent before the first ack")
    if not (stats.sender.is_modern and _is_window_ample(stats)):
        yield _window_entry(stats)
    yield from _modern_timer_entries(stats) if stats.sender.is_modern else _classic_entries(stats)


def _is_window_ample(stats: CaptureStats) -> bool:
    """Return True if the announced window was never a limit; modern receivers auto-tune it."""
    return bool(
        stats.packet_weighted_mean("w_max_pkts") * stats.payload_bytes
        >= MIN_AMPLE_WINDOW_RATIO * stats.packet_weighted_mean("flight_max_bytes")
    )


def _window_entry(stats: CaptureStats) -> Entry:
    most = stats.window_pkts
    if not most >= 1:
        why = "unknown"
        return Entry("tcp", "receiver_window", "unlimited", why)
    why = "largest announced window in packets"
    if not stats.packet_weighted_mean("w_max_pkts") >= 1:
        why = "the announced window is unknown; this is the nearly constant data in flight"
    return Entry("tcp", "receiver_window", int(most), why)


def _modern_timer_entries(stats: CaptureStats) -> Iterator[Entry]:
    least = min_rto_s(stats.table)
    if least > 0:
        why = "mean first timeout minus mean RTT; usually 200 ms"
        yield Entry("tcp", "min_rto", time_in_scenario_syntax(least), why)


def _classic_entries(stats: CaptureStats) -> Iterator[Entry]:
    delayed, why = _delayed_acks_and_reason(stats)
    yield Entry("tcp", "delayed_acks", delayed, why)
    timer = first_timeout_s(stats.table)
    why = "measured T0, the mean first timeout"
    if not timer > 0:
        timer = stats.rtt_s + LINUX_MIN_RTO_MINUS_RTT_S
        why = "RTT + 200 ms, as in Linux, because there was no timeout"
    yield Entry("tcp", "min_rto", time_in_scenario_syntax(min(timer, 64.0)), why)


def _delayed_acks_and_reason(stats: CaptureStats) -> tuple[bool, str]:
    acknowledged = stats.packet_weighted_mean("packets_per_ack")
    if not acknowledged >= MIN_DELAYED_ACK_PACKETS:
        return False, f"{acknowledged:.3g} packets per ack"
    if does_window_grow_by_acks(stats):
        return True, f"{acknowledged:.3g} packets per ack"
    return False, f"{acknowledged:.3g} packets per ack, but the window grows per acked packet"


def does_window_grow_by_acks(stats: CaptureStats) -> bool:
    """Return True if windows grow by acks instead of acknowledged packets.

    Modern senders count acknowledged packets; their growth is not a criterion, because CUBIC grows
    by only half a packet per round in its Reno-friendly region.
    """
    return bool(
        stats.window_growth_per_round_pkts < MAX_ACK_GROWTH_PKTS and not stats.sender.is_modern
    )


def tcp_warnings(stats: CaptureStats) -> Iterator[str]:
    """Yield warnings about differences between the senders and the stack of the scenario."""
    if stats.sender.is_modern:
        yield from _modern_warnings(stats)
        return
    left = stats.packet_weighted_mean("window_reduction")
    low, high = CUBIC_REDUCTION_RANGE
    if low <= left:
        control = "CUBIC" if left <= high else "BBR or another TCP with pacing"
        yield (
            f"a loss reduces the window to {left:.2f} of its size, as with {control}; the "
            "NewReno stack of the scenario halves the window"
        )
    acknowledged = stats.packet_weighted_mean("packets_per_ack")
    by_acks, by_bytes = (pps_predicted_from_losses(stats, b) for b in (acknowledged, 1.0))
    reached = stats.mean_flow_pps
    if by_bytes > MIN_DIFFERENCE_RATIO * by_acks and abs(by_bytes - reached) < abs(
        by_acks - reached
    ):
        yield (
            "the window seems to grow per acked packet, not per ack. An ack covers "
            f"{acknowledged:.3g} packets, but the measured {reached:.3g} packets/s per flow are "
            f"closer to PFTK with b = 1 ({by_bytes:.3g} packets/s) than to PFTK with "
            f"b = {acknowledged:.3g} ({by_acks:.3g} packets/s)"
        )


def _modern_warnings(stats: CaptureStats) -> Iterator[str]:
    """Yield warnings about different congestion controls and about ECN marks."""
    names, counts = np.unique(stats.table["looks_like"], return_counts=True)
    found = {str(name): int(count) for name, count in zip(names, counts, strict=True)}
    found.pop(UNKNOWN, None)
    if len(found) > 1:
        which = ", ".join(f"{count} like {name}" for name, count in found.items())
        yield (
            f"the flows have different congestion controls ({which}); in the scenario, all flows "
            f"have {stats.sender.stack}"
        )
    marked = int(stats.table["window_reductions"].sum())
    if marked:
        yield (
            f"{marked} window reductions were caused by ECN marks, but the queue in the scenario "
            "drops packets instead of marking them"
        )
