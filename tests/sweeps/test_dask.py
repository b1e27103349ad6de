"""A real Dask scheduler with two worker processes on loopback; one is killed midway."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
import tcpcast
from tcpcast.process.errors import MachineError
from tcpcast.scenario import Scenario

VARY = {"network.rtt": "20ms..100ms log 10", "network.bottleneck.loss": ["0.5%", "2%"]}
OPTIONS = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"]
CLUSTER = r"""
import os, re, sys, time
from pathlib import Path
from distributed.cli import dask_scheduler, dask_worker
from tcpcast.engines import packet
from tcpcast.sweeps import worker

def forked(main, log, *options):
    child = os.fork()
    if child == 0:
        file = os.open(log, os.O_WRONLY | os.O_CREAT)
        os.dup2(file, 1), os.dup2(file, 2)
        main(options)
    return child

forked(dask_scheduler.main, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
address = None
while not address:
    time.sleep(0.05)
    log = Path("scheduler")
    address = log.exists() and re.search(r"tcp://127\.0\.0\.1:\d+", log.read_text())
workers = [forked(dask_worker.main, f"worker{n}", address[0], *sys.argv[1:]) for n in range(2)]
print(address[0], *workers, flush=True)
ended, status = os.waitpid(workers[0], 0)
print(os.waitstatus_to_exitcode(status), flush=True)
time.sleep(600)
"""
"""A scheduler and two workers as separate processes, forked from a process with all imports."""


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, int, IO[str]]]:
    """Yield the scheduler's address, the first worker, and the source of its exit code."""
    environment = {**os.environ, "DASK_DISTRIBUTED__WORKER__DAEMON": "False"}
    command = [sys.executable, "-c", CLUSTER, *OPTIONS]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        env=environment,
        cwd=folder,
        text=True,
        start_new_session=True,
    ) as started:
        assert started.stdout is not None
        try:
            address, *workers = started.stdout.readline().split()
            yield address, int(workers[0]), started.stdout
        finally:
            os.killpg(started.pid, signal.SIGKILL)


def test_dead_dask_worker_loses_no_rows(
    path: Scenario, tmp_path: Path, table: Callable[[Path], bytes]
) -> None:
    shares: list[float] = []
    killed: list[int] = []
    with cluster(tmp_path) as (address, worker, ended):

        def kill_one(share: float) -> None:
            shares.append(share)
            if not killed and share >= 0.25:
                os.kill(worker, signal.SIGKILL)
                killed.append(int(ended.readline()))

        result = tcpcast.sweep(
            path, VARY, engines=["packet", "pftk"], out=tmp_path / "dask", dask=address,
            progress=kill_one,
        )  # fmt: skip
    assert killed == [-signal.SIGKILL]
    assert shares[-1] == 1.0
    assert result.statuses == {"answered": 40}
    tcpcast.sweep(path, VARY, engines=["packet", "pftk"], out=tmp_path / "own", processes=1)
    assert table(tmp_path / "dask") == table(tmp_path / "own")


def test_address_without_scheduler_is_reported(
    path: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    import distributed  # noqa: PLC0415 - slow to import

    def raise_timeout(*_: object, **__: object) -> None:
        raise OSError("Timed out trying to connect")

    monkeypatch.setattr(distributed, "Client", raise_timeout)
    with pytest.raises(MachineError, match="no Dask scheduler responds at tcp://127"):
        tcpcast.sweep(path, VARY, engines="pftk", dask="tcp://127.0.0.1:9")
