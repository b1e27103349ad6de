"""The whole paper: simulate every setting once, then write the sections side by side."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from tcpcast.papers import drawing
from tcpcast.papers.engset import (
    buffer_rule,
    buffer_size,
    file_sizes,
    lone_connection,
    losses,
    phase,
    queue,
    rates,
    states,
)
from tcpcast.papers.engset.published import CITATION
from tcpcast.papers.engset.runs import FULL, QUICK, Runs
from tcpcast.papers.reproduction import Report, check_folder, finished

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PARTS = (file_sizes, lone_connection, rates, states, buffer_rule, queue, losses, buffer_size, phase)
"""The parts of the paper in its order, one module each."""


def reproduce(
    output: Path,
    *,
    quick: bool = False,
    progress: Callable[[float], None] | None = None,
    threads: int | None = None,
    force: bool = False,
) -> Report:
    """Run the paper's tables and figures, and write them side by side with the printed ones.

    Parameters
    ----------
    output
        Folder for ``index.md`` and its figures; made if it does not exist.
    quick
        Fewer and shorter simulations, within a minute on two cores: figures that are outside their
        tolerance by less than their own interval are then called unsettled. Otherwise every
        setting is as long as the paper's, some 10 million packets.
    progress
        Called with the share of the packets simulated, 0 to 1.
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
    drawing.panels(1)  # Without matplotlib, say so before minutes of simulation.
    started = time.perf_counter()
    runs = Runs(QUICK if quick else FULL, threads, progress)
    for part in PARTS:
        part.want(runs)
    runs.simulate()
    simulated = time.perf_counter() - started
    report = Report(
        "TCP-Engset revisited: published and own",
        finished(partial(part.sections, runs, output) for part in PARTS),
        preface=_preface(runs, simulated),
        interrupted=runs.interrupted,
    )
    report.write(output, force=force)
    return report


def _preface(runs: Runs, simulated_s: float) -> list[str]:
    length = (
        "Every setting is simulated with the paper's number of connections, about 10 million "
        f"packets; where a figure is checked, {runs.effort.replications} times."
        if runs.effort.whole
        else f"This is the quick run: {100 * runs.effort.checked:.0f} % of the paper's connections "
        f"where a figure is checked, {100 * runs.effort.drawn:.0f} % where it is only drawn, and "
        "fewer curves; a figure outside its tolerance by less than its own interval is called "
        "unsettled."
    )
    return [
        f"The paper: {CITATION}. Published figures are those it prints, own figures come from the "
        "model's formulas (theory) and the packet-level simulator.",
        f"{length} {len(runs)} simulations with {runs.packets / 1e6:,.0f} million data packets "
        f"took {simulated_s:.0f} s.",
        "What counts as agreement: theory to the printed digits; connection rate, and ON time "
        "divided by the run's own mean file size, within 1 %; loss within 0.3 percentage points "
        "or 8 % of the value; rates of size intervals with at least 1 % of the files within 5 %, "
        "rarer ones within 10 % or between two printed values. Rows without a verdict are shown "
        "for comparison only. Intervals are 95 %, of our figures; the paper's are of one run each "
        "and scatter by about twice as much.",
    ]
