"""Sections of a page of sets: the errors of all sets, each set, and the sign test."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from tcpcast_papers.drawing import agreement_plot
from tcpcast_papers.kernel.sections import digits_text, sign_test_row
from tcpcast_papers.kernel.signs import NEGLIGIBLE_SHARE, sign_tests_of_groups
from tcpcast_papers.reproduction import (
    Cause,
    NotSelected,
    Printed,
    Row,
    Section,
    Tolerance,
    choose_cause,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tcpcast_papers.published.cells import Cell, CellSet, Value
    from tcpcast_papers.published.runs import Comparison, PublishedRuns

_WORST = 3


def _errors_section(runs: PublishedRuns, _: Path) -> Section:
    """Return the numbers of values inside, and the three worst cells of each set."""
    section = runs.section("Errors. Values inside the tolerance, and the worst cells of each set")
    for each in runs.sets:
        groups: dict[str, list[Comparison]] = {}
        for line in runs.compare(each):
            if line.value.allowed is None:
                continue
            groups.setdefault(line.value.quantity.partition(" of flow")[0], []).append(line)
        for quantity, lines in groups.items():
            section.remarks.append(f"- {each.name}, {quantity}: {summary_text(lines)}")
    if not section.remarks:
        raise NotSelected
    return section


def summary_text(lines: list[Comparison]) -> str:
    """Return the numbers of values inside, typical errors and the worst cells of a quantity."""
    errors = sorted(abs(line.error) for line in lines)
    points = lines[0].value.unit == "%"
    scale, unit = (1.0, "points") if points else (100.0, "%")
    worst = sorted(lines, key=lambda line: -abs(line.difference) / (line.max_difference or 1.0))
    cells = "; ".join(f"{' '.join(line.cell.label)} {line.error_text}" for line in worst[:_WORST])
    high = errors[math.ceil(0.9 * len(errors)) - 1]
    return (
        f"{sum(line.is_inside for line in lines)} of {len(lines)} inside, "
        f"{sum(line.is_inside_tolerance for line in lines)} of them without intervals; "
        f"error median {scale * median(errors):.1f}, 90 % below {scale * high:.1f}, "
        f"median with sign {scale * median(line.error for line in lines):+.1f} {unit}; "
        f"worst: {cells}"
    )


def _set_section(runs: PublishedRuns, folder: Path, *, cell_set: CellSet) -> Section:
    cells = runs.cells_of(cell_set)
    if not cells:
        raise NotSelected
    section = runs.section(cell_set.section_title, (*cell_set.columns, "quantity"))
    for cell in cells:
        for value in cell.values:
            label = (*cell.label, value.quantity)
            section.rows += runs.row(label, _row, runs, cell_set, cell, value)
    section.remarks = list(cell_set.set_up)
    if runs.selection is None:
        lines = runs.compare(cell_set)
        unit = lines[0].value.unit
        points = [
            (line.value.measured, line.half_widths[0], line.own.value, line.half_widths[1])
            for line in lines
        ]
        name = "".join(letter if letter.isalnum() else "-" for letter in cell_set.name.lower())
        section.figures.append(
            agreement_plot({cell_set.name: (unit, points)}, folder / f"{name}.png")
        )
    return section


def _row(runs: PublishedRuns, cell_set: CellSet, cell: Cell, value: Value) -> Row:
    line = runs.comparison(cell_set, cell, value)
    measured, reach = line.value.measured, line.max_difference
    causes = (
        Cause(
            variant.reason,
            runs.metrics_of(cell_set, line.cell, variant.reason)[line.value.quantity].value,
        )
        for variant in line.cell.variants
    )
    return comparison_row(
        line, choose_cause(causes, line.own.value, (measured - reach, measured + reach))
    )


def comparison_row(line: Comparison, explained_by: Cause | None = None) -> Row:
    """Return the row of a measured and a simulated value."""
    value = line.value
    measured, _ = line.half_widths
    note = f"tolerance ±{digits_text(line.tolerance, 2)}"
    if measured:
        note = f"measured ±{digits_text(measured, 2)}, {note}"
    return Row.from_metric(
        (*line.cell.label, value.quantity),
        value.unit,
        Printed(digits_text(value.measured), "measured", value.measured),
        line.own,
        tolerance=None if value.allowed is None else Tolerance(absolute=line.max_difference),
        note="" if value.allowed is None else note,
        explained_by=explained_by,
    )


def _sign_section(runs: PublishedRuns, _: Path) -> Section:
    section = runs.section(
        "Signs. Share of values above the measured ones, of those that differ",
        ("set", "quantity", "group"),
    )
    sides: dict[tuple[str, ...], list[bool]] = {}
    for each in runs.sets:
        for line in runs.compare(each):
            if line.value.allowed and abs(line.difference) >= NEGLIGIBLE_SHARE * line.tolerance:
                group = (each.name, line.value.quantity, line.cell.group)
                sides.setdefault(group, []).append(line.difference > 0)
    section.rows = [sign_test_row(test) for test in sign_tests_of_groups(sides)]
    if not section.rows:
        raise NotSelected
    return section


@dataclass(frozen=True)
class SetSections:
    """Sections of a page about these sets."""

    sets: tuple[CellSet, ...]

    @staticmethod
    def request(runs: PublishedRuns) -> None:
        """Request every cell."""
        runs.request_all()

    @property
    def SECTIONS(self) -> tuple[Callable[[PublishedRuns, Path], Section], ...]:  # noqa: N802
        """The sections in order."""
        of_sets = (partial(_set_section, cell_set=each) for each in self.sets)
        return (_errors_section, *of_sets, _sign_section)
