"""`tcpcast sweep`: printed tables, written files and exit codes."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from tcpcast.cli import main
from tcpcast.report.sweep_report import sweep_document
from tcpcast.sweeps.database import read_sweep

Capture = pytest.CaptureFixture[str]

PATH = """
[network]
rtt = "50ms"
[network.bottleneck]
rate = "10mbit"
buffer = "1bdp"
loss = "1%"
[traffic]
kind = "bulk"
flows = 1
[tcp]
stack = "rfc-newreno"
[run]
duration = "4s"
warmup = "1s"
"""
SWEEP = """
[sweep]
network.rtt = "10ms..40ms log 3"
engines = "pftk"
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "path.toml").write_text(PATH + SWEEP)
    return str(tmp_path / "path.toml")


@pytest.fixture
def plain(tmp_path: Path) -> str:
    (tmp_path / "plain.toml").write_text(PATH)
    return str(tmp_path / "plain.toml")


def answers_of(capsys: Capture) -> list[dict[str, Any]]:
    """Return the rows of the sweep that was printed as JSON."""
    answers: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["answers"]
    return answers


def test_sweep_table_of_file_is_run_and_printed(file: str, capsys: Capture) -> None:
    assert main(["sweep", file]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "Fewer than two values of the sweep can be trusted."
    assert out[2].split() == ["rtt", "goodput", "send", "rate"]
    assert out[3].split() == ["ms", "engine", "Mbit/s", "pkt/s"]
    assert [line.split()[:2] for line in out[5:8]] == [
        ["10", "pftk"], ["20", "pftk"], ["40", "pftk"],
    ]  # fmt: skip


def test_quoted_comma_is_part_of_value(plain: str, capsys: Capture) -> None:
    arguments = ["sweep", plain, "--engine", "pftk", "--json"]
    assert main([*arguments, "--vary", 'name="a,b","c"']) == 0
    assert [row["name"] for row in answers_of(capsys)] == ["a,b", "c"]
    assert main([*arguments, "--vary", 'name="a,b"']) == 2
    assert "is a single value" in capsys.readouterr().err


def test_ratios_are_percentages_in_text_and_numbers_in_data(plain: str, capsys: Capture) -> None:
    command = ["sweep", plain, "--engine", "pftk", "--vary", "network.bottleneck.loss=0.005,0.01"]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert "with loss 0.5 %" in " ".join(text.split())
    cells = [line.split()[0] for line in text.splitlines() if line.strip()]
    assert "loss" in cells
    assert "0.5" in cells
    assert main([*command, "--csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("0,0.005,pftk,")


def test_failed_rows_are_reported_and_exit_1(plain: str, capsys: Capture) -> None:
    rates = ["--vary", "network.bottleneck.rate=100kbit,10mbit"]
    rtts = ["--vary", "network.rtt=50ms,200ms"]
    assert main(["sweep", plain, *rates, *rtts, "--engine", "pftk"]) == 1
    out, err = capsys.readouterr()
    assert "1 of 4 rows have the status failed; see the column 'reason'" in err
    assert "failed" in out


def test_sweep_exits_2_if_no_engine_applies(plain: str, capsys: Capture) -> None:
    assert main(["sweep", plain, "--vary", "network.rtt=50ms,90ms", "--engine", "engset"]) == 2
    assert "not applicable" in capsys.readouterr().out


def test_run_ignores_sweep_table_with_note(file: str, capsys: Capture) -> None:
    assert main(["run", file, "--engine", "pftk"]) == 0
    assert "to run all its combinations, use `tcpcast sweep`" in capsys.readouterr().err


def test_vary_accepts_toml_syntax(plain: str, capsys: Capture) -> None:
    printed = []
    for typed in ("network.rtt=10ms..40ms log 3", '"network.rtt" = "10ms..40ms log 3"'):
        assert main(["sweep", plain, "--vary", typed, "--engine", "pftk", "--json"]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != ""


def test_csv_has_same_rows_and_columns_as_json(plain: str, capsys: Capture) -> None:
    args = ["sweep", plain, "--vary", "network.bottleneck.loss=1%,30%", "--engine", "pftk,engset"]
    assert main([*args, "--json"]) == 0
    rows = answers_of(capsys)
    assert main([*args, "--csv"]) == 0
    csv_rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [list(row) for row in csv_rows] == [list(row) for row in rows]
    for of_csv, of_json in zip(csv_rows, rows, strict=True):
        assert of_csv["engine"] == of_json["engine"]
        assert of_csv["trusted"] == {True: "true", False: "false", None: ""}[of_json["trusted"]]
        assert json.loads(of_csv["warnings"] or "[]") == of_json["warnings"]
        goodput = of_json["goodput_bps"]
        assert (float(of_csv["goodput_bps"]) if goodput is not None else None) == goodput
    assert {row["trusted"] for row in csv_rows} == {"true", "false", ""}


def test_vary_sets_latin_and_zip(plain: str, capsys: Capture) -> None:
    arguments = ["sweep", plain, "--engine", "pftk", "--json", "--vary", "network.rtt=10ms..90ms"]
    assert main([*arguments, "--vary", "latin=7"]) == 0
    assert len(answers_of(capsys)) == 7
    zipped = ["--vary", "traffic.flows=1..10 lin 10", "--vary", "zip=network.rtt,traffic.flows"]
    assert main([*arguments, *zipped]) == 0
    rows = answers_of(capsys)
    assert [row["traffic.flows"] for row in rows] == list(range(1, 11))


def test_sweep_shows_interval_warnings_of_runs(tmp_path: Path, capsys: Capture) -> None:
    short = tmp_path / "short.toml"
    short.write_text(
        'name = "short"\n[network]\nrtt = "300ms"\n'
        'bottleneck = { rate = "10mbit", buffer = "1bdp" }\n'
        '[traffic]\nkind = "bulk"\nflows = 1\n[tcp]\nstack = "linux-cubic"\n'
        '[run]\nduration = "60s"\n'
    )
    assert main(["run", str(short), "--engine", "packet", "--json"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)["answers"]
    interval_warning = answer["metrics"]["goodput_bps"]["interval_warning"]
    arguments = ["sweep", str(short), "--vary", "run.duration=60s,1000s", "--engine", "packet"]
    assert main([*arguments, "--csv"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["trusted"] for row in rows] == ["false", "true"]
    assert [row["goodput_bps_interval_warning"] for row in rows] == [interval_warning, ""]
    assert main(arguments) == 0
    out = " ".join(capsys.readouterr().out.split())
    value = f"{answer['metrics']['goodput_bps']['value'] / 1e6:.4g}"
    for shown in (
        f"{value}!",
        "! no interval, or an interval that should be checked",
        "notes",
        interval_warning,
    ):
        assert shown in out


def test_classes_have_columns_and_tables(tmp_path: Path, capsys: Capture) -> None:
    classes = "".join(
        f"[[class]]\nname = '{name}'\nflows = 2\ntraffic.kind = 'bulk'\ntcp.stack = '{stack}'\n"
        for name, stack in (("old", "linux-reno"), ("new", "linux-cubic"))
    )
    network = (
        "name = 'two'\n[network]\nrtt = '20ms'\nbottleneck = { rate = '20mbit', buffer = '1bdp' }\n"
    )
    path = tmp_path / "two.toml"
    path.write_text(f"{network}{classes}[run]\nduration = '10s'\nwarmup = '2s'\n")
    swept = ["sweep", str(path), "--vary", "network.rtt=20ms,40ms", "--engine", "packet"]
    folder = ["--out", str(tmp_path / "out")]
    assert main([*swept, "--json"]) == 0
    rows = answers_of(capsys)
    for row in rows:
        of_classes = [row[f"goodput_bps.{name}"] for name in ("old", "new")]
        assert sum(of_classes) == pytest.approx(row["goodput_bps"])
    assert main(swept) == 0
    shown = capsys.readouterr().out
    assert "class old" in shown
    assert "class new" in shown
    assert main([*swept, *folder]) == 0
    longer = ["network.rtt=20ms,30ms,40ms" if "," in word else word for word in swept]
    assert main([*longer, *folder]) == 0
    document = sweep_document(read_sweep(tmp_path / "out"), "again")
    assert "is largest with" in getattr(document.parts[0], "text", "")
    titles = [getattr(part, "title", "") for part in document.parts]
    assert "goodput, class old (Mbit/s)" in titles
