"""File goodput: exact on an idle path, and against an independent simulator."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from tcpcast.answer import Answer
from tcpcast.scenario import Scenario
from test_many_sources import local_loop, simulate

BITS = 8 * 1500


def loop(sources: int, *, probes: dict[str, Any] | None = None, **changes: Any) -> Scenario:
    """The local loop with probes, over 180 s after the warm-up."""
    tables = local_loop(sources, **{"run": {"duration": "300s", "warmup": "120s"}, **changes})
    return Scenario.from_dict({**tables.resolved(), "probes": probes or {}})


@cache
def simulate_loop(sources: int) -> Answer:
    """Run the local loop over 180 s after the warm-up, or 80 s if all files have the same size."""
    duration = "300s" if sources <= 5000 else "200s"
    return simulate(loop(sources, run={"duration": duration, "warmup": "120s"}))


def goodput_levels(answer: Answer) -> dict[float, float]:
    table = answer.tables["file_goodput"]
    return dict(zip(table["share"].tolist(), table["goodput_bps"].tolist(), strict=True))


@pytest.mark.parametrize(
    ("sources", "levels_kbps"),
    [
        (2500, (340, 424, 524, 942)),
        (5000, (305, 379, 461, 736)),
        (7500, (37.8, 38.3, 38.8, 39.8)),
        (10_000, (19.4, 19.6, 19.7, 20.0)),
    ],
)
def test_goodput_quantiles_agree(sources: int, levels_kbps: tuple[float, ...]) -> None:
    answer = simulate_loop(sources)
    table = answer.tables["file_goodput"]
    assert table["share"].tolist() == [0.95, 0.9, 0.8, 0.5]
    for level, result, low, high in zip(
        levels_kbps, table["goodput_bps"], table["low"], table["high"], strict=True
    ):
        assert low <= result <= high
        is_close = result == pytest.approx(1e3 * level, rel=0.03)
        assert is_close or low <= 1e3 * level <= high


def test_timeouts_per_packet_are_timeouts_over_packets() -> None:
    answer = simulate_loop(7500)
    expected = answer["timeouts"] / (answer["send_rate_pps"] * 80)
    assert answer["timeout_ratio"] == pytest.approx(expected, rel=1e-9)
    assert 0.001 < expected < 0.003


def isolated_source(size: str, stack: dict[str, Any], connection: str, **probes: Any) -> Answer:
    """Files of a single source on an idle path, which all take the same time."""
    scenario = {
        "network": {"bottleneck": {"rate": "12mbit", "delay": "20ms"}, "egress": {"delay": "30ms"}},
        "traffic": {
            "kind": "on-off",
            "sources": 1,
            "off": {"distribution": "exponential", "mean": "1s"},
            "size": {"distribution": "constant", "value": size},
            "connection": connection,
        },
        "tcp": {"receiver_window": 4, "initial_window": 4, **stack},
        "run": {"transfers": 200, "warmup": "5s"},
        "probes": probes,
    }
    return simulate(Scenario.from_dict(scenario))


@pytest.mark.parametrize("stack", ["rfc-newreno", "max-plus-reno"])
@pytest.mark.parametrize("connection", ["new", "persistent"])
def test_idle_path_time_is_transmission_and_propagation(stack: str, connection: str) -> None:
    """Four packets of 1 ms plus 50 ms; four more one round later, after 101 ms and 27 us."""
    tcp = {"stack": stack, "idle_restart": "never"}
    first = 4 * BITS / 0.054
    result = goodput_levels(isolated_source("4pkt", tcp, connection))
    assert list(result.values()) == pytest.approx([first] * 4, rel=0.008)
    answer = isolated_source("8pkt", tcp, connection, goodput_packets=4, goodput_least="4pkt")
    round_s = 0.1 + 1540 * 8 / 12e6
    both = 8 * BITS / (round_s + 0.054)
    assert list(goodput_levels(answer).values()) == pytest.approx([both] * 4, rel=0.008)
    tail = answer.tables["file_goodput_tail"]
    by_packets = dict(zip(tail["goodput_bps"], tail["by_packets"], strict=True))
    second = 4 * BITS / round_s
    assert {by_packets[g] for g in by_packets if second * 1.02 < g < first / 1.02} == {0.5}
    assert np.array_equal(tail["by_file"], tail["by_large_file"])


def test_goodput_of_a_block_of_file_length_equals_file_goodput() -> None:
    table = isolated_source("10pkt", {}, "new", goodput_packets=10).tables["file_goodput_tail"]
    assert np.array_equal(table["by_packets"], table["by_file"])
    assert "by_large_file" not in table, "no file has more than 10 packets"


def test_blocks_are_absent_by_default() -> None:
    answer = simulate(loop(300))
    assert list(answer.tables["file_goodput_tail"]) == ["goodput_bps", "by_file", "by_large_file"]


def test_classes_add_up_to_the_total() -> None:
    tables = local_loop(400).resolved()
    classes = [
        {"name": "near", "sources": 300},
        {"name": "far", "sources": 100, "ingress": {"delay": "130ms"}},
    ]
    del tables["traffic"]["sources"]
    answer = simulate(Scenario.from_dict({**tables, "class": classes}))
    table = answer.tables["file_goodput_by_class"]
    assert table["name"].tolist() == ["near"] * 4 + ["far"] * 4
    near, far = table["goodput_bps"][:4], table["goodput_bps"][4:]
    whole = np.array(list(goodput_levels(answer).values()))
    assert (far < 0.6 * near).all()
    assert ((far < whole) & (whole < near)).all()
    assert "file_goodput_by_class" not in simulate(loop(300)).tables


def test_larger_files_are_faster() -> None:
    table = simulate(loop(300)).tables["file_goodput_by_size"]
    assert list(table) == ["low_pkts", "high_pkts", "goodput_median_bps"]
    assert (np.diff(table["goodput_median_bps"]) > 0).all()


def test_arriving_transfers_have_goodput_and_isolated_ones_none() -> None:
    arriving = {
        "network": {"rtt": "50ms", "bottleneck": {"rate": "10mbit", "buffer": "100pkt"}},
        "traffic": {
            "kind": "transfers",
            "size": "20pkt",
            "arrivals": {"distribution": "poisson", "rate": "20/s"},
        },
        "run": {"duration": "60s", "warmup": "5s"},
    }
    table = simulate(Scenario.from_dict(arriving)).tables["file_goodput"]
    assert (np.diff(table["goodput_bps"]) > 0).all()
    isolated = {**arriving, "traffic": {"kind": "transfers", "size": "20pkt"}, "run": {}}
    assert "file_goodput" not in simulate(Scenario.from_dict(isolated)).tables
    bulk = {**arriving, "traffic": {"kind": "bulk", "flows": 2}}
    assert "file_goodput" not in simulate(Scenario.from_dict(bulk)).tables
