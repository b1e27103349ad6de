"""Sheets: a table or figure of a paper, described by data and functions.

A section has cases, for example the lines of a CSV file, and quantities. Each quantity computes one
value per case, and returns the published value to compare it with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tcpcast.answer import Metric

from tcpcast_papers.printed import Line
from tcpcast_papers.reproduction import Cause, Row, choose_cause
from tcpcast_papers.simulations import Simulations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tcpcast_papers.drawing import Plot
    from tcpcast_papers.reproduction import Printed, Section, Tolerance

Runs = TypeVar("Runs", bound=Simulations[Any])
Case = TypeVar("Case")


def metric_from_half_width(
    value: float, half: float | None = None, least: float = -math.inf
) -> Metric:
    """Return a metric with this half-width; value and lower end are at least ``least``."""
    if half is None:
        return Metric(value)
    return Metric(max(value, least), max(value - half, least), value + half)


def read_column(name: str) -> Callable[[Line], Printed | None]:
    """Return a function that reads the published value from this column of a line."""
    return lambda line: line.printed(name)


@dataclass(frozen=True, slots=True)
class Quantity(Generic[Runs, Case]):
    """A value that is computed for each case of a section.

    Parameters
    ----------
    method
        Last cells of a row's label.
    computed
        Computes tcpcast's value.
    published
        Value to compare with, or None.
    tolerance
        Tolerance for all cases or per case. A row without a tolerance has no verdict; if its
        printed value is a misprint, the verdict is "paper inconsistent".
    condition
        Returns whether a case has this quantity.
    note
        A comment on the row.
    causes
        Possible reasons for a difference, each with tcpcast's value after one change. The row
        states the first reason that explains the difference.
    unit
        Unit, if it differs from that of the section.
    others
        Further values of tcpcast, one for each of the section's ``others``.
    """

    method: tuple[str, ...]
    computed: Callable[[Runs, Case], Metric]
    published: Callable[[Case], Printed | None] = lambda _: None
    tolerance: Callable[[Case], Tolerance | None] | Tolerance | None = None
    condition: Callable[[Case], bool] = lambda _: True
    note: Callable[[Runs, Case], str] = lambda _, __: ""
    causes: tuple[tuple[str, Callable[[Runs, Case], Metric]], ...] = ()
    unit: str = ""
    others: Callable[[Runs, Case], tuple[float | None, ...]] = lambda _, __: ()

    def row(self, runs: Runs, case: Case, label: tuple[str, ...], unit: str) -> Row:
        """Return the row of a case."""
        result, published = self.computed(runs, case), self.published(case)
        tolerance = self.tolerance(case) if callable(self.tolerance) else self.tolerance
        row = Row.from_metric(
            (*label, *self.method),
            self.unit or unit,
            published,
            result,
            tolerance=tolerance,
            note=self.note(runs, case),
            others=self.others(runs, case),
        )
        if published is None:
            return row
        if tolerance is None:
            if isinstance(case, Line) and case.misprint:
                return replace(row, fixed_verdict=case.fixed_verdict, note=row.note or case.note)
            return row
        reach = tolerance.agreeing_range(published)
        causes = (Cause(reason, computed(runs, case).value) for reason, computed in self.causes)
        return replace(row, explained_by=choose_cause(causes, result.value, reach))


@dataclass(frozen=True, slots=True)
class SectionDefinition(Generic[Runs, Case]):
    """A section of a reproduction.

    Parameters
    ----------
    title, columns
        Title of the section, and names of the cells of a row's label.
    unit
        Default unit of the quantities.
    label
        First cells of a row's label.
    cases, quantities
        The section has one row for each case and quantity whose condition it meets.
    notes
        Paragraphs below the table.
    request
        Requests the simulations; None if there are none, or if other sections request them.
    figure
        Draws the figure and names its file in the folder.
    others
        Names of the columns of further values of tcpcast.
    """

    title: str
    columns: tuple[str, ...]
    unit: str
    label: Callable[[Case], tuple[str, ...]]
    cases: Callable[[Runs], Iterable[Case]]
    quantities: tuple[Quantity[Runs, Case], ...]
    notes: Callable[[Runs], list[str]] = lambda _: []
    request: Callable[[Runs], object] | None = None
    figure: Callable[[Runs, Path], Plot] | None = None
    others: tuple[str, ...] = ()

    @property
    def SECTIONS(self) -> tuple[Callable[[Runs, Path], Section]]:  # noqa: N802 - as of a module
        """The function that computes the section."""
        return (self._section,)

    def _section(self, runs: Runs, folder: Path) -> Section:
        section = runs.section(self.title, self.columns, self.others)
        for case in self.cases(runs):
            label = self.label(case)
            for quantity in self.quantities:
                if quantity.condition(case):
                    compute = partial(quantity.row, runs, case, label, self.unit)
                    section.rows += runs.row((*label, *quantity.method), compute)
        if self.figure is not None:
            section.figures.append(self.figure(runs, folder))
        section.remarks = self.notes(runs)
        return section
