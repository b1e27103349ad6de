"""Distributions: the paper's file sizes to its printed digits, means, variances, parameters."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from scipy import integrate, stats
from tcpcast.process.errors import ScenarioError
from tcpcast.scenario import Distribution, Scenario
from tcpcast.scenario.distributions import ExponentialPareto, TwoExponentials
from tcpcast.scenario.quantities import Size
from tcpcast.scenario.traffic import SizeDistribution, TimeDistribution

SIZE: TypeAdapter[Distribution[Any]] = TypeAdapter(SizeDistribution)
TIME: TypeAdapter[Distribution[Any]] = TypeAdapter(TimeDistribution)


def size(**table: object) -> Distribution[Any]:
    return SIZE.validate_python(table)


def rounded_share(distribution: Distribution[Any], low: int, high: int) -> float:
    """Share of the files of low to high packets, sizes rounded to the nearest packet."""
    return survival(distribution, low - 0.5) - survival(distribution, high + 0.5)


def survival(distribution: Distribution[Any], x: float) -> float:
    """P(X > x), from the parameters of the simulator."""
    p = distribution.parameters()
    if x <= p["minimum"]:
        return 1.0
    if distribution.distribution == "exponential":
        return math.exp(-(x - p["minimum"]) / p["scale"])
    if x <= p["k"]:
        theta = p["theta"] if distribution.distribution == "ep" else p["theta1"]
        return math.exp(-(x - p["minimum"]) / theta)
    if distribution.distribution == "ep":
        return float(p["tail"] * (p["k"] / x) ** p["alpha"])
    return float(p["tail"] * math.exp(-(x - p["k"]) / p["theta2"]))


def mean_by_integration(distribution: Distribution[Any]) -> float:
    """The integral of P(X > x), tail by tail."""
    k = distribution.parameters()["k"]
    body, _ = integrate.quad(
        lambda x: survival(distribution, x), 0, k, points=[distribution.parameters()["minimum"]]
    )
    tail, _ = integrate.quad(lambda x: survival(distribution, x), k, math.inf, limit=500)
    return body + tail


def test_ep_parameters_equal_the_paper() -> None:
    distribution = size(distribution="ep", mean="12pkt", minimum="3pkt")
    assert isinstance(distribution, ExponentialPareto)
    assert distribution.k == pytest.approx(17.2, abs=0.05)
    assert distribution.theta == pytest.approx((distribution.k - 3) / math.log(10))
    assert survival(distribution, distribution.k) == pytest.approx(0.1)
    assert mean_by_integration(distribution) == pytest.approx(12, rel=1e-4)


def test_ee_parameters_equal_the_paper() -> None:
    distribution = size(distribution="ee", mean="12pkt", minimum="3pkt", c=7)
    assert isinstance(distribution, TwoExponentials)
    assert distribution.k == pytest.approx(4.286, abs=0.0005)
    assert distribution.theta2 == pytest.approx(84.97, abs=0.005)
    assert distribution.k + distribution.theta2 == pytest.approx(89.3, abs=0.05)
    assert mean_by_integration(distribution) == pytest.approx(12, rel=1e-9)


def test_size_shares_equal_the_paper() -> None:
    exponential = size(distribution="exponential", mean="12pkt", minimum="3pkt")
    assert 100 * rounded_share(exponential, 3, 6) == pytest.approx(32.2, abs=0.05)
    assert 100 * rounded_share(exponential, 7, 14) == pytest.approx(39.9, abs=0.05)
    two = size(distribution="ee", mean="12pkt", minimum="3pkt", c=7)
    assert 100 * rounded_share(two, 3, 6) == pytest.approx(90.26, abs=0.005)
    assert 100 * rounded_share(two, 7, 14) == pytest.approx(0.875, abs=0.0005)


def test_ee_with_a_mean_of_five_packets_has_positive_theta2() -> None:
    distribution = size(distribution="ee", mean="5pkt", minimum="3pkt", c=3.9)
    assert mean_by_integration(distribution) == pytest.approx(5, rel=1e-9)
    assert distribution.parameters()["theta2"] > 0


@given(mean=st.floats(4, 1e4), alpha=st.floats(1.3, 3), tail=st.floats(0.01, 0.5))
def test_ep_mean_matches_parameter(mean: float, alpha: float, tail: float) -> None:
    least = 2 * (1 + tail / (alpha - 1))
    if mean <= 1.01 * least:
        return
    distribution = ExponentialPareto[Size](
        distribution="ep", mean=mean, minimum=2, alpha=alpha, tail=tail
    )
    p = distribution.parameters()
    q = p["tail"]
    body = p["minimum"] + p["theta"] * (1 - q)
    assert body + q * p["k"] / (p["alpha"] - 1) == pytest.approx(mean, rel=1e-9)
    assert survival(distribution, p["k"]) == pytest.approx(q, rel=1e-9)


def test_lognormal_matches_mean_and_deviation() -> None:
    distribution = size(distribution="lognormal", mean="50pkt", sd="30pkt", minimum="5pkt")
    p = distribution.parameters()
    variable = stats.lognorm(s=p["sigma"], scale=math.exp(p["mu"]), loc=p["minimum"])
    assert variable.mean() == pytest.approx(50)
    assert variable.std() == pytest.approx(30)


@pytest.mark.parametrize(
    ("table", "mean", "finite"),
    [
        ({"distribution": "exponential", "mean": "12pkt", "minimum": "3pkt"}, 12, True),
        ({"distribution": "ep", "mean": "12pkt", "minimum": "3pkt"}, 12, False),
        ({"distribution": "ep", "mean": "12pkt", "minimum": "3pkt", "alpha": 2.5}, 12, True),
        ({"distribution": "ee", "mean": "12pkt", "minimum": "3pkt", "c": 7}, 12, True),
        ({"distribution": "lognormal", "mean": "50pkt", "sd": "50pkt"}, 50, True),
        ({"distribution": "pareto", "mean": "12pkt", "alpha": 1.5}, 12, False),
        ({"distribution": "pareto", "minimum": "4pkt", "alpha": 1.5}, 12, False),
        ({"distribution": "pareto", "minimum": "4pkt", "alpha": 3}, 6, True),
        ({"distribution": "constant", "value": 7}, 7, True),
        ({"distribution": "uniform", "low": 3, "high": "21pkt"}, 12, True),
        ({"distribution": "empirical", "values": [3, "9pkt"], "weights": [1, 2]}, 7, True),
        ({"distribution": "empirical", "values": [3, 9]}, 6, True),
    ],
)
def test_distributions_have_exact_mean_and_variance(
    table: dict[str, object], mean: float, finite: bool
) -> None:
    distribution = size(**table)
    assert distribution.mean_value() == pytest.approx(mean, rel=1e-12)
    assert distribution.has_finite_variance() is finite


@pytest.mark.parametrize(
    "table",
    [
        {"distribution": "exponential", "mean": "12pkt", "minimum": "3pkt"},
        {"distribution": "ep", "mean": "12pkt", "minimum": "3pkt", "alpha": 2.5},
        {"distribution": "ee", "mean": "12pkt", "minimum": "3pkt", "c": 7},
        {"distribution": "lognormal", "mean": "50pkt", "sd": "50pkt", "minimum": "4pkt"},
        {"distribution": "pareto", "minimum": "4pkt", "alpha": 3},
        {"distribution": "constant", "value": 7},
        {"distribution": "uniform", "low": 3, "high": "21pkt"},
        {"distribution": "empirical", "values": [3, "9pkt"], "weights": [1, 2]},
    ],
)
def test_survival_probability_is_exact(table: dict[str, object]) -> None:
    """P(X > x) falls from 1 to 0, and its integral is the mean."""
    distribution = size(**table)
    values = np.concatenate([np.arange(0, 60, 1e-3), np.geomspace(60, 1e7, 20_000)])
    above = np.array([distribution.share_above(float(value)) for value in values])
    assert above[0] == 1
    assert above[-1] < 1e-9
    assert np.all(np.diff(above) <= 0)
    assert np.trapezoid(above, values) == pytest.approx(distribution.mean_value(), rel=1e-3)


@pytest.mark.parametrize(
    ("table", "names"),
    [
        ({"distribution": "exponential", "mean": 12}, "minimum scale"),
        ({"distribution": "ep", "mean": 12, "minimum": 3}, "minimum k theta alpha tail"),
        ({"distribution": "ee", "mean": 12, "minimum": 3, "c": 7}, "minimum k theta1 theta2 tail"),
        ({"distribution": "lognormal", "mean": 50, "sd": 50}, "mu sigma minimum"),
        ({"distribution": "pareto", "mean": 12, "alpha": 2}, "minimum alpha"),
        ({"distribution": "constant", "value": 7}, "value"),
        ({"distribution": "uniform", "low": 3, "high": 21}, "low high"),
        ({"distribution": "empirical", "values": [3]}, "values cumulative"),
    ],
)
def test_parameters_are_finite_floats(table: dict[str, object], names: str) -> None:
    parameters = size(**table).parameters()
    assert list(parameters) == ["distribution", *names.split()]
    numbers = [v for k, v in parameters.items() if k != "distribution"]
    flat = [x for v in numbers for x in (v if isinstance(v, list) else [v])]
    assert all(type(x) is float and math.isfinite(x) for x in flat)


def test_time_distribution_is_in_seconds() -> None:
    distribution = TIME.validate_python(
        {"distribution": "exponential", "mean": "500ms", "minimum": "10ms"}
    )
    assert distribution.parameters() == {
        "distribution": "exponential",
        "minimum": 0.01,
        "scale": 0.49,
    }


def test_empirical_values_are_sorted_with_cumulative_weights() -> None:
    distribution = size(distribution="empirical", values=[9, 3, 5], weights=[1, 2, 0])
    assert distribution.parameters() == {
        "distribution": "empirical",
        "values": [3.0, 9.0],
        "cumulative": [pytest.approx(2 / 3), 1.0],
    }


def web(folder: Path, **traffic: object) -> Scenario:
    return Scenario.from_dict(
        {
            "network": {"rtt": "50ms", "packet": "1000B", "bottleneck": {"rate": "10mbit"}},
            "traffic": {
                "kind": "on-off",
                "sources": 3,
                "off": {"distribution": "constant", "value": "1s"},
                "size": {"distribution": "constant", "value": 9},
                **traffic,
            },
            "run": {"transfers": 10},
        },
        folder=folder,
    )


@pytest.mark.parametrize(
    ("text", "values", "weights"),
    [
        ("value\n3\n9.5\n", [3, 9.5], [1, 1]),
        ("3\n9\n", [3, 9], [1, 1]),
        ("value,weight\n3, 2\n9,1\n", [3, 9], [2, 1]),
        ("Value,Probability\r\n3,0.25\r\n9,0.75\r\n\r\n", [3, 9], [0.25, 0.75]),
        ("# measured in May\nvalue\n1e1\n", [10], [1]),
        ("\ufeffvalue\n4\n", [4], [1]),
    ],
)
def test_sizes_are_read_from_a_file(
    tmp_path: Path, text: str, values: list[float], weights: list[float]
) -> None:
    (tmp_path / "sizes.csv").write_text(text, encoding="utf-8")
    scenario = web(tmp_path, size={"distribution": "empirical", "file": "sizes.csv"})
    distribution: Any = scenario.populations[0].traffic
    assert distribution.size.values == values
    assert distribution.size.weights == weights
    again = Scenario.from_dict(scenario.resolved())
    assert again == scenario
    assert again.digest() == scenario.digest()


def test_times_read_from_a_file_are_seconds(tmp_path: Path) -> None:
    (tmp_path / "off.csv").write_text("value,weight\n0.25,1\n1e-7,3\n", encoding="utf-8")
    scenario = web(tmp_path, off={"distribution": "empirical", "file": str(tmp_path / "off.csv")})
    distribution: Any = scenario.populations[0].traffic
    assert distribution.off.values == [0.25, 1e-7]
    assert distribution.off.mean_value() == pytest.approx((0.25 + 3e-7) / 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "contains no values"),
        ("value\n", "contains no values"),
        ("value,weight\n", "contains no values"),
        ("value\nmany\n", 'line 2: "many" is not a number'),
        ("value\nnan\n", "line 2"),
        ("value\ninf\n", "line 2"),
        ("value\n-3\n", "line 2"),
        ("value,weight\n3\n", "line 2: the number of columns is 1"),
        ("1,2,3\n", "line 1: the number of columns is 3"),
        ("size\n3\n", 'line 1: "size"'),
        ("value,weight\n3,0\n", "use at least one weight above 0"),
        ("value\n0\n", "mean is 0"),
        ("value\n" + "1\n" * 100_001, "more than 100000 values"),
    ],
)
def test_invalid_files_are_rejected(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "sizes.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError) as caught:
        web(tmp_path, size={"distribution": "empirical", "file": "sizes.csv"})
    assert str(caught.value).startswith("traffic.size.")
    assert message in str(caught.value)
    assert "; " in str(caught.value)


def test_unreadable_files_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "binary.csv").write_bytes(b"value\n\xff\xfe\x00")
    (tmp_path / "folder.csv").mkdir()
    for name in ("missing.csv", "binary.csv", "folder.csv", "", "a\0b", 3):
        with pytest.raises(ScenarioError, match=r"^traffic\.size\.file: .*use file = "):
            web(tmp_path, size={"distribution": "empirical", "file": name})
