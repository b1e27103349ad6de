"""Answers as rows: one a metric, for tables of programs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from tcpcast.answer import UNITS, unit_of
from tcpcast.report import csv

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcpcast.answer import Answer

CLASSES = "by_class"


class AnswerRow(NamedTuple):
    """A metric of an engine's answer.

    ``of_class`` is empty for all sources together, ``value``, ``low`` and ``high`` are in ``unit``;
    ``low`` and ``high`` are None without an interval. ``trusted`` is False outside the domain of a
    formula.
    """

    engine: str
    of_class: str
    metric: str
    value: float
    low: float | None
    high: float | None
    unit: str
    trusted: bool


COLUMNS = ("engine", "class", "metric", "value", "low", "high", "unit", "trusted")
"""The names of :class:`AnswerRow`'s columns."""


def answer_rows(answers: Sequence[Answer]) -> list[AnswerRow]:
    """Return a row for each metric of each answer, then for each of each class.

    An engine that does not apply has no row.
    """
    return [row for answer in answers for row in (*_overall(answer), *_of_classes(answer))]


def _overall(answer: Answer) -> Iterator[AnswerRow]:
    for name, metric in answer.metrics.items():
        yield AnswerRow(
            *(answer.engine, "", name, metric.value, metric.low, metric.high),
            *(unit_of(name, metric), metric.trusted),
        )


def _of_classes(answer: Answer) -> Iterator[AnswerRow]:
    if CLASSES not in answer.tables:
        return
    table = answer.tables[CLASSES]
    metrics = [name for name in table if name in UNITS]
    for at, name in enumerate(table["name"]):
        for metric in metrics:
            low, high = (
                _number(table[key][at]) if key in table else None
                for key in (f"{metric}_low", f"{metric}_high")
            )
            value = _number(table[metric][at])
            if value is not None:
                yield AnswerRow(
                    answer.engine, str(name), metric, value, low, high, UNITS[metric], trusted=True
                )


def _number(value: object) -> float | None:
    """Return a number, None where there is none."""
    found = math.nan if value is None else float(value)  # type: ignore[arg-type]
    return None if math.isnan(found) else found


def csv_text(answers: Sequence[Answer]) -> str:
    """Return :func:`answer_rows` as CSV with a head; what has no value is empty."""
    return csv.encode(COLUMNS, answer_rows(answers))
