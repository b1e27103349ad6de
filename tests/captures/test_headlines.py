"""Captures of common programs: the headline answers what their user asks, in every output.

The captures in ``headlines`` were made with the real programs over ``tcpcast link`` (4 or 10 Mbit/s
and 30 or 40 ms RTT; ``iperf3-short``: 1 Gbit/s and 80 ms), cut to 96 bytes per packet, with zeros
as payload. ``iperf3-shaper``: between two namespaces, behind a shaper of the tapped interface.
``curl-tls`` has 620 bytes per packet, with two names and the ClientHello of curl.
"""

import gzip
import json
import re
import struct
from html import escape
from ipaddress import IPv4Address
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from tcpcast.answer.limit_names import LIMIT_NAMES
from tcpcast.captures import trace
from tcpcast.captures.capture_tables import restrict_to_directions
from tcpcast.captures.subject import capture_subject
from tcpcast.captures.verdict import directions_without_service
from tcpcast.cli import main
from tcpcast.report.full_report import captures_document
from tcpcast.report.html import html_page
from tcpcast.report.markdown import markdown_page
from tcpcast.report.text import plain_text
from tcpcast.report.trace import capture_parts

HEADLINES = Path(__file__).parent / "headlines"
SHARED = [parent / "shared/reported" for parent in Path(__file__).resolve().parents]
REPORTED = next((folder for folder in SHARED if folder.is_dir()), None)


class Answer(NamedTuple):
    """What the headline must be about, as the programs were run."""

    kind: str
    limits: tuple[str, ...]
    flows: int = 1


ANSWERS = {
    "iperf3-upload": Answer("transfer", ("link",)),
    "iperf3-parallel": Answer("parallel", ("link",), 4),
    "iperf3-reverse": Answer("transfer", ("link",)),
    "iperf3-window": Answer("transfer", ("receiver window",)),
    "iperf3-paced": Answer("transfer", ("application",)),
    "iperf3-shaper": Answer("transfer", ("link",)),
    "iperf3-short": Answer("transfer", ("slow start",)),
    "curl-download": Answer("transfer", ("link",)),
    "curl-upload": Answer("transfer", ("link",)),
    "scp-upload": Answer("transfer", ("link",)),
    "rsync-download": Answer("transfer", ("link",)),
    "curl-small": Answer("service", ("network",), 0),
    "browser": Answer("service", ("network",), 0),
    "browser-tls": Answer("service", ("network",), 0),
    "curl-tls": Answer("service", ("network",), 0),
    "postgresql": Answer("service", ("network",), 0),
    "grpc": Answer("service", ("network",), 0),
}
REPORTED_ANSWERS = {
    "iperf3-application-limited": Answer("transfer", ("application",)),
    "iperf3-fills-a-link": Answer("transfer", ("link",)),
    "iperf3-receiver-window": Answer("transfer", ("receiver window",)),
}


def check_headline(path: Path, answer: Answer) -> None:
    capture = trace(path)
    subject, verdict = capture_subject(capture), capture.verdict()
    assert subject.kind == answer.kind, verdict
    limit = LIMIT_NAMES.get(subject.limit, subject.limit)
    assert limit in answer.limits, verdict
    assert subject.flows == answer.flows
    assert subject.failures == 0
    assert "failed" not in verdict
    if subject.kind == "service":
        assert subject.server in verdict
    else:
        assert f"limited by the {limit}" in verdict.replace("by slow", "by the slow")
        sizes = capture.connections["bytes"]
        assert sizes[list(subject.directions)].sum() >= 0.9 * sizes.sum()


@pytest.mark.parametrize("name", ANSWERS)
def test_headline_of_each_program(name: str) -> None:
    check_headline(HEADLINES / f"{name}.pcap.gz", ANSWERS[name])


def test_sample_shows_a_slow_reader_unless_a_file_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sample = trace("sample")
    assert (sample.file, sample.segments) == ("sample", 1599)
    subject, verdict = capture_subject(sample), sample.verdict()
    assert subject.limit == "receiver_window"
    assert "make the receiving application read faster" in verdict
    assert "reduce loss" in verdict  # its second limit

    assert main(["report", "sample", "--out", "report.html"]) == 0
    assert escape(verdict) in Path("report.html").read_text()

    own = HEADLINES / "curl-upload.pcap.gz"
    Path("sample").write_bytes(own.read_bytes())
    assert trace("sample").segments == trace(own).segments


@pytest.mark.skipif(REPORTED is None, reason="no reported cases next to the project")
@pytest.mark.parametrize("name", REPORTED_ANSWERS)
def test_headline_of_each_reported_capture(name: str) -> None:
    assert REPORTED is not None
    check_headline(REPORTED / name / "in.pcap.gz", REPORTED_ANSWERS[name])


@pytest.mark.parametrize("name", ANSWERS)
def test_the_sections_explain_the_subject_first(name: str) -> None:
    """The first explained transfer is one of the subject; a control connection has no advice."""
    capture = trace(HEADLINES / f"{name}.pcap.gz")
    subject = capture_subject(capture)
    lines = plain_text(capture_parts(capture), 10_000).splitlines()
    title = re.compile(r"(service )?\S+:\d+( > \S+| \(.*\))?")
    explained = [line for line in lines if title.fullmatch(line)]
    if subject.kind == "service":
        assert explained[0].startswith(f"service {subject.server}")
        return
    table = capture.connections
    ends = {f"{table['src'][row]} > {table['dst'][row]}" for row in subject.directions}
    # A single connection with data in one main direction needs no title.
    assert not explained or explained[0] in ends
    if name.startswith("iperf3"):
        assert not any(line.startswith("service ") for line in explained)


def test_parallel_flows_have_their_total_rate() -> None:
    capture = trace(HEADLINES / "iperf3-parallel.pcap.gz")
    subject = capture_subject(capture)
    # The link carries 4 Mbit/s with 52 B of headers in 1500 B; some packets are sent twice.
    assert subject.throughput_bps == pytest.approx(4e6 * 1448 / 1500, rel=0.06)
    assert subject.bytes == capture.connections["bytes"][list(subject.directions)].sum()
    assert "4 parallel flows from 10.0.0.1 to 10.128.0.1 together send" in capture.verdict()


def test_a_rst_on_the_only_connection_leads() -> None:
    """Without the control connection, nothing shows that the RST was intended."""
    capture = trace(HEADLINES / "iperf3-reverse.pcap.gz")
    assert (capture.failed["failure"] == "reset").any()
    row = int(np.argmax(capture.connections["bytes"]))
    alone = restrict_to_directions(capture, np.array([row]))
    alone.rest = {"reset": 1}
    assert capture_subject(alone).kind == "failures"


def test_transfers_are_no_requests() -> None:
    """The bytes of uploads and downloads count for a limit, not for the latency of a service."""
    for name in ("scp-upload", "curl-upload", "iperf3-reverse", "iperf3-short"):
        table = trace(HEADLINES / f"{name}.pcap.gz").connections
        apart = directions_without_service(table)
        assert apart["bytes"].sum() >= 0.95 * table["bytes"].sum()


def test_names_label_services(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(HEADLINES / "curl-tls.pcap.gz"), "--json"]) == 0
    (capture,) = json.loads(capsys.readouterr().out)["captures"]
    names = {"10.128.0.1:8443": "www.example.org", "10.128.0.1:8080": "api.example.net"}
    assert capture["services"]
    assert all(row["server_name"] == names[row["server"]] for row in capture["services"])
    for row in capture["connections"]:
        server = row["src"] if row["src"] in names else row["dst"]
        assert row["server_name"] == names[server]
    assert "10.128.0.1:8443 (www.example.org)" in capture["verdict"]
    # A capture of 96 bytes per packet contains no names.
    assert main(["trace", str(HEADLINES / "browser-tls.pcap.gz"), "--json"]) == 0
    (capture,) = json.loads(capsys.readouterr().out)["captures"]
    assert {row["server_name"] for row in capture["connections"]} == {""}


def dns_response(name: str, address: str) -> bytes:
    """Return an IPv4 packet with the response of a DNS server."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    question = labels + b"\0" + struct.pack(">HH", 1, 1)
    answer = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + IPv4Address(address).packed
    message = struct.pack(">6H", 7, 0x8180, 1, 1, 0, 0) + question + answer
    datagram = struct.pack(">4H", 53, 40000, 8 + len(message), 0) + message
    ends = IPv4Address("10.0.0.53").packed + IPv4Address("10.0.0.1").packed
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(datagram), 0, 0, 64, 17, 0) + ends + datagram


@pytest.mark.parametrize("name", ["shop.example.org", "evil\x1b[2J.org", "<b>.example"])
def test_dns_answers_name_addresses(name: str) -> None:
    """A name of other characters than those of host names is no name."""
    content = gzip.decompress((HEADLINES / "curl-small.pcap.gz").read_bytes())
    packet = dns_response(name, "10.128.0.1")
    record = content[24:32] + struct.pack("<II", len(packet), len(packet)) + packet
    capture = trace(content[:24] + record + content[24:])
    expected = name if name == "shop.example.org" else ""
    assert set(capture.connections["server_name"].tolist()) == {expected}
    assert capture.services["server_name"].tolist() == [expected]
    report = captures_document([capture], "tcpcast report x")
    for page in (html_page(report, "mark"), markdown_page(report, "mark")):
        assert (name in page.replace("\\", "")) == bool(expected)


def test_the_terminal_has_the_summary_over_all_files(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(HEADLINES / f"{name}.pcap.gz") for name in ("iperf3-short", "curl-tls")]
    assert main(["trace", *files]) == 0
    both = capsys.readouterr().out
    summary = both[both.index("All 2 captures") :]
    assert "Most data are in" in summary
    assert "What to change first" in summary
    assert "Service 10.128.0.1:8443 (www.example.org)" in summary
    assert "Worst transfers" in summary
    assert main(["trace", files[0]]) == 0
    assert "captures\n" not in capsys.readouterr().out


def test_failures_are_changed_first(capsys: pytest.CaptureFixture[str]) -> None:
    """Regression: the summary over several files advised on transfers and services only.

    The RST that ends a transfer of iperf3 is no failure to change.
    """
    reported = HEADLINES.parent / "reported" / "rst-after-fin-loses-upload.pcap.gz"
    files = [str(HEADLINES / "iperf3-window.pcap.gz"), str(reported)]
    assert main(["trace", *files]) == 0
    summary = " ".join(capsys.readouterr().out.split("What to change first")[1].split())
    assert summary.startswith("Failure: 192.0.2.10:40000 > 198.51.100.20:80: the server closed the")
    assert "Receiver window: 1 transfer." in summary
    assert summary.count("Failure: ") == 1


@pytest.mark.parametrize("name", [name for name in ANSWERS if name.startswith("iperf3")])
def test_the_rst_of_iperf3_is_no_failure_in_the_body(name: str) -> None:
    """Regression: "1 of 2 connections failed: 1 reset", although the headline said otherwise."""
    capture = trace(HEADLINES / f"{name}.pcap.gz")
    report = plain_text(capture_parts(capture), 10_000)
    assert (capture.failed["failure"] == "reset").any() == ("by a harmless RST" in report)
    for text in ("failed", "\n! ", "check the log"):
        assert text not in report
