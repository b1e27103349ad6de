"""Headlines of written captures: each names what the client waited for."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from segments import ACK, RST, SYN, Connection, Written
from tcpcast.captures import Capture, trace
from tcpcast.captures.failed_connections import failure_sentences
from tcpcast.captures.interruptions import interruption_sentences
from tcpcast.captures.subject import capture_subject

AWAY = (5.0, 15.0)


def traced(written: Written) -> Capture:
    return trace(written.to_bytes())


@pytest.mark.parametrize("gap_ms", [0, 300])
@pytest.mark.parametrize("later", [0, 2])
def test_response_lost_before_the_tap_is_retransmission(gap_ms: int, later: int) -> None:
    """Acks of the server show the loss; the client may send ``later`` messages until it ends."""
    written = Written()
    connection = Connection(written, 40_000, (0.1, 0.8))
    now = connection.open(0) + 500
    connection.send(now, 0, size=10)
    connection.send(now + 0.8, 1)
    start = connection.numbers[1]
    connection.send(now + 0.8 + gap_ms, 1, at=start + 700)
    for number in range(later):
        connection.send(now + 1000 * (number + 1), 0, size=10)
        connection.send(now + 1000 * (number + 1) + 0.8, 1, at=start + 700)
    connection.send(now + 6500, 1, size=700)
    connection.send(now + 6500.1, 0)
    capture = traced(written)
    assert capture.services["cause"].tolist() == ["retransmission"]
    (lost,) = capture.requests["retransmission_s"].tolist()
    assert lost == pytest.approx(6.4992 - gap_ms / 1e3, abs=1e-3)
    assert "retransmission of lost packets" in capture.verdict()


def test_request_lost_before_the_tap_is_retransmission() -> None:
    """An ack of the client shows the request, which arrives 9 s later: the client did not wait."""
    written = Written()
    connection = Connection(written, 40_000, (40.0, 0.1))
    now = connection.request(connection.open(0), server_ms=5) + 200
    connection.send(now, 0, at=connection.numbers[0] + 300)
    connection.send(now + 9000, 0, size=300)
    connection.send(now + 9005, 1, size=400)
    connection.send(now + 9045, 0)
    capture = traced(written)
    assert capture.requests["retransmission_s"].tolist() == pytest.approx([0, 9])
    assert capture.services["cause"].tolist() == ["retransmission"]


def test_shrunk_window_of_unknown_scale_is_a_ratio() -> None:
    """Without the SYNs, the windows of the dead receiver have no unit."""
    packed = Path(__file__).parent / "reported" / "receiver-dies-after-window-shrinks.pcap.gz"
    whole = gzip.decompress(packed.read_bytes())
    at = 24
    for _ in range(3):  # the handshake
        at += 16 + int.from_bytes(whole[at + 8 : at + 12], "little")
    capture = trace(whole[:24] + whole[at:])
    assert capture.failed["window_unscaled"].tolist() == [True]
    assert "after its window had shrunk to 15 % of its size" in capture.verdict()


@pytest.mark.parametrize(
    ("requests", "server_ms", "kind"),
    [(0, 0, "old_connection"), (1, 30, "old_connection"), (3, 800, "service")],
)
def test_old_connection_leads_if_it_cost_more_than_the_requests(
    requests: int, server_ms: float, kind: str
) -> None:
    written = Written()
    connection = Connection(written, 41_000, AWAY)
    connection.send(0, 0, SYN)
    numbers, connection.numbers = connection.numbers, [777_777, 999_999]
    connection.send(AWAY[1], 1)
    connection.send(sum(AWAY), 0, RST)
    connection.numbers = [1000, numbers[1]]
    now = connection.open(1000)
    for _ in range(requests):
        now = connection.request(now + 10, server_ms=server_ms)
    capture = traced(written)
    assert capture_subject(capture).kind == kind
    cost = "opened 1.00 s late, because an old connection between the same ports still existed"
    assert (cost in capture.verdict()) == (kind == "old_connection")


def closed_window(connection: Connection, end: int, now: float) -> float:
    """Write data to a closed window, with four probes, and return the time of the last answer."""
    connection.send(now, end, size=900)
    answered = now + sum(AWAY)
    connection.send(answered, 1 - end, window=0)
    for late in (400, 1200, 2800, 6000):
        connection.send(now + late, end, ACK, at=connection.numbers[end] - 1)
        answered = now + late + connection.away[1 - end]
        connection.send(answered, 1 - end, window=0)
    return answered


@pytest.mark.parametrize("end", [0, 1])
def test_closed_window_is_no_silence(end: int) -> None:
    """The receiver answers each probe."""
    written = Written()
    closed_window(Connection(written, 40_000, AWAY), end, 0)
    (sentence,) = interruption_sentences(traced(written).interruptions)
    receiver = ("server", "client")[end]
    assert sentence.startswith(f"the {receiver} kept its receive window closed for ")
    assert sentence.endswith("; 4 window probes)")


def test_window_that_was_always_closed_did_not_shrink() -> None:
    """Regression: the window had shrunk "from 0 to 0 B", or to 0 % of its size."""
    written = Written()
    connection = Connection(written, 40_000, AWAY)
    now = closed_window(connection, 0, 0) + 6000
    for probe in range(4):
        connection.send(now + 9000 * probe, 0, at=connection.numbers[0] - 1)
    capture = traced(written)
    assert capture.failed["window_max_bytes"].tolist() == [0]
    assert "with a closed window; first check the server" in capture.verdict()
    assert "shrunk" not in " ".join([capture.verdict(), *failure_sentences(capture.failed)])


@pytest.mark.parametrize("end", [0, 1])
@pytest.mark.parametrize("opened", [False, True])
def test_closed_window_leads_the_verdict(end: int, opened: bool) -> None:
    """Data that the receiver does not read are no request without a response."""
    written = Written()
    connection = Connection(written, 40_000, AWAY)
    now = closed_window(connection, end, connection.open(0) + 10 if opened else 0)
    if opened:
        connection.send(now + 3000, 1 - end)
        connection.send(now + 3020, end, size=900)
        connection.send(now + 3040, 1 - end)
    capture = traced(written)
    assert capture_subject(capture).limit == "receiver_window"
    assert "make the receiving application read faster" in capture.verdict()


@pytest.mark.parametrize(("segments", "kind"), [(5, "service"), (200, "transfer")])
def test_single_message_of_several_flights_is_a_transfer(segments: int, kind: str) -> None:
    written = Written()
    connection = Connection(written, 40_000, AWAY)
    now = connection.open(0)
    connection.send(now, 0, size=100)
    for number in range(segments):
        sent = now + AWAY[1] + 1 + 2 * number
        connection.send(sent, 1, size=1460)
        connection.send(sent + AWAY[0], 0)
    assert capture_subject(traced(written)).kind == kind


@pytest.mark.parametrize("end", [0, 1])
@pytest.mark.parametrize("flows", [1, 3])
def test_interruption_of_transfers_is_in_the_verdict(end: int, flows: int) -> None:
    """The path is dead for 7.75 s of 12 s, in all connections."""
    written = Written()
    for flow in range(flows):
        connection = Connection(written, 40_000 + flow, AWAY)
        opened = connection.open(flow)

        def burst(now: float, connection: Connection = connection) -> None:
            for number in range(100):
                connection.send(now + 20 * number, end, size=1460)
                connection.send(now + 20 * number + connection.away[1 - end], 1 - end)

        burst(opened)
        start, now = connection.numbers[end], opened + 2100
        connection.send(now, end, size=1460)
        for late in (250, 750, 1750, 3750, 7750):
            connection.send(now + late, end, size=1460, at=start)
        connection.send(now + 7750 + connection.away[1 - end], 1 - end)
        burst(now + 7900)
    verdict = traced(written).verdict()
    assert "the path was silent for 7.75 s, from 2.1" in verdict
    assert ("and 2 other connections" in verdict) == (flows > 1)


def test_failures_that_the_table_omits_are_marked() -> None:
    """Regression: 16,384 rows were listed without a mark, and a scan hid all other failures."""
    written, scanned = Written(), 16_400
    for number in range(scanned):
        connection = Connection(written, 1024 + number % 60_000, server_port=443 + number // 60_000)
        connection.send(number / 10, 0, SYN)
    connection = Connection(written, 1023)
    now = connection.open(scanned)
    connection.send(now, 0, size=100)
    connection.send(now + 30, 1, RST)
    connection.written.frames.append((now + 2000, written.frames[0][1]))
    capture = traced(written)
    kinds, counts = np.unique(capture.failed["failure"], return_counts=True)
    assert dict(zip(kinds.tolist(), counts.tolist(), strict=True)) == {
        "reset": 1,
        "unanswered": 16_384,
    }
    assert capture.rest["unanswered"] == scanned
    omitted = "16 failed connections were counted but left out of the table of failures"
    assert any(text.startswith(omitted) for text in capture.warnings)


def test_an_outage_has_priority_over_a_small_send_buffer() -> None:
    """Regression: the first advice was a larger send buffer, because this state lasts longer."""
    written = Written()
    connection = Connection(written, 40_000, (0.0, 30.0))

    def rounds(count: int, now: float) -> float:
        for number in range(count):
            for _ in range(4):
                connection.send(now + 30.3 * number, 0, size=1460)
            connection.send(now + 30.3 * number + 30.2, 1)
        return now + 30.3 * count

    now = rounds(800, connection.open(0))
    connection.send(now, 0, size=1460)
    for copy in range(1, 7):
        last = now + 250 * (2**copy - 1)
        connection.send(last, 0, size=1460, at=connection.numbers[0] - 1460)
    connection.send(last + 30, 1)
    rounds(20, last + 30.2)
    capture = traced(written)
    assert capture.connections["limited_by"].tolist() == ["send_buffer"]
    assert capture.connections["cause"].tolist() == ["timeout"]
    verdict = capture.verdict()
    assert "limited by timeouts: 6 timeouts" in verdict
    assert "find the cause of the outage; the path was silent for 15.8 s" in verdict
    assert "send buffer" not in verdict
    assert "First find the cause of the outage" in str(capture.advice()[0])


def test_a_chat_is_no_slow_server() -> None:
    """Regression: the time until the other end wrote was the server's processing time."""
    written = Written()
    connection = Connection(written, 40_000, (0.0, 30.0))
    now = connection.open(0)
    for number, sender in enumerate((0, 1, 1, 0, 1, 0, 0, 1, 0, 0, 1, 1, 1, 0, 1, 1, 0, 0, 1, 0)):
        now += 900 + 130 * (number % 7)
        connection.send(now, sender, size=40 + number)
        connection.send(now + (30 if sender == 0 else 0.2), 1 - sender)
    capture = traced(written)
    assert capture.services["cause"].tolist() == ["chat"]
    assert capture.verdict().startswith(
        "Both ends of 10.0.0.2:80 send without waiting for the other end, as in a chat: the client "
        "3 times, and the server 4 times; the time between"
    )
    assert "processing time" not in capture.verdict()
