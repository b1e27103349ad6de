"""Logs of iperf3 and ss: limits in every output, and errors that state the place.

The logs in ``logs`` are what ``iperf3 -J`` and ``ss -tin`` (iperf 3.12, iproute2 6.1, Linux 6.18)
printed over emulated links, and the names state the true limit.
"""

import json
import math
import random
import re
from html import escape
from pathlib import Path

import numpy as np
import pytest
from tcpcast.captures import Capture, trace
from tcpcast.captures.replay import make_replay_scenario
from tcpcast.captures.subject import capture_subject
from tcpcast.cli import main
from tcpcast.process.errors import CaptureError
from tcpcast.report.full_report import captures_document
from tcpcast.report.html import html_page
from tcpcast.report.markdown import markdown_page
from tcpcast.report.text import plain_text
from tcpcast.report.trace import capture_parts, json_lines

LOGS = Path(__file__).parent / "logs"
READABLE = sorted(path for path in LOGS.iterdir() if path.stem not in ("udp", "refused"))

ANSWERS = {
    # name: limit, rate of the subject in Mbit/s (as the program or the link states it)
    "receiver-window.json": ("receiver_window", 7.34),
    "receiver-window.txt": ("receiver_window", 7.38),
    "application-limited.json": ("application", 3.01),
    "application-limited.txt": ("application", 3.02),
    "link.json": ("bottleneck", 9.24),
    "link.txt": ("bottleneck", 9.28),
    "loss.json": ("congestion_window", 2.81),
    "loss.txt": ("congestion_window", 2.27),
    "parallel.json": ("bottleneck", 8.66),
    "both-directions.json": ("bottleneck", 3.01),
    "reverse.json": ("unknown", 8.60),
    "server.json": ("bottleneck", 4.66),
    "interrupted.json": ("bottleneck", 4.42),
    "one-line.txt": ("bottleneck", 3.59),
    "ipv6.txt": ("bottleneck", 2.67),
}


@pytest.mark.parametrize("path", READABLE, ids=lambda path: path.name)
def test_limit_and_rate_of_each_log(path: Path) -> None:
    capture = trace(path)
    subject = capture_subject(capture)
    limit, mbps = ANSWERS[path.name]
    assert subject.limit == limit, capture.verdict()
    assert subject.throughput_bps / 1e6 == pytest.approx(mbps, rel=0.05)
    assert subject.flows == (4 if path.stem == "parallel" else 2 if path.stem == "one-line" else 1)


def test_shares_of_ss_are_those_of_the_kernel() -> None:
    """Between the first and the last snapshot, rwnd_limited grows by 2,996 ms in 6,408 ms."""
    table = trace(LOGS / "receiver-window.txt").connections
    row = int(np.argmax(table["bytes"]))
    assert table["share_receiver_window"][row] == pytest.approx(2996 / 6408, abs=0.005)
    assert table["share_send_buffer"][row] == pytest.approx(1328 / 6408, abs=0.005)
    shares = [table[name][row] for name in table if name.startswith("share_")]
    assert sum(shares) == pytest.approx(1)
    idle = trace(LOGS / "application-limited.txt").connections
    # busy 452 ms at the first and 2,232 ms at the last snapshot, 6,328 ms later
    assert idle["share_application"][0] == pytest.approx(1 - (2232 - 452) / 6328, abs=0.005)


def test_values_of_iperf3_are_those_it_prints() -> None:
    (row,) = trace(LOGS / "receiver-window.json").to_json()["captures"][0]["connections"]
    assert (row["src"], row["dst"]) == ("10.0.0.1:40580", "10.128.0.1:5201")
    assert row["unique_bytes"] == 7342704
    assert row["goodput_bps"] == pytest.approx(7342584.68)
    assert row["rtt_mean_s"] == pytest.approx(0.042727, abs=1e-6)
    assert row["window_max_bytes"] == 41992
    assert row["start"] == "2026-11-28T19:08:17.000000000Z"
    (row,) = trace(LOGS / "loss.json").to_json()["captures"][0]["connections"]
    assert row["retransmissions"] == 13


@pytest.mark.parametrize("name", ["parallel.json", "loss.txt", "reverse.json"])
def test_the_same_verdict_is_in_every_output(name: str) -> None:
    capture = trace(LOGS / name)
    verdict = capture.verdict()
    assert plain_text(capture_parts(capture), 10_000).splitlines()[0] == verdict
    document = captures_document([capture], "tcpcast report log")
    assert verdict.replace("<", "&lt;") in markdown_page(document, "mark")
    assert escape(verdict) in html_page(document, "mark")
    found = json.loads("\n".join(json_lines([capture])))
    assert found["verdict"] == found["captures"][0]["verdict"] == verdict
    assert found["captures"][0]["subject"] == capture_subject(capture).to_json()
    assert found["captures"][0]["program"] == ("ss" if name.endswith(".txt") else "iperf3")


def test_unknown_counts_are_absent_and_not_zero(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(LOGS / "loss.txt"), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["captures"][0]["connections"]
    unknown = ("td", "to", "timeouts", "zero_windows", "acks", "duplicate_acks", "start")
    assert [row[name] for name in unknown] == [None] * len(unknown)
    assert row["retransmissions"] == 9
    assert row["pftk_pps"] > 0
    assert main(["trace", str(LOGS / "loss.txt")]) == 0
    assert re.search(r" 9 +– +– ", capsys.readouterr().out)


def test_time_lines_and_idle_sockets_give_the_same_duration() -> None:
    """Without the times that ``date +%s.%N`` wrote, the idle control connection shows the time."""
    text = (LOGS / "loss.txt").read_text(encoding="utf-8")
    timed = trace(text.encode()).connections["duration_s"][0]
    without = "\n".join(line for line in text.splitlines() if not line[:6].isdigit())
    assert trace(without.encode()).connections["duration_s"][0] == pytest.approx(timed, abs=0.1)


def test_a_single_snapshot_says_so() -> None:
    capture = trace(LOGS / "ipv6.txt")
    assert any("one snapshot" in warning for warning in capture.warnings)


@pytest.mark.parametrize(
    ("name", "words"), [("udp.json", "test of UDP"), ("refused.json", "Connection refused")]
)
def test_a_test_without_tcp_data_is_refused(name: str, words: str) -> None:
    with pytest.raises(CaptureError, match=words):
        trace(LOGS / name)


def test_a_cut_log_of_iperf3_states_the_line() -> None:
    text = (LOGS / "link.json").read_bytes()
    with pytest.raises(CaptureError, match=r"not valid JSON: .* in line \d+"):
        trace(text[: len(text) // 2])


def test_a_damaged_value_of_ss_states_the_line() -> None:
    lines = (LOGS / "loss.txt").read_text(encoding="utf-8").splitlines()
    at = next(number for number, line in enumerate(lines) if "cwnd:11 " in line)
    lines[at] = lines[at].replace("cwnd:11 ", "cwnd:x\x1b[2J ")
    with pytest.raises(CaptureError, match=rf":{at + 1}: cwnd:x\[2J is not a number"):
        trace("\n".join(lines).encode())


def test_an_interrupted_test_is_marked() -> None:
    (warning, *_) = trace(LOGS / "interrupted.json").warnings
    assert "did not end normally (interrupt - the client has terminated)" in warning


def test_lines_of_json_stream_are_read() -> None:
    whole = json.loads((LOGS / "link.json").read_text(encoding="utf-8"))
    events = [{"event": "start", "data": whole["start"]}]
    events += [{"event": "interval", "data": each} for each in whole["intervals"]]
    events.append({"event": "end", "data": whole["end"]})
    stream = "\n".join(map(json.dumps, events)).encode()
    one, two = trace(stream), trace(LOGS / "link.json")
    assert one.verdict() == two.verdict()


@pytest.mark.parametrize("path", READABLE, ids=lambda path: path.name)
def test_damaged_logs_never_crash(path: Path) -> None:
    """Any damage gives an error with a reason, or finite rates of at least 0."""
    rng = random.Random(path.name)
    text = path.read_bytes()
    first = re.search(rb"\S[^\n]*\n", text)
    assert first is not None
    head = text[: first.end()]  # the format stays recognisable
    for _ in range(60):
        body = bytearray(text[len(head) :])
        for _ in range(rng.choice([1, 3, 30])):
            at = rng.randrange(len(body))
            kind = rng.random()
            if kind < 0.4:
                body[at] = rng.randrange(256)
            elif kind < 0.7:
                del body[at : at + rng.randrange(200)]
            else:
                body[at:at] = rng.choice([b"9" * 30, b"-", b"NaN", b"{", b"\n", b":", b"1e400"])
            if not body:
                break
        _check_or_refused(head + bytes(body))


def _check_or_refused(content: bytes) -> None:
    try:
        capture = trace(content)
    except CaptureError:
        return
    _check_outputs(capture)


def _check_outputs(capture: Capture) -> None:
    verdict = capture.verdict()
    assert " nan" not in verdict
    table = capture.connections
    for name in ("throughput_bps", "rtt_mean_s", "duration_s", "bytes"):
        assert not (table[name] < 0).any()
        assert not np.isinf(table[name]).any()
    for row in range(table["src"].size):
        shares = [table[name][row] for name in table if name.startswith("share_")]
        assert all(math.isnan(share) for share in shares) or sum(shares) == pytest.approx(1)
    json.loads("\n".join(json_lines([capture])))
    plain_text(capture_parts(capture), 100)


@pytest.mark.parametrize(
    "option", [["--models"], ["--group-by", "all"], ["--table", "rounds"], ["--plot", "figures"]]
)
def test_options_that_need_packets_are_refused(
    option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", str(LOGS / "link.json"), *option]) == 2
    assert f"{option[0]} requires a capture" in capsys.readouterr().err


def test_a_log_does_not_give_a_scenario() -> None:
    with pytest.raises(CaptureError, match="a scenario requires a capture"):
        make_replay_scenario(trace(LOGS / "loss.txt"))


def test_report_reads_logs_beside_captures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "report.md"
    assert main(["report", str(LOGS / "link.json"), str(LOGS / "loss.txt"), "--out", str(out)]) == 0
    capsys.readouterr()
    text = out.read_text(encoding="utf-8")
    assert "limited by the link" in text
    assert "log of iperf3" in text
