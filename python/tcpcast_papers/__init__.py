"""Reproductions of papers: printed tables as data, compared with computed values.

The package uses only the public interface of tcpcast. tcpcast finds it through an entry point
(:mod:`tcpcast.papers`). Each paper is a package with a module ``description``. Its function
``reproduce`` computes the tables and figures of the paper, writes a page into a folder and returns
a :class:`~tcpcast_papers.report.Report`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast_papers.report import Report

PAPERS: dict[str, str] = {
    "engset": "TCP-Engset revisited: on/off TCP sources sharing one link",
    "pftk": "Modeling TCP throughput: the send rate of one bulk flow at a given loss",
    "parallel": "Parallel flows: the total rate of n bulk flows on one path at a given loss",
    "fixed-point": "Many users on one local loop: one exact flow among simplified ones",
    "short": "Short transfers: initial window, limited transmit, and delay per lost packet",
    "kernel": "Linux TCP measured over an emulated link, compared with simulation and formulas",
}
"""Names and subjects of the papers that can be reproduced."""


def paper(name: str) -> Callable[..., Report]:
    """Return the ``reproduce`` function of a paper, a key of :data:`PAPERS`."""
    module = importlib.import_module(f"tcpcast_papers.{name.replace('-', '_')}.description")
    reproduce: Callable[..., Report] = module.reproduce
    return reproduce
