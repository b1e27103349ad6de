"""The whole paper: simulate every path once, then write the sections."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tcpcast.papers import drawing
from tcpcast.papers.pftk import bottlenecks, chain_gap, connections, hours, summaries
from tcpcast.papers.pftk.published import CITATION
from tcpcast.papers.pftk.runs import QUICK, WHOLE, Runs
from tcpcast.papers.reproduction import Report, check_folder, finished

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def reproduce(
    output: Path,
    *,
    quick: bool = False,
    progress: Callable[[float], None] | None = None,
    threads: int | None = None,
    force: bool = False,
) -> Report:
    """Lay the models beside the paper's tables and beside simulated traces cut as its own.

    Parameters
    ----------
    output
        Folder for ``index.md`` and its figures; made if it does not exist.
    quick
        Fewer and shorter simulations: within half a minute on two cores.
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
    for part in (hours, connections, bottlenecks, chain_gap):
        part.wanted(runs)
    bottlenecks.lossy_wanted(runs)
    runs.simulate()
    parts = (hours, connections, bottlenecks, chain_gap)
    simulated = (partial(part.sections, runs, output) for part in parts)
    sections = finished([partial(summaries.sections, output), *simulated])
    title = "PFTK: the paper's traces and simulated ones"
    report = Report(title, sections, preface=_preface(runs), interrupted=runs.interrupted)
    report.write(output, force=force)
    return report


def _preface(runs: Runs) -> list[str]:
    quick = "" if runs.effort == WHOLE else "This is the quick run: shorter, with wider intervals. "
    return [
        f"The paper: {CITATION}. Published are the figures of its Tables 2 and 3; "
        "predictions and errors it shows in figures only, without numbers.",
        "So nearly all rows are without a verdict, shown to be looked at. What the tables have "
        "is laid beside the models (b = 2) as it is; the rest is the paper's experiment done again "
        "on simulated traces, of paths like those of the tables.",
        f"{quick}{len(runs)} simulations stand behind it. Intervals are 95 %, over independent "
        "traces of the same paths.",
    ]
