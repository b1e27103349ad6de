"""The report for people: one table over all engines, then what to check before trusting it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tcpcast.compare import compare, compare_classes, compare_shares, compare_sizes, is_observed
from tcpcast.engines.formula.trust import OUTSIDE
from tcpcast.engines.stacks import left_out, left_out_text
from tcpcast.report.leading import leading, percentile_table
from tcpcast.report.losses import losses_tables, spread
from tcpcast.report.quantity import (
    ABSENT,
    UNTRUSTED,
    amount,
    difference_text,
    interval_text,
    label,
    marks,
    row_scale,
    value_text,
)
from tcpcast.report.summary import caveats, describe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from tcpcast.answer import Answer, Metric
    from tcpcast.compare import Comparison, Row
    from tcpcast.report.quantity import Scale
    from tcpcast.scenario import Scenario


def text_report(
    answers: Sequence[Answer], scenario: Scenario | None = None, *, every: bool = False
) -> Group:
    """Return the report as something that a rich console prints.

    Parameters
    ----------
    answers
        What each engine says, in the order of the columns.
    scenario
        What was asked; named and summed up above the table when given. The table then has what is
        asked of its traffic.
    every
        Whether the table has every value in any case.
    """
    parts: list[RenderableType] = []
    if scenario is not None:
        parts.append(_heading(scenario))
    comparison = compare(answers)
    shown = None if every else scenario
    if comparison.rows:
        parts.append(SideBySide(leading(comparison, shown)))
        parts += _left_out(comparison, shown)
    percentiles = percentile_table(answers)
    if percentiles is not None:
        parts += [Text(), percentiles]
    for name, values in compare_classes(answers).items():
        parts += [Text(), SideBySide(leading(values, shown), f"class {name}")]
    shares = compare_shares(answers)
    if shares.rows:
        parts += [Text(), SideBySide(shares, "file goodput")]
    parts += _of_transfers(answers)
    parts += _engines_left_out(answers, scenario)
    parts.append(_remarks(answers, _own_warnings(answers, scenario)))
    return Group(*parts)


def _left_out(comparison: Comparison, scenario: Scenario | None) -> list[RenderableType]:
    """Say how many values more there are."""
    more = len(comparison.rows) - len(leading(comparison, scenario).rows)
    values = f"{more} value{'' if more == 1 else 's'}"
    return [Text(f" {values} more with --all", style="dim")] if more else []


def _engines_left_out(answers: Sequence[Answer], scenario: Scenario | None) -> list[RenderableType]:
    """Say which formulas do not answer for the stack, where they do not say so themselves."""
    if scenario is None:
        return []
    asked = {answer.engine for answer in answers}
    said = left_out_text(scenario, asked=asked)
    if said:
        return [Padding(Text(said, style="dim"), (0, 1))]
    reasons = {
        f"left out: {', '.join(others)}: {reason}": others
        for reason, names in left_out(scenario).items()
        if (others := [name for name in names if name not in asked])
    }
    return [Padding(Text(words, style="dim"), (0, 1)) for words in reasons]


def _of_transfers(answers: Sequence[Answer]) -> list[RenderableType]:
    """Return what is told of each size of single transfers, if any is."""
    sizes = compare_sizes(answers)
    if not sizes.rows:
        return []
    rows = tuple(sizes.rows[at] for at in spread(len(sizes.rows)))
    parts: list[RenderableType] = [
        Text(),
        SideBySide(replace(sizes, rows=rows), "completion time"),
    ]
    for table in losses_tables(answers):
        parts += [Text(), table]
    return parts


class SideBySide:
    """A comparison as a table, or as a list where the terminal is too narrow for it."""

    def __init__(self, comparison: Comparison, title: str = "") -> None:
        self.comparison = comparison
        self.title = title

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table if it fits, the list if not."""
        table = _table(self.comparison, self.title)
        # Rich caps a measurement at the width it is offered, so offer more than there is.
        needed = Measurement.get(console, options.update(width=1000), table).maximum
        yield table if needed <= options.max_width else _list(self.comparison, self.title)


def _table(comparison: Comparison, title: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, show_edge=False)
    table.add_column(Text(title), no_wrap=True)
    table.add_column("unit", no_wrap=True)
    bearing = _bearing(comparison)
    for i, engine in enumerate(comparison.engines):
        table.add_column(engine, justify="right", no_wrap=True)
        if i in bearing:
            table.add_column("95 %", no_wrap=True)
    for i in comparison.compared:
        table.add_column(_versus(comparison, i), justify="right", no_wrap=True)
    for row in comparison.rows:
        table.add_row(*_cells(comparison, row, bearing))
    return table


def _cells(comparison: Comparison, row: Row, bearing: set[int]) -> list[Text]:
    scale = row_scale(row)
    cells = [Text(row.subject or label(row.metric)), Text(scale.unit)]
    for i, figure in enumerate(row.figures):
        cells.append(_value(figure, scale))
        if i in bearing:
            cells.append(Text("" if figure is None else interval_text(figure, scale)))
    return cells + [Text(difference_text(row.differences[i])) for i in comparison.compared]


def _list(comparison: Comparison, title: str) -> Group:
    """Return a heading a metric with the engines beneath, in columns that align throughout."""
    grids = []
    for row in comparison.rows:
        scale = row_scale(row)
        unit = f" ({scale.unit})" if scale.unit else ""
        figures = [
            (Text(f"  {engine}"), _value(figure, scale), interval_text(figure, scale), apart)
            for engine, figure, apart in zip(
                comparison.engines, row.figures, map(difference_text, row.differences), strict=True
            )
            if figure is not None
        ]
        grids.append((Text(f"{row.subject or label(row.metric)}{unit}", style="bold"), figures))
    cells = [cells for _, rows in grids for cells in rows]
    widths = [max((len(c[i]) for c in cells), default=0) for i in range(4)]
    heading = [] if not title else [Text(title, style="bold")]
    parts = [part for head, rows in grids for part in (head, _grid(rows, widths))]
    key = [Text("± and low–high: 95 % interval", style="dim")] if _bearing(comparison) else []
    return Group(*heading, *parts, *key)


def _grid(rows: Sequence[tuple[Text, Text, str, str]], widths: Sequence[int]) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, width=widths[0])
    grid.add_column(no_wrap=True, width=widths[1], justify="right")
    grid.add_column(no_wrap=True, width=widths[2])
    grid.add_column(no_wrap=True, width=widths[3], justify="right")
    for cells in rows:
        grid.add_row(*cells)
    return grid


def _value(figure: Metric | None, scale: Scale) -> Text:
    if figure is None:
        return Text(ABSENT, style="dim")
    if not figure.trusted:
        return Text(f"{value_text(figure, scale)}{UNTRUSTED}", style="dim")
    return Text(value_text(figure, scale))


def _bearing(comparison: Comparison) -> set[int]:
    """Return which engines give at least one interval, or say why not."""
    return {
        i
        for row in comparison.rows
        for i, figure in enumerate(row.figures)
        if figure is not None and interval_text(figure, row_scale(row))
    }


def _versus(comparison: Comparison, engine: int) -> str:
    assert comparison.reference is not None
    reference = comparison.engines[comparison.reference]
    return f"{comparison.engines[engine]}\nvs {reference}"


def _heading(scenario: Scenario) -> Text:
    return Text.assemble((scenario.name, "bold"), ": ", describe(scenario), "\n")


def _own_warnings(answers: Sequence[Answer], scenario: Scenario | None) -> list[str]:
    """Return the scenario's own warnings, those apart that an engine repeats."""
    if scenario is None:
        return []
    said = {warning for answer in answers for warning in answer.warnings}
    return [warning for warning in scenario.warnings() if warning not in said]


def _remarks(answers: Sequence[Answer], warnings: Sequence[str]) -> RenderableType:
    """Return what belongs beneath the table: marks, warnings, and where the values came from."""
    lines = [(" ", Text(f"vs {name}: {meaning}", style="dim")) for name, meaning in _key(answers)]
    for answer in answers:
        outside = any(warning.startswith(OUTSIDE) for warning in answer.warnings)
        if marks(answer.metrics.values()) and not outside:
            where = "no steady state in" if is_observed(answer) else "outside the domain of"
            why = f"{where} {answer.engine}: shown, never compared"
            lines.append((UNTRUSTED, Text(why, style="dim")))
    lines += [("!", Text(warning, style="yellow")) for warning in warnings]
    for answer in answers:
        if answer.not_applicable is not None:
            reason = f"{answer.engine} does not apply: {answer.not_applicable}"
            lines.append(("-", Text(reason)))
        lines += [
            (
                UNTRUSTED if w.startswith(OUTSIDE) else "!",
                Text(f"{answer.engine}: {w}", style="yellow"),
            )
            for w in caveats(answer)
        ]
    given = [_origin(answer) for answer in answers if answer.not_applicable is None]
    lines.append((" ", Text("; ".join(given), style="dim")))
    grid = Table.grid(padding=(0, 1))
    for line in lines:
        grid.add_row(*line)
    return Padding(grid, (1, 1, 0, 1))


def _key(answers: Sequence[Answer]) -> list[tuple[str, str]]:
    """Return what "vs" means, if the table has it: the reference and a sentence."""
    comparison = compare(answers)
    if comparison.reference is None:
        return []
    reference = comparison.engines[comparison.reference]
    return [(reference, f"relative to {reference}; pp: percentage points more than {reference}")]


def _origin(answer: Answer) -> str:
    """Return where an answer came from: how long it took, and what a simulation was run with."""
    took = amount(float(f"{answer.wall_s:.2g}"), "s")
    facts, known = [f"{answer.engine} in {took}"], answer.provenance
    if "seed" in known:
        facts.append(f"seed {known['seed']}")
    if known.get("replications", 1) > 1:
        facts.append(f"{known['replications']} replications")
    if "warmup_s" in known:
        rule = known.get("warmup_rule")
        facts.append(f"warm-up {amount(known['warmup_s'], 's')}" + (f" ({rule})" if rule else ""))
    return ", ".join(facts)
