"""Congestion control as a Python class: the same results as a built-in one, and errors."""

from pathlib import Path
from typing import Any

import pytest
import tcpcast
from tcpcast import CongestionControl, ControlError, register_control
from tcpcast.control import load_control
from tcpcast.scenario import Scenario


class PlainReno(CongestionControl):
    """The base class."""


class FixedRate(CongestionControl):
    """Paces 4 Mbit/s, and never changes the window."""

    def on_ack(self, ack: Any) -> None:
        self.cwnd, self.pacing_rate = max(100.0, ack.in_flight), 4e6

    def on_loss(self, now_s: float) -> None:
        """Losses have no effect."""


class ModelOfPath(CongestionControl):
    """Window of twice the delivery rate times the minimum RTT, as BBR."""

    def __init__(self) -> None:
        self.rates: list[float] = []

    def on_ack(self, ack: Any) -> None:
        if ack.delivery_rate_bps is None or ack.min_rtt_s is None:
            return
        self.rates = [*self.rates[-30:], ack.delivery_rate_bps]
        self.cwnd = max(4.0, 2 * max(self.rates) * ack.min_rtt_s / 8 / ack.mss)


def make_scenario(stack: str, **changed: Any) -> Scenario:
    tables: dict[str, Any] = {
        "network": {"rtt": "40ms", "bottleneck": {"rate": "10mbit", "buffer": "1bdp"}},
        "traffic": {"kind": "bulk", "flows": 2},
        "tcp": {"stack": stack},
        "run": {"duration": "60s", "seed": 1, "warmup": "10s", "replications": 2},
    }
    return Scenario.from_dict(tables).with_changes(changed)


def metrics(scenario: Scenario, **how: Any) -> dict[str, float]:
    (answer,) = tcpcast.run(scenario, ["packet"], **how)
    return {name: metric.value for name, metric in answer.metrics.items()}


def test_base_class_is_as_fast_as_reno() -> None:
    register_control("plain-reno", PlainReno)
    own, built_in = (metrics(make_scenario(stack)) for stack in ("plain-reno", "linux-reno"))
    assert own["goodput_bps"] == pytest.approx(built_in["goodput_bps"], rel=0.02)
    assert own["loss_ratio"] == pytest.approx(built_in["loss_ratio"], rel=0.4)
    assert own["queue_mean_pkts"] == pytest.approx(built_in["queue_mean_pkts"], rel=0.25)


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    register_control("plain-reno", PlainReno)
    one, two = (metrics(make_scenario("plain-reno"), threads=threads) for threads in (1, 2))
    assert one == two


def test_pacing_rate_limits_the_rate() -> None:
    register_control("fixed-rate", FixedRate)
    values = metrics(make_scenario("fixed-rate", **{"traffic.flows": 1}))
    assert values["goodput_bps"] == pytest.approx(4e6, rel=0.01)
    assert values["queue_mean_pkts"] < 1


def test_delivery_rate_and_minimum_rtt_describe_the_path() -> None:
    register_control("model-of-path", ModelOfPath)
    values = metrics(make_scenario("model-of-path", **{"traffic.flows": 1}))
    assert values["utilisation"] > 0.97
    # Two bandwidth-delay products in flight: one of them waits, and the buffer holds it.
    assert 0.02 < values["queue_delay_mean_s"] < 0.045


class Failing(CongestionControl):
    def on_ack(self, ack: Any) -> None:
        raise KeyError(f"no such key: {ack.acked}")


class WithoutWindow(CongestionControl):
    def on_ack(self, ack: Any) -> None:
        self.cwnd = ack.acked * float("nan")


def test_errors_of_a_class_end_the_run() -> None:
    register_control("failing", Failing)
    register_control("without-window", WithoutWindow)
    with pytest.raises(KeyError, match="no such key"):
        metrics(make_scenario("failing"))
    with pytest.raises(ValueError, match=r"WithoutWindow.cwnd must be at least 1 packet"):
        metrics(make_scenario("without-window"))
    register_control("plain-reno", PlainReno)
    assert metrics(make_scenario("plain-reno"))["utilisation"] > 0.9


class Constant(CongestionControl):
    def __init__(self) -> None:
        self.cwnd = 20.0

    def on_ack(self, ack: Any) -> None:
        pass


def test_window_of_a_new_instance_is_the_initial_window() -> None:
    """Regression: a window set in ``__init__`` was replaced by 10 packets, without a message."""
    register_control("constant", Constant)
    scenario = make_scenario("constant", **{"traffic.flows": 1, "network.bottleneck.rate": "1gbit"})
    assert scenario.populations[0].tcp.initial_window == 20
    assert metrics(scenario)["send_rate_pps"] == pytest.approx(20 / 0.04, rel=0.01)
    ten = scenario.with_changes({"tcp.initial_window": 10})
    assert metrics(ten)["send_rate_pps"] == pytest.approx(10 / 0.04, rel=0.01)
    with pytest.raises(
        ControlError, match=r"the initial window, is 0\.5; use 1 to 1,000,000 packets"
    ):
        register_control("wrong", type("Wrong", (CongestionControl,), {"cwnd": 0.5}))


def test_names_and_classes_are_checked() -> None:
    with pytest.raises(ControlError, match="is a stack of tcpcast"):
        register_control("linux-cubic", PlainReno)
    with pytest.raises(ControlError, match="small letters, digits and hyphens"):
        register_control("My Control", PlainReno)
    with pytest.raises(ControlError, match="must be a subclass"):
        register_control("no-class", int)  # type: ignore[arg-type]
    register_control("plain-reno", PlainReno)


def test_registered_control_shares_a_link_with_a_stack_of_papers() -> None:
    register_control("plain-reno", PlainReno)
    scenario = Scenario.from_dict(
        {
            "network": {"rtt": "40ms", "bottleneck": {"rate": "10mbit", "buffer": "1bdp"}},
            "class": [
                {"name": "a", "flows": 1, "tcp": {"stack": "plain-reno"}},
                {"name": "b", "flows": 1, "tcp": {"stack": "rfc-newreno"}},
            ],
            "traffic": {"kind": "bulk"},
            "run": {"duration": "60s", "warmup": "10s"},
        }
    )
    (answer,) = tcpcast.run(scenario, ["packet"])
    assert answer["utilisation"] > 0.9
    rates = answer.tables["by_class"]["goodput_bps"]
    assert min(rates) > 0.2 * max(rates)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "must define one subclass"),
        ("raise RuntimeError('stop')\n", "RuntimeError: stop"),
        ("def f(:\n", "SyntaxError"),
        (None, "there is no such file"),
    ],
)
def test_files_without_a_control_are_reported(
    text: str | None, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "control.py"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(ControlError, match=message):
        load_control(path)
