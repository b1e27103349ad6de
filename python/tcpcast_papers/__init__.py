"""Reproductions of papers: printed tables as data, compared with computed values.

The package uses only the public interface of tcpcast. tcpcast finds it through an entry point
(:mod:`tcpcast.papers`). Each paper is a package with a module ``description``. Its function
``reproduce`` computes the tables and figures of the paper, writes a page into a folder and returns
a :class:`~tcpcast_papers.report.Report`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from tcpcast.process.errors import MachineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast_papers.report import Report

PAPERS = (
    "engset",
    "pftk",
    "parallel",
    "fixed-point",
    "short",
    "kernel",
    "published",
    "l4s",
    "homes",
    "dctcp",
    "bbr3",
)
"""Names of the papers that can be reproduced: their packages, with "-" instead of "_"."""


def paper(name: str) -> Callable[..., Report]:
    """Return the ``reproduce`` function of a paper of :data:`PAPERS`.

    Raises
    ------
    MachineError
        scipy is not installed.
    """
    try:
        module = importlib.import_module(f"tcpcast_papers.{name.replace('-', '_')}.description")
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "scipy":
            raise
        raise MachineError(
            f"the paper {name} needs scipy, which is not installed: pip install 'tcpcast[papers]'"
        ) from missing
    reproduce: Callable[..., Report] = module.reproduce
    return reproduce
