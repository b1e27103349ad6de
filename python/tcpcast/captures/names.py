"""Names of servers: TLS server name indication, HTTP host, and DNS answers in the capture."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tcpcast.captures.groups import host_address
from tcpcast.captures.table import endpoint_text, text_column

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcpcast.array_types import Table


def server_name_column(connections: Table, names: Mapping[str, Any]) -> Any:
    """Return the name of the server of each direction, "" if unknown.

    Parameters
    ----------
    connections
        Directions with ``src`` and ``dst``.
    names
        ``servers``: the client, the server (each as address and port) and the name that the client
        stated; ``addresses``: addresses and their names by DNS. A stated name has priority.
    """
    stated: dict[frozenset[str], str] = {}
    for client, server, name in names["servers"]:
        stated.setdefault(frozenset((endpoint_text(*client), endpoint_text(*server))), name)
    by_address = dict(names["addresses"])
    found = []
    for source, destination in zip(
        connections["src"].tolist(), connections["dst"].tolist(), strict=True
    ):
        name = stated.get(frozenset((source, destination)), "") if stated else ""
        if not name and by_address:
            ends = [by_address.get(host_address(end), "") for end in (destination, source)]
            name = ends[0] or ends[1]
        found.append(name)
    return text_column(found)


def name_services(services: Table, connections: Table) -> Any:
    """Return the most frequent name of each service among its connections, "" if unknown."""
    counts: list[Counter[str]] = [Counter() for _ in services["server"]]
    for service, name in zip(
        connections["service"].tolist(), connections["server_name"].tolist(), strict=True
    ):
        if service >= 0 and name:
            counts[service][name] += 1
    return text_column(count.most_common(1)[0][0] if count else "" for count in counts)


def service_label(row: Mapping[str, Any]) -> str:
    """Return address and port of a row of ``services``, with its name if known."""
    name = row.get("server_name", "")
    return f"{row['server']} ({name})" if name else str(row["server"])
