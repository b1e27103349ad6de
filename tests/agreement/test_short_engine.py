"""Engines for transfers: inputs from a scenario, results by size and by losses."""

import json
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from tcpcast.answer import Answer, Metric
from tcpcast.engines.formula.cardwell import cardwell
from tcpcast.engines.formula.short_transfers import short
from tcpcast.models.cardwell import cardwell_latency
from tcpcast.models.domain import outside_domain_reason
from tcpcast.models.short import ShortTransfer, lossless_latency_s
from tcpcast.process.errors import NotApplicable
from tcpcast.report.json import encode
from tcpcast.scenario import Link, Scenario, load
from tcpcast.scenario.path import PathLink
from tcpcast.scenario.routes import view_path

ON_SECOND = {"limited_transmit": True, "rules": SimpleNamespace(limited_transmit_on="second")}


def steps(result: Answer) -> dict[str, float]:
    return {entry["symbol"]: entry["value"] for entry in result.steps}


def transfers(sizes: Iterable[float] | None, **changes: Any) -> Any:
    """Transfers with the note's parameters: b = 1, IW 2, p = 0.1, RTT 100 ms, ssthresh = M = 30."""
    tcp = {
        "initial_window": 2,
        "initial_ssthresh": 30.0,
        "receiver_window": 30.0,
        "delayed_acks": False,
        "ack_timeout_s": 0.2,
        "min_rto_s": 1.0,
        "duplicate_threshold": 3,
        "last_packets_threshold": 3,
        "limited_transmit": False,
        "rules": SimpleNamespace(limited_transmit_on="each"),
        "adds_min_rto": False,
        "timeout_rule": "max(tcp.min_rto, RTT)",
        "is_modern": False,
        "handshake": None,
        "control": "reno",
    }
    inputs = {"loss": "10%", "arrivals": None, "rate": "unlimited", **changes}
    traffic = SimpleNamespace(
        kind="transfers",
        sizes=None if sizes is None else list(sizes),
        count=1000,
        arrivals=inputs["arrivals"],
    )
    bottleneck = Link.model_validate({"loss": inputs["loss"], "rate": inputs["rate"]})
    route = (
        PathLink("network.ingress", "ingress", Link()),
        PathLink("network.bottleneck", "bottleneck", bottleneck, True, True, 1, 100.0),
    )
    sender = SimpleNamespace(**{name: inputs.get(name, value) for name, value in tcp.items()})
    sender.packets_per_growth = 2 if sender.delayed_acks else 1
    sender.timeout_s = lambda rtt_s: max(sender.min_rto_s, rtt_s)
    population = SimpleNamespace(
        rtt_s=0.1, traffic=traffic, name="all", count=1, route=route, tcp=sender
    )
    scenario: Any = SimpleNamespace(
        captured=None,
        packet_size_classes=(),
        populations=[population],
        links={},
        network=SimpleNamespace(packet_bytes=1500),
        bottleneck=bottleneck,
        tcp=sender,
    )
    scenario.path = lambda group=population: view_path(group, scenario)
    return scenario


NOTE = {
    2: (0.100, 1.156, 2.195, 3.226),
    5: (0.181, 1.267, 2.338, 3.408),
    8: (0.232, 0.993, 2.043, 3.183),
    30: (0.397, 0.787, 1.291, 2.148),
}
"""Seconds given k = 0, 1, 2, 3 lost transmissions."""


def test_short_agrees_by_size_and_by_losses() -> None:
    result = short(transfers(NOTE), None)
    table = result.tables["by_losses"]
    for size, latencies in NOTE.items():
        for losses, seconds in enumerate(latencies):
            row = (table["size_pkts"] == size) & (table["losses"] == losses)
            if row.any():  # except where this many losses are rare
                # accuracy of the meshes: 3.4075 can print as either value
                assert table["completion_time_s"][row] == pytest.approx([seconds], abs=5.5e-4)
    assert table["losses"].max() == 10
    by_size = result.tables["by_size"]
    assert by_size["size_pkts"].tolist() == list(NOTE)
    for size, mean in zip(*by_size.values(), strict=True):
        rows = table["size_pkts"] == size
        part = (table["probability"] * table["completion_time_s"])[rows].sum()
        assert part == pytest.approx(mean, rel=0.02)
    assert result["completion_time_s"] == pytest.approx(by_size["completion_time_s"].mean())
    assert result.regime == "loss recovery"
    assert steps(result)["y_to"] == 2
    assert steps(result)["FileSize_min"] == 5
    assert result.notes == []
    assert json.loads(encode(result.to_json()["provenance"]))["steps"][0]["value"] == 0.1


def test_short_without_loss_is_the_growth_of_the_window() -> None:
    result = short(transfers([6, 14], loss="0%"), None)
    assert result.tables["by_size"]["size_pkts"].tolist() == [6, 14]
    assert result.tables["by_size"]["completion_time_s"] == pytest.approx([0.2, 0.3])
    assert result.tables["by_losses"]["losses"].tolist() == [0, 0]
    assert result.regime == "round trips"


@pytest.mark.parametrize(("packets", "regime"), [(20, "round trips"), (100_000, "bottleneck")])
def test_long_transfer_takes_the_time_of_the_link(packets: int, regime: str) -> None:
    tables = {
        "network": {"rtt": "40ms", "bottleneck": {"rate": "100mbit", "buffer": "1bdp"}},
        "traffic": {"kind": "transfers", "size": [f"{packets}pkt"], "count": 20},
    }
    assert short(Scenario.from_dict(tables), None).regime == regime


def test_delayed_acks_wait_for_their_timer() -> None:
    result = short(transfers([1, 5], loss="0%", delayed_acks=True), None)
    path = ShortTransfer(
        rtt_s=0.1, initial_ssthresh_pkts=30, receiver_window_pkts=30, acked_packets=2
    )
    latency_s = lossless_latency_s(path, [1, 5])
    times = result.tables["by_size"]["completion_time_s"]
    # The ack of a single packet comes when the timer expires.
    assert times[0] == pytest.approx(latency_s[0] + 0.2)
    assert times[1] > latency_s[1]


def test_limited_transmit_and_last_packets_agree_with_figure_10() -> None:
    """Reduction against neither, given one loss of eight packets (Figure 10): 12 % and 47 %."""

    def given_one_loss(**tcp: Any) -> float:
        table = short(transfers([8], **tcp), None).tables["by_losses"]
        return float(table["completion_time_s"][table["losses"] == 1][0])

    base = given_one_loss()
    assert round(1 - given_one_loss(**ON_SECOND) / base, 2) == 0.12
    proposal = given_one_loss(limited_transmit=True, last_packets_threshold=1)
    assert round(1 - proposal / base, 2) == 0.47


def test_short_uses_a_measurement() -> None:
    measured = {"loss_ratio": Metric(0.05), "rtt_mean_s": Metric(0.2)}
    result = short(transfers([10]), Answer("packet", metrics=measured))
    assert (steps(result)["p"], steps(result)["RTT"]) == (0.05, 0.2)


def test_short_warns_of_unsupported_features() -> None:
    (isolated,) = short(transfers([10], arrivals=object()), None).warnings
    assert "isolated" in isolated
    # A link of 1 Mbit/s carries 8.333 packets in a round trip, and the window grows to 12.
    slow = short(transfers([10], rate="1mbit"), None).domain
    assert slow["window_bdps"] == pytest.approx(12 / 8.333, rel=1e-3)
    assert "a window of 1.44 BDP" in outside_domain_reason("short", **slow)
    (bursty,) = short(
        transfers([10], loss={"model": "gilbert-elliott", "to_bad": "1%", "to_good": "20%"}), None
    ).warnings
    assert "independent" in bursty


@pytest.mark.parametrize("engine", [short, cardwell])
def test_transfers_warn_of_correlated_losses_and_competing_traffic(
    engine: Callable[[Any, Any], Answer],
) -> None:
    (bursty,) = engine(
        transfers([10], loss={"model": "rest-of-round", "rate": "1%"}), None
    ).warnings
    assert "independent" in bursty
    (isolated,) = engine(transfers([10], arrivals=object()), None).warnings
    assert "isolated" in isolated


@pytest.mark.parametrize("engine", [short, cardwell])
def test_transfer_takes_at_least_a_round_trip(engine: Callable[[Any, Any], Answer]) -> None:
    """The formulas have fractions of round trips: one packet with a window of two takes half."""
    result = engine(transfers([1, 2, 30], loss="0.1%"), None)
    one, two, _ = result.tables["by_size"]["completion_time_s"]
    assert 0.1 < one < two < 0.11
    assert result.notes == []


@pytest.mark.parametrize(
    ("sizes", "changes", "reason"),
    [
        ([5], {"last_packets_threshold": 2}, "use tcp.rules.last_packets_threshold = 1"),
        ([301], {}, "301 packets loses 30.1 packets on average"),
    ],
)
def test_short_is_rejected_outside_its_domain(
    sizes: list[float], changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(NotApplicable, match=reason):
        short(transfers(sizes, **changes), None)


@pytest.mark.parametrize("engine", [short, cardwell])
def test_transfers_require_listed_sizes(engine: Callable[[Any, Any], Answer]) -> None:
    with pytest.raises(NotApplicable, match="transfers"):
        engine(load("lossy-path"), None)
    with pytest.raises(NotApplicable, match="requires a list of sizes"):
        engine(transfers(None), None)


@pytest.mark.parametrize("ingress", ["unlimited", "100mbit"])
def test_link_limits_arriving_transfers(ingress: str) -> None:
    """Regression: a class with 0 flows multiplied the rates of access links to zero."""
    alone = load("short-transfers").with_changes(
        {
            "tcp": {"stack": "linux-cubic"},
            "traffic.size": ["14KB", "1MB"],
            "network.packet": "1500B",
            "network.bottleneck": {"rate": "50mbit", "buffer": "250pkt"},
            "network.ingress": {"rate": ingress},
            "traffic.count": None,
        }
    )
    arriving = alone.with_changes(
        {"run.duration": "60s", "traffic.arrivals": {"distribution": "poisson", "rate": "1/s"}}
    )
    expected, result = short(alone, None), short(arriving, None)
    assert result["completion_time_s"] == expected["completion_time_s"]
    assert steps(result)["C_link"] == pytest.approx(50e6 / (8 * 1500))


def test_cardwell_agrees_by_size() -> None:
    result = cardwell(transfers([8, 200]), None)
    expected = cardwell_latency(
        size_pkts=[8, 200],
        rtt_s=0.1,
        t0_s=1.0,
        loss_ratio=0.1,
        initial_window_pkts=2,
        packets_per_ack=1,
        receiver_window_pkts=30,
        connection=False,
    )
    assert result.tables["by_size"]["completion_time_s"] == pytest.approx(expected.latency_s)
    assert result["completion_time_s"] == pytest.approx(expected.latency_s.mean())
    assert result.regime == "congestion avoidance"
    parts = ["slow start", "first loss", "congestion avoidance", "delayed ack"]
    assert sum(steps(result)[part] for part in parts) == pytest.approx(steps(result)["E[L]"])
    few = cardwell(transfers([8]), None)
    assert few.regime == "first loss"
    with pytest.raises(NotApplicable, match="above 0"):
        cardwell(transfers([8], loss="0%"), None)
