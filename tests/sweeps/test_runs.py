"""Runs of sweeps: equal bytes for all workers and after interruptions; failures are rows."""

import math
import os
import platform
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier
from typing import Any

import duckdb
import polars
import pyarrow.parquet as pq
import pytest
import tcpcast
from tcpcast.__main__ import may_need_worker_processes
from tcpcast.process import output
from tcpcast.process.errors import MachineError, TcpcastError
from tcpcast.scenario import Scenario
from tcpcast.sweeps import processes
from tcpcast.sweeps.database import DATABASE_FILE, SweepDatabase, open_database, read_sweep
from tcpcast.sweeps.prepared import prepare_sweep
from tcpcast.sweeps.worker import answer_batch

from sweeps.conftest import TABLES

Table = Callable[[Path], bytes]

VARY: dict[str, Any] = {
    "network.rtt": "20ms..100ms log 3",
    "network.bottleneck.loss": ["0.5%", "2%"],
}
ENGINES = ["packet", "pftk"]


def test_table_has_row_per_cell_replication_and_engine(path: Scenario) -> None:
    result = tcpcast.sweep(path, VARY, engines=ENGINES, replications=2, processes=1)
    rows = result.to_arrow().to_pylist()
    assert len(rows) == len(result) == 3 * 2 * (2 + 1)  # a formula is the same in each replication
    first = rows[0]
    assert (first["cell"], first["network.rtt"], first["engine"]) == (0, 0.02, "packet")
    assert [row["seed"] for row in rows if row["engine"] == "packet"][:4] == [1, 2, 1, 2]
    assert result.statuses == {"answered": 18}
    assert "completion_time_s" not in first  # no row has it


def test_formulas_have_no_replications(path: Scenario, tmp_path: Path) -> None:
    result = tcpcast.sweep(
        path, VARY, engines=["pftk", "mathis"], replications=3, processes=1, out=tmp_path / "out"
    )
    assert result.statuses == {"answered": 12}
    assert {row["replication"] for row in result.to_arrow().to_pylist()} == {0}
    vary = {"network.rtt": ["1ms", "50ms"], "network.bottleneck.rate": ["1mbit", "10mbit"]}
    result = tcpcast.sweep(path, vary, engines=ENGINES, replications=2, processes=1)
    failed = [row for row in result.to_arrow().to_pylist() if row["status"] == "failed"]
    assert [(row["engine"], row["replication"]) for row in failed if row["cell"] == 0] == [
        ("packet", 0),
        ("pftk", 0),
        ("packet", 1),
    ]


def test_rows_equal_results_of_run(path: Scenario) -> None:
    rows = tcpcast.sweep(path, VARY, engines=ENGINES, processes=1).to_arrow().to_pylist()
    cell = path.with_changes({"network.rtt": "100ms", "network.bottleneck.loss": "0.5%"})
    for answer in tcpcast.run(cell, ENGINES):
        (row,) = (r for r in rows if r["cell"] == 4 and r["engine"] == answer.engine)
        for name, metric in answer.metrics.items():
            value = None if math.isnan(metric.value) else metric.value
            assert (row[name], row.get(f"{name}_low"), row.get(f"{name}_high")) == (
                value, metric.low, metric.high,
            )  # fmt: skip
        assert row["warnings"] == answer.warnings


def test_precision_is_reached_per_cell(path: Scenario) -> None:
    precise = path.with_changes({"run.precision": "20%", "run.duration": "10s"})
    vary = {"network.bottleneck.loss": ["1%", "3%"]}
    rows = tcpcast.sweep(precise, vary, engines="packet", processes=1).to_arrow().to_pylist()
    for row in rows:
        half = (row["goodput_pps_high"] - row["goodput_pps_low"]) / 2
        assert half <= 0.21 * row["goodput_pps"]


def test_failed_cell_is_row_with_reason(path: Scenario) -> None:
    vary = {"network.rtt": ["1ms", "50ms"], "network.bottleneck.rate": ["1mbit", "10mbit"]}
    result = tcpcast.sweep(path, vary, engines=["pftk", "engset"])
    rows = result.to_arrow().to_pylist()
    assert result.statuses == {"failed": 4, "answered": 2, "not applicable": 2}
    assert "transmission times" in rows[0]["reason"]
    assert rows[-1]["reason"].startswith("TCP-Engset requires on/off traffic")
    assert rows[-1]["status"] == "not applicable"


def test_bytes_do_not_depend_on_workers(path: Scenario, tmp_path: Path, table: Table) -> None:
    folders = [tmp_path / name for name in ("one", "two", "threads")]
    tcpcast.sweep(path, VARY, engines=ENGINES, out=folders[0], processes=1)
    tcpcast.sweep(path, VARY, engines=ENGINES, out=folders[1], processes=2)
    with ThreadPoolExecutor(2) as executor:
        tcpcast.sweep(path, VARY, engines=ENGINES, out=folders[2], executor=executor)
    first, *others = map(table, folders)
    assert all(other == first for other in others)


def test_table_in_memory_equals_table_in_folder(path: Scenario, tmp_path: Path) -> None:
    tables = [
        tcpcast.sweep(path, VARY, engines=ENGINES, out=out, processes=1).to_arrow()
        for out in (None, tmp_path / "out")
    ]
    assert tables[0].schema == tables[1].schema
    assert tables[0].equals(tables[1])


def test_sweep_imports_no_slow_modules() -> None:
    """Importing each of these modules can take longer than simulating a cell."""
    command = [sys.executable, "-c", ASKED]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "4 []"


ASKED = """
import sys, tempfile, tcpcast
scenario = tcpcast.load("one-path", changes={"run.duration": "40s"})
result = tcpcast.sweep(scenario, {"network.rtt": ["20ms", "40ms"]}, engines=["packet", "pftk"],
                      processes=1, out=tempfile.mkdtemp())
slow = {"pandas", "scipy", "pyarrow.compute", "pyarrow.dataset"}
print(len(result.to_arrow()), sorted(slow & set(sys.modules)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere workers are not forked")
def test_fork_server_has_one_thread() -> None:
    script = "import importlib, pathlib\nfrom tcpcast.process import forkserver\n"
    script += "with forkserver.worker_environment():\n"
    script += "    importlib.import_module(forkserver._PRELOADED)\n"
    script += "for task in pathlib.Path('/proc/self/task').iterdir():\n"
    script += "    print((task / 'comm').read_text(), end='')\n"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [Path(sys.executable).name]


@pytest.mark.parametrize(
    ("typed", "needs"),
    [
        ("sweep one-path --vary network.rtt=10ms,20ms", True),
        ("sweep one-path --engine=packet,pftk --processes=2", True),
        ("sweep one-path --engine pftk", False),
        ("sweep one-path --engine packet --processes=1", False),
        ("sweep one-path --dask tcp://host:8786", False),
        ("run one-path --engine packet", False),
        ("sweep", False),
    ],
)
def test_commands_with_workers_are_recognised(typed: str, *, needs: bool) -> None:
    assert may_need_worker_processes(typed.replace("=", " ")) is needs


def test_database_has_computing_times(path: Scenario, tmp_path: Path) -> None:
    tcpcast.sweep(path, VARY, engines="pftk", out=tmp_path / "out")
    with closing(sqlite3.connect(tmp_path / "out" / DATABASE_FILE)) as database:
        rows = database.execute("SELECT count(*), min(wall_s), min(host) FROM answers").fetchone()
    assert rows == (6, pytest.approx(0.05, abs=0.05), platform.node())


@pytest.mark.parametrize("by_class", [False, True], ids=["total", "by class"])
def test_every_reader_of_parquet_reads_the_rows(
    path: Scenario, tmp_path: Path, *, by_class: bool
) -> None:
    if by_class:
        classes = [{"name": name, "flows": 1} for name in "ab"]
        path = Scenario.from_dict({**TABLES, "traffic": {"kind": "bulk"}, "class": classes})
    out = tmp_path / "cells"
    result = tcpcast.sweep(path, VARY, engines="packet", out=out, processes=1)
    written = out / "results.parquet"
    frame = polars.read_parquet(written)
    assert frame.height == len(result) == 6
    assert frame["network.rtt"].to_list() == result.to_arrow()["network.rtt"].to_pylist()
    assert polars.scan_parquet(out / "*.parquet").collect().equals(frame)
    pandas = pytest.importorskip("pandas")
    assert len(pandas.read_parquet(written)) == len(pandas.read_parquet(out)) == 6
    query = f"SELECT count(*) FROM read_parquet('{out}/*.parquet')"
    assert duckdb.execute(query).fetchone() == (6,)


def test_existing_answers_are_not_computed_again(
    path: Scenario, tmp_path: Path, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    tcpcast.sweep(path, VARY, engines=ENGINES, out=out, processes=1)
    expected = table(out)
    with closing(sqlite3.connect(out / DATABASE_FILE)) as database, database:
        database.execute("DELETE FROM answers WHERE rowid IN (3, 8)")  # pftk and packet
    (out / ".tcpcast-left").write_bytes(b"half")
    computed = []

    def answer_and_record(spec: Any, batch: Any) -> Any:
        computed.append(batch[0].cell)
        return answer_batch(spec, batch)

    monkeypatch.setattr(processes, "answer_batch", answer_and_record)
    shares: list[float] = []
    tcpcast.sweep(path, VARY, engines=ENGINES, out=out, processes=1, progress=shares.append)
    assert computed == [1, 3]
    assert shares == [4 / 6, 5 / 6, 1.0]
    assert table(out) == expected
    assert sorted(file.name for file in out.iterdir()) == [DATABASE_FILE, "results.parquet"]


def test_damaged_database_is_refused_in_one_line(path: Scenario, tmp_path: Path) -> None:
    out = tmp_path / "out"
    tcpcast.sweep(path, VARY, engines=ENGINES, out=out, processes=1)
    database = out / DATABASE_FILE
    whole = database.read_bytes()
    for damaged in (b"SQLite" + bytes(4096), whole[:-4096], bytes(8192) + whole[8192:], b"x" * 99):
        database.write_bytes(damaged)
        with pytest.raises(MachineError) as refused:
            read_sweep(out)
        with pytest.raises(MachineError) as refused_again:
            tcpcast.sweep(path, VARY, out=out)
        assert str(refused.value) == str(refused_again.value)
        assert str(refused.value).startswith(f"{database} is damaged")
        assert "\n" not in str(refused.value)
    database.write_bytes(whole)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE answers SET answer = '{\"engine\": 7, }' WHERE rowid = 3")
    with pytest.raises(MachineError, match="an answer cannot be read"):
        read_sweep(out)


def test_sweep_rejects_folder_with_other_files_or_running_sweep(
    path: Scenario, tmp_path: Path
) -> None:
    for name, what in (("letter.txt", "other files"), ("_sweep.parquet", "a sweep of an earlier")):
        (tmp_path / "used").mkdir(exist_ok=True)
        (tmp_path / "used" / name).write_text("dear")
        with pytest.raises(TcpcastError, match=f"contains {what}"):
            tcpcast.sweep(path, VARY, engines="pftk", out=tmp_path / "used")
    plan = prepare_sweep(path, VARY, engines="pftk")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / f"{output.TEMPORARY_PREFIX}1").touch()  # of another sweep that starts
    with open_database(plan, tmp_path / "out"):
        assert read_sweep(tmp_path / "out").done == 0
        with pytest.raises(TcpcastError, match="another sweep is writing"):
            tcpcast.sweep(path, VARY, engines="pftk", out=tmp_path / "out")


def test_one_of_two_simultaneous_sweeps_gets_new_folder(path: Scenario, tmp_path: Path) -> None:
    plan = prepare_sweep(path, VARY, engines="pftk")

    def start(barrier: Barrier, folder: Path) -> str:
        barrier.wait()
        try:
            with open_database(plan, folder):
                barrier.wait()
                return "locked"
        except TcpcastError as error:
            barrier.wait()
            return str(error)

    with ThreadPoolExecutor(2) as pool:
        for number in range(50):
            folder = tmp_path / f"{number}"
            ends = sorted(pool.map(start, [Barrier(2)] * 2, [folder] * 2))
            assert ends[0].startswith(f"another sweep is writing into {folder}"), ends
            assert ends[1] == "locked"


def test_full_disk_keeps_finished_runs(
    path: Scenario, tmp_path: Path, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, expected = tmp_path / "out", tmp_path / "whole"
    tcpcast.sweep(path, VARY, engines=ENGINES, out=expected, processes=1)
    written: list[int] = []

    def write_or_fail(database: SweepDatabase, answers: Any) -> None:
        if len(written) == 3:  # the definition, and two runs
            database._execute("PRAGMA max_page_count = 1")
            answers = [(*answer[:2], "x" * 99_999, *answer[3:]) for answer in answers]
        written.append(len(answers))
        write(database, answers)

    write = SweepDatabase.write
    with monkeypatch.context() as patch:
        patch.setattr(SweepDatabase, "write", write_or_fail)
        with pytest.raises(MachineError) as caught:
            tcpcast.sweep(path, VARY, engines=ENGINES, out=out, processes=1)
    assert "disk is full; 2 of 6 runs are complete" in str(caught.value)
    tcpcast.sweep(path, VARY, engines=ENGINES, out=out, processes=1)
    assert table(out) == table(expected)


def test_sweep_rejects_unwritable_folder_before_running(path: Scenario, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match="cannot write"):
        tcpcast.sweep(path, VARY, engines="pftk", out=tmp_path / "file" / "below")


SCRIPT = """
import sys, tcpcast
from tcpcast.scenario import Scenario
if __name__ == "__main__":
    tcpcast.sweep(Scenario.from_dict({tables}), {vary}, engines={engines}, processes=2,
                  out=sys.argv[1])
"""


def start_sweep(script: Path, out: Path) -> subprocess.Popen[bytes]:
    if not script.exists():
        script.write_text(SCRIPT.format(tables=TABLES, vary=VARY, engines=ENGINES))
    return subprocess.Popen([sys.executable, script, out], start_new_session=True)


def kill_and_resume(tmp_path: Path, out: Path, after: float, table: Table) -> bytes:
    process = start_sweep(tmp_path / "swept.py", out)
    time.sleep(after)
    process.send_signal(signal.SIGKILL)  # its workers end by themselves
    process.wait()
    assert start_sweep(tmp_path / "swept.py", out).wait() == 0
    return table(out)


@pytest.mark.long
def test_killed_sweep_resumes_to_same_bytes(tmp_path: Path, table: Table) -> None:
    """Stop at the first run; see the test below."""
    began = time.perf_counter()
    assert start_sweep(tmp_path / "swept.py", tmp_path / "whole").wait() == 0
    took = time.perf_counter() - began
    expected = table(tmp_path / "whole")
    moments = random.Random(1)
    for kill in range(20):
        after = took * moments.uniform(0.3, 1.0)
        assert kill_and_resume(tmp_path, tmp_path / f"{kill}", after, table) == expected


def test_workers_end_with_killed_parent_and_sweep_resumes(
    path: Scenario, tmp_path: Path, table: Table
) -> None:
    process = start_sweep(tmp_path / "swept.py", tmp_path / "out")
    deadline = time.monotonic() + 60
    while not _count_done(tmp_path / "out") and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    while _session(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _session(process.pid) == []
    assert _count_done(tmp_path / "out") >= 1
    for name in ("out", "whole"):
        tcpcast.sweep(path, VARY, engines=ENGINES, out=tmp_path / name, processes=1)
    expected = table(tmp_path / "whole")
    assert table(tmp_path / "out") == expected


def _count_done(out: Path) -> int:
    """Return the number of finished runs of a sweep, which may be running."""
    try:
        return read_sweep(out).done
    except (TcpcastError, MachineError):  # the database is just created
        return 0


def _session(leader: int) -> list[int]:
    """Return the living processes of a session except for its leader."""
    processes = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            status = Path(f"/proc/{name}/stat").read_text()
        except OSError:
            continue
        state, _, _, session = status.rpartition(")")[2].split()[:4]
        if int(session) == leader and state != "Z":
            processes.append(int(name))
    return processes


def test_ctrl_c_keeps_finished_runs_and_sweep_resumes(
    path: Scenario, tmp_path: Path, table: Table
) -> None:
    def interrupt(share: float) -> None:
        if share >= 0.5:
            raise KeyboardInterrupt

    out, expected = tmp_path / "out", tmp_path / "whole"
    given: dict[str, Any] = {"vary": VARY, "engines": ENGINES}
    result = tcpcast.sweep(path, **given, out=out, processes=2, progress=interrupt)
    assert result.interrupted
    assert (result.done, result.runs) == (3, 6)
    assert len(result) == pq.read_metadata(out / "results.parquet").num_rows == 6
    assert read_sweep(out).table.equals(result.table)
    assert not tcpcast.sweep(path, **given, out=out, processes=2).interrupted
    tcpcast.sweep(path, **given, out=expected, processes=1)
    assert table(out) == table(expected)


NO_THREADS = """
import sys, threading, tcpcast
from concurrent.futures import process

def start(self):
    raise RuntimeError("can't start new thread")

if __name__ == "__main__":
    process._ExecutorManagerThread.start = start
    from tcpcast.cli import main
    sys.exit(main(["sweep", "one-path", "--vary=network.rtt=10ms,20ms", "--engine=packet"]))
"""


def test_thread_without_memory_gives_one_error_line(tmp_path: Path) -> None:
    script = tmp_path / "swept.py"
    script.write_text(NO_THREADS)
    command = [sys.executable, str(script)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            _, errors = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 3
    (line,) = errors.splitlines()
    assert line.startswith("tcpcast: cannot start worker processes: can't start new thread; raise")
