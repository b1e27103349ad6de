"""The whole paper: simulate every point once, then write the sections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.papers import drawing
from tcpcast.papers.parallel import appendix, claims, figures, loss_events, open_choices
from tcpcast.papers.parallel.published import CITATION
from tcpcast.papers.parallel.runs import QUICK, WHOLE, Runs
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
    """Lay the two models beside simulations of the paper's set-ups.

    Parameters
    ----------
    output
        Folder for ``index.md`` and its figures; made if it does not exist.
    quick
        Fewer points and shorter simulations: within half a minute on two cores.
    progress
        Called with the share of the work simulated, 0 to 1.
    threads
        Replications that run at once (None: one a core); it changes no figure.
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
    for part in (figures, open_choices, loss_events):
        part.wanted(runs)
    runs.simulate()
    sections = finished(
        [
            lambda: figures.sections(runs, output),
            lambda: [claims.section(runs)],
            lambda: [open_choices.section(runs)],
            lambda: [loss_events.section(runs, output)],
            lambda: [appendix.section()],
        ]
    )
    title = "Parallel flows: the paper's models and simulated flows"
    report = Report(title, sections, preface=_preface(runs), interrupted=runs.interrupted)
    report.write(output, force=force)
    return report


def _preface(runs: Runs) -> list[str]:
    quick = "" if runs.effort == WHOLE else "This is the quick run: fewer points, shorter runs. "
    return [
        f"The paper: {CITATION}. Its results are figures without numbers, so that nearly all rows "
        "are without a verdict, shown to be looked at.",
        "p is the loss events of any flow per packet, p_e those of all flows taken as one (at most "
        "one a round trip), p_r the packets lost. The models are fed with what each simulation "
        "measures, as in the paper: these, RTT, and T, the mean first timeout.",
        f"{quick}{len(runs)} simulated points stand behind it, {runs.effort.replications} "
        "replications each but where every packet is traced.",
    ]
