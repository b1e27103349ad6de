"""Modern stacks in the network: full and shared links, transfers, files, hops."""

from typing import Any

import pytest
import tcpcast
from tcpcast.scenario import Scenario

LINK_PPS = 20e6 / 12e3
BASE: dict[str, Any] = {
    "network": {"rtt": "60ms", "bottleneck": {"rate": "20mbit", "buffer": "101pkt"}},
    "traffic": {"kind": "bulk", "flows": 1},
    "tcp": {"stack": "linux-cubic"},
    "run": {"duration": "70s", "warmup": "10s", "seed": 1},
}


def simulate(changes: dict[str, Any], *, threads: int | None = None) -> tcpcast.Answer:
    scenario = Scenario.from_dict(BASE).with_changes(changes)
    (answer,) = tcpcast.run(scenario, ["packet"], threads=threads)
    return answer


@pytest.mark.parametrize(
    ("stacks", "min_utilisation"),
    [
        (("linux-cubic", "linux-reno"), 0.05),
        (("linux-bbr", "linux-cubic"), 0.05),
        (("linux-cubic", "rfc-newreno"), 0.05),
        (("linux-bbr", "linux-cubic", "linux-reno", "rfc-reno"), 0.01),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, tuple) else None,
)
def test_classes_of_any_stack_share_a_link(stacks: tuple[str, ...], min_utilisation: float) -> None:
    classes = [{"name": name, "flows": 1, "tcp": {"stack": name}} for name in stacks]
    answer = simulate({"traffic": {"kind": "bulk"}, "class": classes, "run.duration": "130s"})
    rates = answer.tables["by_class"]["goodput_pps"]
    assert list(answer.tables["by_class"]["name"]) == list(stacks)
    assert sum(rates) == pytest.approx(LINK_PPS, rel=0.04)
    assert min(rates) / sum(rates) > min_utilisation
    assert 0 < answer["jain_index"] <= 1


def test_later_flows_get_their_share() -> None:
    classes = [
        {"name": name, "flows": 1, "traffic": {"kind": "bulk", "start": [start]}}
        for name, start in (("early", "0s"), ("late", "40s"))
    ]
    changes = {"traffic": {"kind": "bulk"}, "class": classes}
    before = simulate({**changes, "run.duration": "35s"})
    first, second = before.tables["by_class"]["goodput_pps"]
    assert first == pytest.approx(LINK_PPS, rel=0.02)
    assert second == 0
    both = simulate({**changes, "run.duration": "200s", "run.warmup": "100s"})
    first, second = both.tables["by_class"]["goodput_pps"]
    assert second / (first + second) > 0.2


@pytest.mark.parametrize("connection", ["new", "persistent"])
@pytest.mark.parametrize("stack", ["linux-cubic", "linux-bbr", "linux-reno-classic"])
def test_all_users_of_a_link_get_their_files(stack: str, connection: str) -> None:
    answer = simulate(
        {
            "traffic": {
                "kind": "on-off",
                "sources": 40,
                "off": {"distribution": "exponential", "mean": "1s"},
                "size": {"distribution": "exponential", "mean": "12pkt", "minimum": "3pkt"},
                "connection": connection,
            },
            "tcp.stack": stack,
            "run": {"transfers": 4000, "warmup": "5s", "seed": 1},
        }
    )
    # 40 files of 12 packets in a second and a few round trips: the link has enough capacity.
    assert 0.06 < answer["on_time_s"] < 0.4
    assert answer["loss_ratio"] < 0.02
    assert answer["mean_size_pkts"] == pytest.approx(12, rel=0.05)
