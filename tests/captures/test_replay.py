"""A loop that closes: simulated, captured, written as a scenario, simulated again."""

from __future__ import annotations

import math
import tomllib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tcpcast
from replays import FAST, OF_WHAT_IF, rate, simulated, what_if
from tcpcast.captures.link_estimate import growth_pkts
from tcpcast.captures.replay import replay
from tcpcast.scenario import Scenario

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast.captures import Capture, Table

BASE: dict[str, Any] = {
    "network": {"rtt": "60ms", "bottleneck": {"rate": "4mbit", "buffer": "20pkt", "loss": "2%"}},
    "traffic": {"kind": "bulk", "flows": 3},
    "tcp": {"stack": "rfc-newreno"},
    "run": {"duration": "200s", "warmup": "0s"},
}

SEEN: dict[str, dict[str, Any]] = {
    "random loss": {},
    "only the queue": {"network.bottleneck.loss": "0%"},
    "one flow": {"traffic.flows": 1, "network.bottleneck.loss": "0.5%"},
}
"""Paths whose link is full at times."""

UNSEEN: dict[str, dict[str, Any]] = {
    "loss": {**FAST, "traffic.flows": 2},
    "delayed acks": {**FAST, "traffic.flows": 2, "tcp.delayed_acks": True},
    "much loss": {**FAST, "network.bottleneck.loss": "6%"},
    "patient": {**FAST, "tcp.stack": "rfc-newreno-patient", "network.bottleneck.loss": "5%"},
    "window": {**FAST, "network.bottleneck.loss": "0.5%", "tcp.receiver_window": 12},
    "window alone": {**FAST, "network.bottleneck.loss": "0%", "tcp.receiver_window": 12},
}
"""Paths whose link is never full."""

TOLERANCE = 0.10
"""Of the rate and of the loss indications, the original's against the replay's."""


def captured(folder: Path, changes: dict[str, Any]) -> tuple[Scenario, tcpcast.Answer, Capture]:
    return simulated(BASE, folder, changes)


def tell_link(capture: Capture, scenario: Scenario) -> None:
    """Put in what the reader finds where the path is full, if it did not."""
    if np.isfinite(capture.connections.get("bottleneck_rate_bps", np.nan)).any():
        return
    network, flows = scenario.network, capture.connections["src"].size
    share = network.bottleneck.rate_bps * network.payload_bytes / network.packet_bytes / flows
    capture.connections["bottleneck_rate_bps"] = np.full(flows, share)


def forget_link(capture: Capture) -> None:
    flows = capture.connections["src"].size
    capture.connections["bottleneck_rate_bps"] = np.full(flows, np.nan)


@pytest.mark.parametrize("path", SEEN)
def test_the_replay_sends_as_much(path: str, tmp_path: Path) -> None:
    scenario, original, capture = captured(tmp_path, SEEN[path])
    tell_link(capture, scenario)
    again = Scenario.from_dict(replay(capture).tables)
    answer = tcpcast.run(again, ["packet"])["packet"]
    for metric in ("send_rate_pps", "loss_indication_ratio", "rtt_mean_s"):
        assert answer[metric] == pytest.approx(original[metric], rel=TOLERANCE), metric
    assert again.rtt_s == pytest.approx(scenario.rtt_s, rel=0.02)
    assert rate(what_if(again)) == pytest.approx(rate(what_if(scenario)), rel=OF_WHAT_IF)


@pytest.mark.parametrize("path", UNSEEN)
def test_a_link_that_is_never_full_does_not_matter(path: str, tmp_path: Path) -> None:
    scenario, original, capture = captured(tmp_path, UNSEEN[path])
    forget_link(capture)
    written = replay(capture)
    assert "10 times the measured rate" in written.text
    again = Scenario.from_dict(written.tables)
    assert rate(again) == pytest.approx(original["send_rate_pps"], rel=TOLERANCE)
    assert rate(what_if(again)) == pytest.approx(rate(what_if(scenario)), rel=OF_WHAT_IF)


def test_what_nothing_explains_was_a_full_link(tmp_path: Path) -> None:
    """No loss, no window: by elimination the rate reached is the link's."""
    scenario, original, capture = captured(
        tmp_path, {"traffic.flows": 1, "network.bottleneck.loss": "0%"}
    )
    forget_link(capture)
    capture.connections["td"] *= 0
    capture.connections["to"] *= 0
    written = replay(capture)
    assert "which neither loss nor the window explains" in written.text
    assert written.tables["network"]["bottleneck"]["loss"] == "0%"
    again = Scenario.from_dict(written.tables)
    assert rate(again) == pytest.approx(original["send_rate_pps"], rel=TOLERANCE)
    assert again.network.bottleneck.rate_bps == pytest.approx(
        scenario.network.bottleneck.rate_bps, rel=TOLERANCE
    )


def test_the_text_is_the_scenario_with_a_word_on_each_line(tmp_path: Path) -> None:
    _, _, capture = captured(tmp_path, {"traffic.flows": 1})
    written = replay(capture, "what if")
    assert tomllib.loads(written.text) == written.tables
    assert written.tables["name"] == "what if"
    assert max(map(len, written.text.splitlines())) <= 100
    for line in written.text.splitlines():
        if "=" in line and not line.startswith(("#", "name", "seed")):
            assert "#" in line, line


@pytest.mark.parametrize("growth", [0.5, 1.0])
@pytest.mark.parametrize("together", [1, 3])
def test_the_growth_of_windows_is_seen(growth: float, together: int) -> None:
    """Each twenty rounds a loss halves the flight; a row may be several rounds."""
    at = np.arange(120)[::together]
    rounds: Table = {
        "direction": np.zeros(at.size, dtype=np.int64),
        "time": np.datetime64(0, "ns") + (60 * at).astype("timedelta64[ms]"),
        "rtt_s": np.full(at.size, 0.06),
        "flight_bytes": (1000 * (10 + growth * (at % 20))).astype(np.int64),
        "retransmissions": (at % 20 < together).astype(np.int64),
        "limited_by": np.full(at.size, "congestion_window"),
    }
    payload = np.array([1000])
    assert growth_pkts(rounds, payload) == pytest.approx(growth)
    assert math.isnan(growth_pkts({name: part[:9] for name, part in rounds.items()}, payload))
    assert math.isnan(growth_pkts(None, payload))
    held = rounds | {"limited_by": np.full(at.size, "application")}
    assert math.isnan(growth_pkts(held, payload))


@pytest.mark.parametrize(
    ("growth", "options", "delayed"),
    [(0.5, False, True), (1.0, False, False), (0.5, True, False), (math.nan, False, False)],
)
def test_delayed_acks_matter_where_windows_grow_by_acks(
    growth: float, options: bool, delayed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, capture = captured(tmp_path, {**FAST, "traffic.flows": 1, "tcp.delayed_acks": True})
    capture.connections["timestamps"] = np.array([options])
    monkeypatch.setattr("tcpcast.captures.capture_stats.growth_pkts", lambda *_: growth)
    assert replay(capture).tables["tcp"].get("delayed_acks", False) is delayed


def test_cubic_and_bbr_are_told_by_what_a_loss_leaves(tmp_path: Path) -> None:
    _, _, capture = captured(tmp_path, {"traffic.flows": 1})
    for left, word in ((0.5, None), (0.7, "CUBIC"), (0.95, "BBR")):
        capture.connections["window_reduction"] = np.array([left])
        said = [text for text in replay(capture).warnings if "reduces the window to" in text]
        assert bool(said) == (word is not None)
        assert word is None or word in said[0]


def test_a_short_transfer_is_replayed_as_transfers(tmp_path: Path) -> None:
    scenario, original, capture = captured(
        tmp_path,
        {
            "traffic": {"kind": "transfers", "size": "200pkt", "count": 1},
            "run": {"seed": 1},
            "network.bottleneck.loss": "0%",
            "network.bottleneck.buffer": "300pkt",
        },
    )
    forget_link(capture)
    capture.connections["syn_captured"] = np.array([True])
    capture.connections["end"] = np.array(["closed"])
    capture.connections["initial_window_pkts"] = np.array([2.0])
    again = Scenario.from_dict(replay(capture).tables)
    assert again.isolated_transfers is not None
    assert again.isolated_transfers.sizes == [200]
    answer = tcpcast.run(again, ["packet"])["packet"]
    assert answer["completion_time_s"] == pytest.approx(original["completion_time_s"], rel=0.25)
    tell_link(capture, scenario)
    told = tcpcast.run(Scenario.from_dict(replay(capture).tables), ["packet"])["packet"]
    assert told["completion_time_s"] == pytest.approx(original["completion_time_s"], rel=0.02)


def test_there_is_no_scenario_of_a_moment(tmp_path: Path) -> None:
    _, _, capture = captured(tmp_path, {"traffic.flows": 1, "run.duration": "1s"})
    capture.connections["duration_s"] = np.array([np.nan])
    with pytest.raises(tcpcast.CaptureError, match="data have the same time"):
        replay(capture)


def asked(capture: Capture) -> dict[str, Any]:
    made: dict[str, Any] = tomllib.loads(replay(capture, "again").text)
    return made


def test_losses_in_bursts_are_as_many_indications_singly(tmp_path: Path) -> None:
    _, _, capture = captured(tmp_path, UNSEEN["loss"])
    table = capture.connections
    singly = float(asked(capture)["network"]["bottleneck"]["loss"].rstrip("%"))
    assert singly == pytest.approx(2.0, rel=0.1)
    table["retransmissions"] *= 5
    in_bursts = replay(capture, "again")
    loss = tomllib.loads(in_bursts.text)["network"]["bottleneck"]["loss"]
    assert float(loss.rstrip("%")) == pytest.approx(2.0, rel=0.2)
    assert "correlated losses" in in_bursts.text


def test_a_rate_that_was_reached_stays_and_the_rtt_fits_it(tmp_path: Path) -> None:
    _, _, capture = captured(tmp_path, {"network.bottleneck.loss": "0%", "traffic.flows": 1})
    forget_link(capture)
    table = capture.connections
    for name in ("td", "to", "retransmissions"):
        table[name] = table[name] * 0
    table["w_max_pkts"][:] = np.nan
    table["flight_mean_bytes"] = table["flight_mean_bytes"] * 0.1
    table["rtt_min_s"] = table["rtt_min_s"] * 0 + 1e-5
    made = Scenario.from_dict(asked(capture))
    reached = float(table["throughput_bps"][0]) * 1500 / 1460
    assert made.network.bottleneck.rate_bps == pytest.approx(reached, rel=0.01)


def test_outages_and_closed_windows_are_told_not_replayed(tmp_path: Path) -> None:
    _, _, capture = captured(tmp_path, UNSEEN["loss"])
    table = capture.connections
    assert not any("does not include" in said for said in replay(capture, "again").warnings)
    table["share_timeout"][:], table["max_backoff"][:] = 0.36, 6
    table["share_receiver_window"][:], table["zero_windows"][:] = 0.5, 9
    said = " ".join(replay(capture, "again").warnings)
    assert "up to 6 consecutive timeouts; the scenario does not include this outage" in said
    assert "limited by the receiver window 50 % of the time, and it closed temporarily" in said
