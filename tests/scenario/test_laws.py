"""Laws: the paper's file sizes to its printed digits, means, variances, parameters."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from scipy import integrate, stats
from tcpcast.errors import ScenarioError
from tcpcast.scenario import Law, Scenario
from tcpcast.scenario.laws import ExponentialPareto, TwoExponentials
from tcpcast.scenario.quantities import Size
from tcpcast.scenario.traffic import SizeLaw, TimeLaw

SIZE: TypeAdapter[Law[Any]] = TypeAdapter(SizeLaw)
TIME: TypeAdapter[Law[Any]] = TypeAdapter(TimeLaw)


def size(**table: object) -> Law[Any]:
    return SIZE.validate_python(table)


def rounded_share(law: Law[Any], low: int, high: int) -> float:
    """Share of the files of low to high packets, sizes rounded to the nearest packet."""
    return survival(law, low - 0.5) - survival(law, high + 0.5)


def survival(law: Law[Any], x: float) -> float:
    """P(X > x), from the parameters that the simulator gets."""
    p = law.parameters()
    if x <= p["minimum"]:
        return 1.0
    if law.law == "exponential":
        return math.exp(-(x - p["minimum"]) / p["scale"])
    if x <= p["k"]:
        theta = p["theta"] if law.law == "ep" else p["theta1"]
        return math.exp(-(x - p["minimum"]) / theta)
    if law.law == "ep":
        return float(p["tail"] * (p["k"] / x) ** p["alpha"])
    return float(p["tail"] * math.exp(-(x - p["k"]) / p["theta2"]))


def mean_by_integration(law: Law[Any]) -> float:
    """The integral of P(X > x), tail by tail."""
    k = law.parameters()["k"]
    body, _ = integrate.quad(lambda x: survival(law, x), 0, k, points=[law.parameters()["minimum"]])
    tail, _ = integrate.quad(lambda x: survival(law, x), k, math.inf, limit=500)
    return body + tail


def test_ep_of_the_paper() -> None:
    law = size(law="ep", mean="12pkt", minimum="3pkt")
    assert isinstance(law, ExponentialPareto)
    assert law.k == pytest.approx(17.2, abs=0.05)
    assert law.theta == pytest.approx((law.k - 3) / math.log(10))
    assert survival(law, law.k) == pytest.approx(0.1)
    assert mean_by_integration(law) == pytest.approx(12, rel=1e-4)


def test_ee_of_the_paper() -> None:
    law = size(law="ee", mean="12pkt", minimum="3pkt", c=7)
    assert isinstance(law, TwoExponentials)
    assert law.k == pytest.approx(4.286, abs=0.0005)
    assert law.theta2 == pytest.approx(84.97, abs=0.005)
    assert law.k + law.theta2 == pytest.approx(89.3, abs=0.05)
    assert mean_by_integration(law) == pytest.approx(12, rel=1e-9)


def test_shares_of_the_paper() -> None:
    exponential = size(law="exponential", mean="12pkt", minimum="3pkt")
    assert 100 * rounded_share(exponential, 3, 6) == pytest.approx(32.2, abs=0.05)
    assert 100 * rounded_share(exponential, 7, 14) == pytest.approx(39.9, abs=0.05)
    two = size(law="ee", mean="12pkt", minimum="3pkt", c=7)
    assert 100 * rounded_share(two, 3, 6) == pytest.approx(90.26, abs=0.005)
    assert 100 * rounded_share(two, 7, 14) == pytest.approx(0.875, abs=0.0005)


def test_ee_for_five_packets() -> None:
    law = size(law="ee", mean="5pkt", minimum="3pkt", c=3.9)
    assert mean_by_integration(law) == pytest.approx(5, rel=1e-9)
    assert law.parameters()["theta2"] > 0


@given(
    mean=st.floats(4, 1e4),
    alpha=st.floats(1.3, 3),
    tail=st.floats(0.01, 0.5),
)
def test_ep_has_the_mean_that_was_asked(mean: float, alpha: float, tail: float) -> None:
    least = 2 * (1 + tail / (alpha - 1))
    if mean <= 1.01 * least:
        return
    law = ExponentialPareto[Size](law="ep", mean=mean, minimum=2, alpha=alpha, tail=tail)
    p = law.parameters()
    q = p["tail"]
    body = p["minimum"] + p["theta"] * (1 - q)
    assert body + q * p["k"] / (p["alpha"] - 1) == pytest.approx(mean, rel=1e-9)
    assert survival(law, p["k"]) == pytest.approx(q, rel=1e-9)


def test_lognormal_has_the_mean_and_deviation_that_were_asked() -> None:
    law = size(law="lognormal", mean="50pkt", sd="30pkt", minimum="5pkt")
    p = law.parameters()
    variable = stats.lognorm(s=p["sigma"], scale=math.exp(p["mu"]), loc=p["minimum"])
    assert variable.mean() == pytest.approx(50)
    assert variable.std() == pytest.approx(30)


@pytest.mark.parametrize(
    ("table", "mean", "finite"),
    [
        ({"law": "exponential", "mean": "12pkt", "minimum": "3pkt"}, 12, True),
        ({"law": "ep", "mean": "12pkt", "minimum": "3pkt"}, 12, False),
        ({"law": "ep", "mean": "12pkt", "minimum": "3pkt", "alpha": 2.5}, 12, True),
        ({"law": "ee", "mean": "12pkt", "minimum": "3pkt", "c": 7}, 12, True),
        ({"law": "lognormal", "mean": "50pkt", "sd": "50pkt"}, 50, True),
        ({"law": "pareto", "mean": "12pkt", "alpha": 1.5}, 12, False),
        ({"law": "pareto", "minimum": "4pkt", "alpha": 1.5}, 12, False),
        ({"law": "pareto", "minimum": "4pkt", "alpha": 3}, 6, True),
        ({"law": "constant", "value": 7}, 7, True),
        ({"law": "uniform", "low": 3, "high": "21pkt"}, 12, True),
        ({"law": "empirical", "values": [3, "9pkt"], "weights": [1, 2]}, 7, True),
        ({"law": "empirical", "values": [3, 9]}, 6, True),
    ],
)
def test_means_and_variances(table: dict[str, object], mean: float, finite: bool) -> None:
    law = size(**table)
    assert law.mean_value() == pytest.approx(mean, rel=1e-12)
    assert law.has_variance() is finite


@pytest.mark.parametrize(
    "table",
    [
        {"law": "exponential", "mean": "12pkt", "minimum": "3pkt"},
        {"law": "ep", "mean": "12pkt", "minimum": "3pkt", "alpha": 2.5},
        {"law": "ee", "mean": "12pkt", "minimum": "3pkt", "c": 7},
        {"law": "lognormal", "mean": "50pkt", "sd": "50pkt", "minimum": "4pkt"},
        {"law": "pareto", "minimum": "4pkt", "alpha": 3},
        {"law": "constant", "value": 7},
        {"law": "uniform", "low": 3, "high": "21pkt"},
        {"law": "empirical", "values": [3, "9pkt"], "weights": [1, 2]},
    ],
)
def test_probability_of_more(table: dict[str, object]) -> None:
    """It falls from 1 to 0, and its integral is the mean."""
    law = size(**table)
    values = np.concatenate([np.arange(0, 60, 1e-3), np.geomspace(60, 1e7, 20_000)])
    above = np.array([law.above(float(value)) for value in values])
    assert above[0] == 1
    assert above[-1] < 1e-9
    assert np.all(np.diff(above) <= 0)
    assert np.trapezoid(above, values) == pytest.approx(law.mean_value(), rel=1e-3)


@pytest.mark.parametrize(
    ("table", "names"),
    [
        ({"law": "exponential", "mean": 12}, "minimum scale"),
        ({"law": "ep", "mean": 12, "minimum": 3}, "minimum k theta alpha tail"),
        ({"law": "ee", "mean": 12, "minimum": 3, "c": 7}, "minimum k theta1 theta2 tail"),
        ({"law": "lognormal", "mean": 50, "sd": 50}, "mu sigma minimum"),
        ({"law": "pareto", "mean": 12, "alpha": 2}, "minimum alpha"),
        ({"law": "constant", "value": 7}, "value"),
        ({"law": "uniform", "low": 3, "high": 21}, "low high"),
        ({"law": "empirical", "values": [3]}, "values cumulative"),
    ],
)
def test_the_simulator_gets_plain_numbers(table: dict[str, object], names: str) -> None:
    parameters = size(**table).parameters()
    assert list(parameters) == ["law", *names.split()]
    numbers = [v for k, v in parameters.items() if k != "law"]
    flat = [x for v in numbers for x in (v if isinstance(v, list) else [v])]
    assert all(type(x) is float and math.isfinite(x) for x in flat)


def test_a_law_of_times_is_in_seconds() -> None:
    law = TIME.validate_python({"law": "exponential", "mean": "500ms", "minimum": "10ms"})
    assert law.parameters() == {"law": "exponential", "minimum": 0.01, "scale": 0.49}


def test_empirical_values_are_sorted_and_cumulated() -> None:
    law = size(law="empirical", values=[9, 3, 5], weights=[1, 2, 0])
    assert law.parameters() == {
        "law": "empirical",
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
                "off": {"law": "constant", "value": "1s"},
                "size": {"law": "constant", "value": 9},
                **traffic,
            },
            "run": {"connections": 10},
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
def test_sizes_from_a_file(
    tmp_path: Path, text: str, values: list[float], weights: list[float]
) -> None:
    (tmp_path / "sizes.csv").write_text(text, encoding="utf-8")
    scenario = web(tmp_path, size={"law": "empirical", "file": "sizes.csv"})
    law: Any = scenario.populations[0].traffic
    assert law.size.values == values
    assert law.size.weights == weights
    again = Scenario.from_dict(scenario.resolved())
    assert again == scenario
    assert again.digest() == scenario.digest()


def test_times_from_a_file_are_seconds(tmp_path: Path) -> None:
    (tmp_path / "off.csv").write_text("value,weight\n0.25,1\n1e-7,3\n", encoding="utf-8")
    scenario = web(tmp_path, off={"law": "empirical", "file": str(tmp_path / "off.csv")})
    law: Any = scenario.populations[0].traffic
    assert law.off.values == [0.25, 1e-7]
    assert law.off.mean_value() == pytest.approx((0.25 + 3e-7) / 4)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "holds no values"),
        ("value\n", "holds no values"),
        ("value,weight\n", "holds no values"),
        ("value\nmany\n", 'line 2: "many" is not a number'),
        ("value\nnan\n", "line 2"),
        ("value\ninf\n", "line 2"),
        ("value\n-3\n", "line 2"),
        ("value,weight\n3\n", "line 2: 1 columns"),
        ("1,2,3\n", "line 1: 3 columns"),
        ("size\n3\n", 'line 1: "size"'),
        ("value,weight\n3,0\n", "write at least one above 0"),
        ("value\n0\n", "mean is 0"),
        ("value\n" + "1\n" * 100_001, "more than 100000 values"),
    ],
)
def test_files_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "sizes.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError) as caught:
        web(tmp_path, size={"law": "empirical", "file": "sizes.csv"})
    assert str(caught.value).startswith("traffic.size.")
    assert told in str(caught.value)
    assert "write" in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "binary.csv").write_bytes(b"value\n\xff\xfe\x00")
    (tmp_path / "folder.csv").mkdir()
    for name in ("missing.csv", "binary.csv", "folder.csv", "", "a\0b", 3):
        with pytest.raises(ScenarioError, match=r"^traffic\.size\.file: .*write file = "):
            web(tmp_path, size={"law": "empirical", "file": name})


def test_drawn_from_the_parameters_the_mean_comes_out() -> None:
    """The parameters describe the law: inverse-transform draws have its mean."""
    random = np.random.default_rng(5)
    u = random.random(200_000)
    for table in (
        {"law": "ee", "mean": 12, "minimum": 3, "c": 7},
        {"law": "ep", "mean": 12, "minimum": 3, "alpha": 3},
    ):
        law = size(**table)
        p = law.parameters()
        if law.law == "ee":
            tail = p["k"] - p["theta2"] * np.log(u / p["tail"])
            body = p["minimum"] - p["theta1"] * np.log(u)
        else:
            tail = p["k"] * (u / p["tail"]) ** (-1 / p["alpha"])
            body = p["minimum"] - p["theta"] * np.log(u)
        drawn = np.where(u < p["tail"], tail, body)
        assert drawn.mean() == pytest.approx(12, rel=0.02)
