"""What a question of the page is: its fields, the scenario they make, and what is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tcpcast.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from tcpcast.answer import Answer, Metric
    from tcpcast.web.questions.fields import Field, Values


class Given(NamedTuple):
    """An answer on the page: under which name, of which scenario."""

    name: str
    answer: Answer
    scenario: Scenario


class Facts(NamedTuple):
    """What stands above the answers: sentences, and a table of texts with its caption."""

    sentences: list[str]
    table: tuple[str, list[str], list[list[str]]] | None = None
    partial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question that the page offers.

    Attributes
    ----------
    name, title, hint
        Its name in the state of the page, its title, and what it answers.
    fields
        What is typed.
    metric
        What is compared and drawn.
    across
        Which fields a curve may have on its axis; the first unless something else is chosen.
    axes
        Fields that only an axis has: what they would be typed as is worked out.
    tables
        Values to the tables of a scenario, as typed; None stands for what was left out.
    formulas
        Values to the formulas' answers, but for those that are left out by name.
    slow
        Formulas that take longer than a slider may be kept waiting.
    facts
        Values and these answers to what stands above them.
    simulated
        A simulation's answer to the names and figures of its points.
    references
        Values to horizontal lines of the drawing, by name.
    command, program
        Values, and whether it was simulated, to a command line and a Python program.
    asked
        Values to what stands on the axis where the points begin.
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
        """Return a field, or one that only an axis has."""
        return next(field for field in (*self.fields, *self.axes) if field.name == name)

    def scenario(self, values: Values) -> Scenario:
        """Return the scenario of the values.

        Raises
        ------
        ScenarioError
            They make none; the message names keys.
        """
        return Scenario.from_dict(typed(self.tables(values)))

    def describe(self) -> dict[str, Any]:
        """Return what the page needs to show it."""
        return {
            "name": self.name,
            "title": self.title,
            "hint": self.hint,
            "fields": [field.describe() for field in self.fields],
            "slow": bool(self.slow),
            "across": [{"name": n, "label": self.field(n).label} for n in self.across],
        }


def typed(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return tables without what was left out."""
    kept = {key: typed(v) if isinstance(v, dict) else v for key, v in tables.items()}
    return {key: value for key, value in kept.items() if value is not None and value != {}}


def one(name: str, metric: str, answer: Answer) -> dict[str, Metric]:
    """Return a simulation's figure under one name, nothing where it has none."""
    found = answer.metrics.get(metric)
    return {} if found is None else {name: found}
