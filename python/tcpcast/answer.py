"""The answer: named metrics with unit and interval, tables, warnings and provenance.

Every engine returns the same :class:`Answer`, so that any two can be laid side by side.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from tcpcast.errors import Names, Suggestion, UnknownMetric, refusal_text
from tcpcast.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    import numpy as np

UNITS: dict[str, str] = {name: row.unit for name, row in METRICS.items()}
"""The unit of every metric an engine may give, in the order of the report."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure with its 95 % interval.

    Parameters
    ----------
    value
        The figure in the unit that :data:`UNITS` gives.
    low, high
        The 95 % interval; ``None`` for a formula and for extremes.
    trusted
        False outside the domain of the formula, and where a simulation reached no steady state:
        shown with a dagger, never compared, never in a headline.
    unit
        Of a metric that is not in :data:`UNITS`, an own engine's; otherwise what its name ends in
        says it (see :func:`unit_of`).
    doubt
        In words, why the interval is withheld or to be checked; None where it can be trusted, or
        none is due.
    at_least
        A lower bound, where the value itself is withheld (nan).
    """

    value: float
    low: float | None = None
    high: float | None = None
    trusted: bool = True
    unit: str = ""
    doubt: str | None = None
    at_least: float | None = None

    @property
    def lacking(self) -> str | None:
        """What there was too little of for an interval, such as "too few files"."""
        if self.doubt is None or self.low is not None:
            return None
        return self.doubt.partition(":")[0]


_ENDINGS = {"_bps": "bit/s", "_pps": "packet/s", "_pkts": "packet", "_s": "s", "_ratio": "1"}


def unit_of(name: str, metric: Metric | None = None) -> str:
    """Return the unit of a metric, an own engine's too.

    Parameters
    ----------
    name
        Its name; those of :data:`UNITS` have the unit there.
    metric
        What an answer has of it, which may say its unit; otherwise the name's ending does, as in
        ``_bps`` or ``_s``, and one that does not is of unit 1.
    """
    if name in UNITS:
        return UNITS[name]
    if metric is not None and metric.unit:
        return metric.unit
    return next((unit for ending, unit in _ENDINGS.items() if name.endswith(ending)), "1")


NoteKind = Literal["outside", "scenario", "model", "run", "check", "withheld", "remark"]
"""Kinds of warnings, worst first: values outside the domain of a formula, a scenario that has no
steady answer, a part that the model lacks, a run that is too short for every interval, intervals
to be checked, intervals that are withheld, anything else."""

_KINDS: tuple[NoteKind, ...] = get_args(NoteKind)


class Note(str):
    """A warning: a text like any other, with its kind and the metrics that it affects.

    Parameters
    ----------
    why
        The text; with ``named``, up to the names of the metrics.
    metrics
        Names of the metrics, or of a table; none where it affects every value.
    kind
        One of the kinds above.
    named
        Whether the text ends with the names of the metrics.
    """

    why: str
    metrics: tuple[str, ...]
    kind: NoteKind
    named: bool

    def __new__(
        cls, why: str, metrics: Iterable[str] = (), *, kind: NoteKind, named: bool = False
    ) -> Self:
        """Join the text and the names."""
        names = tuple(metrics)
        note = super().__new__(cls, why + ", ".join(names) if named else why)
        note.why, note.metrics, note.kind, note.named = why, names, kind, named
        return note

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments that make a copy."""
        return (self.why, self.metrics), {"kind": self.kind, "named": self.named}

    def about(self, shown: Collection[str]) -> Note | None:
        """Return it without the names of other metrics, None if it affects only others."""
        if not self.metrics:
            return self
        names = [name for name in self.metrics if name in shown]
        return Note(self.why, names, kind=self.kind, named=self.named) if names else None


def concerning(warning: str, metrics: Collection[str]) -> str | None:
    """Return a warning without the names of other metrics, None if it affects only others."""
    return warning.about(metrics) if isinstance(warning, Note) else warning


def kind_of(warning: str) -> NoteKind | None:
    """Return the kind of a warning, None for a text without one."""
    return warning.kind if isinstance(warning, Note) else None


def noted(warnings: Iterable[str], kind: NoteKind) -> list[str]:
    """Return warnings, with a kind for those that have none."""
    return [w if isinstance(w, Note) else Note(w, kind=kind) for w in warnings]


def severity(warning: str) -> tuple[int, int]:
    """Return a key that sorts warnings, worst first; a text without a kind affects every value."""
    if not isinstance(warning, Note):
        return 0, 0
    return _KINDS.index(warning.kind), -len(warning.metrics)


class Refusal(str):
    """Why an engine does not apply: a text like any other, with its suggestions as values."""

    reason: str
    suggestions: tuple[Suggestion, ...]

    def __new__(cls, reason: str, suggestions: Iterable[Suggestion] = ()) -> Self:
        """Join the reason and the suggestions."""
        listed = tuple(suggestions)
        refusal = super().__new__(cls, refusal_text(reason, listed))
        refusal.reason, refusal.suggestions = reason, listed
        return refusal

    def needs(self, key: str) -> bool:
        """Return True if the engine needs only a value for this key."""
        return any(list(each.changes) == [key] for each in self.suggestions)

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return the arguments that make a copy."""
        return self.reason, self.suggestions


def refused(text: str, names: Names) -> str:
    """Return a refusal with its suggestions in the names of a front end."""
    if not isinstance(text, Refusal):
        return text
    return refusal_text(text.reason, text.suggestions, names)


Step = dict[str, Any]
"""A quantity on the way to an answer: ``symbol``, ``value``, ``unit`` and ``source``."""

Kind = Literal["formula", "simulation", "measurement"]
"""Whether an answer was calculated, simulated or measured in a capture."""


@dataclass(frozen=True, slots=True)
class CaptureInputs:
    """What a capture shows beside the metrics of its answer, for formulas.

    ``fed`` has quantities by name, None where the capture does not show one; ``replay`` the tables
    of the scenario that asks for the same, empty where there is none.
    """

    fed: dict[str, float | None]
    replay: dict[str, Any]


@dataclass(slots=True)
class Answer:
    """What one engine says of one scenario.

    ``engine`` is its name, ``not_applicable`` why it does not apply, or None, and ``wall_s`` how
    long it took. ``metrics`` maps the names of :data:`UNITS` to figures, ``tables`` maps a table's
    name to its columns (equal-length numpy arrays), ``warnings`` holds what to check before
    trusting the result (a :class:`Note` has its kind and its metrics). ``partial`` says why the
    answer is not the whole one that was asked for (precision not reached, ``interrupted`` by
    Ctrl-C), or None. ``unwritten`` says which files of the run could not be written, and why.
    ``failed`` says what went wrong where a sweep goes on without this answer.

    ``machine_fault`` says that ``partial`` is the machine's fault, which was too busy to measure.

    ``kind`` says whether it was calculated, simulated or measured. Of a formula, ``regime`` is what
    limits the rate or takes the time, ``steps`` every quantity that leads to the result, and
    ``domain`` those that bound where the formula is shown to hold, by name. Of a simulation,
    ``seed`` and ``replications`` are what it was run with, ``warmup_s`` is how long its warm-up
    was (None without one) by ``warmup_rule``, and ``measured_s`` how long all replications together
    were after it. Of a capture, ``captured`` is what formulas are fed. In JSON these are in
    ``provenance``, which says where the answer came from and which no program needs to read.
    """

    engine: str
    metrics: dict[str, Metric] = field(default_factory=dict)
    tables: dict[str, dict[str, np.ndarray[Any, Any]]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    provenance: dict[str, Any] = field(default_factory=dict)
    wall_s: float = 0.0
    partial: str | None = None
    interrupted: bool = False
    not_applicable: str | None = None
    unwritten: list[str] = field(default_factory=list)
    kind: Kind = "formula"
    regime: str | None = None
    steps: list[Step] = field(default_factory=list)
    domain: dict[str, float] = field(default_factory=dict)
    replications: int = 1
    measured_s: float = 0.0
    seed: int | None = None
    warmup_s: float | None = None
    warmup_rule: str | None = None
    captured: CaptureInputs | None = None
    machine_fault: bool = False
    failed: str | None = None

    def distrust(self, doubt: str | None = None) -> None:
        """Mark all metrics as not trusted; with a reason, also withhold their intervals for it."""
        withheld: dict[str, Any] = {"low": None, "high": None, "doubt": doubt} if doubt else {}
        marks = {"trusted": False} | withheld
        self.metrics = {name: replace(m, **marks) for name, m in self.metrics.items()}

    @property
    def withheld(self) -> bool:
        """Whether ``partial`` says why there are no metrics; tables then are to look into that."""
        return self.partial is not None and not self.metrics

    def __getitem__(self, metric: str) -> float:
        """Return the value of a metric: ``answer["loss_ratio"]``.

        Raises
        ------
        UnknownMetric
            The answer has none of that name (a KeyError, too).
        """
        if metric not in self.metrics:
            raise UnknownMetric(self._without(str(metric)))
        return self.metrics[metric].value

    def _without(self, metric: str) -> str:
        """Say that there is no such metric, and what to write instead."""
        if self.not_applicable is not None:
            return f"{self.engine} has no {metric!r}: it does not apply: {self.not_applicable}"
        if not self.metrics:
            return f"{self.engine} has no {metric!r}, nor any other metric: {self.partial}"
        near = [name for name in self.metrics if name.startswith(metric)]
        near = near or difflib.get_close_matches(metric, self.metrics, n=3)
        meant = f"write {' or '.join(map(repr, near))}" if near else None
        return f"{self.engine} has no {metric!r}; {meant or 'it has ' + ', '.join(self.metrics)}"

    def __repr__(self) -> str:
        """One line: the engine and its first metrics."""
        if self.not_applicable is not None:
            return f"<Answer {self.engine}: not applicable, {self.not_applicable}>"
        shown = ", ".join(f"{name}={m.value:.4g}" for name, m in list(self.metrics.items())[:3])
        return f"<Answer {self.engine}: {shown}{', ...' if len(self.metrics) > 3 else ''}>"

    def _repr_html_(self) -> str:
        """Return a small table for notebooks."""
        rows = "".join(
            f"<tr><td><code>{name}</code></td><td>{m.value:.5g}</td>"
            f"<td>{_interval(m)}</td><td>{unit_of(name, m)}</td></tr>"
            for name, m in self.metrics.items()
        )
        head = "<tr><th>metric</th><th>value</th><th>95 % interval</th><th>unit</th></tr>"
        return f"<table><caption>{self.engine}</caption>{head}{rows}</table>"

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of the interface; NaN becomes null, arrays become lists."""
        if self.not_applicable is not None:
            given = {"engine": self.engine, "not_applicable": self.not_applicable}
            return given | _suggestions_json(self.not_applicable)
        body: dict[str, Any] = {
            "engine": self.engine,
            "wall_s": self.wall_s,
            "warnings": list(self.warnings),
            "metrics": {name: _metric_json(name, m) for name, m in self.metrics.items()},
            "tables": {name: {"columns": _columns(t)} for name, t in self.tables.items()},
            "provenance": self.provenance | self._inputs(),
        }
        notes = [each for each in self.warnings if isinstance(each, Note)]
        if notes:  # the same warnings, with what a report selects them by
            fields = ("why", "metrics", "kind", "named")
            body["notes"] = [{name: getattr(each, name) for name in fields} for each in notes]
        if self.partial is not None:
            body["partial"] = self.partial
        if self.unwritten:
            body["unwritten"] = list(self.unwritten)
        return body

    def _inputs(self) -> dict[str, Any]:
        """Return what JSON has in ``provenance`` of the way to the result."""
        way = {"regime": self.regime, "steps": self.steps, "domain": self.domain}
        found: dict[str, Any] = {name: value for name, value in way.items() if value}
        run = {"seed": self.seed, "warmup_s": self.warmup_s, "warmup_rule": self.warmup_rule}
        found |= {name: value for name, value in run.items() if value is not None}
        if self.captured is not None:
            found |= {"fed": self.captured.fed, "replay": self.captured.replay}
        return found


def _suggestions_json(refusal: str) -> dict[str, Any]:
    if not isinstance(refusal, Refusal) or not refusal.suggestions:
        return {}
    listed = [
        {name: value for name in ("engine", "feed", "changes") if (value := getattr(each, name))}
        for each in refusal.suggestions
    ]
    return {"reason": refusal.reason, "suggestions": listed}


def _interval(metric: Metric) -> str:
    if metric.low is None or metric.high is None:
        return metric.lacking or ""
    return f"{metric.low:.5g} to {metric.high:.5g}"


def _metric_json(name: str, metric: Metric) -> dict[str, Any]:
    found = {
        "value": _number(metric.value),
        "low": _number(metric.low),
        "high": _number(metric.high),
        "unit": unit_of(name, metric),
    }
    if metric.at_least is not None:
        found["at_least"] = metric.at_least
    if not metric.trusted:
        found["trusted"] = False
    return found if metric.doubt is None else found | {"doubt": metric.doubt}


def _columns(table: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, list[Any]]:
    return {name: [_number(v) for v in column.tolist()] for name, column in table.items()}


def _number(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
