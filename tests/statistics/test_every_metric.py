"""Each row of ``METRICS`` has an estimate in some scenario; a row that no code estimates fails."""

from typing import Any

import tcpcast
from tcpcast.answer.metrics import METRICS
from tcpcast.scenario import Scenario

LENGTH = {"duration": "20s", "warmup": "2s", "seed": 1}
FIRST = {"name": "first", "rate": "20mbit", "buffer": "10pkt"}
SECOND = {"name": "second", "rate": "10mbit", "buffer": "50pkt", "queue": "codel", "loss": "6%"}
BOTTLENECK = {"rate": "10mbit", "buffer": "50pkt"}
SCENARIOS: tuple[dict[str, Any], ...] = (
    {
        "network": {
            "rtt": "50ms",
            "hop": [FIRST, SECOND],
            "return": {"rate": "100kbit", "buffer": "20pkt"},
        },
        "traffic": {"kind": "bulk", "flows": 4},
        "tcp": {"stack": "linux-cubic", "ecn": True},
        "run": LENGTH,
    },
    {
        "network": {"rtt": "50ms", "bottleneck": BOTTLENECK},
        "traffic": {"kind": "on-off", "sources": 50, "connection": "persistent"}
        | {
            "off": {"distribution": "exponential", "mean": "1s"},
            "size": {"distribution": "exponential", "mean": "12pkt"},
        },
        "tcp": {"stack": "linux-reno", "handshake": "tcp"},
        "run": LENGTH,
    },
    {
        "network": {"rtt": "50ms", "bottleneck": BOTTLENECK},
        "traffic": {"kind": "transfers", "size": ["3pkt", "20pkt"]}
        | {"arrivals": {"distribution": "poisson", "rate": "30/s"}},
        "tcp": {"stack": "linux-reno", "handshake": "tcp"},
        "run": LENGTH,
    },
    {
        "network": {"rtt": "50ms", "bottleneck": BOTTLENECK},
        "class": [{"name": "first", "flows": 1}, {"name": "late", "flows": 1, "start": "3s"}],
        "traffic": {"kind": "bulk"},
        "tcp": {"stack": "linux-cubic"},
        "run": LENGTH,
    },
)


NETWORKS: tuple[dict[str, Any], ...] = (
    {
        "link": {"core": BOTTLENECK},
        "class": [
            {"name": "web", "flows": 4, "traffic": {"kind": "requests", "answer": "20KB"}},
            {
                "name": "game",
                "flows": 2,
                "traffic": {"kind": "messages", "size": "200B", "interval": "20ms"},
            },
        ],
    },
    {
        "link": {"core": BOTTLENECK},
        "class": [
            {
                "name": "film",
                "flows": 2,
                "traffic": {"kind": "stream", "ladder": ["3mbit", "6mbit"]},
            },
            {"name": "page", "sources": 4, "traffic": {"kind": "page", "objects": "text"}},
        ],
    },
)
for tables in NETWORKS:
    for entry in tables["class"]:
        entry |= {"route": ["core"], "delay": "20ms"}
SCENARIOS += tuple(tables | {"run": LENGTH | {"duration": "60s"}} for tables in NETWORKS)


def test_every_metric_of_the_registry_is_estimated() -> None:
    estimated: set[str] = set()
    for document in SCENARIOS:
        (answer,) = tcpcast.run(Scenario.from_dict(document), engines=["packet"])
        estimated |= answer.metrics.keys()
    # Round trips per minute need a ping beside flows: tests/agreement/test_latency_under_load.py.
    assert estimated | {"rpm"} == METRICS.keys()
