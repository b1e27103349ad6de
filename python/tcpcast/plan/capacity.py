"""How many users a link serves at a mean rate, and what link a population needs for one."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tcpcast import units
from tcpcast.engines.formula.engset import engset_inputs, engset_warnings
from tcpcast.errors import DomainError
from tcpcast.plan.curve import between, curve_of, whole
from tcpcast.plan.nearest import nearest
from tcpcast.plan.result import Plan
from tcpcast.plan.search import Goal, solve
from tcpcast.plan.trust import disowned
from tcpcast.plan.verification import STEP, VERIFY_CONNECTIONS, Simulations, verify_by_simulation
from tcpcast.scenario.traffic import MOST_SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcpcast.engines import RunOptions
    from tcpcast.models.engset import EngsetResult, Path
    from tcpcast.plan.result import Table
    from tcpcast.scenario import Scenario

LARGEST_RATE_BPS = 1e15
_LINK = "network.bottleneck.rate"

ROUNDING = 1e-9


def plan_users(
    scenario: Scenario,
    *,
    rate_bps: float,
    verify: bool = False,
    connections: int = VERIFY_CONNECTIONS,
    options: RunOptions | None = None,
) -> Plan:
    """Return the largest population whose connections keep a mean rate.

    Parameters
    ----------
    scenario
        On/off sources, as the ``engset`` engine takes them; how many they are plays no part.
    rate_bps
        The mean connection rate to keep, bit/s, above 0.
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
    modelled, nearby = nearest(scenario)
    inputs = engset_inputs(modelled)
    peak = replace(inputs, sources=1).solve().rate_bps
    _check_rate(rate_bps, peak, "one source alone gets")
    value = _largest(
        lambda n: replace(inputs, sources=n).solve().rate_bps >= rate_bps * (1 - ROUNDING)
    )
    sources = [n for n in (value - 1, value, value + 1) if n >= 1]
    results = [replace(inputs, sources=n).solve() for n in sources]
    people = scenario.populations[0].name
    key = f"class.{people}.sources" if scenario.classes else "traffic.sources"
    plan = Plan(
        question=f"most sources at a mean rate of {_rate_text(rate_bps)}",
        value=value,
        unit="sources",
        tables={"model": _model_table("sources", sources, results)},
        warnings=engset_warnings(modelled, results[sources.index(value)]),
        untrusted=nearby or disowned("engset", scenario, {key: value}),
        target=("connection_rate_bps", rate_bps),
    )
    if verify or nearby:
        runs = Simulations(scenario, key, int, "connection_rate_bps", connections, options)
        goal = Goal(target=rate_bps, most=MOST_SOURCES)
        verify_by_simulation(plan, runs, lambda: solve(runs, goal, value), "sources")
    simulated = plan.tables.get("simulated", {}).get("sources", ())
    plan.tables["curve"] = curve_of(
        "sources",
        whole(between(value, simulated, most=MOST_SOURCES)),
        "connection_rate_bps",
        lambda n: replace(inputs, sources=int(n)).solve().rate_bps,
    )
    return plan


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
        On/off sources, as the ``engset`` engine takes them. Of its bottleneck only the rate is
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
    if math.isinf(scenario.network.bottleneck.rate_bps):
        scenario = scenario.with_changes({"network.bottleneck.rate": "1000gbit"})
    modelled, nearby = nearest(scenario)
    inputs = engset_inputs(modelled)

    def at(link_bps: float) -> EngsetResult:
        path = _path_at(scenario, inputs.path, link_bps)
        return replace(inputs, path=path, buffer_pkts=_buffer_at(scenario, path)).solve()

    ceiling = at(LARGEST_RATE_BPS).rate_bps
    _check_rate(rate_bps, ceiling, "an unlimited bottleneck gives")
    least = _least_rate(scenario, inputs.path)
    value = math.ceil(_smallest_rate(lambda c: at(c).rate_bps >= rate_bps * (1 - ROUNDING), least))
    rates = [round(c) for c in (value * (1 - STEP), value, value * (1 + STEP)) if c >= least]
    results = [at(c) for c in rates]
    plan = Plan(
        question=f"bottleneck rate for a mean rate of {_rate_text(rate_bps)}",
        value=value,
        unit="bit/s",
        tables={"model": _model_table("bottleneck_bps", rates, results)},
        warnings=engset_warnings(modelled, results[rates.index(value)]),
        untrusted=nearby or disowned("engset", scenario, {_LINK: units.format_rate(value)}),
        target=("connection_rate_bps", rate_bps),
    )
    if value <= math.ceil(least):
        plan.warnings.append(
            "a slower bottleneck would do, but there the packet alone takes the whole round-trip "
            "time of the scenario"
        )
    if verify or nearby:
        metric = "connection_rate_bps"
        runs = Simulations(scenario, _LINK, units.format_rate, metric, connections, options)
        goal = Goal(target=rate_bps, rises=True, smallest=True, least=math.ceil(least))
        verify_by_simulation(plan, runs, lambda: solve(runs, goal, value), "bottleneck_bps")
    simulated = plan.tables.get("simulated", {}).get("bottleneck_bps", ())
    links = between(value, simulated, least=least, most=LARGEST_RATE_BPS)
    plan.tables["curve"] = curve_of(
        "bottleneck_bps", links, "connection_rate_bps", lambda c: at(c).rate_bps
    )
    return plan


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


def _least_rate(scenario: Scenario, path: Path) -> float:
    """Return the slowest bottleneck that the scenario's round-trip time leaves room for."""
    network = scenario.network
    if not _round_trip_is_given(scenario):
        return 1.0
    bits = 8 * (network.packet_bytes + network.ack_bytes)
    room = path.rtt0_s - bits / path.ingress_bps - bits / path.egress_bps
    return bits / room * (1 + ROUNDING)


def _smallest_rate(reaches: Callable[[float], bool], least: float) -> float:
    """Return the smallest rate that reaches; the largest one does."""
    high = least
    while not reaches(high):
        low, high = high, min(2 * high, LARGEST_RATE_BPS)
    if high == least:
        return least
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


def _check_rate(rate_bps: float, most_bps: float, who: str) -> None:
    if not rate_bps > 0:
        raise DomainError(f"rate_bps must be above 0, not {rate_bps!r}")
    if rate_bps > most_bps:
        raise DomainError(
            f"rate_bps ({_rate_text(rate_bps)}) is above what {who}, {_rate_text(most_bps)}; give "
            "a lower rate, or shorten the round trip"
        )


def _rate_text(rate_bps: float) -> str:
    return units.format_rate(float(f"{rate_bps:.4g}"))
