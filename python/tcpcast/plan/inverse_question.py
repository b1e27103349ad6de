"""The question of a plan: a key of the scenario is varied until a metric meets its target."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcpcast.errors import DomainError
from tcpcast.plan.result import Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tcpcast.answer import Answer, Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class InverseQuestion:
    """An inverse question.

    Attributes
    ----------
    text
        Text of the question in reports.
    key, column, unit
        The varied key of the scenario, its column in tables, and its unit.
    axis, headings
        Label of the value in figures, and headings of tables in reports: see :class:`Plan`.
    metric, target
        The metric and its target value; NaN if another quantity has the target.
    format_value
        Function that formats a value for the scenario.
    make_changes
        Function that returns the changes for a value, if more than ``key`` changes.
    read_metric, quantity, tables
        For a compared quantity other than the metric: the function that reads it from an answer,
        its name in reports, and the tables of the answer that it needs.
    """

    text: str
    key: str
    column: str
    unit: str
    metric: str
    target: float = math.nan
    format_value: Callable[[Any], Any] = int
    make_changes: Callable[[float], dict[str, Any]] | None = None
    read_metric: Callable[[Answer], Metric | None] | None = None
    quantity: str = ""
    axis: str = ""
    headings: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[str, ...] = ()

    def plan(self) -> Plan:
        """Return a plan without an answer."""
        target = None if math.isnan(self.target) else (self.metric, self.target)
        return Plan(
            self.text,
            math.nan,
            self.unit,
            target=target,
            axis=self.axis,
            headings=dict(self.headings),
        )

    def changes(self, value: float) -> dict[str, Any]:
        """Return the changes that set a value in the scenario."""
        return (
            {self.key: self.format_value(value)}
            if self.make_changes is None
            else self.make_changes(value)
        )

    def read_quantity(self, answer: Answer) -> Metric | None:
        """Return the compared quantity of an answer, or None."""
        return (
            answer.metrics.get(self.metric)
            if self.read_metric is None
            else self.read_metric(answer)
        )


def check_positive_rate(quantity: str, rate_bps: float, example: str) -> None:
    """Raise if a target rate is not above 0 and finite.

    Raises
    ------
    DomainError
        The message has the name of the quantity and an example.
    """
    if not 0 < rate_bps < math.inf:
        raise DomainError(
            f"the {quantity} must be above 0 bit/s and finite, not {rate_bps!r}; write, for "
            f"example, {example}"
        )
