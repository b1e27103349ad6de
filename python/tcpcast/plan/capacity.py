"""Number of users for a mean rate on a link, and the link's rate for a given population."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast import units
from tcpcast.errors import DomainError
from tcpcast.plan.classic_equivalent import CLASSIC_PRESET, make_engset_model
from tcpcast.plan.curve_table import (
    add_curve_table,
    make_float_column,
    values_around_answer,
)
from tcpcast.plan.inverse_question import InverseQuestion, check_positive_rate
from tcpcast.plan.planned_path import percent_text
from tcpcast.plan.population_search import make_file_goodput_target
from tcpcast.plan.search import SearchGoal, search_from_start
from tcpcast.plan.varied_classes import (
    RATE_METRIC,
    each_class_text,
    lowest_mean_rate,
    select_varied_classes,
    slowest_class_text,
    target_class_notes,
)
from tcpcast.plan.verification import (
    CURVE_STEP,
    VERIFY_TRANSFERS,
    PlanSimulations,
    verify_by_simulation,
)
from tcpcast.readable_units import rate_text
from tcpcast.scenario.traffic import MAX_SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcpcast.engines import RunOptions
    from tcpcast.engines.formula.engset import EngsetInputs
    from tcpcast.plan.classic_equivalent import EngsetModel
    from tcpcast.plan.result import Plan
    from tcpcast.plan.search import SearchResult
    from tcpcast.scenario import Scenario

MAX_RATE_BPS = 1e15
UNLIMITED_RATE = "1000gbit"
"""Rate of a practically unlimited bottleneck in simulations."""

_RATE_QUESTION: dict[str, Any] = {
    "key": "network.bottleneck.rate",
    "column": "bottleneck_bps",
    "unit": "bit/s",
    "format_value": units.format_rate,
    "axis": "rate of the link",
}

ROUNDING_TOLERANCE = 1e-9


def plan_users(  # noqa: PLR0913 - the question, and how to answer it
    scenario: Scenario,
    *,
    rate_bps: float,
    grows: str | None = None,
    verify: bool = False,
    transfers: int = VERIFY_TRANSFERS,
    options: RunOptions | None = None,
) -> Plan:
    """Return the largest population whose connections reach a mean rate.

    Parameters
    ----------
    scenario
        On/off sources, whose number is ignored. Scenarios that the ``engset`` engine does not
        cover, such as several classes, are only simulated.
    rate_bps
        Minimum mean connection rate, bit/s, above 0.
    grows
        The class that grows; None for all classes with on/off sources, in proportion. The class
        with the lowest mean rate must reach the target.
    verify
        Also search the population by simulation, starting from the model's answer, and simulate
        the result. This is always done for modern TCP, which the model does not cover.
    transfers, options
        As in :func:`plan_buffer`.

    Returns
    -------
    Plan
        The largest N whose mean connection rate h (eq. 10) is at least ``rate_bps``. Tables:
        ``model`` (sources, connection_rate_bps, utilisation, loss_ratio) for N - 1, N and N + 1;
        ``simulated`` (sources, connection_rate_bps, low, high); ``curve`` (sources,
        connection_rate_bps) of the model, for a figure.

    Raises
    ------
    NotApplicable
        Neither the model nor the simulation covers the scenario.
    DomainError
        A single source does not reach the rate, or ten million sources still reach it.
    """
    varied = select_varied_classes(scenario, grows, "plan users")
    question = _make_mean_rate_question(
        rate_bps,
        text=varied.population_text(_target_text(rate_bps)),
        key=varied.key,
        column="sources",
        unit="sources",
        axis="users",
        make_changes=varied.changes,
    )
    model = _make_model_if_reachable(
        scenario,
        question,
        lambda inputs, sources: replace(inputs, sources=int(sources)),
        1,
        "a single source gets only",
    )
    plan = question.plan()
    plan.notes += [*varied.notes("mean rate"), *model.notes]
    if model.inputs is not None:
        value = _find_largest_population(_make_rate_predicate(model, rate_bps))
        _add_model_table(
            plan, question, model, [n for n in (value - 1, value, value + 1) if n >= 1]
        )
        model.set_answer(plan, question, scenario, value)
    if verify or model.simulation_reason:
        runs = PlanSimulations(scenario, question, options, transfers)
        goal = SearchGoal(target=rate_bps, minimum=len(varied.counts), maximum=MAX_SOURCES)
        slowest = "the slowest class of " if varied.has_several_classes else ""
        who = f"{slowest}the smallest population gets only"
        _search_by_simulation(plan, runs, goal, varied.total, (goal.minimum, who))
        if plan.simulated is not None:
            plan.recommendation = varied.text(plan.simulated)
    rates = model.metric_curve("rate_bps")
    add_curve_table(plan, question, rates, is_whole=True, maximum=MAX_SOURCES)
    return plan


def plan_rate(  # noqa: PLR0913 - the question, and how to answer it
    scenario: Scenario,
    *,
    rate_bps: float,
    of_class: str | None = None,
    verify: bool = False,
    transfers: int = VERIFY_TRANSFERS,
    options: RunOptions | None = None,
) -> Plan:
    """Return the bottleneck rate that the population needs for a mean connection rate.

    Parameters
    ----------
    scenario
        On/off sources, as in :func:`plan_users`. Only the rate of the bottleneck is varied. A
        specified round-trip time stays constant. Otherwise, the delays of the links stay constant.
    rate_bps
        Minimum mean connection rate, bit/s, above 0.
    of_class
        The class that must reach the rate; None for the class with the lowest mean rate.
    verify
        Also search the rate by simulation, starting from the model's answer, and simulate the
        result. This is always done for modern TCP, which the model does not cover.
    transfers, options
        As in :func:`plan_buffer`.

    Returns
    -------
    Plan
        The smallest bottleneck rate at which the mean connection rate h (eq. 10) is at least
        ``rate_bps``, in whole bit/s, with a relative accuracy of 1e-9. Tables: ``model``
        (bottleneck_bps, connection_rate_bps, utilisation, loss_ratio) at 95, 100 and 105 % of this
        rate; ``simulated`` (bottleneck_bps, connection_rate_bps, low, high); ``curve``
        (bottleneck_bps, connection_rate_bps) of the model, for a figure.

    Raises
    ------
    NotApplicable
        Neither the model nor the simulation covers the scenario.
    DomainError
        No bottleneck is fast enough for the rate.
    """
    scenario, start = _require_bottleneck_rate(scenario, rate_bps, of_class)
    question = _make_mean_rate_question(
        rate_bps,
        text=f"bottleneck rate for {_target_text(rate_bps)}{each_class_text(scenario, of_class)}",
        of_class=of_class,
        **_RATE_QUESTION,
    )
    vary = partial(_replace_rate, scenario)
    slowest = slowest_class_text(scenario, of_class)
    who = " ".join(filter(None, ["an unlimited bottleneck gives", slowest]))
    model = _make_model_if_reachable(scenario, question, vary, MAX_RATE_BPS, who)
    plan = question.plan()
    plan.notes += [*target_class_notes(scenario, "mean rate", of_class), *model.notes]
    minimum = _min_feasible_rate_bps(scenario)
    if model.inputs is not None:
        _add_model_rate(plan, question, scenario, model, minimum)
    if verify or model.simulation_reason:
        runs = PlanSimulations(scenario, question, options, transfers)
        _search_rate_by_simulation(plan, runs, start, minimum, who)
    rates = model.metric_curve("rate_bps")
    add_curve_table(plan, question, rates, minimum=minimum, maximum=MAX_RATE_BPS)
    return plan


def plan_rate_quality(
    scenario: Scenario,
    *,
    share: float,
    above_bps: float,
    of_class: str | None = None,
    options: RunOptions | None = None,
) -> Plan:
    """Return the bottleneck rate at which a share of the files has more than a given goodput.

    Parameters
    ----------
    scenario
        On/off sources. Only the rate of the bottleneck is varied.
    share, above_bps
        As in :func:`plan_quality`.
    of_class
        As in :func:`plan_rate`.
    options
        Threads and progress of the simulations.

    Returns
    -------
    Plan
        The smallest rate, from the packet engine only. Tables: ``simulated`` (bottleneck_bps,
        goodput_bps, low, high) with the goodput that the share of the files exceeds.

    Raises
    ------
    NotApplicable
        No class has on/off traffic.
    DomainError
        The share or rate is outside its domain, or no bottleneck rate gives the goodput.
    """
    scenario, start = _require_bottleneck_rate(scenario, above_bps, of_class)
    files = make_file_goodput_target(
        scenario, share, above_bps, "packet", plan="plan rate", of_class=of_class
    )
    question = replace(
        files.question,
        text=f"bottleneck rate with {files.text}{each_class_text(scenario, of_class)}",
        target=above_bps,
        make_changes=None,
        **_RATE_QUESTION,
    )
    plan = question.plan()
    plan.notes += target_class_notes(scenario, "goodput", of_class)
    changes = files.changes(files.varied.total)
    runs = replace(files.simulations(lambda _: changes, options), question=question)
    minimum = _min_feasible_rate_bps(scenario)
    _search_rate_by_simulation(
        plan,
        runs,
        start,
        minimum,
        f"even with an unlimited bottleneck, {percent_text(share)} of the {files.files_text} reach "
        "only",
    )
    add_curve_table(
        plan, question, lambda _: None, minimum=math.ceil(minimum), maximum=MAX_RATE_BPS
    )
    return plan


def _target_text(rate_bps: float) -> str:
    return f"a mean rate of {rate_text(rate_bps)}"


def _make_mean_rate_question(
    rate_bps: float, *, text: str, of_class: str | None = None, **more: Any
) -> InverseQuestion:
    """Return the question for the mean rate of a class, or of the slowest class."""
    check_positive_rate("mean rate", rate_bps, "200kbit")
    read = partial(lowest_mean_rate, name=of_class)
    return InverseQuestion(
        text=text,
        metric=RATE_METRIC,
        target=rate_bps,
        read_metric=read,
        headings={"model": "The model near its answer"},
        **more,
    )


def _require_bottleneck_rate(
    scenario: Scenario, rate_bps: float, of_class: str | None
) -> tuple[Scenario, float]:
    """Return a scenario whose bottleneck has a rate, and the first rate of a search."""
    varied = select_varied_classes(scenario, of_class, "plan rate")
    start = scenario.network.bottleneck.rate_bps
    if not math.isinf(start):
        return scenario, start
    fast = scenario.with_changes({_RATE_QUESTION["key"]: UNLIMITED_RATE})
    return fast, min(varied.total * rate_bps, MAX_RATE_BPS)


def _make_model_if_reachable(
    scenario: Scenario,
    question: InverseQuestion,
    vary: Callable[[EngsetInputs, float], EngsetInputs],
    easiest: float,
    who: str,
) -> EngsetModel:
    """Return the model, without ``inputs`` if another stack may exceed the model's largest rate."""
    model, rate_bps = make_engset_model(scenario, vary), question.target
    if model.inputs is None:
        return model
    peak = model.solve_at(easiest).rate_bps
    if rate_bps <= peak:
        return model
    if not model.simulation_reason:
        raise _unreachable_target_error(question, who, peak)
    stack = scenario.populations[0].tcp.stack
    why = (
        f"the model does not cover {stack}, and the most similar stack that it covers, "
        f"{CLASSIC_PRESET}, reaches at most {rate_text(peak)}"
    )
    return replace(model, inputs=None, simulation_reason=why)


def _add_model_table(
    plan: Plan, question: InverseQuestion, model: EngsetModel, values: Sequence[float]
) -> None:
    """Add a table of the model's results near its answer to a plan."""
    results = [model.solve_at(value) for value in values]
    plan.tables["model"] = {
        question.column: np.array(values),
        "connection_rate_bps": np.array([r.rate_bps for r in results]),
        "utilisation": np.array([r.utilisation for r in results]),
        "loss_ratio": make_float_column(r.loss_ratio for r in results),
    }


def _add_model_rate(
    plan: Plan, question: InverseQuestion, scenario: Scenario, model: EngsetModel, minimum: float
) -> None:
    """Add the model's smallest bottleneck rate to a plan."""
    smallest, missed = _find_smallest_meeting_rate(
        _make_rate_predicate(model, question.target), minimum
    )
    value = math.ceil(smallest)
    values = (value * (1 - CURVE_STEP), value, value * (1 + CURVE_STEP))
    _add_model_table(plan, question, model, [round(c) for c in values if c >= minimum])
    model.set_answer(plan, question, scenario, value)
    if missed is not None:
        text = (
            "the formula's mean rate does not always rise with the link rate, so some faster "
            f"links (up to {rate_text(missed)}) miss the target again"
        )
        plan.warnings += model.warnings_as_notes([text])
    if value <= math.ceil(minimum):
        plan.warnings.append(
            "a slower bottleneck would also meet the target, but its transmission time for one "
            "packet exceeds the round-trip time of the scenario"
        )


def _make_rate_predicate(model: EngsetModel, rate_bps: float) -> Callable[[float], bool]:
    """Return a predicate: True if the model's mean rate at a value is high enough."""
    return lambda value: model.solve_at(value).rate_bps >= rate_bps * (1 - ROUNDING_TOLERANCE)


def _search_rate_by_simulation(
    plan: Plan, runs: PlanSimulations, start: float, minimum: float, who: str
) -> None:
    """Search the smallest bottleneck rate by simulation."""
    target = runs.question.target
    goal = SearchGoal(target=target, rises=True, smallest=True, minimum=math.ceil(minimum))
    _search_by_simulation(plan, runs, goal, start, (units.parse_rate(UNLIMITED_RATE), who))


def _search_by_simulation(
    plan: Plan, runs: PlanSimulations, goal: SearchGoal, start: float, easiest: tuple[float, str]
) -> None:
    """Search from the model's answer; without one, first check the easiest value."""

    def search() -> SearchResult | None:
        if plan.has_model:
            return search_from_start(runs, goal, plan.value)
        value, who = easiest
        easiest_runs = replace(runs, answers={})
        maximum = easiest_runs.measure(value)
        interval = easiest_runs.metric_at(value)
        # Few sources transfer few files. A rate without an interval does not exclude the target.
        if interval is not None and interval.high is not None and interval.high < goal.target:
            raise _unreachable_target_error(runs.question, who, maximum)
        result = search_from_start(runs, goal, goal.clamp(start))
        maximum = max([maximum, *(metric.value for metric in runs.known_metrics.values())])
        if result is None and maximum < goal.target:
            raise _unreachable_target_error(runs.question, who, maximum)
        return result

    verify_by_simulation(plan, runs, search)


def _replace_rate(scenario: Scenario, inputs: EngsetInputs, link_bps: float) -> EngsetInputs:
    """Return the model's inputs for another bottleneck rate; a buffer in BDP is converted again."""
    network, rtt0 = scenario.network, inputs.path.rtt0_s
    if not _has_specified_rtt(scenario):
        bits = 8 * (network.packet_bytes + network.ack_bytes)
        rtt0 += bits / link_bps - bits / inputs.path.bottleneck_bps
    path = replace(inputs.path, bottleneck_bps=link_bps, rtt0_s=rtt0)
    buffer = network.bottleneck.buffer.packets(
        packet_bytes=network.packet_bytes, rate_bps=link_bps, rtt_s=rtt0
    )
    return replace(inputs, path=path, buffer_pkts=None if math.isinf(buffer) else buffer)


def _has_specified_rtt(scenario: Scenario) -> bool:
    """Return True if the scenario has a round-trip time instead of delays of links."""
    given = [scenario.network.rtt, *(each.rtt for each in scenario.classes)]
    return any(rtt is not None for rtt in given)


def _min_feasible_rate_bps(scenario: Scenario) -> float:
    """Return the slowest bottleneck for which one packet fits into the round-trip times."""
    network = scenario.network
    if not _has_specified_rtt(scenario):
        return 1.0
    bits = 8 * (network.packet_bytes + network.ack_bytes)
    rooms = []
    for people in scenario.populations:
        rates = [on.link.rate_bps for on in people.links(network)[:-1] if not on.shared]
        rooms.append(people.rtt_s - bits / min(rates) - bits / people.egress.rate_bps)
    return bits / min(rooms) * (1 + ROUNDING_TOLERANCE)


def _find_smallest_meeting_rate(
    reaches: Callable[[float], bool], minimum: float
) -> tuple[float, float | None]:
    """Return the smallest rate that meets the target, and the largest higher rate that misses it.

    The mean connection rate of the formula is a saw-tooth over the bottleneck rate, so it may cross
    the target several times. All points of the curve are tested.
    """
    value = _search_meeting_rate(reaches, minimum)
    links = values_around_answer(value, minimum=minimum, maximum=MAX_RATE_BPS)
    good = np.array([reaches(link) for link in links.tolist()])
    first = int(np.argmax(good))
    if links[first] < value:
        value = _bisect_rate(reaches, float(links[max(first - 1, 0)]), float(links[first]))
    missed = links[~good & (links > value)]
    return value, float(missed[-1]) if missed.size else None


def _search_meeting_rate(reaches: Callable[[float], bool], minimum: float) -> float:
    """Return a rate that meets the target while a slightly lower rate misses it.

    The largest rate is assumed to meet the target.
    """
    low = high = minimum
    while not reaches(high):
        low, high = high, min(2 * high, MAX_RATE_BPS)
    return _bisect_rate(reaches, low, high)


def _bisect_rate(reaches: Callable[[float], bool], low: float, high: float) -> float:
    """Bisect between a rate that misses the target and one that meets it; return the latter."""
    while high > low * (1 + ROUNDING_TOLERANCE):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


def _find_largest_population(reaches: Callable[[int], bool]) -> int:
    """Return the largest population that meets the target, given that one source meets it.

    The mean rate never increases with the population.
    """
    high = 2
    while reaches(high):
        if high == MAX_SOURCES:
            raise DomainError(
                f"even {MAX_SOURCES:,} sources reach the mean rate; write a higher rate"
            )
        high = min(2 * high, MAX_SOURCES)
    return bisect_left(range(1, high), True, key=lambda sources: not reaches(sources))


def _unreachable_target_error(question: InverseQuestion, who: str, most_bps: float) -> DomainError:
    what = "mean rate" if question.metric == RATE_METRIC else "goodput"
    return DomainError(
        f"a {what} of {rate_text(question.target)} cannot be reached: {who} "
        f"{rate_text(most_bps)}; write a lower rate, or a shorter RTT"
    )
