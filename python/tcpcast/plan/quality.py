"""How many users a link serves so that most of their files come faster than asked."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tcpcast import units
from tcpcast.answer import Metric
from tcpcast.plan.path import MOST_PACKETS, percent, rate_text, small_enough
from tcpcast.plan.population import (
    MOST_EXACT,
    SEARCHED,
    VERIFIED,
    Quality,
    known,
    lowest_goodputs,
    quality,
    search,
    share_above,
)
from tcpcast.plan.search import attempt, solve
from tcpcast.plan.verification import (
    STEP,
    Stopped,
    bounded,
    run_warnings,
    scatter_notes,
    undecided,
    verify_by_simulation,
)
from tcpcast.scenario.traffic import MOST_SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tcpcast.answer import Answer
    from tcpcast.engines import RunOptions
    from tcpcast.plan.result import Plan, Table
    from tcpcast.plan.search import Found
    from tcpcast.plan.verification import Simulations
    from tcpcast.scenario import Scenario

METRICS = {
    "mean_bps": "connection_rate_bps",
    "rtt_mean_s": "rtt_mean_s",
    "loss_ratio": "loss_ratio",
    "timeout_ratio": "timeout_ratio",
}
"""Columns of the curve that are metrics."""

SHOWN = ("file_goodput", *METRICS.values())
"""Metrics and tables of the answers that the curve shows."""

CURVE = (0.25, 0.5, 0.75, 0.9, 1.1, 1.25, 1.5, 2.0)
"""Populations that the curve shows beside those of the search, over the answer."""

_UNKNOWN = Metric(math.nan)

APART = 0.04
"""What the search simulated so near stands for a population of the curve."""


def plan_quality(  # noqa: PLR0913 - what is asked, and how
    scenario: Scenario,
    *,
    share: float,
    above_bps: float,
    grows: str | None = None,
    engine: str | None = None,
    verify: bool = False,
    options: RunOptions | None = None,
) -> Plan:
    """Return the largest population of which a share of the files comes faster than a rate.

    Parameters
    ----------
    scenario
        On/off sources on a bottleneck with a rate; how many they are plays no part.
        Each population is simulated for as long as its run says, longer where that gives fewer
        than :data:`MIN_FILES` files, in at least :data:`SEARCHED` replications, each
        population with another seed. All simulations together end when its ``run.max_wall`` ends.
    share
        Of the files, above 0 and below 1: their goodput, bits over the time from the first packet
        sent to the last one delivered, is to be above ``above_bps``.
    above_bps
        bit/s of IP packets, above 0.
    grows
        As in :func:`plan_users`; the class whose files are slowest has to keep the target.
    engine
        One of :data:`ENGINES`. None takes ``packet`` where the threshold C I / B is at most
        :data:`EXACT_SOURCES`, and above it ``mean-field``.
    verify
        Also search the population packet by packet, from that one, each in :data:`VERIFIED`
        replications, and simulate the one that is found; in fewer, down to :data:`SEARCHED`, where
        three populations would be more than :data:`MOST_PACKETS` packets, and not at all where
        those would be, with a warning.
    options
        Threads and progress of the simulations.

    Returns
    -------
    Plan
        The largest N, from a fit to the simulated populations about it, and the interval that
        contains the answers of other seeds at 95 %.
        Tables: ``curve`` (sources; load, over the threshold; share_above, of the files
        above ``above_bps``; g_95_bps and its like for each share; the mean goodput mean_bps,
        rtt_mean_s, loss_ratio, timeout_ratio); ``curve_intervals``, the ends of their 95 %
        intervals, ``mean_bps_low`` and so on;
        ``simulated`` (sources, goodput_bps, low, high). Populations whose fixed point its tests
        withhold are left out of the curve, with a warning.

    Raises
    ------
    NotApplicable
        Traffic that is not on/off, no rate; what the engine does not cover; a
        fixed point that its tests withhold, of a population that the search needs;
        ``run.max_wall`` reached before anything is known. Later than that the plan has what is
        known, and is ``incomplete``.
    UnknownEngine
        An engine that does not know the goodput of files.
    DomainError
        A share or rate outside its domain, a quality that one source alone does not have, or that
        as many as the engine is asked for still have (:data:`MOST_EXACT`, ten million).
    KeyboardInterrupt
        Broken off before anything is known. Later than that the plan has what is known, and is
        ``interrupted``.
    """
    asked = quality(scenario, share, above_bps, engine, grows=grows)
    options = bounded(options, scenario)
    runs = asked.simulations(asked.changes, options, asked.engine)
    about = asked.simulations(lambda sources: asked.changes(sources, 1), options, asked.engine)
    stopped, said, at_least = None, "", False
    try:
        found = search(asked, runs)
    except Stopped as stop:
        found = known(asked, runs, stop)
        stopped, said, at_least = stop, f"{stop.told('the search')}: more may be possible", True
    try:
        _fill_curve(about, [] if stopped else CURVE, found.value, runs)
    except Stopped as stop:
        stopped, said = stop, stop.told("the curve")
    plan = _plan(asked, found, dict(sorted((about.finished | runs.finished).items())))
    plan.at_least = at_least
    if found.undecided and not stopped:
        plan.undecided = True
        plan.warnings.insert(0, "undecided: " + undecided(runs, found))
    if stopped:
        plan.interrupted = stopped.interrupted
        plan.incomplete |= not stopped.interrupted
        plan.warnings.insert(0, said)
    elif verify:
        _verify(plan, asked, options)
    return plan


def _fill_curve(
    about: Simulations, curve: Sequence[float], value: float, runs: Simulations
) -> None:
    for times in curve:
        sources = max(1, round(times * value))
        if not any(abs(n - sources) < APART * sources for n in runs.answers):
            attempt(about, min(sources, MOST_SOURCES))


def _plan(asked: Quality, found: Found, answers: dict[float, Answer]) -> Plan:
    told = {n: each for n, each in answers.items() if asked.read(each) is not None}
    return replace(
        asked.question.plan(),
        value=found.value,
        low=found.low,
        high=found.high,
        engine=asked.engine,
        metric=asked.question.metric,
        figure=asked.question.figure,
        reached=found.there,
        runs=found.fitted,
        tables=_curve(asked, told),
        notes=[*_notes(asked, list(told)), *scatter_notes(found)],
        warnings=[*run_warnings(answers.values(), SHOWN), *_not_whole(answers, found.value)],
        incomplete=any(each.incomplete_reason for each in told.values()),
        recommendation="" if found.undecided else asked.growth.text(found.value),
        scenario=None
        if found.undecided
        else asked.scenario.with_changes(asked.growth.changes(found.value)),
    )


def _curve(asked: Quality, told: dict[float, Answer]) -> dict[str, Table]:
    """Return the curve, and both ends of its 95 % intervals, NaN where there is none."""
    sources, answers = np.array(list(told), dtype=np.int64), list(told.values())
    curve: Table = {"sources": sources, "load": sources / asked.threshold}
    intervals: Table = {"sources": sources}
    if len(asked.scenario.populations) == 1:
        above = [share_above(each, asked.above_bps) for each in answers]
        curve["share_above"] = np.array(above)
    metrics = {
        column: [each.metrics.get(name, _UNKNOWN) for each in answers]
        for column, name in METRICS.items()
    }
    for column, found in {**_goodputs(answers), **metrics}.items():
        curve[column] = _floats(metric.value for metric in found)
        intervals[f"{column}_low"] = _floats(metric.low for metric in found)
        intervals[f"{column}_high"] = _floats(metric.high for metric in found)
    return {"curve": curve, "curve_intervals": intervals}


def _goodputs(answers: list[Answer]) -> dict[str, list[Metric]]:
    """Return the goodput that each share of the files reaches, by the curve's column."""
    tables = [lowest_goodputs(each) or {} for each in answers]
    return {
        f"g_{100 * share:.4g}_bps": [
            Metric(*(table[name][at] for name in ("goodput_bps", "low", "high") if name in table))
            for table in tables
        ]
        for at, share in enumerate(tables[0]["share"].tolist())
    }


def _floats(values: Iterable[float | None]) -> NDArray[np.float64]:
    return np.array([math.nan if v is None else v for v in values], dtype=np.float64)


def _notes(asked: Quality, populations: list[float]) -> list[str]:
    link = asked.link
    others = ["cross traffic"] if asked.scenario.cross else []
    others += ["classes that stay"] if asked.growth.others else []
    outside = f"; {' and '.join(others)} not included" if others else ""
    mean = len(asked.scenario.populations) == 1
    above = f"share above: of the files, above {rate_text(asked.above_bps)}"
    return [
        f"{asked.engine} simulated {len(populations)} populations from {populations[0]:,.0f} to "
        f"{populations[-1]:,.0f}, each with another seed. A curve is fitted to those about the "
        "answer; the range contains the answers of other seeds at 95 %.",
        "Goodput of a file: its IP bits over the time from the first packet sent to the last one "
        f"delivered. g {100 * asked.share:.4g}: {percent(asked.share)} of the files reach it; "
        f"mean: bits of all files over all their time{f'; {above}' if mean else ''}.",
        f"The load is relative to the threshold C I / B = {asked.threshold:,.0f}: "
        f"{link['link_pps']:,.0f} packets/s x {units.digits(link['mean_off_s'])} s / "
        f"{units.digits(link['mean_size_pkts'])} packets{outside}.",
        *asked.growth.notes("goodput"),
    ]


def _not_whole(answers: dict[float, Answer], value: float) -> list[str]:
    """Say which populations have no whole answer, and why the nearest to ``value`` has none."""
    partial = [n for n, each in answers.items() if each.incomplete_reason]
    if not partial:
        return []
    nearest = min(partial, key=lambda n: abs(n - value))
    first, last = (", ".join(f"{n:,.0f}" for n in some) for some in (partial[:-1], partial[-1:]))
    which = f"; with {nearest:,.0f}" if first else ""
    return [
        f"no complete answer with {first and f'{first} and '}{last} sources{which}: "
        f"{answers[nearest].incomplete_reason}"
    ]


def _verify(plan: Plan, asked: Quality, options: RunOptions) -> None:
    value = round(plan.value)
    step = max(1, round(STEP * value))
    tried = [n for n in (value - step, value, value + step) if n >= 1]
    replications = _affordable(plan, asked, tried)
    if replications is None:
        return
    runs = asked.simulations(lambda n: asked.changes(n, replications), options)
    verify_by_simulation(plan, runs, lambda: solve(runs, asked.goal, value))
    plan.notes.append(
        f"Simulated: every source, packet by packet, each population {replications} times."
    )


def _affordable(plan: Plan, asked: Quality, tried: Sequence[int]) -> int | None:
    """Return how often each population may be simulated; None, and a warning, if not at all."""
    if max(tried) > MOST_EXACT:
        plan.warnings.append(
            f"not checked by simulation: at most {MOST_EXACT:,} sources are simulated one by one; "
            "check a slower link with a smaller buffer, which fewer fill"
        )
        return None
    fewest = max(SEARCHED, asked.scenario.run.replications)
    packets = sum(asked.packets(n) for n in tried)
    instead = "write a shorter run.duration, or check a slower link with a smaller buffer"
    if not small_enough(plan, fewest * packets, instead):
        return None
    return max(fewest, min(VERIFIED, math.floor(MOST_PACKETS / packets)))
