"""`tcpcast trace`: text, JSON and CSV, several captures, standard input, damage, what is none."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tcpcast
from tcpcast import captures
from tcpcast.captures import rows
from tcpcast.captures.table import endpoint
from tcpcast.cli import main
from tcpcast.report import text as layout
from tcpcast.report.text import laid_out, text
from tcpcast.report.trace import capture_parts, worst_first

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.report.document import Column

    Output = pytest.CaptureFixture[str]

ROOT = Path(__file__).parents[2]
TRANSFER = ROOT / "crates" / "trace" / "tests" / "data" / "transfer.pcap.gz"
"""240 packets of one transfer: 136 of data, 9 of them retransmitted; Karn RTT 109.215 ms."""
WHOLE = gzip.decompress(TRANSFER.read_bytes())

INTERFACE = [
    "src", "dst", "tap_side", "packets", "data_packets", "bytes", "retransmissions", "td", "to",
    "td_paper", "to_paper", "timeouts", "max_backoff", "t0_s", "rtt_mean_s", "w_max_pkts",
    "packets_per_ack", "throughput_bps",
]  # fmt: skip


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """The same, cut within the 200th record or so."""
    path = tmp_path / "damaged.pcap"
    path.write_bytes(WHOLE[: len(WHOLE) * 5 // 6 + 3])
    return path


def trace(*arguments: object) -> int:
    return main(["trace", *map(str, arguments)])


def run(arguments: Sequence[object], **more: Any) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "tcpcast", "trace", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False, **more)


def test_the_figures_of_a_capture_that_is_known() -> None:
    capture = tcpcast.trace(TRANSFER)
    table = capture.connections
    assert (capture.frames, capture.segments, capture.connection_count) == (240, 240, 1)
    assert table["data_packets"].tolist() == [136]
    assert table["retransmissions"].tolist() == [9]
    assert table["rtt_karn_mean_s"][0] == pytest.approx(0.109215, abs=5e-7)
    assert capture.retransmissions["bytes"].sum() == table["retransmitted_bytes"][0]
    assert not capture.damaged
    assert not capture.warnings


def test_columns_are_of_one_length_and_of_plain_types() -> None:
    capture = tcpcast.trace(TRANSFER)
    for table in (
        capture.connections, capture.intervals, capture.retransmissions, capture.loss_indications,
    ):  # fmt: skip
        (length,) = {column.shape for column in table.values()}
        assert len(length) == 1
        assert {column.dtype.kind for column in table.values()} <= set("UifbM")


def test_a_path_and_its_bytes_are_the_same() -> None:
    by_path, by_bytes = tcpcast.trace(str(TRANSFER)), tcpcast.trace(WHOLE)
    assert by_bytes.file == "<bytes>"
    for name, column in by_path.connections.items():
        np.testing.assert_array_equal(column, by_bytes.connections[name], name)


def test_zstd_is_read_as_gzip_is() -> None:
    content = TRANSFER.with_suffix(".zst").read_bytes()
    assert tcpcast.trace(content).to_json() == tcpcast.trace(WHOLE).to_json()
    wrong = tcpcast.trace(content[:-1] + bytes([content[-1] ^ 1]))  # in the checksum
    assert wrong.damaged
    assert wrong.connections["packets"].sum() == tcpcast.trace(WHOLE).connections["packets"].sum()
    assert any("zstd" in line for line in wrong.warnings)


def test_what_models_say_beside_is_what_they_are_fed() -> None:
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


def test_text_fits_into_80_columns(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert trace(TRANSFER) == 0
    out, err = capsys.readouterr()
    assert not err
    assert max(map(len, out.splitlines())) <= 80
    (row,) = [line.split() for line in out.splitlines() if re.match(r" \S+:\d+ > ", line)]
    assert row[2:4] == ["136", "9"]


@pytest.mark.parametrize("width", [40, 45, 50, 60, 70])
@pytest.mark.parametrize("more", [[], ["--models"], ["--group-by", "pair"]], ids=" ".join)
def test_a_narrow_terminal_has_the_columns_below_one_another(
    width: int, more: list[str], capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.chdir(TRANSFER.parent)
    assert trace(TRANSFER.name, *more) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= width
    if not more:
        heads = [cell for line in out.splitlines() for cell in line.split()]
        assert {"retrans", "TD", "TO"} <= set(heads)
        assert {"136", "9", "8", "0", "424", "71%"} <= set(heads)
        assert {"10.99.0.1:47174", "10.99.0.2:5001"} <= set(heads)


def test_bars_are_as_long_as_there_is_room(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = []
    for width in (40, 50, 60, 72, 100):
        monkeypatch.setenv("COLUMNS", str(width))
        assert trace(TRANSFER) == 0
        (line,) = [x for x in capsys.readouterr().out.splitlines() if "congestion window   " in x]
        assert "71 %" in line
        lengths.append(line.count("█"))
    assert lengths == [0, 7, 14, 22, 22]


@pytest.mark.parametrize("width", [60, 80, 100, 132])
def test_long_addresses_are_complete(width: int) -> None:
    capture = tcpcast.trace(TRANSFER)
    source = endpoint("2001:db8:1111:2222:3333:4444:5555:6666", 40000)
    capture.connections["src"] = np.array([source])
    capture.connections["dst"] = np.array([endpoint("2001:db8::1", 443)])
    lines = text(capture_parts(capture, verdict=False), width).splitlines()
    rows = [line for line in lines if line.startswith(f" {source}")]
    assert len(rows) == (5 if width < 80 else 2 if width < 100 else 1)
    assert sum("[2001:db8::1]:443" in line for line in lines) == len(rows)
    assert max(map(len, lines[2:])) <= width


def test_the_worst_comes_first() -> None:
    zeros = {name: np.zeros(4, dtype=np.int64) for name in ("timeouts", "retransmissions")}
    table = zeros | {"zero_windows": np.array([0, 0, 1, 0]), "bytes": np.array([9, 1, 2, 3])}
    assert worst_first(table).tolist() == [2, 0, 3, 1]
    table["timeouts"] = np.array([0, 0, 0, 1])
    table["retransmissions"] = np.array([0, 99, 0, 0])
    assert worst_first(table).tolist() == [3, 1, 2, 0]


def test_json_has_the_interface_s_form(capsys: Output) -> None:
    assert trace("--json", TRANSFER, TRANSFER) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["verdict", "captures"]
    assert [list(one) for one in found["captures"]] == [
        ["file", "verdict", "warnings", "rest", "limits", "services", "failed", "connections"]
    ] * 2
    (row,) = found["captures"][0]["connections"]
    assert list(row)[: len(INTERFACE)] == INTERFACE
    assert found["captures"] == 2 * tcpcast.trace(TRANSFER).to_json()["captures"]
    assert row["start"].endswith("Z")
    assert row["rtt_timestamps_mean_s"] is None or row["timestamps"]


def test_a_table_is_laid_out_in_time_that_grows_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    capture = tcpcast.trace(TRANSFER)
    capture.connections = {name: np.repeat(v, 2000) for name, v in capture.connections.items()}
    looks = 0
    width = layout.column_width

    def counted(column: Column) -> int:
        nonlocal looks
        looks += 1
        return width(column)

    monkeypatch.setattr(layout, "column_width", counted)
    assert len(list(laid_out(capture_parts(capture), 80))) > 2000
    assert looks < 100
    (row,) = rows(tcpcast.trace(TRANSFER).connections)
    assert list(rows(capture.connections)) == 2000 * [row]


def test_every_column_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    section = page.partition("\n## trace\n")[2].partition("\n## ")[0]
    between = {f"to_depth_{depth}" for depth in range(2, 6)}
    section = section.partition("\n### ")[0]
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\|.*?\|", section, re.MULTILINE))))
    columns = tcpcast.trace(TRANSFER, after=TRANSFER).connections.keys()
    assert named == columns - between | {"advice"}


def test_csv_has_a_line_a_direction(capsys: Output) -> None:
    assert trace("--csv", TRANSFER, TRANSFER) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["file"] for row in rows] == [str(TRANSFER)] * 2
    assert [row["data_packets"] for row in rows] == ["136", "136"]
    assert list(rows[0])[1:] == [*tcpcast.trace(TRANSFER).connections, "advice"]


def test_what_came_before_damage_is_told(damaged: Path, capsys: Output) -> None:
    assert trace(damaged) == 1
    out, err = capsys.readouterr()
    assert "partial: the file is damaged" in out
    assert "the file ends within a record" in out
    assert (
        err
        == f"tcpcast: {damaged}: damaged; the results cover only the packets before this point\n"
    )
    capture = tcpcast.trace(damaged)
    assert capture.damaged
    assert 100 < capture.connections["data_packets"][0] < 136
    assert trace("--json", damaged) == 1
    document = json.loads(capsys.readouterr().out)
    assert "ends within" in document["captures"][0]["warnings"][0]


def test_a_folder_is_no_capture_and_the_report_of_one_is_named(
    tmp_path: Path, capsys: Output
) -> None:
    assert trace(tmp_path) == 2
    assert "a folder, not a capture; `tcpcast report`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "No such file"),
        (b"", "empty"),
        (b"a plain text, no more", "not a capture"),
        (b"ab", ""),
    ],
)
def test_what_is_no_capture_is_refused(
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


def test_a_folder_is_no_capture(tmp_path: Path, capsys: Output) -> None:
    assert trace(tmp_path) == 2
    assert str(tmp_path) in capsys.readouterr().err


def test_the_others_are_read_though_one_is_none(
    damaged: Path, tmp_path: Path, capsys: Output
) -> None:
    assert trace(tmp_path / "none.pcap", TRANSFER, damaged) == 2
    out, err = capsys.readouterr()
    assert " ".join(out.split()).count("TCP segments") == 2
    assert "none.pcap" in err
    assert trace(TRANSFER, damaged) == 1


def test_a_capture_without_tcp_says_so(tmp_path: Path, capsys: Output) -> None:
    path = tmp_path / "nothing.pcap"
    path.write_bytes(WHOLE[:24])
    assert trace(path) == 0
    assert "no TCP segment among 0 frames" in capsys.readouterr().out
    assert trace("--json", path) == 0
    assert json.loads(capsys.readouterr().out)["captures"][0]["connections"] == []


@pytest.mark.parametrize("arguments", [["--json", "--csv", str(TRANSFER)], ["-", "-"], []])
def test_usage(arguments: list[str], capsys: Output) -> None:
    assert trace(*arguments) == 2
    assert not capsys.readouterr().out


def test_standard_input() -> None:
    done = run(["--json", "-"], input=TRANSFER.read_bytes())
    assert (done.returncode, done.stderr) == (0, b"")
    (capture,) = json.loads(done.stdout)["captures"]
    assert capture["file"] == "-"
    assert capture["connections"][0]["data_packets"] == 136


def test_an_interrupt_shows_what_came_so_far() -> None:
    command = [sys.executable, "-m", "tcpcast", "trace", "-"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        # More than a pipe holds, so that it has been read when this returns; it waits for the rest.
        process.stdin.write(WHOLE + 20 * WHOLE[24:])
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        out = process.stdout.read().decode()
        assert process.stderr is not None
        words = process.stderr.read().decode()
        assert process.wait(timeout=10) == 130
    assert "interrupted" in out
    assert "interrupted" in words
    assert " > " in out
    assert not re.search("damaged|reading failed", out + words)


def test_an_interrupt_between_two_files_prints_the_first(
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


def test_a_reader_that_leaves_is_no_fault() -> None:
    command = f"{sys.executable} -m tcpcast trace --csv {TRANSFER} | head -c 10"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_data_frames_take_the_tables() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(tcpcast.trace(TRANSFER).connections)
    assert frame["data_packets"].tolist() == [136]


def test_truths_in_csv_are_lower_case(capsys: Output) -> None:
    assert trace(TRANSFER, "--csv") == 0
    head, *rows_of_csv = csv.reader(io.StringIO(capsys.readouterr().out))
    truths = {name: {row[head.index(name)] for row in rows_of_csv} for name in ("sack", "ecn")}
    assert truths["sack"] | truths["ecn"] <= {"true", "false", ""}
    assert "true" in truths["sack"] or "false" in truths["sack"]
