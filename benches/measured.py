"""Write the packaged table of kernel measurements from their original files.

``python -m benches.measured DIR...`` reads the files in these folders.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tcpcast_papers import kernel
from tcpcast_papers.kernel.cells import COLUMNS, CONDITION_COLUMNS, JSON_COLUMNS, TABLE_NAME

from benches.kernel_series.files import read_original_files

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import IO

    from tcpcast_papers.kernel.cells import Cell


def main(folders: list[str]) -> None:
    """Write ``data/measured.csv`` in the package of the measurements."""
    result = read_original_files([Path(folder) for folder in folders])
    path = Path(kernel.__file__).parent / "data" / TABLE_NAME
    with path.open("w", encoding="utf-8") as stream:
        write_cells(result, stream)
    print(f"{len(result)} cells in {path}")


def write_cells(cells: Iterable[Cell], stream: IO[str]) -> None:
    """Write cells as a table with one line per quantity."""
    out = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    out.writeheader()
    for cell in cells:
        conditions = {each: _cell_text(each, getattr(cell, each)) for each in CONDITION_COLUMNS}
        conditions["groups"] = " ".join(group.text for group in cell.groups)
        for quantity, result in cell.measured.items():
            figures = {"mean": f"{result.mean:.7g}", "half_width": f"{result.half_width:.3g}"}
            out.writerow(conditions | {"quantity": quantity, "runs": result.runs} | figures)


def _cell_text(name: str, value: object) -> str:
    if name in JSON_COLUMNS:
        return json.dumps(dict(value)) if value else ""  # type: ignore[call-overload]
    if isinstance(value, bool):
        return "1" if value else ""
    return f"{value:.12g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main(sys.argv[1:])
