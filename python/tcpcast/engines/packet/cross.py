"""Cross traffic: what the simulator is told of it, and its outcome."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer import Note
from tcpcast.engines.packet.scale import WHOLE, Scale
from tcpcast.scenario.cross import FgnCross, ParetoCross, TraceCross
from tcpcast.scenario.cross_checks import find_place, recordings
from tcpcast.units import digits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tcpcast.engines.packet.config_types import Config
    from tcpcast.scenario import Scenario
    from tcpcast.scenario.cross import Cross
    from tcpcast.scenario.cross_checks import Place

    Table = dict[str, NDArray[Any]]
    Counters = tuple[int, int, int, tuple[int, int, float, float], tuple[int, float, float]]

SECOND = 1_000_000_000

MOST_BINS = 2**20
"""Bins of a series of noise; another, independent of it, follows where the run is longer."""

BINS_UNKNOWN = 2**17
"""Bins of a series where nobody knows how long the run will be."""


MOST_FLUID_BINS, FEWEST_FLUID_BINS = 2**18, 2**10
"""Bins of a series that sources read where each has a hop to itself."""

FEWEST_FLUID_SERIES, MOST_FLUID_NOISE = 4, 2**20
"""Series of such a noise: two that are independent, and each of them with its sign changed; and
the bins of all of them, 16 MB."""

MOST_FLUID_PACKETS = 4_000_000
"""Packets behind such a series, where it is counted from packets."""


def streams(scenario: Scenario, scale: Scale = WHOLE) -> list[Config]:
    """Return the streams in packets and seconds, as the simulator takes them.

    At hops that sources share they are of the network's ``scale``: every k-th packet comes, and its
    work is that of all k.
    """
    found: list[Config] = []
    for stream in scenario.cross:
        place = _place(scenario, stream)
        bins, series = _fluid_series(scenario, stream)
        found.append(
            {
                "stage": place.stage,
                "bin_ns": round(stream.bin_s * SECOND),
                "bins": bins,
                "series": series,
                "process": _process(scenario, stream, scale if place.shared else WHOLE),
            }
        )
    return found


def _place(scenario: Scenario, stream: Cross) -> Place:
    place = find_place(scenario.network, stream)
    if place is None:
        raise TypeError(f"the scenario has a stream at no hop: {stream.hop}")
    return place


def _fluid_series(scenario: Scenario, stream: Cross) -> tuple[int, int]:
    """Return how many bins a series has that sources with a hop of their own read, and how many.

    Of a noise they are twice as long as the run, up to a power of two, where their
    autocovariances are exact, and as many as there are sources and is room for. Streams at one
    hop have as many as the one that has fewest.
    """
    place = _place(scenario, stream)
    streams = [other for other in scenario.cross if _place(scenario, other) == place]
    counted = [other for other in streams if not other.is_noise]
    if not counted:
        needed = 2 * series_bins(scenario, stream.bin_s)
        bins = min(max(needed, FEWEST_FLUID_BINS), MOST_FLUID_BINS)
        room = MOST_FLUID_NOISE // bins
        return bins, max(FEWEST_FLUID_SERIES, min(_readers(scenario), room))
    bins = MOST_FLUID_BINS
    for other in counted:
        mean = other.mean_bps(place.link.rate_bps, scenario.network.packet_bytes)
        in_bin = mean / (8 * scenario.network.packet_bytes) * other.bin_s
        bins = min(bins, 1 << max(0, math.floor(math.log2(MOST_FLUID_PACKETS / in_bin))))
    return max(FEWEST_FLUID_BINS, bins), 1


def _readers(scenario: Scenario) -> int:
    """Return a power of two not below the number of sources, which is not known of arrivals."""
    if any(group.traffic.kind == "transfers" for group in scenario.populations):
        return MOST_FLUID_NOISE
    return 1 << (scenario.senders - 1).bit_length()


def _process(scenario: Scenario, stream: Cross, scale: Scale) -> Config:
    packet_bytes, each = scenario.network.packet_bytes, scale.each
    bits, hop_bps = 8 * packet_bytes, _place(scenario, stream).link.rate_bps
    mean = stream.mean_bps(hop_bps, packet_bytes) / bits
    if isinstance(stream, FgnCross):
        return {
            "model": "fgn",
            "mean": mean / each,
            "sd": stream.sd.bps(hop_bps) / bits / each,
            "hurst": stream.hurst,
            "bin_ns": round(stream.bin_s * SECOND),
            "bins": series_bins(scenario, stream.bin_s),
        }
    if isinstance(stream, ParetoCross):
        return {
            "model": "pareto",
            "sources": stream.sources,
            "peak": mean / stream.sources * (stream.on + stream.off) / stream.on / each,
            "on": stream.on,
            "off": stream.off,
            "alpha": stream.alpha,
            # Each source's packets, so few, would be spaced by chance.
            "together": each != 1,
        }
    if isinstance(stream, TraceCross):
        return _recorded(stream, packet_bytes, each)
    if each == 1:
        return {"model": "poisson", "rate": mean}
    return {"model": "gamma", "rate": mean / each, "shape": each}


def _recorded(stream: TraceCross, packet_bytes: int, each: float) -> Config:
    start = stream.start_s
    return {
        "model": "trace",
        "times_ns": [round((time - start) * SECOND) for time in stream.times],
        "packets": [size / packet_bytes / each for size in stream.sizes],
        "period_ns": math.ceil((stream.period_s - start) * SECOND),
        "offset_ns": None if stream.offset is None else int(stream.offset * SECOND),
    }


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
        ``name``, ``hop``, ``model``; ``mean_bps`` as asked, ``offered_bps`` and ``carried_bps`` as
        counted; ``loss_ratio``, lost over offered; for a noise ``rate_mean_bps`` and
        ``rate_sd_bps`` of its rates in bins, and ``cut_ratio``, the share of bins whose rate was
        below 0 and was cut. Where each source has the hop to itself, what one of them meets: the
        mean of the series that all read, and what it loses without them.
    """
    if measured_s <= 0:
        return {}
    bits = 8.0 * scenario.network.packet_bytes
    unheard = (0, 0, 0, (0, 0, 0.0, 0.0), (0, 0.0, 0.0))
    rows = []
    for at, stream in enumerate(scenario.cross):
        counters = totals["cross"][at] if at < len(totals["cross"]) else unheard
        place = _place(scenario, stream)
        told = {
            "name": stream.name or f"{stream.model}.{at}",
            "hop": place.name,
            "model": stream.model,
            "mean_bps": stream.mean_bps(place.link.rate_bps, scenario.network.packet_bytes),
        }
        counts = _counted(counters, bits / measured_s, place.link.rate_bps)
        rows.append(told | counts | _rates(stream, counters[3], bits))
    return {key: np.array([row[key] for row in rows]) for key in rows[0]} if rows else {}


def _counted(counters: Counters, bps: float, hop_bps: float) -> dict[str, float]:
    """Return what was offered and carried, at so many bit/s for each packet counted."""
    offered, carried, dropped = (float(count) for count in counters[:3])
    series, load, lost = counters[4]
    if series:
        offered, carried, dropped = load, load - lost, lost
        bps = hop_bps / series
    return {
        "offered_bps": bps * offered,
        "carried_bps": bps * carried,
        "loss_ratio": dropped / offered if offered else math.nan,
    }


def _rates(stream: Cross, sums: tuple[int, int, float, float], bits: float) -> dict[str, float]:
    """Return mean and standard deviation of a noise's rates, and the share that was cut."""
    bins, cut, total, squares = sums
    found = dict.fromkeys(("rate_mean_bps", "rate_sd_bps", "cut_ratio"), math.nan)
    if not bins:
        return found
    mean = total / bins
    deviation = math.sqrt(max(0.0, squares / bins - mean * mean))
    return {
        "rate_mean_bps": mean * bits / stream.bin_s,
        "rate_sd_bps": deviation * bits / stream.bin_s,
        "cut_ratio": cut / bins,
    }


def warnings(scenario: Scenario, clocks: Sequence[tuple[int, bool]]) -> list[Note]:
    """Say what was too short, or too long, for the run, given where its clocks stand."""
    ran_s = max((now for now, _ in clocks), default=0) / SECOND
    found: list[Note] = []
    for name, stream in recordings(scenario):
        lasts = stream.period_s - stream.start_s
        if lasts < ran_s:
            text = (
                f"cross.{name} was recorded for {digits(lasts)} s and is repeated through the "
                f"run's {digits(ran_s)} s"
            )
            found.append(Note(text, kind="remark"))
    for at, noise in enumerate(scenario.cross):
        if noise.is_noise and noise.bin_s > ran_s:
            text = (
                f"cross.{noise.name or at} has one rate for {digits(noise.bin_s)} s, and the run "
                f"is over after {digits(ran_s)} s: write a shorter bin, or a longer run"
            )
            found.append(Note(text, kind="run"))
    return found
