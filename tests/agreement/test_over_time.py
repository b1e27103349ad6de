"""Tables over time describe the run and do not change it."""

from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast.engines.packet import time_series
from tcpcast.report.answers import Answers
from tcpcast.scenario import Scenario

TABLES = {"queue_over_time", "flows_over_time", "windows_over_time", "completion_distribution"}

BULK: dict[str, Any] = {
    "name": "bulk",
    "network": {"rtt": "40ms", "bottleneck": {"rate": "5mbit", "buffer": "30pkt"}},
    "traffic": {"kind": "bulk"},
    "tcp": {"stack": "rfc-newreno"},
    "class": [{"name": "near", "flows": 2}, {"name": "far", "flows": 1, "rtt": "120ms"}],
    "run": {"duration": "41s", "warmup": "7s", "replications": 4},
}


def make_scenario(**changes: Any) -> Scenario:
    return Scenario.from_dict(BULK).with_changes(
        {k.replace("__", "."): v for k, v in changes.items()}
    )


def simulate(scenario: Scenario, over_time: bool = True) -> Answers:
    return tcpcast.run(scenario, "packet", threads=1, over_time=over_time)


def mean(table: dict[str, Any], column: str, begin: float) -> float:
    """Return the mean over time of rows that begin at ``begin`` or later."""
    late = table["from_s"] >= begin - 1e-9
    spans = (table["to_s"] - table["from_s"])[late]
    return float(table[column][late] @ spans / spans.sum())


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"network__bottleneck__queue": "red"},
        {"network__bottleneck__queue": "fq"},
        {"network__bottleneck__queue": "codel"},
        {"tcp__stack": "linux-cubic"},
        {"network__bottleneck__rate": {"bucket": "5mbit", "burst": "30KB"}},
        {"cross": [{"model": "fgn", "mean": "40%", "sd": "20%", "hurst": 0.7, "bin": "10ms"}]},
        {"traffic": {"kind": "stream", "ladder": ["0.2mbit", "1mbit", "3mbit"]}},
    ],
)
def test_tables_do_not_change_the_run(changes: dict[str, Any]) -> None:
    scenario = make_scenario(**changes)
    (without_tables,), (with_tables,) = simulate(scenario, over_time=False), simulate(scenario)
    assert not TABLES & without_tables.tables.keys()
    assert with_tables.metrics == without_tables.metrics
    assert with_tables.warnings == without_tables.warnings
    for name, table in without_tables.tables.items():
        for column, values in table.items():
            np.testing.assert_array_equal(values, with_tables.tables[name][column])


def test_tables_cover_the_whole_run_and_add_up_to_the_metrics() -> None:
    (answer,) = simulate(make_scenario())
    queue, flows = (answer.tables[f"{name}_over_time"] for name in ("queue", "flows"))
    for table in (queue, *(rows(flows, name) for name in ("near", "far"))):
        assert table["from_s"][0] == 0
        assert table["to_s"][-1] == pytest.approx(41)
        np.testing.assert_array_equal(table["from_s"][1:], table["to_s"][:-1])
        assert 100 < len(table["to_s"]) <= time_series.MAX_SLOTS
    begin = queue["from_s"][queue["from_s"] >= 7][0]
    late = Answers(
        list(simulate(make_scenario(run__warmup=f"{begin}s"), over_time=False)), make_scenario()
    )[0]
    assert mean(queue, "queue_pkts", begin) == pytest.approx(late["queue_mean_pkts"], rel=1e-6)
    goodput = sum(mean(rows(flows, name), "goodput_bps", begin) for name in ("near", "far"))
    assert goodput == pytest.approx(late["goodput_bps"], rel=1e-6)
    assert np.nanmin(rows(flows, "far")["rtt_s"]) > np.nanmin(rows(flows, "near")["rtt_s"]) > 0.04


def rows(table: dict[str, Any], name: str) -> dict[str, Any]:
    return {column: values[table["class"] == name] for column, values in table.items()}


def test_three_replications_give_intervals() -> None:
    queue = simulate(make_scenario())[0].tables["queue_over_time"]
    is_known = np.isfinite(queue["queue_pkts_low"])
    assert is_known.all()
    assert (queue["queue_pkts_low"] <= queue["queue_pkts"]).all()
    assert (queue["queue_pkts"] <= queue["queue_pkts_high"]).all()
    queue = simulate(make_scenario(run__replications=2))[0].tables["queue_over_time"]
    assert np.isnan(queue["queue_pkts_low"]).all()


def test_windows_are_shown_for_one_flow_per_class_within_the_trace() -> None:
    scenario = make_scenario(run__replications=1)
    windows = simulate(scenario)[0].tables["windows_over_time"]
    assert sorted({*zip(windows["class"].tolist(), windows["flow"].tolist(), strict=True)}) == [
        ("far", 2), ("near", 0),
    ]  # fmt: skip
    assert (windows["low_pkts"] <= windows["mean_pkts"] + 1e-9).all()
    assert (windows["mean_pkts"] <= windows["high_pkts"] + 1e-9).all()
    traced = simulate(scenario.with_changes({"probes.flows": [2]}), over_time=False)[0].tables[
        "windows"
    ]
    far = windows["class"] == "far"
    assert windows["high_pkts"][far].max() == traced["cwnd_pkts"].max()
    assert "sequences" not in simulate(scenario)[0].tables


def test_window_of_a_stopped_flow_ends() -> None:
    """Regression: figures drew the last window as a line until the end of the run."""
    scenario = make_scenario(run__replications=1)
    stop_s = 24.0
    stopped = scenario.with_changes({"class.far.stop": f"{stop_s}s"})
    windows = simulate(stopped)[0].tables["windows_over_time"]
    ends = {name: windows["to_s"][windows["class"] == name].max() for name in ("near", "far")}
    assert 0.9 * stop_s < ends["far"] <= stop_s
    assert ends["near"] > 1.5 * stop_s


def test_replications_of_different_lengths_are_combined() -> None:
    scenario = Scenario.from_dict(
        {
            "name": "files",
            "network": {"rtt": "20ms", "bottleneck": {"rate": "2mbit", "buffer": "20pkt"}},
            "traffic": {
                "kind": "on-off",
                "sources": 3,
                "size": {"distribution": "exponential", "mean": "20pkt"},
                "off": {"distribution": "exponential", "mean": "1s"},
            },
            "tcp": {"stack": "rfc-newreno"},
            "run": {"transfers": 40, "warmup": "1s", "replications": 9},
        }
    )
    (answer,) = simulate(scenario)
    table = answer.tables["flows_over_time"]
    assert table["to_s"][-1] == pytest.approx(max(answer.provenance["simulated_s"]))
    assert np.isfinite(table["goodput_bps"]).all()
    distribution = answer.tables["completion_distribution"]
    assert "size_pkts" not in distribution
    assert distribution["transfers"][0] == 9 * 40
    assert distribution["share"][-1] == 1.0
    assert (np.diff(distribution["share"]) > 0).all()
    assert np.isfinite(distribution["low"]).all()


def test_isolated_transfer_distributions_agree_with_percentiles() -> None:
    scenario = Scenario.from_dict(
        {
            "name": "short",
            "network": {
                "rtt": "100ms",
                "bottleneck": {"rate": "10mbit", "buffer": "unlimited", "loss": "5%"},
            },
            "traffic": {"kind": "transfers", "size": ["1pkt", "10pkt", "40pkt"], "count": 400},
            "run": {"seed": 1},
            "tcp": {"stack": "rfc-newreno"},
        }
    )
    (answer,) = simulate(scenario)
    assert "queue_over_time" not in answer.tables
    distribution, by_size = answer.tables["completion_distribution"], answer.tables["by_size"]
    assert sorted(set(distribution["size_pkts"].tolist())) == [1, 10, 40]
    for index, size in enumerate(by_size["size_pkts"].tolist()):
        of_size = {
            name: column[distribution["size_pkts"] == size] for name, column in distribution.items()
        }
        for share, name in ((0.5, "p50"), (0.95, "p95")):
            reached_shares = of_size["time_s"][np.searchsorted(of_size["share"], share)]
            assert reached_shares == pytest.approx(by_size[name][index], rel=0.02)
        contains_share = (of_size["low"] <= of_size["share"]) & (
            of_size["share"] <= of_size["high"]
        )
        assert contains_share.all()
        middle = np.abs(of_size["share"] - 0.5).argmin()
        assert 0.02 < of_size["high"][middle] - of_size["low"][middle] < 0.12


FILM: dict[str, Any] = {
    "name": "film",
    "network": {"rtt": "40ms", "bottleneck": {"rate": "20mbit", "buffer": "100pkt"}},
    "class": [
        {
            "name": "film",
            "flows": 2,
            "stop": "30s",
            "traffic": {"kind": "stream", "ladder": ["0.5mbit", "1mbit", "2mbit"]},
        },
        {"name": "tv", "flows": 1, "traffic": {"kind": "stream", "rate": "1mbit"}},
        {"name": "copy", "flows": 1, "start": "20s", "traffic": {"kind": "bulk"}},
    ],
    "run": {"duration": "40s", "warmup": "5s", "replications": 1},
}


def test_players_have_a_buffer_and_a_quality_over_time() -> None:
    (answer,) = simulate(Scenario.from_dict(FILM))
    table = answer.tables["flows_over_time"]
    film, tv, copy = (
        {name: column[table["class"] == each] for name, column in table.items()}
        for each in ("film", "tv", "copy")
    )
    # Segments of the lowest rate come first; those of the highest while 27 s are buffered.
    rates, buffers = film["video_rate_bps"], film["buffered_s"]
    playing = film["to_s"] <= 30.0
    assert rates[np.isfinite(rates)][0] == 0.5e6
    assert set(rates[playing & (film["from_s"] > 15.0)]) == {2e6}
    assert np.nanmax(buffers) <= 30.0
    assert np.nanmin(buffers) >= 0.0
    assert buffers[playing][-1] > 25.0
    assert np.isnan(buffers[~playing]).all()
    assert np.isnan(rates[~playing]).all()
    # Between two segments a full buffer plays: a slot takes its own length out of it.
    slots, changes = np.diff(tv["to_s"]), np.diff(tv["buffered_s"])
    late = tv["from_s"][1:] > 15.0
    played = np.isclose(changes, -slots, atol=1e-6)
    filled = np.isclose(changes, 2.0 - slots, atol=1e-6)
    assert (played | filled)[late].all()
    assert played[late].sum() > 5 * filled[late].sum() > 0
    assert np.isnan(tv["video_rate_bps"]).all()
    assert np.isnan(copy["buffered_s"]).all()
    assert "buffered_s" not in simulate(make_scenario())[0].tables["flows_over_time"]


def test_buffer_of_a_stalling_player_is_empty() -> None:
    changes = {
        "network.bottleneck.rate": "1mbit",
        "class": [
            {"name": "film", "flows": 1, "traffic": {"kind": "stream", "rate": "2mbit"}},
        ],
    }
    (answer,) = simulate(Scenario.from_dict(FILM).with_changes(changes))
    buffers = answer.tables["flows_over_time"]["buffered_s"]
    # Half of the time plays: from 4 s at each start to an empty buffer.
    assert 0.0 <= np.nanmin(buffers) < 0.2
    assert 3.5 < np.nanmax(buffers) <= 4.0
