"""Cross traffic: configuration of the streams, and the table of their results."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tcpcast.answer import Note
from tcpcast.engines.packet.network_scale import FULL_SCALE, NetworkScale
from tcpcast.engines.table_columns import rows_to_table
from tcpcast.quantity.units import digits
from tcpcast.scenario.cross import FgnCross, ParetoCross, TraceCross
from tcpcast.scenario.cross_checks import find_stream_hop, get_recorded_streams

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcpcast.array_types import Table
    from tcpcast.engines.packet.config_types import Config
    from tcpcast.scenario import Scenario
    from tcpcast.scenario.cross import CrossStream
    from tcpcast.scenario.cross_checks import StreamHop

    Counters = tuple[
        int, int, int, tuple[int, int, float, float], tuple[int, float, float], tuple[int, int]
    ]

NS_PER_SECOND = 1_000_000_000

MAX_NOISE_BINS = 2**20
"""Bins of a noise series; longer runs continue with another, independent series."""

DEFAULT_NOISE_BINS = 2**17
"""Bins of a series if the length of the run is unknown."""


MAX_FLUID_BINS, MIN_FLUID_BINS = 2**18, 2**10
"""Maximum and minimum number of bins of a series if each source has its own hop."""

MIN_FLUID_SERIES, MAX_FLUID_NOISE_BINS = 4, 2**20
"""Minimum number of noise series (two independent ones, and each with its sign changed), and
maximum number of bins of all series, 16 MB."""

MAX_FLUID_PACKETS = 4_000_000
"""Maximum number of packets that are counted into the bins of a series, if each source has its own
hop and the stream is not noise."""


def stream_configs(
    scenario: Scenario, places: Mapping[str, int], scale: NetworkScale = FULL_SCALE
) -> list[Config]:
    """Return the streams for a network of links with these numbers.

    On a link of a single source, a stream is a fluid. At shared links of a network scaled to 1/k,
    only every k-th packet is sent. It represents k packets on a link with 1/k of the rate.
    """
    return [
        {
            "link": places[place.name],
            "packet_bytes": scenario.network.packet_bytes,
            "process": arrival_process_config(
                scenario, stream, scale if place.shared else FULL_SCALE
            ),
            "fluid": None if place.shared else fluid_config(scenario, stream, place),
        }
        for stream in scenario.cross
        for place in [require_stream_hop(scenario, stream)]
    ]


def fluid_config(scenario: Scenario, stream: CrossStream, place: StreamHop) -> Config:
    """Return the series of a stream at hops of single sources, equal for all streams of a hop."""
    streams = [other for other in scenario.cross if require_stream_hop(scenario, other) == place]
    counted = [other for other in streams if not other.is_noise]
    if not counted:
        # Each source gets its own series if memory allows. A series is twice as long as the run,
        # so that its autocovariances are exact.
        needed = 2 * count_noise_bins(scenario, stream.bin_s)
        bins = min(max(needed, MIN_FLUID_BINS), MAX_FLUID_BINS)
        room = MAX_FLUID_NOISE_BINS // bins
        kinds = {group.traffic.kind for group in scenario.populations}
        # Round the number of sources up to a power of two. Random arrivals have no fixed number of
        # sources, so they get the maximum.
        sources = 1 << (scenario.senders - 1).bit_length()
        wanted = MAX_FLUID_NOISE_BINS if "transfers" in kinds else sources
        series = max(MIN_FLUID_SERIES, min(wanted, room))
    else:
        bins, series = MAX_FLUID_BINS, 1
        for other in counted:
            mean = other.mean_bps(place.link.rate_bps)
            in_bin = mean / (8 * scenario.network.packet_bytes) * other.bin_s
            bins = min(bins, 1 << max(0, math.floor(math.log2(MAX_FLUID_PACKETS / in_bin))))
        bins = max(MIN_FLUID_BINS, bins)
    return {"bin_ns": round(stream.bin_s * NS_PER_SECOND), "bins": bins, "series": series}


def require_stream_hop(scenario: Scenario, stream: CrossStream) -> StreamHop:
    """Return the hop of a stream of a valid scenario."""
    place = find_stream_hop(scenario.network, stream)
    if place is None:
        raise TypeError(f"the cross traffic is at {stream.hop}, which is not a hop of the path")
    return place


def arrival_process_config(scenario: Scenario, stream: CrossStream, scale: NetworkScale) -> Config:
    """Return the arrival process of a stream."""
    packet_bytes, factor = scenario.network.packet_bytes, scale.factor
    bits, hop_bps = 8 * packet_bytes, require_stream_hop(scenario, stream).link.rate_bps
    mean = stream.mean_bps(hop_bps) / bits
    if isinstance(stream, FgnCross):
        return {
            "model": "fgn",
            "mean": mean / factor,
            "sd": stream.sd.bps(hop_bps) / bits / factor,
            "hurst": stream.hurst,
            "bin_ns": round(stream.bin_s * NS_PER_SECOND),
            "bins": count_noise_bins(scenario, stream.bin_s),
        }
    if isinstance(stream, ParetoCross):
        return {
            "model": "pareto",
            "sources": stream.sources,
            "peak": mean / stream.sources * (stream.on + stream.off) / stream.on / factor,
            "on": stream.on,
            "off": stream.off,
            "alpha": stream.alpha,
            # In a scaled network each source sends few packets, which would be spaced at random.
            "together": factor != 1,
        }
    if isinstance(stream, TraceCross):
        start = stream.start_s
        return {
            "model": "trace",
            "times_ns": [round((time - start) * NS_PER_SECOND) for time in stream.times],
            "packets": [size / packet_bytes / factor for size in stream.sizes],
            "period_ns": math.ceil((stream.period_s - start) * NS_PER_SECOND),
            "offset_ns": None if stream.offset is None else int(stream.offset * NS_PER_SECOND),
        }
    if factor == 1:
        return {"model": "poisson", "rate": mean}
    return {"model": "gamma", "rate": mean / factor, "shape": factor}


def count_noise_bins(scenario: Scenario, bin_s: float) -> int:
    """Return the number of noise bins: enough for the run, rounded up to a power of two."""
    duration = scenario.run.duration_s
    if duration is None:
        return DEFAULT_NOISE_BINS
    needed = math.ceil(duration / bin_s) + 1
    return min(MAX_NOISE_BINS, max(2, 1 << (needed - 1).bit_length()))


def cross_traffic_table(scenario: Scenario, totals: Mapping[str, Any], measured_s: float) -> Table:
    """Return one row per stream: its offered load and the load that the hop carried.

    Parameters
    ----------
    scenario
        The scenario with its cross traffic.
    totals
        Totals of the simulator.
    measured_s
        Measured time, summed over all replications, in seconds.

    Returns
    -------
    dict
        ``name``, ``hop``, ``model``; ``mean_bps`` as specified, ``offered_bps`` and ``carried_bps``
        as counted; ``loss_ratio``, lost over offered; ``queue_delay_mean_s``, wait before
        transmission of the carried packets (NaN at fair queues, and if each source has its own
        hop). For noise also ``rate_mean_bps`` and
        ``rate_sd_bps`` of the rates per bin, and ``cut_ratio``, the share of bins whose negative
        rate was replaced by 0. If each source has its own hop, the rates are means over the shared
        series, and the loss excludes packets of the sources.
    """
    if measured_s <= 0:
        return {}
    bits = 8.0 * scenario.network.packet_bytes
    zeros = (0, 0, 0, (0, 0, 0.0, 0.0), (0, 0.0, 0.0), (0, 0))
    rows = []
    for index, stream in enumerate(scenario.cross):
        counters = totals["cross"][index] if index < len(totals["cross"]) else zeros
        place = require_stream_hop(scenario, stream)
        identity = {
            "name": stream.name or f"{stream.model}.{index}",
            "hop": place.name,
            "model": stream.model,
            "mean_bps": stream.mean_bps(place.link.rate_bps),
        }
        senders = scenario.topology.links[place.name].each is not None
        bps = bits / measured_s / (scenario.senders if senders else 1)
        offered, carried, dropped = (float(count) for count in counters[:3])
        (series, load, lost), (waits, waited_ns) = counters[4:]
        if series:
            offered, carried, dropped = load, load - lost, lost
            bps = place.link.rate_bps / series
        counts = {
            "offered_bps": bps * offered,
            "carried_bps": bps * carried,
            "loss_ratio": dropped / offered if offered else math.nan,
            "queue_delay_mean_s": waited_ns / waits / NS_PER_SECOND if waits else math.nan,
        }
        bins, cut, total, squares = counters[3]
        missing = dict.fromkeys(("rate_mean_bps", "rate_sd_bps", "cut_ratio"), math.nan)
        if not bins:
            noise_rate_statistics: dict[str, float] = missing
        else:
            mean = total / bins
            deviation = math.sqrt(max(0.0, squares / bins - mean * mean))
            noise_rate_statistics = {
                "rate_mean_bps": mean * bits / stream.bin_s,
                "rate_sd_bps": deviation * bits / stream.bin_s,
                "cut_ratio": cut / bins,
            }
        rows.append(identity | counts | noise_rate_statistics)
    return rows_to_table(rows)


def warn_about_recordings_and_bins(
    scenario: Scenario, clocks: Sequence[tuple[int, bool]]
) -> list[Note]:
    """Return notes on recordings and bins that are shorter or longer than the run."""
    ran_s = max((now for now, _ in clocks), default=0) / NS_PER_SECOND
    notes: list[Note] = []
    for name, stream in get_recorded_streams(scenario):
        lasts = stream.period_s - stream.start_s
        if lasts < ran_s:
            text = (
                f"the recording of cross.{name} lasts only {digits(lasts)} s, so it is repeated "
                f"during the run of {digits(ran_s)} s"
            )
            notes.append(Note(text, kind="remark"))
    for index, noise in enumerate(scenario.cross):
        if noise.is_noise and noise.bin_s > ran_s:
            text = (
                f"the rate of cross.{noise.name or index} changes every {digits(noise.bin_s)} s, "
                f"but the run lasts only {digits(ran_s)} s; set a shorter bin, or make the run "
                "longer"
            )
            notes.append(Note(text, kind="run"))
    return notes
