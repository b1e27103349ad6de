"""Computes the answers to the page's questions: verdict, values of all models, and curves."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, TypeVar

from tcpcast.answer import finite_or_none, texts_to_notes, unit_of_metric, warning_severity
from tcpcast.compare import is_percentage
from tcpcast.engines import REGISTRY
from tcpcast.errors import ScenarioError, TcpcastError
from tcpcast.limit_names import limit_name
from tcpcast.report.quantity import interval_text, metric_label, scale_for_metric, value_text
from tcpcast.report.summary import caveats_of_answer, describe_scenario
from tcpcast.scenario.toml import write_toml
from tcpcast.web.questions import QUESTIONS, Question, find_question
from tcpcast.web.questions.fields import FieldError, Values, validate_values
from tcpcast.web.questions.question_form import remove_omitted_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from tcpcast.answer import Answer, Metric, Note
    from tcpcast.scenario import Scenario
    from tcpcast.web.questions.question_form import DisplayedAnswer, Facts

Result = TypeVar("Result")

CURVE_POINTS = 31
MAX_SLOW_S, SLOW_STEP = 2.0, 4
"""Limits of slow formulas in a curve: maximum total time in seconds, and step between points."""

QUOTED_VALUES = frozenset({"queue_delay_mean_s", "by_class"})
"""Metrics and tables of a simulation that the verdict may quote, besides the question's metric."""


def describe_questions() -> list[dict[str, Any]]:
    """Return the descriptions of all questions."""
    return [each.describe() for each in QUESTIONS.values()]


def evaluate(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers of all models to a question, and texts to copy.

    Parameters
    ----------
    request
        Keys: ``question``, ``values`` (texts by field), ``simulated`` (True if the texts to copy
        must include the simulation) and ``quick`` (True to omit slow formulas).

    Raises
    ------
    FieldError
        A value is invalid.
    TcpcastError
        The values do not form a scenario.
    """
    asked, values = read_request(request)
    without = asked.slow_formulas if request.get("quick") is True else ()
    simulated = request.get("simulated") is True
    return call_with_field_errors(
        asked, lambda: _evaluate_question(asked, values, without, simulated)
    )


def _evaluate_question(
    asked: Question, values: Values, omitted_formulas: Collection[str], simulated: bool
) -> dict[str, Any]:
    given = asked.formulas(values, omitted_formulas)
    tables = remove_omitted_keys(dict(asked.tables(values)))
    scenario = asked.scenario(values)
    facts = asked.facts(values, given, None)
    rows = [_answer_row(asked, each) for each in given]
    table = facts.table
    return {
        "question": asked.name,
        "title": asked.title,
        "values": values,
        "left_out": list(omitted_formulas),
        "summary": describe_scenario(scenario),
        **_heading_texts(asked, facts, scenario, given),
        "metric": _describe_metric(asked.metric),
        "answers": sorted(rows, key=lambda row: (row["value"] is None, not row["trusted"])),
        "table": table and {"caption": table[0], "columns": table[1], "rows": table[2]},
        "positions": {f.name: f.slider_position(values.get(f.name, "")) for f in asked.fields},
        "copy": {
            "command": asked.command(values, simulated),
            "python": asked.program(values, simulated),
            "scenario": write_toml(tables),
        },
    }


def simulation_heading(asked: Question, values: Values, simulated: Answer) -> dict[str, Any]:
    """Return ``verdict``, ``sentences`` and ``warnings`` for a question with a simulated answer."""
    given = asked.formulas(values, ())
    facts = asked.facts(values, given, simulated)
    return _heading_texts(asked, facts, asked.scenario(values), given, simulated)


def point_warnings(asked: Question, simulated: Answer) -> list[str]:
    """Return the warnings about the displayed values of a simulation, most severe first."""
    notes = _notes_on_values(simulated, {asked.metric, "by_class"})
    return _sorted_warning_texts(asked, (("", note) for note in notes))


def _heading_texts(
    asked: Question,
    facts: Facts,
    scenario: Scenario,
    given: Sequence[DisplayedAnswer],
    simulated: Answer | None = None,
) -> dict[str, Any]:
    first, *others = filter(None, [facts.verdict, *facts.sentences])
    about = [
        ("", note) for note in texts_to_notes([*scenario.warnings(), *facts.warnings], "scenario")
    ]
    about += [
        (each.name, note)
        for each in given
        if asked.metric in each.answer.metrics
        for note in _notes_on_values(each.answer, {asked.metric})
    ]
    if simulated is not None:
        about += [
            ("simulation", note)
            for note in _notes_on_values(simulated, QUOTED_VALUES | {asked.metric})
        ]
    return {"verdict": first, "sentences": others, "warnings": _sorted_warning_texts(asked, about)}


def _notes_on_values(answer: Answer, metrics: Collection[str]) -> Iterator[Note]:
    """Yield the warnings about displayed values, without those about the scenario."""
    for note in caveats_of_answer(answer):
        if note.kind != "scenario" and (affected := note.limited_to(metrics)) is not None:
            yield affected


def _sorted_warning_texts(asked: Question, notes: Iterable[tuple[str, Note]]) -> list[str]:
    """Return the texts of warnings, most severe first, each with the names of its models."""
    models: dict[Note, dict[str, None]] = {}
    for name, note in notes:
        models.setdefault(note, {})[name] = None
    names = asked.names
    return [
        ": ".join(filter(None, [", ".join(filter(None, models[note])), note.text(names)]))
        for note in sorted(models, key=warning_severity)
    ]


def evaluate_curve(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results of all models over the range of one field.

    Parameters
    ----------
    request
        Keys of :func:`evaluate`, and ``across``, the field; by default, the question's first axis.

    Raises
    ------
    FieldError, TcpcastError
        As for :func:`evaluate`; or a curve over this field is not possible.
    """
    asked, values = read_request(request)
    return call_with_field_errors(
        asked, lambda: _curve_points(asked, values, requested_axis(asked, request))
    )


def _curve_points(asked: Question, values: Values, axis: str) -> dict[str, Any]:
    here = asked.value_on_axis(values, axis)
    texts = values_along_axis(asked, axis, here, CURVE_POINTS)
    field = asked.field(axis)
    series: dict[str, list[float | None]] = {}
    groups: dict[str, int | None] = {}
    trusted: dict[str, list[bool]] = {}
    shown_texts: dict[str, list[str]] = {}
    ends = time.monotonic() + MAX_SLOW_S
    for at, text in enumerate(texts):
        wanted = (text == here or at % SLOW_STEP == 0) and time.monotonic() < ends
        for each in _formulas_at(
            asked, {**values, axis: text}, () if wanted else asked.slow_formulas
        ):
            metric = each.answer.metrics.get(asked.metric)
            if metric is not None:
                none: list[float | None] = [None] * len(texts)
                series.setdefault(each.name, none)[at] = finite_or_none(metric.value)
                groups[each.name] = each.group
                trusted.setdefault(each.name, [False] * len(texts))[at] = metric.trusted
                amounts = shown_texts.setdefault(each.name, [""] * len(texts))
                amounts[at] = displayed_value(asked.metric, metric)["text"]
    return {
        "across": {"name": axis, "label": field.label},
        "metric": _describe_metric(asked.metric),
        "texts": texts,
        "x": [field.number(text) for text in texts],
        "here": field.number(here),
        "series": [
            {
                "name": name,
                "group": groups[name],
                "values": found,
                "texts": shown_texts[name],
                "trusted": trusted[name],
                "sparse": name in asked.slow_formulas,
            }
            for name, found in series.items()
        ],
        "references": asked.references(values),
    }


def _formulas_at(
    asked: Question, values: Values, omitted_formulas: Collection[str]
) -> list[DisplayedAnswer]:
    """Return the answers of formulas at a point of a curve; empty if the values are invalid."""
    try:
        return asked.formulas(values, omitted_formulas)
    except TcpcastError:
        return []


def read_request(request: Mapping[str, Any]) -> tuple[Question, Values]:
    """Return the question of a request and its checked values."""
    asked = find_question(request.get("question"))
    values = request.get("values", {})
    if not isinstance(values, dict):
        raise TcpcastError("values: must be an object with a text for each field")
    return asked, validate_values(asked.fields, values)


def requested_axis(asked: Question, request: Mapping[str, Any]) -> str:
    """Return the name of the field that a requested curve varies."""
    axis = request.get("across") or asked.curve_fields[0]
    if axis not in asked.curve_fields:
        raise TcpcastError(f"across: must be one of {', '.join(asked.curve_fields)}")
    return str(axis)


def values_along_axis(asked: Question, axis: str, current_value: str, max_values: int) -> list[str]:
    """Return values along an axis in order, including the requested value and both ends."""
    field = asked.field(axis)
    steps = [step for step in field.slider_values if field.number(step) > 0]
    last = len(steps) - 1
    count = min(max_values, len(steps))
    kept = {steps[round(at * last / (count - 1))] for at in range(count)}
    if field.number(current_value) > 0 and math.isfinite(field.number(current_value)):
        kept.add(current_value)
    by_number = {
        field.number(text): text for text in sorted(kept, key=lambda t: t == current_value)
    }
    return [by_number[number] for number in sorted(by_number)]


def call_with_field_errors(asked: Question, function: Callable[[], Result]) -> Result:
    """Return the result of a function; raise FieldError for an error that names a field."""
    try:
        return function()
    except FieldError:
        raise
    except ScenarioError as error:
        raise _make_field_error(asked, *error.errors[0]) from None
    except TcpcastError as error:
        raise FieldError("", str(error)) from None


def _make_field_error(asked: Question, key: str, text: str) -> FieldError:
    field = next((field for field in asked.fields if key in field.keys), None)
    name = key if field is None else field.label
    return FieldError("" if field is None else field.name, f"{name}: {text}" if name else text)


def _answer_row(asked: Question, given: DisplayedAnswer) -> dict[str, Any]:
    metric, found = asked.metric, given.answer
    refusal = None if found.applies else found.refusal(asked.names)
    entry = REGISTRY[found.engine]
    row: dict[str, Any] = {
        "name": given.name,
        "engine": found.engine,
        "what": entry.summary,
        "regime": limit_name(found.regime or ""),
        "not_applicable": refusal,
    }
    figure = found.metrics.get(metric)
    if figure is not None:
        return row | displayed_value(metric, figure)
    row["not_applicable"] = refusal or f"this engine does not provide the {metric_label(metric)}"
    return row | {"value": None, "low": None, "high": None, "trusted": True, "text": ""}


def displayed_value(name: str, metric: Metric) -> dict[str, Any]:
    """Return a value as text, as commands print it, and as numbers for the curve."""
    scale = scale_for_metric(name, metric.value)
    text = f"{value_text(metric, scale)} {scale.unit}".rstrip()
    return {
        "value": finite_or_none(metric.value),
        "low": finite_or_none(metric.low),
        "high": finite_or_none(metric.high),
        "trusted": metric.trusted,
        "text": text,
        "interval": interval_text(metric, scale),
    }


def _describe_metric(name: str) -> dict[str, Any]:
    words = metric_label(name)
    unit = "%" if is_percentage(name) else unit_of_metric(name)
    return {"name": name, "label": words[:1].upper() + words[1:], "unit": unit}
