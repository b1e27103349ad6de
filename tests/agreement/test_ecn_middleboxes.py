"""Middleboxes that change the ECN field: nothing stalls, and the results show the harm."""

from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast.process.errors import ScenarioError
from tcpcast.scenario import Scenario

_STACKS = ("prague", "linux-cubic")


def _run(
    remark: Any, *, place: str = "before", ecn: bool | str = True, of_cubic: bool = True
) -> dict[str, dict[str, float]]:
    """Return the values of Prague and CUBIC on the bottleneck, by class."""
    line = {"rate": "40mbit", "buffer": "500pkt", "queue": "dualpi2"}
    links = {"line": line, "middlebox": {"remark": remark}}
    route = ["middlebox", "line"] if place == "before" else ["line", "middlebox"]
    flows = {"flows": 1, "route": route, "delay": "5ms"}
    tables: dict[str, Any] = {
        "link": links,
        "class": [
            flows | {"name": stack, "tcp": {"stack": stack, "ecn": use}}
            for stack, use in zip(_STACKS, (ecn, of_cubic and ecn), strict=True)
        ],
        "traffic": {"kind": "bulk"},
        "run": {"duration": "20s", "warmup": "5s"},
        "probes": {"link": "line"},
    }
    if remark is None:
        del links["middlebox"]["remark"]
    (answer,) = tcpcast.run(Scenario.from_dict(tables), ["packet"])
    table = answer.tables["by_link_class"]
    return {
        stack: {
            key: column[(table["class"] == stack) & (table["link"] == "line")].item()
            for key, column in table.items()
        }
        for stack in _STACKS
    }


def test_bleached_packets_of_prague_wait_and_are_dropped_in_the_classic_queue() -> None:
    intact, bleached = _run(None), _run("bleach")
    assert intact["prague"]["queue_delay_p99_s"] < 0.003
    for stack in _STACKS:
        assert intact[stack]["ecn_mark_ratio"] > 0
        assert bleached[stack]["ecn_mark_ratio"] == 0
        assert bleached[stack]["loss_ratio"] > 0
        assert bleached[stack]["queue_delay_mean_s"] == pytest.approx(0.015, abs=0.005)
        assert bleached[stack]["rate_bps"] > 5e6


def test_lost_marks_fill_the_queue_until_it_drops() -> None:
    """Behind the queue, CE becomes ECT(1): Prague does not react to marks, only to overload."""
    cleared = _run({"ce": "ect1"}, place="behind", of_cubic=False)
    prague, cubic = (cleared[stack] for stack in _STACKS)
    # The harm: Prague takes nearly the whole link, and the delay of its queue is that of overload.
    assert prague["rate_bps"] > 9 * cubic["rate_bps"]
    assert prague["queue_delay_mean_s"] > 0.01
    assert cubic["rate_bps"] > 10_000
    assert prague["ecn_mark_ratio"] > 0.9


def test_ect1_as_ect0_uses_the_classic_queue() -> None:
    changed = _run({"ect1": "ect0"})
    assert changed["prague"]["queue_delay_mean_s"] == pytest.approx(0.015, abs=0.005)
    assert changed["prague"]["ecn_mark_ratio"] > 0
    # Prague's response to the few marks of a classic queue is weaker than that of CUBIC.
    assert changed["prague"]["rate_bps"] > 4 * changed["linux-cubic"]["rate_bps"]


@pytest.mark.parametrize("ecn", [True, "accurate"])
@pytest.mark.parametrize("place", ["before", "behind"])
@pytest.mark.parametrize("remark", ["random", {"kind": "random", "share": "1%"}])
def test_random_codepoints_stall_nothing(remark: Any, place: str, ecn: bool | str) -> None:
    values = _run(remark, place=place, ecn=ecn)
    rates = np.array([values[stack]["rate_bps"] for stack in _STACKS])
    # A quarter of all packets marked at random leaves at least a few packets per RTT of 10 ms.
    assert (rates > 200_000).all(), rates
    if remark != "random":
        assert rates.sum() > 25e6


def test_the_fields_are_written_as_typed() -> None:
    tables: dict[str, Any] = {
        "link": {"line": {"rate": "10mbit"}},
        "class": [{"name": "a", "flows": 1, "route": ["line"], "delay": "5ms"}],
        "traffic": {"kind": "bulk"},
        "tcp": {"stack": "linux-cubic"},
        "run": {"duration": "1s"},
    }
    share = {"ce": "ect0", "share": "5%"}
    for remark in ("bleach", "random", {"ect1": "ect0"}, share, {"kind": "random", "share": "5%"}):
        tables["link"]["line"]["remark"] = remark
        assert Scenario.from_dict(tables).resolved()["link"]["line"]["remark"] == remark
    for wrong, problem in (
        ("blech", '"blech" does not change the ECN field; use "bleach", "random" or'),
        ({"ect2": "ect0"}, '"ect2" is not an ECN codepoint; use "not-ect", "ect1", "ect0", "ce"'),
        ({"ect1": 7}, "7 is not an ECN codepoint"),
        ({"share": "5%"}, "changes nothing"),
        ({"kind": "bleach", "ce": "ect0"}, "kind and codepoints are mutually exclusive; use one"),
        ({"ce": "ect0", "share": "0%"}, "a share of 0 changes nothing"),
        (3, "3 does not change the ECN field"),
    ):
        tables["link"]["line"]["remark"] = wrong
        with pytest.raises(ScenarioError) as error:
            Scenario.from_dict(tables)
        assert str(error.value).startswith("link.line.remark: ")
        assert problem in str(error.value)
