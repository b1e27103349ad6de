"""Networks of links, measured by engine ``kernel`` and simulated under the same conditions.

A cell is a scenario; ``data/networks.csv`` holds its measured values, each with the kernel, the
date, and the shares of late packets and of paused time of its runs. ``benches/kernel_networks.py``
measures the cells again and writes the table. Simulation and measurement share the code of links,
so the cells test TCP, applications and the interaction of flows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tcpcast_papers.kernel.agreement import AllowedDifference
from tcpcast_papers.published.cells import Cell, CellSet, Value, class_reader, share_reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tcpcast.answer import Answer

    from tcpcast_papers.published.cells import Lines

PACKAGE = "tcpcast_papers.kernel"
TABLE = "networks.csv"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value of a run: its name, its unit, how it is read, and the allowed difference.

    A difference is allowed up to ``relative`` times the measured value or up to ``absolute``,
    whichever is larger.
    """

    name: str
    unit: str
    read: Callable[[Answer], float]
    relative: float = 0.0
    absolute: float = 0.0

    def allowed(self, measured: float) -> AllowedDifference:
        """Return the allowed difference from a measured value."""
        return AllowedDifference(absolute=max(self.relative * abs(measured), self.absolute))


@dataclass(frozen=True, slots=True)
class NetworkCell:
    """A scenario with one replication and without seed, and its quantities."""

    tables: dict[str, Any]
    quantities: tuple[Quantity, ...]
    packets: float


def _metric(name: str, scale: float) -> Callable[[Answer], float]:
    return lambda answer: scale * answer.metrics[name].value


def _rate(name: str) -> Quantity:
    read = class_reader("goodput_bps", name, 1e-6)
    return Quantity(f"rate of {name}", "Mbit/s", read, relative=0.05)


_PING_P95 = Quantity(
    "p95 of ping", "ms", class_reader("delay_p95_s", "ping", 1e3), relative=0.1, absolute=2.0
)


def _share(of: str, beside: str) -> Quantity:
    return Quantity(f"share of {of} beside {beside}", "%", share_reader(of, beside), absolute=5.0)


def _run(duration_s: float, warmup_s: float) -> dict[str, Any]:
    return {"duration": f"{duration_s:g}s", "warmup": f"{warmup_s:g}s"}


BULK = {"kind": "bulk"}


def _parking_lot(stack: str) -> NetworkCell:
    names = ["first", "second", "third"]
    link = {"rate": "20mbit", "delay": "5ms", "buffer": "100pkt"}
    classes = [{"name": "long", "route": names, "back_delay": "15ms"}]
    classes += [{"name": f"on-{each}", "route": [each], "delay": "5ms"} for each in names]
    return NetworkCell(
        {
            "link": dict.fromkeys(names, link),
            # A single flow per class gets 6 to 45 % of a link, depending on the seed.
            "class": [each | {"flows": 4} for each in classes],
            "traffic": BULK,
            "tcp": {"stack": f"linux-{stack}"},
            "run": _run(60, 20),
        },
        tuple(_share("long", f"on-{each}") for each in names),
        2e5,
    )


def _home_classes(**more: Any) -> list[dict[str, Any]]:
    path = {"flows": 1, "route": ["down"], "back": ["up"], "delay": "10ms"} | more
    ping = {"kind": "ping", "interval": "20ms"}
    return [
        path | {"name": "download", "traffic": BULK},
        path | {"name": "upload", "traffic": BULK, "sends": "client"},
        path | {"name": "ping", "traffic": ping},
    ]


def _both_directions(queue: str) -> NetworkCell:
    return NetworkCell(
        {
            "link": {
                "down": {"rate": "100mbit", "buffer": "250pkt", "queue": queue},
                "up": {"rate": "10mbit", "buffer": "100pkt", "queue": queue},
            },
            "class": _home_classes(),
            "run": _run(50, 10),
        },
        (_rate("download"), _rate("upload"), _PING_P95),
        5e5,
    )


def _two_homes() -> NetworkCell:
    queue = {"queue": "fq_codel", "buffer": "1000pkt", "each": "home"}
    core = {"core": {"rate": "80mbit", "buffer": "400pkt"}}
    return NetworkCell(
        {
            "link": core | {"down": {"rate": "50mbit"} | queue, "up": {"rate": "10mbit"} | queue},
            "site": {"home": {"count": 2}},
            "class": _home_classes(site="home", route=["core", "down"]),
            "run": _run(50, 10),
        },
        (_rate("download"), _rate("upload"), _PING_P95),
        5e5,
    )


def _rate_step() -> NetworkCell:
    """Return the six seconds after the rate of a link falls from 50 to 5 Mbit/s."""
    link = {"rate": "50mbit", "buffer": "200pkt", "at": {"10s": {"rate": "5mbit"}}}
    return NetworkCell(
        {
            "link": {"line": link},
            "class": [{"name": "all", "flows": 1, "route": ["line"], "delay": "20ms"}],
            "traffic": BULK,
            "run": _run(16, 9.9),
        },
        (
            Quantity("peak (p99) of the RTT", "ms", _metric("rtt_p99_s", 1e3), 0.1),
            Quantity("goodput", "Mbit/s", _metric("goodput_bps", 1e-6), 0.05),
        ),
        5e4,
    )


def _opportunities(*gaps_ms: int) -> dict[str, str]:
    """Return a rate whose packet opportunities change their distance every 600 ms."""
    times: list[str] = []
    now = 0
    for gap in gaps_ms:
        end = now + 600
        while now < end:
            now += gap
            times.append(str(now))
    return {"opportunities": " ".join(times)}


def _traces() -> NetworkCell:
    """Return a pair of traces in Mahimahi's format, 12 to 3 Mbit/s down and 6 to 2 Mbit/s up."""
    down, up = _opportunities(1, 4, 2, 3), _opportunities(2, 6, 3, 4)
    return NetworkCell(
        {
            "link": {
                "down": {"rate": down, "buffer": "100pkt"},
                "up": {"rate": up, "buffer": "100pkt"},
            },
            "class": _home_classes(),
            "run": _run(50, 10),
        },
        (_rate("download"), _rate("upload"), _PING_P95),
        5e4,
    )


def _users(count: int, rate: str, buffer: str, queue: str) -> NetworkCell:
    off = {"distribution": "exponential", "mean": "3s"}
    size = {"distribution": "exponential", "mean": "200KB"}
    return NetworkCell(
        {
            "network": {
                "rtt": "30ms",
                "bottleneck": {"rate": rate, "buffer": buffer, "queue": queue},
            },
            "traffic": {"kind": "on-off", "sources": count, "off": off, "size": size},
            "tcp": {"handshake": "tcp"},
            "run": _run(80, 20),
        },
        (
            Quantity(
                "rate during a transfer", "Mbit/s", _metric("connection_rate_bps", 1e-6), 0.05
            ),
            Quantity("mean ON time", "ms", _metric("on_time_s", 1e3), 0.05),
            Quantity("utilisation", "%", _metric("utilisation", 100.0), absolute=2.0),
            Quantity("loss ratio", "%", _metric("loss_ratio", 100.0), 0.2, 0.02),
        ),
        6e5,
    )


CELLS: Mapping[str, NetworkCell] = {
    **{
        f"parking lot of three links, {stack}": _parking_lot(stack)
        for stack in ("cubic", "reno", "bbr")
    },
    "upload beside download, drop-tail": _both_directions("droptail"),
    "upload beside download, FQ-CoDel": _both_directions("fq_codel"),
    "two homes, FQ-CoDel each": _two_homes(),
    "rate 50 to 5 Mbit/s": _rate_step(),
    "traces up and down": _traces(),
    "60 users, 50 Mbit/s, drop-tail": _users(60, "50mbit", "250pkt", "droptail"),
    "60 users, 50 Mbit/s, FQ-CoDel": _users(60, "50mbit", "1000pkt", "fq_codel"),
    "10 users, 10 Mbit/s, drop-tail": _users(10, "10mbit", "50pkt", "droptail"),
    "10 users, 10 Mbit/s, FQ-CoDel": _users(10, "10mbit", "1000pkt", "fq_codel"),
}
"""Cells by name."""


def _read_cells(lines: Lines) -> Iterator[Cell]:
    for name, rows in groupby(lines, key=lambda line: line["cell"]):
        cell = CELLS[name]
        measured = {row["quantity"]: row for row in rows}
        values = [
            Value(
                each.name,
                each.unit,
                float(measured[each.name]["mean"]),
                each.allowed(float(measured[each.name]["mean"])),
                each.read,
                float(measured[each.name]["half_width"]),
            )
            for each in cell.quantities
            if each.name in measured
        ]
        yield Cell((name,), name.partition(",")[0], cell.tables, tuple(values), cell.packets)


NETWORKS = CellSet(
    "Networks",
    "Links with routes, both directions, changes, and users",
    ("cell",),
    TABLE,
    _read_cells,
    (
        "The kernel engine measured these cells with tcpcast's emulated links "
        "(benches/kernel_networks.py). The table contains the kernel, date, late packets and "
        "pauses of each cell. Late runs were repeated.",
    ),
    PACKAGE,
)
