"""Description of the reproduction: Figure 17 of the DCTCP paper."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tcpcast_papers.kernel.agreement import AllowedDifference
from tcpcast_papers.published import description as published
from tcpcast_papers.published.cells import Cell, CellSet, Value, class_reader
from tcpcast_papers.published.runs import PublishedRuns, SampleSizes
from tcpcast_papers.published.sections import SetSections
from tcpcast_papers.runner import Paper

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcpcast_papers.published.cells import Lines

PACKAGE = "tcpcast_papers.dctcp"

ROUTES = {
    "S1": ["access", "trunk", "receiver"],
    "S2": ["access", "trunk", "receivers"],
    "S3": ["access", "receiver"],
}
"""Routes of the three groups: ``trunk`` is T1 - T2, ``receiver`` T2 - R1, ``receivers`` T2 - R2."""

PACKETS = 2e6


def _marking(threshold_pkts: int, rate_gbit: int) -> dict[str, Any]:
    """Return a link of a switch that marks above a threshold K of its queue."""
    mark_at = f"{threshold_pkts * 12 / rate_gbit:g}us"
    return {
        "rate": f"{rate_gbit}gbit",
        "delay": "10us",
        "buffer": "2666pkt",
        "queue": {"kind": "codel", "target": "1s", "interval": "2s", "ce_threshold": mark_at},
    }


def _cells(lines: Lines) -> Iterator[Cell]:
    flows = {line["senders"]: int(line["flows"]) for line in lines}
    allowed = {line["senders"]: 0.1 * float(line["mbps_each"]) for line in lines}
    values = [
        Value(
            f"goodput of each sender of {line['senders']}",
            "Mbit/s",
            float(line["mbps_each"]),
            AllowedDifference(absolute=allowed[line["senders"]]),
            class_reader("goodput_bps", line["senders"], 1e-6 / int(line["flows"])),
        )
        for line in lines
    ]
    access = {"rate": "1gbit", "delay": "10us", "each": "sender"}
    links = {
        "access": access,
        "trunk": _marking(65, 10),
        "receiver": _marking(20, 1),
        "receivers": _marking(20, 1) | {"each": "sender"},
    }
    classes = [
        {"name": name, "flows": flows[name], "route": route, "delay": "40us", "back_delay": "60us"}
        for name, route in ROUTES.items()
    ]
    yield Cell(
        ("Figure 17",),
        "Figure 17",
        {
            "link": links,
            "class": classes,
            "traffic": {"kind": "bulk"},
            # The default of 100 us, for hosts of the Internet, is as long as the round-trip time.
            "tcp": {"stack": "dctcp", "host_noise": "2us"},
            "run": {"duration": "3s", "warmup": "1s"},
            "probes": {"link": "receiver"},
        },
        tuple(values),
        PACKETS,
    )


TWO_BOTTLENECKS = CellSet(
    "Two bottlenecks",
    "Senders behind one and behind two congested links",
    ("figure",),
    "two_bottlenecks.csv",
    _cells,
    (
        "Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010, Figure 17: 20 flows share T2 - R1 "
        "(1 Gbit/s), and 10 of them also share T1 - T2 (10 Gbit/s) with 20 flows to R2. The "
        "switches mark above K = 20 packets at 1 Gbit/s and 65 at 10 Gbit/s; links have delays of "
        "10 us. Here, the threshold is the transmission time of K packets (CoDel's ce_threshold), "
        "and hosts process packets with a noise of 2 us, as in the scenario incast.",
        "The example dctcp-example.cc of ns-3 gives 23, 471 and 74 Mbit/s; max-min shares are 50, "
        "475 and 50 Mbit/s.",
    ),
    PACKAGE,
)

PAPER: Paper[SampleSizes, PublishedRuns] = Paper(
    package=PACKAGE,
    title="DCTCP through two bottlenecks",
    simulations=partial(PublishedRuns, sets=(TWO_BOTTLENECKS,)),
    whole=SampleSizes(seeds=4, packets=1e8),
    quick=SampleSizes(seeds=2, packets=2e7),
    parts=(SetSections((TWO_BOTTLENECKS,)),),
    preface=published.preface,
)

reproduce = partial(published.reproduce, paper=PAPER, sets=(TWO_BOTTLENECKS,))
"""Like :func:`tcpcast_papers.published.description.reproduce`, for the figure."""
