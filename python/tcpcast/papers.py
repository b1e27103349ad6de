"""Reproducible papers, found by the entry points of installed packages.

The entry point group ``tcpcast.papers`` contains modules. Each module has ``PAPERS``, the names of
its papers, and ``paper(name)``, which returns a function ``reproduce(output, *,
quick=False, progress=None, threads=None, force=False)``. The function writes a page to the
directory ``output``, calls ``progress`` with the finished share, 0 to 1, and returns a
:class:`Reproduction`. With ``--scenarios``, the function receives ``scenarios``, a directory for
the scenario file of each simulation. With ``--cell``, it receives ``cell``, the rows to compute,
and writes no page.
"""

from __future__ import annotations

import functools
from importlib import metadata
from typing import TYPE_CHECKING, Any, Protocol

from tcpcast.process.errors import ScenarioError, find_nearest_word

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tcpcast.report.document import Document, Part

ENTRY_POINT_GROUP = "tcpcast.papers"
"""Name of the entry point group."""


class Reproduction(Protocol):
    """Comparison of a paper's values with computed values.

    ``page`` is the file that was written. ``interrupted`` is true if only some sections were
    finished and no page was written. ``write_errors`` has a message for each file that could not be
    written, and ``commands`` the command that repeats each simulation with a written scenario.
    """

    page: Path | None
    interrupted: bool
    write_errors: list[str]
    commands: list[str]

    @property
    def has_only_known_differences(self) -> bool:
        """Whether all differences are known."""

    def parts(self) -> list[Part]:
        """Return the report for a terminal."""

    def document(self, again: str, figures: bool = False) -> Document:
        """Return the report as a page; ``again`` is the command that recreates it."""

    def to_json(self) -> dict[str, Any]:
        """Return the machine-readable report."""


@functools.cache
def find_paper_packages() -> dict[str, Any]:
    """Return the module of each paper by name; the first module with a name has priority."""
    packages: dict[str, Any] = {}
    for point in metadata.entry_points(group=ENTRY_POINT_GROUP):
        package = point.load()
        packages = dict.fromkeys(package.PAPERS, package) | packages
    return packages


def load_reproduction(name: str) -> Callable[..., Reproduction]:
    """Return the function that reproduces a paper.

    Raises
    ------
    ScenarioError
        No package has the paper; the message lists the papers.
    """
    names = find_paper_packages()
    if name not in names:
        near = find_nearest_word(name, names)
        hint = f" Did you mean '{near}'?" if near else ""
        raise ScenarioError(f"no paper '{name}'.{hint} The papers are: {', '.join(names)}.")
    reproduce: Callable[..., Reproduction] = names[name].paper(name)
    return reproduce
