"""Links with variable rates, policers and jitter, from the scenario to the answer."""

import math
from pathlib import Path
from typing import Any

import pytest
import tcpcast
from tcpcast.process.errors import ScenarioError
from tcpcast.scenario import Scenario
from tcpcast.scenario import rate as rates
from tcpcast.scenario.queue import QUEUE_NAMES

BUCKET = {"bucket": "10mbit", "burst": "30KB"}
POLICER = {**BUCKET, "policer": True}
TRACE = {"opportunities": "0x2 3x7 30 31x30 48x40"}
"""20 Mbit/s on average."""


def make_scenario(bottleneck: dict[str, Any], **network: Any) -> Scenario:
    return Scenario.from_dict(
        {
            "network": {"rtt": "40ms", "bottleneck": bottleneck, **network},
            "traffic": {"kind": "bulk", "flows": 2},
            "tcp": {"stack": "rfc-newreno"},
            "run": {"duration": "30s", "warmup": "5s"},
        }
    )


def simulate(scenario: Scenario, engine: str = "packet") -> tcpcast.Answer:
    (answer,) = tcpcast.run(scenario, [engine])
    return answer


@pytest.mark.parametrize("stack", ["rfc-newreno", "linux-reno", "linux-cubic"])
@pytest.mark.parametrize(("rate", "bps"), [(BUCKET, 10e6), (TRACE, 20e6)])
def test_flows_fill_a_link_at_its_mean_rate(stack: str, rate: dict[str, Any], bps: float) -> None:
    scenario = make_scenario({"rate": rate, "buffer": "2bdp"}).with_changes({"tcp.stack": stack})
    result = simulate(scenario).metrics
    assert scenario.network.bottleneck.rate_bps == bps
    passed_bps = result["send_rate_pps"].value * (1 - result["loss_ratio"].value) * 12_000
    assert passed_bps == pytest.approx(result["utilisation"].value * bps, rel=2e-3)
    assert 0.9 < result["utilisation"].value < 1.005
    # Little's law; the time in the queue is the total time at the link.
    mean_pkts = result["queue_delay_mean_s"].value * passed_bps / 12_000
    assert mean_pkts == pytest.approx(result["queue_mean_pkts"].value, rel=0.02)


@pytest.mark.parametrize("stack", ["rfc-newreno", "linux-cubic"])
def test_policer_drops_without_a_queue(stack: str) -> None:
    result = simulate(make_scenario({"rate": POLICER}).with_changes({"tcp.stack": stack})).metrics
    assert result["queue_loss_ratio"].value == result["loss_ratio"].value > 0
    assert not {name for name in result if name.startswith(("queue_delay", "queue_m"))}
    assert 0.4 < result["utilisation"].value < 1
    assert result["rtt_mean_s"].value < 0.045


@pytest.mark.parametrize("queue", QUEUE_NAMES)
def test_every_queue_works_with_a_shaper(queue: str) -> None:
    result = simulate(make_scenario({"rate": BUCKET, "buffer": "50pkt", "queue": queue})).metrics
    assert result["utilisation"].value > 0.8
    assert result["queue_mean_pkts"].value <= 50


def test_burst_leaves_immediately() -> None:
    def times(rate: object) -> list[float]:
        scenario = Scenario.from_dict(
            {
                "network": {"rtt": "40ms", "bottleneck": {"rate": rate}},
                "traffic": {"kind": "transfers", "size": ["2pkt", "20pkt"], "count": 20},
                "tcp": {"stack": "rfc-newreno", "initial_window": 20},
                "run": {},
            }
        )
        return [float(time) for time in simulate(scenario).tables["by_size"]["delivery_time_s"]]

    # Each transfer starts with a full bucket: 20 packets are its burst, and take only the
    # propagation.
    assert times(BUCKET) == pytest.approx([0.020, 0.020], abs=1e-9)
    # A burst of ten: the last ten packets follow at 1.2 ms each.
    assert times({**BUCKET, "burst": "15KB"}) == pytest.approx([0.020, 0.032], abs=1e-9)


def test_shared_hops_can_have_variable_rates() -> None:
    hops = [
        {"name": "policed", "rate": {"bucket": "12mbit", "burst": "60KB", "policer": True}},
        {"name": "cell", "rate": TRACE, "buffer": "100pkt"},
        {"name": "access", "rate": "8mbit", "buffer": "50pkt"},
    ]
    scenario = Scenario.from_dict(
        {
            "network": {"rtt": "40ms", "hop": hops},
            "traffic": {"kind": "bulk", "flows": 2},
            "tcp": {"stack": "rfc-newreno"},
            "run": {"duration": "30s", "warmup": "5s"},
        }
    )
    table = simulate(scenario).tables["by_link"]
    carried = [u * bps for u, bps in zip(table["utilisation"], [12e6, 20e6, 8e6], strict=True)]
    assert carried[1] == pytest.approx(carried[0], rel=0.01)
    assert table["queue_mean_pkts"][0] == 0


def test_jitter_delays_packets_and_reorders_only_on_request() -> None:
    link = {"rate": "20mbit", "buffer": "20pkt", "loss": "0.1%"}
    distribution = {"distribution": "exponential", "mean": "3ms"}
    result = simulate(make_scenario(link, jitter=distribution)).metrics
    free = simulate(make_scenario(link, jitter={**distribution, "reorder": True})).metrics
    # Three duplicate acks come from packets that overtook another, and not from losses.
    assert free["loss_indication_ratio"].value > 3 * result["loss_indication_ratio"].value


@pytest.mark.parametrize("reorder", [False, True])
@pytest.mark.parametrize("stack", ["rfc-newreno", "linux-cubic"])
def test_single_packet_is_delayed_by_the_jitter(stack: str, reorder: bool) -> None:
    distribution = {"distribution": "uniform", "low": "2ms", "high": "4ms", "reorder": reorder}
    window = {"tcp.stack": stack, "tcp.receiver_window": 1, "tcp.delayed_acks": False}
    window["tcp.host_noise"] = "0s"
    result = simulate(
        make_scenario({"rate": "1gbit"}, jitter=distribution).with_changes(window)
    ).metrics
    assert result["rtt_mean_s"].value == pytest.approx(0.043, abs=1e-4)


def test_trace_file_is_resolved_relative_to_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "cell.trace").write_text("1\n1\n\n4\n", encoding="utf-8")
    tables = make_scenario({"rate": "1mbit", "buffer": "9pkt"}).resolved()
    tables["network"]["bottleneck"]["rate"] = {"trace": "cell.trace"}
    scenario = Scenario.from_dict(tables, folder=tmp_path)
    assert scenario.network.bottleneck.rate_bps == 9e6
    assert scenario.resolved()["network"]["bottleneck"]["rate"] == {"opportunities": "1x2 4"}
    assert Scenario.from_dict(scenario.resolved()) == scenario


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "1\n1.5\n",
            'cell.trace, line 2: "1.5" is not a whole number of milliseconds; use 12, for example',
        ),
        ("1\n2x3\n", 'cell.trace, line 2: "2x3" is not a whole number'),
        ("3\n\n2\n", "cell.trace, line 3: 2 ms is before 3 ms; sort the times"),
        ("0\n", "cell.trace repeats after its last time, which must be above 0 ms"),
        ("", "cell.trace repeats after its last time, which must be above 0 ms"),
        ("-1\n", 'line 1: "-1" is not'),
        ("99999999999\n", '"99999999999" is above the maximum, 4,294,967,295 ms'),
        ("1\n" * 1001, "line 1001: more than 1,000 packets"),
    ],
)
def test_malformed_trace_names_the_line(
    tmp_path: Path, text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "MAX_OPPORTUNITIES", 1000)
    (tmp_path / "cell.trace").write_text(text, encoding="utf-8")
    tables = make_scenario({"rate": "1mbit", "buffer": "9pkt"}).resolved()
    tables["network"]["bottleneck"]["rate"] = {"trace": "cell.trace"}
    with pytest.raises(ScenarioError) as error:
        Scenario.from_dict(tables, folder=tmp_path)
    assert message in str(error.value)


def test_formulas_use_the_mean_rate_with_a_warning() -> None:
    for rate, words in (
        (BUCKET, "is a token bucket: the model assumes a constant rate of 10mbit (the mean)"),
        (
            POLICER,
            "is a policer: the model includes the rate of the policer (10mbit), but not its drops",
        ),
        (TRACE, "is a trace of transmission opportunities: the model assumes a constant rate of "),
    ):
        answer = simulate(make_scenario({"rate": rate, "loss": "0.0001%"}), "pftk")
        bps = make_scenario({"rate": rate}).network.bottleneck.rate_bps
        assert answer.metrics["send_rate_pps"].value * 12_000 == pytest.approx(bps, rel=0.01)
        assert any(words in warning for warning in answer.warnings), answer.warnings
        assert not math.isinf(bps)


def test_engines_reject_unsupported_policers_and_variable_rates() -> None:
    web = {
        "network": {"rtt": "40ms", "bottleneck": {"rate": POLICER}},
        "traffic": {
            "kind": "on-off",
            "sources": 20,
            "off": {"distribution": "exponential", "mean": "1s"},
            "size": {"distribution": "exponential", "mean": "20pkt"},
        },
        "tcp": {"stack": "rfc-newreno", "receiver_window": 20},
        "run": {"duration": "20s", "warmup": "1s"},
    }
    scenario = Scenario.from_dict(web)
    for engine, words in (("engset", "a policer"), ("mean-field", "behind a policer")):
        assert words in str(simulate(scenario, engine).not_applicable)
