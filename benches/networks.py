"""Speed of networks of links: per packet and link, compared with one shared link."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

import tcpcast
from tcpcast import networks
from tcpcast.scenario import Scenario

from benches.row import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

HOMES, FLOWS = 1_000, 5
MARKING = {"kind": "codel", "ce_threshold": "100us", "ecn": True}
BULK = {"kind": "bulk"}
UNIT = "s per million packets"
FAT_TREE_ENDS = ("30ms", "130ms")


def rows(runs: int) -> Iterator[Row]:
    """Yield the cost of more links relative to one link."""
    one, three = (_seconds_a_packet(_shared_links(links), runs) for links in (1, 3))
    yield Row("10 flows, one link", UNIT, one * 1e6)
    yield Row("three shared links : one", "ratio", three / one, 2.2)
    aggregate, homes = (_seconds_a_packet(_homes(lines=lines), runs) for lines in (False, True))
    note = f"{HOMES:,} lines, {FLOWS} flows each, behind 10 Gbit/s"
    yield Row("homes : one link", "ratio per link", homes / 2 / aggregate, 1.5, note)
    fat_tree = networks.fat_tree(4, queue=MARKING) | {"traffic": BULK, "tcp": {"stack": "dctcp"}}
    # The difference of two runs: the tables of 240 classes take as long as the short run.
    ends = [_run(fat_tree | {"run": {"duration": end, "warmup": "5ms"}}) for end in FAT_TREE_ENDS]
    wall_s, packets = (longer - shorter for shorter, longer in zip(*ends, strict=True))
    note = "k = 4, 16 hosts, 240 DCTCP flows, 10 Gbit/s, with their tables"
    yield Row("fat tree", UNIT, wall_s / packets * 1e6, None, note)


def _shared_links(links: int) -> dict[str, Any]:
    names = [f"link{index}" for index in range(links)]
    bulk = {"name": "bulk", "flows": 10, "traffic": BULK, "route": names, "delay": "30ms"}
    return {
        # Only the last link is full; each of the others is 10 % faster than the next one.
        "link": {
            name: {"rate": f"{100 + 10 * (links - 1 - index)}mbit", "buffer": "500pkt"}
            for index, name in enumerate(names)
        },
        "class": [bulk],
        "run": {"duration": "60s", "warmup": "5s"},
    }


def _homes(*, lines: bool) -> dict[str, Any]:
    aggregate = {"rate": "10gbit", "buffer": "5000pkt"}
    bulk = {"name": "bulk", "flows": FLOWS, "traffic": BULK, "delay": "10ms"}
    run = {"duration": "1.5s", "warmup": "0.5s"}
    if not lines:
        flows = {"flows": HOMES * FLOWS, "route": ["aggregate"]}
        return {"link": {"aggregate": aggregate}, "class": [bulk | flows], "run": run}
    line = {"rate": "100mbit", "buffer": "100pkt", "each": "home"}
    return {
        "link": {"aggregate": aggregate, "line": line},
        "site": {"home": {"count": HOMES}},
        "class": [bulk | {"site": "home", "route": ["aggregate", "line"]}],
        "run": run,
    }


def _seconds_a_packet(tables: dict[str, Any], runs: int) -> float:
    figures = [_run(tables) for _ in range(runs)]
    return statistics.median(wall_s / packets for wall_s, packets in figures)


def _run(tables: dict[str, Any]) -> tuple[float, float]:
    """Return the seconds of the simulation, and the data packets that it delivered."""
    scenario = Scenario.from_dict(tables)
    (answer,) = tcpcast.run(scenario, "packet", threads=1)
    seconds = scenario.run.duration_s or 0.0
    packets = answer.metrics["goodput_pps"].value * seconds
    return answer.wall_s, packets


def main() -> None:
    """Print the rows."""
    from benches.bench import print_head, print_row  # noqa: PLC0415 - it imports this module

    print_head()
    for row in rows(3):
        print_row(row)


if __name__ == "__main__":
    main()
