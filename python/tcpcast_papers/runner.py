"""A paper described, and how it is reproduced: the same for all of them.

A description says what the paper's sections are, what each wants simulated, and how much that is.
The differences that are known are the file ``accepted.csv`` among the paper's data.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from tcpcast.engines import RunOptions

from tcpcast_papers import drawing, page
from tcpcast_papers.published import read_lines
from tcpcast_papers.report import Accepted, Report
from tcpcast_papers.reproduction import Section, Unfinished
from tcpcast_papers.simulations import Simulations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

SampleSizes = TypeVar("SampleSizes")
Simulated = TypeVar("Simulated", bound=Simulations[Any])
Simulated_contra = TypeVar("Simulated_contra", bound=Simulations[Any], contravariant=True)

WHOLE, QUICK, BOTH = "whole", "quick", "both"
"""Which reproductions a line of ``accepted.csv`` is about."""

BETWEEN_LABELS = " | "


class HasSections(Protocol[Simulated_contra]):
    """A module, a sheet or a :class:`Part` with some sections of a paper.

    If it has an attribute ``wants``, that function requests the simulations.
    """

    @property
    def sections(self) -> Callable[[Simulated_contra, Path], Iterable[Section]]:
        """Makes the sections of the simulations; their figures will be files in the folder."""


@dataclass(frozen=True, slots=True)
class Part(Generic[Simulated]):
    """Sections that belong together.

    Parameters
    ----------
    sections
        Makes them of what was simulated; their figures are to go to the folder.
    wants
        Asks for their simulations; None: they need none, or those of other parts.
    """

    sections: Callable[[Simulated, Path], Iterable[Section]]
    request: Callable[[Simulated], object] | None = None


@dataclass(frozen=True, slots=True)
class Paper(Generic[SampleSizes, Simulated]):
    """A paper to reproduce.

    Parameters
    ----------
    package
        Where its ``data`` are.
    title
        Of the page.
    simulations
        Its class of :class:`~tcpcast_papers.simulations.Simulations`, as that is made.
    whole, quick
        How much is simulated, and how much in short.
    parts
        In the paper's order.
    preface
        What is told above the sections.
    unsettled
        Which reproductions call a figure unsettled that is outside its tolerance by less than its
        own interval, instead of different; "": none.
    """

    package: str
    title: str
    simulations: Callable[[SampleSizes, int | None, Callable[[float], None] | None], Simulated]
    whole: SampleSizes
    quick: SampleSizes
    parts: tuple[HasSections[Simulated], ...]
    preface: Callable[[Simulated], list[str]]
    unsettled: str = ""

    def reproduce(
        self,
        output: Path,
        *,
        quick: bool = False,
        progress: Callable[[float], None] | None = None,
        threads: int | None = None,
        force: bool = False,
    ) -> Report:
        """Lay the paper's figures beside our own, each simulation run once.

        Parameters
        ----------
        output
            Folder for ``index.md`` and its figures; made if it does not exist.
        quick
            Fewer and shorter simulations, within a minute or so on two cores: a figure that is
            outside its tolerance by less than its own interval may then be called unsettled.
        progress
            Called with the share of the work simulated, 0 to 1.
        threads
            Simulations that run at once (None: one a core); it changes no figure.
        force
            Whether files in the folder that are not of a reproduction may be replaced.

        Returns
        -------
        Report
            Sections, rows that are ``new`` or ``gone`` beside the differences that are known, and
            ``page``, the path of ``index.md``. After Ctrl-C, the sections that were finished.

        Raises
        ------
        DomainError
            ``threads`` is no number of threads.
        EnvironmentFault
            matplotlib is not installed, or the folder cannot be written to.
        TcpcastError
            It holds a page that is not of a reproduction, and not ``force``.
        KeyboardInterrupt
            The reader gave up before any section was finished.
        """
        simulations = self.simulations(self.quick if quick else self.whole, threads, progress)
        return self.report(simulations, output, quick=quick, force=force)

    def report(self, simulations: Simulated, output: Path, *, quick: bool, force: bool) -> Report:
        """Reproduce the paper by these simulations, as :meth:`reproduce` does."""
        RunOptions(threads=simulations.threads)
        page.check_folder(output, force=force)
        drawing.panels(1)  # Without matplotlib, say so before minutes of simulation.
        for part in self.parts:
            if (request := getattr(part, "request", None)) is not None:
                request(simulations)
        simulations.simulate()
        sections, interrupted = self._finished(simulations, output)
        runs = QUICK if quick else WHOLE
        if self.unsettled in {runs, BOTH}:
            for section in sections:
                section.rows = [replace(row, settle=True) for row in section.rows]
        report = Report(
            self.title,
            sections,
            preface=self.preface(simulations),
            accepted=accepted(self.package, runs),
            interrupted=interrupted,
        )
        try:
            page.write(report, output, force=force)
        except KeyboardInterrupt:
            report.interrupted = True
            page.write(report, output)
        return report

    def _finished(self, simulations: Simulated, output: Path) -> tuple[list[Section], bool]:
        """Return the sections, and whether Ctrl-C left some of them out."""
        result: list[Section] = []
        interrupted = simulations.interrupted
        for part in self.parts:
            try:
                result += part.sections(simulations, output)
            except Unfinished:
                continue
            except KeyboardInterrupt:
                interrupted = True
                break
        if interrupted and not result:
            raise KeyboardInterrupt
        return result, interrupted


def accepted(package: str, runs: str) -> tuple[Accepted, ...]:
    """Return the differences that are known of a paper's whole or quick reproduction."""
    return tuple(
        Accepted(line["section"], tuple(line["row"].split(BETWEEN_LABELS)), line["reason"])
        for line in read_lines(package, "accepted.csv")
        if line["runs"] in {runs, BOTH}
    )
