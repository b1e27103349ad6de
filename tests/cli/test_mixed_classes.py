"""Classes with different kinds of traffic: each has its own means and percentiles."""

from typing import Any

import pytest
import tcpcast
from tcpcast import Scenario
from tcpcast.report.figures import iter_figures
from tcpcast.report.main_metrics import percentile_table


def on_off(size: str, off: str) -> dict[str, Any]:
    distribution = {"distribution": "exponential", "mean": off}
    return {
        "kind": "on-off",
        "size": {"distribution": "constant", "value": size},
        "off": distribution,
    }


MIXED = Scenario.from_dict(
    {
        "name": "game-and-video",
        "network": {"rtt": "20ms", "bottleneck": {"rate": "100mbit", "buffer": "100pkt"}},
        "tcp": {"stack": "linux-cubic"},
        "class": [
            {"name": "game", "sources": 50, "traffic": on_off("1pkt", "50ms")},
            {"name": "video", "sources": 20, "traffic": on_off("1700pkt", "1s")},
        ],
        "run": {"duration": "20s", "warmup": "2s"},
    }
)


def test_classes_have_own_percentiles_and_no_common_mean() -> None:
    answers = tcpcast.run(MIXED, engines=["packet"])
    table = answers["packet"].tables["percentiles"]
    rows = list(zip(table["class"], table["quantity"], table["p50"], strict=True))
    names = [row[:2] for row in rows]
    files = [
        (name, quantity)
        for name in ("game", "video")
        for quantity in ("on_time", "connection_rate")
    ]
    assert names == [*files, ("", "queue")]
    medians = {row[0]: row[2] for row in rows if row[1] == "on_time"}
    assert medians["video"] > 10 * medians["game"]
    shown = str(answers)
    before_classes = shown[: shown.index("class game", shown.index("percentiles"))]
    assert "ON time, game" in before_classes
    assert "ON time  " not in before_classes.partition("percentiles")[0]
    assert "file goodput by class" in shown
    assert shown.count("file goodput") == 1
    assert "shared_rate_bps" not in answers["packet"].tables["states"]
    figures = [name for name, _ in iter_figures(answers, MIXED)]
    assert "sharing" not in figures


def test_last_size_interval_has_no_upper_end() -> None:
    transfers = {
        "kind": "transfers",
        "size": {"distribution": "exponential", "mean": "5000pkt"},
        "arrivals": {"distribution": "poisson", "rate": "1.5/s"},
    }
    one = Scenario.from_dict(
        {
            "name": "one",
            "network": {"rtt": "20ms", "bottleneck": {"rate": "200mbit", "buffer": "100pkt"}},
            "tcp": {"stack": "linux-cubic"},
            "traffic": transfers,
            "run": {"duration": "30s", "warmup": "0s"},
        }
    )
    table = percentile_table(tcpcast.run(one, engines=["packet"]), {})
    assert table is not None
    assert "completion time, 4,097 packets or more" in table.columns[0].cells


WEB_AND_LONG = {
    "network": {"rtt": "50ms", "bottleneck": {"rate": "10mbit", "buffer": "100pkt"}},
    "tcp": {"stack": "linux-reno"},
    "class": [
        {
            "name": "web",
            "traffic": {
                "kind": "transfers",
                "size": "20pkt",
                "arrivals": {"distribution": "poisson", "rate": "10/s"},
            },
        },
        {"name": "long", "traffic": {"kind": "bulk", "flows": 2}},
    ],
    "run": {"transfers": 200, "warmup": "2s"},
}


def test_arriving_transfers_share_link_with_long_flows() -> None:
    scenario = Scenario.from_dict(WEB_AND_LONG)
    mixed = tcpcast.run(scenario, engines=["packet"])["packet"]
    classes = mixed.tables["by_class"]
    assert list(classes["name"]) == ["web", "long"]
    assert mixed.metrics["transfers"].value >= 200
    web, long = classes["goodput_bps"]
    assert web + long == pytest.approx(mixed.metrics["goodput_bps"].value, rel=0.01)
    assert web == pytest.approx(8 * 1448 * 20 * 10, rel=0.2)
    # Long flows also count as active senders, so their number does not determine a file rate.
    assert "rates" not in mixed.tables
    assert "shared_rate_bps" not in mixed.tables["states"]
    web_only = scenario.with_changes({"class.long.traffic.flows": 1, "class.long.stop": "1s"})
    quick = tcpcast.run(web_only, engines=["packet"])["packet"].metrics["completion_time_s"].value
    assert mixed.metrics["completion_time_s"].value > 1.5 * quick


@pytest.mark.parametrize("engine", ["engset", "mathis", "cardwell", "mean-field", "fixed-point"])
def test_other_engines_reject_class_of_transfers_with_suggestion(engine: str) -> None:
    changes = {"tcp.stack": "max-plus-reno", "run": {"duration": "9s"}}
    scenario = Scenario.from_dict(WEB_AND_LONG).with_changes(
        changes if engine == "fixed-point" else {}
    )
    answer = tcpcast.run(scenario, engines=[engine])[engine]
    assert answer.not_applicable is not None
    assert "\n" not in answer.not_applicable
    assert "use " in answer.not_applicable
    if engine in ("mean-field", "fixed-point"):
        assert "web" in answer.not_applicable
