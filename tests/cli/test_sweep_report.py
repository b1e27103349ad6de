"""Reports of sweeps: `tcpcast sweep --html` and `--markdown`, `tcpcast report DIRECTORY`."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from tcpcast.cli import main
from tcpcast.sweeps.database import read_sweep

if TYPE_CHECKING:
    from pathlib import Path

    Capture = pytest.CaptureFixture[str]

pytest.importorskip("matplotlib")
pytest.importorskip("pyarrow")

VARY = ["--vary", "network.rtt=10ms..160ms log 3", "--vary", "network.bottleneck.loss=0.1%,1%"]
COMMAND = ["sweep", "lossy-path", *VARY, "--engine", "pftk,mathis"]


def test_sweep_writes_html_and_markdown_reports(tmp_path: Path, capsys: Capture) -> None:
    html, markdown = tmp_path / "sweep.html", tmp_path / "sweep.md"
    assert main([*COMMAND, "--html", str(html), "--markdown", str(markdown)]) == 0
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
    assert main([*COMMAND, "--out", str(folder), "--markdown", str(first)]) == 0
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
    assert main([*COMMAND, "--vary", "traffic.flows=1,2", "--html", str(page)]) == 0
    html = page.read_text(encoding="utf-8")
    assert "No figure: figures require one or two keys" in html
    assert "<svg" not in html
    assert "traffic.flows" in html


def test_sweep_report_escapes_names(tmp_path: Path) -> None:
    page, file = tmp_path / "page.html", tmp_path / "s.toml"
    assert main(["new", "lossy-path", "--help"]) == 0
    file.write_text(
        'name = "<script>alert(1)</script>"\n[network]\nrtt = "60ms"\n[network.bottleneck]\n'
        'rate = "1gbit"\nbuffer = "1bdp"\nloss = "1%"\n[traffic]\nkind = "bulk"\nflows = 1\n'
        '[tcp]\nstack = "rfc-newreno"\n[run]\nduration = "60s"\n',
        encoding="utf-8",
    )
    vary = ["--vary", "network.rtt=10ms,20ms", "--engine", "pftk"]
    assert main(["sweep", str(file), *vary, "--html", str(page)]) == 0
    html = page.read_text(encoding="utf-8")
    assert "<script" not in html
    assert re.search("&lt;script&gt;", html)


def test_level_without_figure_is_rejected(capsys: Capture) -> None:
    assert main([*COMMAND, "--level", "goodput_bps=50mbit"]) == 2
    assert "add --plot DIR or --html FILE" in capsys.readouterr().err


def test_damaged_sweep_directory_is_rejected(tmp_path: Path, capsys: Capture) -> None:
    database = tmp_path / "_sweep.sqlite"
    database.write_text("not a database, but long enough" * 30, encoding="utf-8")
    assert main(["report", str(tmp_path)]) == 3
    assert f"{database} is damaged (file is not a database); remove it" in capsys.readouterr().err
    database.rename(tmp_path / "_sweep.parquet")
    assert main(["report", str(tmp_path)]) == 2
    assert "contains a sweep of a former version" in capsys.readouterr().err


def test_sweep_report_shows_three_worst_warnings(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    engines = "mathis,td-only,pftk,pftk-approx,parallel,cubic-response"
    command = ["sweep", "lossy-path", "--vary", "network.bottleneck.loss=20%,30%"]
    assert main([*command, "--engine", engines, "--markdown", str(page)]) == 0
    lines = page.read_text(encoding="utf-8").splitlines()
    assert sum("rows, for example: outside the domain of the model" in line for line in lines) == 3
    assert any(line.endswith("more messages in the columns reason and warnings") for line in lines)
