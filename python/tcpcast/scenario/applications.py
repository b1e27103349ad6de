"""Checks of applications that read or write in steps against TCP and the directions of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.scenario.table import make_error_at

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
    reads, writes = (getattr(traffic, key, None) for key in ("reads", "writes"))
    if tcp.notsent_lowat not in (None, "unlimited") and writes is None:
        message = (
            "requires traffic.writes, because it limits what an application writes; add "
            'traffic.writes = { size = "100KB", gap = "0s" }, or leave this key out'
        )
        yield ("tcp", "notsent_lowat"), message
    for key, value in (("reads", reads), ("writes", writes)):
        if value is not None and (tcp.is_quic or not tcp.is_modern):
            message = (
                f'{tcp.stack} has no sockets; use tcp.stack = "linux-reno", or leave this key out'
            )
            yield ("traffic", key), message
    if reads is not None and tcp.is_modern and not tcp.has_finite_receive_buffer:
        message = (
            "requires a receive buffer that can fill; add tcp.socket_buffers = "
            '"linux-6.18", or tcp.receiver_window'
        )
        yield ("traffic", "reads"), message
    if writes is not None and group.sends == "both":
        message = 'requires data in one direction; use sends = "server" or sends = "client"'
        yield ("traffic", "writes"), message
