"""Engines that support modern stacks, and their inputs."""

from typing import Any

import pytest
import tcpcast
from tcpcast.process.errors import Suggestion
from tcpcast.scenario import Scenario

BASE: dict[str, Any] = {
    "network": {"rtt": "60ms", "bottleneck": {"rate": "1gbit", "buffer": "5000pkt", "loss": "1%"}},
    "traffic": {"kind": "bulk", "flows": 2},
    "run": {"duration": "20s", "warmup": "5s"},
}
RENO = {"mathis", "td-only", "pftk-approx", "pftk", "parallel", "parallel-cumulative"}


def run_engines(
    stack: str, engines: list[str] | None = None, **tcp: Any
) -> dict[str, tcpcast.Answer]:
    scenario = Scenario.from_dict(BASE | {"tcp": {"stack": stack, **tcp}})
    return {answer.engine: answer for answer in tcpcast.run(scenario, engines)}


def named_steps(answer: tcpcast.Answer) -> dict[str, Any]:
    return {step["symbol"]: step for step in answer.steps}


@pytest.mark.parametrize(
    ("stack", "formulas"),
    [
        ("linux-reno", RENO),
        ("linux-reno-classic", RENO),
        ("rfc-sack", RENO),
        ("linux-cubic", {"cubic-response"}),
        ("linux-bbr", {"bbr-bound"}),
        ("dctcp", set()),
    ],
)
def test_formulas_answer_for_the_window_that_they_model(stack: str, formulas: set[str]) -> None:
    assert run_engines(stack).keys() == formulas | {"packet"}


def test_reno_model_suggests_an_engine_for_other_windows() -> None:
    reno = "the formula models the window of Reno, but the scenario's stack is linux-cubic; "
    assert run_engines("linux-cubic", ["pftk"])["pftk"].not_applicable == (
        reno + 'use the cubic-response engine, or use tcp.stack = "linux-reno"'
    )
    refusals = run_engines("linux-cubic", ["pftk", "cubic-response"])
    assert refusals["pftk"].not_applicable == reno + 'use tcp.stack = "linux-reno"'
    assert refusals["cubic-response"].not_applicable is None
    assert not any("the model is for" in text for text in refusals["cubic-response"].warnings)
    refusals = run_engines("dctcp", ["pftk"])
    assert refusals["pftk"].suggestions == (Suggestion({"tcp.stack": "linux-reno"}),)


def test_formulas_use_the_properties_of_the_stack() -> None:
    steps = named_steps(run_engines("linux-reno", ["pftk"])["pftk"])
    # The window grows with the packets acked, and the timeout is the sum.
    assert (steps["b"]["value"], steps["T0"]["value"]) == (1, pytest.approx(0.26))
    assert steps["T0"]["source"] == "RTT + tcp.min_rto"
    steps = named_steps(run_engines("rfc-sack", ["pftk"])["pftk"])
    assert (steps["b"]["value"], steps["T0"]["value"]) == (2, 1.0)


def test_pftk_with_simulated_inputs_is_close_to_the_simulation() -> None:
    scenario = Scenario.from_dict(
        BASE | {"tcp": {"stack": "linux-reno"}, "run": {"duration": "200s", "warmup": "10s"}}
    )
    packet, pftk = tcpcast.run(scenario, ["packet", "pftk"], feed="measured")
    assert pftk["send_rate_pps"] == pytest.approx(packet["send_rate_pps"], rel=0.2)


def test_scaled_and_iterated_engines_are_not_applicable() -> None:
    users = {
        "traffic": {
            "kind": "on-off",
            "sources": 100,
            "off": {"distribution": "exponential", "mean": "1s"},
            "size": {"distribution": "exponential", "mean": "12pkt"},
        },
        "tcp": {"stack": "linux-cubic"},
    }
    scenario = Scenario.from_dict(BASE | users)
    result = {a.engine: a for a in tcpcast.run(scenario, ["mean-field", "fixed-point", "engset"])}
    assert "has not been validated for modern TCP" in (result["mean-field"].not_applicable or "")
    assert "instantaneous loss feedback" in (result["fixed-point"].not_applicable or "")
    assert "the formula models the window of Reno" in (result["engset"].not_applicable or "")
