"""Replays: simulate, capture, derive a scenario from the capture, and simulate it again."""

import math
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tcpcast
from replays import FAST, OF_WHAT_IF, rate, simulated, what_if
from tcpcast.array_types import Table
from tcpcast.captures import Capture
from tcpcast.captures.link_estimate import window_growth_per_round_pkts
from tcpcast.captures.replay import make_replay_scenario
from tcpcast.scenario import Scenario

BASE: dict[str, Any] = {
    "network": {"rtt": "60ms", "bottleneck": {"rate": "4mbit", "buffer": "20pkt", "loss": "2%"}},
    "traffic": {"kind": "bulk", "flows": 3},
    "tcp": {"stack": "rfc-newreno"},
    "run": {"duration": "200s", "warmup": "0s"},
}

FULL_LINK: dict[str, dict[str, Any]] = {
    "random loss": {},
    "only the queue": {"network.bottleneck.loss": "0%"},
    "one flow": {"traffic.flows": 1, "network.bottleneck.loss": "0.5%"},
}
"""Paths whose link is saturated at times."""

UNUSED_CAPACITY: dict[str, dict[str, Any]] = {
    "loss": {**FAST, "traffic.flows": 2},
    "delayed acks": {**FAST, "traffic.flows": 2, "tcp.delayed_acks": True},
    "much loss": {**FAST, "network.bottleneck.loss": "6%"},
    "patient": {**FAST, "tcp.stack": "rfc-newreno-patient", "network.bottleneck.loss": "3%"},
    "window": {**FAST, "network.bottleneck.loss": "0.5%", "tcp.receiver_window": 12},
    "window alone": {**FAST, "network.bottleneck.loss": "0%", "tcp.receiver_window": 12},
}
"""Paths whose link is never full."""

REPORTED = Path(__file__).parent / "reported"

WITHOUT_SCENARIO = {
    "receiver-dies-after-window-shrinks": "the receiver did not respond for the last 69 %",
    "gap-shown-by-pure-ack": "the path was silent, and the sender waited for the RTO 67 %",
    "rst-after-fin-loses-upload": "too short to show how often the application had no data",
}
"""Captures with a limit that a scenario cannot have, and the reason in the error."""

WRITES: dict[str, dict[str, Any]] = {
    "long pauses": {"size": "90pkt", "off": "700ms"},
    "short pauses": {"size": "40pkt", "off": "10ms"},
    "single packets": {"size": "1pkt", "off": "300ms"},
}
"""Size and OFF time of an application that writes less than the network could carry."""

TOLERANCE = 0.10
"""Relative difference of rate and loss indications between replay and original."""


def captured(folder: Path, changes: dict[str, Any]) -> tuple[Scenario, tcpcast.Answer, Capture]:
    return simulated(BASE, folder, changes)


def set_link_rate(capture: Capture, scenario: Scenario) -> None:
    """Set the link rate that a saturated link would show, unless it was measured."""
    if np.isfinite(capture.connections.get("bottleneck_rate_bps", np.nan)).any():
        return
    network, flows = scenario.network, capture.connections["src"].size
    share = network.bottleneck.rate_bps * network.payload_bytes / network.packet_bytes / flows
    capture.connections["bottleneck_rate_bps"] = np.full(flows, share)


def clear_link_rate(capture: Capture) -> None:
    flows = capture.connections["src"].size
    capture.connections["bottleneck_rate_bps"] = np.full(flows, np.nan)


@pytest.mark.parametrize("path", FULL_LINK)
def test_replay_reproduces_rate_loss_and_rtt(path: str, tmp_path: Path) -> None:
    scenario, original, capture = captured(tmp_path, FULL_LINK[path])
    set_link_rate(capture, scenario)
    replayed = Scenario.from_dict(make_replay_scenario(capture).tables)
    answer = tcpcast.run(replayed, ["packet"])["packet"]
    for metric in ("send_rate_pps", "loss_indication_ratio", "rtt_mean_s"):
        assert answer[metric] == pytest.approx(original[metric], rel=TOLERANCE), metric
    assert replayed.rtt_s == pytest.approx(scenario.rtt_s, rel=0.02)
    assert rate(what_if(replayed)) == pytest.approx(rate(what_if(scenario)), rel=OF_WHAT_IF)


@pytest.mark.parametrize("path", UNUSED_CAPACITY)
def test_replay_assumes_fast_link_if_rate_is_unknown(path: str, tmp_path: Path) -> None:
    scenario, original, capture = captured(tmp_path, UNUSED_CAPACITY[path])
    clear_link_rate(capture)
    written = make_replay_scenario(capture)
    assert "10 times the measured rate" in written.text
    replayed = Scenario.from_dict(written.tables)
    assert rate(replayed) == pytest.approx(original["send_rate_pps"], rel=TOLERANCE)
    assert rate(what_if(replayed)) == pytest.approx(rate(what_if(scenario)), rel=OF_WHAT_IF)


def test_rate_without_other_limit_is_the_link_rate(tmp_path: Path) -> None:
    """If neither loss nor the window limits the flow, its rate is the link rate."""
    scenario, original, capture = captured(
        tmp_path, {"traffic.flows": 1, "network.bottleneck.loss": "0%"}
    )
    clear_link_rate(capture)
    capture.connections["td"] *= 0
    capture.connections["to"] *= 0
    written = make_replay_scenario(capture)
    assert "which neither loss nor the window explains" in written.text
    assert written.tables["network"]["bottleneck"]["loss"] == "0%"
    replayed = Scenario.from_dict(written.tables)
    assert rate(replayed) == pytest.approx(original["send_rate_pps"], rel=TOLERANCE)
    assert replayed.network.bottleneck.rate_bps == pytest.approx(
        scenario.network.bottleneck.rate_bps, rel=TOLERANCE
    )


def test_replay_text_is_the_scenario_with_comments(tmp_path: Path) -> None:
    _, _, capture = captured(tmp_path, {"traffic.flows": 1})
    written = make_replay_scenario(capture, "what if")
    assert tomllib.loads(written.text) == written.tables
    assert written.tables["name"] == "what if"
    assert max(map(len, written.text.splitlines())) <= 100
    for line in written.text.splitlines():
        if "=" in line and not line.startswith(("#", "name", "seed")):
            assert "#" in line, line


@pytest.mark.parametrize("growth", [0.5, 1.0])
@pytest.mark.parametrize("rounds_per_row", [1, 3])
def test_window_growth_per_round_is_measured(growth: float, rounds_per_row: int) -> None:
    """A loss halves the flight every 20 rounds; a row covers one or several rounds."""
    index = np.arange(120)[::rounds_per_row]
    rounds: Table = {
        "direction": np.zeros(index.size, dtype=np.int64),
        "time": np.datetime64(0, "ns") + (60 * index).astype("timedelta64[ms]"),
        "rtt_s": np.full(index.size, 0.06),
        "flight_bytes": (1000 * (10 + growth * (index % 20))).astype(np.int64),
        "retransmissions": (index % 20 < rounds_per_row).astype(np.int64),
        "limited_by": np.full(index.size, "congestion_window"),
    }
    payload = np.array([1000])
    assert window_growth_per_round_pkts(rounds, payload) == pytest.approx(growth)
    assert math.isnan(
        window_growth_per_round_pkts({name: column[:9] for name, column in rounds.items()}, payload)
    )
    assert math.isnan(window_growth_per_round_pkts(None, payload))
    other_limit = rounds | {"limited_by": np.full(index.size, "application")}
    assert math.isnan(window_growth_per_round_pkts(other_limit, payload))


@pytest.mark.parametrize(
    ("growth", "options", "delayed"),
    [(0.5, False, True), (1.0, False, False), (0.5, True, False), (math.nan, False, False)],
)
def test_delayed_acks_are_replayed_if_windows_grow_per_ack(
    growth: float, options: bool, delayed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, capture = captured(tmp_path, {**FAST, "traffic.flows": 1, "tcp.delayed_acks": True})
    capture.connections["timestamps"] = np.array([options])
    monkeypatch.setattr(
        "tcpcast.captures.capture_stats.window_growth_per_round_pkts", lambda *_: growth
    )
    assert make_replay_scenario(capture).tables["tcp"].get("delayed_acks", False) is delayed


def test_window_reduction_selects_cubic_or_bbr(tmp_path: Path) -> None:
    _, _, capture = captured(tmp_path, {"traffic.flows": 1})
    for left, word in ((0.5, None), (0.7, "CUBIC"), (0.95, "BBR")):
        capture.connections["window_reduction"] = np.array([left])
        warnings = [
            text
            for text in make_replay_scenario(capture).warnings
            if "reduces the window to" in text
        ]
        assert bool(warnings) == (word is not None)
        assert word is None or word in warnings[0]


def test_short_transfer_is_replayed_as_isolated_transfer(tmp_path: Path) -> None:
    scenario, original, capture = captured(
        tmp_path,
        {
            "traffic": {"kind": "transfers", "size": "200pkt", "count": 1},
            "run": {"seed": 1},
            "network.bottleneck.loss": "0%",
            "network.bottleneck.buffer": "300pkt",
        },
    )
    clear_link_rate(capture)
    capture.connections["syn_captured"] = np.array([True])
    capture.connections["end"] = np.array(["closed"])
    capture.connections["initial_window_pkts"] = np.array([2.0])
    replayed = Scenario.from_dict(make_replay_scenario(capture).tables)
    assert replayed.isolated_transfers is not None
    assert replayed.isolated_transfers.sizes == [200]
    answer = tcpcast.run(replayed, ["packet"])["packet"]
    assert answer["completion_time_s"] == pytest.approx(original["completion_time_s"], rel=0.25)
    set_link_rate(capture, scenario)
    with_link = tcpcast.run(Scenario.from_dict(make_replay_scenario(capture).tables), ["packet"])[
        "packet"
    ]
    assert with_link["completion_time_s"] == pytest.approx(original["completion_time_s"], rel=0.02)


def test_replay_rejects_capture_without_duration(tmp_path: Path) -> None:
    _, _, capture = captured(tmp_path, {"traffic.flows": 1, "run.duration": "1s"})
    capture.connections["duration_s"] = np.array([np.nan])
    with pytest.raises(tcpcast.CaptureError, match="data packets have the same timestamp"):
        make_replay_scenario(capture)


def replay_tables(capture: Capture) -> dict[str, Any]:
    tables: dict[str, Any] = tomllib.loads(make_replay_scenario(capture, "again").text)
    return tables


def test_burst_losses_are_replayed_with_equal_indications(tmp_path: Path) -> None:
    _, _, capture = captured(tmp_path, UNUSED_CAPACITY["loss"])
    table = capture.connections
    single_loss_percent = float(replay_tables(capture)["network"]["bottleneck"]["loss"].rstrip("%"))
    assert single_loss_percent == pytest.approx(2.0, rel=0.1)
    table["retransmissions"] *= 5
    in_bursts = make_replay_scenario(capture, "again")
    loss = tomllib.loads(in_bursts.text)["network"]["bottleneck"]["loss"]
    assert float(loss.rstrip("%")) == pytest.approx(2.0, rel=0.2)
    assert "correlated losses" in in_bursts.text


def test_replayed_link_carries_the_measured_throughput(tmp_path: Path) -> None:
    _, _, capture = captured(tmp_path, {"network.bottleneck.loss": "0%", "traffic.flows": 1})
    clear_link_rate(capture)
    table = capture.connections
    for name in ("td", "to", "retransmissions"):
        table[name] = table[name] * 0
    table["w_max_pkts"][:] = np.nan
    table["flight_mean_bytes"] = table["flight_mean_bytes"] * 0.1
    table["rtt_min_s"] = table["rtt_min_s"] * 0 + 1e-5
    scenario = Scenario.from_dict(replay_tables(capture))
    reached = float(table["throughput_bps"][0]) * 1500 / 1460
    assert scenario.network.bottleneck.rate_bps == pytest.approx(reached, rel=0.01)


def test_outages_and_zero_windows_have_warnings(tmp_path: Path) -> None:
    _, _, capture = captured(tmp_path, UNUSED_CAPACITY["loss"])
    table = capture.connections
    assert not any(
        "does not include" in text for text in make_replay_scenario(capture, "again").warnings
    )
    table["share_timeout"][:], table["max_backoff"][:] = 0.36, 6
    table["share_receiver_window"][:], table["zero_windows"][:] = 0.5, 9
    text = " ".join(make_replay_scenario(capture, "again").warnings)
    assert "up to 6 consecutive timeouts; the scenario does not include this outage" in text
    assert (
        "limited by the receiver window 50 % of the time, and this window closed temporarily"
        in text
    )


@pytest.mark.parametrize("tap", ["sender", "receiver"])
def test_slow_reader_limits_the_scenario_and_the_link_does_not(tap: str, tmp_path: Path) -> None:
    """Regression: a link of the measured rate also limited the flow, and filled its queue."""
    reader = {"traffic.reads": "2mbit", "traffic.flows": 1, "tcp.receiver_window": 400}
    path = {"network.bottleneck": {"rate": "20mbit", "buffer": "100pkt"}, "run.duration": "60s"}
    changes = reader | path | {"tcp.stack": "linux-cubic"}
    _, original, capture = simulated(BASE, tmp_path, changes, tap)
    written = make_replay_scenario(capture)
    replayed = Scenario.from_dict(written.tables)
    assert "because the receiving application limits it" in written.text
    assert replayed.network.bottleneck.rate_bps > 5 * 2e6
    assert rate(replayed) == pytest.approx(original["send_rate_pps"], rel=TOLERANCE)
    assert not any("closed temporarily" in text for text in written.warnings)


@pytest.mark.parametrize("name", WITHOUT_SCENARIO)
def test_no_scenario_replaces_a_limit_that_it_cannot_have(name: str) -> None:
    """Regression: the scenario was a full link, or a link with ten times the rate."""
    capture = tcpcast.trace(REPORTED / f"{name}.pcap.gz")
    with pytest.raises(tcpcast.CaptureError, match=WITHOUT_SCENARIO[name]):
        make_replay_scenario(capture)


@pytest.mark.parametrize("name", WRITES)
def test_application_limit_is_replayed(name: str, tmp_path: Path) -> None:
    """Regression: the flow of the scenario always had data, so that it was up to 800 times as fast.

    A link of 1 Gbit/s saves the transmission times and nothing else.
    """
    sizes = {
        key: {"distribution": "constant", "value": value} for key, value in WRITES[name].items()
    }
    traffic = {"kind": "on-off", "sources": 1, "connection": "persistent", **sizes}
    base = BASE | {"traffic": traffic, "tcp": {"stack": "linux-cubic"}}
    loss_free = {**FAST, "network.bottleneck.loss": "0%", "run.duration": "60s"}
    _, original, capture = simulated(base, tmp_path, loss_free)
    assert set(capture.connections["cause"]) <= {"application", "application_pacing"}
    written = make_replay_scenario(capture)
    assert not written.warnings
    replayed = Scenario.from_dict(written.tables)
    faster = replayed.with_changes({"network.bottleneck.rate": "1gbit"})
    for scenario, tolerance in ((replayed, TOLERANCE), (faster, 1.5 * TOLERANCE)):
        answer = tcpcast.run(scenario, ["packet"])["packet"]
        assert answer["goodput_bps"] == pytest.approx(original["goodput_bps"], rel=tolerance)


def test_send_buffer_is_replayed_as_receiver_window(tmp_path: Path) -> None:
    _, original, capture = captured(tmp_path, UNUSED_CAPACITY["window alone"])
    table, others = capture.connections, {"w_max_pkts": 1000.0, "share_receiver_window": 0.0}
    for column, value in others.items():
        table[column] = np.full(table["src"].size, value)
    for column in ("limited_by", "cause"):
        table[column] = np.full(table["src"].size, "send_buffer")
    written = make_replay_scenario(capture)
    assert written.tables["tcp"]["receiver_window"] == 12
    replayed = Scenario.from_dict(written.tables)
    assert rate(replayed) == pytest.approx(original["send_rate_pps"], rel=TOLERANCE)
