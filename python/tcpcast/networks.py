"""Tables of large networks, to pass to :class:`tcpcast.Scenario` with traffic for the classes.

Each function returns the tables ``link`` and ``class``; the classes have names, numbers of flows
and routes. Further tables and keys follow the rules of scenarios:

>>> from tcpcast import Scenario
>>> tables = parking_lot(3, rate="10mbit", delay="5ms")
>>> tables |= {"traffic": {"kind": "bulk"}, "run": {"duration": "60s"}}
>>> [group.name for group in Scenario.from_dict(tables).populations]
['long', 'short0', 'short1', 'short2']
"""

from __future__ import annotations

import itertools
from typing import Any

from tcpcast.process.errors import DomainError

Tables = dict[str, Any]


def dumbbell(
    pairs: int,
    *,
    rate: str = "10mbit",
    access_rate: str = "100mbit",
    delay: str = "10ms",
    **core: Any,
) -> Tables:
    """Return ``pairs`` of hosts, each with access links, on both sides of one shared link.

    Parameters
    ----------
    pairs
        Number of classes of one flow, at least 1.
    rate, access_rate
        Rate of the shared link ``core`` in each direction, and of the links of a host.
    delay
        One-way delay of the path behind the links.
    **core
        Further keys of the link ``core``, such as ``buffer`` and ``queue``.

    Raises
    ------
    DomainError
        ``pairs`` is below 1.

    References
    ----------
    The topology of most studies of TCP, for example S. Floyd, V. Jacobson, "Random early detection
    gateways for congestion avoidance", IEEE/ACM Transactions on Networking 1 (1993).
    """
    _check_at_least("pairs", pairs, 1)
    links: dict[str, dict[str, Any]] = {
        "core": {"rate": rate, **core},
        "core-back": {"rate": rate},
    }
    classes = []
    for pair in range(pairs):
        links |= {f"{end}{pair}": {"rate": access_rate} for end in ("sender", "receiver")}
        route = [f"sender{pair}", "core", f"receiver{pair}"]
        classes.append(
            {"name": f"pair{pair}", "flows": 1, "route": route, "back": ["core-back"]}
            | {"delay": delay}
        )
    return {"link": links, "class": classes}


def parking_lot(links: int, *, rate: str = "10mbit", delay: str = "5ms", **keys: Any) -> Tables:
    """Return a chain of links: one flow over all of them, and one flow over each.

    Parameters
    ----------
    links
        Number of links, at least 1.
    rate
        Rate of each link.
    delay
        One-way delay of each link, and of the return path of each class.
    **keys
        Further keys of each link, such as ``buffer`` and ``queue``.

    Raises
    ------
    DomainError
        ``links`` is below 1.

    References
    ----------
    S. Floyd, "Connections with multiple congested gateways in packet-switched networks, part 1",
    Computer Communication Review 21 (1991).
    """
    _check_at_least("links", links, 1)
    names = [f"hop{index}" for index in range(links)]
    ways = {"long": names} | {f"short{index}": [name] for index, name in enumerate(names)}
    return {
        "link": {name: {"rate": rate, "delay": delay, **keys} for name in names},
        "class": [
            {"name": name, "flows": 1, "route": way, "delay": "0s", "back_delay": delay}
            for name, way in ways.items()
        ],
    }


def fat_tree(
    k: int = 4, *, rate: str = "10gbit", delay: str = "1us", flows: int = 1, **keys: Any
) -> Tables:
    """Return a fat tree of ``k``-port switches: ``k**3 / 4`` hosts, and flows between all pairs.

    Each direction of a cable is a link. A pair of hosts in different pods has ``(k / 2)**2`` equal
    routes, one of which a hash chooses for each connection.

    Parameters
    ----------
    k
        Ports of a switch: even, at least 2.
    rate, delay
        Rate and one-way delay of each link.
    flows
        Flows of each ordered pair of hosts, at least 1.
    **keys
        Further keys of each link, such as ``buffer`` and ``queue``.

    Raises
    ------
    DomainError
        ``k`` is odd or below 2, or ``flows`` is below 1.

    References
    ----------
    M. Al-Fares, A. Loukissas, A. Vahdat, "A scalable, commodity data center network architecture",
    SIGCOMM 2008.
    """
    _check_at_least("k", k, 2)
    _check_at_least("flows", flows, 1)
    if k % 2:
        raise DomainError(f"k must be even, not {k}")
    half = k // 2
    hosts = [(pod, edge, port) for pod in range(k) for edge in range(half) for port in range(half)]
    links: dict[str, dict[str, Any]] = {}

    def way(*stops: str) -> list[str]:
        names = [f"{a}-{b}" for a, b in itertools.pairwise(stops)]
        links.update((name, {"rate": rate, "delay": delay, **keys}) for name in names)
        return names

    def routes(source: tuple[int, int, int], target: tuple[int, int, int]) -> list[list[str]]:
        (pod, edge, _), (other, last, _) = source, target
        ends = (_host(source), f"e{pod}{edge}"), (f"e{other}{last}", _host(target))
        if (pod, edge) == (other, last):
            return [way(*ends[0], ends[1][1])]
        if pod == other:
            return [way(*ends[0], f"a{pod}{up}", *ends[1]) for up in range(half)]
        return [
            way(*ends[0], f"a{pod}{up}", f"c{up}{core}", f"a{other}{up}", *ends[1])
            for up in range(half)
            for core in range(half)
        ]

    classes = [
        {"name": f"{_host(source)}-{_host(target)}", "flows": flows}
        | {"route": routes(source, target), "back": routes(target, source)}
        for source, target in itertools.permutations(hosts, 2)
    ]
    return {"link": links, "class": classes}


def _host(place: tuple[int, int, int]) -> str:
    return "h" + "".join(map(str, place))


def _check_at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise DomainError(f"{name} must be at least {least}, not {value}")
