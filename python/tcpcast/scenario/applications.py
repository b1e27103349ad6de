"""Checks of applications that read or write in steps against TCP and the directions of the data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.quantity import units
from tcpcast.scenario.routes import rest_delays_s
from tcpcast.scenario.table import make_error_at
from tcpcast.scenario.traffic import Pages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_core import InitErrorDetails

    from tcpcast.scenario.classes import Population
    from tcpcast.scenario.model import Scenario


def find_application_errors(scenario: Scenario) -> Iterator[InitErrorDetails]:
    """Find contradictions between the applications of a class and its TCP."""
    for index, group in enumerate(scenario.populations):
        place = ("class", index) if scenario.classes else ()
        for (table, key), message in _find_errors(group):
            yield make_error_at(message, *place, table, key)


def _find_errors(group: Population) -> Iterator[tuple[tuple[str, str], str]]:
    tcp, traffic = group.tcp, group.traffic
    if isinstance(traffic, Pages):
        yield from _find_page_errors(group, traffic)
    reads, writes = (getattr(traffic, key, None) for key in ("reads", "writes"))
    multiplexes = isinstance(traffic, Pages) and traffic.http == "2"
    if tcp.notsent_lowat not in (None, "unlimited") and writes is None and not multiplexes:
        message = (
            "limits what an application writes, so it requires traffic.writes, or a page with http "
            '= "2"; add traffic.writes = { size = "100KB", gap = "0s" }, or remove this key'
        )
        yield ("tcp", "notsent_lowat"), message
    for key, value in (("reads", reads), ("writes", writes)):
        if value is not None and (tcp.is_quic or not tcp.is_modern):
            message = (
                f"{tcp.stack} does not model socket buffers, which this key requires; use "
                'tcp.stack = "linux-reno", or remove this key'
            )
            yield ("traffic", key), message
    if reads is not None and tcp.is_modern and not tcp.has_finite_receive_buffer:
        message = (
            'requires a limited receive buffer; add tcp.socket_buffers = "linux-6.18", or '
            "tcp.receiver_window"
        )
        yield ("traffic", "reads"), message
    if writes is not None and group.sends == "both":
        message = 'requires data in one direction; use sends = "server" or sends = "client"'
        yield ("traffic", "writes"), message


def _find_page_errors(group: Population, traffic: Pages) -> Iterator[tuple[tuple[str, str], str]]:
    tcp = group.tcp
    if tcp.is_quic != (traffic.http == "3") or not tcp.is_modern:
        stack, other = ("quic", "2") if traffic.http == "3" else ("linux-cubic", "3")
        message = (
            f'http = "{traffic.http}" does not run over {tcp.stack}; use tcp.stack = "{stack}"'
        )
        if tcp.is_modern:
            message += f', or http = "{other}"'
        yield ("traffic", "http"), message
    if traffic.host_rtt and tcp.handshake in (None, "none"):
        message = (
            "requires a handshake, in which the client measures the RTT to each host; add "
            'tcp.handshake = "tls13"'
        )
        yield ("traffic", "host_rtt"), message
    least_s = group.rtt_s - 2 * min(rest_delays_s(group))
    for host, rtt_s in traffic.host_rtt.items():
        if rtt_s < least_s - 1e-9:
            message = (
                f"{host}: the RTT is below the propagation delays of the route; use at least "
                f'"{units.format_duration(math.ceil(least_s * 1e4) / 1e4)}"'
            )
            yield ("traffic", "host_rtt"), message
