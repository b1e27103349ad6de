"""A plan as parts of a report: the verdict, the computed values and notes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer import Metric, warning_severity
from tcpcast.answer.finding import Finding
from tcpcast.quantity.units import digits
from tcpcast.report.document import (
    BLANK_LINE,
    Code,
    Column,
    Document,
    Heading,
    Paragraph,
    Table,
    command_parts,
)
from tcpcast.report.quantity import (
    ABSENT_MARK,
    Scale,
    interval_text,
    metric_label,
    scale_for_unit,
)
from tcpcast.report.summary import MAX_WARNINGS, describe_scenario
from tcpcast.report.verdict import value_text, verdict_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tcpcast.plan import Plan
    from tcpcast.report.document import Part, Role
    from tcpcast.scenario import Scenario

    Columns = Mapping[str, np.ndarray[Any, Any]]

_UNITS_BY_SUFFIX = {"_bps": "bit/s", "_s": "s", "_pkts": "packet", "_bytes": "B"}
_RATIO_COLUMNS = ("loss_ratio", "utilisation")
_INTERVAL_COLUMNS = {"low", "high"}
_MIN_TEXT_WIDTH = 30
"""Minimum width of a text column, whose cells are wrapped."""


def plan_parts(plan: Plan, scenario: Scenario) -> list[Part]:
    """Return the report that ``tcpcast plan`` prints."""
    lead = Paragraph(describe_scenario(scenario), lead=f"{scenario.name}: ")
    return [lead, BLANK_LINE, *plan_answer_parts(plan)]


def plan_answer_parts(plan: Plan) -> list[Part]:
    """Return the report without a description of the scenario."""
    return [
        Paragraph(plan_verdict(plan), "heading"),
        *_metric_parts(plan),
        *([BLANK_LINE, Paragraph(plan.recommendation)] if plan.recommendation else []),
        *_table_parts(plan),
        BLANK_LINE,
        *_remark_parts(plan),
    ]


def plan_verdict(plan: Plan) -> str:
    """Return the answer in one sentence, with its uncertainty and its basis."""
    return verdict_text(plan.findings)


def plan_document(
    plan: Plan, scenario: Scenario, command: str, figure_name: str, figures: bool = False
) -> Document:
    """Return the report on a plan.

    Parameters
    ----------
    plan, scenario
        The plan, and the scenario with the plan's answer inserted.
    command
        The command that reproduces the report.
    figure_name
        Name of the figure.
    figures
        Draw the metric against the varied quantity with matplotlib.
    """
    parts: list[Part] = [
        Paragraph(f"{describe_scenario(scenario)}."),
        *plan_answer_parts(plan),
        *(_inline_figures(plan, scenario, figure_name) if figures else ()),
        Heading("The scenario"),
        Paragraph(
            "All keys, including defaults"
            f"{'.' if plan.scenario is None else ', with the answer inserted.'}"
        ),
        Code(scenario.to_toml()),
        *command_parts(command),
    ]
    return Document(f"{scenario.name}: {plan.question}", parts)


def _inline_figures(plan: Plan, scenario: Scenario, name: str) -> Iterator[Part]:
    """Yield the figure of a plan with computed values."""
    if not plan.runs:
        return
    from tcpcast.report.figures import figure_parts  # noqa: PLC0415 - matplotlib is slow to import
    from tcpcast.report.plan_figures import plan_figure  # noqa: PLC0415

    yield from figure_parts("Figure", [(name, plan_figure(plan, scenario))])


def _metric_parts(plan: Plan) -> Iterator[Part]:
    """Yield a line with the value of the target metric at the answer, if it is known."""
    metric = plan.metric_at_value
    if metric is None or plan.untrusted:
        return
    shown = value_text(Finding(metric=plan.metric, value=metric))
    how = f", from a fit to {plan.fit_runs} runs" if plan.fit_runs else ""
    yield Paragraph(f"The {plan.quantity or metric_label(plan.metric)} is then {shown}{how}.")


def _table_parts(plan: Plan) -> Iterator[Part]:
    """Yield the tables of a plan."""
    headings = {"rules": "Rules of thumb", "values": f"Values by {plan.engine}"}
    for name, heading in headings.items():
        columns = plan.tables.get(name)
        if columns and all(map(len, columns.values())):
            yield from (BLANK_LINE, columns_table(columns, heading))


def _remark_parts(plan: Plan) -> Iterator[Paragraph]:
    """Yield the notes, and the most severe warnings."""
    worst = list(map(str, sorted(plan.warnings, key=warning_severity)))
    left = len(worst) - MAX_WARNINGS
    more = [f"{left} more warning{'s' * (left > 1)} with --json"] if left > 0 else []
    groups: tuple[tuple[str, Role, Sequence[str]], ...] = (
        (" " if worst else "", "aside", plan.notes),
        ("!", "warning", worst[:MAX_WARNINGS]),
        (" ", "aside", more),
    )
    for mark, role, texts in groups:
        yield from (Paragraph(text, role, f" {mark} ", right_margin=1) for text in texts)


def columns_table(columns: Columns, title: str = "") -> Table:
    """Return named columns as a table in readable units, ``low`` and ``high`` as an interval.

    The suffix of a name gives the unit (``_bps``, ``_s``, ``_pkts``). ``low`` and ``high`` bound
    the column before them. On a narrow terminal, the remaining columns follow below, after a
    repetition of the first column.
    """
    shown = [_table_column(name, columns) for name in columns if name not in _INTERVAL_COLUMNS]
    if set(columns) >= _INTERVAL_COLUMNS and np.isfinite(columns["low"]).any():
        at = list(columns).index("low")
        shown.insert(at, _interval_column(list(columns)[at - 1], columns))
    return Table(shown, title, repeated_columns=1)


def _table_column(name: str, columns: Columns) -> Column:
    column = columns[name]
    if column.dtype.kind in "UO":
        texts = [str(text) for text in column]
        return Column(metric_label(name), texts, right=False, min_width=_MIN_TEXT_WIDTH)
    scale = _column_scale(name, column)
    values = [float(v) / scale.factor for v in column]
    sizes = [abs(v) for v in values if math.isfinite(v)]
    decimals = _decimals(sizes)
    cells = [f"{v:,.{decimals}f}" if math.isfinite(v) else ABSENT_MARK for v in values]
    if decimals and any(0 < size < 10.0 ** (1 - decimals) for size in sizes):
        # The decimals of the largest value would round the smallest to zero or one digit.
        cells = [digits(v) if math.isfinite(v) else ABSENT_MARK for v in values]
    heading = "\n".join([*metric_label(name).split(), *([f"({scale.unit})"] if scale.unit else [])])
    return Column(heading, cells, right=True)


def _interval_column(name: str, columns: Columns) -> Column:
    scale = _column_scale(name, columns[name])
    bounds = zip(columns[name], columns["low"], columns["high"], strict=True)
    cells = [interval_text(Metric(float(v), float(a), float(b)), scale) for v, a, b in bounds]
    return Column("95 %", cells, right=False)


def _decimals(sizes: list[float]) -> int:
    """Return the number of decimals for four digits of the largest value; 0 for integers."""
    largest = max(sizes, default=0.0)
    if largest == 0 or all(size == int(size) for size in sizes):
        return 0
    return max(0, 3 - math.floor(math.log10(largest)))


def _column_scale(name: str, column: np.ndarray[Any, Any]) -> Scale:
    if name in _RATIO_COLUMNS:
        return Scale(0.01, "%")
    unit = next((u for ending, u in _UNITS_BY_SUFFIX.items() if name.endswith(ending)), "1")
    finite = np.abs(column[np.isfinite(column)])
    return scale_for_unit(unit, float(finite.max(initial=0.0)))
