"""Indices of latency under load, computed by hand."""

import json
from pathlib import Path

import pytest
from tcpcast.process.errors import ScenarioError
from tcpcast.statistics.latency_under_load import (
    QooProfile,
    bufferbloat_grade,
    read_qoo_profiles,
    rpm,
    trimmed_mean,
)

PROFILE = {
    "id": "web_browsing",
    "latency": [{"percentile": 95, "low_ms": 150.0, "high_ms": 50.0}],
    "loss_percent": {"low": 1.0, "high": 0.5},
}


def test_rpm_of_a_known_queue_by_hand() -> None:
    # A queue of 100 ms in front of an RTT of 20 ms: everything takes 120 ms, or 500 per minute.
    assert rpm([0.12], [0.12], [0.12], [0.12]) == pytest.approx(500)
    # FQ: new connections wait for nothing, the connections with the load for themselves:
    # 60 s / (20 ms / 2 + 120 ms / 2) = 857.1.
    assert rpm([0.02], [0.02], [0.02], [0.12]) == pytest.approx(60 / 0.07)
    # Half of the weight: (10 + 20 + 30) / 6 + 40 / 2 = 30 ms.
    assert rpm([0.01], [0.02], [0.03], [0.04]) == pytest.approx(2000)


def test_largest_twentieth_of_the_samples_is_left_out() -> None:
    assert trimmed_mean([1.0] * 19 + [1000.0]) == 1.0
    assert trimmed_mean([5.0]) == 5.0
    assert trimmed_mean([1.0, 2.0, 3.0, 4.0], 0.5) == 1.5


def test_grades_have_the_limits_of_the_web_test() -> None:
    increases_ms = (0, 4.9, 5, 29, 30, 59, 60, 199, 200, 399, 400, 5000)
    grades = [bufferbloat_grade(ms * 1e-3) for ms in increases_ms]
    assert grades == ["A+", "A+", "A", "A", "B", "B", "C", "C", "D", "D", "F", "F"]


def test_quality_of_outcome_is_the_worst_component(tmp_path: Path) -> None:
    path = tmp_path / "qoo_profiles.json"
    path.write_text(json.dumps({"schema_version": 2, "profiles": [PROFILE]}))
    profile = read_qoo_profiles(path)["web_browsing"]
    assert profile == QooProfile("web_browsing", ((95, 0.05, 0.15),), (0.005, 0.01))
    assert profile.score({95: 0.05}, 0.005) == 100
    assert profile.score({95: 0.1}, 0.0) == pytest.approx(50)
    assert profile.score({95: 0.1}, 0.009) == pytest.approx(20)
    assert profile.score({95: 0.2}, 0.0) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "the file contains no QoO profiles"),
        ("[" * 100_000, "the file contains no QoO profiles"),
        ('{"profiles": []}', "'schema_version'"),
        ('{"schema_version": 1, "profiles": []}', "schema_version must be 2, not 1"),
        ('{"schema_version": 2, "profiles": [{}]}', "'latency'"),
        (
            json.dumps(
                {
                    "schema_version": 2,
                    "profiles": [PROFILE | {"loss_percent": {"low": 1, "high": 2}}],
                }
            ),
            "must be below",
        ),
        (" " * 1_000_001, "larger than 1,000,000 B"),
    ],
)
def test_wrong_profiles_are_one_message(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "profiles.json"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=message) as caught:
        read_qoo_profiles(path)
    assert "\n" not in str(caught.value)
