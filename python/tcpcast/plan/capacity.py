"""How many users a link serves at a mean rate, and what link a population needs for one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast import units
from tcpcast.engines.formula.engset import engset_inputs, engset_warnings
from tcpcast.errors import DomainError, NotApplicable
from tcpcast.plan.curve import between, curve_of, whole
from tcpcast.plan.growth import RATE, growing, slowest_rate
from tcpcast.plan.nearest import PRESET, by_simulation_alone, model_notes, nearest
from tcpcast.plan.path import percent
from tcpcast.plan.population import quality, simulations
from tcpcast.plan.result import Plan
from tcpcast.plan.search import Goal, solve
from tcpcast.plan.trust import disowned
from tcpcast.plan.verification import STEP, VERIFY_CONNECTIONS, Simulations, verify_by_simulation
from tcpcast.scenario.traffic import MOST_SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcpcast.answer import Note
    from tcpcast.engines import RunOptions
    from tcpcast.engines.formula.engset import EngsetInputs
    from tcpcast.models.engset import EngsetResult, Path
    from tcpcast.plan.result import Table
    from tcpcast.plan.search import Found
    from tcpcast.scenario import Scenario

LARGEST_RATE_BPS = 1e15
FASTEST = "1000gbit"
"""The bottleneck that stands for an unlimited one in simulations."""

_LINK = "network.bottleneck.rate"

ROUNDING = 1e-9


def plan_users(  # noqa: PLR0913 - the question, and how to answer it
    scenario: Scenario,
    *,
    rate_bps: float,
    grows: str | None = None,
    verify: bool = False,
    connections: int = VERIFY_CONNECTIONS,
    options: RunOptions | None = None,
) -> Plan:
    """Return the largest population whose connections keep a mean rate.

    Parameters
    ----------
    scenario
        On/off sources; how many they are plays no part. Several classes, and whatever else the
        ``engset`` engine does not cover, are answered by simulation alone.
    rate_bps
        The mean connection rate to keep, bit/s, above 0.
    grows
        The class that grows; None for all classes with on/off sources in their proportion. The
        class with the lowest mean rate has to keep the target.
    verify
        Also search the population by simulation, from that one, and simulate the one that is found;
        with today's TCP, which the model does not have, in any case.
    connections, options
        As in :func:`plan_buffer`.

    Returns
    -------
    Plan
        The largest N with h >= rate_bps (eq. 10), exactly. Tables: ``model`` (sources,
        connection_rate_bps, utilisation, loss_ratio) for N - 1, N and N + 1; ``simulated``
        (sources, connection_rate_bps, low, high); ``curve`` (sources, connection_rate_bps), the
        model's, for a figure.

    Raises
    ------
    NotApplicable
        The model, or the simulation, does not cover the scenario.
    DomainError
        A rate that one source alone does not reach, or that ten million sources still get.
    """
    growth = growing(scenario, grows, "plan users")
    _check_positive(rate_bps)
    model = _model(scenario, rate_bps, _peak_of_one, "one source alone gets")
    plan = _plan(f"most sources at a mean rate of {_rate_text(rate_bps)}", "sources", rate_bps)
    plan.notes += [*growth.notes("mean rate"), *model.notes]
    if model.inputs is not None:
        _users_by_model(plan, scenario, model, rate_bps, growth.key)
    if verify or model.nearby:
        runs = Simulations(scenario, growth.key, int, RATE, connections, options)
        runs.read, runs.place = slowest_rate, growth.changes
        goal = Goal(target=rate_bps, least=len(growth.counts), most=MOST_SOURCES)
        search = _search(runs, goal, plan, growth.total, (goal.least, "the fewest sources get"))
        verify_by_simulation(plan, runs, search, "sources")
        if plan.simulated is not None:
            plan.recommendation = growth.text(plan.simulated)
    simulated = plan.tables.get("simulated", {}).get("sources", ())
    values = whole(between(_centre(plan, simulated), simulated, most=MOST_SOURCES))
    plan.tables["curve"] = curve_of(
        "sources",
        values,
        RATE,
        model.curve(lambda inputs, n: replace(inputs, sources=int(n)).solve().rate_bps),
    )
    return plan


def _users_by_model(
    plan: Plan, scenario: Scenario, model: _Model, rate_bps: float, key: str
) -> None:
    """Put the model's largest population into a plan."""
    inputs = model.inputs
    assert inputs is not None
    value = _largest(
        lambda n: replace(inputs, sources=n).solve().rate_bps >= rate_bps * (1 - ROUNDING)
    )
    sources = [n for n in (value - 1, value, value + 1) if n >= 1]
    results = [replace(inputs, sources=n).solve() for n in sources]
    plan.value = value
    plan.tables["model"] = _model_table("sources", sources, results)
    plan.warnings += model.warnings(results[sources.index(value)])
    plan.untrusted = model.nearby or disowned("engset", scenario, {key: value})


def plan_rate(
    scenario: Scenario,
    *,
    rate_bps: float,
    verify: bool = False,
    connections: int = VERIFY_CONNECTIONS,
    options: RunOptions | None = None,
) -> Plan:
    """Return the bottleneck rate that the population needs for a mean connection rate.

    Parameters
    ----------
    scenario
        On/off sources, as in :func:`plan_users`. Of its bottleneck only the rate is
        varied; a round-trip time that was given stays, one that follows from delays follows.
    rate_bps
        The mean connection rate to reach, bit/s, above 0.
    verify
        Also search the rate by simulation, from that one, and simulate the one that is found; with
        today's TCP, which the model does not have, in any case.
    connections, options
        As in :func:`plan_buffer`.

    Returns
    -------
    Plan
        The smallest bottleneck rate with h >= rate_bps (eq. 10), in whole bit/s, found to one
        part in a billion. Tables: ``model`` (bottleneck_bps, connection_rate_bps, utilisation,
        loss_ratio) at 95, 100 and 105 % of it; ``simulated`` (bottleneck_bps,
        connection_rate_bps, low, high); ``curve`` (bottleneck_bps, connection_rate_bps), the
        model's, for a figure.

    Raises
    ------
    NotApplicable
        The model, or the simulation, does not cover the scenario.
    DomainError
        A rate that the path does not give however fast the bottleneck.
    """
    growth = growing(scenario, None, "plan rate")
    _check_positive(rate_bps)
    start = scenario.network.bottleneck.rate_bps
    if math.isinf(start):
        start = min(growth.total * rate_bps, LARGEST_RATE_BPS)
        scenario = scenario.with_changes({_LINK: FASTEST})
    model = _model(scenario, rate_bps, partial(_peak, scenario), "an unlimited bottleneck gives")
    plan = _plan(f"bottleneck rate for a mean rate of {_rate_text(rate_bps)}", "bit/s", rate_bps)
    plan.notes += [*_classes_note(scenario, "mean rate"), *model.notes]
    least = _least_rate(scenario)
    if model.inputs is not None:
        _rate_by_model(plan, scenario, model, rate_bps, least)
    if verify or model.nearby:
        runs = Simulations(scenario, _LINK, units.format_rate, RATE, connections, options)
        runs.read = slowest_rate
        goal = Goal(target=rate_bps, rises=True, smallest=True, least=math.ceil(least))
        fastest = (units.parse_rate(FASTEST), "an unlimited bottleneck gives")
        search = _search(runs, goal, plan, start, fastest)
        verify_by_simulation(plan, runs, search, "bottleneck_bps")
    simulated = plan.tables.get("simulated", {}).get("bottleneck_bps", ())
    links = between(_centre(plan, simulated), simulated, least=least, most=LARGEST_RATE_BPS)
    plan.tables["curve"] = curve_of(
        "bottleneck_bps",
        links,
        RATE,
        model.curve(lambda inputs, c: _at(scenario, inputs, c).rate_bps),
    )
    return plan


def plan_rate_quality(
    scenario: Scenario, *, share: float, above_bps: float, options: RunOptions | None = None
) -> Plan:
    """Return the bottleneck rate at which a share of the files comes faster than a rate.

    Parameters
    ----------
    scenario
        On/off sources. Of its bottleneck only the rate is varied.
    share, above_bps
        As in :func:`plan_quality`.
    options
        Threads and progress of the simulations.

    Returns
    -------
    Plan
        The smallest rate, by the packet engine alone. Tables: ``simulated`` (bottleneck_bps,
        goodput_bps, low, high), the goodput that the share of the files exceeds.

    Raises
    ------
    NotApplicable
        No class has on/off traffic.
    DomainError
        A share or rate outside its domain, or a goodput that no bottleneck rate gives.
    """
    start = scenario.network.bottleneck.rate_bps
    sources = growing(scenario, None, "plan rate").total
    if math.isinf(start):
        start = min(sources * above_bps, LARGEST_RATE_BPS)
        scenario = scenario.with_changes({_LINK: FASTEST})
    asked = quality(scenario, share, above_bps, "packet", plan="plan rate")
    plan = Plan(
        question=f"bottleneck rate with {asked.words}",
        value=math.nan,
        unit="bit/s",
        notes=_classes_note(scenario, "goodput"),
        target=("goodput_bps", above_bps),
    )
    runs = simulations(asked, "packet", lambda _: asked.changes(sources), options)
    runs.key, runs.text, runs.place = _LINK, units.format_rate, None
    least = math.ceil(_least_rate(scenario))
    goal = Goal(target=above_bps, rises=True, smallest=True, least=least)
    fastest = (units.parse_rate(FASTEST), f"{percent(share)} of files reach without a bottleneck")
    verify_by_simulation(plan, runs, _search(runs, goal, plan, start, fastest), "bottleneck_bps")
    simulated = plan.tables["simulated"]["bottleneck_bps"]
    links = between(_centre(plan, simulated), simulated, least=least, most=LARGEST_RATE_BPS)
    plan.tables["curve"] = curve_of("bottleneck_bps", links, "goodput_bps", lambda _: None)
    return plan


def _rate_by_model(
    plan: Plan, scenario: Scenario, model: _Model, rate_bps: float, least: float
) -> None:
    """Put the model's smallest bottleneck rate into a plan."""
    inputs = model.inputs
    assert inputs is not None
    at = partial(_at, scenario, inputs)

    def reaches(link_bps: float) -> bool:
        return at(link_bps).rate_bps >= rate_bps * (1 - ROUNDING)

    found, missed = _first_rate(reaches, least)
    value = math.ceil(found)
    rates = [round(c) for c in (value * (1 - STEP), value, value * (1 + STEP)) if c >= least]
    results = [at(c) for c in rates]
    plan.value = value
    plan.tables["model"] = _model_table("bottleneck_bps", rates, results)
    plan.warnings += model.warnings(results[rates.index(value)])
    there = {_LINK: units.format_rate(value)}
    plan.untrusted = model.nearby or disowned("engset", scenario, there)
    if missed is not None:
        text = (
            "the formula's mean rate rises in steps and falls between them: some faster links, up "
            f"to {_rate_text(missed)}, miss the target again"
        )
        plan.warnings += model_notes([text], leads=not model.nearby)
    if value <= math.ceil(least):
        plan.warnings.append(
            "a slower bottleneck would do, but there the packet alone takes the whole round-trip "
            "time of the scenario"
        )


@dataclass(frozen=True, slots=True)
class _Model:
    """Inputs of TCP-Engset for a scenario, None if it does not cover it or the target.

    ``nearby`` is the reason why the simulation answers, "" if the model does.
    """

    scenario: Scenario
    inputs: EngsetInputs | None
    nearby: str

    @property
    def notes(self) -> list[str]:
        """Return the reason for an answer without the model."""
        return [] if self.inputs is not None else [by_simulation_alone(self.nearby)]

    def warnings(self, result: EngsetResult) -> list[Note]:
        """Return the model's warnings, the least important ones if the simulation answers."""
        return model_notes(engset_warnings(self.scenario, result), leads=not self.nearby)

    def curve(
        self, rate: Callable[[EngsetInputs, float], float]
    ) -> Callable[[float], float | None]:
        """Return the rate at each value, None if there is no model."""
        inputs = self.inputs
        return lambda value: None if inputs is None else rate(inputs, value)


def _model(
    scenario: Scenario, rate_bps: float, most: Callable[[EngsetInputs], float], who: str
) -> _Model:
    """Return the model, unless it does not apply: another stack may exceed its largest rate."""
    modelled, nearby = nearest(scenario)
    try:
        inputs = engset_inputs(modelled)
    except NotApplicable as fault:
        return _Model(modelled, None, str(fault))
    peak = most(inputs)
    if rate_bps <= peak:
        return _Model(modelled, inputs, nearby)
    if not nearby:
        raise _unreached(rate_bps, who, peak)
    stack = scenario.populations[0].tcp.stack
    why = (
        f"{PRESET}, the nearest that TCP-Engset models to {stack}, gives {_rate_text(peak)} at most"
    )
    return _Model(modelled, None, why)


def _plan(question: str, unit: str, rate_bps: float) -> Plan:
    return Plan(question=question, value=math.nan, unit=unit, target=(RATE, rate_bps))


def _search(
    runs: Simulations, goal: Goal, plan: Plan, start: float, easiest: tuple[float, str]
) -> Callable[[], Found | None]:
    """Return the search from the model's answer; without one, first at the easiest value."""

    def search() -> Found | None:
        if plan.has_model:
            return solve(runs, goal, plan.value)
        value, who = easiest
        name = "above_bps" if runs.name else "rate_bps"
        alone = replace(runs, answers={})
        most = alone.measure(value)
        interval = alone.at(value)
        # A few sources have few files: without an interval their rate refuses nothing.
        if interval is not None and interval.high is not None and interval.high < goal.target:
            raise _unreached(goal.target, who, most, name)
        found = solve(runs, goal, goal.inside(start))
        simulated = filter(None, map(runs.figure, runs.answers.values()))
        most = max([most, *(metric.value for metric in simulated)])
        if found is None and most < goal.target:
            raise _unreached(goal.target, who, most, name)
        return found

    return search


def _centre(plan: Plan, simulated: Any) -> float:
    """Return the value about which the curve has points."""
    if plan.has_model:
        return plan.value
    return plan.simulated or (float(np.median(simulated)) if len(simulated) else 1.0)


def _classes_note(scenario: Scenario, figure: str) -> list[str]:
    few = len(scenario.populations) == 1
    return [] if few else [f"Of several classes, the one with the lowest {figure} counts."]


def _peak_of_one(inputs: EngsetInputs) -> float:
    return replace(inputs, sources=1).solve().rate_bps


def _peak(scenario: Scenario, inputs: EngsetInputs) -> float:
    return _at(scenario, inputs, LARGEST_RATE_BPS).rate_bps


def _at(scenario: Scenario, inputs: EngsetInputs, link_bps: float) -> EngsetResult:
    """Return the model's result with another bottleneck rate."""
    path = _path_at(scenario, inputs.path, link_bps)
    return replace(inputs, path=path, buffer_pkts=_buffer_at(scenario, path)).solve()


def _model_table(column: str, values: Sequence[float], results: Sequence[EngsetResult]) -> Table:
    losses = [math.nan if r.loss_ratio is None else r.loss_ratio for r in results]
    return {
        column: np.array(values),
        "connection_rate_bps": np.array([r.rate_bps for r in results]),
        "utilisation": np.array([r.utilisation for r in results]),
        "loss_ratio": np.array(losses),
    }


def _path_at(scenario: Scenario, path: Path, link_bps: float) -> Path:
    """Return the path with another bottleneck rate."""
    network, rtt0 = scenario.network, path.rtt0_s
    if not _round_trip_is_given(scenario):
        bits = 8 * (network.packet_bytes + network.ack_bytes)
        rtt0 += bits / link_bps - bits / path.bottleneck_bps
    return replace(path, bottleneck_bps=link_bps, rtt0_s=rtt0)


def _buffer_at(scenario: Scenario, path: Path) -> float | None:
    """Return the buffer in packets, which a bandwidth-delay product makes follow the rate."""
    buffer = scenario.network.bottleneck.buffer.packets(
        packet_bytes=scenario.network.packet_bytes,
        rate_bps=path.bottleneck_bps,
        rtt_s=path.rtt0_s,
    )
    return None if math.isinf(buffer) else buffer


def _round_trip_is_given(scenario: Scenario) -> bool:
    """Whether the scenario says its round-trip time, rather than the delays of its links."""
    given = [scenario.network.rtt, *(each.rtt for each in scenario.classes)]
    return any(rtt is not None for rtt in given)


def _least_rate(scenario: Scenario) -> float:
    """Return the slowest bottleneck that the scenario's round-trip times leave room for."""
    network = scenario.network
    if not _round_trip_is_given(scenario):
        return 1.0
    bits = 8 * (network.packet_bytes + network.ack_bytes)
    rooms = []
    for people in scenario.populations:
        own = [on.link.rate_bps for on in people.links(network)[:-1] if not on.shared]
        rooms.append(people.rtt_s - bits / min(own) - bits / people.egress.rate_bps)
    return bits / min(rooms) * (1 + ROUNDING)


def _first_rate(reaches: Callable[[float], bool], least: float) -> tuple[float, float | None]:
    """Return the smallest rate that reaches, and the largest one above it that does not, if any.

    The formula's rate is a saw-tooth: the points of the curve show where it crosses the target.
    """
    value = _smallest_rate(reaches, least)
    links = between(value, least=least, most=LARGEST_RATE_BPS)
    good = np.array([reaches(link) for link in links.tolist()])
    first = int(np.argmax(good))
    if first and links[first] < value:
        value = _bisected(reaches, float(links[first - 1]), float(links[first]))
    elif links[first] < value:
        value = float(links[0])
    missed = links[~good & (links > value)]
    return value, float(missed[-1]) if missed.size else None


def _smallest_rate(reaches: Callable[[float], bool], least: float) -> float:
    """Return a rate that reaches, next to one that does not; the largest one does."""
    low = high = least
    while not reaches(high):
        low, high = high, min(2 * high, LARGEST_RATE_BPS)
    return _bisected(reaches, low, high)


def _bisected(reaches: Callable[[float], bool], low: float, high: float) -> float:
    """Return where a rate begins to reach, between one that does not and one that does."""
    while high > low * (1 + ROUNDING):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


def _largest(reaches: Callable[[int], bool]) -> int:
    """Return the largest population that reaches; one source does, and more is never better."""
    low, high = 1, 2
    while reaches(high):
        if high == MOST_SOURCES:
            raise DomainError(
                f"rate_bps is kept even with {MOST_SOURCES:,} sources; give a higher rate"
            )
        low, high = high, min(2 * high, MOST_SOURCES)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reaches(middle) else (low, middle)
    return low


def _check_positive(rate_bps: float) -> None:
    if not rate_bps > 0:
        raise DomainError(f"rate_bps must be above 0, not {rate_bps!r}")


def _unreached(rate_bps: float, who: str, most_bps: float, name: str = "rate_bps") -> DomainError:
    return DomainError(
        f"{name} ({_rate_text(rate_bps)}) is above what {who}, {_rate_text(most_bps)}; give "
        "a lower rate, or shorten the round trip"
    )


def _rate_text(rate_bps: float) -> str:
    return units.format_rate(float(f"{rate_bps:.4g}"))
