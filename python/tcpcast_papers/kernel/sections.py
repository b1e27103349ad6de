"""Sections of the page: a summary, the cells of each kind, the sign test and the models."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast_papers.kernel import comparison, models, signs
from tcpcast_papers.kernel.agreement import half_width, quantity_format
from tcpcast_papers.kernel.cells import KINDS
from tcpcast_papers.kernel.comparison import NOT_SIMULATED, ONE_RUN, compare_cells
from tcpcast_papers.reproduction import Printed, Row, Section, Tolerance

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast_papers.kernel.comparison import Comparison
    from tcpcast_papers.kernel.models import Prediction
    from tcpcast_papers.kernel.runs import KernelRuns
    from tcpcast_papers.kernel.signs import SignTest

KERNEL_COLUMN = "kernel"
"""Title of the kernel's column; reports on papers have printed values in this column."""

TITLES = {
    "random loss": "Random loss. Long flows",
    "drop-tail": "Drop-tail. Flows of one stack at a drop-tail queue",
    "AQM": "AQM. CoDel and FQ-CoDel",
    "pairs": "Pairs. Flows of two stacks or round-trip times at a drop-tail queue",
    "startup": "Start-up. Bytes delivered at times after the accept",
    "transfers": "Transfers. Short files",
    "on/off": "On/off. Files on a shared link",
}
"""Titles of the sections, by kind of cells."""

SIGN_TEST_TITLE = "Signs. Share of values above the kernel's, of those that differ"
"""Title of the section with the sign test."""

COLUMNS = ("series", "cell", "quantity")


def summary_section(runs: KernelRuns, _: Path) -> list[Section]:
    """Return the summary: the numbers of values that agree, by kind and quantity."""
    section = Section("Summary. Numbers of values that agree")
    for row in comparison.summary_lines(compare_cells(runs)):
        kind, title, checked, agree, close, median, missing = row
        numbers = [
            f"{agree} of {checked} agree, {close} of them without intervals",
            f"median difference {median}",
        ]
        left = [] if missing == "0" else [f"{missing} not simulated"]
        parts = [*(numbers if checked != "0" else []), *left]
        section.remarks.append(f"- {kind}, {title}: {'; '.join(parts)}")
    return [section]


def kind_sections(runs: KernelRuns, _: Path) -> list[Section]:
    """Return a section for each kind of cells, with one row per quantity."""
    lines = compare_cells(runs)
    result = []
    for kind in KINDS:
        rows = [_comparison_row(line) for line in lines if line.cell.kind == kind]
        if rows:
            result.append(Section(TITLES[kind], COLUMNS, rows))
    return result


def sign_test_section(runs: KernelRuns, _: Path) -> list[Section]:
    """Return the sign test: the share of values above the kernel, with one row per group."""
    rows = [sign_test_row(each) for each in signs.sign_tests(compare_cells(runs))]
    return (
        [Section(SIGN_TEST_TITLE, ("kind", "quantity", "stack", "queue", "buffer"), rows)]
        if rows
        else []
    )


def sign_test_row(each: SignTest) -> Row:
    """Return the row of a group, with its probability before and after Bonferroni's correction."""
    return Row(
        each.group,
        "%",
        Printed("50", "chance"),
        100 * each.share,
        tolerance=Tolerance(absolute=100 * each.max_deviation),
        note=f"{each.above} above, {each.below} below, p = {each.probability:.2g}, "
        f"corrected for {each.groups} groups {each.corrected_probability:.2g}",
    )


def _comparison_row(line: Comparison) -> Row:
    known = quantity_format(line.name)
    title, unit, scale = (known.title, known.unit, known.scale) if known else (line.name, "1", 1.0)
    kernel = line.kernel.mean * scale
    return Row.from_metric(
        (line.cell.series, line.cell.name, title),
        unit,
        Printed(_digits_text(kernel), KERNEL_COLUMN, kernel),
        line.own,
        scale,
        tolerance=None
        if line.max_difference is None
        else Tolerance(absolute=line.max_difference * scale),
        note=_comparison_note(line, scale),
    )


def _comparison_note(line: Comparison, scale: float) -> str:
    if line.verdict == NOT_SIMULATED:
        return f"not simulated: {line.refusal}"
    if line.verdict == ONE_RUN:
        return "one run of the kernel: no interval, no verdict"
    half = f"kernel ±{_digits_text(line.kernel.half_width * scale, 2)}"
    own = half_width(line.own) * scale if line.own is not None else 0.0
    return f"{half}, tolerance ±{_digits_text(line.tolerance * scale, 2)}" + (
        "" if own else ", own value without interval"
    )


def _digits_text(value: float, digits: int = 4) -> str:
    """Return a value with this number of digits, without an exponent."""
    if not value or not math.isfinite(value):
        return "0"
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"


def model_section(runs: KernelRuns, _: Path) -> list[Section]:
    """Return the models and the kernel side by side, without a verdict."""
    every = models.predict_cells(runs)
    section = Section(
        "Models. Formulas compared with the kernel",
        ("model", "fed by", "series", "cell"),
        [_prediction_row(each) for each in every],
    )
    section.remarks = [
        f"- {model}, with inputs from the {feed}, {stack}: {median} of the kernel's rate ({span}) "
        f"in {inside} of {cells} cells, those in its domain"
        for model, feed, stack, cells, inside, median, span in models.summary_lines(every)
    ]
    return [section]


def _prediction_row(each: Prediction) -> Row:
    scale, unit = (1e-6, "Mbit/s") if each.unit == "bit/s" else (1.0, each.unit)
    return Row(
        (each.model, each.feed, each.cell.series, each.cell.name),
        unit,
        Printed(_digits_text(each.kernel * scale), KERNEL_COLUMN, each.kernel * scale),
        each.value * scale,
        note="" if each.trusted else "outside the model's domain",
    )
