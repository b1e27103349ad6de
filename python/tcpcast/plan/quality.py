"""Number of users of a link for which a share of the files has a minimum goodput."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tcpcast import units
from tcpcast.answer import Metric
from tcpcast.plan.curve_table import make_float_column
from tcpcast.plan.planned_path import MAX_PACKETS, can_afford_simulation, percent_text
from tcpcast.plan.population_search import (
    MAX_EXACT_SOURCES,
    VERIFICATION_REPLICATIONS,
    FileGoodputTarget,
    get_exceeded_goodputs,
    make_file_goodput_target,
    result_of_stopped_search,
    search_largest_population,
    share_of_files_above,
)
from tcpcast.plan.questions import SEARCH_REPLICATIONS
from tcpcast.plan.search import search_from_start, simulate_if_possible
from tcpcast.plan.verification import (
    CURVE_STEP,
    SimulationStopped,
    merge_run_warnings,
    note_excess_scatter,
    undecided_reason,
    verify_by_simulation,
    with_plan_deadline,
)
from tcpcast.readable_units import rate_text
from tcpcast.scenario.traffic import MAX_SOURCES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.answer import Answer
    from tcpcast.engines import RunOptions
    from tcpcast.plan.result import Plan, Table
    from tcpcast.plan.search import SearchResult
    from tcpcast.plan.verification import PlanSimulations
    from tcpcast.scenario import Scenario

CURVE_METRICS = {
    "mean_bps": "connection_rate_bps",
    "rtt_mean_s": "rtt_mean_s",
    "loss_ratio": "loss_ratio",
    "timeout_ratio": "timeout_ratio",
}
"""Columns of the curve that contain metrics."""

CURVE_QUANTITIES = ("file_goodput", *CURVE_METRICS.values())
"""Metrics and tables of the answers that the curve shows."""

CURVE_FACTORS = (0.25, 0.5, 0.75, 0.9, 1.1, 1.25, 1.5, 2.0)
"""Additional populations of the curve, relative to the answer."""

_UNKNOWN_METRIC = Metric(math.nan)

POPULATION_TOLERANCE = 0.04
"""Relative distance within which a population of the search replaces one of the curve."""


def plan_quality(  # noqa: PLR0913 - parameters of the question and of the search
    scenario: Scenario,
    *,
    share: float,
    above_bps: float,
    grows: str | None = None,
    engine: str | None = None,
    verify: bool = False,
    options: RunOptions | None = None,
) -> Plan:
    """Return the largest population in which a share of the files exceeds a goodput.

    Parameters
    ----------
    scenario
        On/off sources, whose number is ignored, on a bottleneck with a rate. Each population has
        another seed and at least :data:`SEARCH_REPLICATIONS` replications. Runs last as long as
        in the scenario, or longer if their replications would otherwise contain fewer than
        :data:`MIN_FILES` files in total. ``run.max_wall`` limits the total time of all simulations.
    share
        Share of the files, above 0 and below 1, whose goodput must exceed ``above_bps``. The
        goodput is the number of bits divided by the time from the first packet sent to the last
        packet delivered.
    above_bps
        Minimum goodput, bit/s of IP packets, above 0.
    grows
        As in :func:`plan_users`; the class with the slowest files must meet the target.
    engine
        One of :data:`ENGINES`. None selects ``packet`` if the threshold C I / B is at most
        :data:`EXACT_SOURCES`, otherwise ``mean-field``.
    verify
        Also search the population with the packet engine, starting from the answer, and simulate
        the result, each in :data:`VERIFICATION_REPLICATIONS` replications. The number is reduced,
        down to :data:`SEARCH_REPLICATIONS`, if three populations would exceed
        :data:`MAX_PACKETS` packets. If that is not enough, the check is omitted with a warning.
    options
        Threads and progress of the simulations.

    Returns
    -------
    Plan
        The largest N from a fit to the nearby simulated populations, and the interval in
        which the answer lies with 95 % probability with other seeds.
        Tables: ``curve`` (sources; load, relative to the threshold; share_above, the share of the
        files above ``above_bps``; g_95_bps and so on, the goodput for each share; the mean goodput
        mean_bps; rtt_mean_s, loss_ratio, timeout_ratio); ``curve_intervals``, the limits of their
        95 % intervals, ``mean_bps_low`` and so on;
        ``simulated`` (sources, goodput_bps, low, high). Populations whose fixed point does not
        converge are omitted from the curve, with a warning.

    Raises
    ------
    NotApplicable
        The traffic is not on/off, the link has no rate, the engine does not cover the scenario,
        the fixed point of a population in the search does not converge, or ``run.max_wall`` was
        reached before the first result. If it is reached after the first result, the plan contains
        the results so far and is ``incomplete``.
    UnknownEngine
        The engine does not compute the goodput of files.
    DomainError
        The share or rate is outside its domain, a single source misses the target, or the largest
        population of the engine (:data:`MAX_EXACT_SOURCES`, or ten million) still meets it.
    KeyboardInterrupt
        Interrupted before the first result. After the first result, an interrupt returns the
        results so far; the plan is ``interrupted``.
    """
    target = make_file_goodput_target(scenario, share, above_bps, engine, grows=grows)
    options = with_plan_deadline(options, scenario)
    runs = target.simulations(target.changes, options, target.engine)
    curve_runs = target.simulations(
        lambda sources: target.changes(sources, 1), options, target.engine
    )
    stopped, message = None, ""
    try:
        result = search_largest_population(target, runs)
    except SimulationStopped as stop:
        result = result_of_stopped_search(target, runs, stop)
        stopped, message = stop, f"{stop.reason('the search')}; more sources may be possible"
    at_least = stopped is not None
    try:
        _simulate_curve_points(curve_runs, [] if stopped else CURVE_FACTORS, result.value, runs)
    except SimulationStopped as stop:
        stopped, message = stop, stop.reason("the curve")
    plan = _make_plan(
        target, result, dict(sorted((curve_runs.finished_answers | runs.finished_answers).items()))
    )
    plan.at_least = at_least
    if result.undecided and not stopped:
        plan.undecided = True
        plan.warnings.insert(0, "undecided: " + undecided_reason(runs, result))
    if stopped:
        plan.bracket = runs.bracket() if at_least else None
        plan.interrupted = stopped.interrupted
        plan.incomplete |= not stopped.interrupted
        plan.warnings.insert(0, message)
    elif verify:
        _verify_by_exact_simulation(plan, target, options)
    return plan


def _simulate_curve_points(
    curve_runs: PlanSimulations, factors: Sequence[float], value: float, runs: PlanSimulations
) -> None:
    for times in factors:
        sources = max(1, round(times * value))
        if not any(abs(n - sources) < POPULATION_TOLERANCE * sources for n in runs.answers):
            simulate_if_possible(curve_runs, min(sources, MAX_SOURCES))


def _make_plan(
    target: FileGoodputTarget, result: SearchResult, answers: dict[float, Answer]
) -> Plan:
    known_answers = {n: each for n, each in answers.items() if target.read(each) is not None}
    return replace(
        target.question.plan(),
        headings={"curve": "File goodput by the number of sources", "curve_intervals": ""},
        value=result.value,
        low=result.low,
        high=result.high,
        engine=target.engine,
        metric=target.question.metric,
        quantity=target.question.quantity,
        metric_at_value=result.metric,
        fit_runs=result.fit_runs,
        tables=_goodput_curve_table(target, known_answers),
        notes=[*_make_notes(target, list(known_answers)), *note_excess_scatter(result)],
        warnings=[
            *merge_run_warnings(answers.values(), CURVE_QUANTITIES),
            *_warn_about_incomplete_runs(answers, result.value),
        ],
        incomplete=any(each.incomplete_reason for each in known_answers.values()),
        recommendation="" if result.undecided else target.varied.text(result.value),
        scenario=None
        if result.undecided
        else target.scenario.with_changes(target.varied.changes(result.value)),
    )


def _goodput_curve_table(
    target: FileGoodputTarget, known_answers: dict[float, Answer]
) -> dict[str, Table]:
    """Return the curve and the limits of its 95 % intervals; NaN if there are none."""
    sources, answers = np.array(list(known_answers), dtype=np.int64), list(known_answers.values())
    curve: Table = {"sources": sources, "load": sources / target.threshold_sources}
    intervals: Table = {"sources": sources}
    if len(target.scenario.populations) == 1:
        above = [share_of_files_above(each, target.above_bps) for each in answers]
        curve["share_above"] = np.array(above)
    metrics = {
        column: [each.metrics.get(name, _UNKNOWN_METRIC) for each in answers]
        for column, name in CURVE_METRICS.items()
    }
    for column, points in {**_goodput_columns(answers), **metrics}.items():
        curve[column] = make_float_column(metric.value for metric in points)
        for end in ("low", "high"):
            intervals[f"{column}_{end}"] = make_float_column(getattr(m, end) for m in points)
    return {"curve": curve, "curve_intervals": intervals}


def _goodput_columns(answers: list[Answer]) -> dict[str, list[Metric]]:
    """Return the goodput that each share of the files reaches, by column of the curve."""
    tables = [get_exceeded_goodputs(each) or {} for each in answers]
    return {
        f"g_{100 * share:.4g}_bps": [
            Metric(
                *(table[name][index] for name in ("goodput_bps", "low", "high") if name in table)
            )
            for table in tables
        ]
        for index, share in enumerate(tables[0]["share"].tolist())
    }


def _make_notes(target: FileGoodputTarget, populations: list[float]) -> list[str]:
    link = target.model_inputs
    others = ["cross traffic"] if target.scenario.cross else []
    others += ["classes of constant size"] if target.varied.others else []
    outside = f"; {' and '.join(others)} not included" if others else ""
    mean = len(target.scenario.populations) == 1
    above = f"share above: share of the files above {rate_text(target.above_bps)}"
    return [
        f"{target.engine} simulated {len(populations)} populations from {populations[0]:,.0f} "
        f"to {populations[-1]:,.0f} sources, each with another seed. The answer is from a curve "
        "that is fitted to the populations near it. With other seeds, the answer lies in the "
        "stated range with 95 % probability.",
        "Goodput of a file: its IP bits / time from the first packet sent to the last packet "
        f"delivered. g {100 * target.share:.4g}: goodput that {percent_text(target.share)} of "
        f"the {target.files_text} reach; mean: bits of all files / their total "
        f"time{f'; {above}' if mean else ''}.",
        f"The load is the number of sources / the threshold of {target.threshold_sources:,.0f} "
        f"sources (link rate {link['link_pps']:,.0f} packets/s x mean OFF time "
        f"{units.digits(link['mean_off_s'])} s / mean file size "
        f"{units.digits(link['mean_size_pkts'])} packets){outside}.",
        *target.varied.notes("goodput"),
    ]


def _warn_about_incomplete_runs(answers: dict[float, Answer], value: float) -> list[str]:
    """Return a warning: the incomplete populations, and the reason for the one near ``value``."""
    partial = [n for n, each in answers.items() if each.incomplete_reason]
    if not partial:
        return []
    nearest = min(partial, key=lambda n: abs(n - value))
    first, last = (", ".join(f"{n:,.0f}" for n in some) for some in (partial[:-1], partial[-1:]))
    which = f"; with {nearest:,.0f} sources, the reason is" if first else ""
    return [
        f"no complete answer with {first and f'{first} and '}{last} sources{which}: "
        f"{answers[nearest].incomplete_reason}"
    ]


def _verify_by_exact_simulation(plan: Plan, target: FileGoodputTarget, options: RunOptions) -> None:
    value = round(plan.value)
    step = max(1, round(CURVE_STEP * value))
    tried = [n for n in (value - step, value, value + step) if n >= 1]
    replications = _affordable_replications(plan, target, tried)
    if replications is None:
        return
    runs = target.simulations(lambda n: target.changes(n, replications), options)
    verify_by_simulation(plan, runs, lambda: search_from_start(runs, target.search_goal, value))
    plan.notes.append(
        "Every source is simulated, packet by packet. Each population is simulated "
        f"{replications} times."
    )


def _affordable_replications(
    plan: Plan, target: FileGoodputTarget, tried: Sequence[int]
) -> int | None:
    """Return the affordable replications per population, or None with a warning."""
    if max(tried) > MAX_EXACT_SOURCES:
        plan.warnings.append(
            f"not checked by simulation: a check simulates at most {MAX_EXACT_SOURCES:,} sources; "
            "for fewer sources, reduce the rate and the buffer of the link"
        )
        return None
    minimum = max(SEARCH_REPLICATIONS, target.scenario.run.replications)
    packets = sum(target.estimate_packets(n) for n in tried)
    instead = "write a shorter run.duration, or a slower link with a smaller buffer"
    if not can_afford_simulation(plan, minimum * packets, instead):
        return None
    return max(minimum, min(VERIFICATION_REPLICATIONS, math.floor(MAX_PACKETS / packets)))
