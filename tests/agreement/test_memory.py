"""Runs that exceed the memory, and runs whose set-up alone exceeds the time limit."""

from typing import Any

import pytest
import tcpcast
from tcpcast import _native
from tcpcast.engines.packet import memory
from tcpcast.engines.packet.configuration import make_configuration

GIB = 2**30


def refusal(changes: dict[str, Any]) -> str:
    scenario = tcpcast.load("web-10mbit", changes=changes)
    (answer,) = tcpcast.run(scenario, ["packet"])
    assert answer.not_applicable is not None
    return answer.not_applicable


def test_too_many_sources_for_the_memory_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "read_free_bytes", lambda: GIB)
    message = refusal({"traffic.sources": 10_000_000, "run.replications": 1})
    assert "1 replication of 10,000,000 sources would take about" in message
    assert "1 GiB are free; fewer sources fit; use the mean-field engine, or use traffic" in message
    assert "mean-field" in message


def test_too_many_replications_for_the_memory_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "read_free_bytes", lambda: GIB)
    message = refusal({"run.replications": 40_001})
    assert "40,001 replications of" in message
    fitting = int(message.rpartition("fewer replications fit; use run.replications = ")[2])
    assert 300 < fitting < 600


def test_free_memory_is_reported_if_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("group")
    (folder / "memory.max").write_text("3000000\n")
    (folder / "memory.current").write_text("1000000\n")
    (folder / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable: 4000 kB\n")
    monkeypatch.setattr(memory, "CGROUP", folder)
    monkeypatch.setattr(memory, "MEMINFO", folder / "meminfo")
    assert memory.read_free_bytes() == 2_000_000
    (folder / "memory.stat").write_text("anon 9\nactive_file 300000\ninactive_file 200000\n")
    assert memory.read_free_bytes() == 2_500_000
    (folder / "memory.max").write_text("max\n")
    assert memory.read_free_bytes() == 4_096_000


def started(replications: int, sources: int = 88) -> _native.Simulation:
    scenario = tcpcast.load("web-10mbit", changes={"traffic.sources": sources})
    return _native.Simulation(make_configuration(scenario, 0.0), replications)


def test_set_up_counts_towards_the_time_limit() -> None:
    run = started(1, sources=1_000_000)
    status = run.advance(transfers=None, until_ns=10**18, threads=1, max_wall_s=0.0)
    assert status == "out-of-time"
    assert run.clocks() == [(0, False)]
    packets, on_times = run.sources()[0]
    assert packets.size == on_times.size == 1_000_000
    assert not packets.any()


def test_replications_that_never_started_are_omitted() -> None:
    run = started(40_001)
    status = run.advance(transfers=None, until_ns=10**18, threads=2, max_wall_s=0.0)
    assert status == "out-of-time"
    assert 1 <= len(run.clocks()) <= 3
    assert len(run.counters()) == len(run.sources()) == len(run.clocks())


def test_started_replications_are_reported() -> None:
    changes = {"run.replications": 5000, "run.max_wall": "300ms", "run.transfers": 100_000}
    (answer,) = tcpcast.run(tcpcast.load("web-10mbit", changes=changes), ["packet"])
    assert answer.incomplete_reason is not None
    assert answer.incomplete_reason.startswith(
        "run.max_wall was reached before the end of the run; "
    )
    assert "of 5000 replications were started" in answer.incomplete_reason


@pytest.mark.parametrize("warmup", [None, "1s"])
def test_run_is_stopped_before_its_packets_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch, warmup: str | None
) -> None:
    free_memory = iter([GIB])
    monkeypatch.setattr(memory, "read_resident_bytes", lambda: next(free_memory, 4 * GIB))
    monkeypatch.setattr(memory, "read_free_bytes", lambda: 5 * GIB)
    changes = {"run.duration": "100000s", "run.warmup": warmup, "run.max_wall": "60s"}
    (answer,) = tcpcast.run(tcpcast.load("lossy-path", changes=changes), ["packet"])
    assert answer.incomplete_reason is not None
    assert "because only 5 GiB of memory are still free" in answer.incomplete_reason
    assert not any(metric.trusted for metric in answer.metrics.values())
