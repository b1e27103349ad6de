"""Description of a paper, and the steps of a reproduction that all papers share.

A description lists the paper's sections, the simulations that each of them requests, and the sample
sizes. The file ``accepted.csv`` in the paper's data lists the known differences, if there are any.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from tcpcast.engines import RunOptions

from tcpcast_papers import claims, drawing, page, scenario_files
from tcpcast_papers.printed import BOTH, QUICK, WHOLE, lines_of_runs
from tcpcast_papers.report import KnownDifference, Report
from tcpcast_papers.reproduction import NotSelected, Unfinished, Verdict
from tcpcast_papers.simulations import Simulations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tcpcast_papers.reproduction import Section
    from tcpcast_papers.simulations import Selection

SampleSizes = TypeVar("SampleSizes")
Simulated = TypeVar("Simulated", bound=Simulations[Any])
Simulated_contra = TypeVar("Simulated_contra", bound=Simulations[Any], contravariant=True)


class HasSections(Protocol[Simulated_contra]):
    """A module, or a definition of a section, with sections of a paper.

    An optional attribute ``request`` is a function that requests their simulations.
    """

    @property
    def SECTIONS(self) -> Sequence[Callable[[Simulated_contra, Path], Section]]:  # noqa: N802
        """Functions that compute a section each from the simulations; figures go into the folder.

        A function raises NotSelected if these runs have no such section.
        """


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
        cell: str = "",
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
        cell
            Rows to compute, such as ``Table 6, N = 82, rate``; "" for all rows. No page is then
            written, and only the simulations of these rows run.

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
        ScenarioError
            The paper has no such cell; the message has the nearest names.
        TcpcastError
            A folder contains another index, and ``force`` is not set.
        KeyboardInterrupt
            The user pressed Ctrl-C before any section was finished.
        """
        simulations = self.simulations(self.quick if quick else self.whole, threads, progress)
        return self.report(
            simulations, output, quick=quick, force=force, scenarios=scenarios, cell=cell
        )

    def report(  # noqa: PLR0913 - one parameter per option
        self,
        simulations: Simulated,
        output: Path,
        *,
        quick: bool,
        force: bool,
        scenarios: Path | None = None,
        cell: str = "",
        may_differ: Callable[[KnownDifference], bool] | None = None,
    ) -> Report:
        """Reproduce the paper with these simulations, like :meth:`reproduce`.

        ``may_differ`` selects the known differences of these simulations; None for all.
        """
        RunOptions(threads=simulations.threads)
        if not cell:
            page.check_folder(output, force=force)
        if scenarios is not None:
            scenario_files.check_folder(scenarios, force=force)
        drawing.create_panels(1)  # Raise before the simulations if matplotlib is missing.
        for part in self.parts:
            if (request := getattr(part, "request", None)) is not None:
                request(simulations)
        lines = QUICK if quick else WHOLE
        if cell:
            report = self._report_of_cell(simulations, output, cell, lines)
        else:
            simulations.simulate()
            sections, interrupted = self._compute_sections(simulations, output)
            statements = claims.read(self.package, lines)
            if statements and not interrupted:
                sections.insert(0, claims.section(statements, sections))
            preface = self.preface(simulations)
            if lines == QUICK:
                preface.append("This is the quick reproduction: fewer and shorter simulations.")
            if self.unsettled in {lines, BOTH}:
                preface.append(
                    "A value is unsettled if it exceeds its tolerance by less than its interval."
                )
            report = self._report_of_sections(sections, lines, preface, interrupted)
        report.known_differences = tuple(filter(may_differ, report.known_differences))
        try:
            if scenarios is not None and not report.interrupted:
                runs_and_readers = simulations.recorded_runs()
                report.commands = scenario_files.write(
                    runs_and_readers, scenarios, report.write_errors, force=force
                )
            if not cell:
                page.write(report, output, force=force)
        except KeyboardInterrupt:
            report.interrupted = True
            if not cell:
                page.write(report, output)
        return report

    def _report_of_cell(
        self, simulations: Simulated, output: Path, cell: str, lines: str
    ) -> Report:
        """Return a report of the rows that a text names, and of the differences in them."""
        named = claims.NamedRows(cell)
        sections = list(self._selected_sections(simulations, output, named))
        statements = claims.named_claims(named, claims.read(self.package, lines))
        if statements and not simulations.interrupted:
            tested = claims.RowsOfClaims(statements)
            rows = list(self._selected_sections(simulations, output, tested))
            sections.append(claims.section(statements, rows))
        if simulations.interrupted:
            raise KeyboardInterrupt
        if not sections:
            raise named.unknown()
        report = self._report_of_sections(sections, lines)
        gone = report.gone
        report.known_differences = tuple(k for k in report.known_differences if k not in gone)
        return report

    def _selected_sections(
        self, simulations: Simulated, output: Path, selection: Selection
    ) -> Iterator[Section]:
        simulations.selection = selection
        for part in self.parts:
            for compute in part.SECTIONS:
                section = simulations.selected_rows(partial(compute, simulations, output))
                if section is not None:
                    simulations.assign_results_to_sections([section])
                    yield section

    def _report_of_sections(
        self,
        sections: list[Section],
        lines: str,
        preface: Sequence[str] = (),
        interrupted: bool = False,
    ) -> Report:
        if self.unsettled in {lines, BOTH}:
            for section in sections:
                section.rows = [replace(row, may_be_unsettled=True) for row in section.rows]
        return Report(
            self.title,
            sections,
            preface=list(preface),
            known_differences=known_differences(self.package, lines),
            interrupted=interrupted,
        )

    def _compute_sections(self, simulations: Simulated, output: Path) -> tuple[list[Section], bool]:
        """Return the finished sections, and whether Ctrl-C left some of them out."""
        result: list[Section] = []
        interrupted = simulations.interrupted
        try:
            for part in self.parts:
                for compute in part.SECTIONS:
                    try:
                        section = compute(simulations, output)
                    except (Unfinished, NotSelected):
                        continue
                    simulations.assign_results_to_sections([section])
                    result.append(section)
        except KeyboardInterrupt:
            interrupted = True
        if interrupted and not result:
            raise KeyboardInterrupt
        return result, interrupted


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
