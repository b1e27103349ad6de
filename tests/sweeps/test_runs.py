"""Runs of sweeps: equal bytes for all workers and after interruptions; failures are rows."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import TYPE_CHECKING, Any

import duckdb
import polars
import pyarrow.parquet as pq
import pytest
import tcpcast
from tcpcast import output
from tcpcast.__main__ import may_need_worker_processes
from tcpcast.errors import MachineError, TcpcastError
from tcpcast.scenario import Scenario
from tcpcast.sweeps import prepare_sweep, processes
from tcpcast.sweeps.folder import SweepFolder, read_definition, read_wall_times
from tcpcast.sweeps.query import query_results
from tcpcast.sweeps.table import MIN_COMPRESSED_ROWS
from tcpcast.sweeps.worker import answer_batch

from sweeps.conftest import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable

    Contents = Callable[[Path], dict[str, bytes]]

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
            assert (row[name], row.get(f"{name}_low"), row.get(f"{name}_high")) == (
                metric.value, metric.low, metric.high,
            )  # fmt: skip
        assert row["warnings"] == answer.warnings


def test_precision_is_reached_per_cell(path: Scenario) -> None:
    precise = path.with_changes({"run.precision": "20%", "run.duration": "10s"})
    vary = {"network.bottleneck.loss": ["1%", "3%"]}
    rows = tcpcast.sweep(precise, vary, engines="packet", processes=1).to_arrow().to_pylist()
    for row in rows:
        half = (row["goodput_pps_high"] - row["goodput_pps_low"]) / 2
        assert half <= 0.21 * row["goodput_pps"]


def test_pandas_and_polars_have_same_values(path: Scenario) -> None:
    result = tcpcast.sweep(path, VARY, engines="pftk")
    table = result.to_arrow()
    assert result.to_pandas()["send_rate_pps"].tolist() == table["send_rate_pps"].to_pylist()
    assert result.to_polars()["network.rtt"].to_list() == table["network.rtt"].to_pylist()


def test_failed_cell_is_row_with_reason(path: Scenario) -> None:
    vary = {"network.rtt": ["1ms", "50ms"], "network.bottleneck.rate": ["1mbit", "10mbit"]}
    result = tcpcast.sweep(path, vary, engines=["pftk", "engset"])
    rows = result.to_arrow().to_pylist()
    assert result.statuses == {"failed": 4, "answered": 2, "not applicable": 2}
    assert "transmission times" in rows[0]["reason"]
    assert rows[-1]["reason"].startswith("TCP-Engset needs on/off traffic")
    assert rows[-1]["status"] == "not applicable"


def test_bytes_do_not_depend_on_workers(path: Scenario, tmp_path: Path, contents: Contents) -> None:
    folders = [tmp_path / name for name in ("one", "two", "threads")]
    tcpcast.sweep(path, VARY, engines=ENGINES, out=folders[0], processes=1)
    tcpcast.sweep(path, VARY, engines=ENGINES, out=folders[1], processes=2)
    with ThreadPoolExecutor(2) as executor:
        tcpcast.sweep(path, VARY, engines=ENGINES, out=folders[2], executor=executor)
    first, *others = map(contents, folders)
    assert len(first) == 6 + 1
    assert all(other == first for other in others)


def test_table_in_memory_equals_table_in_folder(path: Scenario, tmp_path: Path) -> None:
    tables = [
        tcpcast.sweep(path, VARY, engines=ENGINES, out=out, processes=1).to_arrow()
        for out in (None, tmp_path / "out")
    ]
    assert tables[0].schema == tables[1].schema
    assert tables[0].equals(tables[1])


@pytest.mark.parametrize("cells", [MIN_COMPRESSED_ROWS - 1, MIN_COMPRESSED_ROWS])
def test_parts_of_many_rows_are_compressed(path: Scenario, tmp_path: Path, cells: int) -> None:
    vary = {"network.bottleneck.loss": f"0.1%..5% log {cells}"}
    tcpcast.sweep(path, vary, engines="pftk", out=tmp_path)
    group = pq.read_metadata(tmp_path / "part-000000.parquet").row_group(0)
    codec = "ZSTD" if cells == MIN_COMPRESSED_ROWS else "UNCOMPRESSED"
    assert {group.column(i).compression for i in range(group.num_columns)} == {codec}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere workers are not forked")
def test_fork_server_has_one_thread_and_preloaded_modules() -> None:
    script = "import pathlib, sys, tcpcast.preload\n"
    script += "for task in pathlib.Path('/proc/self/task').iterdir():\n"
    script += "    print((task / 'comm').read_text(), end='')\n"
    script += "print({'tcpcast.engines.packet', 'pyarrow.parquet'} <= set(sys.modules))\n"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    *threads, imported = done.stdout.splitlines()
    # The thread of pyarrow's allocator supports forks: it stops before each one (jemalloc's
    # pthread_atfork).
    assert [name for name in threads if not name.startswith("jemalloc")] == [
        Path(sys.executable).name
    ]
    assert imported == "True"


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


def test_part_metadata_and_side_file(path: Scenario, tmp_path: Path) -> None:
    tcpcast.sweep(path, VARY, engines="pftk", out=tmp_path / "out")
    marks = pq.read_metadata(tmp_path / "out" / "part-000000.parquet").metadata
    definition = read_definition(tmp_path / "out")
    assert definition is not None
    assert marks[b"tcpcast.sweep"].decode() == definition["sweep"]
    assert marks[b"tcpcast.version"].decode() == tcpcast.__version__
    assert marks[b"tcpcast.seed"] == b"1"
    assert json.loads(marks[b"tcpcast.scenario"]) == definition["scenario"]
    (record,) = read_wall_times(tmp_path / "out")
    assert set(record) == {"part", "host", "date", "wall_s"}


@pytest.mark.parametrize("by_class", [False, True], ids=["total", "by class"])
def test_every_reader_of_parquet_folders_reads_the_rows(
    path: Scenario, tmp_path: Path, *, by_class: bool
) -> None:
    if by_class:
        classes = [{"name": name, "flows": 1} for name in "ab"]
        path = Scenario.from_dict({**TABLES, "traffic": {"kind": "bulk"}, "class": classes})
    out = tmp_path / "cells"
    result = tcpcast.sweep(path, VARY, engines="packet", out=out, processes=1)
    frame = polars.read_parquet(out)
    assert frame.height == len(result) == 6
    assert frame["network.rtt"].to_list() == result.to_arrow()["network.rtt"].to_pylist()
    assert polars.scan_parquet(out).collect().equals(frame)
    assert polars.read_parquet(out / "*.parquet").equals(frame)
    assert len(pytest.importorskip("pandas").read_parquet(out)) == 6
    query = f"SELECT count(*) FROM read_parquet('{out}/*')"
    assert duckdb.execute(query).fetchone() == (6,)


def test_folder_of_former_version_is_resumed(
    path: Scenario, tmp_path: Path, contents: Contents, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    how: dict[str, Any] = {"engines": ENGINES, "processes": 1}
    tcpcast.sweep(path, VARY, out=out, **how)
    expected, times = contents(out), read_wall_times(out)
    definition = read_definition(out)
    for name in ("_sweep.parquet", "_wall.parquet"):
        (out / name).unlink()
    (out / "_sweep.json").write_text(json.dumps(definition, indent=1, sort_keys=True) + "\n")
    (out / "_wall.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in times))
    assert read_definition(out) == definition
    with monkeypatch.context() as patch:
        patch.setattr(processes, "answer_batch", None)  # no cell is computed again
        tcpcast.sweep(path, VARY, out=out, **how)
    assert contents(out) == expected
    assert read_wall_times(out) == times
    assert not list(out.glob("*.json*"))


def test_existing_parts_are_not_run_again(
    path: Scenario, tmp_path: Path, contents: Contents, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    tcpcast.sweep(path, VARY, engines=ENGINES, out=out, processes=1)
    expected = contents(out)
    (out / "part-000003.parquet").unlink()
    (out / "part-000001.parquet").write_bytes(expected["part-000001.parquet"][:100])
    (out / ".tcpcast-left").write_bytes(b"half")
    answered_cells = []

    def answer_and_record(run_request: Any, cells: Any) -> Any:
        answered_cells.append(cells[0].cell)
        return answer_batch(run_request, cells)

    monkeypatch.setattr(processes, "answer_batch", answer_and_record)
    shares: list[float] = []
    tcpcast.sweep(path, VARY, engines=ENGINES, out=out, processes=1, progress=shares.append)
    assert answered_cells == [1, 3]
    assert shares == [4 / 6, 5 / 6, 1.0]
    assert contents(out) == expected


def test_damaged_parts_are_run_again(path: Scenario, tmp_path: Path, contents: Contents) -> None:
    out = tmp_path / "out"
    tcpcast.sweep(path, VARY, engines=ENGINES, out=out, processes=1)
    expected = contents(out)
    part = out / "part-000001.parquet"
    size = len(expected[part.name])
    for offset in range(4, size, size // 40):
        damaged = bytearray(expected[part.name])
        damaged[offset] ^= 1 << offset % 8
        part.write_bytes(damaged)
        tcpcast.sweep(path, VARY, engines=ENGINES, out=out, processes=1)
        assert contents(out) == expected, offset


def test_damaged_parts_are_refused_in_one_line(
    path: Scenario, tmp_path: Path, contents: Contents
) -> None:
    out = tmp_path / "out"
    results = tcpcast.sweep(path, VARY, engines=ENGINES, out=out, processes=1)
    part = out / "part-000001.parquet"
    whole = contents(out)[part.name]
    for offset in range(4, len(whole), len(whole) // 40):
        damaged = bytearray(whole)
        damaged[offset] ^= 1 << offset % 8
        part.write_bytes(damaged)
        with pytest.raises(MachineError) as refused:
            results.to_arrow()
        assert str(refused.value).startswith(f"{part} is damaged")
        assert "\n" not in str(refused.value)
    with pytest.raises(MachineError, match="is damaged"):
        query_results(out, "SELECT count(*) FROM cells")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"engines": "mathis"}, "other engines"),
        ({"replications": 2}, "another number of replications"),
        ({"vary": {"network.rtt": ["1s"]}}, "other keys or values"),
    ],
)
def test_sweep_rejects_folder_of_another_sweep(
    path: Scenario, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    first: dict[str, Any] = {"vary": VARY, "engines": ENGINES, "out": tmp_path / "out"}
    tcpcast.sweep(path, **first)
    with pytest.raises(TcpcastError, match=message):
        tcpcast.sweep(path, **{**first, **change})
    with pytest.raises(TcpcastError, match="another scenario"):
        tcpcast.sweep(path.with_changes({"run.seed": 2}), **first)


def test_sweep_rejects_folder_with_other_files_or_running_sweep(
    path: Scenario, tmp_path: Path
) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(TcpcastError, match=r"is not a sweep: it contains letter\.txt"):
        tcpcast.sweep(path, VARY, engines="pftk", out=tmp_path)
    plan = prepare_sweep(path, VARY, engines="pftk")
    with (
        SweepFolder(tmp_path / "out").locked(plan.definition, plan.batches),
        pytest.raises(TcpcastError, match="another sweep is writing"),
    ):
        tcpcast.sweep(path, VARY, engines="pftk", out=tmp_path / "out")


def test_one_of_two_simultaneous_sweeps_gets_new_folder(path: Scenario, tmp_path: Path) -> None:
    plan = prepare_sweep(path, VARY, engines="pftk")

    def start(barrier: Barrier, folder: Path) -> str:
        barrier.wait()
        try:
            with SweepFolder(folder).locked(plan.definition, plan.batches):
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


def test_full_disk_keeps_complete_parts(
    path: Scenario, tmp_path: Path, contents: Contents, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, expected = tmp_path / "out", tmp_path / "whole"
    tcpcast.sweep(path, VARY, engines=ENGINES, out=expected, processes=1)

    def full(temporary: Path, named: Path, *, replaces: bool) -> None:
        if named.name == "part-000002.parquet":
            raise OSError(28, "No space left on device")
        give(temporary, named, replaces=replaces)

    give = output._rename_to_final_name
    with monkeypatch.context() as patch:
        patch.setattr(output, "_rename_to_final_name", full)
        with pytest.raises(MachineError) as caught:
            tcpcast.sweep(path, VARY, engines=ENGINES, out=out, processes=1)
    assert "No space left on device; 2 of 6 parts are complete" in str(caught.value)
    assert not list(out.glob(".tcpcast-*"))
    tcpcast.sweep(path, VARY, engines=ENGINES, out=out, processes=1)
    assert contents(out) == contents(expected)


def test_sweep_rejects_unwritable_folder_before_running(path: Scenario, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match="cannot write"):
        tcpcast.sweep(path, VARY, engines="pftk", out=tmp_path / "file" / "below")


def test_missing_pyarrow_names_package(path: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MachineError, match="pip install pyarrow") as caught:
        tcpcast.sweep(path, VARY, engines="pftk")
    assert caught.value.exit_code == 3


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


def assert_parts_are_complete(out: Path) -> None:
    parts = [path for path in out.glob("*") if not path.name.startswith((".", "_"))]
    assert all(path.name.endswith(".parquet") for path in parts)
    for path in parts:
        pq.read_table(path)


def kill_and_resume(tmp_path: Path, out: Path, after: float, contents: Contents) -> Any:
    process = start_sweep(tmp_path / "swept.py", out)
    time.sleep(after)
    process.send_signal(signal.SIGKILL)  # its workers end by themselves
    process.wait()
    assert_parts_are_complete(out)
    assert start_sweep(tmp_path / "swept.py", out).wait() == 0
    return contents(out)


@pytest.mark.long
def test_killed_sweep_resumes_to_same_bytes(tmp_path: Path, contents: Contents) -> None:
    """Stop at the first part; see the test below."""
    began = time.perf_counter()
    assert start_sweep(tmp_path / "swept.py", tmp_path / "whole").wait() == 0
    took = time.perf_counter() - began
    expected = contents(tmp_path / "whole")
    moments = random.Random(1)
    for kill in range(20):
        after = took * moments.uniform(0.3, 1.0)
        assert kill_and_resume(tmp_path, tmp_path / f"{kill}", after, contents) == expected


def test_workers_end_with_killed_parent_and_sweep_resumes(
    path: Scenario, tmp_path: Path, contents: Contents
) -> None:
    process = start_sweep(tmp_path / "swept.py", tmp_path / "out")
    deadline = time.monotonic() + 60
    while not list((tmp_path / "out").glob("part-*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    while _session(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _session(process.pid) == []
    assert_parts_are_complete(tmp_path / "out")
    for name in ("out", "whole"):
        tcpcast.sweep(path, VARY, engines=ENGINES, out=tmp_path / name, processes=1)
    expected = contents(tmp_path / "whole")
    assert len(expected) == 6 + 1
    assert contents(tmp_path / "out") == expected


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


def test_ctrl_c_keeps_complete_parts_and_sweep_resumes(
    path: Scenario, tmp_path: Path, contents: Contents
) -> None:
    def interrupt(share: float) -> None:
        if share >= 0.5:
            raise KeyboardInterrupt

    out, expected = tmp_path / "out", tmp_path / "whole"
    given: dict[str, Any] = {"vary": VARY, "engines": ENGINES}
    result = tcpcast.sweep(path, **given, out=out, processes=2, progress=interrupt)
    assert result.interrupted
    assert (result.done, result.batches) == (3, 6)
    assert not tcpcast.sweep(path, **given, out=out, processes=2).interrupted
    tcpcast.sweep(path, **given, out=expected, processes=1)
    assert contents(out) == contents(expected)


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
