"""Intervals of the packet engine: withheld or flagged if the data is insufficient."""

import json
import math
import re
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast.engines.packet.reliability import withhold_goodput_intervals
from tcpcast.engines.packet.size_moments import mean_drawn_size_pkts, rare_size_share_of_square_mean
from tcpcast.scenario import OnOff, parse_assignments
from tcpcast.scenario.distributions import Distribution
from tcpcast.statistics import Estimate, estimate_ratio, required_run_length, unmet_precision
from tcpcast.statistics.quantiles import estimate_exceeded_value

from benches.coverage import DISTRIBUTIONS, Row, cells, rows


def simulate_packaged(name: str, **changes: Any) -> Any:
    scenario = tcpcast.load(name).with_changes(
        {key.replace("__", "."): value for key, value in changes.items()}
    )
    return tcpcast.run(scenario, engines=["packet"])


def test_single_file_has_neither_value_nor_interval() -> None:
    answers = simulate_packaged("web-10mbit", run__transfers=1)
    [document] = answers.to_json()["answers"]
    # Counts, and values of packets.
    known = {"transfers", "unfinished_transfers", "queue_max_pkts"}
    known |= {"queue_delay_p95_s", "queue_delay_p99_s"}
    for name, metric in document["metrics"].items():
        if name not in known:
            assert (metric["value"], metric["low"], metric["high"]) == (None, None, None), name
            assert metric["interval_warning"].startswith(
                "too few files: 1 file, but 100 are needed"
            )
    goodput = document["tables"]["file_goodput"]["columns"]
    assert goodput["goodput_bps"] == goodput["low"] == goodput["high"] == [None] * 4
    percentiles = document["tables"]["percentiles"]["columns"]
    assert percentiles["p50"][:2] == percentiles["p99"][:2] == [None, None]
    assert any("1 file, but 200 are needed" in warning for warning in document["warnings"])
    assert "too few files" in str(answers)
    json.dumps(document, allow_nan=False)


def test_fifty_files_have_values_without_intervals() -> None:
    answers = simulate_packaged("web-10mbit", run__transfers=50)
    result = answers["packet"].metrics["on_time_s"]
    assert math.isfinite(result.value)
    assert (result.low, result.high, result.missing_interval) == (None, None, "too few files")
    assert "too few files" in str(answers)


def test_run_of_a_few_cycles_is_too_short() -> None:
    answer = simulate_packaged("web-10mbit", run__transfers=300)["packet"]
    doubt = answer.metrics["on_time_s"].interval_warning
    assert doubt is not None
    assert doubt.startswith("the run is too short: ")
    assert any(doubt in warning for warning in answer.warnings)


@pytest.mark.parametrize(
    ("name", "metric", "reason", "changes"),
    [
        ("web-10mbit", "on_time_s", "the run is too short", {"run__transfers": 300}),
        ("web-10mbit", "on_time_s", "too few files", {"run__transfers": 20}),
        ("lossy-path", "loss_ratio", "the run is too short", {"run__duration": "21s"}),
    ],
)
def test_advised_run_settles_the_warning(
    name: str, metric: str, reason: str, changes: dict[str, Any]
) -> None:
    def warning_after(changes: dict[str, Any]) -> str:
        metrics = simulate_packaged(name, **changes)["packet"].metrics
        return metrics[metric].interval_warning or ""

    warning = warning_after(changes)
    assert warning.startswith(reason)
    advice = re.search(r'run longer \((run\.\w+) = "?(\w+)"?\)', warning)
    assert advice is not None, warning
    longer = parse_assignments([f"{advice[1]}={advice[2]}"])
    assert not warning_after(changes | longer).startswith(reason)


def test_nearly_equal_timeouts_have_no_interval() -> None:
    result = simulate_packaged("lossy-path", run__duration="60s")["packet"].metrics["t0_s"]
    assert (result.low, result.high) == (None, None)
    assert result.missing_interval in {"too few different values", "too few timeouts"}


@pytest.mark.parametrize(
    ("distribution", "message"),
    [("Pareto 1.5", "no number of files is enough"), ("lognormal sd 10", "are needed")],
)
def test_heavy_tail_has_a_note_with_the_sampled_mean(distribution: str, message: str) -> None:
    scenario = tcpcast.load("web-10mbit").with_changes(
        {"traffic.size": DISTRIBUTIONS[distribution], "run.transfers": 5000}
    )
    answer = tcpcast.run(scenario, engines=["packet"])["packet"]
    [warning] = [w for w in answer.warnings if w.startswith("file sizes vary too much")]
    assert message in warning
    assert "but the mean of the distribution is" in warning
    assert warning.endswith("check every interval")
    assert answer.metrics["goodput_bps"].interval_warning is not None


def size_of(scenario: tcpcast.Scenario) -> Distribution[Any]:
    traffic = scenario.traffic
    assert isinstance(traffic, OnOff)
    assert isinstance(traffic.size, Distribution)
    return traffic.size


def test_mean_and_unseen_share_follow_from_the_size_distribution() -> None:
    scenario = tcpcast.load("web-10mbit")
    exponential = size_of(scenario)
    sizes = np.maximum(1, np.rint(3 + np.random.default_rng(1).exponential(9, 10**6)))
    assert mean_drawn_size_pkts(exponential) == pytest.approx(sizes.mean(), rel=3e-3)
    one_in = 3 + 9 * math.log(1000)
    expected = (sizes**2)[sizes > one_in].sum() / (sizes**2).sum()
    assert rare_size_share_of_square_mean(exponential, 1000) == pytest.approx(expected, rel=0.15)
    pareto = size_of(scenario.with_changes({"traffic.size": DISTRIBUTIONS["Pareto 1.5"]}))
    assert rare_size_share_of_square_mean(pareto, 1e12) == 1.0
    listed = {"distribution": "empirical", "values": ["3pkt", "40pkt"], "weights": [1, 3]}
    empirical = size_of(scenario.with_changes({"traffic.size": listed}))
    assert mean_drawn_size_pkts(empirical) == pytest.approx((3 + 3 * 40) / 4, rel=1e-6)


def test_precision_is_not_reached_with_a_flagged_interval() -> None:
    good = Estimate(1.0, 0.99, 1.01, 0.01, 32)
    target = {"loss_ratio": 0.1}
    assert not unmet_precision({"loss_ratio": good}, target)
    short = good.with_warning("the run is too short")
    assert unmet_precision({"loss_ratio": short}, target) == {"loss_ratio": "the run is too short"}
    assert required_run_length(100.0, {"loss_ratio": short}, target) == 150.0
    endless = good.with_warning("no number of files is enough", is_permanent=True)
    assert unmet_precision({"loss_ratio": endless}, target)
    assert required_run_length(100.0, {"loss_ratio": endless}, target) is None
    # A longer run removes one of two warnings.
    both = short.with_warning("no number of files is enough", is_permanent=True)
    assert required_run_length(100.0, {"loss_ratio": both}, target) == 150.0


def test_slow_fluctuations_behind_fast_ones_widen_the_interval() -> None:
    """Neighbours correlate by at most 0.2; the slow part determines the variance of the mean."""
    random = np.random.default_rng(20_090_517)
    covered, flagged, runs = 0, 0, 400
    for _ in range(runs):
        slow = np.zeros(32)
        slow[0] = random.standard_normal()
        for lag in range(1, 32):
            slow[lag] = 0.5 * slow[lag - 1] + math.sqrt(0.75) * random.standard_normal()
        result = estimate_ratio(10 + 0.7 * slow + random.standard_normal(32), np.ones(32))
        assert result is not None
        assert result.low is not None
        assert result.high is not None
        flagged += result.is_correlated
        covered += not result.is_correlated and result.low <= 10.0 <= result.high
    assert flagged / runs < 0.1
    assert covered / (runs - flagged) > 0.9


def test_quantile_of_few_values_is_nan() -> None:
    edges = np.arange(11.0)
    few = estimate_exceeded_value(np.eye(10)[:5], edges, 0.95)
    assert few is not None
    assert math.isnan(few.value)
    hundred = estimate_exceeded_value(np.tile(np.ones(10), (10, 1)), edges, 0.95)
    assert hundred is not None
    assert hundred.value == pytest.approx(0.5)
    assert hundred.low is None


TIMEOUTS = ("timeouts", "to_indications", "timeout_share", "timeout_ratio")
"""Metrics of one count, whose rows fail together."""


def failing(result: list[Row]) -> dict[str, str]:
    """Return one verdict for each independent metric that fails."""
    return {
        TIMEOUTS[0] if r.metric in TIMEOUTS else r.metric: f"{r.verdict} ({r.covered:.3f})"
        for r in result
        if "FAIL" in r.verdict
    }


@pytest.mark.long
@pytest.mark.parametrize(
    "cell", list(cells(quick=True)), ids=lambda cell: f"{cell.distribution}, {cell.length}"
)
def test_engine_intervals_cover_on_the_grid(cell: Any) -> None:
    with ProcessPoolExecutor(2) as pool:
        result = rows(cell, 400, pool)
    # One of about twenty rows at two standard errors may fail by chance.
    assert len(failing(result)) <= 2, failing(result)


def isolated_transfers(loss: str, count: int) -> Any:
    table = {
        "network": {"rtt": "40ms", "bottleneck": {"rate": "20mbit", "buffer": "500pkt"}},
        "traffic": {"kind": "transfers", "size": "6000pkt", "count": count},
        "tcp": {"host_noise": "0s"},
    }
    scenario = tcpcast.Scenario.from_dict(table).with_changes({"network.bottleneck.loss": loss})
    return tcpcast.run(scenario, engines=["packet"])["packet"].metrics["completion_time_s"]


def test_few_transfers_suffice_if_each_has_many_losses() -> None:
    many = isolated_transfers("2%", 1000)
    few = isolated_transfers("2%", 20)
    assert few.low <= many.value <= few.high
    assert few.interval_warning is None


def test_interval_per_size_requires_transfers_by_its_own_losses() -> None:
    table = {
        "network": {"rtt": "40ms", "bottleneck": {"rate": "20mbit", "buffer": "500pkt"}},
        "traffic": {"kind": "transfers", "size": ["7pkt", "6000pkt"], "count": 20},
    }
    lossless = tcpcast.Scenario.from_dict(table)
    lossy = lossless.with_changes({"network.bottleneck.loss": "2%"})
    few_losses, many_losses = _lows_by_size(lossy)
    assert math.isnan(few_losses)
    assert many_losses > 0.0
    assert all(low > 0.0 for low in _lows_by_size(lossless))


def _lows_by_size(scenario: Any) -> list[float]:
    (answer,) = tcpcast.run(scenario, engines=["packet"])
    return list(answer.tables["by_size"]["low"])


def test_few_transfers_with_few_losses_have_no_interval() -> None:
    assert isolated_transfers("0.05%", 20).missing_interval == "too few files"


def test_few_transfers_suffice_without_randomness() -> None:
    equal = isolated_transfers("0%", 20)
    assert equal.low == equal.value == equal.high


def marked(stack: str, *, ecn: bool, duration: str = "60s") -> Any:
    table = {
        "network": {
            "rtt": "100ms",
            "bottleneck": {"rate": "50mbit", "buffer": "1bdp", "queue": "codel"},
        },
        "traffic": {"kind": "bulk", "flows": 1},
        "tcp": {"stack": stack, "ecn": ecn},
        "run": {"duration": duration, "warmup": "5s", "replications": 2},
    }
    return tcpcast.run(tcpcast.Scenario.from_dict(table), engines=["packet"])["packet"]


def test_marks_limit_the_window_like_losses() -> None:
    result = marked("linux-cubic", ecn=True)
    assert result["loss_ratio"] == 0.0 < result["ecn_mark_ratio"]
    assert result["utilisation"] < 0.95  # the link cannot hold the maximum window
    assert result.incomplete_reason is None
    assert result.metrics["goodput_bps"].trusted
    assert not any("steady state" in warning for warning in result.warnings)


def test_flow_without_loss_or_mark_is_not_in_steady_state() -> None:
    result = marked("linux-reno", ecn=True, duration="5100ms")
    assert result["utilisation"] < 0.95
    assert "no steady state: 2 of 2 flows are still increasing the window without a loss" in str(
        result.incomplete_reason
    )


def test_interval_of_saturated_link_ends_at_a_utilisation_of_1() -> None:
    table = {
        "network": {"rtt": "50ms", "bottleneck": {"rate": "2mbit", "buffer": "60pkt"}},
        "traffic": {"kind": "bulk", "flows": 1},
        "run": {"duration": "300s", "warmup": "60s"},
    }
    answer = tcpcast.run(tcpcast.Scenario.from_dict(table), engines=["packet"])["packet"]
    utilisation = answer.metrics["utilisation"]
    assert utilisation.low is not None
    assert 0.999 < utilisation.low < utilisation.value == utilisation.high == 1.0


def test_goodput_quantiles_of_few_files_have_no_interval() -> None:
    columns = {"share": [0.95], "goodput_bps": [1e6], "low": [9e5], "high": [1.1e6]}
    table = {name: np.array(values) for name, values in columns.items()}
    few, enough = (withhold_goodput_intervals(table, files) for files in (99, 100))
    assert np.isnan([few["low"], few["high"]]).all()
    assert few["goodput_bps"] == 1e6
    assert [*enough["low"], *enough["high"]] == [9e5, 1.1e6]
