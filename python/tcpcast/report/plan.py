"""A plan as parts of a report: the model's answer, the simulation's, and tables beside them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer import Metric, severity
from tcpcast.compare import Difference
from tcpcast.report.document import BLANK, Code, Column, Document, Heading, Paragraph, Table
from tcpcast.report.quantity import (
    ABSENT,
    UNTRUSTED,
    Scale,
    amount,
    difference_text,
    interval_text,
    label,
    scale_of,
    scale_of_unit,
    value_text,
)
from tcpcast.report.summary import MOST_WARNINGS, describe
from tcpcast.units import digits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tcpcast.plan import Plan
    from tcpcast.report.document import Part, Role
    from tcpcast.scenario import Scenario

    Columns = Mapping[str, np.ndarray[Any, Any]]

_UNITS = {"_bps": "bit/s", "_s": "s", "_pkts": "packet", "_bytes": "B"}
_RATIOS = ("loss_ratio", "utilisation", "timeout_ratio", "load", "share_above")
_BOUNDS = {"low", "high"}
_HEADINGS = {
    "model": "The model at its answer",
    "rules": "Rules side by side",
    "streams": "Rates by the number of flows",
    "tolerated": "Loss tolerated by each model",
    "curve": "File goodput by the number of sources",
    "ways": "With one change",
    "simulated": "Simulated",
    "grid": "The rule over file sizes and round trips",
}
_ORDER = list(_HEADINGS)
_LEAST_TEXT = 30
"""Characters of a text in a table, before it is broken over lines."""


def plan_parts(plan: Plan, scenario: Scenario) -> list[Part]:
    """Return what ``tcpcast plan`` prints."""
    parts: list[Part] = [
        Paragraph(describe(scenario), lead=f"{scenario.name}: "),
        BLANK,
        Paragraph(plan_verdict(plan), "heading"),
        *(Paragraph(f"  {name:<18}{said}") for name, said in _answers(plan)),
        *_advice(plan),
        *_tables(plan),
        BLANK,
    ]
    return [*parts, *_remarks(plan)]


def plan_verdict(plan: Plan) -> str:
    """Return the answer in one sentence, with its uncertainty and its method."""
    method, value = _answers(plan)[0]
    doubt = ", not to be trusted" if UNTRUSTED in value else ""
    return f"The {plan.question} is {value.replace(UNTRUSTED, '')}, {method}{doubt}."


def plan_document(plan: Plan, scenario: Scenario, again: str, figures: bool = False) -> Document:
    """Return the report of a plan.

    Parameters
    ----------
    plan, scenario
        The plan, and the scenario with its answer.
    again
        The command that makes the report again.
    figures
        Whether a curve is drawn, by matplotlib.
    """
    answers, told = _answers(plan), list(_remarks(plan))
    shown = [
        Column("", [name for name, _ in answers], right=False),
        Column("answer", [said for _, said in answers], right=False),
    ]
    warned = [Heading("What to check before trusting it")]
    parts: list[Part] = [
        Paragraph(f"{describe(scenario)}."),
        Paragraph(plan_verdict(plan)),
        Heading(plan.question[:1].upper() + plan.question[1:]),
        Table(shown),
        *_advice(plan),
        *_tables(plan),
        *(_figures(plan, scenario) if figures else ()),
        *(warned if plan.untrusted or plan.warnings else ()),
        *told,
        Heading("The scenario"),
        Paragraph("Every key, with the defaults that were taken, at the answer."),
        Code(scenario.to_toml()),
        Heading("Make it again"),
        Code(again),
    ]
    return Document(f"{scenario.name}: {plan.question}", parts)


def _figures(plan: Plan, scenario: Scenario) -> Iterator[Part]:
    """Yield the figure of a plan that has a curve."""
    if "curve" not in plan.tables or not all(map(len, plan.tables["curve"].values())):
        return
    from tcpcast.report.figures import inline  # noqa: PLC0415 - matplotlib is slow to import
    from tcpcast.report.plan_figures import FILES, plan_figure  # noqa: PLC0415

    yield Heading("Figure")
    yield inline(FILES[plan.unit], plan_figure(plan, scenario))


def _advice(plan: Plan) -> list[Part]:
    """Return what follows from the answers, if anything."""
    if not plan.recommendation:
        return []
    doubtful = f"{UNTRUSTED} " if plan.untrusted and not plan.leads_by_simulation else ""
    return [BLANK, Paragraph(doubtful + plan.recommendation)]


def _tables(plan: Plan) -> Iterator[Part]:
    """Yield the tables that a plan has for people."""
    # Where other tables show some rows of the curve, all of it is for a figure.
    drawn = {"curve"} if plan.target is not None or "streams" in plan.tables else set()
    told = set(plan.tables) - drawn
    for name in sorted(told & set(_ORDER), key=_ORDER.index):
        columns = plan.tables[name]
        if all(len(column) for column in columns.values()):
            yield from (BLANK, columns_table(columns, _HEADINGS[name]))


def _remarks(plan: Plan) -> Iterator[Paragraph]:
    """Yield why the model is not to be trusted, notes, and the worst warnings."""
    worst = list(map(str, sorted(plan.warnings, key=severity)))
    left = len(worst) - MOST_WARNINGS
    more = [f"{left} more warning{'s' * (left > 1)} with --json"] if left > 0 else []
    doubt = [f"{plan.engine or 'the model'}: {plan.untrusted}"] if plan.untrusted else []
    marked = bool(doubt or plan.warnings)
    said: tuple[tuple[str, Role, Sequence[str]], ...] = (
        (UNTRUSTED, "warning", doubt),
        (" " if marked else "", "aside", plan.notes),
        ("!", "warning", worst[:MOST_WARNINGS]),
        (" ", "aside", more),
    )
    for mark, role, texts in said:
        yield from (Paragraph(text, role, f" {mark} ", margin=1) for text in texts)


def _answers(plan: Plan) -> list[tuple[str, str]]:
    """Return the answer, or two: the one to trust first, with what was simulated there."""
    simulated = _by_simulation(plan)
    if not plan.has_model:
        return simulated or [("by simulation", "no answer")]
    by = f"by {plan.engine}" if plan.engine else "by the model"
    marked = UNTRUSTED if plan.untrusted else ""
    shown = f"{quantity_text(plan.value, plan.unit)}{marked}{_interval(plan)}"
    if plan.undecided:
        shown = f"undecided{_between(plan.low, plan.high, plan.unit)}"
    reached = [] if plan.undecided else _there(plan, plan.reached, plan.runs)
    if plan.leads_by_simulation:
        shown += f" ({_apart(plan)} relative error)" if not plan.undecided else ""
        return [*simulated, (by, shown), *reached]
    return [(by, shown), *reached, *simulated]


def _by_simulation(plan: Plan) -> list[tuple[str, str]]:
    if plan.simulated_undecided:
        between = _between(plan.simulated_low, plan.simulated_high, plan.unit)
        return [("by simulation", f"undecided{between}")]
    if plan.simulated is None:
        return []
    line = quantity_text(plan.simulated, plan.unit)
    line += _between(plan.simulated_low, plan.simulated_high, plan.unit, counted=True)
    if plan.has_model and not plan.leads_by_simulation:
        line += f" ({plan.engine or 'the model'} {_apart(plan)})"
    return [("by simulation", line), *_there(plan, plan.there, plan.fitted)]


def _there(plan: Plan, there: Metric | None, fitted: int) -> list[tuple[str, str]]:
    """Return the line of the figure at an answer, if it is known."""
    if there is None:
        return []
    scale = scale_of(plan.metric, there.value)
    interval = interval_text(there, scale)
    interval = interval if interval.startswith("±") else interval and f"({interval})"
    shown = " ".join(filter(None, [value_text(there, scale), interval, scale.unit]))
    how = f"fitted to {fitted} runs" if fitted else "simulated there"
    return [("", f"{how}: {plan.figure or label(plan.metric)} {shown}")]


def _apart(plan: Plan) -> str:
    assert plan.simulated is not None
    return difference_text(Difference(plan.value / plan.simulated - 1, points=False))


def _between(low: float | None, high: float | None, unit: str, *, counted: bool = False) -> str:
    """Return an interval of an answer, "" for none or one without width.

    What is ``counted`` was named with the answer.
    """
    if low is None or high is None or low == high:
        return ""
    first, last = (quantity_text(end, unit).partition(", ")[0] for end in (low, high))
    number, _, of_first = first.rpartition(" ")
    same = of_first == last.rpartition(" ")[2]
    if counted and unit not in {"1", "bit/s"}:
        return f", between {number} and {last.rpartition(' ')[0]}"
    return f", between {number if same else first} and {last}"


def _interval(plan: Plan) -> str:
    if plan.at_least:
        return " or more" if plan.high is None else f" or more, but below {plan.high:,.0f}"
    return _between(plan.low, plan.high, plan.unit, counted=True)


def quantity_text(value: float, unit: str) -> str:
    """Return a plan's answer with its unit, such as "438 packets", "23.1 Mbit/s" or a loss."""
    if unit == "bit/s":
        return amount(value, unit)
    if unit == "1":
        often = f", one packet in {1 / value:,.0f}" if value <= 0.1 else ""
        return f"{100 * value:.4g} %{often}"
    words = "packets" if unit == "packet" else unit
    counted = f"{value:,.0f}" if value == int(value) else f"{value:,.4g}"
    return f"{counted} {words.removesuffix('s') if value == 1 else words}"


def columns_table(columns: Columns, title: str = "") -> Table:
    """Return named columns as a table in units people read, ``low`` and ``high`` as an interval.

    A name's ending gives the unit (``_bps``, ``_s``, ``_pkts``); ``low`` and ``high`` bound the
    column before them. Where the terminal is too narrow, the columns go on below, the first one
    repeated.
    """
    found = [_column(name, columns) for name in columns if name not in _BOUNDS]
    if set(columns) >= _BOUNDS:
        found.append(_intervals(list(columns)[-3], columns))
    return Table(found, title, repeated=1)


def _column(name: str, columns: Columns) -> Column:
    column = columns[name]
    if column.dtype.kind in "UO":
        return Column(label(name), [str(text) for text in column], right=False, least=_LEAST_TEXT)
    scale = _scale(name, column)
    values = [float(v) / scale.factor for v in column]
    sizes = [abs(v) for v in values if math.isfinite(v)]
    decimals = _decimals(sizes)
    cells = [f"{v:,.{decimals}f}" if math.isfinite(v) else ABSENT for v in values]
    if decimals and any(0 < size < 10.0 ** (1 - decimals) for size in sizes):
        # The decimals of the largest would leave nothing of the smallest.
        cells = [digits(v) if math.isfinite(v) else ABSENT for v in values]
    heading = "\n".join([*label(name).split(), *([f"({scale.unit})"] if scale.unit else [])])
    return Column(heading, cells, right=True)


def _intervals(name: str, columns: Columns) -> Column:
    scale = _scale(name, columns[name])
    bounds = zip(columns[name], columns["low"], columns["high"], strict=True)
    cells = [interval_text(Metric(float(v), float(a), float(b)), scale) for v, a, b in bounds]
    return Column("95 %", cells, right=False)


def _decimals(sizes: list[float]) -> int:
    """Return how many decimals give the largest of a column four digits, none for integers."""
    largest = max(sizes, default=0.0)
    if largest == 0 or all(size == int(size) for size in sizes):
        return 0
    return max(0, 3 - math.floor(math.log10(largest)))


def _scale(name: str, column: np.ndarray[Any, Any]) -> Scale:
    if name in _RATIOS:
        return Scale(0.01, "%")
    unit = next((u for ending, u in _UNITS.items() if name.endswith(ending)), "1")
    finite = np.abs(column[np.isfinite(column)])
    return scale_of_unit(unit, float(finite.max(initial=0.0)))
