"""Cross traffic: what the simulator is told of it, and what it says became of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.scenario.cross import FgnCross, ParetoCross, TraceCross
from tcpcast.scenario.crossing import BOTTLENECK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tcpcast.scenario import Scenario
    from tcpcast.scenario.cross import Cross

    Table = dict[str, NDArray[Any]]

SECOND = 1_000_000_000

MOST_BINS = 2**20
"""Bins of a series of noise; another, independent of it, follows where the run is longer."""

BINS_UNKNOWN = 2**17
"""Bins of a series where nobody knows how long the run will be."""


def streams(scenario: Scenario) -> list[dict[str, Any]]:
    """Return the streams in packets and seconds, as the simulator takes them."""
    return [_stream(scenario, stream) for stream in scenario.cross]


def _stream(scenario: Scenario, stream: Cross) -> dict[str, Any]:
    packet_bytes = scenario.network.packet_bytes
    bits, hop_bps = 8 * packet_bytes, scenario.network.bottleneck.rate_bps
    mean = stream.mean_bps(hop_bps, packet_bytes) / bits
    if isinstance(stream, FgnCross):
        return {
            "law": stream.law,
            "mean": mean,
            "sd": stream.sd.bps(hop_bps) / bits,
            "hurst": stream.hurst,
            "bin_ns": float(round(stream.bin * SECOND)),
            "bins": float(series_bins(scenario, stream.bin)),
        }
    if isinstance(stream, ParetoCross):
        return {
            "law": stream.law,
            "sources": float(stream.sources),
            "peak": mean / stream.sources * (stream.on + stream.off) / stream.on,
            "on": stream.on,
            "off": stream.off,
            "alpha": stream.alpha,
        }
    if isinstance(stream, TraceCross):
        return _trace(stream, packet_bytes)
    return {"law": stream.law, "rate": mean}


def _trace(stream: TraceCross, packet_bytes: int) -> dict[str, Any]:
    start = stream.start_s
    told: dict[str, Any] = {
        "law": stream.law,
        "times_ns": [float(round((time - start) * SECOND)) for time in stream.times],
        "packets": [size / packet_bytes for size in stream.sizes],
        "period_ns": float(math.ceil((stream.period_s - start) * SECOND)),
    }
    return told if stream.offset is None else told | {"offset_ns": float(stream.offset * SECOND)}


def series_bins(scenario: Scenario, bin_s: float) -> int:
    """Return how many bins a series of noise has: as many as the run, up to a power of two."""
    duration = scenario.run.duration_s
    if duration is None:
        return BINS_UNKNOWN
    needed = math.ceil(duration / bin_s) + 1
    return min(MOST_BINS, max(2, 1 << (needed - 1).bit_length()))


def table(scenario: Scenario, totals: Mapping[str, Any], measured_s: float) -> Table:
    """Return a row for each stream: what it offered and what the hop carried.

    Parameters
    ----------
    scenario
        Its cross traffic.
    totals
        The simulator's.
    measured_s
        Time measured in all replications together, in seconds.

    Returns
    -------
    dict
        ``name``, ``hop``, ``law``; ``mean_bps`` as asked, ``offered_bps`` and ``carried_bps`` as
        counted; ``loss_ratio``, lost over offered; for a noise ``rate_mean_bps`` and
        ``rate_sd_bps`` of its rates in bins, and ``cut_ratio``, the share of bins whose rate was
        below 0 and was cut.
    """
    asked = scenario.cross
    if not asked or measured_s <= 0:
        return {}
    network = scenario.network
    bits, hop_bps = 8.0 * network.packet_bytes, network.bottleneck.rate_bps
    books = [*totals["cross"], *[(0, 0, 0, (0, 0, 0.0, 0.0))] * len(asked)][: len(asked)]
    counts = np.array([book[:3] for book in books], dtype=np.float64).T
    offered, carried, dropped = counts
    rates = np.array([_rates(s, b[3], bits) for s, b in zip(asked, books, strict=True)]).T
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = dropped / offered
    return {
        "name": np.array([s.name or f"{s.law}.{at}" for at, s in enumerate(asked)]),
        "hop": np.array([s.hop or BOTTLENECK for s in asked]),
        "law": np.array([s.law for s in asked]),
        "mean_bps": np.array([s.mean_bps(hop_bps, network.packet_bytes) for s in asked]),
        "offered_bps": bits * offered / measured_s,
        "carried_bps": bits * carried / measured_s,
        "loss_ratio": loss,
        "rate_mean_bps": rates[0],
        "rate_sd_bps": rates[1],
        "cut_ratio": rates[2],
    }


def _rates(
    stream: Cross, sums: tuple[int, int, float, float], bits: float
) -> tuple[float, float, float]:
    """Return mean and standard deviation of a noise's rates, and the share that was cut."""
    bins, cut, total, squares = sums
    if not isinstance(stream, FgnCross) or not bins:
        return math.nan, math.nan, math.nan
    mean = total / bins
    deviation = math.sqrt(max(0.0, squares / bins - mean * mean))
    return mean * bits / stream.bin, deviation * bits / stream.bin, cut / bins


def warnings(scenario: Scenario, clocks: Sequence[tuple[int, bool]]) -> list[str]:
    """Say which recordings were shorter than the run, given where its clocks stand."""
    ran_s = max((now for now, _ in clocks), default=0) / SECOND
    found = []
    for at, stream in enumerate(scenario.cross):
        if isinstance(stream, TraceCross) and stream.period_s - stream.start_s < ran_s:
            lasts = stream.period_s - stream.start_s
            name = stream.name or at
            found.append(
                f"cross.{name} was recorded for {lasts:.4g} s and is repeated through the run's "
                f"{ran_s:.4g} s"
            )
    return found
