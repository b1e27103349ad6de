"""A real Dask scheduler with two worker processes on loopback; one is killed midway."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
import tcpcast
from tcpcast.errors import EnvironmentFault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tcpcast.scenario import Scenario

VARY = {"network.rtt": "20ms..100ms log 10", "network.bottleneck.loss": ["0.5%", "2%"]}
START = "import sys; from distributed.cli.{0} import main; main(sys.argv[1:])"


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Start a scheduler and two workers, and yield its address and the workers."""
    log = folder / "scheduler.log"
    environment = {**os.environ, "DASK_DISTRIBUTED__WORKER__DAEMON": "False"}
    started: list[subprocess.Popen[bytes]] = []

    def start(what: str, *options: str) -> None:
        with (folder / f"{what}.log").open("ab") as file:
            started.append(
                subprocess.Popen(
                    [sys.executable, "-c", START.format(f"dask_{what}"), *options],
                    stdout=file,
                    stderr=file,
                    env=environment,
                    cwd=folder,
                )
            )

    try:
        start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        address = ""
        deadline = time.monotonic() + 60
        while not address and time.monotonic() < deadline:
            found = re.search(r"tcp://127\.0\.0\.1:\d+", log.read_text())
            address = found[0] if found else ""
            time.sleep(0.1)
        for _ in range(2):
            options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
            start("worker", address, *options)
        yield address, started[1:]
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


def test_a_worker_that_dies_loses_nothing(
    path: Scenario, tmp_path: Path, contents: Callable[[Path], dict[str, bytes]]
) -> None:
    shares: list[float] = []
    with cluster(tmp_path) as (address, workers):

        def kill_one(share: float) -> None:
            shares.append(share)
            if share >= 0.25 and workers[0].poll() is None:
                workers[0].send_signal(signal.SIGKILL)
                workers[0].wait()

        found = tcpcast.sweep(
            path, VARY, engines=["packet", "pftk"], out=tmp_path / "dask", dask=address,
            progress=kill_one,
        )  # fmt: skip
    assert workers[0].returncode == -signal.SIGKILL
    assert shares[-1] == 1.0
    assert found.statuses == {"answered": 40}
    tcpcast.sweep(path, VARY, engines=["packet", "pftk"], out=tmp_path / "own", processes=1)
    assert contents(tmp_path / "dask") == contents(tmp_path / "own")


def test_an_address_without_a_scheduler_says_so(
    path: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    import distributed  # noqa: PLC0415 - slow to import

    def nobody(*_: object, **__: object) -> None:
        raise OSError("Timed out trying to connect")

    monkeypatch.setattr(distributed, "Client", nobody)
    with pytest.raises(EnvironmentFault, match="no Dask scheduler answers at tcp://127"):
        tcpcast.sweep(path, VARY, engines="pftk", dask="tcp://127.0.0.1:9")
