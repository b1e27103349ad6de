"""Engines for many users on one link: their inputs and their domains."""

from collections.abc import Mapping
from typing import Any

import pytest
import tcpcast
from tcpcast.answer import Answer, Metric
from tcpcast.engines import REGISTRY
from tcpcast.engines.formula import local_loop
from tcpcast.scenario import Scenario

ENGINES = ("restart-sqrt", "fair-share", "overload-bound")


def loop(changes: Mapping[str, Any] | None = None) -> Scenario:
    """The paper's local loop with 7500 users and a round trip of 100 ms."""
    scenario = Scenario.from_dict(
        {
            "network": {
                "rtt": "100ms",
                "ingress": {"rate": "10mbit"},
                "bottleneck": {"rate": "100mbit", "buffer": "10000pkt", "queue": "fq"},
                "egress": {"rate": "10mbit"},
            },
            "traffic": {
                "kind": "on-off",
                "sources": 7500,
                "off": {"distribution": "lognormal", "mean": "30s", "sd": "30s"},
                "size": {"distribution": "lognormal", "mean": "50pkt", "sd": "50pkt"},
                "connection": "persistent",
            },
            "tcp": {"stack": "max-plus-reno", "receiver_window": 40, "idle_restart": "10s"},
            "run": {"duration": "60s", "warmup": "30s"},
        }
    )
    return scenario.with_changes(changes or {})


def run_engine(engine: str, changes: Mapping[str, Any] | None = None) -> Answer:
    (answer,) = tcpcast.run(loop(changes), [engine])
    return answer


def steps(answer: Answer) -> dict[str, float]:
    return {entry["symbol"]: entry["value"] for entry in answer.steps}


def test_idle_restarts_follow_from_the_off_time_distribution() -> None:
    """The note's 1.650 %: P(OFF > 10 s) = 0.817 over a file of 49.5 packets."""
    answer = run_engine("restart-sqrt", {"traffic.size_rounding": "down", "traffic.sources": 4000})
    assert steps(answer)["p_idle"] == pytest.approx(0.01650, abs=5e-6)
    assert answer["connection_rate_bps"] == pytest.approx(
        12_000 / 0.1 * (1.5 / 0.0165) ** 0.5, 1e-3
    )
    assert answer.regime == "restarts after idleness"
    assert answer.notes == []


@pytest.mark.parametrize(
    ("changes", "p_idle"),
    [
        ({}, 0.81680 / 50),
        ({"tcp.idle_restart": "rto"}, 0.999878 / 50),
        ({"traffic.connection": "new"}, 1 / 50),
        ({"traffic.off": {"distribution": "constant", "value": "11s"}}, 1 / 50),
        ({"traffic.off": {"distribution": "exponential", "mean": "5s"}}, 0.135335 / 50),
        (
            {
                "traffic.size": {"distribution": "constant", "value": 7.9},
                "traffic.size_rounding": "down",
            },
            0.81680 / 7,
        ),
        (
            {
                "traffic.size": {
                    "distribution": "empirical",
                    "values": [2.5, 9.5],
                    "weights": [3, 1],
                },
                "traffic.size_rounding": "down",
            },
            0.81680 / 3.75,
        ),
    ],
)
def test_idle_restart_ratio_is_per_packet(changes: dict[str, Any], p_idle: float) -> None:
    assert steps(run_engine("restart-sqrt", changes))["p_idle"] == pytest.approx(p_idle, rel=1e-4)


def test_specified_loss_applies_if_it_is_more_frequent() -> None:
    answer = run_engine("restart-sqrt", {"network.bottleneck.loss": "4%"})
    assert steps(answer)["p"] == pytest.approx(0.04)
    assert answer.regime == "losses and timeouts"


def test_square_root_formula_requires_losses() -> None:
    answer = run_engine("restart-sqrt", {"tcp.idle_restart": "never"})
    assert answer.not_applicable is not None
    assert "--feed measured" in answer.not_applicable


def test_unsupported_window_is_rejected() -> None:
    changes = {"tcp.receiver_window": 4, "traffic.sources": 2500}
    (warning,) = run_engine("restart-sqrt", changes).warnings
    assert "receiver window" in warning


def test_path_formula_warns_on_a_full_link() -> None:
    (warning,) = run_engine("restart-sqrt").warnings
    assert "a user achieves 40 kbit/s" in warning
    assert "--feed measured" in warning
    assert run_engine("restart-sqrt", {"traffic.sources": 5000}).notes == []


def test_overload_is_shared_equally() -> None:
    shared, bound = run_engine("fair-share"), run_engine("overload-bound")
    for answer in (shared, bound):
        assert answer["connection_rate_bps"] == pytest.approx(40e3)
        assert answer["offered_load"] == pytest.approx(1.5)
        assert steps(answer)["N*"] == pytest.approx(5000)
        assert answer.notes == []
    assert shared["on_time_s"] == pytest.approx(15)
    assert shared["send_rate_pps"] == pytest.approx(100e6 / 12_000)


def test_share_formula_accounts_for_loss() -> None:
    answer = run_engine("overload-bound", {"network.bottleneck.loss": "4%"})
    assert answer["connection_rate_bps"] == pytest.approx(600e3 / (7500 * 50 / 8000 - 30))
    assert steps(answer)["g at p = 0"] == pytest.approx(40e3)
    assert any("can reach 40 kbit/s" in warning for warning in answer.warnings)


@pytest.mark.parametrize("engine", ["fair-share", "overload-bound"])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"traffic.sources": 5000}, "use more than 5,000 sources"),
        ({"traffic.sources": 5000}, "5,000 sources do not fill"),
        ({"traffic.sources": 1}, "1 source does not fill"),
        ({"traffic.sources": 4000, "network.bottleneck.loss": "10%"}, "4,500"),
        (
            {"network.bottleneck": {"rate": "unlimited", "queue": "droptail"}},
            "a bottleneck with a rate",
        ),
    ],
)
def test_share_formula_rejects_a_link_that_is_not_full(
    engine: str, changes: dict[str, Any], message: str
) -> None:
    reason = run_engine(engine, changes).not_applicable
    assert reason is not None
    assert message in reason


@pytest.mark.parametrize("engine", ENGINES)
def test_formulas_reject_traffic_other_than_on_off(engine: str) -> None:
    bulk = loop({"traffic": {"kind": "bulk", "flows": 10}})
    (answer,) = tcpcast.run(bulk, [engine])
    assert answer.not_applicable is not None
    assert "on-off" in answer.not_applicable


@pytest.mark.parametrize("engine", ENGINES)
def test_default_engines_include_the_formulas_for_max_plus_only(engine: str) -> None:
    assert REGISTRY[engine].is_default_for(loop())
    assert not REGISTRY[engine].is_default_for(loop({"tcp.stack": "rfc-newreno"}))


def test_formulas_use_simulated_inputs() -> None:
    metrics = {
        "loss_ratio": 0.0419,
        "timeout_ratio": 0.0016,
        "idle_restart_ratio": 0.0165,
        "rtt_mean_s": 1.77,
    }
    measured = Answer("packet", {name: Metric(value) for name, value in metrics.items()})
    answer = local_loop.restart_sqrt(loop(), measured)
    # Table 7, case 1, 7500 sources.
    assert answer["connection_rate_bps"] == pytest.approx(39.8e3, rel=2e-3)
    lossless = Answer("packet", {"loss_ratio": Metric(0.0), "idle_restart_ratio": Metric(0.02)})
    assert steps(local_loop.restart_sqrt(loop(), lossless))["p"] == pytest.approx(0.02)


def test_formulas_agree_with_simulated_inputs() -> None:
    """In overload the flows share the link equally, within a few per cent, without lost packets."""
    names = ["fair-share", "restart-sqrt", "packet"]
    shared, root, packet = tcpcast.run(
        loop({"traffic.start": "equilibrium"}), names, feed="measured"
    )
    assert packet["loss_ratio"] > 0.01
    assert steps(shared)["g at p = 0"] == pytest.approx(packet["connection_rate_bps"], rel=0.05)
    assert shared["connection_rate_bps"] < packet["connection_rate_bps"]
    assert steps(root)["RTT"] == packet["rtt_mean_s"]
