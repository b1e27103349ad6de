"""Latency of requests: its parts, one verdict per service, and failed connections first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from segments import ACK, RST, SYN, Connection, Written
from tcpcast.captures import Capture, trace
from tcpcast.cli import main
from tcpcast.report.text import print_parts
from tcpcast.report.trace import capture_parts

if TYPE_CHECKING:
    from pathlib import Path

TAPS = {"client": (0.0, 30.0), "middle": (10.0, 20.0), "server": (30.0, 0.0)}
RTT_MS = 30
SERVER_MS = 5


def service(
    away: tuple[float, float], *, connections: int = 4, requests: int = 25, lossy: float = 0
) -> Written:
    """Return connections with requests; a ``lossy`` share of responses lose their last segment."""
    written = Written()
    for number in range(connections):
        talk = Connection(written, 40_000 + number, away)
        now = talk.open(100.0 * number)
        for at in range(requests):
            now += 50
            done = talk.request(now, server_ms=SERVER_MS)
            if at >= requests * (1 - lossy):
                # The last segment comes again 250 ms later; its ack is the one that counts.
                _, frame = written.frames.pop()
                again = done - away[0] + 250
                talk.send(again, 1, size=100, at=talk.numbers[1] - 100)
                written.frames.append((again + away[0], frame))
                done = again + away[0]
            now = done
    return written


def text(capture: Capture, capsys: pytest.CaptureFixture[str]) -> str:
    print_parts(capture_parts(capture))
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("tap", TAPS)
def test_the_latency_at_the_client_is_the_same_at_each_tap(tap: str) -> None:
    capture = trace(service(TAPS[tap]).to_bytes())
    (row,) = (dict(zip(capture.services, each, strict=True)) for each in
              zip(*capture.services.values(), strict=True))  # fmt: skip
    assert (row["server"], row["connections"], row["requests"]) == ("10.0.0.2:80", 4, 100)
    assert row["tap"] == tap
    for name in ("first_byte_p50_s", "last_byte_p50_s", "last_byte_p99_s", "mean_s"):
        assert 1e3 * row[name] == pytest.approx(RTT_MS + SERVER_MS, abs=0.01)
    assert 1e3 * row["server_s"] == pytest.approx(SERVER_MS, abs=0.01)
    assert 1e3 * row["network_s"] == pytest.approx(RTT_MS, abs=0.01)
    assert (row["retransmission_s"], row["held_s"]) == (0, 0)
    assert row["cause"] == "network"


def test_the_parts_are_the_whole() -> None:
    table = trace(service(TAPS["server"], lossy=0.2).to_bytes()).requests
    parts = ("server_s", "network_s", "retransmission_s", "held_s")
    assert sum(table[part] for part in parts) == pytest.approx(table["last_byte_s"])


def test_losses_are_the_cause_of_what_they_add() -> None:
    # More than half of the responses lose a segment: the median rises.
    capture = trace(service(TAPS["server"], lossy=0.6).to_bytes())
    services = capture.services
    assert services["cause"].tolist() == ["retransmission"]
    assert services["with_retransmission"].tolist() == [60]
    assert 1e3 * services["without_retransmission_p50_s"][0] == pytest.approx(35, abs=0.01)
    said = set(capture.advice().tolist())
    (sentence,) = said
    assert sentence.startswith("Limited by: retransmission of lost packets: it delays 60 %")
    assert "would be 35.0 ms instead of 285 ms" in sentence


def test_the_slowest_requests_may_have_another_cause() -> None:
    services = trace(service(TAPS["server"], lossy=0.08).to_bytes()).services
    assert services["cause"].tolist() == ["network"]
    assert services["slowest_cause"].tolist() == ["retransmission"]


def test_one_verdict_for_all_connections_of_a_service(capsys: pytest.CaptureFixture[str]) -> None:
    capture = trace(service(TAPS["client"]).to_bytes())
    assert capture.connections["service"].tolist() == [0] * 8
    assert len(set(capture.advice().tolist())) == 1
    said = text(capture, capsys)
    assert said.count("Limited by:") == 1
    assert "Mean latency 35.0 ms: server 5.00 ms (14 %), network 30.0 ms (86 %)" in said


def test_overlapping_requests_are_counted_and_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    written = service(TAPS["client"], connections=1, requests=5)
    talk = Connection(written, 41_000)
    now = talk.open(0)
    for at in range(6):
        # Each response answers the request before the last one, as its acknowledgement says.
        talk.send(now + 30 * at, 0, size=100)
        last = talk.numbers[0]
        talk.numbers[0] = last - 100
        talk.send(now + 30 * at + 15, 1, size=300)
        talk.numbers[0] = last
    capture = trace(written.to_bytes())
    assert capture.services["not_separable"].tolist() == [6]
    assert np.isclose(1e3 * capture.services["last_byte_p50_s"][0], 35, atol=0.01)
    assert "overlap with others on the same connection (pipelining or several streams)" in text(
        capture, capsys
    )


def test_tables_of_requests_go_to_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "service.pcap"
    file.write_bytes(service(TAPS["client"]).to_bytes())
    assert main(["trace", str(file), "--table", "requests", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["captures"]
    assert len(found["requests"]) == 100
    assert main(["trace", str(file), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["captures"]
    assert [row["requests"] for row in found["services"]] == [100]
    assert main(["trace", str(file), "--connection", "2", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["captures"]
    assert [row["requests"] for row in found["services"]] == [25]
    page = tmp_path / "report.html"
    assert main(["trace", str(file), "--html", str(page)]) == 0
    assert "service 10.0.0.2:80" in page.read_text(encoding="utf-8")


def failing() -> Written:
    written = Written()
    for number in range(3):
        syn = Connection(written, 50_000 + number, server_port=81)
        for at in (0, 1000, 3000):
            syn.send(at, 0, SYN, at=1000)
    refused = Connection(written, 50_010, server_port=82)
    refused.send(0, 0, SYN)
    refused.send(30, 1, RST | ACK)
    reset = Connection(written, 50_020, server_port=83)
    now = reset.open(0)
    now = reset.request(now + 10, server_ms=5)
    reset.send(now + 90_000, 0, size=200)
    reset.send(now + 90_030, 1, RST)
    return written


def test_failed_connections_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    capture = trace(failing().to_bytes())
    said = text(capture, capsys)
    assert said.startswith(
        "5 of 5 connections failed, 3 of them because 10.0.0.2:81 did not respond to the SYN; "
        "check the address, the port and the firewall. "
        "<bytes>: 21 TCP segments in 5 connections, 4 of them without data "
        "! 5 of 5 connections failed: 3 unanswered, 1 refused, 1 reset. "
        "3 connections to 10.0.0.2:81, first from 10.0.0.1:50000: 9 SYNs over 3.00 s without a "
        "response."
    )
    assert "the server responded to the SYN with a RST after 30.0 ms." in said
    assert (
        "reset by the server while a request had no response yet, which was sent after 90.0 s "
        "of inactivity: an idle timeout" in said
    )
    table = capture.failed
    assert table["tries"].tolist() == [3, 3, 3, 1, 0]
    assert table["by"].tolist() == ["server"] * 5


def test_a_rst_after_all_data_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    written = Written()
    talk = Connection(written, 50_000)
    done = talk.request(talk.open(0) + 10, server_ms=5)
    talk.send(done + 100, 0, RST)
    capture = trace(written.to_bytes())
    assert (capture.rest["reset"], capture.rest["reset_without_loss"]) == (1, 1)
    said = text(capture, capsys)
    assert "! 1 of 1 connection closed by a RST without loss of data." in said
    assert "failed" not in said


def test_no_failure_is_reported_without_one(capsys: pytest.CaptureFixture[str]) -> None:
    capture = trace(service(TAPS["client"]).to_bytes())
    assert capture.failed["connection"].size == 0
    assert "failed" not in text(capture, capsys)
