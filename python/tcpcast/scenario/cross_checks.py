"""Cross traffic in its scenario: where it is, what is wrong with it there, and what to check."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpcast import units
from tcpcast.scenario.cross import MOST_SHARE, FgnCross, ParetoCross, TraceCross
from tcpcast.scenario.hops import Hop
from tcpcast.scenario.return_path import RETURN, ReturnLink
from tcpcast.scenario.table import error_at, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_core import InitErrorDetails

    from tcpcast.scenario.cross import Cross
    from tcpcast.scenario.link import Link
    from tcpcast.scenario.model import Scenario
    from tcpcast.scenario.network import Network

BOTTLENECK = "bottleneck"
"""What the one shared hop of a network without ``[[network.hop]]`` tables is called."""

LONGEST_GAP_S = 1e9
"""Packets of a stream may be so far apart."""

MOST_IN_BIN = 30_000
"""Packets in a bin of the series that sources read where each has a hop to itself."""

MOST_BINS_EMPTY = 1e4
"""Bins of a noise that pass for one packet."""

MOST_KEPT = 1.05
"""From so many times its mean on a noise without its rates below 0 is warned of."""

MOST_DRAWN = 1e5
"""Times of a source, or entries of a recording, that pass for one packet."""

SHORTEST_ON_S = 0.5e-9
"""Shorter times on round to 0 ns, in which a source never sends a packet."""

MOST_DRAWN_FIRST = 1e8
"""Times of all sources until each has sent its first."""


@dataclass(frozen=True, slots=True)
class Place:
    """A hop where streams may be; ``stage`` counts from 0 in the order of the way of data."""

    stage: int
    name: str
    link: Link | ReturnLink
    shared: bool


def places(network: Network) -> list[Place]:
    """Return the hops where streams may be: those of the forward path, then the return link."""
    found = [Place(at, hop.name, hop, hop.shared) for at, hop in enumerate(network.hops)]
    found = found or [Place(0, BOTTLENECK, network.bottleneck, shared=True)]
    if network.return_link is not None:
        found.append(Place(len(found), RETURN, network.return_link, shared=True))
    return found


def place_of(network: Network, stream: Cross) -> Place | None:
    """Return where a stream is: the hop of that name, or the bottleneck; None if there is none."""
    known = places(network)
    if stream.hop is None:
        return known[network.measured_at]
    return next((place for place in known if place.name == stream.hop), None)


def cross_errors(scenario: Scenario) -> list[InitErrorDetails]:
    """Find what is wrong with streams that are each right by themselves."""
    if not scenario.cross:
        return []
    found = []
    names: set[str] = set()
    for at, stream in enumerate(scenario.cross):
        for key, message in _errors(scenario, stream):
            found.append(error_at(message, "cross", at, *([key] if key else [])))
        if stream.name in names:
            message = f'"{stream.name}" is another stream; write a new name'
            found.append(error_at(message, "cross", at, "name"))
        names |= {stream.name} if stream.name else set()
    return found or [*_own_errors(scenario), *_room_errors(scenario)]


def _errors(scenario: Scenario, stream: Cross) -> Iterator[tuple[str, str]]:
    if scenario.isolated_transfers is not None:
        yield (
            "",
            "transfers that run each alone have no cross traffic; write traffic.arrivals = { distribution "
            '= "poisson", rate = "20/s" }',
        )
    place = place_of(scenario.network, stream)
    if place is None:
        names = [known.name for known in places(scenario.network)]
        near = suggestion(stream.hop, names)
        yield "hop", f'there is no hop "{stream.hop}"{near}; write {", ".join(names)}'
        return
    if math.isinf(place.link.rate):
        key = _key_of(scenario.network, place)
        yield stream.share_key or "", f"cross traffic needs a queue; write {key}.rate"
    if place.shared and stream.bin_typed and not stream.is_noise:
        yield "bin", "belongs to a hop with shared = false; leave it out"
    if not math.isinf(place.link.rate):
        yield from _work_errors(stream, place, scenario.network.packet_bytes)


def _key_of(network: Network, place: Place) -> str:
    if isinstance(place.link, ReturnLink):
        return "network.return"
    return f"network.hop.{place.name}" if network.hops else "network.bottleneck"


def _work_errors(stream: Cross, place: Place, packet_bytes: int) -> Iterator[tuple[str, str]]:
    """Find what would keep a run busy without end."""
    bps = _offered_bps(stream, place.link.rate, packet_bytes)
    share, pps = bps / place.link.rate, bps / (8 * packet_bytes)
    if share > MOST_SHARE:
        yield "", f'has {units.digits(share, 3)} times the rate of "{place.name}"; write less'
    elif pps * LONGEST_GAP_S < 1:
        yield "", "has less than a packet in 30 years; write more, or leave it out"
    elif not place.shared and not stream.is_noise and pps * stream.bin_s > MOST_IN_BIN:
        most = units.format_duration(float(f"{MOST_IN_BIN / pps:.2g}"))
        yield "bin", f"has {pps * stream.bin_s:,.0f} packets; write less, about {most}"
    elif isinstance(stream, FgnCross):
        bins = 1 / (pps * stream.bin_s)
        if place.shared and bins > MOST_BINS_EMPTY:
            least = units.format_duration(float(f"{2 * stream.bin_s * bins / MOST_BINS_EMPTY:.2g}"))
            yield "bin", f"so short that {units.digits(bins, 3)} make one packet; write {least}"
    elif isinstance(stream, ParetoCross):
        yield from _periods_errors(stream, pps)
    elif isinstance(stream, TraceCross):
        entries = len(stream.times) * packet_bytes / math.fsum(stream.sizes)
        if entries > MOST_DRAWN:
            yield "bytes", f"{units.digits(entries, 3)} of them make one packet; write more bytes"


def _periods_errors(stream: ParetoCross, pps: float) -> Iterator[tuple[str, str]]:
    """Find times on and off that are too short for packets of ``pps`` packets a second."""
    # Most times are near the least ones, which are so much below the mean.
    least_share = (stream.alpha - 1) / stream.alpha
    cycles = stream.sources / pps / (stream.on + stream.off) / least_share
    if cycles > min(MOST_DRAWN, MOST_DRAWN_FIRST / stream.sources):
        yield (
            "on",
            "so short that a source turns on and off many times between two of its packets; "
            "write longer times, fewer sources, or a larger mean",
        )
    elif stream.on * least_share < SHORTEST_ON_S:
        yield "on", "so short that most times on round to 0 ns; write a longer time"


def _own_errors(scenario: Scenario) -> list[InitErrorDetails]:
    """Find what is wrong at hops that each source has to itself."""
    found = []
    for place in places(scenario.network):
        streams = _at(scenario, place)
        if place.shared or not streams:
            continue
        first = scenario.cross[streams[0]].bin_s
        for at in streams:
            if scenario.cross[at].bin_s != first:
                message = (
                    f'another stream at "{place.name}" has bins of {units.format_duration(first)}; '
                    "write the same"
                )
                found.append(error_at(message, "cross", at, "bin"))
    return found


def _room_errors(scenario: Scenario) -> Iterator[InitErrorDetails]:
    """Find queues that would only grow: no figure of them means anything, and memory ends."""
    for place in places(scenario.network):
        streams, room = _at(scenario, place), _room(scenario.network, place)
        load = load_at(scenario, place) if streams and math.isinf(room) else 0.0
        if load >= 1:
            key = _key_of(scenario.network, place)
            brought = units.digits(100 * load, 3)
            message = (
                f'cross traffic alone is {brought} % of the rate of "{place.name}", with an '
                f'unlimited buffer, so the queue only grows; write {key}.buffer = "100pkt", or '
                "less"
            )
            yield error_at(message, "cross", streams[0])


def _room(network: Network, place: Place) -> float:
    if isinstance(place.link, ReturnLink):
        return network.return_buffer_acks
    return network.buffer_pkts(place.link)


def _at(scenario: Scenario, place: Place) -> list[int]:
    """Return which streams are at a hop."""
    network = scenario.network
    return [at for at, stream in enumerate(scenario.cross) if place_of(network, stream) == place]


def load_at(scenario: Scenario, place: Place) -> float:
    """Return what the streams at a hop offer together, over its rate; 0 without any."""
    rate, packet = place.link.rate, scenario.network.packet_bytes
    streams = (scenario.cross[at] for at in _at(scenario, place))
    return math.fsum(_offered_bps(stream, rate, packet) for stream in streams) / rate


def _offered_bps(stream: Cross, hop_bps: float, packet_bytes: int) -> float:
    """Return the rate in the long run, of a noise without its rates below 0."""
    kept = stream.cut(hop_bps)[1] if isinstance(stream, FgnCross) else 1.0
    return kept * stream.mean_bps(hop_bps, packet_bytes)


def cross_warnings(scenario: Scenario) -> list[str]:
    """Return what to check before trusting any answer with this cross traffic."""
    found = []
    for place in places(scenario.network) if scenario.cross else []:
        load = load_at(scenario, place)
        if load >= 1:
            name = f"hop {place.name}" if isinstance(place.link, Hop) else "the bottleneck"
            name = "the return link" if isinstance(place.link, ReturnLink) else name
            offered = units.digits(100 * load, 3)
            found.append(f"cross traffic alone is {offered} % of the rate of {name}")
    return found + [text for at in range(len(scenario.cross)) for text in _cut(scenario, at)]


def _cut(scenario: Scenario, at: int) -> Iterator[str]:
    """Say of a noise whose rates are often below 0 how much more it brings without these."""
    stream = scenario.cross[at]
    place = place_of(scenario.network, stream)
    if not isinstance(stream, FgnCross) or place is None:
        return
    below, kept = stream.cut(place.link.rate)
    if kept > MOST_KEPT:
        yield (
            f"cross.{stream.name or at} has {units.digits(kept, 3)} times the specified mean: "
            f"{100 * below:.3g} % of its rates are below 0 and cut; write a smaller sd"
        )


def recorded(scenario: Scenario) -> list[tuple[str, TraceCross]]:
    """Return the streams that replay a recording, with what to call them."""
    return [
        (stream.name or str(at), stream)
        for at, stream in enumerate(scenario.cross)
        if isinstance(stream, TraceCross)
    ]
