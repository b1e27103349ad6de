"""Latency of requests: its parts, one verdict per service, and failed connections first."""

import json
from pathlib import Path

import pytest
from segments import ACK, RST, SYN, Connection, Written
from tcpcast.captures import Capture, trace
from tcpcast.cli import main
from tcpcast.report.text import print_parts
from tcpcast.report.trace import capture_parts

TAPS = {"client": (0.0, 30.0), "middle": (10.0, 20.0), "server": (30.0, 0.0)}
RTT_MS = 30
SERVER_MS = 5


def service(
    away: tuple[float, float], *, connections: int = 4, requests: int = 25, lossy: float = 0
) -> Written:
    """Return connections with requests; a ``lossy`` share of responses lose their last segment."""
    written = Written()
    for number in range(connections):
        connection = Connection(written, 40_000 + number, away)
        now = connection.open(100.0 * number)
        for index in range(requests):
            now += 50
            done = connection.request(now, server_ms=SERVER_MS)
            if index >= requests * (1 - lossy):
                # The last segment is retransmitted 230 ms later; its ack ends the request.
                _, frame = written.frames.pop()
                retransmitted_at = done - away[0] + 230
                connection.send(retransmitted_at, 1, size=100, at=connection.numbers[1] - 100)
                written.frames.append((retransmitted_at + away[0], frame))
                done = retransmitted_at + away[0]
            now = done
    return written


def text(capture: Capture, capsys: pytest.CaptureFixture[str]) -> str:
    print_parts(capture_parts(capture))
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("tap", TAPS)
def test_client_latency_is_equal_at_each_tap(tap: str) -> None:
    capture = trace(service(TAPS[tap]).to_bytes())
    (row,) = (dict(zip(capture.services, row, strict=True)) for row in
              zip(*capture.services.values(), strict=True))  # fmt: skip
    assert (row["server"], row["connections"], row["requests"]) == ("10.0.0.2:80", 4, 100)
    assert row["tap"] == tap
    for name in ("first_byte_p50_s", "last_byte_p50_s", "last_byte_p99_s", "mean_s"):
        assert 1e3 * row[name] == pytest.approx(RTT_MS + SERVER_MS, abs=0.01)
    assert 1e3 * row["server_s"] == pytest.approx(SERVER_MS, abs=0.01)
    assert 1e3 * row["network_s"] == pytest.approx(RTT_MS, abs=0.01)
    assert (row["retransmission_s"], row["held_s"]) == (0, 0)
    assert row["cause"] == "network"


def test_latency_parts_add_up_to_the_total() -> None:
    table = trace(service(TAPS["server"], lossy=0.2).to_bytes()).requests
    parts = ("server_s", "network_s", "retransmission_s", "held_s")
    assert sum(table[part] for part in parts) == pytest.approx(table["last_byte_s"])


def test_retransmission_is_the_cause_if_losses_raise_the_median() -> None:
    # More than half of the responses lose a segment: the median rises.
    capture = trace(service(TAPS["server"], lossy=0.6).to_bytes())
    services = capture.services
    assert services["cause"].tolist() == ["retransmission"]
    assert services["with_retransmission"].tolist() == [60]
    assert 1e3 * services["without_retransmission_p50_s"][0] == pytest.approx(35, abs=0.01)
    advice = set(capture.advice().tolist())
    (sentence,) = advice
    assert sentence.startswith(
        "Limited by retransmission of lost packets (60 % of the requests); without it, the mean "
        "would be 35.0 ms instead of 173 ms. Take a second capture at the other end"
    )


def test_slowest_requests_can_have_a_different_cause() -> None:
    services = trace(service(TAPS["server"], requests=60, lossy=0.05).to_bytes()).services
    assert services["cause"].tolist() == ["network"]
    assert services["slowest_cause"].tolist() == ["retransmission"]


def test_service_has_one_verdict_for_all_connections(capsys: pytest.CaptureFixture[str]) -> None:
    capture = trace(service(TAPS["client"]).to_bytes())
    assert capture.connections["service"].tolist() == [0] * 8
    assert len(set(capture.advice().tolist())) == 1
    output = text(capture, capsys)
    assert output.count("Limited by ") == 1
    assert "Mean latency 35.0 ms: server 5.00 ms (14 %), network 30.0 ms (86 %)" in output


def test_tables_of_requests_are_in_json_and_html(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "service.pcap"
    file.write_bytes(service(TAPS["client"]).to_bytes())
    assert main(["trace", str(file), "--table", "requests", "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)["captures"]
    assert len(report["requests"]) == 100
    assert main(["trace", str(file), "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)["captures"]
    assert [row["requests"] for row in report["services"]] == [100]
    assert main(["trace", str(file), "--connection", "2", "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)["captures"]
    assert [row["requests"] for row in report["services"]] == [25]
    page = tmp_path / "report.html"
    assert main(["trace", str(file), "--out", str(page)]) == 0
    assert "service 10.0.0.2:80" in page.read_text(encoding="utf-8")


def failed_connections() -> Written:
    written = Written()
    for number in range(3):
        syn = Connection(written, 50_000 + number, server_port=81)
        for time_ms in (0, 1000, 3000):
            syn.send(time_ms, 0, SYN, at=1000)
    refused = Connection(written, 50_010, server_port=82)
    refused.send(0, 0, SYN)
    refused.send(30, 1, RST | ACK)
    reset = Connection(written, 50_020, server_port=83)
    now = reset.open(0)
    now = reset.request(now + 10, server_ms=5)
    reset.send(now + 90_000, 0, size=200)
    reset.send(now + 90_030, 1, RST)
    return written


def test_failed_connections_are_reported_first(capsys: pytest.CaptureFixture[str]) -> None:
    capture = trace(failed_connections().to_bytes())
    output = text(capture, capsys)
    assert output.startswith(
        "5 of 5 connections failed (3 connections to 10.0.0.2:81, first from 10.0.0.1:50000): 9 "
        "SYNs in 3.00 s got no response; check the address, the port and the firewall. "
        "<bytes>: 21 TCP segments in 5 connections (4 without data) "
        "! 5 of 5 connections failed: 3 unanswered, 1 refused, 1 reset. "
        "3 connections to 10.0.0.2:81, first from 10.0.0.1:50000: 9 SYNs in 3.00 s got no "
        "response."
    )
    assert "the server responded to the SYN with a RST after 30.0 ms." in output
    assert (
        "reset by the server while a request had no response yet, after 90.0 s of inactivity "
        "before the request. The server" in output
    )
    table = capture.failed
    assert table["tries"].tolist() == [3, 3, 3, 1, 0]
    assert table["by"].tolist() == ["server"] * 5
