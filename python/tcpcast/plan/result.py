"""The result of a plan."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tcpcast.answer import UNITS, Metric, columns_as_json, finite_or_none
from tcpcast.answer.finding import Finding
from tcpcast.process.extras import TabularResult
from tcpcast.process.interrupts import INTERRUPTED_EXIT_CODE

if TYPE_CHECKING:
    from types import ModuleType

    import numpy as np

    from tcpcast.answer import Answer, Note
    from tcpcast.scenario import Scenario

    Table = dict[str, np.ndarray[Any, Any]]


@dataclass(slots=True)
class Plan(TabularResult):
    """The answer to the question at which value of a quantity a metric meets its target.

    Attributes
    ----------
    question
        Text of the question.
    value, unit
        The answer: whole packets, sources or flows, bit/s, or a ratio (unit 1); None if the search
        did not finish, or if the answer is undecided or not trusted.
    low, high
        95 % interval of the answer over seeds, also if it is too wide for an answer; None for a
        formula.
    engine
        The engine whose metric meets the target.
    metric, target, quantity
        The metric, its target value in its unit, and the quantity in words.
    metric_at_value, fit_runs
        The metric at ``value``, and the number of runs from which it is fitted; 0 for the metric of
        one run.
    bracket
        The closest computed values below and above the answer; each is None if no run was on this
        side.
    undecided
        Whether the interval is too wide for an answer.
    at_limit
        Whether the value is the limit of the search and meets the target: a smaller or larger
        value was not tried.
    untrusted
        Reason not to trust the formula at its answer; "" if it is trusted.
    interrupted, incomplete
        Whether the user interrupted the search, or ``run.max_wall`` ended it.
    tables
        ``values``: the computed values in ascending order, the metric with its interval, and
        further metrics; for a buffer also ``rules``. Columns of equal length, as in an Answer.
    column, axis
        Column of the varied quantity, and its label in figures.
    recommendation
        Explanation of the answer as a sentence; "" if the value suffices.
    notes, warnings
        Explanations of the results, and reasons why they may be misleading.
    runs
        The answers of the engine, in the order of the table ``values``.
    scenario
        The scenario with the answer; None without an answer.
    """

    question: str
    value: float | None
    unit: str
    low: float | None = None
    high: float | None = None
    engine: str = "packet"
    metric: str = ""
    target: float = 0.0
    quantity: str = ""
    metric_at_value: Metric | None = None
    fit_runs: int = 0
    bracket: tuple[float | None, float | None] = (None, None)
    undecided: bool = False
    at_limit: bool = False
    untrusted: str = ""
    interrupted: bool = False
    incomplete: bool = False
    tables: dict[str, Table] = field(default_factory=dict)
    column: str = ""
    axis: str = ""
    recommendation: str = ""
    notes: list[str] = field(default_factory=list)
    warnings: list[Note | str] = field(default_factory=list)
    runs: list[Answer] = field(default_factory=list)
    scenario: Scenario | None = None

    def __repr__(self) -> str:
        """Return one line: the question and its answer."""
        shown = "no answer" if self.value is None else f"{self.value:,.6g} {self.unit}"
        return f"<Plan {self.question}: {shown.removesuffix(' 1')}>"

    def _make_arrow_table(self, arrow: ModuleType) -> Any:
        table = self.tables["values"]
        return arrow.table({name: arrow.array(column) for name, column in table.items()})

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 0 with an answer, 1 without one, 130 after an interrupt."""
        if self.interrupted:
            return INTERRUPTED_EXIT_CODE
        return int(self.value is None or self.incomplete)

    @property
    def findings(self) -> list[Finding]:
        """The answer or, if the search found none, what is known about it."""
        low, high = (self.low, self.high) if self.undecided else self.bracket
        bound: Literal["", "at most", "at least"] = ""
        value, action = Metric(math.nan, low, high, unit=self.unit), ""
        if self.untrusted:
            text = f"the formula {self.engine} gives no answer: {self.untrusted}"
            return [Finding(text, claim="text", action="use the packet engine to simulate")]
        if self.value is not None:
            value = Metric(self.value, self.low, self.high, unit=self.unit)
            if self.at_limit:
                action = "the search ends at this value, which meets the target"
        elif self.undecided:
            action = "the runs are too short for a narrower range"
        else:
            action = "interrupted" if self.interrupted else "run.max_wall ended the search"
            ends = [end for end in self.bracket if end is not None]
            if len(ends) == 1:
                value = Metric(ends[0], unit=self.unit)
                bound = "at most" if low is None else "at least"
        kind = self.runs[0].kind if self.runs else "simulation"
        return [
            Finding(
                f"the {self.question}",
                self.column,
                value,
                basis=self.engine,
                kind=kind,
                bound=bound,
                action=action,
            )
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values: NaN and infinity become null, arrays become lists."""
        names = ("question", "unit", "engine", "undecided", "at_limit", "interrupted", "incomplete")
        at_value = self.metric_at_value
        return {
            **{name: getattr(self, name) for name in names},
            **{name: finite_or_none(getattr(self, name)) for name in ("value", "low", "high")},
            "bracket": dict(zip(("low", "high"), self.bracket, strict=True)),
            "target": {
                "metric": self.metric,
                "value": self.target,
                "unit": UNITS[self.metric],
            },
            "metric_at_value": None
            if at_value is None
            else {
                **{n: finite_or_none(getattr(at_value, n)) for n in ("value", "low", "high")},
                "fitted_runs": self.fit_runs,
            },
            "trusted": not self.untrusted,
            "untrusted": self.untrusted or None,
            "recommendation": self.recommendation or None,
            "tables": {
                name: {"columns": columns_as_json(table)} for name, table in self.tables.items()
            },
            "notes": list(self.notes),
            "warnings": list(map(str, self.warnings)),
        }
