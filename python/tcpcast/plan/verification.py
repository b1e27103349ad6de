"""Checking a plan by packet-level simulation."""

from __future__ import annotations

import hashlib
import math
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast import units
from tcpcast.answer import Note
from tcpcast.engines import RunOptions, answer
from tcpcast.errors import NotApplicable
from tcpcast.plan.curve_table import make_float_column

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from tcpcast.answer import Answer, Metric
    from tcpcast.plan.inverse_question import InverseQuestion
    from tcpcast.plan.result import Bracket, Plan
    from tcpcast.plan.search import SearchGoal, SearchResult
    from tcpcast.scenario import Scenario

VERIFY_TRANSFERS = 50_000
"""Maximum number of transfers of a simulation that checks a plan."""

CURVE_STEP = 0.05
"""Relative distance from the answer at which the model's results are shown."""

MAX_LENGTH_FACTOR = 10
"""Maximum factor in the advice to simulate longer. The interval of an answer is in inverse
proportion to the square root of the length only if it is narrow: a wide one reaches values at which
the metric hardly depends on the answer, and becomes narrow with a much smaller factor."""

MAX_EXCESS_SCATTER = 1.5
"""Ratio of the runs' scatter to their own intervals above which a note reports it."""


class SimulationStopped(Exception):  # noqa: N818 - the user's decision rather than an error
    """The user interrupted a run, or ``run.max_wall`` was reached."""

    def __init__(self, *, interrupted: bool) -> None:
        super().__init__()
        self.interrupted = interrupted

    def reason(self, activity: str) -> str:
        """Return the reason why a search or a check ended."""
        if self.interrupted:
            return f"{activity} was interrupted"
        return f"run.max_wall was reached before {activity} finished"


def with_plan_deadline(options: RunOptions | None, scenario: Scenario) -> RunOptions:
    """Return options with a deadline for all simulations of a plan, from ``run.max_wall``."""
    options = options or RunOptions()
    if options.deadline is not None:
        return options
    return replace(options, deadline=options.compute_deadline(scenario))


@dataclass(slots=True)
class PlanSimulations:
    """Runs of one scenario for values of a question, each with another seed.

    The default ``engine`` is the packet engine. Each run has at most ``transfers`` transfers.
    ``extra_changes`` returns the additional changes for a value. The total time is limited to the
    scenario's ``run.max_wall``. ``goal`` is the target of a search, once it has begun.
    """

    scenario: Scenario
    question: InverseQuestion
    options: RunOptions | None
    transfers: int = 0
    engine: str = "packet"
    extra_changes: Callable[[float], dict[str, Any]] | None = None
    answers: dict[float, Answer] = field(default_factory=dict)
    stopped_value: float | None = None
    goal: SearchGoal | None = None

    def __post_init__(self) -> None:
        """Start the time limit."""
        self.options = with_plan_deadline(self.options, self.scenario)

    @property
    def finished_answers(self) -> dict[float, Answer]:
        """The answers of complete runs, by ascending value."""
        return {n: each for n, each in sorted(self.answers.items()) if n != self.stopped_value}

    def bracket(self) -> Bracket | None:
        """Return the closest finished values on both sides of the target, None without a search."""
        if self.goal is None:
            return None
        below, above = None, None
        for value, finished in self.finished_answers.items():
            metric = self.question.read_quantity(finished)
            if metric is None:
                continue
            if self.goal.lies_before_crossing(metric.value):
                below = value
            elif above is None:
                above = value
        return below, above

    def measure(self, value: float) -> float:
        """Return the compared quantity at a value; simulate at the first call.

        Raises
        ------
        SimulationStopped
            The run was interrupted, or the time limit reached.
        NotApplicable
            The engine does not cover the scenario, or the run has no data for the quantity.
        """
        if value not in self.answers:
            if self._is_past_deadline():
                raise SimulationStopped(interrupted=False)
            self.answers[value] = this = self._simulate(value)
            if this.interrupted or (
                this.incomplete_reason is not None and self._is_past_deadline()
            ):
                self.stopped_value = value
        if value == self.stopped_value:
            raise SimulationStopped(interrupted=self.answers[value].interrupted)
        question, metric = self.question, self.metric_at(value)
        if metric is None:
            setting = f"{question.key} = {question.format_value(value)}"
            length = "transfers" if self.scenario.run.duration_s is None else "duration"
            reason = self.answers[value].incomplete_reason
            raise NotApplicable(
                f"{self.engine} has no {question.metric} with {setting}"
                + (f": {reason}" if reason else f"; write a larger run.{length}")
            )
        return metric.value

    def _is_past_deadline(self) -> bool:
        end = None if self.options is None else self.options.deadline
        return end is not None and time.perf_counter() >= end

    def metric_at(self, value: float) -> Metric | None:
        """Return the simulated quantity at a value, with its interval."""
        return self.question.read_quantity(self.answers[value])

    @property
    def known_metrics(self) -> dict[float, Metric]:
        """The quantities by ascending value, without values at which a run had none."""
        found = {value: self.metric_at(value) for value in sorted(self.answers)}
        return {value: metric for value, metric in found.items() if metric is not None}

    def _simulate(self, value: float) -> Answer:
        changes = self.question.changes(value)
        # A check needs no probes.
        changes |= {"probes.flows": [], "probes.pcap": []}
        wanted = self.scenario.run.transfers
        if wanted is not None:
            changes["run.transfers"] = min(wanted, self.transfers)
        if self.extra_changes is not None:
            changes |= self.extra_changes(value)
        changes["run.seed"] = _seed_of_value(self.scenario.run.seed, changes)
        (result,) = answer(self.scenario.with_changes(changes), [self.engine], self.options)
        if result.not_applicable is not None:
            raise NotApplicable(
                f"the plan cannot be simulated, because engine {self.engine} does not apply: "
                f"{result.not_applicable}"
            )
        return result


def _seed_of_value(seed: int, changes: dict[str, Any]) -> int:
    """Return the seed of one run: equal seeds would correlate the errors of nearby values."""
    text = f"{seed} {sorted(changes.items())}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest())


def verify_by_simulation(
    plan: Plan, runs: PlanSimulations, search: Callable[[], SearchResult | None]
) -> None:
    """Search by simulation and add the runs to the plan, even if the search did not finish.

    Parameters
    ----------
    plan
        The plan; set are the results of :meth:`Plan.set_simulated_answer`, ``verified``, the
        table ``simulated`` and the runs' warnings.
    runs
        The simulations; all runs of ``search`` are reported.
    search
        Function that returns the answer of the simulation, which it also simulates, or None.

    Raises
    ------
    NotApplicable
        The simulation does not cover the scenario.
    """
    question = runs.question
    plan.quantity = question.quantity
    try:
        result = search()
        if result is None:
            plan.warnings.insert(
                0, f"the simulation's answer is outside the tested range of {question.column}"
            )
        else:
            _set_simulated_answer(plan, runs, result)
    except SimulationStopped as stop:
        plan.interrupted, plan.incomplete = stop.interrupted, not stop.interrupted
        plan.bracket = runs.bracket()
        plan.warnings.insert(0, stop.reason("the check"))
    known = runs.known_metrics
    plan.verified = [runs.answers[value] for value in known]
    plan.headings.setdefault("simulated", "Simulated values")
    plan.tables["simulated"] = {
        question.column: np.array(list(known)),
        question.metric: make_float_column(metric.value for metric in known.values()),
        "low": make_float_column(metric.low for metric in known.values()),
        "high": make_float_column(metric.high for metric in known.values()),
    }
    plan.warnings += merge_run_warnings(plan.verified, question.tables or (question.metric,))
    wanted = runs.scenario.run.transfers
    if wanted is not None and wanted > runs.transfers:
        plan.notes.append(
            f"Each simulation has {runs.transfers:,} transfers, fewer than run.transfers "
            f"({wanted:,}). To simulate all of them, add --set run.transfers={wanted}."
        )


def merge_run_warnings(answers: Collection[Answer], shown: Collection[str]) -> list[Note]:
    """Return one warning per kind that affects the displayed values, with the number of runs."""
    found: dict[str, list[Note]] = {}
    for each in answers:
        kinds: dict[str, Note] = {}
        for warning in filter(None, (note.limited_to(shown) for note in each.notes)):
            kinds.setdefault(warning.kind, warning)
        for kind, warning in kinds.items():
            found.setdefault(kind, []).append(warning)
    return [_add_run_count(texts[0], len(texts), len(answers)) for texts in found.values()]


def _add_run_count(warning: Note, count: int, runs: int) -> Note:
    if count == runs:
        return warning
    return Note(f"in {count} of {runs} runs: {warning}", warning.metrics, kind=warning.kind)


def _set_simulated_answer(plan: Plan, runs: PlanSimulations, result: SearchResult) -> None:
    """Add the answer of the simulation, or the reason for its absence, to the plan."""
    plan.set_simulated_answer(result, runs.question.metric)
    if result.undecided:
        plan.warnings.insert(0, "the simulation is undecided: " + undecided_reason(runs, result))
        return
    plan.notes += note_excess_scatter(result)
    if plan.scenario is not None and plan.is_simulation_reported_first:
        plan.scenario = plan.scenario.with_changes(runs.question.changes(result.value))


def note_excess_scatter(result: SearchResult) -> list[str]:
    """Return a note if the runs' own intervals are much narrower than their scatter."""
    if result.excess_scatter < MAX_EXCESS_SCATTER:
        return []
    return [
        f"The results of the {result.fit_runs} runs near the answer scatter "
        f"{result.excess_scatter:.2g} times as widely as their 95 % intervals suggest. The range "
        "of the answer is therefore computed from the scatter, and some intervals may exclude "
        "the target."
    ]


def undecided_reason(runs: PlanSimulations, result: SearchResult) -> str:
    """Return the reason why an answer is undecided, and advice."""
    question = runs.question
    if result.low is None or result.high is None:
        advice = _longer_run_advice(runs, 4)
        return f"the runs are too short for an interval of {question.metric}; {advice}"
    ends = [
        question.format_value(v if result.integer else float(f"{v:.3g}"))
        for v in (result.low, result.high)
    ]
    beyond = " or beyond" if result.is_open else ""
    wide = (result.high - result.low) / max(result.max_width, 1e-300)
    times = min(max(2, math.ceil(wide**2)), MAX_LENGTH_FACTOR)
    return (
        f"because of the standard error of the runs, {question.key} is only known to be "
        f"between {ends[0]} and {ends[1]}{beyond}; {_longer_run_advice(runs, times)}"
    )


def _longer_run_advice(runs: PlanSimulations, times: int) -> str:
    run = runs.scenario.run
    if run.duration_s is not None:
        longer = f"run.duration={units.format_duration(times * run.duration_s)}"
    else:
        longer = f"run.transfers={times * runs.transfers}"
    factor = f"about {times}" if times < MAX_LENGTH_FACTOR else f"longer, for example {times}"
    return f"simulate {factor} times as long: --set {longer}"
