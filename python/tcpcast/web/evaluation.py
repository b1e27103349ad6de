"""Evaluation of the page's questions: answers of all models, curves, and simulated points."""

from __future__ import annotations

import math
import re
import time
from typing import TYPE_CHECKING, Any, TypeVar

from tcpcast.answer import unit_of
from tcpcast.compare import is_percentage
from tcpcast.engines import REGISTRY, RunOptions, answer
from tcpcast.errors import ScenarioError, SuggestionSyntax, TcpcastError
from tcpcast.report.prediction import limit
from tcpcast.report.quantity import interval_text, label, scale_of, value_text
from tcpcast.report.summary import MAX_WARNINGS, caveats, describe, worst
from tcpcast.scenario.toml import write_toml
from tcpcast.web.questions import QUESTIONS, Question, question
from tcpcast.web.questions.fields import FieldError, Values, checked
from tcpcast.web.questions.question_form import typed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from tcpcast.answer import Answer, Metric
    from tcpcast.scenario import Scenario
    from tcpcast.web.questions.question_form import Given


Result = TypeVar("Result")

CURVE_POINTS = 31
SLOW_S, SLOW_STEP = 2.0, 4
"""A curve runs slow formulas only at every fourth point, and for at most 2 s."""

SIMULATED_POINTS = 5
"""Number of points of a simulation: the requested point, then others along the axis."""

SIMULATE_S = 60.0
"""Time in seconds after which no further point is started."""

OVER_TIME_S = 5
"""Time limit in seconds of a run that is repeated for a report."""

_LIMITS = {"bottleneck": "link"}


def offered() -> list[dict[str, Any]]:
    """Return the descriptions of all questions."""
    return [each.describe() for each in QUESTIONS.values()]


def evaluate(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers of all models to a question, and texts to copy.

    Parameters
    ----------
    request
        ``question``, ``values`` (texts by field), ``simulated`` (True to include the simulation in
        the texts to copy) and ``quick`` (True to omit slow formulas).

    Raises
    ------
    FieldError
        A value is invalid.
    TcpcastError
        The values do not form a scenario.
    """
    asked, values = _asked(request)
    without = asked.slow if request.get("quick") is True else ()
    simulated = request.get("simulated") is True
    return _by_field(asked, lambda: _evaluated(asked, values, without, simulated))


def _evaluated(
    asked: Question, values: Values, without: Collection[str], simulated: bool
) -> dict[str, Any]:
    given = asked.formulas(values, without)
    facts = asked.facts(values, given)
    tables = typed(dict(asked.tables(values)))
    scenario = asked.scenario(values)
    rows = [_row(asked, each) for each in given]
    table = facts.table
    return {
        "question": asked.name,
        "title": asked.title,
        "values": values,
        "left_out": list(without),
        "summary": describe(scenario),
        "sentences": facts.sentences,
        "metric": _metric(asked.metric),
        "answers": sorted(rows, key=lambda row: (row["value"] is None, not row["trusted"])),
        "table": table and {"caption": table[0], "columns": table[1], "rows": table[2]},
        "warnings": list(scenario.warnings())[:MAX_WARNINGS],
        "positions": {f.name: f.position(values.get(f.name, "")) for f in asked.fields},
        "copy": {
            "command": asked.command(values, simulated),
            "python": asked.program(values, simulated),
            "scenario": write_toml(tables),
        },
    }


def curve(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results of all models over the range of one field.

    Parameters
    ----------
    request
        Keys of :func:`evaluate`, and ``across``, the field; default: the question's first axis.

    Raises
    ------
    FieldError, TcpcastError
        As for :func:`evaluate`; or the field has no axis.
    """
    asked, values = _asked(request)
    return _by_field(asked, lambda: _curve(asked, values, _axis(asked, request)))


def _curve(asked: Question, values: Values, axis: str) -> dict[str, Any]:
    here = asked.asked(values, axis)
    texts = _along(asked, axis, here, CURVE_POINTS)
    field = asked.field(axis)
    series: dict[str, list[float | None]] = {}
    trusted: dict[str, list[bool]] = {}
    ends = time.monotonic() + SLOW_S
    for at, text in enumerate(texts):
        wanted = (text == here or at % SLOW_STEP == 0) and time.monotonic() < ends
        for each in _formulas_at(asked, {**values, axis: text}, () if wanted else asked.slow):
            metric = each.answer.metrics.get(asked.metric)
            if metric is not None:
                none: list[float | None] = [None] * len(texts)
                series.setdefault(each.name, none)[at] = _finite(metric.value)
                trusted.setdefault(each.name, [False] * len(texts))[at] = metric.trusted
    return {
        "across": {"name": axis, "label": field.label},
        "metric": _metric(asked.metric),
        "texts": texts,
        "x": [field.number(text) for text in texts],
        "here": field.number(here),
        "series": [
            {
                "name": name,
                "values": found,
                "trusted": trusted[name],
                "sparse": name in asked.slow,
            }
            for name, found in series.items()
        ],
        "references": asked.references(values),
    }


def _formulas_at(asked: Question, values: Values, without: Collection[str]) -> list[Given]:
    """Return the formulas' answers at a point of a curve; empty if its values are invalid."""
    try:
        return asked.formulas(values, without)
    except TcpcastError:
        return []


def simulate(request: Mapping[str, Any], send: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Simulate the requested point, then other points along the axis, and report each result.

    Parameters
    ----------
    request
        Keys of :func:`curve`.
    send
        Called with ``{"progress": share}`` and ``{"point": {...}}``.

    Raises
    ------
    FieldError, TcpcastError
        As for :func:`curve`; or the simulation does not apply.
    """
    asked, values = _asked(request)
    axis = _axis(asked, request)
    return _by_field(asked, lambda: _simulated(asked, values, axis, send))


def _simulated(
    asked: Question, values: Values, axis: str, send: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    here = asked.asked(values, axis)
    others = _along(asked, axis, here, SIMULATED_POINTS - 1)
    texts = list(dict.fromkeys([here, *others]))[:SIMULATED_POINTS]
    ends = time.monotonic() + SIMULATE_S
    done = 0
    for at, text in enumerate(texts):
        if at and time.monotonic() > ends:
            break

        def progress(share: float, at: int = at) -> None:
            send({"progress": (at + share) / len(texts)})

        send({"point": _point(asked, {**values, axis: text}, axis, text, progress)})
        done += 1
    return {"points": done, "left_out": len(texts) - done}


def _point(
    asked: Question, values: Values, axis: str, text: str, progress: Callable[[float], None]
) -> dict[str, Any]:
    scenario = asked.scenario(values)
    (found,) = answer(scenario, ["packet"], RunOptions(progress=progress))
    if not found.applies:
        raise TcpcastError(found.refusal())
    metrics = asked.simulated(values, found)
    return {
        "x": asked.field(axis).number(text),
        "text": text,
        "regime": _regime(limit(found, scenario)),
        "warnings": _own_warnings(found, {asked.metric, *metrics}),
        "wall_s": found.wall_s,
        "values": [{"name": name, **_figure(asked.metric, m)} for name, m in metrics.items()],
    }


def run_over_time(request: Mapping[str, Any]) -> tuple[Scenario, Answer]:
    """Repeat the requested simulation for figures of the run over time.

    The run stops after :data:`OVER_TIME_S`; until then it is identical to the earlier one.

    Parameters
    ----------
    request
        Keys of :func:`evaluate`.

    Raises
    ------
    FieldError, TcpcastError
        As for :func:`evaluate`.
    """
    asked, values = _asked(request)
    scenario = asked.scenario(values).with_changes({"run.max_wall": f"{OVER_TIME_S}s"})
    (found,) = answer(scenario, ["packet"], RunOptions(over_time=True))
    return scenario, found


def _asked(request: Mapping[str, Any]) -> tuple[Question, Values]:
    asked = question(request.get("question"))
    values = request.get("values", {})
    if not isinstance(values, dict):
        raise TcpcastError("values: must be an object with a text for each field")
    return asked, checked(asked.fields, values)


def _axis(asked: Question, request: Mapping[str, Any]) -> str:
    axis = request.get("across") or asked.across[0]
    if axis not in asked.across:
        raise TcpcastError(f"across: must be one of {', '.join(asked.across)}")
    return str(axis)


def _along(asked: Question, axis: str, here: str, most: int) -> list[str]:
    """Return values along an axis in order, including the requested value and both ends."""
    field = asked.field(axis)
    steps = [step for step in field.steps if field.number(step) > 0]
    last = len(steps) - 1
    count = min(most, len(steps))
    kept = {steps[round(at * last / (count - 1))] for at in range(count)}
    if field.number(here) > 0 and math.isfinite(field.number(here)):
        kept.add(here)
    by_number = {field.number(text): text for text in sorted(kept, key=lambda t: t == here)}
    return [by_number[number] for number in sorted(by_number)]


def _by_field(asked: Question, function: Callable[[], Result]) -> Result:
    """Return the result of a function; an error in it becomes a FieldError."""
    try:
        return function()
    except FieldError:
        raise
    except TcpcastError as error:
        if isinstance(error, ScenarioError):
            key, rest = error.errors[0]
        else:
            key, _, rest = str(error).partition(": ")
        field = next((f for f in asked.fields if key in f.keys), None)
        text = _in_words(asked, str(error) if field is None else f"{field.label}: {rest}")
        raise FieldError("" if field is None else field.name, text) from None


def _in_words(asked: Question, text: str) -> str:
    """Replace options by the labels of their fields."""
    labels = {f"--{field.name}": field.label.lower() for field in asked.fields}
    return re.sub(r"--[a-z-]+[a-z]", lambda match: labels.get(match[0], match[0][2:]), text)


class _Fields(SuggestionSyntax):
    """Form of a suggestion on the page, with the labels of a question's fields."""

    def __init__(self, asked: Question) -> None:
        self._labels = {key: field.label for field in asked.fields for key in field.keys}

    def engine(self, name: str) -> str:
        """Return the action that starts the simulation."""
        return "press Simulate" if name == "packet" else super().engine(name)

    def assignment(self, key: str, value: Any) -> str:
        """Return the field of a key with the value, or the key in a scenario."""
        if key not in self._labels:
            return super().assignment(key, value)
        return f'{value} for "{self._labels[key]}"'


def _row(asked: Question, given: Given) -> dict[str, Any]:
    metric, found = asked.metric, given.answer
    refusal = None if found.applies else found.refusal(_Fields(asked))
    entry = REGISTRY[found.engine]
    row: dict[str, Any] = {
        "name": given.name,
        "engine": found.engine,
        "what": entry.summary,
        "regime": _regime(limit(found, given.scenario)),
        "warnings": _own_warnings(found, {metric}),
        "not_applicable": refusal,
    }
    figure = found.metrics.get(metric)
    if figure is not None:
        return row | _figure(metric, figure)
    row["not_applicable"] = refusal or f"it does not provide the {label(metric)}"
    return row | {"value": None, "low": None, "high": None, "trusted": True, "text": ""}


def _own_warnings(found: Answer, metrics: Collection[str]) -> list[str]:
    """Return the worst warnings about an answer, without those about the scenario."""
    own = (note for note in caveats(found) if note.kind != "scenario")
    return [str(note) for note in worst(own, metrics)]


def _regime(name: str) -> str:
    return _LIMITS.get(name, name)


def _figure(name: str, metric: Metric) -> dict[str, Any]:
    scale = scale_of(name, metric.value)
    text = f"{value_text(metric, scale)} {scale.unit}".rstrip()
    return {
        "value": _finite(metric.value),
        "low": _finite(metric.low),
        "high": _finite(metric.high),
        "trusted": metric.trusted,
        "text": text,
        "interval": interval_text(metric, scale),
    }


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def _metric(name: str) -> dict[str, Any]:
    words = label(name)
    unit = "%" if is_percentage(name) else unit_of(name)
    return {"name": name, "label": words[:1].upper() + words[1:], "unit": unit}
