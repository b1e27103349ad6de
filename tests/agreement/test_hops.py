"""Hops in series against the event-by-event reference simulator and known results."""

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
    link,
    native_input,
    small_runs,
)

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
    if network.first_tie > 7 * SECOND:
        log = network.log
        for link, counts in native.by_link.items():
            at = "at bottleneck" if link == network.headline else f"at {link}"
            # The native engine passes links of one sender when a packet enters the first of them.
            assert abs(counts["entered"] - len(log[at])) <= 60, link
            assert abs(counts["full_drops"] - len(log[f"dropped at {link}"])) <= 20, link
    drops = sum(counts["full_drops"] for counts in native.by_link.values())
    at_bottleneck = native.by_link[network.headline]["full_drops"]
    assert native.link["hop_drops"] == drops - at_bottleneck > 0


@st.composite
def hops(draw: st.DrawFn, packet_bytes: int) -> dict[str, Any]:
    """Return a link that all flows share, or one per flow."""
    buffers = draw(st.sampled_from(["shared", "per-flow"]))
    drop = draw(st.sampled_from(["arriving", "longest-tail", "longest-head"]))
    fair = {
        "quantum_bytes": draw(st.integers(packet_bytes, 4 * packet_bytes)),
        "buffers": buffers,
        "drop": "arriving" if buffers == "per-flow" else drop,
        "ties": "latest",
        "head_of_line": "in-buffer",
    }
    shared, is_fair = draw(st.booleans()), draw(st.booleans())
    return link(
        draw(st.integers(500_000, 20_000_000)),
        delay_ns=draw(st.integers(0, 20_000_000)),
        limit_pkts=draw(st.none() | st.integers(1, 30)),
        queue={"drr": fair} if shared and is_fair else "drop-tail",
        each="all" if shared else "sender",
    )


@st.composite
def runs_in_series(draw: st.DrawFn) -> Any:
    numbers = draw(small_runs())
    packet_bytes = numbers["classes"][0]["packet_bytes"]
    before, after = (draw(st.lists(hops(packet_bytes), max_size=3)) for _ in range(2))
    first = len(numbers["links"])
    numbers["links"] += [*before, *after]
    places = list(range(first, len(numbers["links"])))
    for group in numbers["classes"]:
        ((ingress, bottleneck, egress),) = group["routes"]
        split = len(before)
        group["routes"] = [[ingress, *places[:split], bottleneck, *places[split:], egress]]
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
    for answer, name in ((alone, "bottleneck"), (hop, "only")):
        for table in ("by_link", "by_link_class"):
            names = answer.tables[table].pop("link").tolist()
            assert names == ["ingress", name, "egress"]
    assert metrics_of(alone) == metrics_of(hop)
    assert alone["loss_ratio"] > 0.02


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("element", ["own", "before", "after"])
def test_hops_without_a_rate_add_delay_only(element: str, stack: str) -> None:
    tcp = {"stack": stack, "receiver_window": 44}
    ends = {"egress": {"rate": "10mbit", "delay": "5ms"}}
    slow = {"rate": "3mbit", "buffer": "25pkt"}
    other = {"name": element, "delay": "3ms", "shared": element != "own"}
    hops: list[dict[str, Any]] = [other, {"name": "slow", "delay": "20ms", **slow}]
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
    links = ["ingress", *(hop["name"] for hop in hops), "egress"]
    if element == "after":
        links[1:3] = links[2:0:-1]
    assert series.tables["by_link"]["link"].tolist() == links
    del series.metrics["other_loss_ratio"]
    for answer in (series, plain):
        del answer.tables["by_link"], answer.tables["by_link_class"]
    if element == "before":
        # Packets in flight at the end of the run are counted when they reach the first hop.
        for name in ("loss_ratio", "goodput_pps", "on_time_s", "queue_mean_pkts", "rtt_mean_s"):
            assert series[name] == pytest.approx(plain[name], rel=1e-3), name
        return
    assert metrics_of(series) == metrics_of(plain)


@pytest.mark.parametrize("shared", [True, False])
def test_random_loss_at_another_hop_is_counted_separately(shared: bool) -> None:
    lossy = {"name": "lossy", "rate": "50mbit", "loss": "2%", "shared": shared}
    slow = {"name": "slow", "rate": "30mbit", "loss": "1%"}
    network = {"rtt": "40ms", "hop": [lossy, slow]}
    answer = simulate(network, run={"duration": "400s", "warmup": "5s"})
    assert answer["other_loss_ratio"] == pytest.approx(0.02, rel=0.1)
    assert answer["loss_ratio"] == pytest.approx(0.01, rel=0.1)
    links = answer.tables["by_link"]
    assert links["link"].tolist() == ["lossy", "slow"]
    before, after = links["packets"].tolist()
    assert after == pytest.approx(before * (1 - links["loss_ratio"][0]), abs=30)


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


def test_instant_feedback_of_a_policer_is_delayed_like_a_packet() -> None:
    """Regression: with a link without a constant rate, a sender had a new loss each nanosecond."""
    policer = {"bucket": "1mbit", "burst": "3KB", "policer": True}
    answer = simulate(
        {"rtt": "10ms", "bottleneck": {"rate": policer}},
        traffic={"kind": "bulk", "flows": 10},
        tcp={"stack": "max-plus-reno", "receiver_window": 44},
        run={"duration": "2s", "warmup": "500ms", "seed": 1, "max_wall": "30s"},
    )
    of_one_flow = 1e9 / (8 * 1500)
    assert of_one_flow < answer.metrics["send_rate_pps"].value <= 10 * of_one_flow
