"""Answers to a scenario as parts of a report: tables, followed by warnings and notes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tcpcast.answer import warning_severity
from tcpcast.comparison.compare import is_observed, packets_text
from tcpcast.comparison.verdict import run_findings
from tcpcast.engines.stack_support import (
    find_omitted_formulas,
    find_unsupported_stack,
    omitted_formulas_text,
)
from tcpcast.quantity import units
from tcpcast.quantity.readable_units import count_text
from tcpcast.report.document import BLANK_LINE, Column, Paragraph, SideBySide, Table
from tcpcast.report.main_metrics import has_missing_percentile, percentile_table, select_main_rows
from tcpcast.report.path_advice import path_advice
from tcpcast.report.quantity import (
    ABSENT_MARK,
    UNTRUSTED_MARK,
    amount_text,
    has_untrusted_metric,
    metric_label,
    scale_for_unit,
)
from tcpcast.report.summary import MAX_WARNINGS, caveats_of_scenario_and_answers, describe_scenario
from tcpcast.report.times_by_losses import evenly_spaced_indices, losses_tables
from tcpcast.report.verdict import verdict_text
from tcpcast.scenario.classes import has_too_different_file_sizes
from tcpcast.scenario.file_sizes import size_text, typed_byte_sizes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tcpcast.answer import Answer, Metric, Note
    from tcpcast.comparison.compare import ComparedAnswers, Comparison
    from tcpcast.report.document import Part
    from tcpcast.scenario import Scenario


_QUANTITIES = (
    ("offered_bps", "offered", "bit/s", 1.0),
    ("carried_bps", "carried", "bit/s", 1.0),
    ("loss_ratio", "loss ratio", "%", 100.0),
    ("queue_delay_mean_s", "mean queue delay", "s", 1.0),
)
"""Columns of table ``cross`` to show, with headings, units and factors."""


_LINK_QUANTITIES = (
    ("utilisation", "utilisation", "%", 100.0),
    ("loss_ratio", "loss", "%", 100.0),
    ("ecn_mark_ratio", "marked", "%", 100.0),
    ("queue_delay_mean_s", "mean queue delay", "s", 1.0),
    ("queue_delay_p95_s", "p95", "s", 1.0),
)
"""Columns of table ``by_link`` to show, as :data:`_QUANTITIES`."""


def links_table(answers: Sequence[Answer]) -> Table | None:
    """Return one row per answer and link of a network, or None if there is none."""
    rows = _rows_of_table(answers, "by_link")
    if not rows:
        return None
    columns = [
        Column("link", [str(row["link"]) for _, row in rows], right=False),
        Column("by", [answer.engine for answer, _ in rows], right=False),
    ]
    return Table([*columns, *_quantity_columns(rows, _LINK_QUANTITIES)])


def _rows_of_table(answers: Sequence[Answer], name: str) -> list[tuple[Answer, dict[str, Any]]]:
    """Return the rows of a table of each answer, with the answer."""
    return [
        (answer, {key: column[index] for key, column in table.items()})
        for answer in answers
        if not answer.withheld
        for table in [answer.tables.get(name, {})]
        for index in range(len(next(iter(table.values()), ())))
    ]


def _quantity_columns(
    rows: Sequence[tuple[Answer, dict[str, Any]]], quantities: Sequence[tuple[str, str, str, float]]
) -> Iterator[Column]:
    """Yield the columns of the quantities that a row has."""
    for name, heading, unit, factor in quantities:
        values = [factor * float(row.get(name, math.nan)) for _, row in rows]
        scale = scale_for_unit(unit, max((v for v in values if not math.isnan(v)), default=1.0))
        cells = [
            ABSENT_MARK if math.isnan(value) else units.digits(value / scale.factor)
            for value in values
        ]
        yield Column(f"{heading}\n({scale.unit})", cells)


def cross_traffic_table(answers: Sequence[Answer]) -> Table | None:
    """Return one row per answer and stream of cross traffic, or None if there is none."""
    streams = _rows_of_table(answers, "cross")
    if not streams:
        return None
    columns = [
        Column("cross traffic", [str(row["name"]) for _, row in streams], right=False),
        Column("hop", [str(row["hop"]) for _, row in streams], right=False),
        Column("by", [answer.engine for answer, _ in streams], right=False),
    ]
    return Table([*columns, *_quantity_columns(streams, _QUANTITIES)])


def run_parts(
    compared: ComparedAnswers,
    scenario: Scenario | None = None,
    *,
    show_all: bool = False,
    explain: bool = False,
    amount_bytes: float | None = None,
) -> list[Part]:
    """Return the report that ``tcpcast run`` prints.

    Parameters
    ----------
    compared
        The answers of the engines side by side.
    scenario
        The scenario, if known. It is summarised above the tables, and the tables show only the most
        important metrics for its kind of traffic.
    show_all
        Show all values.
    explain
        Append all quantities of each formula with their equations, starting with the inputs.
    amount_bytes
        Amount of data whose time at the rate of endless flows is shown.
    """
    parts: list[Part] = []
    if scenario is not None:
        parts += [Paragraph(describe_scenario(scenario), lead=f"{scenario.name}: "), BLANK_LINE]
        verdict = verdict_text(run_findings(compared, scenario))
        parts += [Paragraph(verdict, "heading"), BLANK_LINE] if verdict else []
    parts += answer_tables(compared, scenario, show_all=show_all)
    parts += [
        Paragraph(text, "aside", " ", right_margin=1)
        for text in _omitted_engines(compared, scenario)
    ]
    texts = [
        ", ".join(
            [f"{a.engine} in {amount_text(float(f'{a.wall_s:.2g}'), 's')}", *provenance_texts(a)]
        )
        for a in compared.answers
        if a.applies
    ]
    below = [
        *map(_note_paragraph, path_advice(compared, scenario, amount_bytes)),
        *remarks_below_tables(compared, scenario, show_all=show_all),
        _note_paragraph("; ".join(texts)),
    ]
    derivations = [part for answer in compared.answers for part in _derivation_parts(answer)]
    return [*parts, BLANK_LINE, *below, *(derivations if explain else ())]


def _derivation_parts(answer: Answer) -> Iterator[Part]:
    """Yield the quantities of a formula in order of computation, each with its equation."""
    if not answer.steps:
        return
    rows = [
        (
            step["symbol"],
            "unlimited" if step["unit"] == "packet" else ABSENT_MARK,
            "" if step["unit"] == "1" else step["unit"],
        )
        if step["value"] is None
        else (step["symbol"], f"{step['value']:.6g}", step["unit"].removesuffix("1"))
        for step in answer.steps
    ]
    widths = [min(28, max(map(len, cells))) for cells in zip(*rows, strict=True)]
    heading = f"{answer.engine}: {answer.provenance.get('formula', '')}"
    yield from (BLANK_LINE, Paragraph(heading, "heading"))
    for (symbol, value, unit), step in zip(rows, answer.steps, strict=True):
        cells = symbol.ljust(widths[0]), value.rjust(widths[1]), unit.ljust(widths[2])
        yield Paragraph(step["source"], mark=f"  {'  '.join(cells)}  ")


def answer_tables(
    compared: ComparedAnswers,
    scenario: Scenario | None = None,
    *,
    show_all: bool = False,
    where_rest_is: str = "with --all",
) -> Iterator[Part]:
    """Yield the tables of answers: all metrics, or the important ones if a scenario is given.

    ``where_rest_is`` is the text that states where the omitted metrics are.
    """
    overall, typed = compared.overall, typed_byte_sizes(scenario)
    of_traffic = None if show_all else scenario
    if overall.rows:
        shown = select_main_rows(overall, of_traffic, has_classes=bool(compared.classes))
        yield SideBySide(shown)
        more = len(overall.rows) - len(shown.rows)
        if more:
            yield Paragraph(f"{count_text(more, 'more value')} {where_rest_is}", "aside", " ")
    percentiles = percentile_table(compared.answers, typed)
    if percentiles is not None:
        yield from (BLANK_LINE, percentiles)
        if has_missing_percentile(percentiles):
            text = f"{ABSENT_MARK}: fewer than 10 values exceed this percentile; run longer"
            yield Paragraph(text, "aside", " ")
    links = links_table(compared.answers)
    if links is not None:
        yield from (BLANK_LINE, links)
    cross = cross_traffic_table(compared.answers)
    if cross is not None:
        yield from (BLANK_LINE, cross)
    for name, values in compared.classes.items():
        shown = select_main_rows(values, of_traffic, of_class=name)
        rows = tuple(row for row in shown.rows if any(map(_has_content, row.metrics)))
        yield BLANK_LINE
        if rows:
            yield SideBySide(replace(shown, rows=rows), f"class {name}")
        else:
            yield Paragraph(
                f"class {name}: no value, because none of its data arrived", "aside", " "
            )
    if _has_file_goodput(compared, of_traffic):
        yield from (BLANK_LINE, SideBySide(compared.goodput_percentiles, "file goodput"))
    if compared.goodput_percentiles_of_classes.rows:
        by_class = compared.goodput_percentiles_of_classes
        yield from (BLANK_LINE, SideBySide(by_class, "file goodput by class"))
    sizes = compared.times_by_size
    if sizes.rows:
        label = metric_label(sizes.rows[0].metric)
        yield from (BLANK_LINE, SideBySide(_select_size_rows(sizes, typed), label))
        for table in losses_tables(compared.answers, typed):
            yield from (BLANK_LINE, table)


def _has_content(metric: Metric | None) -> bool:
    """Return True if a metric has a value, a bound, or a reason for having none."""
    return metric is not None and (
        not math.isnan(metric.value) or metric.at_least is not None or bool(metric.missing_interval)
    )


def _select_size_rows(sizes: Comparison, typed_sizes: Mapping[int, str]) -> Comparison:
    """Return the rows of some evenly spaced sizes, labelled with the sizes in bytes as typed."""
    named = {packets_text(packets): size_text(packets, typed_sizes) for packets in typed_sizes}
    rows = (sizes.rows[i] for i in evenly_spaced_indices(len(sizes.rows)))
    shown = (replace(row, subject=named.get(row.subject, row.subject)) for row in rows)
    return replace(sizes, rows=tuple(shown))


def _omitted_engines(compared: ComparedAnswers, scenario: Scenario | None) -> list[str]:
    """Return notes on the formulas that do not support the stack and have no answer."""
    if scenario is None:
        return []
    engines = {answer.engine for answer in compared.answers}
    by_stack = omitted_formulas_text(scenario, requested=engines)
    named = {
        reason: [
            n for n in names if n not in engines and find_unsupported_stack(n, scenario) is None
        ]
        for reason, names in find_omitted_formulas(scenario).items()
    }
    return [by_stack] * bool(by_stack) + [
        f"left out: {', '.join(others)}: {reason}" for reason, others in named.items() if others
    ]


def remarks_below_tables(
    compared: ComparedAnswers,
    scenario: Scenario | None,
    *,
    show_all: bool = False,
    where_rest_is: str = "with --all",
) -> Iterator[Paragraph]:
    """Yield the notes below the tables: explained marks, warnings, and inapplicable engines.

    Only the most severe warnings are included, unless ``show_all`` is True. ``where_rest_is`` is
    the text that states where the omitted warnings are.
    """
    answers = compared.answers
    if compared.overall.compared_columns:
        name = compared.overall.engines[compared.overall.order[0]]
        yield _note_paragraph(f"vs {name}: difference relative to {name}; pp: percentage points")
    for answer in answers:
        outside = [note for note in answer.notes if note.kind == "outside"]
        if has_untrusted_metric(answer.metrics.values()) and not outside:
            reason = "no steady state" if is_observed(answer) else "outside the model's domain"
            if answer.kind == "measurement":
                reason = "this machine was too busy"
            elif "convergence" in answer.tables:
                reason = "convergence tests failed"
            yield _note_paragraph(
                f"{answer.engine}: {reason}; the values are shown but not compared", UNTRUSTED_MARK
            )
        yield from (
            _warning_paragraph(f"{answer.engine}: {text}", UNTRUSTED_MARK) for text in outside
        )
    first, rest = select_warnings(compared, scenario, show_all=show_all)
    yield from first
    if rest:
        yield _note_paragraph(f"{count_text(len(rest), 'more warning')} {where_rest_is}")
    for answer in answers:
        if not answer.applies:
            reason = f"{answer.engine} does not apply: {answer.not_applicable}"
            yield Paragraph(reason, "", " - ", right_margin=1)


def select_warnings(
    compared: ComparedAnswers, scenario: Scenario | None, *, show_all: bool = False
) -> tuple[list[Paragraph], list[Paragraph]]:
    """Return the warnings to show, and the other warnings.

    The first list holds the reasons for incomplete answers and the most severe warnings about
    values in the tables; with ``show_all``, it holds all warnings.
    """
    partial: list[tuple[str, Note]] = []
    warnings: list[tuple[str, Note]] = []
    for answer, note in caveats_of_scenario_and_answers(compared.answers, scenario):
        if note.kind != "outside":
            listed = partial if note.kind == "incomplete" else warnings
            listed.append(("" if answer is None else f"{answer.engine}: ", note))
    if show_all:
        return [_warning_paragraph(f"{engine}{note}") for engine, note in [*partial, *warnings]], []
    # The names of the metrics and tables that :func:`answer_tables` shows.
    of_classes = [select_main_rows(values, scenario) for values in compared.classes.values()]
    overall = select_main_rows(compared.overall, scenario, has_classes=bool(of_classes))
    shown = {row.metric for table in (overall, *of_classes) for row in table.rows}
    values = shown | ({"file_goodput"} if _has_file_goodput(compared, scenario) else set())
    about = {
        i: affected for i, (_, note) in enumerate(warnings) if (affected := note.limited_to(values))
    }
    worst = sorted(about, key=lambda i: warning_severity(about[i]))[:MAX_WARNINGS]
    first = [*partial, *((warnings[i][0], about[i]) for i in worst)]
    rest = [each for i, each in enumerate(warnings) if i not in worst]
    return [_warning_paragraph(f"{a}{b}") for a, b in first], [
        _warning_paragraph(f"{a}{b}") for a, b in rest
    ]


def _has_file_goodput(compared: ComparedAnswers, scenario: Scenario | None) -> bool:
    mixed = scenario is not None and has_too_different_file_sizes(scenario.populations)
    return bool(compared.goodput_percentiles.rows) and not mixed


def _note_paragraph(text: str, mark: str = " ") -> Paragraph:
    return Paragraph(text, "aside", f" {mark} ", right_margin=1)


def _warning_paragraph(text: str, mark: str = "!") -> Paragraph:
    return Paragraph(text, "warning", f" {mark} ", right_margin=1)


def provenance_texts(answer: Answer) -> list[str]:
    """Return seed, replications and warm-up of a simulation."""
    facts = [] if answer.seed is None else [f"seed {answer.seed}"]
    if answer.replications > 1:
        facts.append(f"{answer.replications} replications")
    if answer.warmup_s is not None:
        rule = f" ({answer.warmup_rule})" if answer.warmup_rule else ""
        facts.append(f"warm-up {amount_text(answer.warmup_s, 's')}{rule}")
    return facts
