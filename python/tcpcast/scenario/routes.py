"""Routes of classes over the links of a network: paths, buffers, and all checks of routes."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tcpcast.process.errors import did_you_mean_text
from tcpcast.quantity import units
from tcpcast.scenario.classes import Population, get_ack_bytes, get_packet_bytes
from tcpcast.scenario.link import Link
from tcpcast.scenario.links import SENDER, NetworkLink
from tcpcast.scenario.path import PathLink, PathView
from tcpcast.scenario.return_path import RETURN
from tcpcast.scenario.table import make_error_at, prepend_location
from tcpcast.scenario.traffic import Messages, Pages, Ping, Requests, Stream, Transfers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pydantic_core import InitErrorDetails

    from tcpcast.scenario.classes import UserClass
    from tcpcast.scenario.model import Scenario
    from tcpcast.scenario.table import Errors

MAX_RTT_RATIO = 1.1
"""Ratio of the RTTs of classes up to which a link has one bandwidth-delay product; transmission
times alone make the RTTs of uploads and downloads differ."""

NETWORK_KEYS = ("packet", "ack", "rtt")
"""Keys of ``[network]`` in a network of links."""


def data_routes(entry: UserClass) -> list[list[str]]:
    """Return the routes of the data of a class; acknowledgements take the others."""
    return (entry.back if entry.sends == "client" else entry.route) or [[]]


def find_headline(scenario: Scenario) -> str:
    """Return the name of the link that metrics of the bottleneck describe.

    Without ``probes.link``, it is the shared link with the lowest rate per flow of data, which
    fills first: then the first link with a rate, or the first link.
    """
    if scenario.probes.link is not None:
        return scenario.probes.link
    flows: Counter[str] = Counter()
    for entry in scenario.classes:
        if not isinstance(entry.traffic, Messages | Ping):
            names = {name for route in data_routes(entry) for name in route}
            flows.update(dict.fromkeys(names, entry.flow_count(scenario.sites) or 1))

    def share(name: str) -> tuple[bool, float]:
        link = scenario.links[name]
        return link.each is not None, link.rate / flows[name] if flows[name] else math.inf

    limited = [name for name, link in scenario.links.items() if math.isfinite(link.rate)]
    return min(limited or scenario.links, key=share)


def make_route(scenario: Scenario, names: Sequence[str], senders: int) -> tuple[PathLink, ...]:
    """Return the links of a route of a class, without their buffers."""
    links = []
    for name in names:
        link = scenario.links[name]
        site = scenario.sites.get(link.each or "")
        instances = 1 if link.each is None else senders if site is None else site.count
        is_measured = name == scenario.headline
        links.append(
            PathLink(f"link.{name}", name, link, link.each is None, is_measured, instances)
        )
    return tuple(links)


def add_buffers(scenario: Scenario, groups: Sequence[Population]) -> list[Population]:
    """Return the classes with the buffers of their links."""
    buffers = link_buffers(scenario, groups)

    def with_buffers(route: Iterable[PathLink]) -> tuple[PathLink, ...]:
        return tuple(replace(on, buffer_pkts=buffers[on.name]) for on in route)

    return [replace(g, route=with_buffers(g.route), back=with_buffers(g.back)) for g in groups]


def link_buffers(scenario: Scenario, groups: Sequence[Population]) -> dict[str, float]:
    """Return the buffer of each link in data packets, or inf.

    A bandwidth-delay product refers to ``network.rtt``, or to the longest RTT of the classes with
    TCP on the link.
    """
    rtts = _rtts_by_link(scenario, groups)
    return {
        name: 0.0
        if link.is_policer
        else link.buffer.packets(
            packet_bytes=scenario.network.packet,
            rate_bps=link.rate,
            rtt_s=scenario.network.rtt or max(rtts[name]),
        )
        for name, link in scenario.links.items()
    }


def _rtts_by_link(scenario: Scenario, groups: Sequence[Population]) -> dict[str, list[float]]:
    """Return the base RTTs of the classes on each link: of those with TCP, if there are any."""
    rtts: dict[str, list[float]] = {}
    pairs = sorted(
        zip(scenario.classes, groups, strict=True),
        key=lambda pair: isinstance(pair[1].traffic, Messages | Ping),
    )
    with_tcp: set[str] = set()
    for entry, group in pairs:
        names = {on for route in (*(entry.route or []), *(entry.back or [])) for on in route}
        if isinstance(group.traffic, Messages | Ping):
            names -= with_tcp
        else:
            with_tcp |= names
        for name in names:
            rtts.setdefault(name, []).append(group.rtt_s)
    return rtts


def find_network_errors(scenario: Scenario) -> list[InitErrorDetails]:
    """Return contradictions between links, sites and routes that are valid on their own."""
    if not scenario.links:
        return list(_find_keys_without_links(scenario))
    errors = [*_find_short_form_keys(scenario)]
    for index, entry in enumerate(scenario.classes):
        errors += [
            prepend_location(e, "class", index) for e in _find_errors_of_routes(scenario, entry)
        ]
    return errors or list(_find_unused_tables(scenario))


def _find_keys_without_links(scenario: Scenario) -> Errors:
    for index, entry in enumerate(scenario.classes):
        for key in ("route", "back", "site", "delay", "back_delay", "host", "dscp", "sends"):
            if getattr(entry, key) is not None:
                message = "requires [link.NAME] tables; add them, or remove this key"
                yield make_error_at(message, "class", index, key)
    for name in scenario.sites:
        yield make_error_at(
            "a site requires [link.NAME] tables; add them, or remove the site", "site", name
        )


@dataclass(frozen=True, slots=True)
class ClassRoutes:
    """Routes of a class, and the delays of the rest of the path behind their last links.

    ``route`` leads from the server to the client and ``back`` from the client to the server; each
    has several equal routes, of which a hash chooses one per connection.
    """

    route: list[list[str]]
    back: list[list[str]]
    delay_s: float
    back_delay_s: float


@dataclass(frozen=True, slots=True)
class Topology:
    """All links by name, their buffers in packets, the routes of each class, and the headline."""

    links: Mapping[str, NetworkLink]
    buffers_pkts: Mapping[str, float]
    classes: list[ClassRoutes]
    headline: str


def make_topology(scenario: Scenario) -> Topology:
    """Return the links and routes of a scenario of either form."""
    if not scenario.links:
        return expand_short_form(scenario)
    classes = []
    for entry, group in zip(scenario.classes, scenario.populations, strict=True):
        rest_s = rest_delays_s(group)
        delays_s = rest_s[::-1] if group.sends == "client" else rest_s
        classes.append(ClassRoutes(entry.route or [[]], entry.back or [[]], *delays_s))
    buffers = link_buffers(scenario, scenario.populations)
    return Topology(scenario.links, buffers, classes, scenario.headline)


def expand_short_form(scenario: Scenario) -> Topology:
    """Return one bottleneck or hops, access links and return link as links and routes.

    Acks queue only on a return link; on the other links they only take their transmission time,
    which is part of ``back_delay_s``.
    """
    network = scenario.network
    links: dict[str, NetworkLink] = {}
    buffers: dict[str, float] = {}
    classes = []
    if network.has_return:
        links[RETURN] = network.return_as_link()
        buffers[RETURN] = network.return_buffer_acks
    for group in scenario.populations:
        route = []
        for on in group.route:
            link = on.link
            if not (on.measured or link.delay or link.loss or math.isfinite(link.rate)):
                continue
            # A bottleneck without any limit equals an access link without any.
            is_end = not on.measured and link in (group.ingress, group.egress)
            name = f"{on.name}-{group.name}" if is_end and scenario.classes else on.name
            is_single = on.shared or not (link.loss or math.isfinite(link.rate))
            own = {
                "each": None if is_single else SENDER,
                "jitter": network.jitter if on.measured else None,
            }
            links[name] = NetworkLink.model_construct(
                None, **{name: getattr(link, name) for name in Link.model_fields}, **own
            )
            buffers[name] = on.buffer_pkts
            route.append(name)
        delay_s = math.fsum(on.link.delay or 0.0 for on in group.route)
        ack_s = math.fsum(
            8 * network.ack / on.link.serial_bps
            for on in group.route
            if not (on.measured and network.return_link)
        )
        classes.append(
            ClassRoutes(
                [route],
                [[RETURN] if network.has_return else []],
                group.forward_delay_s - delay_s,
                group.return_delay_s + ack_s,
            )
        )
    return Topology(links, buffers, classes, scenario.measured.name)


def _find_short_form_keys(scenario: Scenario) -> Errors:
    network = scenario.network
    for name, field in type(network).model_fields.items():
        key = field.alias or name
        if key not in NETWORK_KEYS and name in network.model_fields_set:
            message = (
                "cannot be combined with [link.NAME] tables; set this key on a link, or remove "
                "this key"
            )
            yield make_error_at(message, "network", key)
    if scenario.cross:
        message = 'requires [network.bottleneck]; use a class with traffic.kind = "messages"'
        yield make_error_at(message, "cross")
    if not scenario.classes:
        message = 'missing; add [[class]] tables with route = ["NAME"], the links in order'
        yield make_error_at(message, "class")


def _find_errors_of_routes(scenario: Scenario, entry: UserClass) -> Errors:
    links = scenario.links
    if entry.sends is not None and isinstance(entry.traffic, Requests | Ping | Stream | Pages):
        message = (
            f"does not apply to {entry.traffic.kind}, in which both ends send; remove this key"
        )
        yield make_error_at(message, "sends")
    if entry.site is not None and entry.site not in scenario.sites:
        yield make_error_at(_unknown_text("site", entry.site, scenario.sites), "site")
    if entry.route is None:
        names = ", ".join(map(units.quote, list(links)[:2]))
        yield make_error_at(f"missing; add route = [{names}], the links in order", "route")
    for key, routes in (("route", entry.route or []), ("back", entry.back or [])):
        for route in routes:
            for name, count in Counter(route).items():
                each = links[name].each if name in links else None
                if name not in links:
                    yield make_error_at(_unknown_text("link", name, links), key)
                elif count > 1:
                    yield make_error_at(f'passes "{name}" twice; list each link once', key)
                elif each in scenario.sites and each != entry.site:
                    message = (
                        f'each member of site {each} has a separate link "{name}"; use site = '
                        f'"{each}" here'
                    )
                    yield make_error_at(message, key)


def _find_unused_tables(scenario: Scenario) -> Errors:
    links, sites, classes = scenario.links, scenario.sites, scenario.classes
    routes = [r for entry in classes for r in (*(entry.route or []), *(entry.back or []))]
    used, end = {name for route in routes for name in route}, scenario.run.duration_s or math.inf
    for name, link in links.items():
        if link.each not in {None, SENDER, *sites}:
            message = _unknown_text("site", link.each, [SENDER, *sites])
            yield make_error_at(message, "link", name, "each")
        if name not in used:
            message = "no class uses this link; add it to a route, or remove the table"
            yield make_error_at(message, "link", name)
        for time in link.at:
            if units.parse_duration(time) >= end:
                message = "is after the end of the run; use an earlier time, or a longer run"
                yield make_error_at(message, "link", name, "at", time)
    for name in sites:
        if all(entry.site != name for entry in classes):
            message = f'no class belongs to this site; use site = "{name}" in a [[class]] table'
            yield make_error_at(message, "site", name)
    headline = scenario.probes.link
    if headline is not None and headline not in links:
        yield make_error_at(_unknown_text("link", headline, links), "probes", "link")


def _unknown_text(what: str, name: object, known: Iterable[str]) -> str:
    listed = list(known)
    written = ", ".join(listed) or f"[{what}.{name}]"
    return f'there is no {what} "{name}"{did_you_mean_text(name, listed)}; use {written}'


def find_route_errors(scenario: Scenario) -> Iterator[InitErrorDetails]:
    """Yield contradictions of routes that :func:`find_network_errors` accepts."""
    for name, link in scenario.links.items():
        for keys, message in scenario.network.link_problems(link):
            yield make_error_at(message, "link", name, *keys)
    for index, group in enumerate(scenario.populations if scenario.links else ()):
        least_s = min(rest_delays_s(group))
        if least_s < -1e-9:
            least = units.format_duration(math.ceil((group.rtt_s - 2 * least_s) * 1e4) / 1e4)
            message = (
                f'must be at least "{least}", to cover the delays and transmission times of the '
                "route"
            )
            yield make_error_at(message, "class", index, "rtt")
    known = _rtts_by_link(scenario, scenario.populations) if scenario.links else {}
    for name, rtts in known.items():
        is_unknown = max(rtts) > MAX_RTT_RATIO * min(rtts) and not scenario.network.rtt
        if scenario.links[name].buffer.unit == "bdp" and is_unknown:
            message = (
                "a buffer in bdp requires one RTT, but the classes on this link have different "
                'RTTs; set network.rtt, or use a buffer in packets, bytes or time, such as "50ms"'
            )
            yield make_error_at(message, "link", name, "buffer")


def rest_delays_s(group: Population) -> tuple[float, float]:
    """Return the delays behind the last link of the data's route and of the return path."""
    there, back = (math.fsum(on.link.delay or 0.0 for on in p) for p in (group.route, group.back))
    return group.forward_delay_s - there, group.return_delay_s - back


def make_routed_population(user_class: UserClass, scenario: Scenario) -> Population:
    """Return the population of a class in a network of links."""
    links, network = scenario.links, scenario.network
    traffic, tcp = user_class.traffic, user_class.tcp or scenario.tcp
    packet, count = get_packet_bytes(user_class, network), user_class.flow_count(scenario.sites)
    ends = [(user_class.route or [[]])[0], (user_class.back or [[]])[0]]
    there_s = user_class.delay or 0.0
    rest = [there_s, there_s if user_class.back_delay is None else user_class.back_delay]
    if user_class.sends == "client":
        ends, rest = ends[::-1], rest[::-1]
    sizes = packet, get_ack_bytes(tcp, network)
    sending_s = math.fsum(
        8 * size / links[name].serial_bps
        for names, size in zip(ends, sizes, strict=True)
        for name in names
    )
    delays = [math.fsum(links[name].delay or 0.0 for name in names) for names in ends]
    if user_class.rtt is not None:
        rest = [(user_class.rtt - sending_s - math.fsum(delays)) / 2] * 2
    rtt_s = user_class.rtt or math.fsum((sending_s, *delays, *rest))
    route, back = (make_route(scenario, names, max(1, count)) for names in ends)
    if not isinstance(traffic, Transfers):
        traffic = traffic.model_copy(update={"declared": count})
    return Population(
        name=user_class.name,
        count=count,
        traffic=traffic,
        rtt_s=rtt_s,
        route=route,
        ingress=user_class.ingress,
        egress=user_class.egress,
        forward_delay_s=delays[0] + rest[0],
        return_delay_s=delays[1] + rest[1],
        tcp=tcp,
        packet_bytes=packet,
        back=back,
        sends=user_class.sends or "server",
        start_s=user_class.start or 0.0,
        stop_s=math.inf if user_class.stop is None else user_class.stop,
    )


def view_path(group: Population, scenario: Scenario) -> PathView:
    """Return what a formula sees of the path of a class."""
    route, packet_bytes = group.route, scenario.network.packet_bytes
    on = min(
        route or (scenario.measured,),
        key=lambda on: (on.link.rate_bps * on.instances, not on.measured),
    )
    losses = {
        f"{on.key}.loss": loss.mean_ratio() for on in route if (loss := on.link.loss) is not None
    }
    if len(losses) == 1:  # exactly as specified, without rounding
        (loss_ratio,) = losses.values()
    else:
        loss_ratio = 1 - math.prod(1 - loss for loss in losses.values())
    return PathView(
        rtt_s=group.rtt_s,
        link=on,
        loss=loss_ratio,
        loss_keys=" and ".join(losses),
        packet_bytes=packet_bytes,
        capacity_pps=on.link.rate_bps / (8 * packet_bytes) * on.instances,
        buffer_pkts=on.buffer_pkts,
        obstacles=_find_obstacle(group, scenario),
    )


def _find_obstacle(group: Population, scenario: Scenario) -> str:
    """Return why no formula covers the path of a class in a network of links; "" if one may."""
    if not scenario.links:
        return ""
    if not group.route:
        return "a formula requires a link on the forward path"
    limited = [on.name for on in group.route if math.isfinite(on.link.rate_bps)]
    if len(limited) > 1:
        return f"a formula models one queue, but {' and '.join(limited)} limit the path"
    changing = [on.name for on in (*group.route, *group.back) if scenario.links[on.name].at]
    if changing:
        return f"a formula models a constant path, but link {changing[0]} changes with time"
    data = {on.name for other in scenario.populations for on in other.data_links}
    both = [on.name for on in group.back if on.name in data and math.isfinite(on.link.rate_bps)]
    if both:
        return f"a formula models data in one direction, but acks share link {both[0]} with data"
    return ""
