"""Checking a plan by packet-level simulation."""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer import UNITS
from tcpcast.engines import RunOptions, answer
from tcpcast.errors import NotApplicable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcpcast.answer import Answer, Metric
    from tcpcast.plan.result import Plan, Table
    from tcpcast.scenario import Scenario

VERIFY_CONNECTIONS = 50_000
"""Transfers that a simulation counts at most when it checks a plan."""

STEP = 0.05
"""How far beside the answer the simulation looks, and how narrowly it searches for a buffer."""

WIDEN = 1.2
WIDEN_STEPS = 4
"""By which factor, and how often, the search for a crossing goes on outwards."""


class Stopped(Exception):  # noqa: N818 - a user's wish rather than a fault
    """A run was broken off, or all of ``run.max_wall`` was used up."""

    def __init__(self, *, interrupted: bool) -> None:
        super().__init__()
        self.interrupted = interrupted

    def told(self, of: str) -> str:
        """Say what became of a search, or of a check."""
        if self.interrupted:
            return f"{of} was interrupted"
        return f"run.max_wall was reached before {of} was over"


def bounded(options: RunOptions | None, scenario: Scenario) -> RunOptions:
    """Return options by which all simulations of a plan are over when ``run.max_wall`` is."""
    options = options or RunOptions()
    if options.deadline is not None:
        return options
    return replace(options, deadline=options.ends_at(scenario))


@dataclass(slots=True)
class Simulations:
    """Runs of one scenario over the values of one key; ``text`` writes a value.

    They are packet-level ones unless another ``engine`` is named. ``read`` finds the figure in an
    answer where it is no metric, and ``beside`` says what else changes at a value. All together
    they last no longer than the scenario's ``run.max_wall``.
    """

    scenario: Scenario
    key: str
    text: Callable[[Any], Any]
    metric: str
    connections: int
    options: RunOptions | None
    engine: str = "packet"
    read: Callable[[Answer], Metric | None] | None = None
    beside: Callable[[float], dict[str, Any]] | None = None
    answers: dict[float, Answer] = field(default_factory=dict)
    cut: float | None = None

    def __post_init__(self) -> None:
        """Let the time begin that the scenario leaves them."""
        self.options = bounded(self.options, self.scenario)

    @property
    def finished(self) -> dict[float, Answer]:
        """The answers by value, in rising order; without one whose run was cut short."""
        return {n: each for n, each in sorted(self.answers.items()) if n != self.cut}

    def measure(self, value: float) -> float:
        """Return the figure at a value, simulated at the first request.

        Raises
        ------
        Stopped
            The run was broken off, or the time is over.
        NotApplicable
            The engine does not cover the scenario, or the run saw nothing to tell it from.
        """
        if value not in self.answers:
            if self._is_late():
                raise Stopped(interrupted=False)
            self.answers[value] = this = self._simulate(value)
            if this.interrupted or (this.partial is not None and self._is_late()):
                self.cut = value
        if value == self.cut:
            raise Stopped(interrupted=self.answers[value].interrupted)
        found = self.figure(self.answers[value])
        if found is None:
            raise NotApplicable(
                f"{self.engine} tells no {self.metric} with {self.key} = {self.text(value)}: "
                + (self.answers[value].partial or "write a longer run")
            )
        return found.value

    def _is_late(self) -> bool:
        end = None if self.options is None else self.options.deadline
        return end is not None and time.perf_counter() >= end

    def figure(self, found: Answer) -> Metric | None:
        """Return the figure as an answer has it, None where it has none."""
        return found.metrics.get(self.metric) if self.read is None else self.read(found)

    def crossing(self, values: Sequence[int], target: float) -> float | None:
        """Return where the metric crosses a target, interpolated; None if it is not found.

        Where it does not cross between the values, the search goes on outwards, in the direction
        of the metric's slope, to at most about twice or half of them.
        """
        tried = sorted(values)
        for _ in range(WIDEN_STEPS + 1):
            measured = [(self.measure(value), value) for value in tried]
            for (y1, x1), (y2, x2) in itertools.pairwise(measured):
                if min(y1, y2) <= target <= max(y1, y2) and y1 != y2:
                    return x1 + (x2 - x1) * (target - y1) / (y2 - y1)
            (first, least), (last, most) = measured[0], measured[-1]
            if (last > first) == (last < target):
                tried.append(max(round(most * WIDEN), most + 1))
            elif least > 1:
                tried.insert(0, min(round(least / WIDEN), least - 1))
            else:
                break
        return None

    def _simulate(self, value: float) -> Answer:
        changes: dict[str, Any] = {self.key: self.text(value)}
        # What is recorded beside the figures is the scenario's business, not the check's.
        changes |= {"probes.flows": [], "probes.pcap": []}
        wanted = self.scenario.run.connections
        if wanted is not None:
            changes["run.connections"] = min(wanted, self.connections)
        if self.beside is not None:
            changes |= self.beside(value)
        (result,) = answer(self.scenario.with_changes(changes), [self.engine], self.options)
        if result.not_applicable is not None:
            raise NotApplicable(
                f"the plan cannot be simulated, {self.engine} does not apply: "
                f"{result.not_applicable}"
            )
        return result


def verify_by_simulation(
    plan: Plan, runs: Simulations, search: Callable[[], float | None], column: str
) -> None:
    """Search by simulation and put what was run into the plan, finished or not.

    Parameters
    ----------
    plan
        Gets ``simulated``, ``verified``, the table ``simulated`` and the runs' warnings.
    runs
        The simulations; whatever ``search`` has them measure is reported.
    search
        Returns the simulation's own answer, or None when it finds none.
    column
        What the table calls the value that is varied.

    Raises
    ------
    NotApplicable
        The simulation does not cover the scenario.
    """
    try:
        plan.simulated = search()
        if plan.simulated is None:
            plan.warnings.append(f"the simulation's own answer lies outside the {column} tried")
    except Stopped as stop:
        plan.interrupted, plan.partial = stop.interrupted, not stop.interrupted
        plan.warnings.append(stop.told("the check"))
    found = {v: runs.figure(each) for v, each in runs.answers.items()}
    told = {v: metric for v, metric in sorted(found.items()) if metric is not None}
    values, metrics = list(told), list(told.values())
    plan.verified = [runs.answers[value] for value in values]
    plan.tables["simulated"] = {column: np.array(values), **_metric_columns(runs.metric, metrics)}
    said = dict.fromkeys(w for each in plan.verified for w in each.warnings)
    plan.warnings.extend(w for w in said if _concerns(w, runs.metric))


def _concerns(warning: str, metric: str) -> bool:
    """Whether a simulation's warning bears on a metric: it names it, or names none."""
    return metric in warning or not any(name in warning for name in UNITS)


def _metric_columns(name: str, metrics: Sequence[Metric]) -> Table:
    bounds = [(m.low, m.high) for m in metrics]
    return {
        name: np.array([m.value for m in metrics]),
        "low": np.array([math.nan if low is None else low for low, _ in bounds]),
        "high": np.array([math.nan if high is None else high for _, high in bounds]),
    }


def smallest(suffices: Callable[[int], bool], start: int) -> float | None:
    """Return the smallest whole number that suffices, to 5 % or one.

    Parameters
    ----------
    suffices
        Whether a number does; every larger one then does as well.
    start
        Where to begin, at least 1. The bracket grows from it by factors of two, and is then
        halved on a logarithmic scale.

    Returns
    -------
    float or None
        None when 1024 times ``start`` does not suffice.
    """
    low, high = 0, start
    if suffices(start):
        while high > 1 and suffices(high // 2):
            high //= 2
        low = high // 2
    else:
        while not suffices(high):
            if high >= 1024 * start:
                return None
            low, high = high, 2 * high
    while high - low > max(1.0, STEP * high):
        middle = min(max(round(math.sqrt(low * high)), low + 1), high - 1)
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high
