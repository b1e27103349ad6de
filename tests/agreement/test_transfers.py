"""Single transfers against values computed by hand, and against other traffic."""

import math
from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast.answer import Answer
from tcpcast.scenario import Scenario

RTT_S = 0.1
STANDARD_ERRORS = 4.0


def simulate_path(**tables: Any) -> Answer:
    """Return the answer for a path, by default without transmission times."""
    path = {"rtt": "100ms", "bottleneck": {}}
    tcp = {"stack": "rfc-newreno", **tables.pop("tcp", {"receiver_window": 1000})}
    scenario = Scenario.from_dict({"network": path, "run": {"seed": 1}} | tables | {"tcp": tcp})
    (result,) = tcpcast.run(scenario, ["packet"])
    assert result.incomplete_reason is None
    return result


def isolated_transfers(*sizes: int, count: int = 1) -> dict[str, Any]:
    return {"kind": "transfers", "size": [f"{size}pkt" for size in sizes], "count": count}


def arriving_transfers(size: Any, rate: str) -> dict[str, Any]:
    return {
        "kind": "transfers",
        "size": size,
        "arrivals": {"distribution": "poisson", "rate": rate},
    }


def by_losses(result: Answer) -> dict[tuple[int, int], dict[str, float]]:
    table = result.tables["by_losses"]
    rows = zip(*(column.tolist() for column in table.values()), strict=True)
    records = [dict(zip(table, row, strict=True)) for row in rows]
    return {(row["size_pkts"], row["losses"]): row for row in records}


def rounds(size: int, initial_window: int, limit: int = 10**9) -> int:
    """Round trips of slow start: one window per round, doubled each time up to a limit."""
    window, sent, count = initial_window, 0, 0
    while sent < size:
        sent += min(window, limit)
        window *= 2
        count += 1
    return count


@pytest.mark.parametrize("initial_window", [1, 2, 4, 10])
@pytest.mark.parametrize("limit", [10**9, 12])
def test_transfer_without_loss_follows_slow_start(initial_window: int, limit: int) -> None:
    tcp = {"initial_window": initial_window, "receiver_window": min(limit, 1000)}
    table = simulate_path(traffic=isolated_transfers(*range(1, 31)), tcp=tcp).tables["by_size"]
    by_hand = [RTT_S * rounds(size, initial_window, limit) for size in range(1, 31)]
    np.testing.assert_allclose(table["completion_time_s"], by_hand, rtol=1e-9)
    # The last packet arrives half a round trip before its ack.
    np.testing.assert_allclose(table["delivery_time_s"], table["completion_time_s"] - RTT_S / 2)


def test_transmission_times_count_once_per_packet_of_the_last_round() -> None:
    network = {"rtt": "100ms", "bottleneck": {"rate": "12mbit"}}  # 1 ms per packet
    result = simulate_path(network=network, traffic=isolated_transfers(1, 2, 3, 6, 7, 14)).tables[
        "by_size"
    ]
    in_last_round = np.array([1, 2, 1, 4, 1, 8])
    by_hand = RTT_S * np.array([1, 1, 2, 2, 3, 3]) + 1e-3 * (in_last_round - 1)
    np.testing.assert_allclose(result["completion_time_s"], by_hand, rtol=0, atol=1e-8)


def test_delayed_ack_delays_the_sender_but_not_the_receiver() -> None:
    tcp = {"delayed_acks": True, "ack_timeout": "200ms"}
    table = simulate_path(traffic=isolated_transfers(1, 2, 3), tcp=tcp).tables["by_size"]
    np.testing.assert_allclose(table["completion_time_s"], [0.3, 0.1, 0.4], rtol=1e-9)
    np.testing.assert_allclose(table["delivery_time_s"], [0.05, 0.05, 0.15], rtol=1e-9)


@pytest.mark.parametrize("link", ["ingress", "bottleneck", "egress"])
def test_losses_at_all_links_are_counted(link: str) -> None:
    network = {"rtt": "100ms", link: {"loss": "30%"}}
    result = simulate_path(network=network, traffic=isolated_transfers(1, count=2000))
    lost = sum(losses * row["transfers"] for (_, losses), row in by_losses(result).items())
    # No packet is retransmitted spuriously, so each transmission except the last is a loss.
    assert result["timeouts"] == lost > 500
    assert result["retransmit_ratio"] == pytest.approx(lost / (2000 + lost), rel=1e-12)


def test_number_of_losses_has_no_cap() -> None:
    """Each packet is repeated until it arrives, so its mean number of losses is p / (1 - p)."""
    size, p = 50_000, 0.1
    network = {
        "rtt": "20ms",
        "bottleneck": {"rate": "1gbit", "buffer": "unlimited", "loss": f"{100 * p:g}%"},
    }
    scenario = {
        "network": network,
        "traffic": {"kind": "transfers", "size": [size], "count": 4},
        "tcp": {"stack": "linux-bbr"},
    }
    (answer,) = tcpcast.run(tcpcast.Scenario.from_dict(scenario), ["packet"])
    table = answer.tables["by_losses"]
    mean = float(np.average(table["losses"], weights=table["transfers"]))
    assert table["transfers"].sum() == 4
    # Some packets are retransmitted although they arrive, and their copies are lost as well.
    assert mean == pytest.approx(size * p / (1 - p), rel=0.05)


def test_drops_by_a_queue_are_counted() -> None:
    # Windows of 2, 4 and 8 with a buffer of 3: the last round loses some of its packets, each time.
    network = {"rtt": "100ms", "bottleneck": {"rate": "2mbit", "buffer": "3pkt"}}
    result = simulate_path(
        network=network, traffic=isolated_transfers(14, count=10), tcp={"receiver_window": 8}
    )
    ((_, losses),) = by_losses(result)
    assert losses > 0
    assert result.tables["drops_by_sequence"]["drops"].sum() == 10 * losses


def test_transfer_is_independent_of_other_transfers() -> None:
    network = {"rtt": "100ms", "bottleneck": {"rate": "5mbit", "buffer": "9pkt"}}
    sizes = [1, 40, 7, 25, 60]
    combined = simulate_path(network=network, traffic=isolated_transfers(*sizes, count=3)).tables[
        "by_size"
    ]
    for index, size in enumerate(sorted(sizes)):
        one = simulate_path(network=network, traffic=isolated_transfers(size)).tables["by_size"]
        for column in ("completion_time_s", "delivery_time_s"):
            assert combined[column][index] == pytest.approx(one[column][0], rel=1e-12)
        # Three transfers of a size are too few for an interval.
        assert np.isnan([combined["low"][index], combined["high"][index]]).all()


@pytest.mark.parametrize("delayed_acks", [False, True])
def test_file_of_an_on_off_source_takes_the_same_time(delayed_acks: bool) -> None:
    network = {
        "rtt": "80ms",
        "ingress": {"rate": "20mbit"},
        "bottleneck": {"rate": "5mbit", "buffer": "6pkt"},
        "egress": {"rate": "8mbit"},
    }
    tcp = {"delayed_acks": delayed_acks}
    on_off = {
        "kind": "on-off",
        "sources": 1,
        "off": {"distribution": "constant", "value": "100s"},
        "size": {"distribution": "constant", "value": "60pkt"},
    }
    run = {"transfers": 120, "warmup": "0s"}
    source = simulate_path(network=network, traffic=on_off, tcp=tcp, run=run)
    result = simulate_path(network=network, traffic=isolated_transfers(60), tcp=tcp)
    assert result["completion_time_s"] == pytest.approx(source["on_time_s"], rel=1e-12)
    assert result["loss_ratio"] == pytest.approx(source["loss_ratio"], rel=1e-12)
    assert result["loss_ratio"] > 0


def test_loss_burst_does_not_extend_into_the_next_transfer() -> None:
    # The bad state has half of the time and loses all packets, and a transfer ends in the good
    # state. Unless the process restarts, hardly any transfer starts in the bad state.
    loss = {"model": "gilbert-elliott", "to_bad": "1%", "to_good": "1%"}
    network = {"rtt": "100ms", "bottleneck": {"loss": loss}}
    rows = by_losses(simulate_path(network=network, traffic=isolated_transfers(1, count=2000)))
    lossless = rows[1, 0]["transfers"]
    assert abs(lossless - 1000) < STANDARD_ERRORS * math.sqrt(2000 / 4)


def test_arriving_packets_wait_as_in_queueing_theory() -> None:
    # Transfers of one packet: Poisson arrivals at a server of constant time, M/D/1.
    load = 0.7
    network = {"rtt": "100ms", "bottleneck": {"rate": "10mbit"}}
    per_second = load * 10e6 / 12e3
    run = {"transfers": 150_000, "warmup": "10s"}
    result = simulate_path(
        network=network, traffic=arriving_transfers("1pkt", f"{per_second:.6f}/s"), run=run
    )
    mean_pkts = load + load**2 / (2 * (1 - load))
    queue, busy = result.metrics["queue_mean_pkts"], result.metrics["utilisation"]
    for metric, theory in ((queue, mean_pkts), (busy, load)):
        assert metric.low is not None
        assert metric.high is not None
        half = (metric.high - metric.low) / 2
        assert half < 0.05 * theory
        assert abs(metric.value - theory) < 2 * half
    # Little's law: the mean number of packets is the arrival rate times the time per packet.
    timeouts = result["delivery_time_s"] - (RTT_S - 12e3 / 10e6 - 320 / 10e6) / 2
    assert result["queue_mean_pkts"] == pytest.approx(result["send_rate_pps"] * timeouts, rel=2e-3)
    assert result["offered_load"] == pytest.approx(load)


def test_transfers_that_rarely_overlap_equal_isolated_ones() -> None:
    network = {"rtt": "100ms", "bottleneck": {"rate": "10mbit"}, "egress": {"rate": "2mbit"}}
    sizes = [3, 12, 40]
    traffic = arriving_transfers([f"{size}pkt" for size in sizes], "1/h")
    rare = simulate_path(network=network, traffic=traffic, run={"transfers": 60, "warmup": "0s"})
    isolated = simulate_path(network=network, traffic=isolated_transfers(*sizes))
    for table in ("by_size", "by_losses"):
        for column in ("size_pkts", "completion_time_s", "delivery_time_s"):
            expected = isolated.tables[table][column]
            np.testing.assert_allclose(rare.tables[table][column], expected, rtol=1e-9)
    assert {"low", "high"} <= isolated.tables["by_losses"].keys()
    assert not {"low", "high"} & rare.tables["by_losses"].keys()


def test_arrival_rate_and_number_in_progress_follow_littles_law() -> None:
    network = {"rtt": "50ms", "bottleneck": {"rate": "10mbit", "buffer": "150pkt"}}
    size = {"distribution": "exponential", "mean": "12pkt", "minimum": "3pkt"}
    result = simulate_path(
        network=network, traffic=arriving_transfers(size, "50/s"), run={"duration": "600s"}
    )
    started = result["transfers"]
    measured_s = 600 - (result.warmup_s or 0.0)
    assert abs(started - 50 * measured_s) < STANDARD_ERRORS * math.sqrt(50 * measured_s)
    states = result.tables["states"]
    active = float(states["active"] @ states["probability"])
    assert active == pytest.approx(started / measured_s * result["completion_time_s"], rel=2e-3)
    by_size = result.tables["by_size"]
    assert by_size["transfers"].sum() == started
    mean = by_size["transfers"] @ by_size["completion_time_s"] / started
    assert mean == pytest.approx(result["completion_time_s"], rel=1e-12)
    percentiles = result.tables["percentiles"]
    assert percentiles["quantity"].tolist() == ["completion_time", "connection_rate", "queue"]
    assert "on_time_s" not in result.metrics


def test_arriving_classes_can_share_the_link_with_others() -> None:
    tables = {
        "network": {"rtt": "50ms", "bottleneck": {"rate": "10mbit", "buffer": "100pkt"}},
        "traffic": arriving_transfers(["5pkt", "20pkt"], "20/s"),
        "class": [
            {"name": "near"},
            {"name": "far", "rtt": "200ms", "traffic": {"arrivals": {"rate": "10/s"}}},
            {"name": "rest", "flows": 1, "traffic": {"kind": "bulk"}},
        ],
        "run": {"duration": "200s", "warmup": "20s"},
        "tcp": {"stack": "rfc-newreno", "receiver_window": 20},
    }
    result = simulate_path(**tables)
    table = result.tables["by_class"]
    near, far, rest = table["completion_time_s"]
    assert far > near + 0.15
    assert math.isnan(rest)
    assert result.tables["by_size"]["size_pkts"].tolist() == [5, 20]
    transfers = result.tables["by_size"]["transfers"].sum()
    assert abs(transfers - 30 * 180) < STANDARD_ERRORS * math.sqrt(30 * 180)
