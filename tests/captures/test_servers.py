"""Captures of real servers: the verdict names the true cause, and no number contradicts it.

The captures are outside the project, in ``shared/captures/offload`` next to it; without them the
tests are skipped.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from tcpcast.captures import Capture, trace
from tcpcast.captures.failed import explained
from verdicts import Verdict, heaviest, verdicts

FOLDERS = [parent / "shared/captures/offload" for parent in Path(__file__).resolve().parents]
FOLDER = next((folder for folder in FOLDERS if folder.is_dir()), None)

pytestmark = pytest.mark.skipif(FOLDER is None, reason="no captures next to the project")

UNKNOWN_AT_RECEIVER = {"pace", "sndbuf"}
"""Causes that a receiver does not see: the sender does not send for its own reasons."""


@pytest.fixture(scope="module")
def found() -> list[Verdict]:
    assert FOLDER is not None
    return verdicts(FOLDER)


def read(name: str) -> Capture:
    assert FOLDER is not None
    return trace(FOLDER / f"{name}.pcap.gz")


@pytest.mark.parametrize("tap", ["snd", "mid"])
def test_at_the_sender_and_in_the_middle_every_cause_is_named(
    found: list[Verdict], tap: str
) -> None:
    wrong = [each for each in found if each.tap == tap and not each.right]
    assert not wrong


def test_a_receiver_shows_the_cause_or_says_that_it_cannot(found: list[Verdict]) -> None:
    for each in found:
        if each.tap == "rcv" and each.scenario not in UNKNOWN_AT_RECEIVER:
            assert each.right, each
        elif each.tap == "rcv":
            assert each.found == "unknown", each
            assert "Capture at the sender" in each.sentence


def test_every_sentence_begins_with_a_limit(found: list[Verdict]) -> None:
    assert len(found) == 39
    assert all(each.sentence.startswith("Limited by: ") for each in found)


@pytest.mark.parametrize("tap", ["snd", "mid", "rcv"])
def test_four_flows_share_the_rate_of_their_link(tap: str) -> None:
    table = read(f"four-{tap}").connections
    assert table["cause"].tolist() == ["link"] * 4
    assert table["sharing_flows"].tolist() == [4] * 4
    # The link carries 10 Mbit/s with headers.
    assert np.all(np.abs(table["sharing_bps"] - 9.6e6) < 0.2e6)


@pytest.mark.parametrize("name", ["app65", "kafka", "pace", "applim", "slowreader", "reorder"])
def test_a_window_that_was_not_the_limit_shows_no_congestion_control(name: str) -> None:
    for tap in ("snd", "mid", "rcv"):
        capture = read(f"{name}-{tap}")
        at = heaviest(capture)
        table = capture.connections
        assert table["looks_like"][at] == "unknown"
        if name != "slowreader":
            assert np.isnan(table["bottleneck_rate_bps"][at])


@pytest.mark.parametrize("name", ["app65-snd", "pace-snd", "kafka-rcv"])
def test_time_of_an_idle_sender_is_the_application_s(name: str) -> None:
    capture = read(name)
    at = heaviest(capture)
    table = capture.connections
    assert table["limited_by"][at] == "application"
    # The kernel counted no time in which the send buffer or the receive window was full.
    assert table["share_send_buffer"][at] < 0.1
    assert table["share_receiver_window"][at] < 0.1


@pytest.mark.parametrize("tap", ["snd", "mid"])
def test_no_link_is_slower_than_what_it_carried(tap: str) -> None:
    for name in ("policer", "bloat", "burst", "four", "sndbuf", "http", "pg"):
        table = read(f"{name}-{tap}").connections
        seen = np.isfinite(table["bottleneck_rate_bps"])
        assert np.all(table["bottleneck_rate_bps"][seen] >= 0.95 * table["goodput_bps"][seen])


def test_a_forwarding_host_is_read_on_one_interface() -> None:
    capture = read("any-forwarding-host")
    at = heaviest(capture)
    table = capture.connections
    # The kernel's five were read before the sixth, 80 ms before the end.
    assert table["retransmissions"][at] == 6
    assert table["goodput_bps"][at] == pytest.approx(6.0e6, rel=0.02)
    assert any("another interface (2, 51)" in text for text in capture.warnings)


def test_a_syn_without_an_answer_is_reported() -> None:
    capture = read("synretry-client")
    assert capture.rest["unanswered"] == 1
    (line,) = explained(capture.failed)
    assert "10.77.2.1:59564 > 10.77.1.99:80: 4 SYNs over 3.05 s without a response" in line


def test_keepalives_are_answered() -> None:
    rest = read("keepalive-client").rest
    assert (rest["keep_alives"], rest["keep_alives_unanswered"]) == (8, 0)


@pytest.mark.parametrize(("tap", "first_byte_ms"), [("snd", 34.2), ("mid", 34.2), ("rcv", 35.4)])
def test_a_service_has_one_latency_at_each_tap(tap: str, first_byte_ms: float) -> None:
    """At the server's tap, the shortest round trip to the client is added."""
    services = read(f"pg-{tap}").services
    assert services["requests"].tolist() == [126]
    assert 1e3 * services["first_byte_p50_s"][0] == pytest.approx(first_byte_ms, abs=0.1)
    assert 1e3 * services["last_byte_p50_s"][0] == pytest.approx(38.6, abs=0.5)
    assert 1e3 * services["rtt_s"][0] == pytest.approx(31, abs=0.1)
    assert services["cause"].tolist() == ["server"]


def test_the_mean_rtt_at_a_receiver_has_the_queue() -> None:
    sender, receiver = (read(f"bloat-{tap}") for tap in ("snd", "rcv"))
    table = receiver.connections
    at = heaviest(receiver)
    true = sender.connections["rtt_mean_s"][heaviest(sender)]
    assert table["rtt_mean_s"][at] == pytest.approx(true, rel=0.05)
    assert not table["rtt_lower_bound"][at]


def test_shares_of_windows_are_the_kernel_s() -> None:
    assert FOLDER is not None
    with (FOLDER / "truth.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["kernel_busy_s"]]
    for row in rows:
        capture = read(f"{row['scenario']}-snd")
        at, busy = heaviest(capture), float(row["kernel_busy_s"])
        for kernel, state in (("rwnd", "receiver_window"), ("sndbuf", "send_buffer")):
            share = capture.connections[f"share_{state}"][at]
            counted = float(row[f"kernel_{kernel}_limited_s"]) / busy
            assert share == pytest.approx(counted, abs=0.1), (row["scenario"], state)


def test_acknowledgements_alone_show_the_bytes() -> None:
    capture = read("one-direction-acks")
    assert (capture.rest["uncaptured"], capture.rest["uncaptured_bytes"]) == (1, 2_424_833)
    assert any("2,424,833 bytes were acknowledged" in text for text in capture.warnings)


def test_without_acknowledgements_no_limit_is_named() -> None:
    capture = read("one-direction-data")
    assert capture.connections["cause"].tolist() == ["unknown"]
    assert np.isnan(capture.connections["initial_window_pkts"]).all()
    (said,) = capture.advice()
    assert "Its acks are missing from the capture; 23 of 1,698 packets" in said
    assert read("one-direction-acks").rest["unanswered"] == 0
