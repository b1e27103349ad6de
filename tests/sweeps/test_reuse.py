"""Existing answers in a folder are reused by every sweep with equal cells and engines."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tcpcast
from tcpcast.scenario import Scenario
from tcpcast.sweeps import processes
from tcpcast.sweeps.worker import answer_batch

Table = Callable[[Path], bytes]

FEW: dict[str, Any] = {"network.rtt": ["20ms", "50ms"], "network.bottleneck.loss": ["1%", "3%"]}
MORE: dict[str, Any] = {
    "network.rtt": ["20ms", "30ms", "50ms"],
    "network.bottleneck.loss": ["3%", "2%", "1%"],
}
HOW: dict[str, Any] = {"engines": ["packet", "pftk"], "replications": 2, "processes": 1}


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, str]]:
    """Record the computed cells, replications and engines."""
    runs: list[tuple[int, int, str]] = []

    def answer_and_record(spec: Any, batch: Any) -> Any:
        runs.extend((run.cell, run.replication, ",".join(run.keys)) for run in batch)
        return answer_batch(spec, batch)

    monkeypatch.setattr(processes, "answer_batch", answer_and_record)
    return runs


def test_grown_sweep_reuses_rows_and_has_same_bytes(
    path: Scenario, tmp_path: Path, table: Table, computed: list[tuple[int, int, str]]
) -> None:
    whole, grown = tmp_path / "whole", tmp_path / "grown"
    tcpcast.sweep(path, MORE, out=whole, **HOW)
    computed.clear()
    tcpcast.sweep(path, FEW, out=grown, **HOW)
    assert len(computed) == 4 * 2
    computed.clear()
    result = tcpcast.sweep(path, MORE, out=grown, **HOW)
    existing = {6, 8, 0, 2}  # 3 % and 1 % at 20 ms and 50 ms
    assert [run[:2] for run in computed] == [
        (c, r) for c in range(9) if c not in existing for r in range(2)
    ]
    assert result.statuses == {"answered": 9 * 3}
    assert table(grown) == table(whole)
    computed.clear()
    few = tcpcast.sweep(path, FEW, out=grown, **HOW)  # fewer values again
    assert (len(few), computed) == (4 * 3, [])


def test_stopped_sweep_grows_repeatedly(
    path: Scenario, tmp_path: Path, table: Table, computed: list[tuple[int, int, str]]
) -> None:
    def stop(share: float) -> None:
        if share >= 0.6:
            raise KeyboardInterrupt

    out, whole = tmp_path / "out", tmp_path / "whole"
    rtts = [["20ms", "50ms"], ["20ms", "40ms", "50ms"], ["10ms", "20ms", "40ms", "50ms"]]
    for values in rtts:
        tcpcast.sweep(path, {"network.rtt": values}, out=out, progress=stop, **HOW)
    result = tcpcast.sweep(path, {"network.rtt": rtts[-1]}, out=out, **HOW)
    assert len(computed) == 4 * 2  # no cell twice
    assert not result.interrupted
    tcpcast.sweep(path, {"network.rtt": rtts[-1]}, out=whole, **HOW)
    assert table(out) == table(whole)


def test_only_what_an_answer_depends_on_decides_whether_it_is_reused(
    path: Scenario, tmp_path: Path, computed: list[tuple[int, int, str]]
) -> None:
    """Reordered keys change nothing; each other change gives new answers, beside the old ones."""
    out = tmp_path / "out"
    vary = {"network.rtt": ["20ms"], "network.bottleneck.loss": ["1%"]}
    first = tcpcast.sweep(path, vary, out=out, engines=["pftk"]).to_arrow()
    names, changed = [], path.with_changes({"traffic.flows": 2})
    for case in (
        {"vary": dict(reversed(vary.items()))},
        {"engines": ["mathis", "pftk"]},
        {"engines": ["packet", "pftk"], "feed": "measured"},
        {"engines": None},
        {"vary": {**vary, "network.bottleneck.rate": ["5mbit"]}},
        {"scenario": changed},
        {"scenario": path.with_changes({"run.seed": 2})},
    ):
        computed.clear()
        how: dict[str, Any] = {
            "scenario": path,
            "vary": vary,
            "engines": ["pftk"],
            "processes": 1,
            **case,
        }
        tcpcast.sweep(out=out, **how)
        names.append([run[2] for run in computed])
    assert names == [[], ["mathis"], [""], [""], ["pftk"], ["pftk"], ["pftk"]]
    computed.clear()
    assert tcpcast.sweep(path, vary, out=out, engines=["pftk"], processes=1).table.equals(first)
    assert computed == []


def test_answers_of_another_version_are_computed_again(
    path: Scenario, tmp_path: Path, computed: list[tuple[int, int, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    vary = {"network.rtt": ["20ms"]}
    for version in ("1", "2"):
        for module in ("prepared", "worker"):
            monkeypatch.setattr(f"tcpcast.sweeps.{module}.get_version", lambda: version)  # noqa: B023
        tcpcast.sweep(path, vary, engines="pftk", out=tmp_path / "out", processes=1)
    assert len(computed) == 2
