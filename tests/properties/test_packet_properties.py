"""Invariants of every simulation, and scenarios with known results."""

import math
from typing import Any
from unittest.mock import patch

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
        path=path, size_pkts=size, receiver_window_pkts=window, initial_window_pkts=initial_window
    )
    tolerance = 5e-9 * (size + 10)  # each of six links rounds to nanoseconds
    assert answer["on_time_s"] == pytest.approx(float(model.acked_s[-1]), abs=tolerance)


@UNHURRIED
@LONE
def test_lone_transfer_time_equals_engset_equation_2(
    path: Path, size: int, window: int, initial_window: int
) -> None:
    model = isolated_connection(
        path=path, size_pkts=size, receiver_window_pkts=window, initial_window_pkts=initial_window
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
