"""Wrong arguments of the Python API raise a TcpcastError that names them."""

import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest
import tcpcast
from tcpcast.process.errors import naming_options

ONE = tcpcast.load("one-path")
ANSWER = tcpcast.run(ONE, ["pftk"])[0]

WRONG: list[tuple[Callable[[], Any], type[tcpcast.TcpcastError], str]] = [
    (lambda: tcpcast.run("no-such"), tcpcast.ScenarioError, "web-10mbit"),
    (lambda: tcpcast.run(5), tcpcast.ScenarioError, "5 is neither a file nor"),  # type: ignore[arg-type]
    (lambda: tcpcast.run(ONE, "no-such"), tcpcast.UnknownEngine, "no engine 'no-such'"),
    (lambda: tcpcast.run(ONE, [5]), tcpcast.UnknownEngine, "no engine '5'"),  # type: ignore[list-item]
    (lambda: ANSWER["goodput"], tcpcast.UnknownMetric, "pftk has no 'goodput'; use 'goodput_bps'"),
    (lambda: ANSWER[5], tcpcast.UnknownMetric, "pftk has no '5'"),  # type: ignore[index]
    (lambda: tcpcast.run(ONE, ["packet"], threads=-1), tcpcast.DomainError, "1 or more"),
    (lambda: tcpcast.run(ONE, ["packet"], threads=0), tcpcast.DomainError, "1 or more"),
    (lambda: tcpcast.run(ONE, ["packet"], threads=True), tcpcast.DomainError, "1 or more"),
    (
        lambda: tcpcast.load("one-path", changes={5: 1}),  # type: ignore[dict-item]
        tcpcast.ScenarioError,
        "use {'run.seed': 2}, for example",
    ),
    (
        lambda: tcpcast.load("one-path", changes=[1]),  # type: ignore[arg-type]
        tcpcast.ScenarioError,
        "use {'run.seed': 2}, for example",
    ),
    (lambda: tcpcast.Scenario.from_dict(5), tcpcast.ScenarioError, "is not a table"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "error", "expected"), WRONG)
def test_wrong_argument_is_named_in_error(
    call: Callable[[], Any], error: type[tcpcast.TcpcastError], expected: str
) -> None:
    with pytest.raises(error, match=re.escape(expected)):
        call()


def test_functions_accept_scenario_names() -> None:
    by_name = tcpcast.run("one-path", "pftk")
    assert by_name[0].metrics == ANSWER.metrics


def test_scenario_error_contains_input_errors() -> None:
    changes = {"network.rtt": "50: ms", "network.bottleneck.rate": "fast"}
    with pytest.raises(tcpcast.ScenarioError) as caught:
        tcpcast.load("web-10mbit", changes=changes)
    errors = caught.value.errors
    assert {error.key for error in errors} == set(changes)
    assert str(caught.value).splitlines() == [f"{key}: {message}" for key, message in errors]
    with naming_options({"network.rtt": "--rtt"}):
        lines = [str(error) for error in errors]
    assert [line.split(":")[0] for line in lines] == ["--rtt", "network.bottleneck.rate"]
    copied = pickle.loads(pickle.dumps(caught.value))  # errors of other processes
    assert copied.errors == errors
    with pytest.raises(tcpcast.ScenarioError) as caught:
        tcpcast.load("web-10mbit", changes={"network.rtt.ms": 5})
    assert caught.value.errors[0].key == "network.rtt.ms"
