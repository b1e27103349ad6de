"""Loads answers from the output of ``tcpcast run --json``, to produce a report from them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tcpcast.answer import (
    UNITS,
    Answer,
    Kind,
    Metric,
    Note,
    NoteKind,
    Status,
    texts_to_notes,
)
from tcpcast.captures.log_formats import HEAD_BYTES, log_program
from tcpcast.engines import REGISTRY
from tcpcast.engines.registry import MEASUREMENT_FAMILY, Formula
from tcpcast.process.errors import ScenarioError, Suggestion, TcpcastError
from tcpcast.report.answers import Answers
from tcpcast.scenario import Scenario
from tcpcast.scenario.loading import page_advice

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_ScalarType = TypeVar("_ScalarType", int, float, str)
_JsonScalar = int | float | bool | str | None


class _Saved(BaseModel):
    """Base of the JSON objects; unknown fields, which a later version may write, are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _SavedMetric(_Saved):
    value: float | None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    trusted: bool = True
    interval_warning: str | None = None


class _SavedTable(_Saved):
    columns: dict[str, list[_JsonScalar]]


class _SavedSuggestion(_Saved):
    changes: dict[str, Any] = {}
    engine: str = ""
    feed: str = ""


class _SavedNote(_Saved):
    why: str
    metrics: list[str]
    kind: NoteKind
    named: bool
    suggestions: list[_SavedSuggestion] = []


class _SavedAnswer(_Saved):
    engine: str
    not_applicable: str | None = None
    wall_s: float = 0.0
    warnings: list[str] = []
    notes: list[_SavedNote] = []
    metrics: dict[str, _SavedMetric] = {}
    tables: dict[str, _SavedTable] = {}
    provenance: dict[str, Any] = {}
    incomplete_reason: str | None = None
    write_errors: list[str] = []


class _SavedDocument(_Saved):
    scenario: dict[str, Any]
    answers: list[_SavedAnswer] = Field(min_length=1)


def is_saved_answers_file(path: Path) -> bool:
    """Return True if a file's name ends in .json or its content begins like JSON, except for logs.

    ``iperf3 -J`` writes logs, which are read as captures.
    """
    if path.suffix == ".toml" or not path.is_file():
        return path.suffix == ".json"
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return path.suffix == ".json"  # read_saved_answers() reports the error
    return (path.suffix == ".json" or head.startswith(b"{")) and not log_program(head)


def read_saved_answers(path: Path) -> Answers:
    """Return the answers in a file, with their scenario.

    Parameters
    ----------
    path
        Output of ``tcpcast run --json`` or ``tcpcast predict --json``.

    Raises
    ------
    TcpcastError
        The file cannot be read or does not contain answers.
    """
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise TcpcastError(f"{path}: cannot be read ({error.strerror}); check the file") from None
    except (ValueError, RecursionError) as error:
        raise TcpcastError(f"{path}: this file is not JSON ({error}); {_HOW_TO_WRITE}") from None
    if path.suffix.lower() == ".har":
        raise TcpcastError(
            f"{path}: this file contains a page, but no answers; {page_advice(path)}"
        )
    if isinstance(content, dict) and "captures" in content:
        raise TcpcastError(
            f"{path}: this file contains tables of captures; to report on captures, pass the "
            "capture files: tcpcast report FILE.pcap"
        )
    try:
        document = _SavedDocument.model_validate(content)
        scenario = Scenario.from_dict(document.scenario, folder=path.parent)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the document"
        message = (
            f"{path}: this file contains no tcpcast answers ({place}: {first['msg']}); "
            f"{_HOW_TO_WRITE}"
        )
        raise TcpcastError(message) from None
    except ScenarioError as error:
        raise ScenarioError(f"{path}: scenario: {error}") from None
    answers = [_load_answer(saved) for saved in document.answers]
    for answer in answers:
        if answer.kind != "formula":
            answer.replications = scenario.run.replications
    return Answers(answers, scenario)


_HOW_TO_WRITE = "create the file with tcpcast run FILE --json"


def _load_note(saved: _SavedNote) -> Note:
    suggestions = tuple(Suggestion(s.changes, s.engine, s.feed) for s in saved.suggestions)
    metrics = tuple(saved.metrics)
    return Note(saved.why, metrics, kind=saved.kind, named=saved.named, suggestions=suggestions)


def _load_answer(saved: _SavedAnswer) -> Answer:
    origin = saved.provenance
    regime, steps, domain = origin.get("regime"), origin.get("steps"), origin.get("domain")
    notes = [_load_note(note) for note in saved.notes] or texts_to_notes(saved.warnings)
    status = Status.DONE if saved.incomplete_reason is None else Status.PARTIAL
    if saved.not_applicable is not None:
        status = Status.NOT_APPLICABLE
    return Answer(
        saved.engine,
        metrics={name: _load_metric(name, metric) for name, metric in saved.metrics.items()},
        tables={name: _load_table(table.columns) for name, table in saved.tables.items()},
        notes=notes,
        provenance={
            name: value for name, value in origin.items() if name not in _PROVENANCE_FIELDS
        },
        wall_s=saved.wall_s,
        status=status,
        reason=saved.not_applicable or saved.incomplete_reason or "",
        write_errors=list(saved.write_errors),
        kind=_kind_of_answer(saved),
        regime=regime if isinstance(regime, str) else None,
        steps=steps if isinstance(steps, list) else [],
        domain=domain if isinstance(domain, dict) else {},
        seed=_value_if_of_type(origin.get("seed"), int),
        warmup_s=_value_if_of_type(origin.get("warmup_s"), float),
        warmup_rule=_value_if_of_type(origin.get("warmup_rule"), str),
    )


def _value_if_of_type(value: Any, kind: type[_ScalarType]) -> _ScalarType | None:
    """Return a value if it has the expected type, otherwise None; int is accepted for float."""
    is_integer = kind is float and type(value) is int
    return kind(value) if is_integer or type(value) is kind else None


_PROVENANCE_FIELDS = ("regime", "steps", "domain", "seed", "warmup_s", "warmup_rule")
"""Provenance entries that are separate fields of an answer."""


def _kind_of_answer(saved: _SavedAnswer) -> Kind:
    """Return the kind of an answer; for an unknown engine, "simulation" if it has intervals."""
    entry = REGISTRY.get(saved.engine)
    if entry is None:
        simulated = any(metric.low is not None for metric in saved.metrics.values())
        return "simulation" if simulated else "formula"
    if entry.family == MEASUREMENT_FAMILY:
        return "measurement"
    return "formula" if isinstance(entry, Formula) else "simulation"


def _load_metric(name: str, saved: _SavedMetric) -> Metric:
    value = float("nan") if saved.value is None else saved.value
    unit = "" if name in UNITS else saved.unit
    return Metric(value, saved.low, saved.high, saved.trusted, unit, saved.interval_warning)


def _load_table(columns: Mapping[str, list[_JsonScalar]]) -> dict[str, np.ndarray[Any, Any]]:
    # A column as an array; null becomes "" among texts and NaN among numbers.
    return {
        name: (
            np.array(["" if value is None else str(value) for value in values])
            if any(isinstance(value, str) for value in values)
            else np.array([float("nan") if value is None else value for value in values])
        )
        for name, values in columns.items()
    }
