"""A plan for people: the model's answer, the simulation's, and what stands beside them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tcpcast.answer import Metric
from tcpcast.report.quantity import (
    ABSENT,
    Scale,
    amount,
    interval_text,
    label,
    scale_of_unit,
    value_text,
)
from tcpcast.report.summary import describe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import RenderableType

    from tcpcast.plan import Plan
    from tcpcast.scenario import Scenario

    Columns = Mapping[str, np.ndarray[Any, Any]]

_UNITS = {"_bps": "bit/s", "_s": "s", "_pkts": "packet"}
_RATIOS = ("loss_ratio", "utilisation")
_HEADINGS = {
    "rules": "Rules side by side",
    "grid": "The rule over file sizes and round trips",
    "model": "The model about its answer",
    "simulated": "Simulated",
}


def plan_report(plan: Plan, scenario: Scenario) -> Group:
    """Return a plan as something that a rich console prints."""
    parts: list[RenderableType] = [
        Text.assemble((scenario.name, "bold"), f": {describe(scenario)}\n"),
        Text(plan.question[:1].upper() + plan.question[1:], style="bold"),
        Text(f"  by the model      {quantity_text(plan.value, plan.unit)}"),
    ]
    if plan.simulated is not None:
        apart = f" (the model: {plan.value / plan.simulated - 1:+.1%})" if plan.simulated else ""
        shown = quantity_text(plan.simulated, plan.unit)
        parts.append(Text(f"  by simulation     {shown}{apart}"))
    for name, columns in plan.tables.items():
        if all(len(column) for column in columns.values()):
            heading = _HEADINGS.get(name, label(name))
            parts += [Text(), Text(heading, style="bold"), columns_table(columns)]
    notes = Table.grid(padding=(0, 1))
    for mark, style, texts in (("", "dim", plan.notes), ("!", "yellow", plan.warnings)):
        for text in texts:
            notes.add_row(mark, Text(text, style=style))
    return Group(*parts, Text(), Padding(notes, (0, 1)))


def quantity_text(value: float, unit: str) -> str:
    """Return a plan's answer with its unit, such as "438 packets" or "23.1 Mbit/s"."""
    if unit == "bit/s":
        return amount(value, unit)
    return f"{value:,.4g} {'packets' if unit == 'packet' else unit}"


def columns_table(columns: Columns) -> Table:
    """Return named columns as a table, in units people read, ``low`` and ``high`` as an interval.

    Parameters
    ----------
    columns
        Equal-length arrays; a name's ending gives the unit (``_bps``, ``_s``, ``_pkts``), and
        ``low`` and ``high`` bound the column before them.
    """
    names = [name for name in columns if name not in {"low", "high"}]
    bounded = names[-1] if {"low", "high"} <= set(columns) else None
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    cells = []
    for name in names:
        scale = _scale(name, columns[name])
        words = columns[name].dtype.kind in "UO"
        heading = Text(label(name), justify="left" if words else "right")
        if scale.unit:
            heading.append(f"\n{scale.unit}", style="dim")
        table.add_column(heading, justify="left" if words else "right", no_wrap=not words)
        cells.append([_cell(value, scale) for value in columns[name].tolist()])
        if name == bounded:
            table.add_column("95 %", no_wrap=True)
            bounds = zip(columns[name], columns["low"], columns["high"], strict=True)
            cells.append([interval_text(Metric(*map(float, b)), scale) for b in bounds])
    for row in zip(*cells, strict=True):
        table.add_row(*row)
    return table


def _cell(value: Any, scale: Scale) -> str:
    if isinstance(value, str):
        return value
    return ABSENT if not math.isfinite(value) else value_text(Metric(float(value)), scale)


def _scale(name: str, column: np.ndarray[Any, Any]) -> Scale:
    if column.dtype.kind in "UO":
        return Scale(1.0, "")
    if name in _RATIOS:
        return Scale(0.01, "%")
    unit = next((u for ending, u in _UNITS.items() if name.endswith(ending)), "1")
    finite = np.abs(column[np.isfinite(column)])
    return scale_of_unit(unit, float(finite.max(initial=0.0)))
