"""SQL queries of a sweep can read only its parts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import tcpcast
from tcpcast.cli import main
from tcpcast.scenario import Scenario


@pytest.fixture
def folder(path: Scenario, tmp_path: Path) -> Path:
    vary = {"network.rtt": ["10ms", "20ms", "40ms"]}
    tcpcast.sweep(path, vary, engines=["pftk", "mathis"], out=tmp_path / "out")
    return tmp_path / "out"


def test_query_returns_rows_by_key_and_engine(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = """SELECT "network.rtt" AS rtt, goodput_bps FROM sweep
             WHERE engine = 'pftk' AND "network.rtt" > 0.015 ORDER BY rtt"""
    assert main(["query", str(folder), sql, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["rtt"] for row in rows] == [0.02, 0.04]
    assert rows[0]["goodput_bps"] > rows[1]["goodput_bps"]


@pytest.mark.parametrize("sql", ["", " ", "/* all */"])
def test_query_without_result_is_an_error(
    folder: Path, sql: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["query", str(folder), sql]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("tcpcast: the query has no result\n  Use a query such as SELECT ")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('{}/results.parquet')",
        "COPY sweep TO '{}/copy.csv'",
        "ATTACH '{}/other.db'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SELECT * FROM table",
        "SELECT network.rtt FROM sweep",
        "DROP VIEW nothing",
        "SELEC 1",
    ],
)
def test_query_cannot_access_other_data(folder: Path, sql: str) -> None:
    before = sorted(folder.iterdir())
    assert main(["query", str(folder), sql.format(folder)]) == 2
    assert sorted(folder.iterdir()) == before


def test_query_rejects_folder_without_sweep(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["query", str(tmp_path), "SELECT 1"]) == 2
    assert "contains no sweep" in capsys.readouterr().err


def test_query_prints_table_json_or_csv(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["query", str(folder), "SELECT count(*) AS rows FROM sweep"]) == 0
    assert capsys.readouterr().out.split()[-1] == "6"
    assert main(["query", str(folder), "SELECT count(*) AS rows FROM sweep", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"rows": 6}]
    counted = "SELECT engine, count(*) AS rows, NULL AS none FROM sweep GROUP BY engine ORDER BY 1"
    assert main(["query", str(folder), counted, "--csv"]) == 0
    assert capsys.readouterr().out == "engine,rows,none\nmathis,3,\npftk,3,\n"
    beyond = "SELECT 1 / 0.0 AS x, [1.5, 'nan'::DOUBLE] AS y"
    assert main(["query", str(folder), beyond, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"x": None, "y": [1.5, None]}]
    assert main(["query", str(folder), "SELECT network.rtt FROM sweep"]) == 2
    assert 'WHERE "network.rtt" >' in capsys.readouterr().err


def test_query_command_prints_only_rows(folder: Path) -> None:
    """DuckDB's binding would print messages about leaked objects at the end of a process."""
    sql = "SELECT count(*) AS rows FROM sweep"
    command = [sys.executable, "-m", "tcpcast", "query", str(folder), sql]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.split()[0] == "rows"
