"""A plan for people: the model's answer, the simulation's, and what stands beside them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tcpcast.answer import Metric
from tcpcast.compare import Difference
from tcpcast.report.document import Column
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
from tcpcast.report.summary import describe
from tcpcast.report.terminal import table_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from tcpcast.plan import Plan
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
_NARROW_TEXT = 30


def plan_report(plan: Plan, scenario: Scenario) -> Group:
    """Return a plan as something that a rich console prints."""
    parts: list[RenderableType] = [
        Text.assemble((scenario.name, "bold"), f": {describe(scenario)}\n"),
        Text(plan.question[:1].upper() + plan.question[1:], style="bold"),
        *map(Text, _answers(plan)),
    ]
    if plan.recommendation:
        doubtful = f"{UNTRUSTED} " if plan.untrusted and not plan.leads_by_simulation else ""
        parts += [Text(), Text(doubtful + plan.recommendation)]
    # Where ``streams`` shows some rows of the curve, all of it is for a figure.
    told = set(plan.tables) - ({"curve"} if "streams" in plan.tables else set())
    for name in sorted(told & set(_ORDER), key=_ORDER.index):
        columns = plan.tables[name]
        if all(len(column) for column in columns.values()):
            parts += [Text(), Text(_HEADINGS[name], style="bold"), ColumnsTable(columns)]
    notes = Table.grid(padding=(0, 1))
    doubt = [f"{plan.engine or 'the model'}: {plan.untrusted}"] if plan.untrusted else []
    said = ((UNTRUSTED, "yellow", doubt), ("", "dim", plan.notes), ("!", "yellow", plan.warnings))
    for mark, style, texts in said:
        for text in texts:
            notes.add_row(mark, Text(text, style=style))
    return Group(*parts, Text(), Padding(notes, (0, 1)))


def _answers(plan: Plan) -> list[str]:
    """Return the answer, or two: the one to trust first, with what was simulated there."""
    by = f"by {plan.engine}" if plan.engine else "by the model"
    marked = UNTRUSTED if plan.untrusted else ""
    shown = f"{quantity_text(plan.value, plan.unit)}{marked}{_interval(plan)}"
    if plan.undecided:
        shown = f"undecided{_between(plan.low, plan.high, plan.unit)}"
    own, simulated = [f"  {by:<18}{shown}"], _by_simulation(plan)
    if plan.leads_by_simulation:
        own[0] += f" ({_apart(plan)} relative error)" if not plan.undecided else ""
        return simulated + own
    return own + simulated


def _by_simulation(plan: Plan) -> list[str]:
    if plan.simulated_undecided:
        between = _between(plan.simulated_low, plan.simulated_high, plan.unit)
        return [f"  {'by simulation':<18}undecided{between}"]
    if plan.simulated is None:
        return []
    line = quantity_text(plan.simulated, plan.unit)
    line += _between(plan.simulated_low, plan.simulated_high, plan.unit, counted=True)
    if not plan.leads_by_simulation:
        line += f" ({plan.engine or 'the model'} {_apart(plan)})"
    lines = [f"  {'by simulation':<18}{line}"]
    if plan.there is not None:
        scale = scale_of(plan.metric, plan.there.value)
        interval = interval_text(plan.there, scale)
        interval = interval if interval.startswith("±") else interval and f"({interval})"
        shown = " ".join(filter(None, [value_text(plan.there, scale), interval, scale.unit]))
        lines.append(f"  {'':<18}simulated there: {label(plan.metric)} {shown}")
    return lines


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


class ColumnsTable:
    """Named columns as a table, in units people read, ``low`` and ``high`` as an interval.

    A name's ending gives the unit (``_bps``, ``_s``, ``_pkts``); ``low`` and ``high`` bound the
    column before them. Where the terminal is too narrow, the columns go on below, the first one
    repeated.
    """

    def __init__(self, columns: Columns) -> None:
        self.columns = [_column(name, columns) for name in columns if name not in _BOUNDS]
        if set(columns) >= _BOUNDS:
            self.columns.append(_intervals(list(columns)[-3], columns))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield as many tables as the width makes necessary."""
        first, *others = self.columns
        rest = list(others)
        while others:
            if len(others) < len(rest):
                yield Text()
            fitting = 1
            while fitting < len(others) and _width([first, *others[: fitting + 1]]) <= (
                options.max_width
            ):
                fitting += 1
            yield table_of([first, *others[:fitting]])
            others = others[fitting:]


def _column(name: str, columns: Columns) -> Column:
    column = columns[name]
    if column.dtype.kind in "UO":
        return Column(label(name), [str(text) for text in column], right=False)
    scale = _scale(name, column)
    values = [float(v) / scale.factor for v in column]
    decimals = _decimals([abs(v) for v in values if math.isfinite(v)])
    cells = [f"{v:,.{decimals}f}" if math.isfinite(v) else ABSENT for v in values]
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


def _width(columns: Sequence[Column]) -> int:
    """Return the width that columns need; texts may be broken over lines, figures may not."""
    needed = 0
    for column in columns:
        longest = max(map(len, [*column.heading.split("\n"), *column.cells]))
        needed += (longest if column.right else min(longest, _NARROW_TEXT)) + 2
    return needed


def _scale(name: str, column: np.ndarray[Any, Any]) -> Scale:
    if name in _RATIOS:
        return Scale(0.01, "%")
    unit = next((u for ending, u in _UNITS.items() if name.endswith(ending)), "1")
    finite = np.abs(column[np.isfinite(column)])
    return scale_of_unit(unit, float(finite.max(initial=0.0)))
