"""A plan as parts of a report: the values from model and simulation, and tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer import Metric, warning_severity
from tcpcast.compare import Difference
from tcpcast.engines import REGISTRY
from tcpcast.engines.registry import Formula
from tcpcast.limit_names import limit_name
from tcpcast.readable_units import count_text
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
    UNTRUSTED_MARK,
    Scale,
    amount_text,
    difference_text,
    interval_text,
    is_count,
    metric_label,
    scale_for_metric,
    scale_for_unit,
    value_text,
)
from tcpcast.report.summary import MAX_WARNINGS, describe_scenario
from tcpcast.units import digits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tcpcast.plan import Plan
    from tcpcast.report.document import Part, Role
    from tcpcast.scenario import Scenario

    Columns = Mapping[str, np.ndarray[Any, Any]]

_UNITS_BY_SUFFIX = {"_bps": "bit/s", "_s": "s", "_pkts": "packet", "_bytes": "B"}
_RATIO_COLUMNS = ("loss_ratio", "utilisation", "timeout_ratio", "load", "share_above")
_INTERVAL_COLUMNS = {"low", "high"}
_MIN_TEXT_WIDTH = 30
"""Minimum width of a text column, whose cells are wrapped."""


def plan_parts(plan: Plan, scenario: Scenario) -> list[Part]:
    """Return the report that ``tcpcast plan`` prints."""
    lead = Paragraph(describe_scenario(scenario), lead=f"{scenario.name}: ")
    return [lead, BLANK_LINE, *plan_answer_parts(plan)]


def plan_answer_parts(plan: Plan) -> list[Part]:
    """Return the report without a description of the scenario."""
    parts: list[Part] = [
        Paragraph(plan_verdict(plan), "heading"),
        *(Paragraph(f"  {name:<18}{text}") for name, text in _answer_lines(plan)),
        *_advice_parts(plan),
        *_table_parts(plan),
        BLANK_LINE,
    ]
    return [*parts, *_remark_parts(plan)]


def plan_verdict(plan: Plan) -> str:
    """Return the answer in one sentence, with its uncertainty and its method."""
    method, value = _answer_lines(plan)[0]
    entry = REGISTRY.get(plan.engine)
    if entry is not None and plan.has_model and not plan.is_simulation_reported_first:
        kind = "the formula" if isinstance(entry, Formula) else "engine"
        method = f"by {kind} {plan.engine}"
    doubt = ", not to be trusted" if UNTRUSTED_MARK in value else ""
    return f"The {plan.question} is {value.replace(UNTRUSTED_MARK, '')}, {method}{doubt}."


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
        Draw the curve with matplotlib.
    """
    answers = _answer_lines(plan)
    shown = [
        Column("", [name for name, _ in answers], right=False),
        Column("answer", [text for _, text in answers], right=False),
    ]
    warned = [Heading("Check before use")]
    parts: list[Part] = [
        Paragraph(f"{describe_scenario(scenario)}."),
        Paragraph(plan_verdict(plan), "heading"),
        Heading(plan.question[:1].upper() + plan.question[1:]),
        Table(shown),
        *_advice_parts(plan),
        *_table_parts(plan),
        *(_inline_figures(plan, scenario, figure_name) if figures else ()),
        *(warned if plan.untrusted or plan.warnings else ()),
        *_remark_parts(plan),
        Heading("The scenario"),
        Paragraph("All keys, including defaults, with the answer inserted."),
        Code(scenario.to_toml()),
        *command_parts(command),
    ]
    return Document(f"{scenario.name}: {plan.question}", parts)


def _inline_figures(plan: Plan, scenario: Scenario, name: str) -> Iterator[Part]:
    """Yield the figure of a plan that has a curve."""
    if "curve" not in plan.tables or not all(map(len, plan.tables["curve"].values())):
        return
    from tcpcast.report.figures import figure_parts  # noqa: PLC0415 - matplotlib is slow to import
    from tcpcast.report.plan_figures import plan_figure  # noqa: PLC0415

    yield from figure_parts("Figure", [(name, plan_figure(plan, scenario))])


def _advice_parts(plan: Plan) -> list[Part]:
    """Return the recommendation, if there is one."""
    if not plan.recommendation:
        return []
    doubtful = (
        f"{UNTRUSTED_MARK} " if plan.untrusted and not plan.is_simulation_reported_first else ""
    )
    return [BLANK_LINE, Paragraph(doubtful + plan.recommendation)]


def _table_parts(plan: Plan) -> Iterator[Part]:
    """Yield the tables of a plan, except for those that only a figure shows."""
    for name in dict.fromkeys((*plan.headings, *plan.tables)):
        heading, columns = plan.headings.get(name, name), plan.tables.get(name)
        if heading and columns and all(map(len, columns.values())):
            yield from (BLANK_LINE, columns_table(columns, heading))


def _remark_parts(plan: Plan) -> Iterator[Paragraph]:
    """Yield the reason to distrust the model, the notes, and the most severe warnings."""
    worst = list(map(str, sorted(plan.warnings, key=warning_severity)))
    left = len(worst) - MAX_WARNINGS
    more = [f"{left} more warning{'s' * (left > 1)} with --json"] if left > 0 else []
    doubt = [f"{plan.engine or 'the model'}: {plan.untrusted}"] if plan.untrusted else []
    marked = bool(doubt or plan.warnings)
    groups: tuple[tuple[str, Role, Sequence[str]], ...] = (
        (UNTRUSTED_MARK, "warning", doubt),
        (" " if marked else "", "aside", plan.notes),
        ("!", "warning", worst[:MAX_WARNINGS]),
        (" ", "aside", more),
    )
    for mark, role, texts in groups:
        yield from (Paragraph(text, role, f" {mark} ", right_margin=1) for text in texts)


def _answer_lines(plan: Plan) -> list[tuple[str, str]]:
    """Return the answers of simulation and model, more reliable one first, as label and text."""
    simulated = _simulation_lines(plan)
    if not plan.has_model:
        return simulated or [("by simulation", "unknown")]
    by = f"by {plan.engine}" if plan.engine else "by the model"
    marked = UNTRUSTED_MARK if plan.untrusted else ""
    shown = f"{plan_quantity_text(plan.value, plan.unit)}{marked}{_interval_of_result(plan)}"
    if plan.undecided:
        shown = f"undecided{_interval_clause(plan.low, plan.high, plan.unit)}"
    reached = [] if plan.undecided else _metric_line(plan, plan.metric_at_value, plan.fit_runs)
    if plan.is_simulation_reported_first:
        shown += f" ({_relative_error(plan)} relative error)" if not plan.undecided else ""
        return [*simulated, (by, shown), *reached]
    return [(by, shown), *reached, *simulated]


def _simulation_lines(plan: Plan) -> list[tuple[str, str]]:
    if plan.simulated_undecided:
        between = _interval_clause(plan.simulated_low, plan.simulated_high, plan.unit)
        return [("by simulation", f"undecided{between}")]
    if plan.simulated is None:
        return []
    line = plan_quantity_text(plan.simulated, plan.unit)
    line += _interval_clause(plan.simulated_low, plan.simulated_high, plan.unit, omit_unit=True)
    if plan.has_model and not plan.is_simulation_reported_first:
        line += f" ({plan.engine or 'the model'} {_relative_error(plan)})"
    return [
        ("by simulation", line),
        *_metric_line(plan, plan.simulated_metric, plan.simulated_fit_runs),
    ]


def _metric_line(plan: Plan, metric: Metric | None, fitted_runs: int) -> list[tuple[str, str]]:
    """Return a line with the value of the target metric for an answer, if it is known."""
    if metric is None:
        return []
    scale = scale_for_metric(plan.metric, metric.value)
    interval = interval_text(metric, scale)
    interval = interval if interval.startswith("±") else interval and f"({interval})"
    shown = " ".join(filter(None, [value_text(metric, scale), interval, scale.unit]))
    how = f"fitted to {fitted_runs} runs" if fitted_runs else "simulated with this answer"
    return [("", f"{how}: {plan.quantity or metric_label(plan.metric)} {shown}")]


def _relative_error(plan: Plan) -> str:
    assert plan.simulated is not None
    return difference_text(Difference(plan.value / plan.simulated - 1, in_percentage_points=False))


def _interval_clause(
    low: float | None, high: float | None, unit: str, *, omit_unit: bool = False
) -> str:
    """Return the interval of an answer, or "" if it is unknown or has no width.

    ``omit_unit`` omits the unit, because the text before the interval already shows it.
    """
    if low is None or high is None or low == high:
        return ""
    first, last = (plan_quantity_text(end, unit).partition(", ")[0] for end in (low, high))
    number, _, of_first = first.rpartition(" ")
    same = of_first == last.rpartition(" ")[2]
    if omit_unit and is_count(unit):
        return f", between {number} and {last.rpartition(' ')[0]}"
    return f", between {number if same else first} and {last}"


def _interval_of_result(plan: Plan) -> str:
    if plan.at_least:
        return " or more" if plan.high is None else f" or more, but below {plan.high:,.0f}"
    return _interval_clause(plan.low, plan.high, plan.unit, omit_unit=True)


def plan_quantity_text(value: float, unit: str) -> str:
    """Return a plan's answer with its unit, for example "438 packets" or "23.1 Mbit/s"."""
    if unit == "1":
        often = f", one packet in {1 / value:,.0f}" if value <= 0.1 else ""
        return f"{100 * value:.4g} %{often}"
    if not is_count(unit):
        return amount_text(value, unit)
    noun = unit.removesuffix("s")
    return count_text(value, noun) if value == int(value) else f"{value:,.4g} {noun}s"


def columns_table(columns: Columns, title: str = "") -> Table:
    """Return named columns as a table in readable units, ``low`` and ``high`` as an interval.

    The suffix of a name gives the unit (``_bps``, ``_s``, ``_pkts``). ``low`` and ``high`` bound
    the column before them. On a narrow terminal, the remaining columns follow below, after a
    repetition of the first column.
    """
    shown = [_table_column(name, columns) for name in columns if name not in _INTERVAL_COLUMNS]
    if set(columns) >= _INTERVAL_COLUMNS:
        shown.append(_interval_column(list(columns)[-3], columns))
    return Table(shown, title, repeated_columns=1)


def _table_column(name: str, columns: Columns) -> Column:
    column = columns[name]
    if column.dtype.kind in "UO":
        if name == "regime":
            return Column("limited by", [limit_name(str(regime)) for regime in column], right=False)
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
