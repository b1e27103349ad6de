"""Description of the reproduction: its sections in order, and their sample sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.process import output as files
from tcpcast.process.errors import MachineError

from tcpcast_papers.kernel import sections
from tcpcast_papers.kernel.cells import packaged_cells, read_cells_in_folders
from tcpcast_papers.kernel.comparison import COLUMNS, compare_cells, csv_text
from tcpcast_papers.kernel.networks import NETWORKS
from tcpcast_papers.kernel.runs import QUICK, WHOLE, KernelRuns, SampleSizes
from tcpcast_papers.published.runs import CellJob, Comparison
from tcpcast_papers.published.sections import comparison_row
from tcpcast_papers.reproduction import NotSelected, Unfinished
from tcpcast_papers.runner import Paper

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tcpcast_papers.published.cells import Value
    from tcpcast_papers.report import Report
    from tcpcast_papers.reproduction import Row, Section

DATA_FILE_NAME = "agreement.csv"
DATA_KIND = files.OutputKind("table", ",".join(COLUMNS).encode())


class _NetworkPart:
    """The section about networks, whose cells are scenarios."""

    @staticmethod
    def _jobs(runs: KernelRuns) -> list[CellJob]:
        seeds = runs.sample_sizes.queue_runs
        return [CellJob(NETWORKS.name, cell.label, seeds, cell) for cell in NETWORKS.read(())]

    @classmethod
    def request(cls, runs: KernelRuns) -> None:
        """Request every cell, unless the cells are those of given files."""
        if runs.has_networks:
            for job in cls._jobs(runs):
                runs.request(job)

    @classmethod
    def section(cls, runs: KernelRuns, _: Path) -> Section:
        """Return the measured and simulated values of all cells."""
        if not runs.has_networks:
            raise NotSelected
        section = runs.section(NETWORKS.section_title, (*NETWORKS.columns, "quantity"))
        for job in cls._jobs(runs):
            for value in job.cell.values:
                label = (*job.label, value.quantity)
                section.rows += runs.row(label, cls._row, runs, job, value)
        section.remarks = list(NETWORKS.set_up)
        return section

    @staticmethod
    def _row(runs: KernelRuns, job: CellJob, value: Value) -> Row:
        return comparison_row(Comparison(job.cell, value, runs[job][value.quantity], job.seeds))

    @property
    def SECTIONS(self) -> tuple[Callable[[KernelRuns, Path], Section], ...]:  # noqa: N802
        """The only section."""
        return (self.section,)


PAPER: Paper[SampleSizes, KernelRuns] = Paper(
    package="tcpcast_papers.kernel",
    title="The kernel's TCP, measured and simulated",
    simulations=KernelRuns,
    whole=WHOLE,
    quick=QUICK,
    parts=(sections, _NetworkPart()),
    preface=lambda runs: [
        "The page compares measurements of Linux 6.18 over an emulated link, made in November "
        "2026, with the packet engine under the same conditions: path, stack, start times, warm-up "
        "and length of each measurement.",
        "A value agrees if kernel and simulation differ by at most the sum of its tolerance and "
        "the half-widths of both 95 % intervals. No constant of the simulator is fitted to these "
        "measurements.",
        f"The page contains {len(runs)} cells. {DATA_FILE_NAME} also contains every value.",
    ],
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
    """Simulate the cells of the measurements, and write the page and its data.

    Parameters
    ----------
    output, quick, progress, threads, force, scenarios, cell
        As for :meth:`tcpcast_papers.runner.Paper.reproduce`.
    measurements
        Folders, each with a table ``measured.csv`` of other measurements; default: the packaged
        table.

    Raises
    ------
    ScenarioError
        A folder has no table, or a table is incomplete.
    TcpcastError
        As for :meth:`tcpcast_papers.runner.Paper.reproduce`.
    """
    cells = read_cells_in_folders(measurements) if measurements else packaged_cells()
    if not cell:
        files.check_folder_is_writable(output)
        files.check_file_is_writable(output / DATA_FILE_NAME, kind=DATA_KIND, force=force)
    sizes = QUICK if quick else WHOLE
    runs = KernelRuns(sizes, threads, progress, cells=cells, has_networks=not measurements)
    report = PAPER.report(runs, output, quick=quick, force=force, scenarios=scenarios, cell=cell)
    if measurements:
        # Cells that were not selected cannot show whether known differences are gone.
        given = {(cell.series, cell.name) for cell in cells}
        report.known_differences = tuple(
            each for each in report.known_differences if each.label[:2] in given
        )
    if not (cell or report.interrupted):
        _write_data(report, runs, output / DATA_FILE_NAME, force=force)
    return report


def _write_data(report: Report, runs: KernelRuns, path: Path, *, force: bool) -> None:
    try:
        files.write_text(path, csv_text(compare_cells(runs)), kind=DATA_KIND, force=force)
    except MachineError as error:
        report.write_errors.append(str(error))
    except Unfinished:
        return
