"""The TCP of a capture as a scenario has it: the nearest stack, and what of it is not its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast.captures.capture_stats import DELAYED, CaptureStats, predicted_pps
from tcpcast.captures.control import UNKNOWN
from tcpcast.captures.model_rates import LEAST_VARIATION_S
from tcpcast.captures.replay_text import Entry, written_time
from tcpcast.captures.sender import first_timeout_s, min_rto_s

if TYPE_CHECKING:
    from collections.abc import Iterator

GROWTH = 0.75
"""Growth of a window in a round, packets: 1 if by packets acknowledged, 1/b if by acks."""

ROOMY = 2.0
"""Largest window announced over the largest flight from which on it is no limit."""

CUBIC_REDUCTION = (0.6, 0.8)
"""What a loss leaves of the window with CUBIC, 0.7; 0.5 with Reno, more with what is no classic."""

FAR = 1.25
"""Ratio of the larger to the smaller value above which two values differ."""


def tcp_entries(seen: CaptureStats) -> Iterator[Entry]:
    """Return the values of table ``tcp``.

    Of today's stacks delayed acks and timers are Linux's own; classic stacks have those that were
    measured.
    """
    yield Entry("tcp", "stack", seen.sender.stack, seen.sender.why)
    if seen.sender.todays and not seen.sender.timestamps:
        yield Entry("tcp", "timestamps", value=False, why="none captured")
    window = seen.mean("initial_window_pkts")
    if window >= 1:
        yield Entry("tcp", "initial_window", round(window), "packets sent before the first ack")
    if not (seen.sender.todays and _roomy(seen)):
        yield _window(seen)
    yield from _timer_of_today(seen) if seen.sender.todays else _classic(seen)


def _roomy(seen: CaptureStats) -> bool:
    """Say whether the window announced was never near: today's receivers let it grow with need."""
    return bool(seen.mean("w_max_pkts") * seen.payload >= ROOMY * seen.mean("flight_max_bytes"))


def _window(seen: CaptureStats) -> Entry:
    most = seen.window_pkts
    if not most >= 1:
        why = "the capture does not show it"
        return Entry("tcp", "receiver_window", "unlimited", why)
    why = "the largest window announced, in packets"
    if not seen.mean("w_max_pkts") >= 1:
        why = "not announced; this much was in flight nearly all the time"
    return Entry("tcp", "receiver_window", int(most), why)


def _timer_of_today(seen: CaptureStats) -> Iterator[Entry]:
    least = min_rto_s(seen.table)
    if least > 0:
        why = "mean first timeout less the mean RTT; 200 ms is usual"
        yield Entry("tcp", "min_rto", written_time(least), why)


def _classic(seen: CaptureStats) -> Iterator[Entry]:
    delayed, why = _delayed(seen)
    yield Entry("tcp", "delayed_acks", delayed, why)
    timer = first_timeout_s(seen.table)
    why = "T0 measured: mean first timeout"
    if not timer > 0:
        timer = seen.rtt_s + LEAST_VARIATION_S
        why = "no timeout seen: RTT + 200 ms, as in Linux"
    yield Entry("tcp", "min_rto", written_time(min(timer, 64.0)), why)


def _delayed(seen: CaptureStats) -> tuple[bool, str]:
    acknowledged = seen.mean("packets_per_ack")
    if not acknowledged >= DELAYED:
        return False, f"{acknowledged:.3g} packets per ack"
    if grows_by_acks(seen):
        return True, f"{acknowledged:.3g} packets per ack"
    return False, f"{acknowledged:.3g} packets per ack, but windows grow by bytes (RFC 5681)"


def grows_by_acks(seen: CaptureStats) -> bool:
    """Say whether windows grow by acks, and not by what they acknowledge.

    Senders with today's options count what is acknowledged; CUBIC grows by half a packet a round,
    too, where it follows Reno.
    """
    return bool(seen.growth_pkts < GROWTH and not seen.sender.todays)


def tcp_warnings(seen: CaptureStats) -> Iterator[str]:
    """Say where the senders differ from the stack that is written."""
    if seen.sender.todays:
        yield from _of_today(seen)
        return
    left = seen.mean("window_reduction")
    low, high = CUBIC_REDUCTION
    if low <= left:
        who = "CUBIC" if left <= high else "BBR or another TCP that paces"
        yield (
            f"a loss reduces the window to {left:.2f} of its size, as with {who}; the scenario's "
            "NewReno halves it"
        )
    acknowledged = seen.mean("packets_per_ack")
    by_acks, by_bytes = (predicted_pps(seen, b) for b in (acknowledged, 1.0))
    reached = seen.reached_pps
    if by_bytes > FAR * by_acks and abs(by_bytes - reached) < abs(by_acks - reached):
        yield (
            f"an ack covers {acknowledged:.3g} packets, but PFTK agrees better with b = 1 "
            f"({by_bytes:.3g} packets/s per flow, not {by_acks:.3g}): the window seems to grow by "
            "packets acknowledged"
        )


def _of_today(seen: CaptureStats) -> Iterator[str]:
    """Name what one stack for all cannot have, and what only a queue that marks would do."""
    names, counts = np.unique(seen.table["looks_like"], return_counts=True)
    found = {str(name): int(count) for name, count in zip(names, counts, strict=True)}
    found.pop(UNKNOWN, None)
    if len(found) > 1:
        which = ", ".join(f"{count} like {name}" for name, count in found.items())
        yield f"the flows look different ({which}); the scenario has {seen.sender.stack} for all"
    marked = int(seen.table["window_reductions"].sum())
    if marked:
        yield (
            f"{marked} windows were reduced because a queue marked packets (ECN); the scenario's "
            "queue drops"
        )
