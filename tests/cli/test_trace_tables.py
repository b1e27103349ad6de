"""`tcpcast trace --table`, `--connection` and `--parquet`: complete and filtered tables."""

import csv
import io
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import tcpcast
from tcpcast.captures import Capture, iter_plain_rows
from tcpcast.captures.capture_tables import (
    TABLE_NAMES,
    restrict_to_directions,
    rows_of_direction,
    tables_by_name,
)
from tcpcast.cli import main
from tcpcast.cli.trace import write_parquet

Output = pytest.CaptureFixture[str]

ROOT = Path(__file__).parents[2]
TRANSFER = ROOT / "crates" / "trace" / "tests" / "data" / "transfer.pcap.gz"


def capture_with_two_directions() -> Capture:
    """Return a capture with two directions that differ only in their connection number."""
    capture = tcpcast.trace(TRANSFER)
    for table in tables_by_name(capture).values():
        length = next(iter(table.values())).size
        for name, column in table.items():
            table[name] = np.concatenate([column, column])
        key = "connection" if "connection" in table else "direction"
        table[key] = np.repeat([0, 1], length)
    capture.connections["connection"] = np.array([4, 9])
    capture.connection_count = 2
    return capture


NO_ROWS = ("requests", "services", "failed", "interruptions")
"""Tables without rows for one upload."""


@pytest.mark.parametrize("name", TABLE_NAMES)
def test_each_table_is_printed_as_csv_and_json(name: str, capsys: Output) -> None:
    expected = tables_by_name(tcpcast.trace(TRANSFER))[name]
    assert main(["trace", str(TRANSFER), str(TRANSFER), "--table", name]) == 0
    csv_rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    length = next(iter(expected.values())).size
    assert length > 0 or name in NO_ROWS
    assert len(csv_rows) == 2 * length
    assert all(list(row)[: len(expected) + 1] == ["file", *expected] for row in csv_rows)
    assert main(["trace", str(TRANSFER), "--table", name, "--json"]) == 0
    (capture,) = json.loads(capsys.readouterr().out)["captures"]
    more_tables = ["services", "failed", "interruptions"] if name == "connections" else []
    assert list(capture) == [
        "file",
        "verdict",
        "findings",
        "subject",
        "warnings",
        "rest",
        "limits",
        *more_tables,
        name,
    ]
    # The advice is an additional key of each row.
    assert [{key: row[key] for key in expected} for row in capture[name]] == list(
        iter_plain_rows(expected)
    )


def test_selected_directions_are_renumbered() -> None:
    capture = capture_with_two_directions()
    second = restrict_to_directions(capture, np.array([1]))
    assert second.connections["connection"].tolist() == [9]
    assert second.connection_count == 1
    assert set(second.retransmissions["direction"].tolist()) == {0}
    assert second.retransmissions["time"].size * 2 == capture.retransmissions["time"].size
    assert second.segments == capture.connections["packets"][1]
    assert capture.connections["connection"].size == 2
    part = rows_of_direction(capture.intervals, 1)
    assert "direction" not in part
    assert part["bytes"].sum() == capture.connections["bytes"][1]


def test_connection_option_selects_by_number_or_address(
    capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tcpcast.cli.trace.read", lambda _file, **_more: capture_with_two_directions()
    )
    assert main(["trace", "two.pcap", "--connection", "9", "--json"]) == 0
    (capture,) = json.loads(capsys.readouterr().out)["captures"]
    assert [row["connection"] for row in capture["connections"]] == [9]
    assert main(["trace", "two.pcap", "--connection", "9"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert " in the shown directions of 1 connection " in output
    source = str(capture_with_two_directions().connections["src"][0])
    assert main(["trace", "two.pcap", "--connection", source, "--csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_parquet_files_equal_tables(tmp_path: Path, capsys: Output) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert main(["trace", str(TRANSFER), str(TRANSFER), "--parquet", str(tmp_path / "out")]) == 0
    out, err = capsys.readouterr()
    assert out.count("TCP segments") == 2
    expected = tables_by_name(tcpcast.trace(TRANSFER))
    for name in TABLE_NAMES:
        path = tmp_path / "out" / f"{name}.parquet"
        assert f"tcpcast: wrote {path}\n" in err
        frame = parquet.read_table(path)
        table = expected[name]
        assert frame["file"].to_pylist() == [str(TRANSFER)] * frame.num_rows
        key = dict.fromkeys(("requests", "failed", "interruptions"), "connection")
        key["services"] = "server"
        assert frame.column_names[:2] == ["file", key.get(name, "direction")]
        for column, values in table.items():
            if values.dtype.kind == "M":
                assert str(frame.schema.field(column).type) == "timestamp[ns, tz=UTC]"
                since = frame[column].cast("int64").to_pylist()
                assert since == 2 * values.astype(np.int64).tolist()
            else:
                expected_values = [row[column] for row in iter_plain_rows(table)]
                assert frame[column].to_pylist() == 2 * expected_values, column


def test_parquet_types_do_not_depend_on_rows(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    full = tcpcast.trace(TRANSFER)
    empty = restrict_to_directions(full, np.array([], dtype=np.intp))
    write_parquet([full], tmp_path / "full")
    write_parquet([empty], tmp_path / "empty")
    for name in TABLE_NAMES:
        one, other = (
            parquet.read_table(tmp_path / which / f"{name}.parquet") for which in ("full", "empty")
        )
        assert one.schema == other.schema
        assert other.num_rows == 0
        assert one.num_rows > 0 or name in NO_ROWS
    both = write_parquet([empty, full], tmp_path / "both")
    assert parquet.read_table(both[0]).num_rows == 1


def test_same_capture_as_second_capture_prints_warning(capsys: Output) -> None:
    assert main(["trace", str(TRANSFER), "--second-capture", str(TRANSFER)]) == 0
    assert "not copies of one capture" in " ".join(capsys.readouterr().out.split())


def test_comparison_of_captures_covers_selected_directions() -> None:
    both = tcpcast.trace(TRANSFER, after=TRANSFER)
    none = restrict_to_directions(both, np.array([], dtype=np.intp))
    assert both.between["seen_at_both"].size == 1
    assert not none.between


@pytest.mark.skipif(sys.platform != "linux", reason="names are Unicode there")
def test_file_name_that_is_not_utf8_is_accepted(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    odd = tmp_path / os.fsdecode(b"odd\xff.pcap.gz")
    odd.write_bytes(TRANSFER.read_bytes())
    target = tmp_path / "odd.toml"
    assert main(["trace", str(odd), "--parquet", str(tmp_path), "--scenario", str(target)]) == 0
    assert "odd?.pcap.gz" in target.read_text(encoding="utf-8")
