"""What comes out of an inverse question."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcpcast.answer import UNITS

if TYPE_CHECKING:
    import numpy as np

    from tcpcast.answer import Answer, Metric, Note
    from tcpcast.plan.search import Found
    from tcpcast.scenario import Scenario

    Table = dict[str, np.ndarray[Any, Any]]

CONTRADICTED = 0.2
"""By how much, as a share of the simulation's answer, another one may be off and still stand."""


@dataclass(slots=True)
class Plan:
    """The answer to an inverse question.

    Attributes
    ----------
    question
        What was asked, in words.
    value, unit
        The model's answer: whole packets, sources or flows, bit/s, or a ratio (unit 1); NaN if no
        model covers the scenario, and the simulation answers alone.
    tables
        What stands beside it; columns of equal length, as in an Answer.
    notes
        How the figures came about.
    warnings
        What to check before trusting them.
    simulated
        The simulation's own answer in the same unit; None when it was not asked or found none.
    simulated_low, simulated_high
        Between these the same plan with another seed answers by 95 %; None where the runs have no
        intervals, and there is no answer then.
    simulated_undecided
        Whether these are so far apart that there is no answer between them.
    there, metric, fitted
        The metric at the simulation's own answer, its name, and from how many runs it is fitted; 0
        for the metric of one run.
    figure
        The name of the figure that meets the target, such as a percentile; "" for a metric.
    reached, runs
        That figure at ``value`` if a search by simulation gave it, and the number of runs from
        which it is fitted; 0 for the figure of one run.
    untrusted
        Why the value is not to be trusted: outside what its model is shown for, or contradicted by
        the simulation, whose answer then leads; "" where it is.
    undecided
        Whether ``low`` and ``high`` are so far apart that the value is no answer.
    verified
        The simulations' answers, in the order of the table ``simulated``.
    interrupted
        Whether the search or the check was broken off.
    incomplete
        Whether ``run.max_wall`` came before the search or the check was over, or the value rests on
        simulations that are not whole.
    recommendation
        The answer with its reason, in a plain sentence; "" where the value says it all.
    low, high
        Between these the same plan with another seed answers by 95 %; None for a model's.
    at_least
        Whether more than the value may be possible, up to ``high``: the search was not over.
    engine
        Which engine gave the value; "" for a model that no engine stands for.
    scenario
        The scenario with the answer put into it, where the question leaves a place for it.
    target
        Which metric is to be met and its value, in its unit; None where it is not a metric.
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
    there: Metric | None = None
    metric: str = ""
    fitted: int = 0
    figure: str = ""
    reached: Metric | None = None
    runs: int = 0
    untrusted: str = ""
    undecided: bool = False
    verified: list[Answer] = field(default_factory=list)
    interrupted: bool = False
    incomplete: bool = False
    recommendation: str = ""
    low: float | None = None
    high: float | None = None
    at_least: bool = False
    engine: str = ""
    scenario: Scenario | None = None
    target: tuple[str, float] | None = None

    def __repr__(self) -> str:
        """One line: the question and the answer."""
        return f"<Plan {self.question}: {self.value:.6g} {self.unit}>"

    @property
    def has_model(self) -> bool:
        """Whether a model or a search gave ``value``."""
        return not math.isnan(self.value)

    @property
    def leads_by_simulation(self) -> bool:
        """Whether the simulation's answer stands first."""
        doubtful = bool(self.untrusted) or self.undecided or not self.has_model
        return self.simulated is not None and doubtful

    def answer_by_simulation(self, found: Found, metric: str) -> None:
        """Take the simulation's own answer, and mark_untrusted a value that it contradicts.

        Parameters
        ----------
        found
            The answer with its 95 % interval, in the plan's unit, and the metric there.
        metric
            The metric that meets the target.
        """
        value, low, high = found.value, found.low, found.high
        self.simulated, self.simulated_low, self.simulated_high = value, low, high
        self.metric, self.there, self.fitted = metric, found.there, found.fitted
        if not self.has_model:
            return
        inside = low is not None and high is not None and low <= self.value <= high
        if inside or self.untrusted or abs(self.value - value) <= CONTRADICTED * value:
            return
        self.untrusted = "the simulation contradicts it"

    def to_json(self) -> dict[str, Any]:
        """Return the plan for programs: NaN becomes null, arrays become lists."""
        return {
            "question": self.question,
            "value": self.value if self.has_model and not self.undecided else None,
            "trusted": not self.untrusted,
            "untrusted": self.untrusted or None,
            "undecided": self.undecided,
            "low": self.low,
            "high": self.high,
            "at_least": self.at_least,
            "unit": self.unit,
            "engine": self.engine or None,
            "recommendation": self.recommendation or None,
            "target": self._target(),
            "tables": {name: {"columns": _plain(table)} for name, table in self.tables.items()},
            "notes": list(self.notes),
            "warnings": list(map(str, self.warnings)),
            "interrupted": self.interrupted,
            "incomplete": self.incomplete,
            "simulated": self.simulated,
            "simulated_low": self.simulated_low,
            "simulated_high": self.simulated_high,
            "simulated_undecided": self.simulated_undecided,
            "simulated_there": self._there(),
            "leading": self._leading(),
            "verified": [each.to_json() for each in self.verified],
        }

    def _target(self) -> dict[str, Any] | None:
        if self.target is None:
            return None
        metric, value = self.target
        return {"metric": metric, "value": value, "unit": UNITS[metric]}

    def _there(self) -> dict[str, Any] | None:
        if self.there is None:
            return None
        there = self.there
        return {
            "metric": self.metric,
            "value": there.value,
            "low": there.low,
            "high": there.high,
            "unit": UNITS[self.metric],
            "fitted_runs": self.fitted,
        }

    def _leading(self) -> dict[str, Any] | None:
        """Return the answer that stands first, None where nothing was decided."""
        if self.leads_by_simulation:
            low, high = self.simulated_low, self.simulated_high
            return {"by": "simulation", "value": self.simulated, "low": low, "high": high}
        if self.undecided or not self.has_model:
            return None
        by = self.engine or "model"
        return {"by": by, "value": self.value, "low": self.low, "high": self.high}


def _plain(table: Table) -> dict[str, list[Any]]:
    return {
        name: [None if isinstance(v, float) and math.isnan(v) else v for v in column.tolist()]
        for name, column in table.items()
    }
