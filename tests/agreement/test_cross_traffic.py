"""Cross traffic against queueing theory, its own distributions and simulated sources."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tcpcast
from scipy.stats import norm
from tcpcast.answer import Answer
from tcpcast.engines.packet.configuration import make_configuration
from tcpcast.scenario import Scenario

RATE, PACKET_S = 10e6, 1.2e-3
"""Transmission time of 1500 B at 10 Mbit/s."""


def probe(seconds: float, mean_off_s: float = 0.5) -> dict[str, Any]:
    """Single packets at random times that sample the queue."""
    return {
        "traffic": {
            "kind": "on-off",
            "sources": 1,
            "off": {"distribution": "exponential", "mean": f"{mean_off_s}s"},
            "size": {"distribution": "constant", "value": "1pkt"},
        },
        "run": {"duration": f"{seconds}s", "warmup": "20s"},
    }


def make_scenario(*cross: dict[str, Any], **tables: Any) -> Scenario:
    network = {"rtt": "20ms", "bottleneck": {"rate": "10mbit", "buffer": "unlimited"}}
    tcp = {"stack": "rfc-newreno"}
    scenario = {"network": network, "cross": list(cross), "tcp": tcp} | tables
    return Scenario.from_dict(scenario)


def simulate(scenario: Scenario, **options: Any) -> Answer:
    (answer,) = tcpcast.run(scenario, ["packet"], **options)
    return answer


def columns(answer: Answer) -> dict[str, Any]:
    return {name: column.tolist() for name, column in answer.tables["cross"].items()}


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_poisson_wait_follows_pollaczek_khinchine(load: float) -> None:
    scenario = make_scenario({"model": "poisson", "mean": f"{100 * load:g}%"}, **probe(8000))
    answer = simulate(scenario)
    # M/D/1 with a mean wait of rho s / (2 (1 - rho)), plus 0.2 % load by the probe itself.
    own = PACKET_S / (0.5 + 0.02)
    rho = load + own
    wait = rho * PACKET_S / (2 * (1 - rho))
    result = answer.metrics["on_time_s"]
    assert result.value == pytest.approx(0.020 + wait, abs=0.03 * wait)
    assert answer["utilisation"] == pytest.approx(rho, rel=0.005)
    queue = rho + rho**2 / (2 * (1 - rho))
    assert answer["queue_mean_pkts"] == pytest.approx(queue, rel=0.03)
    row = columns(answer)
    assert row["offered_bps"][0] == pytest.approx(load * RATE, rel=0.003)
    assert row["loss_ratio"] == [0.0]
    assert row["queue_delay_mean_s"][0] == pytest.approx(wait, rel=0.03)
    # Metrics cover the probe only.
    assert answer["send_rate_pps"] == pytest.approx(1 / 0.52, rel=0.03)
    assert answer["loss_ratio"] == 0.0


def own_router(*, shared: bool, sources: int = 1) -> dict[str, Any]:
    """An 80 Mbit/s router, shared by all sources or one per source, before an idle link."""
    router = {"name": "router", "rate": "80mbit", "buffer": "1000pkt", "shared": shared}
    link = {"name": "link", "rate": "1gbit", "measured": True}
    seconds = (1500 if shared else 3000) // sources
    tables = probe(seconds, mean_off_s=0.25)
    tables["traffic"]["sources"] = sources
    return tables | {"network": {"rtt": "20ms", "hop": [router, link]}}


@cache
def mean_work_s(mean: float, sd: float, bin_s: float) -> float:
    """Return the mean queued work in seconds for a load per bin that is normal, truncated at 0."""
    generator = np.random.default_rng(1)
    drift = (np.maximum(0.0, generator.normal(mean, sd, 1_000_000)) - 1.0) * bin_s
    walk = np.concatenate([[0.0], np.cumsum(drift)])
    begins = (walk - np.minimum.accumulate(walk))[:-1]
    in_bin = begins + drift * generator.random(drift.size)
    return float(np.maximum(0.0, in_bin).mean())


@pytest.mark.parametrize(("shared", "sources"), [(True, 1), (False, 1), (False, 50)])
def test_router_backlog_follows_a_random_walk(shared: bool, sources: int) -> None:
    noise = {"model": "fgn", "mean": "80%", "sd": "40%", "hurst": 0.5, "hop": "router"}
    answer = simulate(make_scenario(noise, **own_router(shared=shared, sources=sources)))
    wait = answer.metrics["on_time_s"].value - 0.020
    # The difference between packets and a fluid is 0.15 ms.
    assert wait == pytest.approx(mean_work_s(0.8, 0.4, 0.01), rel=0.04)
    row = columns(answer)
    assert row["hop"] == ["router"]
    assert row["mean_bps"] == [64e6]
    assert row["offered_bps"][0] == pytest.approx(row["rate_mean_bps"][0], rel=1e-3)
    assert row["rate_mean_bps"][0] == pytest.approx(
        64e6 * (norm.cdf(2) + norm.pdf(2) / 2), rel=0.01
    )
    assert row["rate_sd_bps"][0] == pytest.approx(64e6 * 0.490, rel=0.02)
    assert row["cut_ratio"][0] == pytest.approx(norm.cdf(-2), rel=0.1)
    assert row["loss_ratio"] == [0.0]
    assert answer["other_loss_ratio"] == 0.0


def test_full_backbone_router_agrees_with_table_5() -> None:
    # Baccelli, Hong and Liu, Table 5: mean load 100 %, standard deviation half of it.
    noise = {"model": "fgn", "mean": "100%", "sd": "50%", "hurst": 0.7, "hop": "router"}
    answer = simulate(make_scenario(noise, **own_router(shared=False, sources=50)))
    row = columns(answer)
    # Truncation at 0 raises the mean load above the capacity; the excess is lost.
    assert row["offered_bps"][0] == pytest.approx(row["rate_mean_bps"][0], rel=1e-6)
    assert 0.0 < row["loss_ratio"][0] < 0.1
    lost = answer.metrics["other_loss_ratio"]
    assert 0.0 < lost.value < 0.3
    # A full router of 1000 packets takes 150 ms.
    assert 0.03 < answer["on_time_s"] < 0.5


def bulk(queue: Any, **more: Any) -> dict[str, Any]:
    bottleneck = {"rate": "10mbit", "buffer": "60pkt", "queue": queue}
    return {
        "network": {"rtt": "20ms", "bottleneck": bottleneck},
        "traffic": {"kind": "bulk", "flows": 1},
        "run": {"duration": "120s", "warmup": "20s"},
    } | more


def test_stream_gets_at_most_its_share_in_a_fair_queue() -> None:
    flood = {"model": "poisson", "mean": "300%"}
    fair = simulate(make_scenario(flood, **bulk({"kind": "fq", "drop": "longest"})))
    plain = simulate(make_scenario(flood, **bulk("droptail")))
    share = PACKET_S * 0.5 / PACKET_S**2  # packets/s
    assert fair["goodput_pps"] == pytest.approx(share, rel=0.03)
    assert plain["goodput_pps"] < 0.1 * share
    assert columns(fair)["carried_bps"][0] == pytest.approx(RATE / 2, rel=0.03)


def test_recording_is_replayed_unchanged_with_a_warning_at_wraparound(tmp_path: Path) -> None:
    rows = "time_s,bytes\n0,3000\n0.1,1500\n0.4,4500\n"
    (tmp_path / "others.csv").write_text(rows)
    stream = {"model": "trace", "file": "others.csv", "period": "1s", "name": "others"}
    network = {"rtt": "20ms", "bottleneck": {"rate": "10mbit"}}
    tcp = {"stack": "rfc-newreno"}
    tables = {"network": network, "cross": [stream], "tcp": tcp, **probe(120)}
    scenario = Scenario.from_dict(tables, folder=tmp_path)
    assert Scenario.from_dict(scenario.resolved()) == scenario
    answer = simulate(scenario)
    assert columns(answer)["offered_bps"][0] == pytest.approx(6 * 12_000, rel=1e-9)
    assert columns(answer)["mean_bps"][0] == pytest.approx(6 * 12_000, rel=1e-9)
    assert any(
        "the recording of cross.others lasts only 1 s, so it is repeated" in w
        for w in answer.warnings
    )
    shifted = simulate(scenario.with_changes({"cross.others.offset": "0s"}))
    assert shifted["on_time_s"] != answer["on_time_s"]


STREAMS: list[dict[str, Any]] = [
    {"model": "poisson", "mean": "20%"},
    {"model": "fgn", "mean": "20%", "sd": "10%", "hurst": 0.7},
    {"model": "pareto", "mean": "2mbit", "sources": 20, "on": "100ms", "off": "200ms"},
]


def test_cross_traffic_at_another_hop_gives_the_same_queue() -> None:
    stream = {"model": "poisson", "mean": "80%"}
    hops: list[dict[str, Any]] = [
        {"name": "first", "rate": "10mbit"},
        {"name": "second", "rate": "1gbit", "measured": True},
    ]
    network = {"rtt": "20ms", "hop": hops}
    tables = probe(1000)
    at_hop = simulate(make_scenario(stream | {"hop": "first"}, **tables | {"network": network}))
    del hops[1]["measured"]
    at_bottleneck = simulate(make_scenario(stream, **tables | {"network": network}))
    # Same packets and same probes.
    assert at_bottleneck["on_time_s"] == pytest.approx(at_hop["on_time_s"], rel=1e-9)
    for name, column in at_bottleneck.tables["cross"].items():
        np.testing.assert_array_equal(column, at_hop.tables["cross"][name])
    by_link = at_hop.tables["by_link"]
    assert by_link["link"][0] == "first"
    assert by_link["utilisation"][0] == pytest.approx(at_bottleneck["utilisation"], rel=1e-3)
    queue = by_link["queue_mean_pkts"][0]
    assert queue == pytest.approx(at_bottleneck["queue_mean_pkts"], rel=1e-6)


@pytest.mark.parametrize("queue", ["droptail", "red", {"kind": "fq", "drop": "longest"}])
@pytest.mark.parametrize("stack", ["rfc-newreno", "max-plus-reno"])
def test_offered_packets_are_carried_or_lost(queue: Any, stack: str) -> None:
    tables = bulk(queue, tcp={"stack": stack})
    tables["run"] |= {"replications": 3, "duration": "30s"}
    tables["traffic"]["flows"] = 3
    answer = simulate(make_scenario(*STREAMS, **tables))
    row = columns(answer)
    carried = np.array(row["carried_bps"])
    assert carried.sum() + answer["goodput_pps"] * 12_000 <= 1.001 * RATE
    # Offered packets are carried, lost, or queued at the begin or the end.
    lost = np.array(row["loss_ratio"]) * row["offered_bps"]
    np.testing.assert_allclose(carried + lost, row["offered_bps"], rtol=0.02)


def test_metrics_of_cross_traffic_are_absent_without_it() -> None:
    scenario = make_scenario(**bulk("droptail"))
    assert make_configuration(scenario, 1.0)["cross"] == []
    assert "cross" not in simulate(scenario).tables
    assert "cross" not in scenario.resolved()


def test_formulas_warn_that_they_ignore_cross_traffic() -> None:
    loss = {"rate": "10mbit", "loss": "1%"}
    tables = bulk("droptail", network={"rtt": "20ms", "bottleneck": loss})
    scenario = make_scenario({"model": "poisson", "mean": "50%"}, **tables)
    (answer,) = tcpcast.run(scenario, ["pftk"])
    assert any("the formula ignores cross traffic" in warning for warning in answer.warnings)
    measured = tcpcast.run(scenario, ["packet", "pftk"], feed="measured")
    assert not any("cross traffic" in warning for warning in measured[1].warnings)


def test_engset_rejects_cross_traffic() -> None:
    scenario = tcpcast.load("web-10mbit", changes={"cross": [{"model": "poisson", "mean": "10%"}]})
    (answer,) = tcpcast.run(scenario, ["engset"])
    assert "the scenario has cross traffic" in str(answer.not_applicable)
