"""Write the packaged table of kernel measurements from their original files.

``python -m benches.measured DIR...`` reads the files in these folders.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tcpcast_papers import kernel
from tcpcast_papers.kernel import cells, measurement_files


def main(folders: list[str]) -> None:
    """Write ``data/measured.csv`` in the package of the measurements."""
    result = measurement_files.read_cells_in_folders([Path(folder) for folder in folders])
    path = Path(kernel.__file__).parent / "data" / cells.TABLE_NAME
    with path.open("w", encoding="utf-8") as stream:
        cells.write_cells(result, stream)
    print(f"{len(result)} cells in {path}")


if __name__ == "__main__":
    main(sys.argv[1:])
