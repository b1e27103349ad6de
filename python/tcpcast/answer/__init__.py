"""Answers: named metrics with unit and interval, tables, warnings and provenance.

Every engine returns an :class:`Answer`, so that the answers of all engines can be compared.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, get_args

from tcpcast.answer.metrics import METRICS
from tcpcast.process.errors import Suggestion, UnknownMetric, refusal_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    import numpy as np

UNITS: dict[str, str] = {name: row.unit for name, row in METRICS.items()}
"""Unit of every built-in metric, in report order."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A value with its 95 % interval.

    Parameters
    ----------
    value
        The value, in the unit of :data:`UNITS`.
    low, high
        The 95 % interval; ``None`` for formulas, and for minima and maxima.
    trusted
        False outside the domain of a formula, and for a simulation without a steady state.
        Untrusted values are shown with a dagger, but not compared or used as a headline.
    unit
        Unit of a metric that is not in :data:`UNITS`; if empty, the name's suffix determines it
        (see :func:`unit_of_metric`).
    interval_warning
        Reason why the interval is withheld or needs a check; None for a reliable interval, or if no
        interval is expected.
    at_least
        A lower bound, if the value itself is withheld (nan).
    """

    value: float
    low: float | None = None
    high: float | None = None
    trusted: bool = True
    unit: str = ""
    interval_warning: str | None = None
    at_least: float | None = None

    @property
    def missing_interval(self) -> str | None:
        """Reason for a missing interval, such as "too few files"."""
        if self.interval_warning is None or self.low is not None:
            return None
        return self.interval_warning.partition(":")[0]


_UNITS_BY_SUFFIX = {
    "_bps": "bit/s",
    "_pps": "packet/s",
    "_pkts": "packet",
    "_s": "s",
    "_ratio": "1",
}


def unit_of_metric(name: str, metric: Metric | None = None) -> str:
    """Return the unit of a metric, including metrics of other packages.

    Parameters
    ----------
    name
        Name of the metric. If :data:`UNITS` contains the name, it also gives the unit.
    metric
        The metric in an answer, which may contain its unit. Otherwise the suffix of the name
        determines it, such as ``_bps`` or ``_s``; without a known suffix the unit is 1.
    """
    if name in UNITS:
        return UNITS[name]
    if metric is not None and metric.unit:
        return metric.unit
    return next((unit for ending, unit in _UNITS_BY_SUFFIX.items() if name.endswith(ending)), "1")


NoteKind = Literal[
    "incomplete", "file", "outside", "scenario", "model", "run", "check", "withheld", "remark"
]
"""Kinds of notes in descending order of severity: reasons why an answer is incomplete, files that
were not written, values outside the domain of a formula, a scenario without a steady state, a
feature that the model lacks, a run that is too short for every interval, intervals that need a
check, withheld intervals, other notes."""

_NOTE_KINDS: tuple[NoteKind, ...] = get_args(NoteKind)


@dataclass(frozen=True, slots=True)
class Note:
    """A warning with its kind and the metrics that it affects.

    Parameters
    ----------
    why
        The text of the warning. If ``named`` is True, the text does not contain the names of the
        metrics.
    metrics
        Names of the affected metrics or of an affected table; empty if the note affects every
        value.
    kind
        A value of :data:`NoteKind`.
    named
        Whether the full text ends with the names of the metrics.
    suggestions
        Requests that avoid the problem; each front end writes the requests in its syntax.
    """

    why: str
    metrics: tuple[str, ...] = ()
    kind: NoteKind = field(kw_only=True)
    named: bool = field(default=False, kw_only=True)
    suggestions: tuple[Suggestion, ...] = field(default=(), kw_only=True)

    def __str__(self) -> str:
        """Return the full text."""
        return self.text()

    def text(self) -> str:
        """Return the full text, with suggestions in the syntax of a front end."""
        why = self.why + ", ".join(self.metrics) if self.named else self.why
        return refusal_text(why, self.suggestions)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON data, without an empty list of suggestions."""
        fields = asdict(self) | {"metrics": list(self.metrics)}
        listed = [each.to_json() for each in self.suggestions]
        del fields["suggestions"]
        return fields | ({"suggestions": listed} if listed else {})

    def limited_to(self, shown: Collection[str]) -> Note | None:
        """Return the note with only the metrics in ``shown``; None if it affects none of them."""
        if not self.metrics:
            return self
        names = tuple(name for name in self.metrics if name in shown)
        return replace(self, metrics=names) if names else None


def texts_to_notes(texts: Iterable[str | Note], kind: NoteKind = "model") -> list[Note]:
    """Return texts as notes that affect every value; notes remain unchanged."""
    return [text if isinstance(text, Note) else Note(text, kind=kind) for text in texts]


def warning_severity(warning: Note | str) -> tuple[int, int]:
    """Return a key to sort warnings by descending severity; texts of a plan come before notes."""
    if isinstance(warning, str):
        return 0, 0
    return _NOTE_KINDS.index(warning.kind), -len(warning.metrics)


class Status(Enum):
    """How the run behind an answer ended; ``Answer.reason`` states why the answer is incomplete."""

    DONE = "answered"
    PARTIAL = "partial"
    NOT_APPLICABLE = "not applicable"
    FAILED = "failed"
    """An engine raised an error, and the other engines or the sweep continued."""
    MACHINE_BUSY = "machine"
    """The machine was too busy to measure."""
    INTERRUPTED = "interrupted"


Step = dict[str, Any]
"""A quantity in the derivation of an answer: ``symbol``, ``value``, ``unit`` and ``source``."""

Kind = Literal["formula", "simulation", "measurement"]
"""Whether an answer was calculated, simulated, or measured with a real kernel."""


@dataclass(slots=True)
class Answer:
    """The results of one engine for one scenario.

    ``engine`` is the name of the engine, ``status`` states how its run ended, and ``wall_s`` is its
    run time in seconds. ``reason`` states why the answer is incomplete or the engine does not
    apply; ``suggestions`` are requests that the engine accepts. ``metrics`` maps the names of
    :data:`UNITS` to values, ``tables`` maps a table's name to its columns (numpy arrays of equal
    length), and ``notes`` are warnings about the results. ``write_errors`` are errors of output
    files.

    ``kind`` states whether the answer was calculated, simulated or measured. For formulas,
    ``regime`` is the limit of the rate or the largest part of the time, ``steps`` are all
    intermediate quantities, and ``domain`` holds by name the quantities that bound the validated
    domain. For simulations, ``seed`` and ``replications`` are the parameters of the run,
    ``warmup_s`` is the length of the warm-up (None without warm-up), chosen by ``warmup_rule``, and
    ``measured_s`` is the time after the warm-up, summed over replications. In JSON, these
    fields are in ``provenance``, which records the origin of the answer for people.
    """

    engine: str
    metrics: dict[str, Metric] = field(default_factory=dict)
    tables: dict[str, dict[str, np.ndarray[Any, Any]]] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    provenance: dict[str, Any] = field(default_factory=dict)
    wall_s: float = 0.0
    status: Status = Status.DONE
    reason: str = ""
    suggestions: tuple[Suggestion, ...] = ()
    write_errors: list[str] = field(default_factory=list)
    kind: Kind = "formula"
    regime: str | None = None
    steps: list[Step] = field(default_factory=list)
    domain: dict[str, float] = field(default_factory=dict)
    replications: int = 1
    measured_s: float = 0.0
    seed: int | None = None
    warmup_s: float | None = None
    warmup_rule: str | None = None

    @property
    def applies(self) -> bool:
        """False if the engine does not cover the scenario."""
        return self.status is not Status.NOT_APPLICABLE

    @property
    def interrupted(self) -> bool:
        """True if the user stopped the run."""
        return self.status is Status.INTERRUPTED

    @property
    def incomplete_reason(self) -> str | None:
        """Reason why the answer is incomplete, None if it is complete."""
        return self.reason if self.applies and self.status is not Status.DONE else None

    @property
    def not_applicable(self) -> str | None:
        """Reason why the engine does not apply, with its suggestions; None if it applies."""
        return None if self.applies else self.refusal()

    def refusal(self) -> str:
        """Return the reason for a refusal, with suggestions in the syntax of a front end."""
        return refusal_text(self.reason, self.suggestions)

    @property
    def warnings(self) -> list[str]:
        """Texts of ``notes``; ``warn`` adds one."""
        return list(map(str, self.notes))

    def warn(self, *texts: str | Note, kind: NoteKind = "model") -> None:
        """Add notes that affect every value."""
        self.notes += texts_to_notes(texts, kind)

    def mark_incomplete(self, why: str, status: Status = Status.PARTIAL) -> None:
        """Record why the answer is incomplete: join reasons; an interrupt has priority."""
        self.reason = f"{self.reason}; {why}" if self.reason else why
        if not self.interrupted:
            self.status = status

    def mark_untrusted(self, interval_warning: str | None = None) -> None:
        """Mark all metrics as untrusted.

        With ``interval_warning``, also withhold the intervals of metrics and tables.
        """
        withheld: dict[str, Any] = (
            {"low": None, "high": None, "interval_warning": interval_warning}
            if interval_warning
            else {}
        )
        marks = {"trusted": False} | withheld
        self.metrics = {name: replace(m, **marks) for name, m in self.metrics.items()}
        if interval_warning:
            self.tables = {
                name: _remove_interval_columns(table, interval_warning)
                for name, table in self.tables.items()
            }

    @property
    def withheld(self) -> bool:
        """True if the answer has no metrics; ``reason`` states why."""
        return self.incomplete_reason is not None and not self.metrics

    def __getitem__(self, metric: str) -> float:
        """Return the value of a metric: ``answer["loss_ratio"]``.

        Raises
        ------
        UnknownMetric
            The answer has no metric of that name. The exception is also a KeyError.
        """
        if metric not in self.metrics:
            raise UnknownMetric(self._unknown_metric_text(str(metric)))
        return self.metrics[metric].value

    def _unknown_metric_text(self, metric: str) -> str:
        """Return the message for an unknown metric, with suggestions."""
        if not self.applies:
            return (
                f"{self.engine} has no {metric!r}, because this engine does not apply: "
                f"{self.not_applicable}"
            )
        if not self.metrics:
            return (
                f"{self.engine} has no {metric!r}, because its answer contains no metrics: "
                f"{self.incomplete_reason}"
            )
        near = [name for name in self.metrics if name.startswith(metric)]
        near = near or difflib.get_close_matches(metric, self.metrics, n=3)
        if near:
            return f"{self.engine} has no {metric!r}; use {' or '.join(map(repr, near))}"
        return f"{self.engine} has no {metric!r}; its metrics are {', '.join(self.metrics)}"

    def __repr__(self) -> str:
        """Return one line: the engine and its first metrics."""
        if not self.applies:
            return f"<Answer {self.engine}: not applicable, {self.not_applicable}>"
        shown = ", ".join(f"{name}={m.value:.4g}" for name, m in list(self.metrics.items())[:3])
        return f"<Answer {self.engine}: {shown}{', ...' if len(self.metrics) > 3 else ''}>"

    def _repr_html_(self) -> str:
        """Return a small table for notebooks."""
        rows = "".join(
            f"<tr><td><code>{name}</code></td><td>{m.value:.5g}</td>"
            f"<td>{_interval_text(m)}</td><td>{unit_of_metric(name, m)}</td></tr>"
            for name, m in self.metrics.items()
        )
        head = "<tr><th>metric</th><th>value</th><th>95 % interval</th><th>unit</th></tr>"
        return f"<table><caption>{self.engine}</caption>{head}{rows}</table>"

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON data; NaN becomes null, arrays become lists."""
        if not self.applies:
            given: dict[str, Any] = {"engine": self.engine, "not_applicable": self.not_applicable}
            if self.suggestions:
                listed = [each.to_json() for each in self.suggestions]
                given |= {"reason": self.reason, "suggestions": listed}
            return given
        way = {"regime": self.regime, "steps": self.steps, "domain": self.domain}
        inputs: dict[str, Any] = {name: value for name, value in way.items() if value}
        run = {"seed": self.seed, "warmup_s": self.warmup_s, "warmup_rule": self.warmup_rule}
        body: dict[str, Any] = {
            "engine": self.engine,
            "wall_s": self.wall_s,
            "warnings": self.warnings,
            "metrics": {name: _metric_as_json(name, m) for name, m in self.metrics.items()},
            "tables": {name: {"columns": columns_as_json(t)} for name, t in self.tables.items()},
            "provenance": self.provenance
            | (inputs | {name: value for name, value in run.items() if value is not None}),
        }
        if self.notes:  # the warnings with the fields by which reports select
            body["notes"] = [note.to_json() for note in self.notes]
        if self.incomplete_reason is not None:
            body["incomplete_reason"] = self.incomplete_reason
        if self.write_errors:
            body["write_errors"] = list(self.write_errors)
        return body


def _remove_interval_columns(
    table: Mapping[str, np.ndarray[Any, Any]], reason: str
) -> dict[str, Any]:
    """Return a table without its intervals, and with the reason next to the value of each."""
    import numpy as np  # noqa: PLC0415 - slow import

    ends = ("_low", "_high", "_low_s", "_high_s")
    kept: dict[str, Any] = {
        name: np.full(len(values), np.nan) if f"_{name}".endswith(ends) else values
        for name, values in table.items()
    }
    bounded = (name.removesuffix("_low") for name in table if name.endswith("_low"))
    return kept | {
        f"{name}_interval_warning": np.full(len(table[name]), reason) for name in bounded
    }


def _interval_text(metric: Metric) -> str:
    if metric.low is None or metric.high is None:
        return metric.missing_interval or ""
    return f"{metric.low:.5g} to {metric.high:.5g}"


def _metric_as_json(name: str, metric: Metric) -> dict[str, Any]:
    fields = {
        "value": finite_or_none(metric.value),
        "low": finite_or_none(metric.low),
        "high": finite_or_none(metric.high),
        "unit": unit_of_metric(name, metric),
    }
    if metric.at_least is not None:
        fields["at_least"] = metric.at_least
    if not metric.trusted:
        fields["trusted"] = False
    return (
        fields
        if metric.interval_warning is None
        else fields | {"interval_warning": metric.interval_warning}
    )


def columns_as_json(table: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, list[Any]]:
    """Return the columns of a table as lists; NaN and infinity become null."""
    return {name: [finite_or_none(v) for v in column.tolist()] for name, column in table.items()}


def finite_or_none(value: Any) -> Any:
    """Return a value, or None for NaN and infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
