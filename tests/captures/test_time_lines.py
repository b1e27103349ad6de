"""Time lines of requests: parts add up to the truth, and every output has the same verdict."""

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from segments import ACK, FIN, RST, Connection, Written
from tcpcast.captures import Capture, trace
from tcpcast.captures.interruptions import interruption_sentences
from tcpcast.captures.service_advice import CAUSE_PHRASES, latency_sentence
from tcpcast.captures.table import select_rows
from tcpcast.report.full_report import captures_document
from tcpcast.report.html import html_page
from tcpcast.report.markdown import markdown_page
from tcpcast.report.text import plain_text
from tcpcast.report.trace import capture_parts, json_lines

FOLDER = Path(__file__).parent / "services"
PARTS = (
    "client_idle_s",
    "server_s",
    "network_s",
    "retransmission_s",
    "held_s",
    "window_s",
    "interrupted_s",
)
TAPS = ((0.0, 30.0), (10.0, 20.0), (29.9, 0.1))
RTT_MS = 30.0
RTO_MS = 250.0
SIZE = 200
DEAD = 6
"""Lost copies that are an interruption: longer than four RTOs at an RTT of 930 ms."""
TOLERANCE_MS = 0.01
"""Times of the written captures have microseconds."""


class Exchange(NamedTuple):
    """What happened to a request; times in ms.

    ``pause_ms`` of the client within the request; ``copies`` of the request that were lost;
    ``silent_ms``: pause of the server within the response.
    """

    think_ms: int
    pause_ms: int
    copies: int
    server_ms: int
    segments: int
    silent_ms: int


EXCHANGES = st.builds(
    Exchange,
    think_ms=st.integers(0, 5000),
    pause_ms=st.sampled_from([0, 0, 300, 20_000]),
    copies=st.sampled_from([0, 0, 0, 1, 2, DEAD]),
    server_ms=st.integers(1, 900),
    segments=st.integers(1, 8),
    silent_ms=st.sampled_from([0, 0, 400, 3000]),
)
ENDINGS = st.sampled_from(["", "client_gave_up", "reset_by_server", "server_closed", "path_dead"])


def lost_ms(copies: int) -> float:
    """Return the time from the first transmission to the last of ``copies`` with doubling gaps."""
    return RTO_MS * ((1 << copies) - 1)


def write_request(connection: Connection, ms: float, exchange: Exchange) -> float:
    """Write a request with its pause and copies, and return the time of its last transmission."""
    connection.send(ms, 0, size=SIZE)
    if exchange.pause_ms:
        connection.send(ms + connection.away[1], 1)
        ms += exchange.pause_ms
        connection.send(ms, 0, size=SIZE)
    number = connection.numbers[0] - SIZE
    for copy in range(1, exchange.copies + 1):
        connection.send(ms + lost_ms(copy), 0, size=SIZE, at=number)
    return ms + lost_ms(exchange.copies)


def written(exchanges: Sequence[Exchange], away: tuple[float, float], ending: str) -> Written:
    """Return a capture of one connection with these exchanges, and a request without a response."""
    capture = Written()
    connection = Connection(capture, 40_000, away)
    now = connection.open(0)
    for exchange in exchanges:
        sent = write_request(connection, now + exchange.think_ms, exchange)
        now = sent + away[1] + exchange.server_ms
        for _ in range(exchange.segments - 1):
            connection.send(now, 1, size=1460)
        connection.send(now, 1, size=100)
        if exchange.silent_ms:
            connection.send(now + away[0], 0)
            now += exchange.silent_ms
            connection.send(now, 1, size=100)
        now += away[0]
        connection.send(now, 0)
    if ending:
        last = Exchange(700, 0, DEAD if ending == "path_dead" else 0, 0, 0, 0)
        sent = write_request(connection, now + last.think_ms, last)
        if ending != "path_dead":
            connection.send(sent + away[1], 1)
        end, flags = {
            "client_gave_up": (0, FIN | ACK),
            "reset_by_server": (1, RST),
            "server_closed": (1, FIN | ACK),
            "path_dead": (0, RST),
        }[ending]
        connection.send(sent + 2500, end, flags)
    return capture


@given(st.lists(EXCHANGES, min_size=1, max_size=6), st.sampled_from(TAPS), ENDINGS)
def test_parts_are_the_truth_and_add_up(
    exchanges: list[Exchange], away: tuple[float, float], ending: str
) -> None:
    capture = trace(written(exchanges, away, ending).to_bytes())
    table = capture.requests
    assert table["server"].size == len(exchanges) + bool(ending)
    assert [name for name in table["outcome"].tolist() if name != "answered"] == [ending][
        : bool(ending)
    ]
    total = np.rint((table["waited_s"] + table["client_idle_s"]) * 1e9)
    assert np.array_equal(np.rint(sum(table[part] for part in PARTS) * 1e9), total)
    assert all(np.all(table[part] >= 0) for part in PARTS)
    for row, exchange in enumerate(exchanges):
        found = {part: 1e3 * float(table[part][row]) for part in PARTS}
        expected = {
            "client_idle_s": exchange.think_ms + exchange.pause_ms,
            "server_s": exchange.server_ms + exchange.silent_ms,
            "network_s": RTT_MS,
            "held_s": 0,
            "window_s": 0,
        }
        lost = found.pop("retransmission_s") + found.pop("interrupted_s")
        silence = found["server_s"] + lost - lost_ms(exchange.copies)
        if exchange.server_ms + exchange.silent_ms >= 1000:
            # A server that is much slower than usual interrupts the request.
            found["server_s"], lost = silence, lost_ms(exchange.copies)
        assert lost == pytest.approx(lost_ms(exchange.copies), abs=TOLERANCE_MS)
        assert found == pytest.approx(expected, abs=TOLERANCE_MS)
        assert int(table["copies"][row]) in {0, exchange.copies}
    if ending:
        waited = 2500 + lost_ms(DEAD) * (ending == "path_dead")
        assert 1e3 * table["waited_s"][-1] == pytest.approx(waited, abs=TOLERANCE_MS)
    silences = sum(exchange.copies == DEAD for exchange in exchanges) + (ending == "path_dead")
    assert int((capture.interruptions["copies"] > 0).sum()) == silences


@given(st.lists(EXCHANGES, min_size=1, max_size=6), st.sampled_from(TAPS), ENDINGS)
def test_every_output_has_the_verdict_of_the_table(
    exchanges: list[Exchange], away: tuple[float, float], ending: str
) -> None:
    capture = trace(written(exchanges, away, ending).to_bytes())
    row = select_rows(capture.services, 0)
    separable = select_rows(capture.requests, capture.requests["separable"])
    for part in PARTS:
        name = part if part in row else f"mean_{part}"
        assert row[name] == pytest.approx(float(np.mean(separable[part])))
    assert sum(row[part] for part in PARTS[1:]) == pytest.approx(row["mean_s"])
    assert row["last_byte_p50_s"] <= row["last_byte_p95_s"] <= row["last_byte_p99_s"]
    sentence = latency_sentence(row)
    cause = str(row["cause"])
    if cause in {"network", "server", "retransmission"}:
        assert CAUSE_PHRASES[cause] in sentence
    if cause == "interrupted":
        assert "interruption" in sentence
    if cause == "no_response":
        assert "got no response" in sentence
    assert str(capture.advice()[0]).startswith(f"Limited by {CAUSE_PHRASES[cause]}")
    assert_one_verdict(capture)


def assert_one_verdict(capture: Capture) -> None:
    verdict = capture.verdict()
    document = captures_document([capture], "tcpcast report service.pcap")
    assert plain_text(capture_parts(capture), 10_000).startswith(verdict)
    assert (
        markdown_page(document, "mark").count(verdict.replace("<", "&lt;").replace(">", "\\>")) == 1
    )
    page = html_page(document, "mark")
    assert escape(verdict) in page
    found = json.loads("\n".join(json_lines([capture])))
    (row,) = found["captures"]
    assert found["verdict"] == row["verdict"] == verdict
    assert len(row["interruptions"]) == capture.interruptions["start_s"].size
    for line in interruption_sentences(capture.interruptions):
        assert escape(line[1:]) in page


REPORTED = {
    "client-waits-before-request": "The client waited 1.39 s before its request to "
    "198.51.100.20:80; server and network took 62.1 ms",
    "interruption-in-a-service": "An interruption of 8.70 s, in a request sent 10.6 s after the "
    "start (6 copies of one request), delays 1 of 60 requests to 198.51.100.20:80; the other 59 "
    "requests take 21.9 ms on average",
    "one-packet-is-not-slow-start": "1 request to 198.51.100.20:80 takes 80.4 ms; the main cause "
    "is the network (network 80.1 ms, one round trip)",
}


@pytest.mark.parametrize("name", REPORTED)
def test_reported_services_have_the_right_verdict(name: str) -> None:
    capture = trace(FOLDER / f"{name}.pcap.gz")
    assert capture.verdict().startswith(REPORTED[name])
    assert "slow start" not in capture.verdict()
    assert_one_verdict(capture)


def test_connections_that_are_silent_together_are_one_interruption() -> None:
    capture = Written()
    for port in range(40_000, 40_004):
        connection = Connection(capture, port)
        now = connection.request(connection.open(0), server_ms=5)
        sent = write_request(connection, now + 100 + port % 10, Exchange(0, 0, 5, 0, 0, 0))
        connection.send(sent + 35, 1, size=100)
    found = trace(capture.to_bytes())
    assert found.interruptions["connection"].tolist() == [0, 1, 2, 3]
    (sentence,) = interruption_sentences(found.interruptions)
    assert sentence.startswith("the path was silent for 7.75 s, from ")
    assert "3 other connections" in sentence


def test_interruption_of_a_bulk_transfer_is_listed() -> None:
    capture = Written()
    connection = Connection(capture, 40_000, (30.0, 0.0))
    now = connection.open(0)
    for _ in range(5):
        for _ in range(10):
            connection.send(now, 1, size=1460)
        connection.send(now + 30, 0)
        now += 30
    for _ in range(10):
        connection.send(now, 1, size=1460)
    first = connection.numbers[1] - 14_600
    for copy in range(1, 6):
        connection.send(now + lost_ms(copy), 1, size=1460, at=first)
    connection.send(now + lost_ms(5) + 30, 0)
    found = trace(capture.to_bytes()).interruptions
    assert (found["by"].tolist(), found["data_from"].tolist()) == (["path"], ["server"])
    assert found["copies"].tolist() == [5]
    assert 1e3 * found["duration_s"][0] == pytest.approx(lost_ms(5), abs=TOLERANCE_MS)


def test_unanswered_requests_of_a_service_are_counted_with_their_reason() -> None:
    capture = Written()
    for port in range(40_000, 40_012):
        connection = Connection(capture, port)
        now = connection.open(1000 * (port - 40_000))
        if port % 3:
            connection.request(now + 10, server_ms=5)
            continue
        connection.send(now + 10, 0, size=SIZE)
        connection.send(now + 40, 1)
        connection.send(now + 30_010, 0, FIN | ACK)
    found = trace(capture.to_bytes())
    row = select_rows(found.services, 0)
    assert (row["requests"], row["unanswered"], row["late"]) == (12, 4, 4)
    assert (row["cause"], row["late_outcome"]) == ("no_response", "client_gave_up")
    assert found.verdict().startswith(
        "4 of 12 requests to 10.0.0.2:80 got no response: the client closed the connection after "
        "30.0 s (median); the other 8 requests take 35.0 ms on average"
    )
    assert "4 requests have no response in the capture; the percentiles do not include them" in (
        plain_text(capture_parts(found), 10_000)
    )


def test_short_nagle_wait_is_not_the_cause_of_a_slow_server() -> None:
    capture = Written()
    connection = Connection(capture, 40_000, (0.0, 2.0))
    now = connection.open(0)
    for _ in range(5):
        now += 20
        connection.send(now, 0, size=SIZE)
        connection.send(now + 2, 1)
        connection.send(now + 2.1, 0, size=SIZE)
        now += 2.1 + 2 + 317
        connection.send(now, 1, size=500)
        connection.send(now, 0)
    found = trace(capture.to_bytes())
    assert found.requests["held_s"].min() > 0
    assert found.services["cause"].tolist() == ["server"]
    assert "server's processing time" in found.verdict()


def test_a_single_copy_may_have_been_answered() -> None:
    """The copy after 1.2 s gets a response at once, so the text does not say "no answer"."""
    capture = Written()
    connection = Connection(capture, 40_000, (0.0, 30.0))
    now = connection.request(connection.open(0) + 100, server_ms=5)
    connection.send(now, 0, size=SIZE)
    connection.send(now + 1200, 0, size=SIZE, at=connection.numbers[0] - SIZE)
    connection.send(now + 1235, 1, size=100)
    (sentence,) = interruption_sentences(trace(capture.to_bytes()).interruptions)
    assert sentence.endswith("the client sent 1 copy of its data")


def write_overlapping_request(connection: Connection, ms: float, *, lost_ms: float) -> float:
    """Write a request whose response loses a segment, and the client sends again before its end.

    The tap is at the server: the retransmission has not been acknowledged when new data arrive.
    """
    connection.send(ms, 0, size=SIZE)
    connection.send(ms + 5, 1, size=1460)
    connection.send(ms + 5, 1, size=1460)
    second = connection.numbers[1] - 1460
    connection.numbers[1] = second
    connection.send(ms + 5 + connection.away[0], 0)
    connection.send(ms + 5 + lost_ms, 1, size=1460, at=second)
    connection.send(ms + 10 + lost_ms, 0, size=SIZE)
    connection.numbers[1] = second + 1460
    connection.send(ms + 10 + lost_ms + connection.away[0], 0)
    connection.send(ms + 20 + lost_ms + connection.away[0], 1, size=100)
    connection.send(ms + 20 + lost_ms + 2 * connection.away[0], 0)
    return ms + 20 + lost_ms + 2 * connection.away[0]


@pytest.mark.parametrize(
    ("lost_ms", "overlapping", "cause"), [(800.0, True, "retransmission"), (40.0, False, "server")]
)
def test_requests_with_most_of_the_waiting_time_decide_the_verdict(
    lost_ms: float, overlapping: bool, cause: str
) -> None:
    """Losses make requests overlap, so the separable ones may have no retransmission."""
    capture = Written()
    connection = Connection(capture, 40_000, (30.0, 0.0))
    now = connection.open(0)
    for _ in range(6):
        now = connection.request(now + 20, server_ms=150)
        now = write_overlapping_request(connection, now + 20, lost_ms=lost_ms)
    found = trace(capture.to_bytes())
    table = found.requests
    left = ~table["separable"]
    assert left.sum() == 12
    share = table["waited_s"][left].sum() / table["waited_s"].sum()
    assert (share > 0.5) == overlapping
    row = select_rows(found.services, 0)
    covered = table if overlapping else select_rows(table, ~left)
    assert row["measured"] == covered["server"].size
    for part in (*PARTS[1:], "last_byte_s"):
        name = {"last_byte_s": "mean_s"}.get(part, part)
        assert row[name] == pytest.approx(float(np.mean(covered[part])))
    assert row["cause"] == cause
    verdict = found.verdict()
    assert ("(12 of them overlap with others)" in verdict) == overlapping
    assert ("without 12 requests that overlap or have no response" in verdict) != overlapping
    report = " ".join(plain_text(capture_parts(found), 10_000).split())
    assert ("most of the waiting time belongs to them" in report) == overlapping
    assert str(found.advice()[0]).startswith(f"Limited by {CAUSE_PHRASES[cause]}")
    assert_one_verdict(found)


@pytest.mark.parametrize(("server_ms", "cause"), [(800, "retransmission"), (1100, "server")])
def test_retransmissions_and_interruptions_by_losses_are_one_cause(
    server_ms: int, cause: str
) -> None:
    """Lost packets cost 8.25 s: 4.5 s of retransmissions, and an interruption of 3.75 s."""
    capture = Written()
    connection = Connection(capture, 40_000, (0.0, 30.0))
    now = connection.open(0)
    for copies in (0, 2, 2, 2, 4, 2, 2, 2):
        sent = write_request(connection, now + 50, Exchange(0, 0, copies, 0, 0, 0))
        connection.send(sent + 30, 1)
        now = sent + 30 + server_ms
        connection.send(now, 1, size=100)
        connection.send(now, 0)
    found = trace(capture.to_bytes())
    row = select_rows(found.services, 0)
    assert 8 * row["retransmission_s"] == pytest.approx(4.5, abs=1e-3)
    assert 8 * row["interrupted_s"] == pytest.approx(3.75, abs=1e-3)
    assert 8 * row["lost_packets_s"] == pytest.approx(8.25, abs=1e-3)
    assert row["cause"] == cause
    both = "with the interruptions, lost packets cost 1.03 s on average"
    assert (both in found.verdict()) == (cause == "retransmission")
