"""Papers: each paper's printed tables as data, how to run them, and the two side by side.

One package a paper. Each offers ``reproduce(output, quick=..., progress=..., threads=...,
force=...)``, which runs the paper's tables and figures, writes a page into a folder and returns a
:class:`~tcpcast.papers.reproduction.Report`.
"""

from __future__ import annotations

import difflib
import importlib
from typing import TYPE_CHECKING, Protocol

from tcpcast.errors import ScenarioError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tcpcast.papers.reproduction import Report

PAPERS: dict[str, str] = {
    "engset": "TCP-Engset revisited: on/off TCP sources sharing one link",
    "pftk": "Modeling TCP throughput: what one bulk flow sends at a given loss",
    "parallel": "Parallel flows: what n bulk flows of one path send together at a given loss",
    "fixed-point": "Many users on one local loop: one exact flow among simplified ones",
    "short": "Short transfers: initial window, limited transmit, and what a loss costs a file",
    "kernel": "Linux TCP measured over an emulated link, beside simulation and formulas",
}
"""The papers that can be reproduced: name and what each is about."""

MEASURED = "kernel"
"""Not a paper, but measurements of our own; it can be given further files of them."""


class Reproduce(Protocol):
    """What each paper offers."""

    def __call__(
        self,
        output: Path,
        *,
        quick: bool = False,
        progress: Callable[[float], None] | None = None,
        threads: int | None = None,
        force: bool = False,
    ) -> Report:
        """Run the paper, write its page into ``output`` and return the report."""


def paper(name: str) -> Reproduce:
    """Return the ``reproduce`` function of a paper.

    Parameters
    ----------
    name
        A key of :data:`PAPERS`.

    Raises
    ------
    ScenarioError
        There is no such paper; the message names those there are.
    """
    if name not in PAPERS:
        near = difflib.get_close_matches(name, PAPERS, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise ScenarioError(f"no paper '{name}'.{hint} There are: {', '.join(PAPERS)}.")
    package = name.replace("-", "_")
    reproduce: Reproduce = importlib.import_module(f"tcpcast.papers.{package}").reproduce
    return reproduce
