"""Engine kernel: its refusals, and its measurements if the machine allows them."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import tcpcast
from tcpcast.answer import Answer, Status
from tcpcast.cli.run import exit_code
from tcpcast.comparison.compare import class_metrics
from tcpcast.emulation.traffic import TrafficOutcome
from tcpcast.engines import RunOptions
from tcpcast.engines import answer as ask
from tcpcast.engines.kernel import estimate_duration_s
from tcpcast.engines.kernel.config import run_arguments
from tcpcast.process.errors import WorkerDied
from tcpcast.scenario import Scenario

BASE: dict[str, Any] = {
    "name": "kernel",
    "network": {"rtt": "20ms", "bottleneck": {"rate": "10mbit", "buffer": "40pkt"}},
    "traffic": {"kind": "bulk", "flows": 1},
    "tcp": {"stack": "linux-cubic"},
    "run": {"duration": "3s", "warmup": "1s"},
}


def kernel_scenario(**tables: Any) -> Scenario:
    """Return the base scenario with some tables merged in."""
    kept = [key for key in BASE if tables.get(key, {}) is not None]
    return Scenario.from_dict(
        {key: {**BASE[key], **tables.get(key, {})} if key != "name" else "k" for key in kept}
        | {key: value for key, value in tables.items() if key not in BASE}
    )


def line_scenario(*classes: dict[str, Any], **tables: Any) -> Scenario:
    """Return classes on a line of 20 and 5 Mbit/s, with 10 ms for each way."""
    paths = {"flows": 1, "route": ["down"], "back": ["up"], "delay": "10ms"}
    return Scenario.from_dict(
        {
            "name": "line",
            "link": {"down": {"rate": "20mbit"}, "up": {"rate": "5mbit"}},
            "class": [{"name": entry["traffic"]["kind"], **paths, **entry} for entry in classes],
            "run": BASE["run"],
            **tables,
        }
    )


def measured(scenario: Scenario) -> Answer:
    """Run the kernel; skip if this machine has no link for it, or is too busy."""
    [answer] = tcpcast.run(scenario, ["kernel"])
    if answer.not_applicable is not None and "this machine" in answer.not_applicable:
        pytest.skip(answer.not_applicable)
    assert answer.not_applicable is None, answer.not_applicable
    if answer.status is Status.MACHINE_BUSY:
        pytest.skip(str(answer.incomplete_reason))
    return answer


REFUSED: dict[str, dict[str, Any]] = {
    "tcp.receiver_window = 2": {"tcp": {"stack": "linux-reno", "receiver_window": 1}},
    "tcp.delayed_acks": {"tcp": {"stack": "linux-reno", "delayed_acks": False}},
    "version 1": {"tcp": {"stack": "bbr3"}},
    "modern Linux": {"tcp": {"stack": "rfc-newreno"}},
    "tcp.handshake": {"tcp": {"stack": "linux-cubic", "handshake": "tls13"}},
    "tcp.fast_open": {"tcp": {"stack": "linux-cubic", "fast_open": True}},
    "use two classes": {
        "network": None,
        "link": {"line": {"rate": "10mbit"}},
        "class": [{"name": "c", "flows": 1, "route": ["line"], "delay": "5ms", "sends": "both"}],
    },
    "28 B to 1984 B": {
        "network": None,
        "link": {"line": {"rate": "10mbit"}},
        "class": [
            {
                "name": "c",
                "flows": 1,
                "route": ["line"],
                "delay": "5ms",
                "traffic": {"kind": "messages", "size": "3000B", "interval": "20ms"},
            }
        ],
    },
}


@pytest.mark.parametrize("message", REFUSED)
def test_unsupported_features_are_rejected_by_name(message: str) -> None:
    [answer] = tcpcast.run(kernel_scenario(**REFUSED[message]), ["kernel"])
    assert answer.not_applicable is not None
    assert message in answer.not_applicable


@pytest.mark.parametrize(("stack", "suggested"), [("bbr3", "linux-bbr"), ("multcp", "linux-cubic")])
def test_nearest_stack_of_the_kernel_is_suggested_first(stack: str, suggested: str) -> None:
    [answer] = tcpcast.run(kernel_scenario(tcp={"stack": stack}), ["kernel"])
    first, *_ = answer.suggestions
    assert first.changes["tcp.stack"] == suggested


def test_kernel_runs_only_if_requested() -> None:
    assert "kernel" not in [a.engine for a in tcpcast.run(kernel_scenario(run={"duration": "2s"}))]


def test_estimated_duration_is_reported() -> None:
    assert estimate_duration_s(kernel_scenario(run={"duration": "3s", "replications": 4})) == 12.0


def test_each_flow_has_the_options_and_delays_of_its_class() -> None:
    classes = [
        {"name": "near", "flows": 1, "rtt": "20ms"},
        {"name": "far", "flows": 2, "rtt": "80ms", "tcp": {"stack": "linux-bbr"}},
    ]
    scenario = kernel_scenario(**{"class": classes, "traffic": {"kind": "bulk"}})
    asks = run_arguments(scenario, 1)
    flows = asks["flows"]
    assert [flow["class"] for flow in flows] == [0, 1, 1]
    assert [flow["source"] for flow in flows] == [0, 1, 2]
    assert [flow["place"] for flow in flows] == [0, 0, 1]
    assert [flow["control"] for flow in flows] == ["cubic", "bbr", "bbr"]
    # Each sender is a host of its own, and all receivers are one.
    hosts = [asks["hosts"][flow["hosts"][0]] for flow in flows]
    assert [host["route"] for host in hosts] == [(10, 200)] * 3
    assert len({flow["hosts"][0] for flow in flows}) == 3
    assert len({flow["hosts"][1] for flow in flows}) == 1
    # Streams of the packet engine, by seed and replication.
    assert (asks["config"]["seed"], asks["replication"]) == (1, 1)


def test_ends_that_send_data_are_hosts_of_their_own() -> None:
    scenario = line_scenario(
        {"traffic": {"kind": "bulk"}, "sends": "client", "flows": 2},
        {"traffic": {"kind": "requests", "answer": "10KB"}},
        {"traffic": {"kind": "ping", "interval": "100ms"}},
        {"traffic": {"kind": "bulk"}, "name": "ecn", "tcp": {"ecn": True}},
    )
    asks = run_arguments(scenario, 0)
    hosts, (first, second, requests, ping, ecn) = asks["hosts"], asks["flows"]
    users = [number for flow in asks["flows"] for number in flow["hosts"]]
    # Servers of uploads are one host; so are clients without data and with the same settings.
    assert first["hosts"][0] == second["hosts"][0] != requests["hosts"][0]
    assert requests["hosts"][1] != ecn["hosts"][1]
    assert [users.count(n) for n in (first["hosts"][1], requests["hosts"][0])] == [1, 1]
    assert users.count(ping["hosts"][1]) == 1
    assert [hosts[n]["side"] for n in first["hosts"]] == ["near", "far"]
    assert (
        dict(hosts[ecn["hosts"][1]]["sysctls"])["tcp_ecn"],
        hosts[ping["hosts"][1]]["sysctls"],
    ) == (
        "1",
        [],
    )


@pytest.mark.timed
def test_idle_links_delay_pings_messages_and_requests_by_their_paths() -> None:
    scenario = line_scenario(
        {"traffic": {"kind": "ping", "interval": "50ms"}},
        {"traffic": {"kind": "messages", "size": "500B", "interval": "20ms"}, "sends": "both"},
        {"traffic": {"kind": "requests", "answer": "10KB", "pause": "0.1s"}},
        {"traffic": {"kind": "stream", "rate": "2mbit", "segment": "1s"}},
    )
    answer = measured(scenario)
    of = class_metrics(answer)
    # Pings of 64 B take 20 ms, 0.026 ms and 0.102 ms; messages of 500 B 0.2 ms and 0.8 ms.
    assert of["ping"]["delay_p50_s"].value == pytest.approx(0.0201, abs=0.0006)
    assert 0.0102 <= of["messages"]["delay_p50_s"].value <= 0.0115
    assert of["messages"]["message_loss_ratio"].value == 0
    # At least a round trip and the transmission of the answer.
    assert 0.024 < of["requests"]["latency_p50_s"].value < 0.06
    assert of["stream"]["stall_ratio"].value == 0
    table = answer.tables["by_link"]
    assert list(table["link"]) == ["down", "up"]
    assert (table["loss_ratio"] == 0).all()
    assert (table["utilisation"] > 0.01).all()
    pairs = answer.tables["by_link_class"]
    assert set(zip(pairs["link"], pairs["class"], strict=True)) >= {
        ("up", "ping"),
        ("down", "ping"),
    }


@pytest.mark.timed
def test_upload_fills_its_link_and_delays_the_others() -> None:
    scenario = line_scenario(
        {"traffic": {"kind": "bulk"}, "sends": "client"},
        {"traffic": {"kind": "ping", "interval": "20ms"}},
        link={"down": {"rate": "20mbit"}, "up": {"rate": "5mbit", "buffer": "50pkt"}},
    )
    answer = measured(scenario)
    of = class_metrics(answer)
    assert of["bulk"]["goodput_bps"].value == pytest.approx(5e6 * 1448 / 1500, rel=0.1)
    # 50 packets take 120 ms.
    assert 0.05 < of["ping"]["delay_p95_s"].value < 0.145
    assert 0.05 < of["bulk"]["rtt_p95_s"].value < 0.16
    [down, up] = answer.tables["by_link"]["utilisation"]
    assert up > 0.9
    assert down < 0.1


@pytest.mark.timed
def test_receiver_window_limits_the_flow() -> None:
    window, rtt_s = 40, 0.06
    network = {"rtt": "60ms", "bottleneck": {"rate": "50mbit", "buffer": "300pkt"}}
    tcp = {"stack": "linux-reno", "receiver_window": window}
    scenario = kernel_scenario(network=network, tcp=tcp)
    [flow] = run_arguments(scenario, 0)["flows"]
    assert flow["receiver_window_bytes"] == window * 1448
    [simulated] = tcpcast.run(scenario, ["packet"])
    assert simulated["goodput_pps"] == pytest.approx(window / rtt_s, rel=0.03)
    answer = measured(scenario)
    # On a busy machine packets are late, which lengthens the round trip.
    assert answer["goodput_pps"] < 1.03 * window / rtt_s
    assert answer["goodput_pps"] == pytest.approx(window / answer["rtt_mean_s"], rel=0.08)


def test_files_require_a_known_end() -> None:
    counted = {"run": {"transfers": 50, "duration": None, "warmup": "mser-5"}}
    [answer] = tcpcast.run(Scenario.from_dict({**BASE, **FILES, **counted}), ["kernel"])
    assert answer.not_applicable is not None
    assert "run.transfers counts transfers after the warm-up" in answer.not_applicable
    scenario = Scenario.from_dict({**BASE, **FILES, "run": {"transfers": 50, "warmup": "1s"}})
    schedule = run_arguments(scenario, 0)["schedule"]
    assert schedule["wanted"] == (10**9, 50)
    assert schedule["until_ns"] is None
    # 8 sources; each has at most one file every 0.24 s.
    assert estimate_duration_s(scenario) == pytest.approx(1 + 50 * 0.24 / 8, rel=0.01)


FILES: dict[str, Any] = {
    "traffic": {
        "kind": "on-off",
        "sources": 8,
        "off": {"distribution": "exponential", "mean": "200ms"},
        "size": {"distribution": "exponential", "mean": "12pkt", "minimum": "3pkt"},
    }
}


@pytest.mark.parametrize("connection", ["new", "persistent"])
@pytest.mark.timed
def test_on_off_sources_send_the_files_of_the_packet_engine(connection: str) -> None:
    traffic = {**FILES["traffic"], "connection": connection}
    run = {"duration": "5s", "warmup": "1s"}
    scenario = Scenario.from_dict({**BASE, "traffic": traffic, "run": run})
    answer = measured(scenario)
    [packet] = tcpcast.run(scenario, ["packet"])
    # A different number of files from the same lists has ended.
    assert answer["transfers"] == pytest.approx(packet["transfers"], rel=0.2)
    assert answer["mean_size_pkts"] == pytest.approx(packet["mean_size_pkts"], rel=0.2)
    assert answer["on_time_s"] == pytest.approx(packet["on_time_s"], rel=0.35)
    assert 0.3 < answer["utilisation"] < 1.0
    assert ("total_time_s" in answer.metrics) is (connection == "new")
    assert "jain_index" not in answer.metrics
    assert answer.tables["by_size"]["transfers"].sum() == pytest.approx(answer["transfers"])
    quantities = answer.tables["percentiles"]["quantity"].tolist()
    assert quantities == ["on_time", "connection_rate"]


@pytest.mark.parametrize("correlation", [0.0, -0.6])
@pytest.mark.timed
def test_files_are_drawn_from_the_streams_of_the_packet_engine(correlation: float) -> None:
    traffic = {**FILES["traffic"], "sources": 1, "correlation": correlation}
    traffic["off"] = {"distribution": "exponential", "mean": "20ms"}
    run = {"transfers": 25, "warmup": "0s", "seed": 7}
    scenario = Scenario.from_dict({**BASE, "traffic": traffic, "run": run})
    answer = measured(scenario)
    [packet] = tcpcast.run(scenario, ["packet"])
    # The same 25 files, with the same intervals between them.
    assert answer["mean_size_pkts"] == pytest.approx(packet["mean_size_pkts"], rel=1e-12)
    assert answer.measured_s == pytest.approx(packet.measured_s, rel=0.1)


@pytest.mark.timed
def test_transfers_arrive_and_share_the_link() -> None:
    traffic = {
        "kind": "transfers",
        "size": ["2pkt", "20pkt"],
        "arrivals": {"distribution": "poisson", "rate": "30/s"},
    }
    run = {"transfers": 100, "warmup": "0.5s"}
    answer = measured(Scenario.from_dict({**BASE, "traffic": traffic, "run": run}))
    assert answer["transfers"] == pytest.approx(100, abs=3)
    assert answer["offered_load"] == pytest.approx(30 * 11 * 1500 * 8 / 10e6)
    sizes = answer.tables["by_size"]
    assert sizes["size_pkts"].tolist() == [2, 20]
    # Two packets and an ack; 20 packets need at least a second round.
    assert 0.02 < sizes["completion_time_s"][0] < 0.06
    assert 0.04 < sizes["completion_time_s"][1] < 0.12
    assert (sizes["total_time_s"] > sizes["delivery_time_s"] + 0.0195).all()
    assert answer["goodput_bps"] == pytest.approx(30 * 11 * 1448 * 8, rel=0.4)


def test_transfers_of_a_class_share_the_link_with_long_flows() -> None:
    arrivals = {"distribution": "poisson", "rate": "20/s"}
    web = {"kind": "transfers", "size": "5pkt", "arrivals": arrivals}
    long = {"kind": "bulk", "flows": 1}
    tables = {key: value for key, value in BASE.items() if key != "traffic"}
    classes = [{"name": "web", "traffic": web}, {"name": "long", "traffic": long}]
    [answer] = tcpcast.run(Scenario.from_dict({**tables, "class": classes}), ["kernel"])
    if answer.not_applicable is not None and "this machine" in answer.not_applicable:
        pytest.skip(answer.not_applicable)
    figures = class_metrics(answer)  # independent of the lateness of this machine
    assert figures["web"]["mean_size_pkts"].value == 5
    assert {"completion_time_s", "goodput_bps"} <= figures["web"].keys()
    assert "completion_time_s" not in figures["long"]
    assert "goodput_bps" in figures["long"]


@pytest.mark.timed
def test_flows_start_and_stop_with_their_class() -> None:
    classes = [
        {"name": "always", "flows": 1},
        {"name": "between", "flows": 1, "start": "1s", "stop": "2s"},
    ]
    scenario = kernel_scenario(**{"class": classes, "traffic": {"kind": "bulk"}})
    flows = measured(scenario).tables["by_flow"]
    assert flows["class"].tolist() == ["always", "between"]
    # The flow shares the link for one second; otherwise the other flow uses the whole link.
    assert 1e6 < flows["goodput_bps"][1] < 9.7e6
    assert flows["goodput_bps"].tolist()[0] > 4e6


@pytest.mark.timed
def test_packets_of_a_class_have_its_size() -> None:
    """The link counts packets: their number times their size is the carried volume."""
    sizes = {"large": 1500, "small": 500}
    classes = [{"name": name, "flows": 1, "packet": f"{n}B"} for name, n in sizes.items()]
    scenario = kernel_scenario(**{"class": classes, "run": {"duration": "8s", "warmup": "2s"}})
    [answer] = ask(scenario, ["kernel"], RunOptions(accept_late=True))
    if answer.not_applicable is not None and "this machine" in answer.not_applicable:
        pytest.skip(answer.not_applicable)
    carried = 0.0
    for name, figures in class_metrics(answer).items():
        passed = figures["send_rate_pps"].value * (1 - figures["loss_ratio"].value)
        carried += 8 * sizes[name] * passed
        payload = figures["goodput_bps"].value / (8 * passed)
        assert payload == pytest.approx(sizes[name] - 52, rel=0.05)
    assert carried == pytest.approx(10e6 * answer.metrics["utilisation"].value, rel=0.02)


@pytest.mark.timed
def test_two_sizes_share_a_buffer_of_packets_as_in_the_simulator() -> None:
    classes = [{"name": "large", "flows": 2}, {"name": "small", "flows": 2, "packet": "500B"}]
    network = {"bottleneck": {"rate": "4mbit", "buffer": "40pkt"}}
    run = {"duration": "20s", "warmup": "4s"}
    scenario = kernel_scenario(**{"class": classes, "network": network, "run": run})
    shares = []
    for answer in (measured(scenario), *tcpcast.run(scenario, ["packet"])):
        large, small = (metrics["goodput_bps"].value for metrics in class_metrics(answer).values())
        shares.append(small / (large + small))
    assert shares[0] == pytest.approx(shares[1], abs=0.2)
    assert max(shares) < 0.5  # a buffer in bytes gives 0.63 to 0.68


@pytest.mark.timed
def test_bulk_flow_fills_the_link() -> None:
    answer = measured(kernel_scenario())
    # 9,653,333 bit/s is the payload's share of 10 Mbit/s.
    assert answer["goodput_bps"] == pytest.approx(9.65e6, rel=0.05)
    assert 0.9 < answer["utilisation"] <= 1.0
    assert 0.02 < answer["rtt_mean_s"] < 0.07
    assert answer["queue_delay_mean_s"] < 0.048
    assert answer["queue_mean_pkts"] < 41
    assert answer["jain_index"] == 1.0
    assert sum(answer.provenance["lateness_packets"]) > 1000


@pytest.mark.timed
def test_transfers_take_the_times_of_their_path() -> None:
    traffic = {"kind": "transfers", "size": ["2pkt", "20pkt"], "count": 4}
    scenario = Scenario.from_dict({**BASE, "traffic": traffic, "run": {}})
    answer = measured(scenario)
    table = answer.tables["by_size"]
    assert table["transfers"].tolist() == [4, 4]
    # Half a round trip, and consecutive packets at 1.2 ms each.
    assert table["delivery_time_s"][0] == pytest.approx(0.01 + 0.0012, abs=0.002)
    # 20 packets need a second round with the kernel's initial window of 10.
    assert table["delivery_time_s"][1] == pytest.approx(0.03 + 10 * 0.0012, abs=0.006)
    assert (table["total_time_s"] > table["delivery_time_s"] + 0.0195).all()
    assert answer["transfers"] == 8


def test_capture_is_written_next_to_packet_engine_capture(tmp_path: Path) -> None:
    probes = {"pcap": [{"link": "sender", "file": str(tmp_path / "flow.pcap")}]}
    answer = measured(kernel_scenario(probes=probes))
    [flow] = tcpcast.trace(tmp_path / "flow-kernel.pcap").connections["src"]
    assert str(flow).startswith("10.0.0.1")
    assert not answer.write_errors


FLOW = [100, 0, 0, 100, 10**9, 0, 100, 0, 10**5, 10**9, 10, 0, 0, 0, 0, 10**6, 0, *([0] * 10)]
"""Changes of a flow's counters in a tenth of a second: 100 packets, 10 ms queueing each."""

LATE = "this machine stalled for 6.7 % of the time"


def outcome_of(lateness: list[int], away_ns: int, distortion: str | None) -> TrafficOutcome:
    """Return a run of eight seconds."""
    snapshots = [
        {
            "now_ns": index * 10**8,
            # Totals of the link, and of the class on it.
            "links": [index * 10**8, index * 125_000, index * 125_000, *([0] * 11)],
            "flows": [[index * value for value in FLOW]],
            # Data packets of the headline link; the link itself is group 0.
            "waits": [[1, 500, 100]],
            "times": [],
        }
        for index in range(1, 80)
    ]
    reported = {"elapsed_ns": 10**10, "away_ns": away_ns, "late_ns": 0, "lateness": lateness}
    return TrafficOutcome(
        snapshots=snapshots,
        punctuality=reported | {"distortion": distortion},
        distortion=distortion,
        final_report={"away_ns": away_ns, "elapsed_ns": 10**10, "pauses": 50},
    )


def replace_link(monkeypatch: pytest.MonkeyPatch, result: TrafficOutcome) -> Any:
    """Make runs return this outcome, and return the engine's module."""
    module = sys.modules["tcpcast.engines.kernel"]

    def run(_: object, advanced: Callable[[TrafficOutcome], str | None]) -> TrafficOutcome:
        result.stop_reason = advanced(result)
        return result

    monkeypatch.setattr(module, "raise_if_unsupported", lambda _: None)
    monkeypatch.setattr(module, "run_traffic", run)
    return module


def test_dead_process_is_not_a_machine_without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    module, traffic = (
        sys.modules[f"tcpcast.{name}"] for name in ("engines.kernel", "emulation.traffic")
    )

    def start_link(_: bytes) -> Any:
        return nullcontext((iter([("device", "tap")]), None))

    monkeypatch.setattr(module, "raise_if_unsupported", lambda _: None)
    monkeypatch.setattr(traffic, "start_link", start_link)
    with pytest.raises(WorkerDied, match="ended without a result"):
        tcpcast.run(kernel_scenario(), ["kernel"])


def test_late_link_ends_early_and_its_results_are_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    result = outcome_of([1000, 0, 0, 0, 0, 0, 0], 670_000_000, LATE)
    answer = replace_link(monkeypatch, result).kernel(kernel_scenario(), RunOptions())
    assert result.stop_reason == LATE
    assert answer.status is Status.MACHINE_BUSY
    assert exit_code([answer]) == 3
    assert "--accept-late" in answer.incomplete_reason
    rate = answer.metrics["send_rate_pps"]
    assert rate.value == pytest.approx(1000.0)
    assert (rate.low, rate.high, rate.trusted, rate.missing_interval) == (
        None,
        None,
        False,
        "late link",
    )
    # 0.67 s of 10 s: a round trip of 20 ms takes longer by 0.67/9.33.
    [message] = answer.warnings
    assert message.startswith(
        f"{LATE}: this machine delayed packets by a mean of 1.4 ms per RTT. Rates,"
    )


def test_late_results_are_kept_with_accept_late(monkeypatch: pytest.MonkeyPatch) -> None:
    result = outcome_of([1000, 0, 0, 0, 0, 0, 0], 670_000_000, LATE)
    module = replace_link(monkeypatch, result)
    answer = module.kernel(kernel_scenario(), RunOptions(accept_late=True))
    assert result.stop_reason is None
    assert exit_code([answer]) == 0
    assert not answer.metrics["send_rate_pps"].trusted
    assert answer.metrics["send_rate_pps"].low is None
    assert any(LATE in warning for warning in answer.warnings)


@pytest.mark.timed
def test_run_ends_at_its_max_wall() -> None:
    started = time.perf_counter()
    long = kernel_scenario(run={"duration": "1e8s", "warmup": "0.2s", "max_wall": "2s"})
    [answer] = tcpcast.run(long, ["kernel"], accept_late=True)
    if answer.not_applicable is not None and "this machine" in answer.not_applicable:
        pytest.skip(answer.not_applicable)
    assert time.perf_counter() - started < 20
    assert "max_wall" in str(answer.incomplete_reason)
    assert answer["send_rate_pps"] > 0


def test_estimated_duration_of_transfers_includes_their_size() -> None:
    run = {"traffic": {"kind": "transfers", "size": "1000pkt", "count": 10}, "run": {}}
    scenario = Scenario.from_dict({**BASE, **run})
    # 1000 packets of 1500 bytes take 1.2 s at 10 Mbit/s.
    assert 12 < estimate_duration_s(scenario) < 16


def test_run_over_time_has_the_tables_of_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    result = outcome_of([1000, 0, 0, 0, 0, 0, 0], 0, None)
    module = replace_link(monkeypatch, result)
    answer = module.kernel(kernel_scenario(), RunOptions(over_time=True))
    flows, queue = (answer.tables[f"{name}_over_time"] for name in ("flows", "queue"))
    # Snapshots every 0.1 s, from the first; 10**8 packet ns in 0.1 s are one packet.
    assert flows["to_s"][:2] == pytest.approx([0.1, 0.2])
    assert flows["goodput_bps"] == pytest.approx(8e6)
    assert flows["rtt_s"] == pytest.approx(0.1)
    assert queue["queue_pkts"] == pytest.approx(1.0)


def test_late_bbr_run_has_a_warning_of_rate_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    result = outcome_of([990, 0, 10, 0, 0, 0, 0], 10**8, None)
    module = replace_link(monkeypatch, result)
    late = module.kernel(kernel_scenario(tcp={"stack": "linux-bbr"}), RunOptions())
    [message] = [w for w in late.warnings if "more than 0.2 ms late" in w]
    assert message.startswith("bbr: 1.0% of the packets were")
    # Half a millisecond of a round trip of 20.
    assert "ACKs that are 0.5 ms late increase BBR's bandwidth estimate" in message
    assert "by up to 2.6%" in message
    assert "the link was paused for 1.0% of the time (2.0 ms per pause" in message
    # 100 packets per 0.1 s; each waited for 10 ms.
    assert late["send_rate_pps"] == pytest.approx(1000.0)
    assert late["goodput_bps"] == pytest.approx(8e6, rel=0.01)
    assert late["queue_delay_mean_s"] == pytest.approx(0.01)
    assert late["queue_delay_p99_s"] == pytest.approx(0.01)
    assert late["rtt_mean_s"] == pytest.approx(0.1)
    assert not any("late" in w for w in module.kernel(kernel_scenario(), RunOptions()).warnings)


@pytest.mark.timed
def test_interrupted_run_returns_finished_results(tmp_path: Path) -> None:
    measured(kernel_scenario(run={"duration": "1s", "warmup": "0.3s"}))
    file = tmp_path / "k.toml"
    file.write_text(kernel_scenario(run={"duration": "60s", "warmup": "0.5s"}).to_toml())
    command = [sys.executable, "-m", "tcpcast", "run", str(file), "--engine", "kernel", "--json"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stderr is not None
    assert any("about 60 s" in line for line in run.stderr)
    time.sleep(3)  # the link starts within a second, its warm-up over half a second later
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=120)
    assert run.returncode in (3, 130), err
    if run.returncode == 130:
        assert '"incomplete_reason"' in out
        assert '"goodput_bps"' in out
