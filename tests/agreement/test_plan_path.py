"""Plans of one path: exact inverses of the models, and checks by simulation."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tcpcast.answer import Answer, Metric, Status
from tcpcast.errors import DomainError, NotApplicable
from tcpcast.models.cubic import cubic_response
from tcpcast.models.domain import MAX_RTO_SHARE
from tcpcast.models.mathis import mathis_rate_pps
from tcpcast.models.parallel import parallel_throughput
from tcpcast.models.pftk import throughput
from tcpcast.plan import Plan, plan_max_loss, plan_streams, verification
from tcpcast.plan.planned_path import MAX_PACKETS
from tcpcast.readable_units import rate_text
from tcpcast.scenario import Scenario, load

if TYPE_CHECKING:
    from collections.abc import Callable

PACKET_BITS, PAYLOAD_BITS = 12_000, 11_680


def path(**changes: Any) -> Scenario:
    """Return a path of 100 Mbit/s and 200 ms with a loss of one packet in a thousand."""
    base = Scenario.from_dict(
        {
            "network": {
                "rtt": "200ms",
                "bottleneck": {"rate": "100mbit", "buffer": "1bdp", "loss": "0.1%"},
            },
            "traffic": {"kind": "bulk", "flows": 1},
            "tcp": {"stack": "rfc-newreno"},
            "run": {"duration": "60s", "transfers": None},
        }
    )
    return base.with_changes({key.replace("__", "."): value for key, value in changes.items()})


def lossy(rtt: str = "80ms", **changes: Any) -> Scenario:
    """Return a path without a bottleneck."""
    return path(network__rtt=rtt, network__bottleneck__rate="unlimited", **free(changes))


def free(changes: dict[str, Any]) -> dict[str, Any]:
    return {"network__bottleneck__buffer": "unlimited", **changes}


def pftk_pps(p: float, rtt: float, *, b: int = 1, window: float = math.inf) -> float:
    return float(
        throughput(
            rtt_s=rtt,
            t0_s=max(1.0, rtt),
            loss_indication_ratio=p,
            packets_per_ack=b,
            receiver_window_pkts=window,
        ).rate_pps
    )


def parallel_pps(n: float, p: float, rtt: float, *, b: int = 1) -> float:
    return float(
        parallel_throughput(
            flows=n, rtt_s=rtt, t0_s=max(1.0, rtt), loss_event_ratio=p, packets_per_ack=b
        ).rate_pps
    )


# ---------------------------------------------------------------- number of flows


@pytest.mark.parametrize(("rate", "loss"), [("100mbit", 1e-3), ("1gbit", 1e-4), ("20mbit", 2e-3)])
def test_streams_are_the_minimum_that_fills_the_link(rate: str, loss: float) -> None:
    scenario = path(network__bottleneck__rate=rate, network__bottleneck__loss=loss)
    plan = plan_streams(scenario)
    link = scenario.network.bottleneck.rate_bps / PACKET_BITS
    assert parallel_pps(plan.value, loss, 0.2) >= link > parallel_pps(plan.value - 1, loss, 0.2)
    assert plan.warnings == []
    assert plan.scenario is not None
    assert plan.scenario.traffic.count == plan.value


def test_curve_rises_up_to_the_link_rate() -> None:
    plan = plan_streams(path())
    curve = plan.tables["curve"]
    n, rate, goodput = curve["flows"], curve["parallel_bps"], curve["goodput_bps"]
    assert n.tolist() == list(range(1, 3 * int(plan.value) + 1))
    np.testing.assert_allclose(goodput[1:], goodput[:-1] + curve["gain_bps"][:-1])
    assert (np.diff(rate) >= 0).all()
    assert rate[-1] == pytest.approx(100e6)
    full = n >= plan.value
    assert set(curve["limit"][full]) == {"capacity"}
    assert set(curve["limit"][~full]) == {"loss"}
    assert (curve["gain_bps"][full] == 0).all()
    np.testing.assert_allclose(curve["competing_bps"][full], goodput[-1] / (n[full] + 1))
    pftk_bps = pftk_pps(1e-3, 0.2) * PACKET_BITS
    np.testing.assert_allclose(curve["pftk_bps"], np.minimum(n * pftk_bps, 100e6))
    np.testing.assert_allclose(curve["goodput_bps"], rate * 0.999 * 1460 / 1500)


def test_sentence_of_streams_has_the_goodput_of_the_table() -> None:
    plan = plan_streams(path())
    rows, value = plan.tables["streams"], int(plan.value)
    for column, flows in (
        ("goodput_bps", 1),
        ("competing_bps", value),
        ("competing_bps", 2 * value),
    ):
        (rate,) = rows[column][rows["flows"] == flows]
        assert f" {rate_text(float(rate))}" in plan.recommendation


def test_printed_rows_include_rows_beyond_the_curve() -> None:
    plan = plan_streams(path())
    rows, value = plan.tables["streams"]["flows"].tolist(), int(plan.value)
    assert rows[0] == 1
    assert {value, value + 1, 2 * value, 4 * value} <= set(rows)


def test_small_windows_need_more_flows() -> None:
    """8 packets in 200 ms are 40 packets/s: 209 flows fill the link of 8,333 packets/s."""
    plan = plan_streams(path(tcp__receiver_window=8))
    assert plan.value == math.ceil(100e6 / PACKET_BITS / 40)
    assert plan.tables["streams"]["limit"][0] == "window"
    assert "a window of 8 packets" in plan.recommendation


def test_access_links_limit_like_windows() -> None:
    slow = path(network__ingress={"rate": "600kbit"})
    plan = plan_streams(slow)
    assert plan.value == math.ceil(100e6 / 600e3)
    assert "the link network.ingress of 600 kbit/s per flow" in plan.recommendation


def test_planned_streams_can_be_one() -> None:
    plan = plan_streams(path(network__bottleneck__rate="1mbit"))
    assert plan.value == 1
    assert plan.recommendation.startswith("One flow fills the link")
    streams = plan.tables["streams"]
    assert streams["competing_bps"][0] == pytest.approx(streams["goodput_bps"][0] / 2)


def test_pftk_answers_if_most_flows_would_be_in_timeout() -> None:
    """T0 = 33 RTT: by algorithm 1 all flows are in timeout and send one packet per second each."""
    scenario = path(
        network__rtt="30ms", network__bottleneck__rate="10mbit", network__bottleneck__loss="1%"
    )
    plan = plan_streams(scenario)
    assert plan.value == math.ceil(10e6 / PACKET_BITS / pftk_pps(0.01, 0.03)) == 4
    assert any("algorithm 1 assumes" in w and "100 %" in w for w in map(str, plan.warnings))
    assert any("837 flows" in note for note in plan.notes)
    table = plan.tables["streams"]
    assert table["limit"][table["flows"] == 4] == ["capacity"]
    assert (table["parallel_bps"] < table["pftk_bps"]).all()


def test_algorithm_1_rate_is_lower_than_pftk_by_timeout_factor() -> None:
    """The rate factor is 1 - s instead of 1/(1 + s), with s timeouts per period."""
    rtt, p = 0.06, 1e-2
    for t0 in (0.06, 0.2, 0.4):
        model = parallel_throughput(
            flows=1, rtt_s=rtt, t0_s=t0, loss_event_ratio=p, packets_per_ack=1
        )
        share = float(model.flows_in_timeout)
        free = 1 / (p * float(model.rounds) * rtt)
        assert float(model.rate_pps) == pytest.approx(free * (1 - share), rel=0.02)
        pftk = throughput(rtt_s=rtt, t0_s=t0, loss_indication_ratio=p, packets_per_ack=1)
        lost = float(pftk.timeout_time_share) / (1 - float(pftk.timeout_time_share))
        # PFTK's s has a different Q and one round more.
        assert float(pftk.rate_pps) == pytest.approx(free / (1 + lost), rel=0.06)
        assert share == pytest.approx(lost, rel=0.5)


def test_streams_have_warnings() -> None:
    assert "up to 10 %" in plan_streams(path(network__bottleneck__loss="12%")).untrusted
    small = path(network__rtt="30ms", network__bottleneck__rate="1mbit")
    assert any("fast retransmit" in w for w in map(str, plan_streams(small).warnings))
    bursts = {"model": "gilbert-elliott", "to_bad": "0.1%", "to_good": "50%"}
    result = plan_streams(path(network__bottleneck__loss=bursts))
    assert any("correlated" in w for w in map(str, result.warnings))


CAP = {"name": "cap", "shared": False, "buffer": "50pkt"}
LINE = {"name": "line", "rate": "10mbit", "buffer": "100pkt"}


@pytest.mark.parametrize(
    ("stack", "loss"),
    [("linux-cubic", None), ("linux-cubic", "0.001%"), ("linux-bbr", "0%"), ("rfc-newreno", None)],
)
@pytest.mark.parametrize(
    ("limit", "flows"),
    [
        ({"network.hop": [{**CAP, "rate": "2mbit"}, LINE]}, 5),
        ({"network.hop": [LINE, {**CAP, "rate": "3mbit"}]}, 4),
        ({"network.hop": [LINE], "network.ingress": {"rate": "1mbit"}}, 10),
        ({"network.hop": [LINE], "network.egress": {"rate": "4mbit"}}, 3),
        ({"network.hop": [LINE], "tcp.receiver_window": 5}, 5),  # 5 of 25 packets
        ({"network.hop": [LINE], "tcp.receiver_window": 25}, 1),
        ({"network.hop": [LINE]}, 1),
    ],
)
def test_limit_of_a_flow_determines_streams(
    limit: dict[str, Any], flows: int, loss: str | None, stack: str
) -> None:
    """Any limit of one flow counts, without loss as with a loss that does not matter."""
    scenario = Scenario.from_dict(
        {
            "network": {"rtt": "30ms", "hop": [LINE]},
            "traffic": {"kind": "bulk", "flows": 1},
            "tcp": {"stack": stack},
            "run": {"duration": "60s", "transfers": None},
        }
    ).with_changes(limit)
    if loss is not None:
        scenario = scenario.with_changes({"network.hop.line.loss": loss})
    plan = plan_streams(scenario)
    assert plan.value == flows
    table = plan.tables["streams"]
    reached = table["goodput_bps"][table["flows"] == flows]
    assert reached == pytest.approx(10e6 * scenario.payload_bytes / 1500, rel=1e-4)
    assert table["limit"][table["flows"] == flows] == ["capacity"]
    if flows > 1:
        assert table["limit"][0] == "window"


def test_simulation_confirms_streams_of_capped_flows() -> None:
    scenario = Scenario.from_dict(
        {
            "network": {"rtt": "30ms", "hop": [{**CAP, "rate": "2mbit"}, LINE]},
            "traffic": {"kind": "bulk", "flows": 1},
            "run": {"duration": "60s", "transfers": None},
        }
    )
    plan = plan_streams(scenario, verify=True)
    assert plan.value == plan.simulated == 5
    utilisation = plan.tables["simulated"]["utilisation"]
    assert utilisation[:2] == pytest.approx([0.4, 1], abs=0.01)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (free({"network__bottleneck__rate": "unlimited"}), "no rate"),
    ],
)
def test_streams_outside_the_domain_are_rejected(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(DomainError, match=words):
        plan_streams(path(**changes))


def test_streams_and_loss_require_one_class_of_bulk_flows() -> None:
    two = path(**{"class": [{"name": "near", "flows": 1}, {"name": "far", "flows": 2}]})
    for ask in (plan_streams, lambda s: plan_max_loss(s, goodput_bps=1e6)):
        with pytest.raises(NotApplicable, match="bulk"):
            ask(load("web-10mbit"))
        with pytest.raises(NotApplicable, match="one class"):
            ask(two)


# ---------------------------------------------------------------- tolerated loss


@pytest.mark.parametrize("goodput_bps", [50e6, 5e6, 1e6, 200e3])
@pytest.mark.parametrize("b", [1, 2])
def test_tolerated_loss_gives_the_goodput(goodput_bps: float, b: int) -> None:
    """(1 - p) B(p) at the loss of each model is the goodput in packets/s."""
    plan = plan_max_loss(lossy(tcp__delayed_acks=b == 2), goodput_bps=goodput_bps)
    target = goodput_bps / PAYLOAD_BITS
    table = plan.tables["tolerated"]
    assert table["model"].tolist() == [
        "PFTK (31)",
        "parallel, algorithm 1, n = 1",
        "square root",
        "CUBIC response",
    ]
    distributions: list[Callable[[float], float]] = [
        lambda p: pftk_pps(p, 0.08, b=b),
        lambda p: parallel_pps(1, p, 0.08, b=b),
        lambda p: float(mathis_rate_pps(rtt_s=0.08, loss_indication_ratio=p, packets_per_ack=b)),
        lambda p: float(cubic_response(rtt_s=0.08, loss_ratio=p).rate_pps),
    ]
    for distribution, p in zip(distributions, table["loss_ratio"].tolist(), strict=True):
        assert (1 - p) * distribution(p) == pytest.approx(target, rel=1e-5)
    assert plan.value == table["loss_ratio"][0]
    sent = table["rate_bps"] * (1 - table["loss_ratio"]) * 1460 / 1500
    np.testing.assert_allclose(sent, goodput_bps)


def test_loss_is_the_maximum_at_an_upward_jump() -> None:
    """For b = 1 the rate rises by a few per cent as p passes the border of the window."""
    window = 10
    scenario = lossy(tcp__receiver_window=window)
    grid = np.geomspace(1e-4, 0.2, 20_001)
    rate = throughput(
        rtt_s=0.08,
        t0_s=1.0,
        loss_indication_ratio=grid,
        packets_per_ack=1,
        receiver_window_pkts=window,
    ).rate_pps
    goodput = (1 - grid) * rate
    border = int(np.argmax(np.diff(goodput)))
    assert goodput[border + 1] > goodput[border]
    for target in (goodput[border] * 1.001, goodput[border] * 0.999, goodput[border] * 1.2):
        value = plan_max_loss(scenario, goodput_bps=target * PAYLOAD_BITS).value
        largest = grid[np.flatnonzero(goodput >= target)[-1]]
        assert value == pytest.approx(largest, rel=1e-3)


def test_algorithm_1_answers_for_many_flows_with_few_timeouts() -> None:
    plan = plan_max_loss(lossy(traffic__flows=4), goodput_bps=50e6)
    assert plan.tables["tolerated"]["model"][0] == "parallel, algorithm 1, n = 4"
    sent = parallel_pps(4, plan.value, 0.08)
    assert (1 - plan.value) * sent == pytest.approx(50e6 / PAYLOAD_BITS, rel=1e-5)
    assert plan.warnings == []
    many = plan_max_loss(lossy(traffic__flows=5), goodput_bps=2e6)
    assert many.tables["tolerated"]["model"][0] == "PFTK (31), each of 5"
    assert any("algorithm 1 assumes" in w for w in map(str, many.warnings))
    p = float(many.tables["tolerated"]["loss_ratio"][1])
    model = parallel_throughput(
        flows=5, rtt_s=0.08, t0_s=1.0, loss_event_ratio=p, packets_per_ack=1
    )
    assert float(model.flows_in_timeout) / 5 > MAX_RTO_SHARE


def test_full_link_limits_the_loss() -> None:
    """The share (1 - p) of a full link is goodput; the rest is retransmissions."""
    scenario = path(network__rtt="2ms", tcp__min_rto="10ms")
    plan = plan_max_loss(scenario, goodput_bps=97.3e6)
    assert plan.value == pytest.approx(1 - 97.3e6 / (100e6 * 1460 / 1500), rel=1e-6)
    assert plan.tables["tolerated"]["regime"][0] == "bottleneck"
    assert "no more capacity" in plan.recommendation


def test_suggested_changes_are_sufficient() -> None:
    plan = plan_max_loss(lossy(tcp__delayed_acks=True, tcp__receiver_window=400), goodput_bps=40e6)
    suggestions = plan.tables["ways"]
    assert suggestions["change"].tolist() == [
        "half the RTT (40 ms)",
        "2 flows",
        "packets of 9000 B",
        "an ack for every packet",
        "twice the window (800 packets)",
    ]
    np.testing.assert_allclose(suggestions["times"], suggestions["loss_ratio"] / plan.value)
    assert (suggestions["times"] >= 1).all()
    changed = {
        "network.rtt": "40ms",
        "traffic.flows": 2,
        "tcp.delayed_acks": False,
        "tcp.receiver_window": 800,
    }
    rows = (0, 1, 3, 4)
    for row, (key, value) in zip(rows, changed.items(), strict=True):
        scenario = lossy(tcp__delayed_acks=True, tcp__receiver_window=400)
        improved = plan_max_loss(scenario.with_changes({key: value}), goodput_bps=40e6)
        assert suggestions["loss_ratio"][row] == pytest.approx(improved.value, rel=1e-5)


def test_loss_of_the_scenario_is_ignored() -> None:
    arguments = {
        plan_max_loss(lossy(network__bottleneck__loss=p), goodput_bps=5e6).value
        for p in (0.01, 0.2)
    }
    assert len(arguments) == 1
    plan = plan_max_loss(lossy(), goodput_bps=5e6)
    assert plan.scenario is not None
    assert plan.scenario.network.bottleneck.loss is not None
    assert plan.scenario.network.bottleneck.loss.mean_ratio() == pytest.approx(plan.value)


@pytest.mark.parametrize(
    ("changes", "goodput_bps", "words"),
    [
        ({}, 0.0, "above 0"),
        ({}, math.inf, "finite"),
        ({}, math.nan, "above 0"),
        ({"tcp__receiver_window": 44}, 50e6, r"44 packets .* 6\.424 Mbit/s .* 343 packets"),
        ({"tcp__receiver_window": 44}, 44 * PAYLOAD_BITS / 0.08, "45 packets"),
        (
            {"tcp__receiver_window": 44, "traffic__flows": 3},
            50e6,
            "each of 3 flows.* 115 packets .* 8 flows",
        ),
        (
            {"network__ingress": {"rate": "10mbit"}},
            50e6,
            "network.ingress of 10 Mbit/s per flow gives .* 6 flows, or a rate .* 51.37 Mbit/s",
        ),
    ],
)
def test_unreachable_goodput_is_rejected(
    changes: dict[str, Any], goodput_bps: float, words: str
) -> None:
    with pytest.raises(DomainError, match=words):
        plan_max_loss(lossy(**changes), goodput_bps=goodput_bps)


def test_suggestion_of_an_error_is_sufficient() -> None:
    for window, flows in ((343, 1), (44, 8)):
        scenario = lossy(tcp__receiver_window=window, traffic__flows=flows)
        assert plan_max_loss(scenario, goodput_bps=50e6).value > 0
    with pytest.raises(DomainError, match="a link rate of 113 Mbit/s"):
        plan_max_loss(path(), goodput_bps=100e6)
    assert plan_max_loss(path(network__bottleneck__rate="113mbit"), goodput_bps=100e6).value > 0


def test_loss_on_access_links_is_rejected() -> None:
    with pytest.raises(NotApplicable, match=r"network\.ingress\.loss"):
        plan_max_loss(lossy(network__ingress={"loss": "1%"}), goodput_bps=1e6)


def test_both_plans_are_serialised_as_json() -> None:
    for plan in (plan_streams(path()), plan_max_loss(lossy(), goodput_bps=1e6)):
        body = json.loads(json.dumps(plan.to_json(), allow_nan=False))
        assert body["value"] == plan.value
        assert body["recommendation"] == plan.recommendation
        assert all(len(table["columns"]) >= 2 for table in body["tables"].values())


# ---------------------------------------------------------------- search by simulation

Metrics = dict[str, float]


@pytest.fixture
def simulated(
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[Callable[[Scenario], Metrics]], list[Scenario]]:
    """Replace the simulator by a function and record the simulated scenarios."""

    def install(metrics_of: Callable[[Scenario], Metrics]) -> list[Scenario]:
        scenarios: list[Scenario] = []

        def run(scenario: Scenario, engines: list[str], options: object) -> list[Answer]:
            del options
            assert engines == ["packet"]
            scenarios.append(scenario)
            metrics = {
                name: Metric(value, value * 0.98, value * 1.02)
                for name, value in metrics_of(scenario).items()
            }
            return [Answer(engine="packet", metrics=metrics)]

        monkeypatch.setattr(verification, "answer", run)
        return scenarios

    return install


def test_streams_are_verified_by_simulation(simulated: Callable[..., list[Scenario]]) -> None:
    """Flows that send 200 packets/s each: 41.7 flows fill the link of 8,333 packets/s."""

    def metrics_of(scenario: Scenario) -> Metrics:
        sent = min(200.0 * scenario.senders, 100e6 / PACKET_BITS)
        busy = sent * PACKET_BITS / 100e6
        return {"send_rate_pps": sent, "goodput_bps": sent * 11_000, "utilisation": busy}

    scenarios = simulated(metrics_of)
    plan = plan_streams(path(), verify=True)
    value = int(plan.value)
    assert plan.simulated == math.ceil(100e6 / PACKET_BITS / 200)
    assert [s.senders for s in scenarios] == [value // 2, value, 2 * value, plan.simulated]
    table = plan.tables["simulated"]
    assert table["flows"].tolist() == sorted([value // 2, value, 2 * value, plan.simulated])
    assert table["utilisation"][-1] == pytest.approx(1)
    assert plan.simulated_metric is not None
    half = parallel_pps(value // 2, 1e-3, 0.2) * 0.999 * PAYLOAD_BITS
    assert table["model_bps"][0] == pytest.approx(half)
    assert {s.run.warmup_s for s in scenarios} != {None}
    assert {s.run.replications for s in scenarios} == {1}


def test_loss_is_verified_by_simulation(simulated: Callable[..., list[Scenario]]) -> None:
    """Goodput falls as p^-0.7; the simulated loss is found between two runs."""
    for factor in (0.7, 1.0, 1.4, 3.0):

        def metrics_of(scenario: Scenario, factor: float = factor) -> Metrics:
            loss = scenario.network.bottleneck.loss
            assert loss is not None
            return {"goodput_bps": factor * 5e6 * (loss.mean_ratio() / 1.2e-3) ** -0.7}

        scenarios = simulated(metrics_of)
        plan = plan_max_loss(lossy(), goodput_bps=5e6, verify=True)
        assert plan.simulated == pytest.approx(1.2e-3 * factor ** (1 / 0.7), rel=0.01)
        assert len(scenarios) <= 12
        losses = plan.tables["simulated"]["loss_ratio"].tolist()
        assert plan.value in losses
        assert losses == sorted(losses)


def test_loss_verification_gives_up(simulated: Callable[..., list[Scenario]]) -> None:
    simulated(lambda _: {"goodput_bps": 9e6})
    plan = plan_max_loss(lossy(), goodput_bps=5e6, verify=True)
    assert plan.simulated is None
    assert any("outside" in w for w in map(str, plan.warnings))


def test_too_large_scenarios_are_not_simulated(simulated: Callable[..., list[Scenario]]) -> None:
    scenarios = simulated(lambda _: {})
    fast = path(network__bottleneck__rate="1000gbit", network__bottleneck__loss="0.0001%")
    for plan in (
        plan_streams(fast, verify=True),
        plan_max_loss(lossy(), goodput_bps=10e9, verify=True),
    ):
        assert plan.simulated is None
        assert any("not checked by simulation" in w for w in map(str, plan.warnings))
    assert scenarios == []
    assert MAX_PACKETS == 5e8


def test_interrupted_streams_keep_finished_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = iter(range(10))

    def run(scenario: Scenario, engines: list[str], options: object) -> list[Answer]:
        del scenario, engines, options
        metrics = {name: Metric(1.0) for name in ("goodput_bps", "send_rate_pps", "utilisation")}
        return [
            Answer(
                engine="packet",
                metrics=metrics,
                status=Status.INTERRUPTED if next(runs) == 1 else Status.DONE,
            )
        ]

    monkeypatch.setattr(verification, "answer", run)
    plan = plan_streams(path(), verify=True)
    assert plan.interrupted
    assert plan.simulated is None
    assert len(plan.tables["simulated"]["flows"]) == 2


# ---------------------------------------------------------------- comparison with the packet engine


def assert_simulation_agrees(plan: Plan, rel: float) -> None:
    assert plan.simulated == pytest.approx(plan.value, rel=rel)


def test_simulation_agrees_on_the_flows() -> None:
    """62 flows by algorithm 1 over 200 ms; half as many flows fill half of the link."""
    plan = plan_streams(path(tcp__delayed_acks=True), verify=True)
    assert_simulation_agrees(plan, 0.1)
    busy = plan.tables["simulated"]["utilisation"]
    assert busy[0] == pytest.approx(0.5, abs=0.05)
    assert busy[1] > 0.9
    assert busy[-1] > 0.999


def test_simulation_agrees_on_a_window_limited_loss() -> None:
    plan = plan_max_loss(lossy(tcp__receiver_window=44), goodput_bps=5e6, verify=True)
    assert_simulation_agrees(plan, 0.1)
    table = plan.tables["simulated"]
    at_value = table["loss_ratio"] == plan.value
    assert table["goodput_bps"][at_value] == pytest.approx([5e6], rel=0.02)


def test_check_ends_at_max_wall() -> None:
    for plan in (
        plan_streams(path(run__max_wall="1ms"), verify=True),
        plan_max_loss(lossy(run__max_wall="1ms"), goodput_bps=5e6, verify=True),
    ):
        assert plan.incomplete
        assert plan.simulated is None
        assert len(plan.verified) <= 1
        assert "run.max_wall was reached before the check finished" in map(str, plan.warnings)
