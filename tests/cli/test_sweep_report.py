"""Reports of sweeps: `tcpcast sweep --out`, `tcpcast report DIRECTORY`."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tcpcast.cli import main
from tcpcast.sweeps.database import read_sweep

Capture = pytest.CaptureFixture[str]

pytest.importorskip("matplotlib")
pytest.importorskip("pyarrow")

VARY = ["--vary", "network.rtt=10ms..160ms log 3", "--vary", "network.bottleneck.loss=0.1%,1%"]
COMMAND = ["sweep", "lossy-path", *VARY, "--engine", "pftk,mathis"]


def test_sweep_writes_html_and_markdown_reports(tmp_path: Path, capsys: Capture) -> None:
    html, markdown = tmp_path / "sweep.html", tmp_path / "sweep.md"
    assert main([*COMMAND, "--out", str(html), "--out", str(markdown)]) == 0
    assert "wrote" in capsys.readouterr().err
    page, text = html.read_text(encoding="utf-8"), markdown.read_text(encoding="utf-8")
    assert page.count("<svg") == 2
    assert "network.bottleneck.loss" in page
    assert "<svg" not in text
    lines = text.splitlines()
    assert (
        "| network.rtt (ms) | network.bottleneck.loss (%) | pftk formula | mathis formula |"
        in lines
    )
    assert any(line.startswith("| 40 | 0.1 | 106.4 |") for line in lines)
    assert "12 rows: 12 answered." in lines
    assert '"network.rtt" = ["10ms", "40ms", "160ms"]' in lines
    assert any(
        "outside the domain of the model" in line and "rows, for example" in line for line in lines
    )
    command_line = next(
        line for line in lines if line.strip().startswith("tcpcast sweep lossy-path")
    )
    assert "--vary" in command_line


def test_report_of_sweep_directory_equals_sweep_report(tmp_path: Path, capsys: Capture) -> None:
    folder, first, second = tmp_path / "out", tmp_path / "a.md", tmp_path / "b.md"
    assert main([*COMMAND, "--out", str(folder), "--out", str(first)]) == 0
    assert main(["report", str(folder), "--out", str(second)]) == 0
    reports = [
        path.read_text(encoding="utf-8").split("## Reproduce")[0] for path in (first, second)
    ]
    assert reports[0] == reports[1]
    assert main(["report", str(folder), "--seed", "3", "--out", str(second)]) == 2
    assert "--seed requires a scenario, but" in capsys.readouterr().err
    assert main(["report", str(folder), str(first), "--out", str(second)]) == 2
    assert "a sweep and other files cannot be combined" in capsys.readouterr().err


def test_report_of_incomplete_sweep_notes_missing_batches(tmp_path: Path) -> None:
    folder, page = tmp_path / "out", tmp_path / "page.md"
    run = ["--set", "run.duration=21s", "--engine", "packet", "--out", str(folder)]
    assert main(["sweep", "lossy-path", "--vary", "network.rtt=20ms,40ms", *run]) in {0, 1}
    with closing(sqlite3.connect(folder / "_sweep.sqlite")) as database, database:
        database.execute("DELETE FROM answers WHERE rowid = 1")
    assert read_sweep(folder).interrupted
    assert main(["report", str(folder), "--out", str(page)]) == 1
    assert "incomplete: 1 of 2 runs are done" in page.read_text(encoding="utf-8")


def test_report_of_three_keys_has_rows_but_no_figure(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main([*COMMAND, "--vary", "traffic.flows=1,2", "--out", str(page)]) == 0
    html = page.read_text(encoding="utf-8")
    assert "No figure: figures require one or two keys" in html
    assert "<svg" not in html
    assert "traffic.flows" in html


def test_damaged_sweep_directory_is_rejected(tmp_path: Path, capsys: Capture) -> None:
    database = tmp_path / "_sweep.sqlite"
    database.write_text("not a database, but long enough" * 30, encoding="utf-8")
    assert main(["report", str(tmp_path)]) == 3
    assert f"{database} is damaged (file is not a database); remove it" in capsys.readouterr().err
    database.rename(tmp_path / "_sweep.parquet")
    assert main(["report", str(tmp_path)]) == 2
    assert "contains a sweep of an earlier version" in capsys.readouterr().err
