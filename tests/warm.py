"""Imports the modules of all commands and fills caches, for ``started`` to fork.

Caches are in memory only: validation of scenarios, fonts, signs of axes. Tests
that start an interpreter check commands that fill them.
"""

import gc
import importlib
import io
from pathlib import Path

import tcpcast
from matplotlib.backends import backend_svg  # noqa: F401
from matplotlib.figure import Figure
from rich import table  # noqa: F401
from scipy import special  # noqa: F401

PACKAGE = Path(tcpcast.__file__).parent

for file in sorted(PACKAGE.rglob("*.py")):
    # The page has its own server, which commands rarely start.
    if file.parent.name != "web" and file.stem not in {"__init__", "__main__"}:
        importlib.import_module(".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts))

tcpcast.load("web-10mbit")

figure = Figure(layout="constrained")
figure.subplots().loglog([1, 1000], [1, 1000])
figure.savefig(io.BytesIO(), format="png")

gc.collect()
gc.freeze()  # so that garbage collection in forks does not copy shared memory
