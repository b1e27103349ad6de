"""`tcpcast trace`: text, JSON and CSV; several, damaged and invalid captures; standard input."""

import csv
import gzip
import io
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast import captures
from tcpcast.captures import iter_plain_rows
from tcpcast.captures.table import endpoint_text
from tcpcast.cli import main
from tcpcast.report import text as layout
from tcpcast.report.csv import encode_csv
from tcpcast.report.document import Column
from tcpcast.report.text import layout_lines, plain_text
from tcpcast.report.trace import capture_parts, worst_first_order

Output = pytest.CaptureFixture[str]

ROOT = Path(__file__).parents[2]
TRANSFER = ROOT / "crates" / "trace" / "tests" / "data" / "transfer.pcap.gz"
"""240 packets of one transfer: 136 of data, 9 of them retransmitted; Karn RTT 109.215 ms."""
CAPTURE_BYTES = gzip.decompress(TRANSFER.read_bytes())

INTERFACE = [
    "src", "dst", "tap_side", "packets", "data_packets", "bytes", "retransmissions", "td", "to",
    "td_paper", "to_paper", "timeouts", "max_backoff", "t0_s", "rtt_mean_s", "w_max_pkts",
    "packets_per_ack", "throughput_bps",
]  # fmt: skip


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """The capture of one transfer, truncated within about the 200th record."""
    path = tmp_path / "damaged.pcap"
    path.write_bytes(CAPTURE_BYTES[: len(CAPTURE_BYTES) * 5 // 6 + 3])
    return path


def trace(*arguments: object) -> int:
    return main(["trace", *map(str, arguments)])


def test_known_capture_has_expected_values() -> None:
    capture = tcpcast.trace(TRANSFER)
    table = capture.connections
    assert (capture.frames, capture.segments, capture.connection_count) == (240, 240, 1)
    assert table["data_packets"].tolist() == [136]
    assert table["retransmissions"].tolist() == [9]
    assert table["rtt_karn_mean_s"][0] == pytest.approx(0.109215, abs=5e-7)
    assert capture.retransmissions["bytes"].sum() == table["retransmitted_bytes"][0]
    assert not capture.damaged
    assert not capture.warnings


def test_points_of_the_sequence_plot_are_read_on_request_only() -> None:
    trail = tcpcast.trace(TRANSFER).trail
    assert {column.size for column in trail.values()} == {0}
    with pytest.raises(tcpcast.CaptureError, match="must be between 0 and"):
        tcpcast.trace(TRANSFER, trail_points=-1)


def test_columns_have_equal_length_and_simple_types() -> None:
    capture = tcpcast.trace(TRANSFER)
    for table in (
        capture.connections, capture.intervals, capture.retransmissions, capture.loss_indications,
    ):  # fmt: skip
        (length,) = {column.shape for column in table.values()}
        assert len(length) == 1
        assert {column.dtype.kind for column in table.values()} <= set("UifbM")


def test_model_rates_equal_models_of_table_inputs() -> None:
    from tcpcast.models.mathis import mathis_rate_pps  # noqa: PLC0415
    from tcpcast.models.pftk import throughput  # noqa: PLC0415

    row = {name: column[0] for name, column in tcpcast.trace(TRANSFER).connections.items()}
    assert row["loss_indication_ratio"] == (row["td"] + row["to"]) / row["data_packets"]
    path = {
        "rtt_s": row["rtt_mean_s"],
        "loss_indication_ratio": row["loss_indication_ratio"],
        "packets_per_ack": row["packets_per_ack"],
        "receiver_window_pkts": row["w_max_pkts"],
    }
    assert row["mathis_pps"] == mathis_rate_pps(**path)
    first = row["t0_s"] if row["t0_s"] > 0 else row["rtt_mean_s"] + 0.2
    assert row["pftk_pps"] == throughput(t0_s=first, **path).rate_pps


def test_empty_name_of_a_capture_is_rejected(capsys: Output) -> None:
    assert trace("") == 2
    assert "the name of a capture is empty; use" in capsys.readouterr().err


@pytest.mark.parametrize("width", [40, 45, 50, 60, 70])
@pytest.mark.parametrize("more", [[], ["--models"], ["--group-by", "pair"]], ids=" ".join)
def test_narrow_terminal_stacks_columns(
    width: int, more: list[str], capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.chdir(TRANSFER.parent)
    assert trace(TRANSFER.name, *more) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= width
    if not more:
        heads = [cell for line in out.splitlines() for cell in line.split()]
        assert {"retrans", "limited"} <= set(heads)
        assert {"136", "9", "424", "71%"} <= set(heads)
        assert {"10.99.0.1:47174", "10.99.0.2:5001"} <= set(heads)


@pytest.mark.parametrize("width", [60, 80, 100, 132])
def test_long_addresses_are_complete(width: int) -> None:
    capture = tcpcast.trace(TRANSFER)
    source = endpoint_text("2001:db8:1111:2222:3333:4444:5555:6666", 40000)
    capture.connections["src"] = np.array([source])
    capture.connections["dst"] = np.array([endpoint_text("2001:db8::1", 443)])
    lines = plain_text(capture_parts(capture, verdict=False), width).splitlines()
    rows = [line for line in lines if line.startswith(f" {source}")]
    assert len(rows) == (4 if width < 80 else 2 if width < 100 else 1)
    assert sum("[2001:db8::1]:443" in line for line in lines) == len(rows)
    assert max(map(len, lines[2:])) <= width


def test_worst_directions_are_sorted_first() -> None:
    zeros = {name: np.zeros(4, dtype=np.int64) for name in ("timeouts", "retransmissions")}
    table = zeros | {"zero_windows": np.array([0, 0, 1, 0]), "bytes": np.array([9, 1, 2, 3])}
    assert worst_first_order(table).tolist() == [2, 0, 3, 1]
    table["timeouts"] = np.array([0, 0, 0, 1])
    table["retransmissions"] = np.array([0, 99, 0, 0])
    assert worst_first_order(table).tolist() == [3, 1, 2, 0]


def test_trace_json_has_documented_form(capsys: Output) -> None:
    assert trace("--json", TRANSFER, TRANSFER) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document) == ["verdict", "captures"]
    assert [list(item) for item in document["captures"]] == [
        [
            "file",
            "verdict",
            "findings",
            "subject",
            "warnings",
            "rest",
            "limits",
            "services",
            "failed",
            "interruptions",
            "connections",
        ]
    ] * 2
    (row,) = document["captures"][0]["connections"]
    assert list(row)[: len(INTERFACE)] == INTERFACE
    assert document["captures"] == 2 * tcpcast.trace(TRANSFER).to_json()["captures"]
    assert row["start"].endswith("Z")
    assert row["rtt_timestamps_mean_s"] is None or row["timestamps"]


def test_layout_time_is_linear_in_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    capture = tcpcast.trace(TRANSFER)
    capture.connections = {name: np.repeat(v, 2000) for name, v in capture.connections.items()}
    calls = 0
    width = layout.column_width

    def count_call(column: Column) -> int:
        nonlocal calls
        calls += 1
        return width(column)

    monkeypatch.setattr(layout, "column_width", count_call)
    assert len(list(layout_lines(capture_parts(capture), 80))) > 2000
    assert calls < 100
    (row,) = iter_plain_rows(tcpcast.trace(TRANSFER).connections)
    assert list(iter_plain_rows(capture.connections)) == 2000 * [row]


def test_every_connection_column_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    section = page.partition("\n## trace\n")[2].partition("<!-- end of table -->")[2]
    between = {f"to_depth_{depth}" for depth in range(2, 6)}
    section = section.partition("\n### ")[0]
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^- .*?:", section, re.MULTILINE))))
    columns = tcpcast.trace(TRANSFER, after=TRANSFER).connections.keys()
    assert named == columns - between | {"advice"}


def test_packets_before_damage_are_analysed(damaged: Path, capsys: Output) -> None:
    assert trace(damaged) == 1
    out, err = capsys.readouterr()
    assert "partial: the file is damaged" in out
    assert "the file ends within a record" in out
    assert (
        err
        == f"tcpcast: {damaged}: damaged; the results cover only the packets before the damage\n"
    )
    capture = tcpcast.trace(damaged)
    assert capture.damaged
    assert 100 < capture.connections["data_packets"][0] < 136
    assert trace("--json", damaged) == 1
    document = json.loads(capsys.readouterr().out)
    assert "ends within" in document["captures"][0]["warnings"][0]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "No such file"),
        (b"", "empty"),
        (b"a plain text, no more", "not a capture"),
        (b"ab", ""),
    ],
)
def test_files_that_are_not_captures_are_rejected(
    content: bytes | None, why: str, tmp_path: Path, capsys: Output
) -> None:
    path = tmp_path / "thing.pcap"
    if content is not None:
        path.write_bytes(content)
    assert trace(path) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith(f"tcpcast: {path}: ")
    assert why in err
    with pytest.raises(tcpcast.CaptureError, match=r"thing\.pcap"):
        tcpcast.trace(path)


def test_other_captures_are_read_if_one_is_missing(
    damaged: Path, tmp_path: Path, capsys: Output
) -> None:
    assert trace(tmp_path / "none.pcap", TRANSFER, damaged) == 2
    out, err = capsys.readouterr()
    assert " ".join(out.split()).count("TCP segments") == 2
    assert "none.pcap" in err
    assert trace(TRANSFER, damaged) == 1


def test_capture_without_tcp_is_reported(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "nothing.pcap"
    path.write_bytes(CAPTURE_BYTES[:24])
    assert trace(path) == 0
    assert "no TCP segment in 0 frames" in capsys.readouterr().out
    assert trace("--json", path) == 0
    assert json.loads(capsys.readouterr().out)["captures"][0]["connections"] == []


def test_interrupt_prints_results_so_far() -> None:
    command = [sys.executable, "-m", "tcpcast", "trace", "-"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        # More data than a pipe buffers: after this write, the command has read data and waits.
        process.stdin.write(CAPTURE_BYTES + 20 * CAPTURE_BYTES[24:])
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        out = process.stdout.read().decode()
        assert process.stderr is not None
        words = process.stderr.read().decode()
        assert process.wait(timeout=120) == 130
    assert "interrupted" in out
    assert "interrupted" in words
    assert " > " in out
    assert not re.search("damaged|reading failed", out + words)


def test_interrupt_in_second_file_prints_first(
    monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    read = captures.trace

    def interrupted(source: str, **options: Any) -> captures.Capture:
        if source == "second.pcap":
            raise KeyboardInterrupt
        return read(source, **options)

    monkeypatch.setattr("tcpcast.cli.trace.read", interrupted)
    assert trace("--json", str(TRANSFER), "second.pcap") == 130
    out, err = capsys.readouterr()
    (capture,) = json.loads(out)["captures"]
    assert capture["connections"][0]["data_packets"] == 136
    assert "second.pcap: interrupted" in err


@pytest.mark.parametrize("name", ["a\nb.pcap", "a\rb", "a\r\n", "\n\n", '",\n'])
def test_line_breaks_of_file_names_are_quoted_in_csv(name: str) -> None:
    rows = [["file", "packets"], [name, "1"], ["other", "2"]]
    text = encode_csv(rows[0], rows[1:])
    assert list(csv.reader(io.StringIO(text, newline=""))) == rows


def test_booleans_in_csv_are_lower_case(capsys: Output) -> None:
    assert trace(TRANSFER, "--csv") == 0
    head, *rows_of_csv = csv.reader(io.StringIO(capsys.readouterr().out))
    booleans = {name: {row[head.index(name)] for row in rows_of_csv} for name in ("sack", "ecn")}
    assert booleans["sack"] | booleans["ecn"] <= {"true", "false", ""}
    assert "true" in booleans["sack"] or "false" in booleans["sack"]
