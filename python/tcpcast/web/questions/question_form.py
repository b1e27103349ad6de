"""Definition of a question of the page: fields, scenario, formulas, curve and texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tcpcast.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from tcpcast.answer import Answer, Metric
    from tcpcast.web.questions.fields import Field, Values


class Given(NamedTuple):
    """An answer on the page with its displayed name and its scenario."""

    name: str
    answer: Answer
    scenario: Scenario


class Facts(NamedTuple):
    """Sentences above the answers, and an optional table (caption, columns, rows)."""

    sentences: list[str]
    table: tuple[str, list[str], list[list[str]]] | None = None
    partial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question of the page.

    Attributes
    ----------
    name, title, hint
        Name in the state of the page, title, and explanation.
    fields
        Input fields.
    metric
        The metric that is compared and drawn.
    across
        Fields that can be the axis of a curve; the first is the default.
    axes
        Fields that occur only as an axis, with computed values.
    tables
        Function from values to the tables of a scenario, as typed; None for omitted values.
    formulas
        Function from values and names of omitted formulas to the answers of the other formulas.
    slow
        Names of formulas that are too slow for an update while a slider moves.
    facts
        Function from values and answers to the facts above the answers.
    simulated
        Function from values and a simulation's answer to metrics by displayed name.
    references
        Function from values to horizontal lines of the curve, by name.
    command, program
        Functions from values and a flag (include the simulation) to a command and a Python program.
    asked
        Function from values and an axis to the current value on the axis.
    """

    name: str
    title: str
    hint: str
    fields: tuple[Field, ...]
    metric: str
    across: tuple[str, ...]
    tables: Callable[[Values], Mapping[str, Any]]
    formulas: Callable[[Values, Collection[str]], list[Given]]
    facts: Callable[[Values, list[Given]], Facts]
    command: Callable[[Values, bool], str]
    program: Callable[[Values, bool], str]
    simulated: Callable[[Values, Answer], dict[str, Metric]]
    references: Callable[[Values], dict[str, float]] = lambda _: {}
    axes: tuple[Field, ...] = ()
    slow: tuple[str, ...] = ()
    asked: Callable[[Values, str], str] = lambda values, axis: values.get(axis, "")

    def field(self, name: str) -> Field:
        """Return an input field or a field that occurs only as an axis."""
        return next(field for field in (*self.fields, *self.axes) if field.name == name)

    def scenario(self, values: Values) -> Scenario:
        """Return the scenario of the values.

        Raises
        ------
        ScenarioError
            The values do not form a scenario; the message names keys.
        """
        return Scenario.from_dict(typed(self.tables(values)))

    def describe(self) -> dict[str, Any]:
        """Return the JSON form of the question for the page."""
        return {
            "name": self.name,
            "title": self.title,
            "hint": self.hint,
            "fields": [field.describe() for field in self.fields],
            "slow": bool(self.slow),
            "across": [{"name": n, "label": self.field(n).label} for n in self.across],
        }


def typed(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return tables without omitted values."""
    kept = {key: typed(v) if isinstance(v, dict) else v for key, v in tables.items()}
    return {key: value for key, value in kept.items() if value is not None and value != {}}


def one(name: str, metric: str, answer: Answer) -> dict[str, Metric]:
    """Return a metric of a simulation under one name; empty if it is missing."""
    value = answer.metrics.get(metric)
    return {} if value is None else {name: value}
