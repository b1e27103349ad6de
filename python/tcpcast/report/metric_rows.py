"""Answers as rows, one per metric, for CSV and data frames."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from tcpcast.answer import unit_of_metric
from tcpcast.comparison.compare import class_metrics, link_metrics
from tcpcast.report import csv

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcpcast.answer import Answer, Metric


class AnswerRow(NamedTuple):
    """One metric of an answer.

    ``of_class`` is empty for the total of all sources, and ``link.NAME`` for a link. ``value``,
    ``low`` and ``high`` are in ``unit``; ``low`` and ``high`` are None without an interval.
    ``trusted`` is False outside the domain of a formula and for a simulation without a steady
    state. ``interval_warning`` is the
    reason why an interval is withheld or should be checked.
    """

    engine: str
    of_class: str
    metric: str
    value: float
    low: float | None
    high: float | None
    unit: str
    trusted: bool
    interval_warning: str | None


COLUMN_NAMES = tuple("class" if name == "of_class" else name for name in AnswerRow._fields)
"""Names of the columns of :class:`AnswerRow`."""


def answer_rows(answers: Sequence[Answer]) -> list[AnswerRow]:
    """Return one row per metric of each answer, followed by the metrics of each class.

    An engine that does not apply has no rows.
    """
    return [
        AnswerRow(
            *(answer.engine, of_class, name, metric.value, metric.low, metric.high),
            *(unit_of_metric(name, metric), metric.trusted, metric.interval_warning),
        )
        for answer in answers
        for of_class, metrics in _metrics_by_class(answer)
        for name, metric in metrics.items()
        if not (of_class and math.isnan(metric.value))
    ]


def _metrics_by_class(answer: Answer) -> Iterator[tuple[str, dict[str, Metric]]]:
    """Yield the metrics of all sources, named "", then those of each class and link."""
    yield "", answer.metrics
    if "by_class" in answer.tables:
        yield from (class_metrics(answer) | link_metrics(answer)).items()


def csv_text(answers: Sequence[Answer]) -> str:
    """Return :func:`answer_rows` as CSV with a header row; missing values are empty."""
    return csv.encode_csv(COLUMN_NAMES, answer_rows(answers))
