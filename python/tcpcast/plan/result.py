"""What comes out of an inverse question."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from tcpcast.answer import Answer
    from tcpcast.scenario import Scenario

    Table = dict[str, np.ndarray[Any, Any]]


@dataclass(slots=True)
class Plan:
    """The answer to an inverse question.

    Attributes
    ----------
    question
        What was asked, in words.
    value, unit
        The model's answer: whole packets, sources or flows, bit/s, or a ratio (unit 1).
    tables
        What stands beside it; columns of equal length, as in an Answer.
    notes
        How the figures came about.
    warnings
        What to check before trusting them.
    simulated
        The simulation's own answer in the same unit; None when it was not asked or found none.
    verified
        The simulations' answers, in the order of the table ``simulated``.
    interrupted
        Whether the search or the check was broken off.
    partial
        Whether ``run.max_wall`` came before the search or the check was over, or the value rests on
        simulations that are not whole.
    recommendation
        The answer with its reason, in a plain sentence; "" where the value says it all.
    low, high
        Between these the answer lies by 95 %, in the same unit; None for a model's.
    at_least
        Whether more than the value may be possible, up to ``high``: the search was not over.
    engine
        Which engine gave the value; "" for a model that no engine stands for.
    scenario
        The scenario with the answer put into it, where the question leaves a place for it.
    """

    question: str
    value: float
    unit: str
    tables: dict[str, Table] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    simulated: float | None = None
    verified: list[Answer] = field(default_factory=list)
    interrupted: bool = False
    partial: bool = False
    recommendation: str = ""
    low: float | None = None
    high: float | None = None
    at_least: bool = False
    engine: str = ""
    scenario: Scenario | None = None

    def __repr__(self) -> str:
        """One line: the question and the answer."""
        return f"<Plan {self.question}: {self.value:.6g} {self.unit}>"

    def to_json(self) -> dict[str, Any]:
        """Return the plan for programs: NaN becomes null, arrays become lists."""
        return {
            "question": self.question,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "at_least": self.at_least,
            "unit": self.unit,
            "engine": self.engine or None,
            "recommendation": self.recommendation or None,
            "tables": {name: {"columns": _plain(table)} for name, table in self.tables.items()},
            "notes": list(self.notes),
            "warnings": list(self.warnings),
            "interrupted": self.interrupted,
            "partial": self.partial,
            "simulated": self.simulated,
            "verified": [each.to_json() for each in self.verified],
        }


def _plain(table: Table) -> dict[str, list[Any]]:
    return {
        name: [None if isinstance(v, float) and math.isnan(v) else v for v in column.tolist()]
        for name, column in table.items()
    }
