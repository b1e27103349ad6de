"""The summary of an emulated link, printed when the programs that use it have ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.readable_units import rate_text, time_text

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
            f"the link's clock was paused {outcome.pauses} times while this machine was busy "
            f"({time_text(outcome.away_ns / 1e9)} in total, at most "
            f"{time_text(outcome.longest_pause_ns / 1e9)} at a time)"
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
    wait, late = time_text(counts.wait_mean_ns / 1e9), time_text(counts.late_p50_ns / 1e9)
    high_wait, high_late = time_text(counts.wait_p95_ns / 1e9), time_text(counts.late_p99_ns / 1e9)
    return [
        f"{name}: {', '.join(numbers)}; {rate_text(rate)}",
        f"  queueing delay {wait} on average, {high_wait} at the 95th percentile; "
        f"packets late by {late} at the median, {high_late} at the 99th percentile",
    ]
