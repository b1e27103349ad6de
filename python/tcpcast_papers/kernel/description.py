"""The reproduction described: its sections in order, and what each has simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast import output as files
from tcpcast.errors import EnvironmentFault

from tcpcast_papers.kernel import originals, sections
from tcpcast_papers.kernel.cells import packaged
from tcpcast_papers.kernel.comparison import COLUMNS, compared, data
from tcpcast_papers.kernel.runs import QUICK, WHOLE, SampleSizes, KernelRuns
from tcpcast_papers.reproduction import Unfinished
from tcpcast_papers.runner import Paper, Part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tcpcast_papers.report import Report

DATA_NAME = "agreement.csv"
DATA = files.Kind("table", ",".join(COLUMNS).encode())


def _preface(runs: KernelRuns) -> list[str]:
    quick = "" if runs.sample_sizes == WHOLE else "This is the quick run: fewer cells, fewer runs. "
    return [
        "Linux 6.18 over an emulated link, measured in November 2026, beside engine packet under "
        "the same conditions: the path, the stack, starts, warm-up and length of each cell.",
        "A value agrees if the two are apart by no more than its tolerance and the half-widths of "
        "both 95 % intervals. No constant of the simulator is fitted to these measurements.",
        f"{quick}{len(runs)} cells; every value is in {DATA_NAME} too.",
    ]


PAPER: Paper[SampleSizes, KernelRuns] = Paper(
    package="tcpcast_papers.kernel",
    title="The kernel's TCP, measured and simulated",
    simulations=KernelRuns,
    whole=WHOLE,
    quick=QUICK,
    parts=(
        Part(sections.counted, KernelRuns.request_all),
        Part(sections.of_kinds),
        Part(sections.of_signs),
        Part(sections.of_models),
    ),
    preface=_preface,
)


def reproduce(  # noqa: PLR0913 - those of every paper, and where the measurements are
    output: Path,
    *,
    quick: bool = False,
    progress: Callable[[float], None] | None = None,
    threads: int | None = None,
    force: bool = False,
    measurements: Sequence[Path] = (),
) -> Report:
    """Answer the cells of the measurements, and write the page and its data.

    Parameters
    ----------
    output, quick, progress, threads, force
        As for :meth:`tcpcast_papers.runner.Paper.reproduce`.
    measurements
        Folders with the original files of measurements (:mod:`.originals`); those that come with
        tcpcast if left out.

    Raises
    ------
    ScenarioError
        A folder has no measurements, or a file of them is not whole.
    TcpcastError
        As for :meth:`tcpcast_papers.runner.Paper.reproduce`.
    """
    cells = originals.read(measurements) if measurements else packaged()
    files.check_folder(output)
    files.check_file(output / DATA_NAME, kind=DATA, force=force)
    runs = KernelRuns(QUICK if quick else WHOLE, threads, progress, cells=cells)
    report = PAPER.report(runs, output, quick=quick, force=force)
    if measurements:
        # What differs among cells that were not given is neither there nor gone.
        given = {(cell.series, cell.name) for cell in cells}
        report.accepted = tuple(each for each in report.accepted if each.label[:2] in given)
    if not report.interrupted:
        _write(report, runs, output / DATA_NAME, force=force)
    return report


def _write(report: Report, runs: KernelRuns, path: Path, *, force: bool) -> None:
    try:
        files.write_text(path, data(compared(runs)), kind=DATA, force=force)
    except EnvironmentFault as error:
        report.write_errors.append(str(error))
    except Unfinished:
        return
