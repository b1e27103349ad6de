"""Write the table of measurements that comes with tcpcast, of their original files.

``python -m benches.measured DIR...``, with the folders that hold the files.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tcpcast_papers import kernel
from tcpcast_papers.kernel import cells, originals


def main(folders: list[str]) -> None:
    """Write ``data/measured.csv`` beside the package of the measurements."""
    found = originals.read([Path(folder) for folder in folders])
    path = Path(kernel.__file__).parent / "data" / cells.TABLE
    with path.open("w", encoding="utf-8") as stream:
        cells.write(found, stream)
    print(f"{len(found)} cells in {path}")


if __name__ == "__main__":
    main(sys.argv[1:])
