"""Description of a paper, and the steps of a reproduction that all papers share.

A description lists the paper's sections, the simulations that each of them requests, and the sample
sizes. The file ``accepted.csv`` in the paper's data lists the known differences, if there are any.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from tcpcast.engines import RunOptions

from tcpcast_papers import claims, drawing, page, scenario_files
from tcpcast_papers.published import BOTH, QUICK, WHOLE, lines_of_runs
from tcpcast_papers.report import KnownDifference, Report
from tcpcast_papers.reproduction import Section, Unfinished, Verdict
from tcpcast_papers.simulations import Simulations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

SampleSizes = TypeVar("SampleSizes")
Simulated = TypeVar("Simulated", bound=Simulations[Any])
Simulated_contra = TypeVar("Simulated_contra", bound=Simulations[Any], contravariant=True)


class HasSections(Protocol[Simulated_contra]):
    """A module, or a definition of a section, with sections of a paper.

    An optional attribute ``request`` is a function that requests their simulations.
    """

    @property
    def sections(self) -> Callable[[Simulated_contra, Path], Iterable[Section]]:
        """Function that computes the sections from the simulations; figures go into the folder."""


@dataclass(frozen=True, slots=True)
class Paper(Generic[SampleSizes, Simulated]):
    """A paper to reproduce.

    Parameters
    ----------
    package
        Name of the package that contains ``data``.
    title
        Title of the page.
    parts
        Sections in the order of the paper.
    preface
        Paragraphs above the sections.
    simulations
        Constructor of the paper's :class:`~tcpcast_papers.simulations.Simulations`.
    whole, quick
        Sample sizes of the whole and of the quick reproduction.
    unsettled
        Reproductions that call a value "unsettled" instead of different if it is outside its
        tolerance by less than its own interval; "" for none.
    """

    package: str
    title: str
    parts: tuple[HasSections[Simulated], ...]
    preface: Callable[[Simulated], list[str]]
    simulations: Callable[[SampleSizes, int | None, Callable[[float], None] | None], Simulated]
    whole: SampleSizes
    quick: SampleSizes
    unsettled: str = ""

    def reproduce(  # noqa: PLR0913 - one parameter per option
        self,
        output: Path,
        *,
        quick: bool = False,
        progress: Callable[[float], None] | None = None,
        threads: int | None = None,
        force: bool = False,
        scenarios: Path | None = None,
    ) -> Report:
        """Compare the paper's values with tcpcast's; run each simulation once.

        Parameters
        ----------
        output
            Folder for ``index.md`` and its figures; created if necessary.
        quick
            Run fewer and shorter simulations, for about a minute on two cores. A value outside
            its tolerance by less than its own interval may then be called unsettled.
        progress
            Called with the completed share of the work, 0 to 1.
        threads
            Maximum number of simultaneous simulations (None: one per core); no effect on values.
        force
            Whether to overwrite files in the folders that are not from a reproduction.
        scenarios
            Folder for a scenario file of each simulation, and their index; None for no files.

        Returns
        -------
        Report
            Sections, rows that are ``new`` or ``gone`` compared with the known differences, and
            ``page``, the path of ``index.md``. After Ctrl-C, only the finished sections.

        Raises
        ------
        DomainError
            ``threads`` is not a valid number of threads.
        MachineError
            matplotlib is not installed, or the folder cannot be written to.
        TcpcastError
            A folder contains another index, and ``force`` is not set.
        KeyboardInterrupt
            The user pressed Ctrl-C before any section was finished.
        """
        simulations = self.simulations(self.quick if quick else self.whole, threads, progress)
        return self.report(simulations, output, quick=quick, force=force, scenarios=scenarios)

    def report(
        self,
        simulations: Simulated,
        output: Path,
        *,
        quick: bool,
        force: bool,
        scenarios: Path | None = None,
    ) -> Report:
        """Reproduce the paper with these simulations, like :meth:`reproduce`."""
        RunOptions(threads=simulations.threads)
        page.check_folder(output, force=force)
        if scenarios is not None:
            scenario_files.check_folder(scenarios, force=force)
        drawing.create_panels(1)  # Raise before the simulations if matplotlib is missing.
        for part in self.parts:
            if (request := getattr(part, "request", None)) is not None:
                request(simulations)
        simulations.simulate()
        sections, interrupted = self._compute_sections(simulations, output)
        lines = QUICK if quick else WHOLE
        statements = claims.read(self.package, lines)
        if statements and not interrupted:
            sections.insert(0, claims.section(statements, sections))
        preface = self.preface(simulations)
        if quick:
            preface.append("This is the quick reproduction: fewer and shorter simulations.")
        if self.unsettled in {lines, BOTH}:
            preface.append(
                "A value outside its tolerance by less than its own interval is unsettled."
            )
            for section in sections:
                section.rows = [replace(row, may_be_unsettled=True) for row in section.rows]
        report = Report(
            self.title,
            sections,
            preface=preface,
            known_differences=known_differences(self.package, lines),
            interrupted=interrupted,
        )
        try:
            if scenarios is not None and not interrupted:
                runs_and_readers = simulations.recorded_runs()
                report.write_errors += scenario_files.write(
                    runs_and_readers, scenarios, force=force
                )
            page.write(report, output, force=force)
        except KeyboardInterrupt:
            report.interrupted = True
            page.write(report, output)
        return report

    def _compute_sections(self, simulations: Simulated, output: Path) -> tuple[list[Section], bool]:
        """Return the finished sections, and whether Ctrl-C left some of them out."""
        result: list[Section] = []
        interrupted = simulations.interrupted
        for part in self.parts:
            try:
                for made in _section_batches(part.sections(simulations, output)):
                    simulations.assign_results_to_sections(made)
                    result += made
            except Unfinished:
                continue
            except KeyboardInterrupt:
                interrupted = True
                break
        if interrupted and not result:
            raise KeyboardInterrupt
        return result, interrupted


def _section_batches(sections: Iterable[Section]) -> Iterator[list[Section]]:
    """Yield a list of sections unchanged, or the sections of an iterator one by one."""
    if isinstance(sections, list):
        yield sections
    else:
        yield from ([section] for section in sections)


def known_differences(package: str, runs: str) -> tuple[KnownDifference, ...]:
    """Return the known differences of a paper's whole or quick reproduction."""
    values = (
        KnownDifference(
            line["section"], tuple(line["row"].split(claims.BETWEEN_LABELS)), line["reason"]
        )
        for line in lines_of_runs(package, "accepted.csv", runs)
    )
    statements = (
        KnownDifference(claims.TITLE, (line["place"], line["statement"]), line["reason"])
        for line in claims.read(package, runs)
        if claims.expected_verdict(line) is Verdict.DIFFERS
    )
    return (*values, *statements)
