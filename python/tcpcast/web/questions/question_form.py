"""Definition of a question of the page: fields, scenario, formulas, curve and texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tcpcast.compare import compare_all
from tcpcast.report.verdict import verdict_text
from tcpcast.scenario import Scenario
from tcpcast.verdict import run_findings
from tcpcast.web.questions.page_suggestions import PageSuggestionSyntax

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from tcpcast.answer import Answer, Metric, Note
    from tcpcast.web.questions.fields import Field, Values


class DisplayedAnswer(NamedTuple):
    """An answer on the page with its displayed name and its scenario.

    ``group`` is the position of the class of flows that the answer is for, if there are several.
    """

    name: str
    answer: Answer
    scenario: Scenario
    group: int | None = None


class Facts(NamedTuple):
    """Sentences above the answers.

    ``verdict`` is the main result; if it is "", the first of ``sentences`` is shown as the main
    result. ``warnings`` come from a plan. ``table`` is an optional table (caption, columns, rows).
    """

    verdict: str
    sentences: list[str]
    warnings: Sequence[Note | str] = ()
    table: tuple[str, list[str], list[list[str]]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question of the page.

    Attributes
    ----------
    name, title, hint
        Name in the URL state of the page, title, and explanation.
    fields
        Input fields.
    metric
        The metric that is compared and drawn.
    curve_fields
        Names of the fields that a curve can vary; the first name is the default.
    computed_fields
        Fields that are not inputs, but can be the axis of a curve; their values are computed.
    tables
        Function from values to the tables of a scenario, with None for omitted values.
    formulas
        Function from values and names of omitted formulas to the answers of the other formulas.
    slow_formulas
        Names of formulas that are too slow for an update while a slider moves.
    facts
        Function from values, answers of formulas, and the answer of the simulation (None before a
        simulation) to the :class:`Facts`.
    metrics_by_class
        Function from values and a simulation's answer to the metric of each class by displayed
        name; None if the page shows one value.
    references
        Function from values to horizontal lines of the curve, by name.
    command, program
        Functions from values and a flag (include the simulation) to a command and a Python program.
    value_on_axis
        Function from values and an axis to the current value on the axis.
    """

    name: str
    title: str
    hint: str
    fields: tuple[Field, ...]
    metric: str
    curve_fields: tuple[str, ...]
    tables: Callable[[Values], Mapping[str, Any]]
    formulas: Callable[[Values, Collection[str]], list[DisplayedAnswer]]
    facts: Callable[[Values, list[DisplayedAnswer], Answer | None], Facts]
    command: Callable[[Values, bool], str]
    program: Callable[[Values, bool], str]
    references: Callable[[Values], dict[str, float]] = lambda _: {}
    computed_fields: tuple[Field, ...] = ()
    slow_formulas: tuple[str, ...] = ()
    metrics_by_class: Callable[[Values, Answer], dict[str, Metric]] | None = None
    value_on_axis: Callable[[Values, str], str] = lambda values, axis: values.get(axis, "")

    def field(self, name: str) -> Field:
        """Return an input field or a field that occurs only as an axis."""
        return next(field for field in (*self.fields, *self.computed_fields) if field.name == name)

    def simulated_metrics(self, values: Values, answer: Answer) -> dict[str, Metric]:
        """Return the metrics of a simulation by displayed name; empty if there are none."""
        if self.metrics_by_class is not None:
            return self.metrics_by_class(values, answer)
        value = answer.metrics.get(self.metric)
        return {} if value is None else {answer.engine: value}

    @property
    def names(self) -> PageSuggestionSyntax:
        """Wording of suggestions with the labels of the fields."""
        return PageSuggestionSyntax(
            {key: field.label for field in self.fields for key in field.keys}
        )

    def scenario(self, values: Values) -> Scenario:
        """Return the scenario of the values.

        Raises
        ------
        ScenarioError
            The values do not form a scenario; the message names keys.
        """
        return Scenario.from_dict(remove_omitted_keys(self.tables(values)))

    def describe(self) -> dict[str, Any]:
        """Return the JSON form of the question for the page."""
        return {
            "name": self.name,
            "title": self.title,
            "hint": self.hint,
            "fields": [field.describe() for field in self.fields],
            "slow": bool(self.slow_formulas),
            "across": [{"name": n, "label": self.field(n).label} for n in self.curve_fields],
        }


def verdict_on_displayed_answers(
    scenario: Scenario, given: Sequence[DisplayedAnswer], simulated: Answer | None
) -> str:
    """Return the verdict of ``tcpcast run`` on these answers."""
    answers = [each.answer for each in given] + ([simulated] if simulated else [])
    return verdict_text(run_findings(compare_all(answers), scenario))


def remove_omitted_keys(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return tables without omitted values."""
    kept = {key: remove_omitted_keys(v) if isinstance(v, dict) else v for key, v in tables.items()}
    return {key: value for key, value in kept.items() if value is not None and value != {}}
