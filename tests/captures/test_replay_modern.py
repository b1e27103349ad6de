"""Replays of modern TCP: the most similar stack, and the relative error of a replay."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tcpcast
from replays import FAST, OF_WHAT_IF, rate, simulated, what_if
from tcpcast.array_types import Table
from tcpcast.captures import Capture
from tcpcast.captures.capture_stats import make_capture_stats
from tcpcast.captures.link_estimate import link_bps
from tcpcast.captures.replay import make_replay_scenario
from tcpcast.captures.sender_stack import identify_sender
from tcpcast.scenario import Scenario

SHARED = Path(__file__).parents[3] / "shared" / "captures"
BASE: dict[str, Any] = {
    "network": {"rtt": "60ms", "bottleneck": {"rate": "4mbit", "buffer": "20pkt", "loss": "0%"}},
    "traffic": {"kind": "bulk", "flows": 3},
    "run": {"duration": "200s", "warmup": "0s"},
}
STACKS = ("linux-cubic", "linux-reno", "linux-bbr", "linux-reno-classic")

PATHS: dict[str, dict[str, Any]] = {
    "only the queue": {},
    "some loss": {"network.bottleneck.loss": "2%"},
    "one flow": {"traffic.flows": 1, "network.bottleneck.loss": "0.1%"},
    "much loss": {**FAST, "network.bottleneck.loss": "6%"},
    # A larger buffer than that of FAST, which slow start overflows unless a random loss is earlier.
    "little loss": {
        **FAST,
        "network.bottleneck.loss": "0.5%",
        "network.bottleneck.buffer": "1000pkt",
    },
    "window": {**FAST, "network.bottleneck.loss": "0.5%", "tcp.receiver_window": 12},
}

TOLERANCE = 0.11
"""Relative difference of rate, loss indications and RTT."""
LOSS_OF_BBR = 0.65
"""Tolerance of BBR's loss indications: a short queue hides which losses it caused."""


def captured(folder: Path, changes: dict[str, Any]) -> tuple[Scenario, tcpcast.Answer, Capture]:
    return simulated(BASE, folder, changes)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stack", STACKS)
def test_replay_reproduces_stack_rate_loss_and_rtt(stack: str, path: str, tmp_path: Path) -> None:
    changes = {"tcp.stack": stack, **PATHS[path]}
    if stack == "linux-bbr" and changes.get("network.bottleneck.rate") == "100mbit":
        changes["run.duration"] = "40s"  # BBR fills the link despite the loss
    scenario, original, capture = captured(tmp_path, changes)
    written = make_replay_scenario(capture)
    replayed = Scenario.from_dict(written.tables)
    assert replayed.populations[0].tcp.stack == stack
    assert replayed.payload_bytes == scenario.payload_bytes
    # One of three flows may always have a queue, which raises its minimum RTT.
    assert [
        text for text in written.warnings if "round-trip times of the flows differ" not in text
    ] == []
    replayed = replayed.with_changes({"run.replications": 1})  # as long as the original
    answer = tcpcast.run(replayed, ["packet"])["packet"]
    for metric in ("send_rate_pps", "rtt_mean_s", "loss_indication_ratio"):
        is_bbr_loss = metric == "loss_indication_ratio" and stack == "linux-bbr"
        tolerance = LOSS_OF_BBR if is_bbr_loss else TOLERANCE
        tolerance_of_metric = 0.2 if stack == "linux-bbr" and metric == "rtt_mean_s" else tolerance
        assert answer[metric] == pytest.approx(original[metric], rel=tolerance_of_metric), metric
    assert rate(what_if(replayed)) == pytest.approx(rate(what_if(scenario)), rel=OF_WHAT_IF)


@pytest.mark.parametrize("stack", ["linux-cubic", "linux-reno"])
@pytest.mark.parametrize("buffer", [12, 50])
@pytest.mark.parametrize("flows", [1, 3])
def test_delayed_acks_are_not_counted_as_queueing(
    stack: str, buffer: int, flows: int, tmp_path: Path
) -> None:
    """A delayed ack lengthens the RTT like an additional queued packet."""
    changes = {
        "tcp.stack": stack, "traffic.flows": flows, "run.duration": "60s",
        "network.bottleneck.rate": "10mbit", "network.bottleneck.buffer": f"{buffer}pkt",
    }  # fmt: skip
    _, _, capture = captured(tmp_path, changes)
    stats = make_capture_stats(capture)
    queued = (stats.full_queue_rtt_s - stats.rtt_min_s) * 1e7 / (8 * 1500) + 1
    assert queued == pytest.approx(buffer, rel=0.1, abs=1)
    assert link_bps(capture) * 1500 / 1448 == pytest.approx(1e7, rel=0.1)


def test_receiver_capture_reproduces_bbr_rate_with_random_loss(tmp_path: Path) -> None:
    """RTTs at the receiver exclude the queue, so buffer and loss type cannot be derived."""
    bottleneck = {"rate": "15mbit", "buffer": "100pkt", "loss": "1%"}
    tap = {"link": "receiver", "file": str(tmp_path / "receiver.pcap")}
    scenario = Scenario.from_dict(BASE).with_changes(
        {
            "network.rtt": "40ms",
            "network.bottleneck": bottleneck,
            "tcp.stack": "linux-bbr",
            "traffic.flows": 1,
            "run.duration": "20s",
            "probes.pcap": [tap],
        }
    )
    original = rate(scenario)
    replayed = make_replay_scenario(tcpcast.trace(tap["file"]))
    assert replayed.tables["network"]["bottleneck"]["buffer"] == "1bdp"
    assert rate(Scenario.from_dict(replayed.tables)) == pytest.approx(original, rel=0.05)


KERNEL = {
    "kernel/bbr_rtt60_20mbit_p0.01": ("linux-bbr", 0.05),
    "kernel/cubic_rtt60_p0.01": ("linux-cubic", 0.05),
    "kernel/classic_droptail_2mbit_b20": ("linux-reno-classic", 0.02),
    "kernel/classic_quickack_rtt60_p0.01": ("linux-reno-classic", 0.05),
    "kernel/classic_rtt60_p0.01": ("linux-reno-classic", 0.08),
    "kernel/classic_rtt60_p0.03": ("linux-reno-classic", 0.05),
    "own-cubic-sack-5pct-320s": ("linux-cubic", 0.05),
    "own-reno-2pct-320s": ("linux-reno-classic", 0.05),
    "own-reno-droptail-40s": ("linux-reno", 0.02),
    "own-reno-rwnd-limited-120s": ("linux-reno-classic", 0.05),
    "own-bbr-v6-reorder-30s": ("linux-bbr", 0.02),
}
"""Captures of Linux: expected stack of the replay, and relative tolerance of the send rate."""


@pytest.mark.skipif(not SHARED.is_dir(), reason="no shared captures")
@pytest.mark.parametrize("name", KERNEL)
def test_replay_reproduces_stack_and_rate_of_linux_captures(name: str) -> None:
    capture = tcpcast.trace(SHARED / f"{name}.pcap")
    replayed = Scenario.from_dict(make_replay_scenario(capture).tables)
    stack, tolerance = KERNEL[name]
    assert replayed.populations[0].tcp.stack == stack
    sent = float(capture.connections["send_rate_pps"][0])
    assert rate(replayed) == pytest.approx(sent, rel=tolerance)


PLAIN: dict[str, Any] = {
    "looks_like": "unknown",
    "window_reduction": np.nan,
    "sack": False,
    "by_sack": 0,
    "timestamps": False,
    "rtt_timestamps_mean_s": np.nan,
    "syn_captured": True,
    "data_packets": 100,
    "td": 3,
    "to": 0,
    "t0_s": np.nan,
    "rtt_mean_s": 0.1,
}


def table(*rows: dict[str, Any]) -> Table:
    return {name: np.array([(PLAIN | row)[name] for row in rows]) for name in PLAIN}


@pytest.mark.parametrize(
    ("row", "stack", "word"),
    [
        ({"looks_like": "cubic", "sack": True}, "linux-cubic", "like cubic"),
        ({"looks_like": "reno", "sack": True}, "linux-reno", "like reno"),
        ({"looks_like": "bbr", "sack": True}, "linux-bbr", "like bbr"),
        ({"looks_like": "bbr"}, "linux-bbr", "like bbr"),
        ({"sack": True}, "linux-cubic", "SACK"),
        ({"by_sack": 2, "syn_captured": False}, "linux-cubic", "SACK"),
        ({"looks_like": "reno", "timestamps": True}, "linux-reno-classic", "no SACK"),
        ({"looks_like": "reno", "to": 4, "t0_s": 0.31}, "linux-reno-classic", "timeouts"),
        ({"looks_like": "reno", "to": 4, "t0_s": 1.0}, "rfc-newreno", "neither"),
        ({"looks_like": "reno"}, "rfc-newreno", "neither"),
        ({"syn_captured": False, "td": 0}, "linux-cubic", "does not show the stack"),
    ],
)
def test_most_similar_stack_is_selected(row: dict[str, Any], stack: str, word: str) -> None:
    sender = identify_sender(table(row))
    assert sender.stack == stack
    assert word in sender.evidence
    assert sender.timestamps == row.get("timestamps", False)


def test_flow_with_most_packets_determines_stack(tmp_path: Path) -> None:
    cubic = {"looks_like": "cubic", "sack": True, "timestamps": True}
    bbr = {"looks_like": "bbr", "sack": True, "data_packets": 1000}
    assert identify_sender(table(cubic, cubic, bbr)).stack == "linux-bbr"
    assert not identify_sender(table(cubic, bbr)).timestamps
    _, _, capture = captured(tmp_path, {"traffic.flows": 2, "run.duration": "60s"})
    capture.connections["looks_like"] = np.array(["cubic", "bbr"])
    text = " ".join(make_replay_scenario(capture).warnings)
    assert "the flows use different congestion controls (1 like bbr, 1 like cubic)" in text


@pytest.mark.parametrize(
    ("window_reduction", "stack"),
    [(0.5, "linux-reno"), (0.7, "linux-cubic"), (1.2, "linux-bbr"), (0.57, "linux-cubic")],
)
def test_many_short_transfers_identify_the_stack_jointly(
    window_reduction: float, stack: str
) -> None:
    transfer = {"sack": True, "window_reduction": window_reduction}
    outlier = {"sack": True, "looks_like": "bbr"}
    assert identify_sender(table(*[transfer] * 30, outlier)).stack == stack
    assert identify_sender(table(*[transfer] * 10)).stack == "linux-cubic"


def test_short_sequential_files_have_a_warning(tmp_path: Path) -> None:
    off, size = ({"distribution": "constant", "value": value} for value in ("1s", "50pkt"))
    files = {"kind": "on-off", "sources": 5, "off": off, "size": size}
    _, _, capture = captured(tmp_path, {"traffic": files, "run.duration": "30s"})
    text = " ".join(make_replay_scenario(capture).warnings)
    count = capture.connections["src"].size
    assert count > 20
    assert f"of {count} connections were shorter than half of the capture" in text


def test_timestamps_are_detected_without_handshake() -> None:
    row = {"rtt_timestamps_mean_s": 0.1, "syn_captured": False, "td": 0}
    assert identify_sender(table(row)).timestamps


def test_min_rto_is_set_only_if_shorter_than_linux(tmp_path: Path) -> None:
    _, _, capture = captured(tmp_path, {**FAST, "network.bottleneck.loss": "6%"})
    flows = capture.connections
    written = make_replay_scenario(capture).tables["tcp"]
    assert set(written) == {"stack", "initial_window"}
    flows["to"] += 5
    flows["t0_s"] = flows["rtt_mean_s"] + 0.2
    assert "min_rto" not in make_replay_scenario(capture).tables["tcp"]
    flows["t0_s"] = flows["rtt_mean_s"] + 0.03
    replayed = Scenario.from_dict(make_replay_scenario(capture).tables)
    assert replayed.populations[0].tcp.min_rto_s == pytest.approx(0.03, rel=1e-3)
    flows["t0_s"] = flows["rtt_mean_s"]
    assert make_replay_scenario(capture).tables["tcp"]["min_rto"] == "4ms"


def test_receiver_window_is_set_only_if_flights_were_near(tmp_path: Path) -> None:
    _, _, capture = captured(tmp_path, {**FAST, "network.bottleneck.loss": "2%"})
    flows = capture.connections
    assert "receiver_window" not in make_replay_scenario(capture).tables["tcp"]
    flows["w_max_pkts"] = 1.5 * flows["flight_max_bytes"] / 1448
    written = make_replay_scenario(capture).tables["tcp"]["receiver_window"]
    assert written == pytest.approx(float(flows["w_max_pkts"].mean()), rel=0.1)


def test_packets_without_timestamps_have_40_byte_headers(tmp_path: Path) -> None:
    scenario, _, capture = captured(tmp_path, {"tcp.timestamps": False, "run.duration": "60s"})
    written = make_replay_scenario(capture)
    assert written.tables["tcp"]["timestamps"] is False
    assert "1460 B of payload (largest captured) and 40 B of headers" in written.text
    assert Scenario.from_dict(written.tables).payload_bytes == scenario.payload_bytes


@pytest.mark.parametrize("tap", ["receiver", "bottleneck-out"])
@pytest.mark.parametrize("buffer", ["0.5bdp", "1bdp", "4bdp"])
def test_replay_behind_the_queue_has_the_full_link_of_the_verdict(
    tap: str, buffer: str, tmp_path: Path
) -> None:
    link = {"network.bottleneck.rate": "20mbit", "network.bottleneck.buffer": buffer}
    flow = {"tcp.stack": "linux-cubic", "traffic.flows": 1, "run.duration": "60s"}
    scenario, original, capture = simulated(BASE, tmp_path, {**link, **flow}, tap)
    assert capture.connections["cause"].tolist() == ["link"]
    written = make_replay_scenario(capture)
    assert "measured rate, because the link limits it" in written.text
    replayed = Scenario.from_dict(written.tables)
    bottleneck = replayed.network.bottleneck
    assert bottleneck.loss is None or bottleneck.loss.mean_ratio() == 0
    assert bottleneck.rate_bps == pytest.approx(scenario.network.bottleneck.rate_bps, rel=0.02)
    assert replayed.buffer_pkts == pytest.approx(scenario.buffer_pkts, rel=0.15)
    assert rate(replayed) == pytest.approx(original["send_rate_pps"], rel=0.03)


def test_ecn_marks_have_a_warning(tmp_path: Path) -> None:
    marks = {"network.bottleneck.queue": "codel", "tcp.ecn": True}
    _, _, capture = captured(tmp_path, {**marks, "run.duration": "60s"})
    (text,) = make_replay_scenario(capture).warnings
    assert "window reductions were caused by ECN marks" in text


def test_briefly_full_link_gives_no_link_rate(tmp_path: Path) -> None:
    _, _, capture = captured(tmp_path, {"run.duration": "60s"})
    assert link_bps(capture) > 0
    capture.connections["share_bottleneck"] *= 0
    assert np.isnan(link_bps(capture))


@pytest.mark.parametrize("limit", ["application", "receiver_window", "timeout"])
def test_link_rate_is_unknown_if_another_limit_dominates(limit: str, tmp_path: Path) -> None:
    _, _, capture = captured(tmp_path, {**FAST, "traffic.flows": 1, "run.duration": "20s"})
    flows = capture.connections
    for name in ("td", "to", "retransmissions", "bottleneck_rate_bps"):
        flows[name] = flows[name] * (np.nan if name == "bottleneck_rate_bps" else 0)
    for name in [name for name in flows if name.startswith("share_")]:
        flows[name] = flows[name] * 0
    assert flows["rtt_mean_s"][0] > 1.03 * flows["rtt_min_s"][0]  # slow start fills the queue
    for name in ("rtt_karn_p50_s", "rtt_karn_p99_s", "rtt_p99_s", "rtt_undelayed_max_s"):
        flows[name] = flows["rtt_min_s"]
    assert "which neither loss nor the window explains" in make_replay_scenario(capture).text
    flows[f"share_{limit}"] += 0.9
    written = make_replay_scenario(capture)
    assert "10 times the measured rate, because the link rate is unknown" in written.text
    rtt_s = float(flows["rtt_min_s"][0])
    assert Scenario.from_dict(written.tables).rtt_s == pytest.approx(rtt_s, rel=1e-3)


def test_replayed_short_transfer_has_equal_completion_time(tmp_path: Path) -> None:
    scenario, original, capture = captured(
        tmp_path,
        {
            "traffic": {"kind": "transfers", "size": "200pkt", "count": 1},
            "run": {"seed": 1},
            "network.bottleneck.buffer": "300pkt",
        },
    )
    capture.connections["end"] = np.array(["closed"])
    replayed = Scenario.from_dict(make_replay_scenario(capture).tables)
    assert replayed.isolated_transfers is not None
    assert replayed.isolated_transfers.sizes == [200]
    assert replayed.populations[0].tcp.stack == "linux-cubic"
    answer = tcpcast.run(replayed, ["packet"])["packet"]
    assert answer["completion_time_s"] == pytest.approx(original["completion_time_s"], rel=0.15)
    assert scenario.payload_bytes == replayed.payload_bytes
