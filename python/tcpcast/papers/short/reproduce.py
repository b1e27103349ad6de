"""The whole paper: simulate every setting once, then write the sections."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tcpcast.papers import drawing
from tcpcast.papers.reproduction import Report, check_folder, finished
from tcpcast.papers.short import errors, expected, figures, timeouts, values
from tcpcast.papers.short.published import CITATION
from tcpcast.papers.short.runs import QUICK, WHOLE, Runs

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
    """Lay the model and simulated transfers beside the paper's tables, figures and text.

    Parameters
    ----------
    output
        Folder for ``index.md`` and its figures; made if it does not exist.
    quick
        Fewer transfers: within half a minute on two cores.
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
    for part in (timeouts, figures, errors, values):
        part.wanted(runs)
    runs.simulate()
    sections = finished(
        [
            partial(timeouts.sections, runs),
            partial(figures.sections, runs, output),
            partial(expected.sections, runs, output),
            partial(errors.sections, runs, output),
            partial(values.sections, runs),
        ]
    )
    title = "Short transfers: initial window, limited transmit and a proposal"
    report = Report(title, sections, preface=_preface(runs), interrupted=runs.interrupted)
    report.write(output, force=force)
    return report


def _preface(runs: Runs) -> list[str]:
    quick = "" if runs.effort == WHOLE else "This is the quick run: wider intervals. "
    return [
        f"The paper: {CITATION}. It prints two tables and a few figures in its text, and plots the "
        "rest.",
        "The path: 100 Mbit/s, RTT 100 ms, each packet of 500 bytes lost with p = 10 %, "
        "W_SS = M = 30. k counts lost transmissions, retransmissions included.",
        "Beside packets stand three models: *as printed, d = 0*, which goes on at once after a "
        "fast retransmit; *d = 1*, in which the duplicates take a round trip to come back; and "
        "*refined*, in which losses of a flight share a recovery and timeouts double. All three "
        "have the integrals as the text, not the print, means them.",
        f"{quick}{runs.transfers:,} transfers were simulated, each alone from fresh state. "
        "Intervals are 95 %.",
    ]
