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

PAPERS = ("engset", "pftk", "parallel", "fixed-point", "short", "kernel")
"""Names of the papers that can be reproduced: their packages, with "-" instead of "_"."""


def paper(name: str) -> Callable[..., Report]:
    """Return the ``reproduce`` function of a paper of :data:`PAPERS`."""
    module = importlib.import_module(f"tcpcast_papers.{name.replace('-', '_')}.description")
    reproduce: Callable[..., Report] = module.reproduce
    return reproduce
