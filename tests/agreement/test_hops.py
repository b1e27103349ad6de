"""Hops in series against the event-by-event reference simulator and known results."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import tcpcast
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tcpcast.scenario import Scenario
from test_reference import (
    PHASES,
    SECOND,
    assert_equal_events,
    bulk,
    file_each,
    native_input,
    small_runs,
)

ARRIVED, QUEUE_DROPS, RANDOM_DROPS, BUSY, HELD, LONGEST = range(6)
"""Indices of a hop's counters in the native totals."""

SLOW: dict[str, Any] = {"name": "slow", "rate": "6.3171mbit", "buffer": "19pkt"}
FAST: dict[str, Any] = {"name": "fast", "rate": "9.1739mbit", "buffer": "7pkt", "delay": "3.7ms"}
FAIR: dict[str, Any] = {
    "name": "fair",
    "rate": "8.8193mbit",
    "buffer": "9pkt",
    "delay": "1.3ms",
    "queue": {"kind": "fq", "drop": "longest"},
}
OWN: dict[str, Any] = {
    "name": "own",
    "rate": "5.1137mbit",
    "buffer": "6pkt",
    "delay": "0.7113ms",
    "shared": False,
}

pytestmark = pytest.mark.usefixtures("punctual_hosts")

TANDEMS = {
    "droptail before": [FAST, SLOW],
    "droptail after": [FAST | {"measured": True}, SLOW],
    "fair before": [FAIR, SLOW],
    "fair after": [FAST | {"measured": True}, FAIR | {"rate": "6.7331mbit"}],
    "fair after fair": [FAIR | {"measured": True}, FAIR | {"name": "again", "rate": "7.7mbit"}],
    "own before": [OWN, SLOW],
    "own after": [SLOW, OWN],
    "own and shared before": [OWN, FAST, SLOW],
    "shared and own before": [FAST, OWN, SLOW],
    "everywhere": [OWN, FAIR, SLOW, OWN | {"name": "other"}, FAST],
    "own twice": [OWN, OWN | {"name": "other", "rate": "4.9mbit"}, SLOW],
}


EGRESS = ("16.7713mbit", "15.1931mbit", "13.3377mbit", "12.1119mbit", "11.7177mbit")


def in_series(hops: list[dict[str, Any]], **tcp: Any) -> dict[str, Any]:
    files = [file_each(size, f"{0.1 + 0.00137 * size:.5f}s") for size in (31, 77, 152)]
    classes: list[dict[str, Any]] = [
        {
            "name": f"n{index}",
            "traffic": traffic,
            "egress": {"rate": EGRESS[index], "delay": f"{7.3173 + 1.317391 * index:.6f}ms"},
        }
        for index, traffic in enumerate(files)
    ]
    for index, start in ((3, 0.0137), (4, 0.3254)):
        egress = {"rate": EGRESS[index], "delay": f"{71.728519 + index:.6f}ms"}
        flow = {"name": f"far{index}", "egress": egress, "traffic": bulk(1, start, 1.0)}
        classes.append(flow)
    return {
        "network": {"ingress": {"rate": "97mbit", "delay": "2ms"}, "hop": hops},
        "traffic": files[0],
        "class": classes,
        "tcp": {"stack": "rfc-newreno", "receiver_window": 40, **tcp},
    }


QUESTIONS = [*((name, "packets") for name in TANDEMS), ("everywhere", "bytes")]


@pytest.mark.parametrize(("name", "unit"), QUESTIONS)
def test_hops_equal_the_reference_simulator(name: str, unit: str) -> None:
    hops = TANDEMS[name]
    network, native = assert_equal_events(
        native_input(in_series(hops, rules={"window_unit": unit})), 7.0
    )
    assert len([drop for drop in native.log["dropped"] if drop[0] < network.first_tie]) > 20
    assert native.total("transfers") > 8
    scenario = Scenario.from_dict(in_series(hops) | {"run": {"duration": "9s"}})
    measured = scenario.network.measured_index
    labels = [f"before {index}" for index in range(measured)] + [""]
    labels += [f"after {index}" for index in range(len(hops) - measured - 1)]
    lost = 0
    for counts, label in zip(native.totals["hops"], labels, strict=True):
        lost += counts[QUEUE_DROPS]
        if label and network.first_tie > 7 * SECOND:
            assert abs(counts[ARRIVED] - len(network.log[f"at {label}"])) <= 60, label
            drops = len(network.log[f"dropped at {label}"])
            assert abs(counts[QUEUE_DROPS] - drops) <= 20, label
    assert native.link["hop_drops"] == lost > 0


def test_counters_of_hops_balance_after_all_files_end() -> None:
    # One file from each of three sources, and no packet in flight at the end of the run.
    hops = [OWN, FAST | {"rate": "3.1139mbit"}, SLOW | {"measured": True}, FAST | {"name": "last"}]
    scenario = in_series(hops)
    del scenario["class"][3:]
    for index, group in enumerate(scenario["class"]):
        group["traffic"]["off"] = {"distribution": "constant", "value": f"{5 + 0.0137 * index}s"}
    network, native = assert_equal_events(native_input(scenario), 9.9)
    assert network.first_tie > 9 * SECOND
    assert native.total("sent") > 200
    labels = ["before 0", "before 1", "", "after 0"]
    for hop, label, counts in zip(hops, labels, native.totals["hops"], strict=True):
        if not label:
            assert counts == (0, 0, 0, 0, 0, 0, (0, 0))
            continue
        arrived, dropped = network.log[f"at {label}"], network.log[f"dropped at {label}"]
        assert counts[ARRIVED] == len(arrived)
        assert counts[QUEUE_DROPS] == len(dropped)
        carried = len(arrived) - len(dropped)
        rate = float(hop["rate"].removesuffix("mbit")) * 1e6
        assert counts[BUSY] == pytest.approx(carried * 12000 / rate * 1e9, rel=1e-6)
        assert counts[HELD] >= counts[BUSY]
        assert 1 <= counts[LONGEST] <= int(hop["buffer"].removesuffix("pkt"))
    before, own = native.totals["hops"][1], native.totals["hops"][0]
    assert before[QUEUE_DROPS] > 0
    assert before[HELD] > 1.5 * before[BUSY]
    assert own[HELD] > own[BUSY]


HOP_LIST = st.lists(
    st.fixed_dictionaries(
        {
            "rate_bps": st.integers(500_000, 20_000_000),
            "delay_ns": st.integers(0, 20_000_000),
            "buffer_pkts": st.none() | st.integers(1, 30),
            "queue": st.just("drop-tail")
            | st.fixed_dictionaries(
                {
                    "fair": st.fixed_dictionaries(
                        {
                            "quantum_bytes": st.integers(1500, 6000),
                            "packet_bytes": st.none(),
                            "buffers": st.sampled_from(["shared", "per-flow"]),
                            "drop": st.sampled_from(["arriving", "longest-tail", "longest-head"]),
                            "ties": st.just("latest"),
                        }
                    )
                }
            ),
            "loss": st.none(),
            "shared": st.booleans(),
        }
    ),
    max_size=3,
)


@st.composite
def runs_in_series(draw: st.DrawFn) -> Any:
    numbers = draw(small_runs())
    for side in ("hops_before", "hops_after"):
        numbers[side] = draw(HOP_LIST)
        for hop in numbers[side]:
            if not hop["shared"]:
                hop["queue"] = "drop-tail"
            if hop["queue"] != "drop-tail":
                fair = hop["queue"]["fair"]
                fair["packet_bytes"] = numbers["packet_bytes"]
                if fair["buffers"] == "per-flow":
                    fair["drop"] = "arriving"
    return numbers


without_deadline = partial(
    settings, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck)
)


@without_deadline(max_examples=10, derandomize=True)
@given(runs_in_series())
def test_small_random_runs_equal_the_reference(numbers: dict[str, Any]) -> None:
    assert_equal_events(numbers, 4.0, unseen_s=1.5)


@pytest.mark.long
@without_deadline(max_examples=1000)
@given(runs_in_series())
def test_many_small_random_runs_equal_the_reference(numbers: dict[str, Any]) -> None:
    assert_equal_events(numbers, 4.0, unseen_s=1.5)


def simulate(network: dict[str, Any], **changes: Any) -> tcpcast.Answer:
    tables: dict[str, Any] = {
        "network": network,
        "traffic": {
            "kind": "on-off",
            "sources": 20,
            "off": {"distribution": "exponential", "mean": "500ms"},
            "size": {"distribution": "exponential", "mean": "30pkt", "minimum": "1pkt"},
        },
        "tcp": {"stack": "rfc-newreno", "receiver_window": 44},
        "run": {"duration": "40s", "warmup": "5s", "seed": 3, "replications": 2},
    }
    (answer,) = tcpcast.run(Scenario.from_dict(tables | changes), ["packet"])
    return answer


def metrics_of(answer: tcpcast.Answer) -> dict[str, Any]:
    document = answer.to_json()
    return {"metrics": document["metrics"], **document["tables"]}


QUEUES = ["droptail", "red", "fq", {"kind": "fq", "drop": "longest"}]
STACKS = ["rfc-reno", "max-plus-reno"]


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("queue", QUEUES)
def test_single_hop_equals_the_bottleneck(queue: Any, stack: str) -> None:
    link = {"rate": "3mbit", "delay": "20ms", "buffer": "25pkt", "queue": queue, "loss": "1%"}
    ends = {"ingress": {"rate": "20mbit"}, "egress": {"rate": "10mbit", "delay": "5ms"}}
    tcp = {"stack": stack, "receiver_window": 44}
    alone = simulate({**ends, "bottleneck": link}, tcp=tcp)
    hop = simulate({**ends, "hop": [{"name": "only", **link}]}, tcp=tcp)
    assert metrics_of(alone) == metrics_of(hop)
    assert alone["loss_ratio"] > 0.02


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("element", ["own", "before", "after"])
def test_hops_without_a_rate_add_delay_only(element: str, stack: str) -> None:
    tcp = {"stack": stack, "receiver_window": 44}
    ends = {"egress": {"rate": "10mbit", "delay": "5ms"}}
    slow = {"rate": "3mbit", "buffer": "25pkt"}
    other = {"name": element, "delay": "3ms", "shared": element != "own"}
    hops = [other, {"name": "slow", "delay": "20ms", **slow}]
    series = simulate(
        {
            **ends,
            "ingress": {"rate": "20mbit", "delay": "1ms"},
            "hop": hops[::-1] if element == "after" else hops,
        },
        tcp=tcp,
    )
    before, after = ("1ms", "23ms") if element == "after" else ("4ms", "20ms")
    plain = simulate(
        {
            **ends,
            "ingress": {"rate": "20mbit", "delay": before},
            "bottleneck": slow | {"delay": after},
        },
        tcp=tcp,
    )
    assert plain["loss_ratio"] > 0.01
    assert series["other_loss_ratio"] == 0
    assert sorted(series.tables["by_hop"]["hop"].tolist()) == sorted(["slow", element])
    del series.metrics["other_loss_ratio"], series.tables["by_hop"]
    if element == "before":
        # Packets in flight at the end of the run are counted when they reach the first hop.
        for name in ("loss_ratio", "goodput_pps", "on_time_s", "queue_mean_pkts", "rtt_mean_s"):
            assert series[name] == pytest.approx(plain[name], rel=1e-3), name
        return
    assert metrics_of(series) == metrics_of(plain)


def test_tandem_of_equal_links_queues_at_the_first_only() -> None:
    # Packets leave one link with the spacing that the next link needs, so that it holds only the
    # packet in transmission.
    hop = {"rate": "3mbit", "delay": "10ms", "buffer": "25pkt"}
    ends = {"ingress": {"rate": "50mbit"}, "egress": {"rate": "50mbit"}}
    answer = simulate({**ends, "hop": [{"name": name, **hop} for name in ("a", "b", "c")]})
    table = {key: column.tolist() for key, column in answer.tables["by_hop"].items()}
    assert table["hop"] == ["a", "b", "c"]
    assert table["drops"][0] > 100
    assert table["drops"][1:] == [0, 0]
    # A packet may arrive while the last one leaves, in the same nanosecond or one before.
    assert table["queue_max_pkts"][0] == 25
    assert max(table["queue_max_pkts"][1:]) <= 2
    assert table["queue_mean_pkts"][1] == pytest.approx(table["utilisation"][1], rel=1e-3)
    carried = table["arrived"][0] - table["drops"][0]
    assert table["arrived"][1] == pytest.approx(carried, abs=30)
    assert answer["loss_ratio"] == pytest.approx(table["loss_ratio"][0], rel=1e-12)
    assert table["utilisation"][0] == pytest.approx(answer["utilisation"], rel=1e-9)


@pytest.mark.parametrize("shared", [True, False])
def test_random_loss_at_another_hop_is_counted_separately(shared: bool) -> None:
    lossy = {"name": "lossy", "rate": "50mbit", "loss": "2%", "shared": shared}
    slow = {"name": "slow", "rate": "30mbit", "loss": "1%"}
    network = {"rtt": "40ms", "hop": [lossy, slow]}
    answer = simulate(network, run={"duration": "400s", "warmup": "5s"})
    assert answer["other_loss_ratio"] == pytest.approx(0.02, rel=0.1)
    assert answer["loss_ratio"] == pytest.approx(0.01, rel=0.1)
    before, after = answer.tables["by_hop"]["arrived"].tolist()
    assert after == pytest.approx(before - answer.tables["by_hop"]["drops"][0], abs=30)


@pytest.mark.parametrize("lossy", range(4))
def test_senders_react_to_losses_at_any_hop(lossy: int) -> None:
    hops: list[dict[str, Any]] = [
        {"name": "own", "rate": "20mbit", "shared": False},
        {"name": "fair", "rate": "20mbit", "queue": QUEUES[3]},
        {"name": "measured", "rate": "20mbit"},
        {"name": "thin", "rate": "20mbit", "shared": False},
    ]
    hops[2]["measured"] = True
    hops[lossy] |= {"rate": "5mbit", "buffer": "10pkt"}
    tcp = {"stack": "max-plus-reno", "receiver_window": 400}
    network = {"rtt": "40ms", "hop": hops}
    answer = simulate(network, tcp=tcp, traffic={"kind": "bulk", "flows": 3})
    drops = answer.tables["by_hop"]["drops"].tolist()
    assert drops[lossy] > 100
    assert sum(drops) == drops[lossy]
    assert (answer["other_loss_ratio"] > 0) == (lossy != 2)
    # Each loss is detected and halves the window, unless another loss of the same flight has
    # already done so.
    halved = answer["td_indications"] + answer["to_indications"]
    assert 0.3 * drops[lossy] / 2 < halved <= drops[lossy] / 2


def test_results_are_independent_of_threads() -> None:
    hops = [TANDEMS["everywhere"][index] | {"loss": "0.5%"} for index in range(5)]
    hops[2] |= {"queue": "red", "buffer": "60pkt"}
    hops[4] |= {"queue": "red", "buffer": "60pkt"}
    scenario = Scenario.from_dict(
        {
            "network": {"hop": hops, "ingress": {"rate": "50mbit", "delay": "20ms"}},
            "traffic": {"kind": "bulk", "flows": 7},
            "run": {"duration": "20s", "warmup": "2s", "replications": 4, "seed": 9},
        }
    )
    result = [
        metrics_of(tcpcast.run(scenario, ["packet"], threads=threads)[0]) for threads in (1, 2, 4)
    ]
    assert result[0] == result[1] == result[2]
    assert result[0]["by_hop"]["columns"]["drops"][4] > 0


def test_isolated_transfers_start_on_idle_hops() -> None:
    # Sequential transfers of one size without loss take equal time, whatever the hops.
    hops = [
        {"name": "fair", "rate": "9mbit", "queue": "fq"},
        {"name": "own", "rate": "8mbit", "shared": False},
        {"name": "slow", "rate": "7mbit"},
        {"name": "last", "rate": "20mbit"},
    ]
    traffic = {"kind": "transfers", "size": ["12pkt"], "count": 150}
    answer = simulate({"rtt": "60ms", "hop": hops}, traffic=traffic, run={"seed": 1})
    time = answer.metrics["completion_time_s"]
    assert time.low == pytest.approx(time.high, rel=1e-9)
    # Flights of 2, 4 and 6 packets: three round trips, and the packets after the last flight's
    # first.
    assert 3 * 0.060 < time.value < 3 * 0.060 + 12 * 12000 / 7e6
    assert answer.tables["by_hop"]["drops"].tolist() == [0, 0, 0, 0]


def test_formulas_name_the_hops_that_they_do_not_model_as_queues() -> None:
    hops = [
        {"name": "router", "rate": "20mbit", "loss": "1%", "shared": False},
        {"name": "slow", "rate": "10mbit", "loss": "1%"},
        {"name": "last", "rate": "12mbit"},
    ]
    scenario = Scenario.from_dict(
        {
            "network": {"rtt": "60ms", "hop": hops},
            "traffic": {"kind": "bulk", "flows": 3},
            "tcp": {"stack": "rfc-newreno"},
            "run": {"duration": "10s"},
        }
    )
    (answer,) = tcpcast.run(scenario, ["pftk"])
    (loss,) = [step for step in answer.steps if step["symbol"] == "p"]
    assert loss["value"] == pytest.approx(1 - 0.99**2)
    assert loss["source"] == "network.hop.router.loss and network.hop.slow.loss"
    assert any("queue only at slow; router, last add only" in w for w in answer.warnings)
    (bound,) = tcpcast.run(scenario, ["bbr-bound"])
    (link,) = [step for step in bound.steps if step["symbol"] == "C_link"]
    assert link["source"] == "network.hop.slow.rate"
    assert link["value"] == pytest.approx(10e6 / 12000)


@pytest.mark.parametrize("engine", ["packet", "fixed-point"])
def test_sender_next_to_a_full_hop_does_not_loop_at_one_time(engine: str) -> None:
    """There is no delay between the sender and its hop, so it detects each loss immediately."""
    tables = {
        "network": {
            "hop": [
                {
                    "name": "own",
                    "rate": "8mbit",
                    "delay": "10ms",
                    "buffer": "5pkt",
                    "shared": False,
                },
                {"name": "loop", "rate": "10mbit", "buffer": "100pkt", "queue": "fq"},
            ]
        },
        "cross": [
            {
                "hop": "own",
                "model": "fgn",
                "mean": "100%",
                "sd": "50%",
                "hurst": 0.7,
                "bin": "100ms",
            }
        ],
        "traffic": {
            "kind": "on-off",
            "sources": 20,
            "off": {"distribution": "exponential", "mean": "1s"},
            "size": {"distribution": "constant", "value": "50pkt"},
            "connection": "persistent",
        },
        "tcp": {"stack": "max-plus-reno", "receiver_window": 40},
        "run": {"duration": "20s", "warmup": "5s"},
    }
    (answer,) = tcpcast.run(Scenario.from_dict(tables), [engine])
    if engine == "packet":
        assert answer["other_loss_ratio"] > 0.1
        # The hop carries 667 packets per second for each of 20 sources and for the cross traffic.
        assert 20 < answer["send_rate_pps"] < 20 * 10_000
    else:
        assert "convergence" in answer.tables
