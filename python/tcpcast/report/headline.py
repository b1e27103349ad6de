"""The verdict: the main result in one sentence, with its uncertainty, for all front ends."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tcpcast.answer import Metric
from tcpcast.engines import REGISTRY
from tcpcast.engines.registry import Formula
from tcpcast.readable_units import count_text
from tcpcast.report.quantity import (
    Scale,
    amount_text,
    difference_text,
    interval_text,
    metric_label,
    scale_for_metric,
    scale_for_row,
    value_text,
)
from tcpcast.report.summary import buffer_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tcpcast.compare import ComparedAnswers, Comparison, ComparisonRow
    from tcpcast.scenario import Scenario
    from tcpcast.scenario.classes import Population

MAIN_METRICS = {
    "on-off": "connection_rate_bps",
    "bulk": "goodput_bps",
    "transfers": "completion_time_s",
}
"""The metric of the verdict by kind of traffic."""

SWEEP_COLUMNS = (
    "engine",
    "untrusted",
    *(
        f"{metric}{end}"
        for metric in MAIN_METRICS.values()
        for end in ("", "_low", "_high", "_interval_warning")
    ),
)
"""Columns of a sweep that :func:`sweep_verdict` reads, in addition to those of the keys."""

MAX_VERDICT_CLASSES = 3
"""Number of classes above which a verdict names only those with largest and smallest value."""

MAX_STATED_DIFFERENCE = 1.0
"""Largest excess of a formula over the reference that a verdict states as a difference."""

MIN_RATE_RATIO = 1.1
"""Minimum ratio of goodputs per flow to state that one class takes the link from another."""


def run_verdict(compared: ComparedAnswers, scenario: Scenario | None) -> str:
    """Return the main result of a run as a sentence.

    The values come from the reference, or else from the first trusted answer, as shown in the
    tables; a value of a formula is marked as such. If classes of endless flows compete and the
    intervals of their goodput per flow are disjoint, the sentence states their shares of the link.
    If the intervals of the best and the worst class overlap, or one of them is missing, the
    sentence states this.

    Parameters
    ----------
    compared
        The answers side by side.
    scenario
        The scenario; without one, there is no verdict.

    Returns
    -------
    str
        One sentence; "" if no answer has a value of the main metric.
    """
    if scenario is None or not compared.overall.rows:
        return ""
    groups = scenario.populations
    kinds = {group.traffic.kind for group in groups}
    parts = [
        _link_shares_clause(compared, scenario) or _class_clauses(compared, groups)
        if len(compared.classes) > 1
        else _all_sources_clause(compared, groups)
        if len(kinds) == 1
        else "",
        _queue_delay_clause(compared.overall),
        _closest_formula_clause(
            compared.overall, MAIN_METRICS.get(next(iter(kinds)), "") if len(kinds) == 1 else ""
        ),
    ]
    if not parts[0]:
        return ""
    sentence = "; ".join(filter(None, parts)) + "."
    return sentence[0].upper() + sentence[1:]


def _all_sources_clause(compared: ComparedAnswers, groups: Sequence[Population]) -> str:
    """Return the statement about all sources, which have one kind of traffic."""
    kind = groups[0].traffic.kind
    if kind == "transfers" and len(compared.completion_times.rows) > 1:
        ends = compared.completion_times.rows[0], compared.completion_times.rows[-1]
        first, last = (_value_with_interval(row, compared.completion_times) for row in ends)
        if not first or not last:
            return ""
        return (
            f"a transfer of {ends[0].subject} takes {first}, and a transfer of "
            f"{ends[1].subject} takes {last}"
        )
    row = _find_row(compared.overall, MAIN_METRICS.get(kind, ""))
    stated = _value_with_interval(row, compared.overall)
    if kind == "on-off" and (reason := _reason_for_no_value(row, compared.overall)):
        total = _value_with_interval(_find_row(compared.overall, "goodput_bps"), compared.overall)
        sources = count_text(sum(group.count for group in groups), "user")
        together = f"the {sources} together get {total}, but " if total else ""
        return f"{together}the rate while a file is loading is unknown ({reason})"
    return stated and _clause_template(kind, sum(group.count for group in groups)).format(stated)


def _clause_template(kind: str, sources: int) -> str:
    """Return a clause with a placeholder for the value."""
    if kind == "on-off":
        who = "the user" if sources == 1 else f"each of the {sources:,} users"
        return f"{who} gets {{}} while a file is loading"
    if kind == "bulk":
        return "the flow gets {}" if sources == 1 else f"the {sources:,} flows together get {{}}"
    return "a transfer takes {} on average"


def _link_shares_clause(compared: ComparedAnswers, scenario: Scenario) -> str:
    """Return the shares of the link of the classes with the largest and smallest rate per flow.

    "" unless endless flows compete for the whole run and the intervals per flow are disjoint.
    """
    groups = {group.name: group for group in scenario.populations}
    if any(g.traffic.kind != "bulk" or g.has_start_or_stop for g in groups.values()):
        return ""
    rated = []
    for name, table in compared.classes.items():
        figure = _reference_value(_find_row(table, MAIN_METRICS["bulk"]), table)
        if name not in groups or figure is None or figure.low is None or not figure.trusted:
            return ""
        rated.append((_scale_metric(figure, 1 / groups[name].count), figure, groups[name]))
    (most, taken, winner), *_, (least, left, loser) = sorted(rated, key=lambda r: -r[0].value)
    if not differ_beyond_intervals(most, least):
        return ""
    link = scenario.network.bottleneck.rate_bps
    shares = [
        _scale_metric(goodput, group.packet_bytes / group.payload_bytes / link)
        for goodput, group in ((taken, winner), (left, loser))
    ]
    if not 0 < shares[0].value <= 1:  # the link is unlimited, or its rate is only a mean
        return ""
    flows = sum(group.count for group in groups.values())
    part = "" if winner.count == loser.count else f" with {winner.count:,} of {flows:,} flows"
    buffer = "" if scenario.network.bottleneck.is_policer else f" ({buffer_text(scenario)})"
    first, other = _class_and_stack_text(winner, loser), _class_and_stack_text(loser, winner)
    taken_text = f"{_share_text(shares[0])} of the link{buffer}{part}"
    if differ_beyond_intervals(most, _scale_metric(least, MIN_RATE_RATIO)):
        return f"{first} takes {taken_text}; {other} gets {_share_text(shares[1])}"
    return f"{first} gets {taken_text}, and {other} gets {_share_text(shares[1])}"


def _scale_metric(metric: Metric, factor: float) -> Metric:
    """Return a value and its interval times a factor."""
    low, high = (None if end is None else end * factor for end in (metric.low, metric.high))
    return replace(metric, value=metric.value * factor, low=low, high=high)


def _class_and_stack_text(group: Population, other: Population) -> str:
    """Return the name of a class, with its stack if the other class has another stack."""
    stack = "" if group.tcp.stack == other.tcp.stack else f" ({group.tcp.stack})"
    return f"class {group.name}{stack}"


def _share_text(share: Metric) -> str:
    scale = Scale(0.01, "%")
    interval = interval_text(share, scale).replace("–", " to ")
    return f"{value_text(share, scale)} % ({interval})"


def _class_clauses(compared: ComparedAnswers, groups: Sequence[Population]) -> str:
    """Return one statement per class, largest value first; for many classes, the two extremes."""
    kinds = {group.name: group.traffic.kind for group in groups}
    sources = {group.name: group.count for group in groups}
    stated: list[tuple[float, str, Metric, str]] = []
    for name, table in compared.classes.items():
        kind = kinds.get(name, "")
        row = _find_row(table, MAIN_METRICS.get(kind, ""))
        text, figure = _value_with_interval(row, table), _reference_value(row, table)
        if text and figure is not None:
            clause = _clause_template(kind, sources[name]).format(text)
            stated.append((figure.value, f"class {name}: {clause}", figure, kind))
    if len({kind for *_, kind in stated}) > 1:
        return "; ".join(clause for _, clause, *_ in stated[:MAX_VERDICT_CLASSES])
    stated.sort(key=lambda each: (math.isnan(each[0]), -each[0]))
    if len(stated) > MAX_VERDICT_CLASSES:
        stated = [stated[0], stated[-1]]
    clauses = [clause for _, clause, *_ in stated]
    if len(stated) > 1:
        separate = differ_beyond_intervals(stated[0][2], stated[-1][2])
        if separate is None:
            clauses.append("without reliable intervals, the difference cannot be tested")
        elif not separate:
            clauses.append("the difference is not significant")
    return "; ".join(clauses)


def differ_beyond_intervals(larger: Metric, smaller: Metric) -> bool | None:
    """Return True if two values differ beyond their intervals; values of formulas have none.

    None if this cannot be tested, because an interval is withheld.
    """
    if larger.low is None or smaller.high is None:
        return True if larger.interval_warning is smaller.interval_warning is None else None
    return larger.low > smaller.high


def _queue_delay_clause(table: Comparison) -> str:
    row = _find_row(table, "queue_delay_mean_s")
    figure = _reference_value(row, table)
    if row is None or figure is None or not figure.trusted or not 0 < figure.value < math.inf:
        return ""
    scale = scale_for_row(row)
    return f"the queue adds {value_text(figure, scale)} {scale.unit} on average"


def _closest_formula_clause(table: Comparison, metric: str) -> str:
    """Return the difference between the closest formula and the reference."""
    row = _find_row(table, metric)
    if row is None:
        return ""
    rated = [
        (abs(difference.amount), table.engines[index], difference)
        for index, difference in enumerate(row.differences)
        if difference is not None
        and table.kinds[index] == "formula"
        and not _is_upper_bound(table.engines[index])
    ]
    if not rated:
        return ""
    _, engine, difference = min(rated, key=lambda each: each[0])
    if not difference.in_percentage_points and difference.amount > MAX_STATED_DIFFERENCE:
        times = f"{1 + difference.amount:,.2g} times as large"
        return f"no formula applies: the closest, {engine}, is {times}"
    return f"the formula {engine} differs by {difference_text(difference)}"


def _is_upper_bound(engine: str) -> bool:
    entry = REGISTRY.get(engine)
    return isinstance(entry, Formula) and entry.is_upper_bound


def sweep_verdict(
    table: Mapping[str, Sequence[Any]], keys: Mapping[str, str], group: str = ""
) -> str:
    """Return a sentence with the combinations that have the largest and smallest main metric.

    Parameters
    ----------
    table
        Columns of the sweep, one row per combination, engine and replication.
    keys
        The varied keys, which are column names, with their units.
    group
        The class of the metrics; "" for the totals of all classes.

    Returns
    -------
    str
        One sentence, which states whether the two values differ beyond their intervals, or that
        these are missing; "" unless at least two rows of the first engine have a trusted value.
    """
    metric = next(
        (name for name in MAIN_METRICS.values() if any(map(_is_finite, table.get(name, ())))), None
    )
    if metric is None:
        return ""
    untrusted = table.get("untrusted", [()] * len(table[metric]))
    rows = [
        (index, value)
        for index, value in enumerate(table[metric])
        if _is_finite(value)
        and table["engine"][index] == table["engine"][0]
        and metric not in (untrusted[index] or ())
    ]
    if len(rows) < 2:
        return ""
    ends = [choose(rows, key=lambda each: each[1])[0] for choose in (max, min)]
    scale = scale_for_metric(metric, table[metric][ends[0]])
    subject = f"The {metric_label(metric)} {f'of class {group} ' if group else ''}"
    high, low = (scale.text(table[metric][at]) for at in ends)
    names = short_key_names(keys)
    if high == low:
        return f"{subject}is {low} for all values of {' and '.join(names.values())}."
    high_place, low_place = (
        ", ".join(f"{names[key]} = {_key_value_text(table[key][at], keys[key])}" for key in keys)
        for at in ends
    )
    largest, smallest = (
        Metric(
            table[metric][at],
            _cell_or_none(table, f"{metric}_low", at),
            _cell_or_none(table, f"{metric}_high", at),
            interval_warning=_cell_or_none(table, f"{metric}_interval_warning", at),
        )
        for at in ends
    )
    separate = differ_beyond_intervals(largest, smallest)
    if separate is False:
        subject += "does not differ significantly: it "
    untested = ", without reliable intervals" if separate is None else ""
    return f"{subject}lies between {low} ({low_place}) and {high} ({high_place}){untested}."


def _key_value_text(value: Any, unit: str) -> str:
    """Return the value of a key with a readable unit: "60 ms" for (0.06, "s")."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return amount_text(value, unit) if is_number else str(value)


def short_key_names(keys: Iterable[str]) -> dict[str, str]:
    """Return the last part of each key's name, or the full name if two last parts are equal."""
    last = {key: key.rpartition(".")[2] for key in keys}
    alike = list(last.values())
    return {key: name if alike.count(name) == 1 else key for key, name in last.items()}


def _is_finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _cell_or_none(table: Mapping[str, Sequence[Any]], name: str, index: int) -> Any:
    return table[name][index] if name in table else None


def _find_row(table: Comparison, metric: str) -> ComparisonRow | None:
    return next((row for row in table.rows if row.metric == metric), None)


def _reference_value(row: ComparisonRow | None, table: Comparison) -> Metric | None:
    """Return the value of the reference, or else of the first trusted answer with a value."""
    index = _quoted_answer_index(row, table)
    return None if row is None or index is None else row.metrics[index]


def _quoted_answer_index(row: ComparisonRow | None, table: Comparison) -> int | None:
    """Return the index of the answer that the verdict quotes; trusted answers are preferred."""
    if row is None:
        return None
    given = [index for index, metric in enumerate(row.metrics) if metric is not None]
    preferred = [index for index in given if index == table.reference]
    trusted = [index for index in given if getattr(row.metrics[index], "trusted", False)]
    return next(iter([*preferred, *trusted, *given]), None)


def _reason_for_no_value(row: ComparisonRow | None, table: Comparison) -> str:
    """Return the reason why the quoted answer has no value, "" if it has one."""
    index = _quoted_answer_index(row, table)
    figure = None if row is None or index is None else row.metrics[index]
    if figure is None or math.isfinite(figure.value) or figure.at_least is not None:
        return ""
    return figure.missing_interval or ""


def _value_with_interval(row: ComparisonRow | None, table: Comparison) -> str:
    """Return a value with its unit and uncertainty, or "" without a value."""
    index = _quoted_answer_index(row, table)
    figure = None if row is None or index is None else row.metrics[index]
    if row is None or index is None or figure is None:
        return ""
    scale = scale_for_row(row)
    if not math.isfinite(figure.value) and figure.at_least is None:
        return f"no trusted value ({figure.missing_interval})" if figure.missing_interval else ""
    shown = f"{value_text(figure, scale)} {scale.unit}".strip()
    if figure.value == 0.0 and not figure.high:
        shown = "nothing"
    interval = interval_text(figure, scale).replace("–", " to ")
    engine = table.engines[index]
    formula = f"by the formula {engine}" if table.kinds[index] == "formula" else ""
    doubt = "" if figure.trusted else "not to be trusted"
    remarks = ", ".join(filter(None, [interval, formula, doubt]))
    bound = "at most " if _is_upper_bound(engine) else ""
    return f"{bound}{shown} ({remarks})" if remarks else shown
