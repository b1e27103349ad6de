"""The notebooks of the documentation run and give the stored outputs."""

from typing import Any

import pytest

pytest.importorskip("nbclient", reason="needs nbclient: make setup")
pytest.importorskip("ipykernel", reason="needs ipykernel: make setup")

from pathlib import Path

from doc_notebook import notebooks, notes, read, run, same, shown, tidied
from doc_pages import ROOT


@pytest.mark.long
@pytest.mark.parametrize("path", notebooks(), ids=lambda path: str(path.relative_to(ROOT)))
def test_notebook_outputs_are_up_to_date(path: Path, tmp_path: Path) -> None:
    kept = read(path)
    done = run(kept, tmp_path)
    for number, (before, after) in enumerate(zip(kept.cells, done.cells, strict=True), 1):
        if before.cell_type == "code":
            assert "stderr" not in shown(after), shown(after)["stderr"]
            assert same(before, after), f"{path}: cell {number} has changed: make docs-update"


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: str(path.relative_to(ROOT)))
def test_notebook_is_clean(path: Path) -> None:
    kept = read(path)
    assert tidied(kept) == path.read_text(encoding="utf-8")
    counts = [cell.execution_count for cell in kept.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1)), "run from the top"


def cell(text: str, html: str | None = None) -> Any:
    data = {"text/plain": text} | ({"text/html": html} if html else {})
    output = notes.v4.new_output("execute_result", data, execution_count=1)
    return notes.v4.new_code_cell("x", outputs=[output])


def test_cells_may_differ_in_times_and_last_digits() -> None:
    assert same(cell("packet in 40 ms"), cell("packet in 41 ms"))
    assert not same(cell("loss 1.2 %"), cell("loss 1.3 %"))
    assert not same(cell("1"), cell("1", "<b>1</b>"))
    drawing = '<svg><path d="M 10.25 3"/></svg>'
    assert same(cell("1", drawing), cell("1", drawing.replace("10.25", "10.26")))
    assert not same(cell("1", drawing), cell("1", drawing.replace("10.25", "12.25")))
    assert not same(cell("1", drawing), cell("1", drawing * 2))
