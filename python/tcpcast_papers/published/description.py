"""Description of the reproduction: its sections in order, and their sample sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.process.errors import ScenarioError

from tcpcast_papers.published.runs import QUICK, SETS, WHOLE, PublishedRuns, SampleSizes
from tcpcast_papers.published.sections import SetSections
from tcpcast_papers.runner import Paper

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tcpcast_papers.published.cells import CellSet
    from tcpcast_papers.report import KnownDifference, Report


def preface(runs: PublishedRuns) -> list[str]:
    """Return the paragraphs above the sections."""
    return [
        "The page compares measurements of real TCP that others published with the packet engine "
        "under the published conditions. No constant of the simulator is fitted to them.",
        "A value agrees if the measured and the simulated value differ by at most the sum of its "
        "tolerance and the half-widths of both 95 % intervals. The interval of a simulated value "
        f"is computed from {runs.sample_sizes.seeds} runs with different seeds. If a value was "
        "measured in a few runs without an interval, its scatter is assumed to be that of the "
        "simulated value.",
    ]


PAPER: Paper[SampleSizes, PublishedRuns] = Paper(
    package="tcpcast_papers.published",
    title="TCP measured by others, and simulated",
    simulations=PublishedRuns,
    whole=WHOLE,
    quick=QUICK,
    parts=(SetSections(SETS),),
    preface=preface,
)


def reproduce(  # noqa: PLR0913 - those of every paper, and the measurements
    output: Path,
    *,
    quick: bool = False,
    progress: Callable[[float], None] | None = None,
    threads: int | None = None,
    force: bool = False,
    scenarios: Path | None = None,
    measurements: Sequence[Path] = (),
    cell: str = "",
    paper: Paper[SampleSizes, PublishedRuns] = PAPER,
    sets: tuple[CellSet, ...] = SETS,
) -> Report:
    """Simulate the cells of all sets, and write the page.

    Parameters
    ----------
    output, quick, progress, threads, force, scenarios, cell
        As for :meth:`tcpcast_papers.runner.Paper.reproduce`.
    measurements
        Folders with tables of the sets; default: the packaged tables.
    paper, sets
        Description of the page and its sets.

    Raises
    ------
    ScenarioError
        A folder has no table of a set, or a table is incomplete.
    TcpcastError
        As for :meth:`tcpcast_papers.runner.Paper.reproduce`.
    """
    for folder in measurements:
        if not any((folder / each.table).is_file() for each in sets):
            names = ", ".join(dict.fromkeys(each.table for each in sets))
            raise ScenarioError(
                f"--measurements {folder}: the folder contains no measurement files; use a folder "
                f"with any of {names}"
            )
    sizes = paper.quick if quick else paper.whole
    runs = PublishedRuns(sizes, threads, progress, sets=sets, folders=tuple(measurements))
    # A difference is known only for the cells of these tables and sample sizes.
    labels = {
        (cell_set.name, *each.label, value.quantity)
        for cell_set in sets
        for each in runs.cells_of(cell_set)
        for value in each.values
    }
    set_names = {cell_set.name for cell_set in sets}

    def is_of_cells(known: KnownDifference) -> bool:
        return known.section not in set_names or (known.section, *known.label) in labels

    return paper.report(
        runs,
        output,
        quick=quick,
        force=force,
        scenarios=scenarios,
        cell=cell,
        may_differ=is_of_cells,
    )
