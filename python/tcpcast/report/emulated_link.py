"""The summary of an emulated link, printed when the programs that use it have ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcpcast.emulation.link_outcome import DirectionCounts, LinkOutcome


def link_lines(outcome: LinkOutcome) -> list[str]:
    """Return counters and delays of both directions, and a note if the link's clock was paused."""
    seconds = max(1, outcome.elapsed_ns - outcome.away_ns) / 1e9
    lines = [f"link over {outcome.device} for {seconds:.3g} s"]
    lines += _direction_lines("near to far", outcome.near_to_far, seconds)
    lines += _direction_lines("far to near", outcome.far_to_near, seconds)
    if outcome.pauses:
        lines.append(
            f"the link's clock was paused {outcome.pauses} times while this machine was busy, "
            f"{_duration(outcome.away_ns)} in total, at most "
            f"{_duration(outcome.longest_pause_ns)} at a time"
        )
    return lines


def _direction_lines(name: str, counts: DirectionCounts, seconds: float) -> list[str]:
    if counts.entered == 0:
        return [f"{name}: no packet"]
    rate = counts.delivered_bytes * 8 / seconds
    lost = {
        "at random": counts.random_drops,
        "at a full buffer": counts.full_drops,
        "early by the queue": counts.early_drops,
        "by this machine": counts.machinery_drops,
    }
    dropped = [f"{number} lost {how}" for how, number in lost.items() if number]
    if counts.marked:
        dropped.append(f"{counts.marked} marked")
    numbers = [f"{counts.entered} packets", f"{counts.delivered} delivered", *dropped]
    wait, late = _duration(counts.wait_mean_ns), _duration(counts.late_p50_ns)
    high_wait, high_late = _duration(counts.wait_p95_ns), _duration(counts.late_p99_ns)
    return [
        f"{name}: {', '.join(numbers)}; {_rate_text(rate)}",
        f"  queueing delay {wait} on average, {high_wait} at the 95th percentile; "
        f"packets late by {late} at the median, {high_late} at the 99th percentile",
    ]


def _rate_text(bps: float) -> str:
    for unit, scale in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bps >= scale:
            return f"{bps / scale:.4g} {unit}"
    return f"{bps:.4g} bit/s"


def _duration(nanoseconds: int) -> str:
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= scale:
            return f"{nanoseconds / scale:.3g} {unit}"
    return f"{nanoseconds} ns"
