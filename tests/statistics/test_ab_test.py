"""A/B comparisons: paired differences, verdicts, and the number of users of a test."""

import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from started import completed
from tcpcast import run as run_engines
from tcpcast.answer import Answer, Metric
from tcpcast.comparison.ab_test import (
    PairedMetric,
    _variance_of_user,
    compare_metric,
    estimate_paired_difference,
    find_verdict,
    run_ab_test,
)
from tcpcast.process.errors import OptionError
from tcpcast.report.verdict import verdict_text
from tcpcast.scenario import Scenario
from tcpcast.scenario.loading import parse_scenario

PAGE = """
name = "{name}"
[network]
rtt = "40ms"
bottleneck = {{ rate = "10mbit", buffer = "60pkt", loss = "1%" }}
[traffic]
kind = "page"
sources = 1
objects = "chain"
server_time = {{ distribution = "exponential", mean = "{server}" }}
pause = "0.2s"
[tcp]
stack = "linux-cubic"
handshake = "tls13"
initial_window = {window}
[run]
duration = "60s"
warmup = "2s"
seed = 3
"""


def make_scenario(name: str = "a", server: str = "5ms", window: int = 10) -> Scenario:
    return parse_scenario(PAGE.format(name=name, server=server, window=window), name)


def make_answer(values: Any, times_s: Any, kind: str = "page_time") -> Answer:
    """Return an answer with values of ``page_time_mean_s`` and single times."""
    edges = np.linspace(0, 20, 20_001)
    counts, _ = np.histogram(times_s, edges)
    kept = counts > 0
    tables = {
        "by_replication": {
            "replication": np.arange(len(values)),
            "page_time_mean_s": np.array(values),
        },
        "time_distribution": {
            "kind": np.array([kind] * int(kept.sum())),
            "low_s": edges[:-1][kept],
            "high_s": edges[1:][kept],
            "count": counts[kept].astype(float),
        },
    }
    return Answer("packet", tables=tables)


def test_equal_scenarios_have_no_difference() -> None:
    test = run_ab_test((make_scenario(), make_scenario("b")), replications=4)
    for row in test.metrics:
        if math.isfinite(row.difference.value):
            assert row.difference.value == 0, row.name
            assert not row.is_significant
            assert row.users is None
    assert test.main.name == "page_time_p95_s"
    sentence = verdict_text(find_verdict(test, ("a", "b")))
    assert sentence == "The page time p95 does not differ significantly (B - A: 0 s)."


def test_pairs_have_a_narrower_difference_than_their_values() -> None:
    """Common random numbers cancel what both scenarios have in common."""
    scenarios = make_scenario(), make_scenario("b", window=4)
    test = run_ab_test(scenarios, metric="page_time_mean_s", replications=10)
    main = test.main
    assert main.is_significant
    assert main.difference.value > 0
    assert main.values[1].value - main.values[0].value == pytest.approx(main.difference.value)
    assert width(main.difference) < math.hypot(width(main.values[0]), width(main.values[1]))
    assert main.users is not None
    text = verdict_text(find_verdict(test, ("a", "b")))
    assert text.startswith("With b instead of a, the mean page time is ")
    needs = f"an A/B test needs {main.users:,} users in each group to detect it."
    assert text.endswith(f"longer; {needs}")


def run_compare(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return completed(["compare", *arguments], folder=folder, environment=os.environ)


def width(metric: Metric) -> float:
    assert metric.low is not None
    assert metric.high is not None
    return metric.high - metric.low


@pytest.mark.parametrize("pairs", [3, 10, 20])
def test_interval_of_a_skewed_difference_excludes_0_in_at_most_5_percent(pairs: int) -> None:
    """A change moves some lines into another state, in either direction, and the rest little."""
    random = np.random.default_rng(pairs)
    excluded = 0
    for _ in range(2000):
        changes = random.normal(0, 0.01, pairs)
        changes += random.choice([0.0, -0.3, 0.3], pairs, p=[0.7, 0.15, 0.15])
        found = estimate_paired_difference(changes)
        assert found.low is not None
        assert found.high is not None
        excluded += not found.low <= 0 <= found.high
    assert 0.005 < excluded / 2000 < 0.06


def test_round_trip_times_of_pairs_differ_unless_the_scenario_says_otherwise() -> None:
    scenarios = make_scenario(), make_scenario("b", server="20ms")
    test = run_ab_test(scenarios, metric="first_byte_p50_s", replications=6)
    assert test.rtt_spread == 0.1
    spread = width(test.main.values[0])
    exact = tuple(each.with_changes({"run.rtt_spread": "0%"}) for each in scenarios)
    test = run_ab_test((exact[0], exact[1]), metric="first_byte_p50_s", replications=6)
    assert test.rtt_spread == 0
    # The first byte takes three round trips of 40 ms, each with 6 % as standard deviation.
    assert width(test.main.values[0]) < 0.3 * spread
    assert 0.004 < spread < 0.03


def test_results_do_not_depend_on_threads() -> None:
    scenarios = make_scenario(), make_scenario("b", server="20ms")
    tests = [run_ab_test(scenarios, replications=3, threads=n) for n in (1, 3)]
    assert tests[0].metrics == tests[1].metrics


def test_number_of_users_gives_the_power_of_80_percent() -> None:
    random = np.random.default_rng(5)
    first, second = random.gamma(4, 0.5, 200_000), random.gamma(4, 0.5, 200_000) + 0.1
    answers = (make_answer([2.0, 2.01, 1.99], first), make_answer([2.1, 2.111, 2.089], second))
    paired = compare_metric("page_time_mean_s", answers)
    assert paired.users is not None
    # var = 4 x 0.25 in each group, difference 0.1.
    assert paired.users == pytest.approx(2.8016**2 * 2 / 0.01, rel=0.03)
    seen = 0
    for _ in range(1000):
        a = random.choice(first, paired.users)
        b = random.choice(second, paired.users)
        error = math.sqrt((a.var() + b.var()) / paired.users)
        seen += abs(b.mean() - a.mean()) > 1.96 * error
    assert 0.76 < seen / 1000 < 0.84


@pytest.mark.parametrize("percent", [50, 95])
def test_variance_of_a_percentile_is_that_of_samples(percent: int) -> None:
    random = np.random.default_rng(6)
    times = random.gamma(4, 0.5, 400_000)
    table = make_answer([], times).tables["time_distribution"]
    found = _variance_of_user(f"page_time_p{percent}_s", table)
    samples = [np.percentile(random.gamma(4, 0.5, 2000), percent) for _ in range(1000)]
    assert found == pytest.approx(2000 * np.var(samples), rel=0.2)


def test_metrics_that_are_no_times_have_no_number_of_users() -> None:
    answers = (make_answer([1.0, 1.1, 0.9], [1.0]), make_answer([2.0, 2.2, 1.9], [2.0], "rtt"))
    assert compare_metric("page_time_mean_s", answers).is_significant
    assert compare_metric("page_time_mean_s", answers).users is None


def test_an_rtt_per_replication_needs_more_replications_not_longer_runs() -> None:
    changes = {"run.rtt_spread": "10%", "run.replications": 4}
    scenario = make_scenario().with_changes(changes)
    (answer,) = run_engines(scenario, ["packet"])
    reason = answer.metrics["rtt_mean_s"].interval_warning
    assert reason is not None
    assert reason.startswith("too few replications: each uses a different RTT (run.rtt_spread)")
    assert "run.replications = 16" in reason
    spread = scenario.with_changes({"run.replications": 16})
    (answer,) = run_engines(spread, ["packet"])
    assert answer.metrics["rtt_mean_s"].low is not None


def test_verdict_names_the_direction() -> None:
    difference = Metric(-0.3, -0.4, -0.2)
    main = PairedMetric("page_time_p95_s", (Metric(1.0), Metric(0.7)), difference, 120)
    test = run_ab_test((make_scenario(), make_scenario("b")), replications=3)
    shorter = type(test)(test.scenarios, test.answers, (main,), main)
    assert verdict_text(find_verdict(shorter, ("A", "B"))) == (
        "With B instead of A, the page time p95 is 300 ms (200 to 400) shorter; an A/B test needs "
        "120 users in each group to detect it."
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metric": "nothing"}, "there is no metric nothing; use page_time_p95_s, for example"),
        ({"metric": "stall_ratio"}, "only metrics of both scenarios can be compared; use one of "),
        ({"replications": 2}, "2 pairs cannot give an interval; use at least 3"),
    ],
)
def test_wrong_requests_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        run_ab_test((make_scenario(), make_scenario("b")), **{"replications": 3, **arguments})


def test_command_prints_a_verdict_a_table_and_a_figure(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(PAGE.format(name="a", server="5ms", window=10))
    (tmp_path / "b.toml").write_text(PAGE.format(name="b", server="100ms", window=10))
    options = ["--replications", "4", "--metric", "page_time_mean_s"]
    done = run_compare(tmp_path, "a.toml", "b.toml", *options, "--plot", "plots")
    assert done.returncode == 0, done.stderr
    assert "With b instead of a, the mean page time is" in done.stdout
    assert "users per group" in done.stdout
    assert (tmp_path / "plots" / "distributions.png").exists()
    found = json.loads(run_compare(tmp_path, "a.toml", "b.toml", *options, "--json").stdout)
    # Ten modules and the document wait 95 ms more each.
    row = found["metrics"]["page_time_mean_s"]
    assert row["difference"]["value"] == pytest.approx(11 * 0.095, rel=0.25)
    assert row["users_per_group"] >= 2
    table = run_compare(tmp_path, "a.toml", "b.toml", *options, "--csv").stdout
    assert table.splitlines()[0].startswith("metric,unit,A,A_low,A_high,B,")
    refused = run_compare(tmp_path, "a.toml", "b.toml", "--down", "5mbit")
    assert refused.returncode == 2
    assert (
        "--down: requires a file of flent, iperf3 or crusader; use --set for scenarios"
        in refused.stderr
    )
