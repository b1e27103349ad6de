"""Papers: the printed tables of each paper as data, compared with computed figures.

The package uses the public interface of tcpcast only, which finds it by an entry point
(:mod:`tcpcast.papers`). Each paper is a package whose ``description`` has a function ``reproduce``,
which runs the paper's tables and figures, writes a page into a folder and returns a
:class:`~tcpcast_papers.report.Report`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast_papers.report import Report

PAPERS: dict[str, str] = {
    "engset": "TCP-Engset revisited: on/off TCP sources sharing one link",
    "pftk": "Modeling TCP throughput: what one bulk flow sends at a given loss",
    "parallel": "Parallel flows: what n bulk flows of one path send together at a given loss",
    "fixed-point": "Many users on one local loop: one exact flow among simplified ones",
    "short": "Short transfers: initial window, limited transmit, and what a loss costs a file",
    "kernel": "Linux TCP measured over an emulated link, beside simulation and formulas",
}
"""The papers that can be reproduced: name and what each is about."""


def paper(name: str) -> Callable[..., Report]:
    """Return the ``reproduce`` function of a paper, a key of :data:`PAPERS`."""
    module = importlib.import_module(f"tcpcast_papers.{name.replace('-', '_')}.description")
    reproduce: Callable[..., Report] = module.reproduce
    return reproduce
