"""The question of a plan: a key of the scenario is varied until a metric meets its target."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpcast.plan.result import Plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.answer import Answer, Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An inverse question.

    Attributes
    ----------
    words
        Text of the question in reports.
    key, column, unit
        The varied key of the scenario, its column in tables, and its unit.
    metric, target
        The metric and its target value; NaN if a search compares another quantity.
    write
        Function that formats a value for the scenario.
    place
        Function that returns the changes for a value, if more than ``key`` changes.
    read, figure, tables
        Function that returns the compared quantity of an answer if it is not the metric; its name
        in reports; the tables of the answer that contain it.
    """

    words: str
    key: str
    column: str
    unit: str
    metric: str
    target: float = math.nan
    write: Callable[[Any], Any] = int
    place: Callable[[float], dict[str, Any]] | None = None
    read: Callable[[Answer], Metric | None] | None = None
    figure: str = ""
    tables: tuple[str, ...] = ()

    def plan(self) -> Plan:
        """Return a plan without an answer."""
        target = None if math.isnan(self.target) else (self.metric, self.target)
        return Plan(question=self.words, value=math.nan, unit=self.unit, target=target)

    def changes(self, value: float) -> dict[str, Any]:
        """Return the changes that set a value in the scenario."""
        return {self.key: self.write(value)} if self.place is None else self.place(value)

    def measured(self, found: Answer) -> Metric | None:
        """Return the compared quantity of an answer, or None."""
        return found.metrics.get(self.metric) if self.read is None else self.read(found)
