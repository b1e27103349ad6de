"""The result of a plan."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcpcast.answer import UNITS, columns_as_json, finite_or_none
from tcpcast.extras import TabularResult

if TYPE_CHECKING:
    from types import ModuleType

    import numpy as np

    from tcpcast.answer import Answer, Metric, Note
    from tcpcast.plan.search import SearchResult
    from tcpcast.scenario import Scenario

    Table = dict[str, np.ndarray[Any, Any]]
    Bracket = tuple[float | None, float | None]

MAX_DISAGREEMENT = 0.2
"""Relative difference from the simulation's answer above which the model is contradicted."""


@dataclass(slots=True)
class Plan(TabularResult):
    """The answer to an inverse question.

    Attributes
    ----------
    question
        Text of the question.
    value, unit
        The model's answer: whole packets, sources or flows, bit/s, or a ratio (unit 1); NaN if no
        model covers the scenario and only the simulation answers.
    tables
        Additional results; columns of equal length, as in an Answer.
    notes
        Explanations of the results.
    warnings
        Reasons why the results may be misleading.
    simulated
        The answer of the simulation in the same unit; None if it did not run or has no answer.
    simulated_low, simulated_high
        95 % interval of ``simulated`` over seeds; None if the runs have no intervals, and
        therefore no answer.
    simulated_undecided
        Whether this interval is too wide for an answer.
    simulated_metric, metric, simulated_fit_runs
        The metric at ``simulated``, its name, and the number of runs from which it is fitted; 0
        for the metric of one run.
    quantity
        Name of the quantity that meets the target, such as a percentile; "" for a metric.
    metric_at_value, fit_runs
        This quantity at ``value`` after a search by simulation, and the number of runs from which
        it is fitted; 0 for the quantity of one run.
    untrusted
        Reason not to trust the value: it is outside the validated range of its model, or the
        simulation contradicts it (then the simulated answer is shown first). "" if trusted.
    undecided
        Whether the interval ``low`` to ``high`` is too wide for an answer.
    verified
        The simulations' answers, in the order of the table ``simulated``.
    interrupted
        Whether the search or the check was interrupted.
    incomplete
        Whether ``run.max_wall`` ended the search or the check, or the value is based on incomplete
        simulations.
    bracket
        After an unfinished search by simulation: the closest simulated values below and above the
        answer, each None if no run was on this side. None if the search finished.
    recommendation
        The answer with its reason as a sentence; "" if the value suffices.
    low, high
        95 % interval of ``value`` over seeds; None for a model.
    at_least
        Whether larger values up to ``high`` may be possible, because the search did not finish.
    engine
        Engine of the value; "" for a model without an engine.
    scenario
        The scenario with the answer, if the question permits one.
    target
        The metric and its target value in its unit; None if the target is not a metric.
    axis
        Label of ``value`` in figures, without a unit that has prefixes.
    headings
        Headings of tables in reports, in their order; "" for tables that only a figure shows.
        Tables without an entry follow with their name as heading.
    """

    question: str
    value: float
    unit: str
    tables: dict[str, Table] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warnings: list[Note | str] = field(default_factory=list)
    simulated: float | None = None
    simulated_low: float | None = None
    simulated_high: float | None = None
    simulated_undecided: bool = False
    simulated_metric: Metric | None = None
    metric: str = ""
    simulated_fit_runs: int = 0
    quantity: str = ""
    metric_at_value: Metric | None = None
    fit_runs: int = 0
    untrusted: str = ""
    undecided: bool = False
    verified: list[Answer] = field(default_factory=list)
    interrupted: bool = False
    incomplete: bool = False
    bracket: Bracket | None = None
    recommendation: str = ""
    low: float | None = None
    high: float | None = None
    at_least: bool = False
    engine: str = ""
    scenario: Scenario | None = None
    target: tuple[str, float] | None = None
    axis: str = ""
    headings: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        """Return the question and the answer on one line."""
        return f"<Plan {self.question}: {self.value:.6g} {self.unit}>"

    def _make_arrow_table(self, arrow: ModuleType) -> Any:
        """Return the first table, or else one row with value, interval and unit."""
        answer = {name: [finite_or_none(getattr(self, name))] for name in ("value", "low", "high")}
        table = next(iter(self.tables.values()), answer | {"unit": [self.unit]})
        columns = {
            name: arrow.array(values, *([arrow.float64()] if name in answer else []))
            for name, values in table.items()
        }
        return arrow.table(columns)

    @property
    def has_model(self) -> bool:
        """Whether a model or a search gave ``value``."""
        return not math.isnan(self.value)

    @property
    def is_simulation_reported_first(self) -> bool:
        """Whether the simulation's answer is reported first."""
        doubtful = bool(self.untrusted) or self.undecided or not self.has_model
        return self.simulated is not None and doubtful

    def set_simulated_answer(self, result: SearchResult, metric: str) -> None:
        """Set the simulation's answer, unless undecided; mark a contradicted value as untrusted.

        Parameters
        ----------
        result
            The answer with its 95 % interval, in the plan's unit, and the metric at the answer.
        metric
            The metric that meets the target.
        """
        value, low, high = result.value, result.low, result.high
        self.simulated_low, self.simulated_high = low, high
        self.simulated_undecided = result.undecided
        if result.undecided:
            return
        self.simulated, self.metric = value, metric
        self.simulated_metric, self.simulated_fit_runs = result.metric, result.fit_runs
        if not self.has_model:
            return
        inside = low is not None and high is not None and low <= self.value <= high
        if inside or self.untrusted or abs(self.value - value) <= MAX_DISAGREEMENT * value:
            return
        self.untrusted = "the simulation contradicts it"

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values: NaN and infinity become null, arrays become lists."""
        return {
            "question": self.question,
            "value": None if self.undecided else finite_or_none(self.value),
            "trusted": not self.untrusted,
            "untrusted": self.untrusted or None,
            "undecided": self.undecided,
            "low": finite_or_none(self.low),
            "high": finite_or_none(self.high),
            "at_least": self.at_least,
            "unit": self.unit,
            "engine": self.engine or None,
            "recommendation": self.recommendation or None,
            "target": self._target(),
            "tables": {
                name: {"columns": columns_as_json(table)} for name, table in self.tables.items()
            },
            "notes": list(self.notes),
            "warnings": list(map(str, self.warnings)),
            "interrupted": self.interrupted,
            "incomplete": self.incomplete,
            "bracket": None
            if self.bracket is None
            else dict(zip(("low", "high"), self.bracket, strict=True)),
            "simulated": finite_or_none(self.simulated),
            "simulated_low": finite_or_none(self.simulated_low),
            "simulated_high": finite_or_none(self.simulated_high),
            "simulated_undecided": self.simulated_undecided,
            "simulated_there": self._value_at_answer_json(),
            "leading": self._leading_answer_json(),
            "verified": [each.to_json() for each in self.verified],
        }

    def _target(self) -> dict[str, Any] | None:
        if self.target is None:
            return None
        metric, value = self.target
        return {"metric": metric, "value": value, "unit": UNITS[metric]}

    def _value_at_answer_json(self) -> dict[str, Any] | None:
        there = self.simulated_metric
        if there is None:
            return None
        return {
            "metric": self.metric,
            **_interval_as_json(there.value, there.low, there.high),
            "unit": UNITS[self.metric],
            "fitted_runs": self.simulated_fit_runs,
        }

    def _leading_answer_json(self) -> dict[str, Any] | None:
        """Return the answer that is reported first, or None if undecided."""
        if self.is_simulation_reported_first:
            interval = self.simulated, self.simulated_low, self.simulated_high
            return {"by": "simulation", **_interval_as_json(*interval)}
        if self.undecided or not self.has_model:
            return None
        by = self.engine or "model"
        return {"by": by, **_interval_as_json(self.value, self.low, self.high)}


def _interval_as_json(
    value: float | None, low: float | None, high: float | None
) -> dict[str, float | None]:
    return {
        "value": finite_or_none(value),
        "low": finite_or_none(low),
        "high": finite_or_none(high),
    }
