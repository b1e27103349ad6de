"""Description of the reproduction: its sections in order, and their sample sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.errors import ScenarioError

from tcpcast_papers.published import sections
from tcpcast_papers.published.runs import QUICK, SETS, WHOLE, PublishedRuns, SampleSizes
from tcpcast_papers.runner import Paper

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tcpcast_papers.report import Report


def _preface(runs: PublishedRuns) -> list[str]:
    return [
        "Measurements of real TCP that others published, compared with engine packet under the "
        "published conditions. No constant of the simulator is fitted to them.",
        "A value agrees if measured and simulated value differ by at most the sum of its tolerance "
        "and the half-widths of both 95 % intervals. The interval of a simulated value is over "
        f"{runs.sample_sizes.seeds} runs with different seeds.",
    ]


PAPER: Paper[SampleSizes, PublishedRuns] = Paper(
    package="tcpcast_papers.published",
    title="TCP measured by others, and simulated",
    simulations=PublishedRuns,
    whole=WHOLE,
    quick=QUICK,
    parts=(sections,),
    preface=_preface,
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
) -> Report:
    """Simulate the cells of all sets, and write the page.

    Parameters
    ----------
    output, quick, progress, threads, force, scenarios, cell
        As for :meth:`tcpcast_papers.runner.Paper.reproduce`.
    measurements
        Folders with tables of the sets; default: the packaged tables.

    Raises
    ------
    ScenarioError
        A folder has no table of a set, or a table is incomplete.
    TcpcastError
        As for :meth:`tcpcast_papers.runner.Paper.reproduce`.
    """
    for folder in measurements:
        if not any((folder / each.table).is_file() for each in SETS):
            names = ", ".join(each.table for each in SETS)
            raise ScenarioError(
                f"--measurements {folder}: no measurement files; pass a folder with any of {names}"
            )
    sizes = QUICK if quick else WHOLE
    runs = PublishedRuns(sizes, threads, progress, folders=tuple(measurements))
    report = PAPER.report(runs, output, quick=quick, force=force, scenarios=scenarios, cell=cell)
    if measurements:
        # The known differences are those of the packaged cells.
        labels = {
            (*each.label, value.quantity)
            for cell_set in SETS
            for each in runs.cells_of(cell_set)
            for value in each.values
        }
        report.known_differences = tuple(
            known for known in report.known_differences if known.label in labels
        )
    return report
