"""Captures of real servers: the verdict names the true cause and agrees with the numbers.

The captures are outside the project, in ``shared/captures/offload`` next to it; without them the
tests are skipped.
"""

import csv
from pathlib import Path

import numpy as np
import pytest
from tcpcast.captures import Capture, trace
from tcpcast.captures.failed_connections import failure_sentences
from verdicts import Verdict, heaviest, verdicts

FOLDERS = [parent / "shared/captures/offload" for parent in Path(__file__).resolve().parents]
FOLDER = next((folder for folder in FOLDERS if folder.is_dir()), None)

pytestmark = pytest.mark.skipif(FOLDER is None, reason="no captures next to the project")

UNKNOWN_AT_RECEIVER = {"pace", "sndbuf"}
"""Causes that a tap at the receiver cannot identify because they are inside the sender."""


@pytest.fixture(scope="module")
def all_verdicts() -> list[Verdict]:
    assert FOLDER is not None
    return verdicts(FOLDER)


def read(name: str) -> Capture:
    assert FOLDER is not None
    return trace(FOLDER / f"{name}.pcap.gz")


@pytest.mark.parametrize("tap", ["snd", "mid"])
def test_sender_and_middle_taps_identify_every_cause(all_verdicts: list[Verdict], tap: str) -> None:
    wrong = [verdict for verdict in all_verdicts if verdict.tap == tap and not verdict.right]
    assert not wrong


def test_receiver_tap_identifies_the_cause_or_reports_unknown(all_verdicts: list[Verdict]) -> None:
    for verdict in all_verdicts:
        if verdict.tap == "rcv" and verdict.scenario not in UNKNOWN_AT_RECEIVER:
            assert verdict.right, verdict
        elif verdict.tap == "rcv":
            assert verdict.found == "unknown", verdict
            assert "Capture at the sender" in verdict.sentence


def test_advice_begins_with_the_limit(all_verdicts: list[Verdict]) -> None:
    assert len(all_verdicts) == 39
    assert all(
        verdict.sentence.startswith(("Limited by ", "Limit unknown.")) for verdict in all_verdicts
    )


@pytest.mark.parametrize("tap", ["snd", "mid", "rcv"])
def test_four_flows_share_the_link_rate(tap: str) -> None:
    table = read(f"four-{tap}").connections
    assert table["cause"].tolist() == ["link"] * 4
    assert table["sharing_flows"].tolist() == [4] * 4
    # The link carries 10 Mbit/s with headers.
    assert np.all(np.abs(table["sharing_bps"] - 9.6e6) < 0.2e6)


@pytest.mark.parametrize("name", ["app65", "kafka", "pace", "applim", "slowreader", "reorder"])
def test_congestion_control_is_unknown_if_window_is_not_the_limit(name: str) -> None:
    for tap in ("snd", "mid", "rcv"):
        capture = read(f"{name}-{tap}")
        row = heaviest(capture)
        table = capture.connections
        assert table["looks_like"][row] == "unknown"
        if name != "slowreader":
            assert np.isnan(table["bottleneck_rate_bps"][row])


@pytest.mark.parametrize("name", ["app65-snd", "pace-snd", "kafka-rcv"])
def test_idle_sender_time_is_limited_by_application(name: str) -> None:
    capture = read(name)
    row = heaviest(capture)
    table = capture.connections
    assert table["limited_by"][row] == "application"
    # The kernel counted no time in which the send buffer or the receive window was full.
    assert table["share_send_buffer"][row] < 0.1
    assert table["share_receiver_window"][row] < 0.1


@pytest.mark.parametrize("tap", ["snd", "mid"])
def test_link_rate_is_at_least_the_goodput(tap: str) -> None:
    for name in ("policer", "bloat", "burst", "four", "sndbuf", "http", "pg"):
        table = read(f"{name}-{tap}").connections
        known = np.isfinite(table["bottleneck_rate_bps"])
        assert np.all(table["bottleneck_rate_bps"][known] >= 0.95 * table["goodput_bps"][known])


def test_forwarding_host_is_analysed_on_one_interface() -> None:
    capture = read("any-forwarding-host")
    row = heaviest(capture)
    table = capture.connections
    # The kernel counted five: it was read before the sixth, 80 ms before the end.
    assert table["retransmissions"][row] == 6
    assert table["goodput_bps"][row] == pytest.approx(6.0e6, rel=0.02)
    assert any("another interface (2, 51)" in text for text in capture.warnings)


def test_unanswered_syn_is_reported() -> None:
    capture = read("synretry-client")
    assert capture.rest["unanswered"] == 1
    (line,) = failure_sentences(capture.failed)
    assert "10.77.2.1:59564 > 10.77.1.99:80: 4 SYNs in 3.05 s got no response" in line


def test_answered_keepalives_are_counted() -> None:
    rest = read("keepalive-client").rest
    assert (rest["keep_alives"], rest["keep_alives_unanswered"]) == (8, 0)


@pytest.mark.parametrize(("tap", "first_byte_ms"), [("snd", 34.2), ("mid", 34.2), ("rcv", 35.4)])
def test_service_latency_is_equal_at_each_tap(tap: str, first_byte_ms: float) -> None:
    """At the server's tap, the shortest round trip to the client is added."""
    services = read(f"pg-{tap}").services
    assert services["requests"].tolist() == [126]
    assert 1e3 * services["first_byte_p50_s"][0] == pytest.approx(first_byte_ms, abs=0.1)
    assert 1e3 * services["last_byte_p50_s"][0] == pytest.approx(38.6, abs=0.5)
    assert 1e3 * services["rtt_s"][0] == pytest.approx(31, abs=0.1)
    assert services["cause"].tolist() == ["server"]


def test_receiver_tap_mean_rtt_includes_the_queue() -> None:
    sender, receiver = (read(f"bloat-{tap}") for tap in ("snd", "rcv"))
    table = receiver.connections
    row = heaviest(receiver)
    true = sender.connections["rtt_mean_s"][heaviest(sender)]
    assert table["rtt_mean_s"][row] == pytest.approx(true, rel=0.05)
    assert not table["rtt_lower_bound"][row]


def test_window_limited_shares_equal_kernel_counters() -> None:
    assert FOLDER is not None
    with (FOLDER / "truth.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["kernel_busy_s"]]
    for row in rows:
        capture = read(f"{row['scenario']}-snd")
        index, busy = heaviest(capture), float(row["kernel_busy_s"])
        for kernel, state in (("rwnd", "receiver_window"), ("sndbuf", "send_buffer")):
            share = capture.connections[f"share_{state}"][index]
            counted = float(row[f"kernel_{kernel}_limited_s"]) / busy
            assert share == pytest.approx(counted, abs=0.1), (row["scenario"], state)


def test_acks_without_data_give_the_byte_count() -> None:
    capture = read("one-direction-acks")
    assert (capture.rest["uncaptured"], capture.rest["uncaptured_bytes"]) == (1, 2_424_833)
    assert any("2,424,833 bytes were acknowledged" in text for text in capture.warnings)


def test_missing_acks_give_no_limit() -> None:
    capture = read("one-direction-data")
    assert capture.connections["cause"].tolist() == ["unknown"]
    assert np.isnan(capture.connections["initial_window_pkts"]).all()
    (text,) = capture.advice()
    assert "The acks are missing from the capture, and 23 of 1,698 packets" in text
    assert read("one-direction-acks").rest["unanswered"] == 0
