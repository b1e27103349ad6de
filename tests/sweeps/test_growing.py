"""Growing sweeps: with more values of a key, existing rows are not computed again."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
import tcpcast
from tcpcast import sweeps
from tcpcast.errors import TcpcastError
from tcpcast.sweeps import earlier_rows, processes
from tcpcast.sweeps.axes import SweepAxis
from tcpcast.sweeps.earlier_rows import compute_cell_moves
from tcpcast.sweeps.folder import SweepFolder, read_wall_times
from tcpcast.sweeps.grid import SweepGrid
from tcpcast.sweeps.worker import answer_batch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tcpcast.scenario import Scenario
    from tcpcast.sweeps.earlier_rows import Axes

    Contents = Callable[[Path], dict[str, bytes]]

FEW: dict[str, Any] = {"network.rtt": ["20ms", "50ms"], "network.bottleneck.loss": ["1%", "3%"]}
MORE: dict[str, Any] = {
    "network.rtt": ["20ms", "30ms", "50ms"],
    "network.bottleneck.loss": ["3%", "2%", "1%"],
}
HOW: dict[str, Any] = {"engines": ["packet", "pftk"], "replications": 2, "processes": 1}


@pytest.fixture
def recorded_cells(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Record the computed cells and replications."""
    cells: list[tuple[int, int]] = []

    def answer_and_record(run_request: Any, variants: Any) -> Any:
        cells.extend((variant.cell, variant.replication) for variant in variants)
        return answer_batch(run_request, variants)

    monkeypatch.setattr(processes, "answer_batch", answer_and_record)
    return cells


@pytest.mark.parametrize("batches", [1000, 5])
def test_grown_sweep_reuses_rows_and_has_same_bytes(  # noqa: PLR0917 - fixtures
    path: Scenario,
    tmp_path: Path,
    contents: Contents,
    recorded_cells: list[tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
    batches: int,
) -> None:
    """With five batches, parts contain both old and new rows."""
    monkeypatch.setattr(sweeps, "MAX_SIMULATED_BATCHES", batches)
    whole, grown = tmp_path / "whole", tmp_path / "grown"
    tcpcast.sweep(path, MORE, out=whole, **HOW)
    recorded_cells.clear()
    tcpcast.sweep(path, FEW, out=grown, **HOW)
    assert len(recorded_cells) == 4 * 2
    recorded_cells.clear()
    result = tcpcast.sweep(path, MORE, out=grown, **HOW)
    existing = {6, 8, 0, 2}  # 3 % and 1 % at 20 ms and 50 ms
    assert sorted(recorded_cells) == [
        (c, r) for c in range(9) if c not in existing for r in range(2)
    ]
    assert result.statuses == {"answered": 9 * 3}
    assert contents(grown) == contents(whole)


def test_stopped_sweep_grows_repeatedly(
    path: Scenario, tmp_path: Path, contents: Contents, recorded_cells: list[tuple[int, int]]
) -> None:
    def stop(share: float) -> None:
        if share >= 0.6:
            raise KeyboardInterrupt

    out, whole = tmp_path / "out", tmp_path / "whole"
    rtts = [["20ms", "50ms"], ["20ms", "40ms", "50ms"], ["10ms", "20ms", "40ms", "50ms"]]
    for values in rtts:
        tcpcast.sweep(path, {"network.rtt": values}, out=out, progress=stop, **HOW)
    result = tcpcast.sweep(path, {"network.rtt": rtts[-1]}, out=out, **HOW)
    assert len(recorded_cells) == 4 * 2  # no cell twice
    assert not result.interrupted
    tcpcast.sweep(path, {"network.rtt": rtts[-1]}, out=whole, **HOW)
    assert contents(out) == contents(whole)


def test_reordered_keys_give_same_cells(
    path: Scenario, tmp_path: Path, contents: Contents, recorded_cells: list[tuple[int, int]]
) -> None:
    tcpcast.sweep(path, FEW, out=tmp_path / "out", **HOW)
    recorded_cells.clear()
    turned = dict(reversed(FEW.items()))
    tcpcast.sweep(path, turned, out=tmp_path / "out", **HOW)
    assert recorded_cells == []
    tcpcast.sweep(path, turned, out=tmp_path / "whole", **HOW)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_side_file_uses_new_numbers(path: Scenario, tmp_path: Path) -> None:
    for vary in (FEW, MORE):
        tcpcast.sweep(path, vary, out=tmp_path / "out", **HOW)
    records = read_wall_times(tmp_path / "out")
    rows = sorted((record["part"], *row[:3]) for record in records for row in record["wall_s"])
    engines = [(0, "packet"), (0, "pftk"), (1, "packet")]
    assert rows == [(2 * c + repeat, c, repeat, name) for c in range(9) for repeat, name in engines]


@pytest.mark.parametrize("step", ["put aside", "defined"])
def test_interrupted_growth_loses_no_rows(  # noqa: PLR0917 - fixtures
    path: Scenario,
    tmp_path: Path,
    contents: Contents,
    recorded_cells: list[tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
    step: str,
) -> None:
    out, whole = tmp_path / "out", tmp_path / "whole"
    tcpcast.sweep(path, FEW, out=out, **HOW)
    with monkeypatch.context() as patch:
        if step == "put aside":
            patch.setattr(SweepFolder, "_write_definition", broken)
        else:
            patch.setattr(SweepFolder, "existing_parts", broken_at(SweepFolder.existing_parts, 1))
        with pytest.raises(OSError, match="power"):
            tcpcast.sweep(path, MORE, out=out, **HOW)
    recorded_cells.clear()
    tcpcast.sweep(path, MORE, out=out, **HOW)
    assert len(recorded_cells) == 5 * 2
    tcpcast.sweep(path, MORE, out=whole, **HOW)
    assert contents(out) == contents(whole)


def broken(*_: Any, **__: Any) -> None:
    raise OSError("no power")


def broken_at(good: Callable[..., Any], calls: int) -> Callable[..., Any]:
    left = itertools.count(-calls)
    return lambda *given: good(*given) if next(left) < 0 else broken()


def test_fewer_values_or_other_keys_are_rejected(path: Scenario, tmp_path: Path) -> None:
    tcpcast.sweep(path, MORE, out=tmp_path / "out", **HOW)
    for vary in (FEW, {**MORE, "network.bottleneck.rate": ["5mbit", "10mbit"]}):
        with pytest.raises(TcpcastError, match="other keys or values"):
            tcpcast.sweep(path, vary, out=tmp_path / "out", **HOW)


def test_growth_rejects_too_many_rows(
    path: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tcpcast.sweep(path, FEW, out=tmp_path / "out", **HOW)
    monkeypatch.setattr(earlier_rows, "MAX_ROWS", 11)
    with pytest.raises(
        TcpcastError, match="12 rows, but only sweeps of up to 11 rows can be extended"
    ):
        tcpcast.sweep(path, MORE, out=tmp_path / "out", **HOW)


def test_moves_identify_cells_by_values() -> None:
    existing: Axes = [{"a": [1, 2]}, {"b": ["x", "y"], "c": [0.5, 1.5]}]
    reordered: Axes = [{"c": [9, 1.5, 0.5], "b": ["x", "y", "x"]}, {"a": [2, 3, 1]}]
    moved = compute_cell_moves(existing, reordered)
    assert moved is not None
    old, new = map(grid, (existing, reordered))
    for cell in range(len(old)):
        assert new.cell(int(moved(cell))) == old.cell(cell)
    assert compute_cell_moves(reordered, existing) is None
    assert compute_cell_moves(existing, [{"a": [1, 2]}, {"b": ["x", "y"]}]) is None
    assert compute_cell_moves(existing, [{"a": [1, 2]}, {"b": ["x", "y"], "c": [1.5, 0.5]}]) is None


def grid(axes: Axes) -> SweepGrid:
    return SweepGrid(
        tuple(tuple(SweepAxis(k, tuple(v)) for k, v in group.items()) for group in axes)
    )
