"""The whole paper: simulate every setting once, then write the sections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.papers import drawing
from tcpcast.papers.fixed_point import (
    curves,
    distributions,
    formulas,
    ftp,
    little,
    open_choices,
    tables,
    threshold,
    validity,
)
from tcpcast.papers.fixed_point.published import CITATION
from tcpcast.papers.fixed_point.runs import QUICK, WHOLE, Runs
from tcpcast.papers.reproduction import Report, check_folder, finished

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tcpcast.papers.reproduction import Section


def reproduce(
    output: Path,
    *,
    quick: bool = False,
    progress: Callable[[float], None] | None = None,
    threads: int | None = None,
    force: bool = False,
) -> Report:
    """Lay every flow and the fixed point beside the paper's tables and figures.

    Parameters
    ----------
    output
        Folder for ``index.md`` and its figures; made if it does not exist.
    quick
        Shorter simulations and fewer populations: within a minute on two cores.
    progress
        Called with the share of the work simulated, 0 to 1.
    threads
        Simulations that run at once (None: one a core); it changes no figure.
    force
        Whether files in the folder that are not of a reproduction may be replaced.

    Returns
    -------
    Report
        Sections, ``failed`` rows, and ``page``, the path of ``index.md``.

    Raises
    ------
    EnvironmentFault
        matplotlib is not installed, or the folder cannot be written to.
    TcpcastError
        It holds a page that is not of a reproduction, and not ``force``.
    KeyboardInterrupt
        The reader gave up before any section was finished.
    """
    check_folder(output, force=force)
    drawing.panels(1)  # Without matplotlib, say so before the simulation.
    runs = Runs(QUICK if quick else WHOLE, threads, progress)
    for part in (ftp, tables, threshold, validity, curves, distributions, open_choices):
        part.wanted(runs)
    runs.simulate()
    title = "Fixed point methods: many TCP connections on one local loop"
    report = Report(
        title, _sections(runs, output), preface=_preface(runs), interrupted=runs.interrupted
    )
    report.write(output, force=force)
    return report


def _sections(runs: Runs, folder: Path) -> list[Section]:
    return finished(
        [
            lambda: ftp.sections(runs),
            lambda: tables.sections(runs),
            lambda: [threshold.section(runs)],
            lambda: formulas.sections(runs),
            lambda: distributions.sections(runs, folder),
            lambda: [curves.section(runs, folder)],
            lambda: [little.section(runs)],
            lambda: [validity.section(runs)],
            lambda: open_choices.sections(runs),
        ]
    )


def _preface(runs: Runs) -> list[str]:
    quick = "" if runs.effort == WHOLE else "This is the quick run: wider intervals. "
    return [
        f"The paper: {CITATION}. It prints seven tables, and plots the rest.",
        "Its figures are those of one exact flow among simplified ones, because in 2001 all of "
        "them could not be simulated. *Own* is every flow, packet by packet, by the paper's TCP, "
        "with a 95 % interval. Beside it are our own fixed points of the same scenario, by the "
        "paper's schemes 2 and 1. In brackets is what does not pass its own tests, or lies above "
        "the threshold.",
        f"{quick}{len(runs)} simulations of about {runs.packets / 1e6:,.0f} million packets stand "
        "behind it.",
        "What counts as agreement: uncongested columns and the levels g within 5 %, within 10 % in "
        "Tables 1 and 6, Table 7 from the paper's own tables within 3 %, values computed apart "
        "within 3 %. A figure outside by less than its own interval is unsettled. A difference is "
        "explained if the same run measured in another way gives the printed figure. What was "
        "found by trying other settings stands beside and explains nothing. RTTs in overload have "
        "no verdict.",
    ]
