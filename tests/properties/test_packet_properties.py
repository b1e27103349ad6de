"""Invariants of every simulation, and scenarios with known results."""

from __future__ import annotations

import math
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import tcpcast
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tcpcast import _native
from tcpcast.engines.packet import reliability
from tcpcast.engines.packet.configuration import make_configuration
from tcpcast.models.engset import Path, isolated_connection, lone_queue, lone_transfer
from tcpcast.scenario import Scenario

SECOND = 10**9
MANY = settings.default is not None and settings.default.max_examples > 20
"""Whether a profile requests many examples, which differ in each run."""
UNHURRIED = settings(
    max_examples=300 if MANY else 20,
    deadline=None,
    derandomize=not MANY,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def packet(scenario: dict[str, Any]) -> tcpcast.Answer:
    # Properties of each file also hold for a single file, although its estimate is withheld.
    with patch.object(reliability, "has_too_few_files", return_value=False):
        (answer,) = tcpcast.run(Scenario.from_dict(scenario), ["packet"])
    # A few dozen round trips without a loss, with several in slow start, are no steady state.
    assert answer.incomplete_reason is None or answer.incomplete_reason.startswith(
        "no steady state"
    )
    return answer


def quantity(low: float, high: float, unit: str) -> st.SearchStrategy[str]:
    """Return a number with a unit, spread evenly over its magnitudes."""
    powers = st.floats(math.log(low), math.log(high))
    return powers.map(lambda power: f"{math.exp(power):.4g}{unit}")


RANDOM_LOSS = st.sampled_from(
    [
        "0%",
        "2%",
        {"model": "gilbert-elliott", "to_bad": "1%", "to_good": "30%", "loss_bad": "60%"},
    ]
)
QUEUE = st.sampled_from(
    [
        "droptail",
        "red",
        {"kind": "red", "min_threshold": "1pkt", "max_threshold": "3pkt", "weight": 0.5},
        "fq",
        {"kind": "fq", "scheduler": "drr", "quantum": "4000B", "drop": "longest"},
        {"kind": "fq", "buffers": "individual"},
        {"kind": "fq", "drop": "longest-head"},
        {"kind": "fq", "drop": "longest", "ties": "random"},
        {"kind": "fq", "drop": "longest-head", "ties": "random"},
    ]
)
OFF = st.sampled_from(
    [
        {"distribution": "exponential", "mean": "300ms"},
        {"distribution": "uniform", "low": "0s", "high": "500ms"},
        {"distribution": "lognormal", "mean": "200ms", "sd": "400ms"},
        {"distribution": "constant", "value": "10ms"},
    ]
)
SIZE = st.sampled_from(
    [
        {"distribution": "exponential", "mean": "12pkt", "minimum": "3pkt"},
        {"distribution": "ep", "mean": "12pkt", "minimum": "3pkt"},
        {"distribution": "ee", "mean": "12pkt", "minimum": "3pkt", "c": 7},
        {"distribution": "pareto", "mean": "20pkt", "alpha": 1.3},
        {"distribution": "constant", "value": "1pkt"},
        {"distribution": "constant", "value": "150pkt"},
    ]
)


PACKET_BYTES = {"41B": 41, "576B": 576, "1500B": 1500}


def queued_rate(packet: str) -> st.SearchStrategy[str]:
    """Return a rate of 40 to 4000 packets per second, so that runs of seconds stay short."""
    max_rate = 50 * PACKET_BYTES[packet] / 1500
    return quantity(max_rate / 100, max_rate, "mbit")


@st.composite
def links(draw: st.DrawFn) -> dict[str, Any]:
    link: dict[str, Any] = {}
    if draw(st.booleans()):
        link["rate"] = draw(quantity(0.5, 200, "mbit"))
    if draw(st.booleans()):
        link["buffer"] = draw(st.sampled_from(["1pkt", "2pkt", "5pkt", "20KB", "40pkt"]))
    if draw(st.integers(0, 3)) == 0:
        link["loss"] = draw(RANDOM_LOSS)
    return link


def lossy_rounds() -> st.SearchStrategy[dict[str, Any]]:
    rates = st.sampled_from(["1%", "20%"])
    return rates.map(lambda rate: {"loss": {"model": "rest-of-round", "rate": rate}})


@st.composite
def max_plus(draw: st.DrawFn) -> dict[str, Any]:
    rules = {
        "growth": draw(st.sampled_from(["every-ack", "after-halving"])),
        "whole_halves": draw(st.booleans()),
        "halve_once": draw(st.booleans()),
        "timeout": draw(st.booleans()),
    }
    return {
        "stack": "max-plus-reno",
        "receiver_window": draw(st.sampled_from([1, 2, 10, 44, 300])),
        "idle_restart": draw(st.sampled_from(["never", "rto", "150ms"])),
        "rules": {"max_plus": rules},
    }


@st.composite
def scenarios(draw: st.DrawFn) -> dict[str, Any]:
    on_off = draw(st.booleans())
    many = draw(st.sampled_from([1, 2, 7, 40]))
    if on_off:
        traffic = {"kind": "on-off", "sources": many, "off": draw(OFF), "size": draw(SIZE)}
        traffic["connection"] = draw(st.sampled_from(["new", "persistent"]))
        traffic["start"] = draw(st.sampled_from(["silent", "equilibrium"]))
    else:
        traffic = {"kind": "bulk", "flows": many}
    tcp = {
        "stack": draw(st.sampled_from(["rfc-reno", "rfc-newreno", "rfc-newreno-patient"])),
        "receiver_window": draw(st.sampled_from([1, 2, 10, 44, 300])),
        "initial_window": draw(st.sampled_from([1, 2, 3, 10])),
        "initial_ssthresh": draw(st.sampled_from(["receiver-window", 1, 2, 8, "unlimited"])),
        "delayed_acks": draw(st.booleans()),
        "min_rto": draw(st.sampled_from(["1s", "200ms", "1ms"])),
        "idle_restart": draw(st.sampled_from(["never", "rto", "150ms"])),
    }
    tcp["rules"] = {
        "window_unit": draw(st.sampled_from(["packets", "bytes"])),
        "slow_start_at_ssthresh": draw(st.booleans()),
        "timer_restart": draw(st.sampled_from(["ack", "send"])),
        "backoff_until": draw(st.sampled_from(["sample", "ack"])),
    }
    if draw(st.integers(0, 3)) == 0:
        tcp = draw(max_plus())
    size = draw(st.sampled_from(list(PACKET_BYTES)))
    scenario = {
        "network": {
            "rtt": draw(quantity(100, 400, "ms")),
            "packet": size,
            "ingress": draw(links()),
            "bottleneck": draw(links() | lossy_rounds())
            | {"rate": draw(queued_rate(size)), "queue": draw(QUEUE)},
            "egress": draw(links()),
        },
        "traffic": traffic,
        "tcp": tcp,
        "run": {
            "duration": "12s",
            "warmup": draw(st.sampled_from(["0s", "1s", "3.7s"])),
            "replications": draw(st.sampled_from([1, 2])),
            "seed": draw(st.integers(0, 2**32)),
        },
    }
    if on_off and draw(st.booleans()):
        other = {"off": draw(OFF), "size": draw(SIZE)}
        scenario["class"] = [
            {"name": "one"},
            {"name": "other", "rtt": draw(quantity(100, 900, "ms")), "traffic": other},
        ]
    return scenario


@UNHURRIED
@given(scenarios())
def test_answers_satisfy_invariants(scenario: dict[str, Any]) -> None:
    # The engine itself checks the conservation of packets at the end of each run.
    answer = packet(scenario)
    value = {name: metric.value for name, metric in answer.metrics.items()}
    plain = Scenario.from_dict(scenario)
    rate, size = plain.network.bottleneck.rate_bps, plain.network.packet_bytes
    withheld = {name for name, metric in answer.metrics.items() if np.isnan(metric.value)}
    assert all(answer.metrics[name].interval_warning for name in withheld)
    assert all(np.isfinite(number) for name, number in value.items() if name not in withheld)
    shares = ["utilisation", "loss_ratio", "queue_loss_ratio", "random_loss_ratio"]
    shares += ["retransmit_ratio", "timeout_share", "loss_indication_ratio", "jain_index"]
    for name in shares:
        assert 0 <= value.get(name, 0) <= 1 + 1e-9, name
    if "loss_ratio" in value:
        parts = value["queue_loss_ratio"] + value["random_loss_ratio"]
        assert value["loss_ratio"] == pytest.approx(parts, abs=1e-9)
    # Packets that were queued in the warm-up are delivered after it, in addition to the rate.
    max_goodput = rate / (8 * size) + (value["queue_max_pkts"] + 2) / 8.3
    assert value["goodput_pps"] <= max_goodput
    assert value["goodput_bps"] == pytest.approx(8 * (size - 40) * value["goodput_pps"])
    queue = plain.network.bottleneck.queue
    buffers = plain.senders if getattr(queue, "buffers", "shared") == "individual" else 1
    assert value["queue_mean_pkts"] <= value["queue_max_pkts"] <= buffers * plain.buffer_pkts
    if "rtt_mean_s" in value:
        assert value["rtt_mean_s"] >= min(group.rtt_s for group in plain.populations) - 1e-6
    for name, metric in answer.metrics.items():
        if metric.low is not None and metric.high is not None:
            assert metric.low <= metric.value <= metric.high, name
    tables_agree(answer)


@st.composite
def hops(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Return two to five hops, at least one of them shared."""
    result: list[dict[str, Any]] = []
    for index in range(draw(st.integers(2, 5))):
        hop = draw(links()) | {"name": f"hop{index}", "shared": draw(st.booleans()) or index == 0}
        if hop["shared"]:
            hop |= {"rate": draw(quantity(0.5, 50, "mbit")), "queue": draw(QUEUE)}
        result.append(hop)
    return draw(st.permutations(result))


@UNHURRIED
@given(scenarios(), hops())
def test_departures_of_a_hop_arrive_at_the_next(
    scenario: dict[str, Any], series: list[dict[str, Any]]
) -> None:
    network = {key: value for key, value in scenario["network"].items() if key != "bottleneck"}
    run = scenario["run"] | {"warmup": "0s"}
    # Long enough for all of them.
    network["rtt"] = "900ms"
    answer = packet(scenario | {"network": network | {"hop": series}, "run": run})
    table = {key: column.tolist() for key, column in answer.tables["by_hop"].items()}
    assert table["hop"] == [hop["name"] for hop in series]
    for index, (arrived, drops) in enumerate(zip(table["arrived"], table["drops"], strict=True)):
        assert 0 <= drops <= arrived
        if index + 1 < len(series):
            assert table["arrived"][index + 1] <= arrived - drops
    for name in ("loss_ratio", "utilisation"):
        assert all(math.isnan(share) or 0 <= share <= 1 + 1e-9 for share in table[name]), name
    mean_queues, max_queues = table["queue_mean_pkts"], table["queue_max_pkts"]
    assert all(
        mean <= largest + 1e-9 for mean, largest in zip(mean_queues, max_queues, strict=True)
    )
    assert 0 <= answer.metrics["other_loss_ratio"].value <= 1 if table["arrived"][0] else True


def tables_agree(answer: tcpcast.Answer) -> None:
    tables = answer.tables
    for name in ("time_above", "arrivals_above"):
        above = tables["queue"][name] if "queue" in tables else np.zeros(1)
        above = above[np.isfinite(above)]
        assert np.all(np.diff(above) <= 1e-12)
        assert np.all((above >= 0) & (above <= 1))
    if "states" in tables:
        assert tables["states"]["probability"].sum() == pytest.approx(1.0)
    if "by_size" in tables:
        by_size = tables["by_size"]
        assert by_size["share"].sum() == pytest.approx(1.0)
        assert by_size["transfers"].sum() > 0
        means = by_size["mean_size_pkts"]
        assert np.all((means >= by_size["low_pkts"]) & (means <= by_size["high_pkts"]))


@UNHURRIED
@given(
    sources=st.integers(1, 40),
    size=SIZE,
    buffer=st.sampled_from(["unlimited", "12pkt"]),
    seed=st.integers(0, 2**32),
)
def test_active_source_time_equals_total_on_time(
    sources: int, size: dict[str, Any], buffer: str, seed: int
) -> None:
    # Little's law, to the nanosecond: each source sends one file in a run that ends with the last
    # one. A source is counted from the arrival of its first packet, 120 us after it was sent.
    numbers = make_configuration(
        Scenario.from_dict(
            {
                "network": {
                    "rtt": "50ms",
                    "ingress": {"rate": "100mbit"},
                    "bottleneck": {"rate": "10mbit", "buffer": buffer},
                },
                "traffic": {
                    "kind": "on-off",
                    "sources": sources,
                    "off": {"distribution": "uniform", "low": "1000s", "high": "1005s"},
                    "size": size,
                },
                "tcp": {"stack": "rfc-newreno", "receiver_window": 44},
                "run": {"duration": "1990s", "seed": seed},
            }
        ),
        0.0,
    )
    run = _native.Simulation(numbers, 1)
    run.advance(transfers=None, until_ns=1990 * SECOND, threads=1)
    cells = run.counters()[0][-1].tolist()[len(_native.LINK_CELLS) :]
    sums = dict(zip(_native.CLASS_CELLS, cells, strict=False))
    totals = run.totals()
    assume(sums["transfers"] == sources)
    in_state = totals["states_time_ns"].tolist()
    active_ns = sum(active * time for active, time in enumerate(in_state))
    assert active_ns == sums["on_time_ns"] - sources * 120_000
    assert sum(in_state) == 1990 * SECOND
    assert totals["births"].sum() == totals["deaths"].sum() == sources
    assert sums["delivered"] == sums["transfer_packets"]
    assert sums["sent"] == sums["delivered"] + sums["queue_drops"] + duplicates(sums)


def duplicates(sums: dict[str, int]) -> int:
    """Return the number of packets that reached their receiver a second time."""
    return sums["retransmitted"] - sums["queue_drops"]


def test_littles_law_holds_over_long_runs() -> None:
    answer = packet(
        {
            "network": {
                "rtt": "50ms",
                "ingress": {"rate": "100mbit"},
                "bottleneck": {"rate": "10mbit", "buffer": "150pkt"},
                "egress": {"rate": "2mbit"},
            },
            "traffic": {
                "kind": "on-off",
                "sources": 134,
                "off": {"distribution": "exponential", "mean": "1s"},
                "size": {"distribution": "exponential", "mean": "12pkt", "minimum": "3pkt"},
            },
            "tcp": {"stack": "rfc-newreno", "receiver_window": 44},
            "run": {"transfers": 20000, "warmup": "17.3s"},
        }
    )
    states = answer.tables["states"]
    active = float(states["active"] @ states["probability"])
    (simulated_s,) = answer.provenance["simulated_s"]
    per_second = answer["transfers"] / (simulated_s - 17.3)
    assert active == pytest.approx(per_second * answer["on_time_s"], rel=0.01)
    # Inactive sources are in their OFF time, which is one second on average.
    assert 134 - active == pytest.approx(per_second * 1.0, rel=0.02)


def one_flow(rate: str, rtt: str, window: int, run: dict[str, Any]) -> dict[str, Any]:
    return {
        "network": {"rtt": rtt, "ingress": {"rate": "1gbit"}, "bottleneck": {"rate": rate}},
        "traffic": {"kind": "bulk", "flows": 1, "start": ["0s"]},
        "tcp": {"stack": "rfc-newreno", "receiver_window": window},
        "run": run,
    }


@pytest.mark.parametrize(("rate", "rtt"), [("10mbit", "50ms"), ("10mbit", "100ms")])
@pytest.mark.parametrize("window", [1, 2, 8, 12, 20, 41])
def test_rate_without_queue_is_one_window_per_rtt(rate: str, rtt: str, window: int) -> None:
    rtt_s = float(rtt.removesuffix("ms")) / 1000
    run = {"warmup": f"{100.5 * rtt_s}s", "duration": f"{500.5 * rtt_s}s"}
    answer = packet(one_flow(rate, rtt, window, run))
    assert answer["goodput_pps"] == pytest.approx(window / rtt_s, rel=1e-12)
    assert answer["send_rate_pps"] == pytest.approx(window / rtt_s, rel=1e-12)
    assert answer["rtt_mean_s"] == pytest.approx(rtt_s, rel=1e-9)
    assert answer["loss_ratio"] == 0


@pytest.mark.parametrize(
    ("rate", "rtt", "window", "queue"),
    [
        ("2mbit", "50ms", 12, 5),
        ("2mbit", "50ms", 20, 13),
        ("2mbit", "50ms", 44, 37),
        ("2mbit", "100ms", 20, 5),
        ("2mbit", "100ms", 44, 29),
        ("10mbit", "50ms", 44, 4),
    ],
)
def test_saturated_link_queue_equals_engset_table_2(
    rate: str, rtt: str, window: int, queue: int
) -> None:
    # Engset report, Table 2: WR - floor(beta) + 1. Between arrivals it is one packet less, so that
    # over time WR packets are distributed over the queue and beta - 1 packet times.
    answer = packet(one_flow(rate, rtt, window, {"warmup": "10s", "duration": "60s"}))
    delta_s = 12_000 / (float(rate.removesuffix("mbit")) * 1e6)
    beta = float(rtt.removesuffix("ms")) / 1000 / delta_s
    assert queue == window - math.floor(beta) + 1
    assert answer["queue_max_pkts"] == queue
    assert answer["queue_mean_pkts"] == pytest.approx(window - beta + 1, abs=1e-4)
    assert answer["utilisation"] == pytest.approx(1, rel=1e-9)
    assert answer["rtt_mean_s"] == pytest.approx(window * delta_s, rel=1e-6)


@st.composite
def paths(draw: st.DrawFn) -> Path:
    bottleneck = draw(st.integers(200, 20_000)) * 1000
    egress = draw(st.sampled_from([math.inf, 0.25, 3.0])) * bottleneck
    bits = 12_000
    transmission_s = bits / bottleneck + bits / egress + bits / 1e9
    rtt0_s = round(transmission_s * draw(st.floats(1.1, 90.0)), 6)
    assume(rtt0_s < 0.5)
    return Path(
        rtt0_s=rtt0_s,
        packet_bytes=1500,
        bottleneck_bps=bottleneck,
        ingress_bps=1e9,
        egress_bps=egress,
    )


def alone(path: Path, size: int, window: int, initial_window: int) -> dict[str, Any]:
    """Return one source without other traffic; three files after OFF times of three seconds."""
    links = {"ingress": path.ingress_bps, "bottleneck": path.bottleneck_bps}
    links |= {} if math.isinf(path.egress_bps) else {"egress": path.egress_bps}
    network = {name: {"rate": f"{rate:.0f}bit"} for name, rate in links.items()}
    return {
        "network": {"rtt": f"{path.rtt0_s:.6f}s", "ack": "40B", **network},
        "traffic": {
            "kind": "on-off",
            "sources": 1,
            "off": {"distribution": "constant", "value": "3s"},
            "size": {"distribution": "constant", "value": f"{size}pkt"},
        },
        "tcp": {
            "stack": "rfc-newreno",
            "receiver_window": window,
            "initial_window": initial_window,
        },
        "run": {"transfers": 3, "warmup": "0s"},
    }


LONE = given(
    path=paths(),
    size=st.integers(1, 150),
    window=st.integers(1, 60),
    initial_window=st.sampled_from([1, 2, 4, 10]),
)


@UNHURRIED
@LONE
def test_lone_transfer_equals_per_ack_model(
    path: Path, size: int, window: int, initial_window: int
) -> None:
    answer = packet(alone(path, size, window, initial_window))
    assume(answer["timeouts"] == 0)
    model = lone_transfer(
        path=path,
        size_pkts=size,
        receiver_window_pkts=window,
        initial_window_pkts=initial_window,
    )
    tolerance = 5e-9 * (size + 10)  # each of six links rounds to nanoseconds
    assert answer["on_time_s"] == pytest.approx(float(model.acked_s[-1]), abs=tolerance)


@UNHURRIED
@LONE
def test_lone_transfer_time_equals_engset_equation_2(
    path: Path, size: int, window: int, initial_window: int
) -> None:
    model = isolated_connection(
        path=path,
        size_pkts=size,
        receiver_window_pkts=window,
        initial_window_pkts=initial_window,
    )
    answer = packet(alone(path, size, window, initial_window))
    assume(answer["timeouts"] == 0)
    # If beta* is slightly below a window, the last flight has gaps.
    gap = path.slowest_delta_s * (1 + size % 2)
    assert answer["on_time_s"] == pytest.approx(model.on_time_s, abs=gap + 1e-6)


@UNHURRIED
@LONE
def test_lone_transfer_queue_follows_engset_section_4_4(
    path: Path, size: int, window: int, initial_window: int
) -> None:
    # The formula for a saturated link counts its queue one packet longer than in Table 2, and
    # is left out.
    assume(math.isinf(path.egress_bps))
    lone = {"receiver_window_pkts": window, "initial_window_pkts": initial_window}
    flights = isolated_connection(path=path, size_pkts=size, **lone).flights
    assume(not flights.saturated)
    scenario = alone(path, size, window, initial_window)
    scenario["network"]["ingress"] = {}
    answer = packet(scenario)
    assume(answer["timeouts"] == 0)
    model = lone_queue(path=path, size_pkts=size, mean_off_s=3.0, **lone)
    assert answer["queue_mean_pkts"] == pytest.approx(model.mean_pkts, rel=1e-4)
