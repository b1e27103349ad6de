"""Checks of cross traffic against the rest of the scenario: hops, errors and warnings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpcast.process.errors import did_you_mean_text
from tcpcast.quantity import units
from tcpcast.scenario.cross import MAX_RATE_SHARE, FgnCross, ParetoCross, TraceCross
from tcpcast.scenario.hops import Hop
from tcpcast.scenario.return_path import RETURN, ReturnLink
from tcpcast.scenario.table import make_error_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_core import InitErrorDetails

    from tcpcast.scenario.cross import CrossStream
    from tcpcast.scenario.link import Link
    from tcpcast.scenario.model import Scenario
    from tcpcast.scenario.network import Network

BOTTLENECK = "bottleneck"
"""Name of the shared hop in a network without ``[[network.hop]]`` tables."""

MAX_GAP_S = 1e9
"""Maximum mean time between packets of a stream in seconds."""

MAX_BIN_PKTS = 30_000
"""Maximum number of packets per bin at a hop with ``shared = false``."""

MAX_BINS_PER_PKT = 1e4
"""Maximum number of noise bins per packet."""

MAX_MEAN_RATIO = 1.05
"""Ratio of resulting to given mean above which a warning reports the cut negative rates."""

MAX_DRAWS_PER_PKT = 1e5
"""Maximum number of ON and OFF times, or of entries of a recording, per packet."""

MIN_ON_S = 0.5e-9
"""Minimum ON time in seconds; shorter times round to 0 ns, so that no packet is ever sent."""

MAX_FIRST_DRAWS = 1e8
"""Maximum number of ON and OFF times of all sources until each source has sent a packet."""


@dataclass(frozen=True, slots=True)
class StreamHop:
    """A hop for cross traffic; ``stage`` is the index of the hop along the forward path, from 0."""

    stage: int
    name: str
    link: Link | ReturnLink
    shared: bool


def get_stream_hops(network: Network) -> list[StreamHop]:
    """Return the hops that can carry cross traffic: the forward path, then the return link."""
    hops = [StreamHop(index, hop.name, hop, hop.shared) for index, hop in enumerate(network.hops)]
    hops = hops or [StreamHop(0, BOTTLENECK, network.bottleneck, shared=True)]
    if network.return_link is not None:
        hops.append(StreamHop(len(hops), RETURN, network.return_link, shared=True))
    return hops


def find_stream_hop(network: Network, stream: CrossStream) -> StreamHop | None:
    """Return the hop of a stream, by default the bottleneck; None if the named hop is unknown."""
    known = get_stream_hops(network)
    if stream.hop is None:
        return known[network.measured_index]
    return next((hop for hop in known if hop.name == stream.hop), None)


def find_cross_traffic_errors(scenario: Scenario) -> list[InitErrorDetails]:
    """Return contradictions between cross traffic and other tables of the scenario."""
    if not scenario.cross:
        return []
    errors = []
    names: set[str] = set()
    for index, stream in enumerate(scenario.cross):
        for key, message in _find_stream_errors(scenario, stream):
            errors.append(make_error_at(message, "cross", index, *([key] if key else [])))
        if stream.name in names:
            message = f'"{stream.name}" is the name of another stream; use another name'
            errors.append(make_error_at(message, "cross", index, "name"))
        names |= {stream.name} if stream.name else set()
    if errors:
        return errors
    unbounded = []
    for hop in get_stream_hops(scenario.network):
        streams = _get_stream_indices_at(scenario, hop)
        if not streams:
            continue
        if not hop.shared:
            first = scenario.cross[streams[0]].bin_s
            for index in streams:
                if scenario.cross[index].bin_s != first:
                    message = (
                        f'another stream at "{hop.name}" has bins of '
                        f"{units.format_duration(first)}; use the same bin for all streams at "
                        "this hop"
                    )
                    errors.append(make_error_at(message, "cross", index, "bin"))
        # An unlimited queue would grow until memory is exhausted.
        room = (
            scenario.network.return_buffer_acks
            if isinstance(hop.link, ReturnLink)
            else scenario.network.buffer_pkts(hop.link)
        )
        load = compute_cross_load_at(scenario, hop) if math.isinf(room) else 0.0
        if load >= 1:
            key = _get_hop_key(scenario.network, hop)
            brought = units.digits(100 * load, 3)
            message = (
                f'cross traffic alone is {brought} % of the rate of "{hop.name}", so the queue '
                f'grows without limit; add {key}.buffer = "100pkt", for example'
            )
            unbounded.append(make_error_at(message, "cross", streams[0]))
    return errors + unbounded


def _find_stream_errors(scenario: Scenario, stream: CrossStream) -> Iterator[tuple[str, str]]:
    if scenario.isolated_transfers is not None:
        yield (
            "",
            "isolated transfers cannot share the path with cross traffic; use traffic.arrivals = { "
            'distribution = "poisson", rate = "20/s" }',
        )
    hop = find_stream_hop(scenario.network, stream)
    if hop is None:
        names = [known.name for known in get_stream_hops(scenario.network)]
        near = did_you_mean_text(stream.hop, names)
        yield "hop", f'there is no hop "{stream.hop}"{near}; use {", ".join(names)}'
        return
    if math.isinf(hop.link.rate):
        key = _get_hop_key(scenario.network, hop)
        yield (
            stream.relative_amount_key or "",
            (f'cross traffic requires a hop with a rate; add {key}.rate = "10mbit"'),
        )
    if hop.shared and stream.has_bin and not stream.is_noise:
        yield "bin", ("requires hops with shared = false, but this hop is shared; remove this key")
    if not math.isinf(hop.link.rate):
        bps = _compute_offered_bps(stream, hop.link.rate)
        share, pps = bps / hop.link.rate, bps / (8 * scenario.network.packet_bytes)
        if share > MAX_RATE_SHARE:
            offered = units.digits(share, 3)
            yield "", f'offers {offered} times the rate of "{hop.name}"; use a lower rate'
        elif pps * MAX_GAP_S < 1:
            yield (
                "",
                "sends less than one packet in 30 years; use a higher rate, or remove the stream",
            )
        elif not hop.shared and not stream.is_noise and pps * stream.bin_s > MAX_BIN_PKTS:
            shorter = units.format_duration(float(f"{MAX_BIN_PKTS / pps:.2g}"))
            yield (
                "bin",
                f"a bin contains {pps * stream.bin_s:,.0f} packets, which is too many; use a "
                f"shorter bin, about {shorter}",
            )
        elif isinstance(stream, FgnCross):
            bins = 1 / (pps * stream.bin_s)
            if hop.shared and bins > MAX_BINS_PER_PKT:
                bin_s = float(f"{2 * stream.bin_s * bins / MAX_BINS_PER_PKT:.2g}")
                longer = units.format_duration(bin_s)
                yield (
                    "bin",
                    f"is so short that there is only one packet per {units.digits(bins, 3)} bins "
                    f"on average; use {longer}",
                )
        elif isinstance(stream, ParetoCross):
            # Most Pareto times are close to the minimum, which is this share of the mean.
            least_share = (stream.alpha - 1) / stream.alpha
            cycles = stream.sources / pps / (stream.on + stream.off) / least_share
            if cycles > min(MAX_DRAWS_PER_PKT, MAX_FIRST_DRAWS / stream.sources):
                yield (
                    "on",
                    "is so short that a source turns on and off many times between two of its "
                    "packets; "
                    "use longer times, fewer sources, or a larger mean",
                )
            elif stream.on * least_share < MIN_ON_S:
                yield "on", "is so short that most ON times round to 0 ns; use a longer time"
        elif isinstance(stream, TraceCross):
            entries = len(stream.times) * scenario.network.packet_bytes / math.fsum(stream.sizes)
            if entries > MAX_DRAWS_PER_PKT:
                yield (
                    "bytes",
                    f"the recording contains only one packet per {units.digits(entries, 3)} "
                    "values of `bytes`; use larger sizes",
                )


def _get_hop_key(network: Network, hop: StreamHop) -> str:
    if isinstance(hop.link, ReturnLink):
        return "network.return"
    return f"network.hop.{hop.name}" if network.hops else "network.bottleneck"


def _get_stream_indices_at(scenario: Scenario, hop: StreamHop) -> list[int]:
    """Return the indices of the streams at a hop."""
    network = scenario.network
    return [
        index
        for index, stream in enumerate(scenario.cross)
        if find_stream_hop(network, stream) == hop
    ]


def compute_cross_load_at(scenario: Scenario, hop: StreamHop) -> float:
    """Return the total offered load of the streams at a hop as a share of its rate."""
    rate = hop.link.rate
    streams = (scenario.cross[index] for index in _get_stream_indices_at(scenario, hop))
    return math.fsum(_compute_offered_bps(stream, rate) for stream in streams) / rate


def _compute_offered_bps(stream: CrossStream, hop_bps: float) -> float:
    """Return the long-term offered rate in bit/s, after negative rates of noise are cut to 0."""
    kept = stream.truncation_effect(hop_bps)[1] if isinstance(stream, FgnCross) else 1.0
    return kept * stream.mean_bps(hop_bps)


def warn_about_cross_traffic(scenario: Scenario) -> list[str]:
    """Return warnings about the cross traffic."""
    texts = []
    for hop in get_stream_hops(scenario.network) if scenario.cross else []:
        load = compute_cross_load_at(scenario, hop)
        if load >= 1:
            name = f"hop {hop.name}" if isinstance(hop.link, Hop) else "the bottleneck"
            name = "the return link" if isinstance(hop.link, ReturnLink) else name
            offered = units.digits(100 * load, 3)
            texts.append(f"cross traffic alone is {offered} % of the rate of {name}")
    for index, stream in enumerate(scenario.cross):
        place = find_stream_hop(scenario.network, stream)
        if not isinstance(stream, FgnCross) or place is None:
            continue
        # Noise with many negative rates: the cut to 0 raises the mean.
        below, kept = stream.truncation_effect(place.link.rate)
        if kept > MAX_MEAN_RATIO:
            texts.append(
                f"the mean rate of cross.{stream.name or index} is {units.digits(kept, 3)} times "
                f"the specified rate, because {100 * below:.3g} % of the drawn rates are below 0 "
                "and set to 0; use a smaller sd"
            )
    return texts


def get_recorded_streams(scenario: Scenario) -> list[tuple[str, TraceCross]]:
    """Return the key and the stream of each recording."""
    return [
        (stream.name or str(index), stream)
        for index, stream in enumerate(scenario.cross)
        if isinstance(stream, TraceCross)
    ]
