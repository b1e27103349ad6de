"""Notebooks of the documentation: their cells run again, and outputs are compared.

A notebook contains its outputs, so that code hosts and the site show it without running it.
``python tests/docs/update.py NOTEBOOK`` writes the present outputs.
"""

import copy
import re
from pathlib import Path
from typing import Any

import nbformat
from doc_figures import look_alike
from doc_pages import ROOT, timeless
from nbclient import NotebookClient

notes: Any = nbformat  # its functions have no types
SVG = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
UNSEEN = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
"""Date and creator of a drawing."""
LONGEST_S = 300
"""Timeout of a cell, in seconds."""


def notebooks() -> list[Path]:
    """Return the notebooks of the documentation."""
    return sorted((ROOT / "docs").rglob("*.ipynb"))


def read(path: Path) -> Any:
    """Return a notebook from its file."""
    return notes.read(path, as_version=4)


def run(notebook: Any, folder: Path) -> Any:
    """Run the cells of a notebook in a folder, and return it with the outputs.

    Raises
    ------
    CellExecutionError
        A cell raised.
    """
    done = copy.deepcopy(notebook)
    NotebookClient(
        done,
        timeout=LONGEST_S,
        extra_arguments=["--IPKernelApp.log_level=40"],  # only errors, on standard error
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
    ).execute()
    return done


def shown(cell: Any) -> dict[str, str]:
    """Return the outputs of a cell: printed text by stream, other outputs by type."""
    result: dict[str, str] = {}
    for output in cell.outputs:
        pieces = {output.name: output.text} if output.output_type == "stream" else output.data
        for kind, text in pieces.items():
            result[kind] = result.get(kind, "") + "".join(text)
    return result


def same(one: Any, other: Any) -> bool:
    """Return True if two cells have equal outputs, except for times and digits of drawings."""
    first, second = shown(one), shown(other)
    if first.keys() != second.keys():
        return False
    return all(_same_text(first[kind], second[kind]) for kind in first)


def _same_text(one: str, other: str) -> bool:
    drawings = [[UNSEEN.sub("", drawing) for drawing in SVG.findall(text)] for text in (one, other)]
    if len(drawings[0]) != len(drawings[1]):
        return False
    words = [timeless(SVG.sub("", text).splitlines()) for text in (one, other)]
    return words[0] == words[1] and all(map(look_alike, *drawings))


def tidied(notebook: Any) -> str:
    """Return a notebook as it is stored: without values that depend on the user."""
    kept = copy.deepcopy(notebook)
    kept.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in kept.cells:
        cell.metadata = {}
    return f"{notes.writes(kept)}\n"


def updated(path: Path, folder: Path) -> str:
    """Return the text of a notebook with its present outputs; equal outputs are unchanged."""
    kept = read(path)
    done = run(kept, folder)
    for before, after in zip(kept.cells, done.cells, strict=True):
        if before.cell_type == "code" and same(before, after):
            after.outputs = before.outputs
    return tidied(done)
