"""Comparison of answers: one row per metric, one column per engine, and relative differences.

The reference is the most trusted answer (:func:`order_by_trust`), in any order of the engines. The
difference of another engine is ``(engine - reference) / reference``. For ratios in per cent, the
difference is ``engine - reference`` in percentage points, because "3 % more than 2 % loss" is
ambiguous. Untrusted values are shown but never compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from tcpcast.answer import Metric, unit_of_metric
from tcpcast.answer.metrics import METRICS, sort_metrics
from tcpcast.engines import REGISTRY
from tcpcast.engines.registry import Formula
from tcpcast.quantity.readable_units import count_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np

    from tcpcast.answer import Answer, Kind
    from tcpcast.scenario import Population

TRUSTED_ENGINES = ("packet", "kernel", "pftk", "pftk-approx", "short", "restart-sqrt")
"""Engines that are trusted more than others of their kind, most trusted first."""

MAIN_METRICS = {
    "on-off": "connection_rate_bps",
    "transfers": "completion_time_s",
    "bulk": "goodput_bps",
    "requests": "latency_p95_s",
    "messages": "delay_p95_s",
    "ping": "delay_p95_s",
    "stream": "stall_ratio",
    "page": "page_time_p95_s",
}
"""The metric of the verdict by kind of traffic, without a handshake: see :func:`main_metric`."""

MIN_DIFFERENCE = 5e-4
"""Minimum relative difference between values without intervals: with three digits, it shows."""

TOO_FEW_FILES = "too few files"
TOO_FEW_VALUES = "too few values"
"""Default text for a missing interval."""

_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference of a value from the reference.

    ``amount`` is a share of the reference. If ``in_percentage_points`` is True, it is a difference
    of two ratios: 0.012 means +1.2 percentage points.
    """

    amount: float
    in_percentage_points: bool


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """One metric over all engines; None if an engine does not have it."""

    metric: str
    metrics: tuple[Metric | None, ...]
    differences: tuple[Difference | None, ...]
    subject: str = ""
    """Subject of the row, for example a size, if a comparison has several rows of one metric."""

    @property
    def unit(self) -> str:
        """Unit of the metric: see :func:`tcpcast.answer.unit_of_metric`."""
        return unit_of_metric(self.metric, next((f for f in self.metrics if f is not None), None))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rows in report order, and the engines with the kinds of their answers.

    ``order`` holds the indices of the engines, the most trusted first.
    """

    engines: tuple[str, ...]
    order: tuple[int, ...]
    rows: tuple[ComparisonRow, ...]
    kinds: tuple[Kind, ...]
    """Kind of each engine's answer: calculated, simulated or measured."""

    @property
    def reference(self) -> int | None:
        """Index of the engine that others are compared with, None for a single engine."""
        return self.order[0] if len(self.order) > 1 else None

    @property
    def compared_columns(self) -> tuple[int, ...]:
        """Indices of engines that have a difference from the reference in any row."""
        return tuple(
            i
            for i in range(len(self.engines))
            if any(row.differences[i] is not None for row in self.rows)
        )


@dataclass(frozen=True, slots=True)
class ComparedAnswers:
    """Answers and all their comparisons: the input of every report."""

    answers: tuple[Answer, ...]
    overall: Comparison
    classes: dict[str, Comparison]
    goodput_percentiles: Comparison
    goodput_percentiles_of_classes: Comparison
    times_by_size: Comparison


def time_per_file_metric(groups: Sequence[Population]) -> str:
    """Return the metric of the time per file: from the SYN if a handshake opens its connection."""
    if any(group.opens_connections for group in groups):
        return "total_time_s"
    is_on_off = any(group.traffic.kind == "on-off" for group in groups)
    return "on_time_s" if is_on_off else "completion_time_s"


def main_metric(groups: Sequence[Population]) -> str:
    """Return the metric that judges senders of one kind, "" if their kinds differ."""
    kinds = {group.traffic.kind for group in groups}
    if kinds == {"transfers"}:
        return time_per_file_metric(groups)
    return MAIN_METRICS.get(kinds.pop(), "") if len(kinds) == 1 else ""


def compare_all(answers: Sequence[Answer]) -> ComparedAnswers:
    """Compute all comparisons of several answers for a report."""
    return ComparedAnswers(
        tuple(answers),
        compare_metrics(answers),
        compare_classes(answers),
        compare_goodput_percentiles(answers),
        compare_goodput_percentiles(answers, by_class=True),
        compare_times_by_size(answers),
    )


def compare_metrics(answers: Sequence[Answer]) -> Comparison:
    """Compare the metrics of several answers.

    Parameters
    ----------
    answers
        One answer per engine; answers that do not apply are omitted.

    Returns
    -------
    Comparison
        One row per metric that at least one engine has, in the order of
        :data:`tcpcast.answer.metrics.METRICS`; metrics of other packages come last.
    """
    applicable = _select_applicable(answers)
    return _compare_rows(applicable, [a.metrics for a in applicable])


def compare_classes(answers: Sequence[Answer]) -> dict[str, Comparison]:
    """Compare the values of each class, from the tables ``by_class``.

    Returns
    -------
    dict
        Comparisons by class, over the engines that distinguish classes; empty with fewer than two
        classes. A value of a class is trusted if the metric is trusted for all classes in total.
    """
    applicable = [a for a in _select_answers_with_metrics(answers) if "by_class" in a.tables]
    by_class = [class_metrics(a) for a in applicable]
    names = list(dict.fromkeys(name for figures in by_class for name in figures))
    if len(names) < 2:
        return {}
    return {
        name: _compare_rows(applicable, [figures.get(name, {}) for figures in by_class])
        for name in names
    }


def compare_by_class(reference: Answer, answer: Answer) -> Comparison:
    """Compare the values of each class that a reference has, such as a measurement.

    Returns
    -------
    Comparison
        One row per class and metric, with the class as its subject.
    """
    answers = (reference, answer)
    by_class = [class_metrics(each) for each in answers]
    rows = tuple(
        _make_comparison_row(
            metric, tuple(each.get(name, {}).get(metric) for each in by_class), (0, 1), name
        )
        for name, metrics in by_class[0].items()
        for metric in sort_metrics(metrics)
    )
    return _make_comparison(answers, (0, 1), rows)


def compare_times_by_size(answers: Sequence[Answer]) -> Comparison:
    """Compare the mean times of single transfers, from the tables ``by_size``.

    Returns
    -------
    Comparison
        One row per size that at least one answer lists, over the engines that list sizes. With
        handshakes, the rows are total times if an engine has them with their uncertainty.
    """
    tables = [(a, a.tables.get("by_size", {})) for a in _select_applicable(answers)]
    for metric in ("total_time_s", "completion_time_s"):
        listed = [(a, table) for a, table in tables if has_times(table, "size_pkts", metric=metric)]
        if listed:
            break
    by_size = [_times_by_size(*each, metric) for each in listed]
    sizes = sorted({size for figures in by_size for size in figures})
    subjects = {size: packets_text(size) for size in sizes}
    return _compare_by_subject(metric, [a for a, _ in listed], by_size, subjects)


def packets_text(packets: float) -> str:
    """Return ``1 packet``, ``2 packets``, for an integer number of packets."""
    return count_text(packets, "packet")


def has_times(
    table: Mapping[str, np.ndarray[Any, Any]], *keys: str, metric: str = "completion_time_s"
) -> bool:
    """Return True if a table contains mean times, their intervals if it has any, and ``keys``."""
    return {*keys, metric} <= table.keys() and ("low" in table) == (_low_name(metric) in table)


def _low_name(metric: str) -> str:
    """Return the column with the lower ends of intervals; completion times own the plain name."""
    return "low" if metric == "completion_time_s" else f"{metric}_low"


def _times_by_size(
    answer: Answer, table: Mapping[str, np.ndarray[Any, Any]], metric: str
) -> dict[int, Metric]:
    sizes = (int(size) for size in table["size_pkts"])
    trusted = _is_trusted(answer, metric)
    times = (replace(time, trusted=trusted) for time in mean_time_metrics(table, metric))
    # Times are nan if too many transfers had not finished.
    return {s: time for s, time in zip(sizes, times, strict=True) if not math.isnan(time.value)}


def mean_time_metrics(
    table: Mapping[str, np.ndarray[Any, Any]], metric: str = "completion_time_s"
) -> list[Metric]:
    """Return the mean times of a table, with its intervals if it has any."""
    values, low = table[metric].tolist(), _low_name(metric)
    if low not in table:  # calculated, without intervals
        return [Metric(value) for value in values]
    lows, highs = (table[name].tolist() for name in (low, f"{low.removesuffix('low')}high"))
    return [make_metric_with_interval(*row) for row in zip(values, lows, highs, strict=True)]


def make_metric_with_interval(
    value: float, low: float, high: float, missing_interval_reason: str | None = TOO_FEW_FILES
) -> Metric:
    """Return a value with its interval; ``missing_interval_reason`` explains an interval of NaN."""
    if math.isnan(low):
        return Metric(value, interval_warning=missing_interval_reason)
    return Metric(value, low, high)


def compare_goodput_percentiles(answers: Sequence[Answer], *, by_class: bool = False) -> Comparison:
    """Compare percentiles of the goodput of files.

    Parameters
    ----------
    answers
        One answer per engine, with the tables ``file_goodput`` and ``file_goodput_by_class``.
    by_class
        Whether to compare the files of each class instead of all files.

    Returns
    -------
    Comparison
        One row per share of files in at least one answer, in descending order, over the engines
        with such percentiles. Values are in the unit of ``connection_rate_bps``.
    """
    name = "file_goodput_by_class" if by_class else "file_goodput"
    with_shares = [a for a in _select_answers_with_metrics(answers) if a.tables.get(name)]
    found = [_goodput_percentiles(a, name) for a in with_shares]
    classes = dict.fromkeys(of_class for figures in found for of_class, _ in figures)
    shares = sorted({share for figures in found for _, share in figures}, reverse=True)
    subjects = {
        (of_class, share): f"{of_class}, {_percentile_text(share)}".removeprefix(", ")
        for of_class in classes
        for share in shares
    }
    return _compare_by_subject("connection_rate_bps", with_shares, found, subjects)


def _percentile_text(share: float) -> str:
    """Return ``5th percentile`` for the goodput that 95 % of the files reach."""
    level = f"{100 * (1 - share):.6g}"
    ending = {"1": "st", "2": "nd", "3": "rd"}.get(level, "th")
    return f"{level}{ending} percentile"


def _goodput_percentiles(answer: Answer, name: str) -> dict[tuple[str, float], Metric]:
    """Return the goodput that each share of the files of each class exceeds ("": of all files)."""
    table = answer.tables[name]
    overall = answer.metrics.get("connection_rate_bps")
    doubt: dict[str, Any] = {}
    reason: str | None = TOO_FEW_FILES
    if overall is not None and math.isnan(overall.value):
        reason = overall.missing_interval or reason
    if overall is not None and not overall.trusted:
        doubt = {"trusted": False, "interval_warning": overall.interval_warning}
    columns = (table[key].tolist() for key in ("share", "goodput_bps", "low", "high"))
    classes = table["name"].tolist() if "name" in table else [""] * len(table["share"])
    return {
        (of_class, share): replace(make_metric_with_interval(value, low, high, reason), **doubt)
        for of_class, share, value, low, high in zip(classes, *columns, strict=True)
    }


def order_by_trust(answers: Sequence[Answer]) -> tuple[int, ...]:
    """Return the indices of answers, the most trusted first, in any order of the answers.

    Trusted values precede others, simulated and measured values precede those of formulas, and
    estimates precede bounds. A formula for another stack is not trusted.
    """

    def rank(index: int) -> tuple[Any, ...]:
        metrics = answers[index].metrics
        main = [metric for name, metric in metrics.items() if name in MAIN_METRICS.values()]
        trusted = [metric.trusted for metric in main or metrics.values()]
        return (
            not (trusted and all(trusted)),
            not is_observed(answers[index]),
            engine_rank(answers[index].engine),
        )

    return tuple(sorted(range(len(answers)), key=rank))


def engine_rank(engine: str) -> tuple[bool, bool, int, str]:
    """Return a key to sort engines by trust: simulations, estimates of formulas, then bounds."""
    place = TRUSTED_ENGINES.index(engine) if engine in TRUSTED_ENGINES else len(TRUSTED_ENGINES)
    return is_formula(engine), is_upper_bound(engine), place, engine


def is_formula(engine: str) -> bool:
    """Return True for an engine with a closed form."""
    return isinstance(REGISTRY.get(engine), Formula)


def is_upper_bound(engine: str) -> bool:
    """Return True if the values of an engine are bounds."""
    entry = REGISTRY.get(engine)
    return isinstance(entry, Formula) and entry.is_upper_bound


def differ_significantly(larger: Metric, smaller: Metric) -> bool | None:
    """Return True if two values differ beyond their intervals; values of formulas have none.

    None if this cannot be tested, because an interval is withheld.
    """
    if larger.low is None or smaller.high is None:
        is_exact = larger.interval_warning is smaller.interval_warning is None
        return (
            larger.value > smaller.value + MIN_DIFFERENCE * abs(smaller.value) if is_exact else None
        )
    return larger.low > smaller.high


def is_observed(answer: Answer) -> bool:
    """Return True if an answer was simulated or measured instead of calculated."""
    if answer.kind != "formula":
        return True
    return any(m.low is not None for m in answer.metrics.values())


def _select_applicable(answers: Iterable[Answer]) -> list[Answer]:
    return [a for a in answers if a.applies]


def _select_answers_with_metrics(answers: Iterable[Answer]) -> list[Answer]:
    return [a for a in _select_applicable(answers) if not a.withheld]


def _compare_rows(
    answers: Sequence[Answer], metrics_by_answer: Sequence[Mapping[str, Metric]]
) -> Comparison:
    order, rows = order_by_trust(answers), []
    for name in sort_metrics(name for each in metrics_by_answer for name in each):
        given = tuple(f.get(name) for f in metrics_by_answer)
        if any(g is not None for g in given):
            rows.append(_make_comparison_row(name, given, order))
    return _make_comparison(answers, order, tuple(rows))


def _compare_by_subject(
    name: str,
    answers: Sequence[Answer],
    metrics_by_answer: Sequence[Mapping[_Key, Metric]],
    subjects: Mapping[_Key, str],
) -> Comparison:
    """Compare one metric for several subjects; ``metrics_by_answer`` has one mapping per answer."""
    order = order_by_trust(answers)
    rows = tuple(
        _make_comparison_row(
            name, tuple(each.get(key) for each in metrics_by_answer), order, subject
        )
        for key, subject in subjects.items()
    )
    return _make_comparison(answers, order, rows)


def _make_comparison(
    answers: Sequence[Answer], order: tuple[int, ...], rows: tuple[ComparisonRow, ...]
) -> Comparison:
    kinds = tuple(answer_kind(answer) for answer in answers)
    return Comparison(tuple(a.engine for a in answers), order, rows, kinds)


def answer_kind(answer: Answer) -> Kind:
    """Return the kind of an answer; answers of plugins with intervals count as simulated."""
    return "simulation" if answer.kind == "formula" and is_observed(answer) else answer.kind


def _make_comparison_row(
    name: str, given: tuple[Metric | None, ...], order: tuple[int, ...], subject: str = ""
) -> ComparisonRow:
    reference_metric = given[order[0]]
    differences = tuple(
        None if i == order[0] else _compute_difference(name, g, reference_metric)
        for i, g in enumerate(given)
    )
    return ComparisonRow(name, given, differences, subject)


def _compute_difference(
    name: str, metric: Metric | None, reference_metric: Metric | None
) -> Difference | None:
    if (
        metric is None
        or reference_metric is None
        or not (metric.trusted and reference_metric.trusted)
    ):
        return None
    if not (math.isfinite(metric.value) and math.isfinite(reference_metric.value)):
        return None
    if is_percentage(name):
        return Difference(metric.value - reference_metric.value, in_percentage_points=True)
    if reference_metric.value == 0:
        return None
    return Difference(
        (metric.value - reference_metric.value) / reference_metric.value, in_percentage_points=False
    )


def is_percentage(name: str) -> bool:
    """Return True if a metric is a ratio that is shown as a percentage."""
    return METRICS[name].is_percentage if name in METRICS else name.endswith("_ratio")


def class_metrics(answer: Answer) -> dict[str, dict[str, Metric]]:
    """Return the metrics of each class by the name of the class, from the table ``by_class``."""
    table = answer.tables["by_class"]
    metrics = [name for name in table if name in METRICS]
    files = table.get("mean_size_pkts", [0.0] * len(table["name"]))
    # A class without files, for example with endless flows, has no completion times; in a network,
    # classes differ in their links and metrics.
    may_lack = "by_link" in answer.tables
    return {
        str(label): {
            name: _metric_from_cell(answer, table, name, row)
            for name in metrics
            if not (may_lack or math.isnan(files[row])) or not math.isnan(table[name][row])
        }
        for row, label in enumerate(table["name"])
    }


LINK_PREFIX = "link."
"""Beginning of the name of a link among the names of classes."""


def link_metrics(answer: Answer) -> dict[str, dict[str, Metric]]:
    """Return the metrics of each link of a network, by ``link.`` and the name of the link."""
    table = answer.tables.get("by_link", {})
    return {
        f"{LINK_PREFIX}{label}": {
            name: _metric_from_cell(answer, table, name, row)
            for name in table
            if name in METRICS and not math.isnan(table[name][row])
        }
        for row, label in enumerate(table.get("link", ()))
    }


def _is_trusted(answer: Answer, metric: str) -> bool:
    """Return True unless the answer has the metric and marks its value as untrusted."""
    overall = answer.metrics.get(metric)
    return overall is None or overall.trusted


def _metric_from_cell(
    answer: Answer, table: Mapping[str, np.ndarray[Any, Any]], name: str, row: int
) -> Metric:
    trusted = _is_trusted(answer, name)
    if f"{name}_low" in table:
        columns = (name, f"{name}_low", f"{name}_high")
        value, low, high = (float(table[column][row]) for column in columns)
        if f"{name}_interval_warning" in table:
            lacking = str(table[f"{name}_interval_warning"][row]) or None
        else:
            is_of_files = any(each in table and row.file_kinds for each, row in METRICS.items())
            lacking = TOO_FEW_FILES if is_of_files else TOO_FEW_VALUES
        bound = float(table.get(f"{name}_at_least", {row: math.nan})[row])
        at_least = None if math.isnan(bound) else bound
        return replace(
            make_metric_with_interval(value, low, high, lacking), trusted=trusted, at_least=at_least
        )
    return Metric(float(table[name][row]), trusted=trusted)
