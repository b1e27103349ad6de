"""How many users a link serves so that most of their files come faster than asked."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer import Metric
from tcpcast.engines import REGISTRY
from tcpcast.engines.formula.feed import one_class
from tcpcast.errors import DomainError, NotApplicable, UnknownEngine
from tcpcast.models.local_loop import threshold_sources
from tcpcast.plan.crossing import Point, falls_below
from tcpcast.plan.result import Plan
from tcpcast.plan.verification import (
    STEP,
    Interrupted,
    Simulations,
    verify_by_simulation,
)
from tcpcast.scenario import units
from tcpcast.scenario.traffic import MOST_SOURCES, OnOff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tcpcast.answer import Answer
    from tcpcast.engines import RunOptions
    from tcpcast.plan.result import Table
    from tcpcast.scenario import Scenario

ENGINES = ("packet", "fixed-point", "mean-field")
"""Engines that know the goodput of files."""

EXACT_SOURCES = 30_000
"""With up to so many sources at the threshold every source is simulated, if no engine is named."""

MOST_EXACT = 300_000
"""The largest population that is simulated source by source; each takes a kilobyte and more."""

SHARES = (0.95, 0.9, 0.8, 0.5)
"""Shares of the files whose goodput the curve shows beside that asked for."""

METRICS = {
    "mean_bps": "connection_rate_bps",
    "rtt_mean_s": "rtt_mean_s",
    "loss_ratio": "loss_ratio",
    "timeout_ratio": "timeout_ratio",
}
"""Columns of the curve that are metrics."""

FEWEST_FILES = 2000
"""A run of few sources is made longer, until about so many files come in it."""

RESOLUTION = 0.01
"""How narrow the search makes the bracket of the answer, as a share of it."""

CURVE = (0.25, 0.5, 0.75, 0.9, 1.1, 1.25, 1.5, 2.0)
"""Populations that the curve shows beside those of the search, over the answer."""

APART = 0.04
"""What the search simulated so near stands for a population of the curve."""

SEARCHED, VERIFIED = 4, 16
"""Replications, at the least, of each population that the search or the check simulates.

Near the threshold a population's queue goes up and down for minutes, and batches of one run tell
too little of it.
"""

NARROW = (0.2, 0.8)
"""Where in the bracket the search looks next, at the least and at the most."""

NEAR = 1.5
"""A goodput by which factor below what is asked for is soon reached with fewer sources."""


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked: that a ``share`` of all files exceed ``above_bps``; of which traffic."""

    scenario: Scenario
    traffic: OnOff
    share: float
    above_bps: float
    engine: str

    @property
    def most(self) -> int:
        """The largest population that the engine is asked for."""
        return MOST_EXACT if self.engine == "packet" else MOST_SOURCES

    @property
    def key(self) -> str:
        """Where the scenario has the number of its users."""
        people = self.scenario.populations[0].name
        return f"class.{people}.sources" if self.scenario.classes else "traffic.sources"

    @property
    def link(self) -> dict[str, float]:
        """Return C, I and B as the mean-value models take them."""
        network = self.scenario.network
        return {
            "link_pps": network.bottleneck.rate_bps / (8 * network.packet_bytes),
            "mean_off_s": self.traffic.off.mean_value(),
            "mean_size_pkts": max(1.0, self.traffic.size.mean_value()),
        }

    @property
    def threshold(self) -> float:
        """C I / B, the number of sources that would fill the link if files took no time."""
        return float(threshold_sources(**self.link))

    def read(self, found: Answer) -> Metric | None:
        """Return the goodput that the share of the files exceeds, None where none was seen."""
        table = found.tables.get("file_goodput")
        if table is None:
            return None
        (rows,) = np.nonzero(np.isclose(table["share"], self.share))
        if not rows.size or not table["goodput_bps"][rows[0]] > 0:
            return None
        value, low, high = (float(table[name][rows[0]]) for name in ("goodput_bps", "low", "high"))
        bounded = math.isfinite(low) and math.isfinite(high)
        return Metric(value, low, high) if bounded else Metric(value)

    def changes(self, sources: float, replications: int = SEARCHED) -> dict[str, Any]:
        """Return what a run of so many sources needs beside their number."""
        shares = sorted({self.share, *SHARES}, reverse=True)
        run = self.scenario.run
        found: dict[str, Any] = {
            "probes.goodput_shares": shares,
            "run.replications": max(replications, run.replications),
        }
        if run.duration_s is not None:
            warmup = run.warmup_s or 0.0
            cycles = FEWEST_FILES * self.traffic.off.mean_value() / sources
            needed = warmup + 1.2 * cycles / found["run.replications"]
            if needed > run.duration_s:
                found["run.duration"] = units.format_duration(math.ceil(needed))
        return found


def plan_quality(  # noqa: PLR0913 - what is asked, and how
    scenario: Scenario,
    *,
    share: float,
    above_bps: float,
    engine: str | None = None,
    verify: bool = False,
    options: RunOptions | None = None,
) -> Plan:
    """Return the largest population of which a share of the files comes faster than a rate.

    Parameters
    ----------
    scenario
        One class of on/off sources on a bottleneck with a rate; how many they are plays no part.
        Each population is simulated for as long as its run says, longer where that gives fewer
        than :data:`FEWEST_FILES` files, in at least :data:`SEARCHED` replications, and with the
        same seed.
    share
        Of the files, above 0 and below 1: their goodput, bits over the time from the first packet
        sent to the last one delivered, is to be above ``above_bps``.
    above_bps
        bit/s of IP packets, above 0.
    engine
        One of :data:`ENGINES`. None takes ``packet`` where the threshold C I / B is at most
        :data:`EXACT_SOURCES`, and above it ``mean-field``.
    verify
        Also simulate that population, and 5 % less and more, packet by packet, each in
        :data:`VERIFIED` replications.
    options
        Threads and progress of the simulations.

    Returns
    -------
    Plan
        The largest N, from a monotone fit to what the engine says of the populations that a search
        asks for, with the interval in which the fits to the ends of their 95 % intervals put it.
        Tables: ``curve`` (sources; load, over the threshold; share_above, of the files
        above ``above_bps``; g_95_bps and its like for each share; the mean goodput mean_bps,
        rtt_mean_s, loss_ratio, timeout_ratio);
        ``simulated`` (sources, goodput_bps, low, high). What files get is read from a fixed point
        that its tests withhold, too; the plan is ``partial`` then, and a warning says why.

    Raises
    ------
    NotApplicable
        Several classes, traffic that is not on/off, no rate; what the engine does not cover.
    UnknownEngine
        An engine that does not know the goodput of files.
    DomainError
        A share or rate outside its domain, a quality that one source alone does not have, or that
        as many as the engine is asked for still have (:data:`MOST_EXACT`, ten million).
    KeyboardInterrupt
        Broken off before anything is known. Later than that the plan has what is known, and is
        ``interrupted``.
    """
    asked = _question(scenario, share, above_bps, engine)
    runs = _runs(asked, asked.engine, asked.changes, options)
    about = _runs(asked, asked.engine, lambda sources: asked.changes(sources, 1), options)
    stopped = None
    try:
        found = _search(asked, runs)
    except Interrupted:
        found, stopped = _known(asked, runs), "the search was interrupted: more may be possible"
    try:
        _fill_curve(about, [] if stopped else CURVE, found[0], runs)
    except Interrupted:
        stopped = "interrupted before the curve was complete"
    answers = _finished({**about.answers, **runs.answers})
    plan = _plan(asked, found, answers)
    if stopped:
        plan.interrupted = True
        plan.warnings.append(stopped)
    elif verify:
        _verify(plan, asked, options)
    return plan


def _known(asked: _Question, runs: Simulations) -> tuple[int, int, int | None]:
    """Return the largest population seen to keep the quality, and the smallest that did not."""
    goodputs = {n: asked.read(found) for n, found in _finished(runs.answers).items()}
    keeps = [int(n) for n, each in goodputs.items() if each and each.value >= asked.above_bps]
    fails = [int(n) for n, each in goodputs.items() if each and each.value < asked.above_bps]
    if not keeps:
        raise KeyboardInterrupt
    return max(keeps), max(keeps), min((n for n in fails if n > max(keeps)), default=None)


def _finished(answers: dict[float, Answer]) -> dict[float, Answer]:
    return dict(sorted((n, each) for n, each in answers.items() if not each.interrupted))


def _fill_curve(about: Simulations, curve: Sequence[float], value: int, runs: Simulations) -> None:
    for times in curve:
        sources = max(1, round(times * value))
        if not any(abs(n - sources) < APART * sources for n in runs.answers):
            _try(about, sources)


def _plan(
    asked: _Question,
    found: tuple[int, int | None, int | None],
    answers: dict[float, Answer],
) -> Plan:
    value, low, high = found
    what = f"{_percent(asked.share)} of their files above {_rate(asked.above_bps)}"
    cut = [f"a simulation is not whole: {a.partial}" for a in answers.values() if a.partial]
    return Plan(
        question=f"most sources with {what}",
        value=value,
        low=low,
        high=high,
        unit="sources",
        engine=asked.engine,
        tables={"curve": _curve(asked, answers)},
        notes=_notes(asked, list(answers)),
        warnings=[*_warnings(answers.values()), *dict.fromkeys(cut)],
        partial=bool(cut),
        scenario=asked.scenario.with_changes({asked.key: value}),
    )


def _question(scenario: Scenario, share: float, above_bps: float, engine: str | None) -> _Question:
    people = one_class("plan users", scenario, "on-off")
    if math.isinf(scenario.network.bottleneck.rate_bps):
        raise NotApplicable(
            "plan users needs a link that users share; write network.bottleneck.rate"
        )
    if not 0 < share < 1:
        raise DomainError(f"share must be above 0 and below 1, not {share!r}; write 95%")
    if not (above_bps > 0 and math.isfinite(above_bps)):
        raise DomainError(f"above_bps must be above 0 and finite, not {above_bps!r}")
    assert isinstance(people.traffic, OnOff)  # one_class has seen to it
    exact = _Question(scenario, people.traffic, share, above_bps, "packet")
    return replace(exact, engine=_engine(engine, exact.threshold))


def _engine(asked: str | None, threshold: float) -> str:
    there = [name for name in ENGINES if name in REGISTRY]
    if asked is None:
        large = threshold > EXACT_SOURCES and "mean-field" in there
        return "mean-field" if large else "packet"
    if asked not in there:
        raise UnknownEngine(
            f"plan users asks an engine that knows the goodput of files, not '{asked}': "
            f"{', '.join(there)}."
        )
    return asked


def _runs(
    asked: _Question,
    engine: str,
    beside: Callable[[float], dict[str, Any]],
    options: RunOptions | None,
) -> Simulations:
    return Simulations(
        asked.scenario,
        asked.key,
        int,
        "goodput_bps",
        asked.scenario.run.connections or 0,
        options,
        engine=engine,
        read=asked.read,
        beside=beside,
    )


def _search(asked: _Question, runs: Simulations) -> tuple[int, int | None, int | None]:
    """Return the largest population that keeps the quality, and the interval that noise leaves.

    None stand for the interval of an engine whose figures have none.
    """
    low, high = _bracket(asked, runs)
    while high - low > max(1.0, RESOLUTION * low) and not _is_noise(asked, runs, low, high):
        # The goodput falls steeply at the threshold: its logarithm says where to look.
        at = [math.log(runs.measure(n) / asked.above_bps) for n in (low, high)]
        there = min(max(at[0] / (at[0] - at[1]), NARROW[0]), NARROW[1])
        middle = min(max(round(low + there * (high - low)), low + 1), high - 1)
        if runs.measure(middle) >= asked.above_bps:
            low = middle
        else:
            high = middle
    if all(point.low is None for point in _points(runs)):
        return low, None, None
    # The ends of the interval are as far out as the noise; what is there is simulated too.
    for end in _interval(asked, runs):
        _try(runs, max(1, round(end)))
    value = math.floor(falls_below(_points(runs), asked.above_bps))
    left, right = _interval(asked, runs)
    return value, min(math.floor(left), value), max(math.ceil(right), value)


def _bracket(asked: _Question, runs: Simulations) -> tuple[int, int]:
    """Return a population that keeps the quality and a larger one that does not."""
    low = start = min(max(1, round(asked.threshold)), asked.most)
    if runs.measure(start) >= asked.above_bps:
        high = _beyond(asked)
        while runs.measure(high) >= asked.above_bps:
            if high == asked.most:
                raise DomainError(_never_ends(asked))
            low, high = high, min(math.ceil(1.5 * high), asked.most)
        return low, high
    while True:
        if low == 1:
            raise DomainError(_out_of_reach(asked, runs))
        near = runs.measure(low) > asked.above_bps / NEAR
        high, low = low, max(1, low // 2 if near else low // 8)
        if runs.measure(low) >= asked.above_bps:
            return low, high


def _beyond(asked: _Question) -> int:
    """Return where the mean goodput is half of what is asked for, by equation (3) inverted."""
    half_pps = asked.above_bps / 2 / (8 * asked.scenario.network.packet_bytes)
    link = asked.link
    excess = link["mean_size_pkts"] / (half_pps * link["mean_off_s"])
    return math.ceil(min(max(asked.threshold * (1 + excess), 2), asked.most))


def _never_ends(asked: _Question) -> str:
    other = ", or for --engine mean-field, which goes beyond" if asked.engine == "packet" else ""
    return (
        f"{_percent(asked.share)} of the files exceed {_rate(asked.above_bps)} even with "
        f"{asked.most} sources; ask for a higher rate{other}"
    )


def _out_of_reach(asked: _Question, runs: Simulations) -> str:
    return (
        f"{_percent(asked.share)} of the files do not exceed {_rate(asked.above_bps)} even with "
        f"one source alone: they exceed {_rate(runs.measure(1))}, and "
        f"{_percent(_share_above(runs.answers[1], asked.above_bps))} of them what is asked; ask "
        "for a lower rate or for fewer of the files (small ones end in slow start), or shorten the "
        "round trip"
    )


def _is_noise(asked: _Question, runs: Simulations, *sources: int) -> bool:
    """Whether the intervals of all these populations hold the rate asked for."""
    found = [runs.figure(runs.answers[n]) for n in sources]
    return all(
        metric is not None
        and metric.low is not None
        and metric.high is not None
        and metric.low <= asked.above_bps <= metric.high
        for metric in found
    )


def _try(runs: Simulations, sources: int) -> None:
    """Simulate a population for the curve; what cannot be told of it is left out."""
    try:
        runs.measure(min(sources, MOST_SOURCES))
    except NotApplicable:
        return


def _points(runs: Simulations) -> list[Point]:
    found = {n: runs.figure(answer) for n, answer in sorted(runs.answers.items())}
    return [
        Point(n, metric.value, metric.low, metric.high)
        for n, metric in found.items()
        if metric is not None
    ]


def _interval(asked: _Question, runs: Simulations) -> tuple[float, float]:
    points = _points(runs)
    ends = [[point.at(end) for point in points] for end in ("low", "high")]
    first, last = (falls_below(each, asked.above_bps) for each in ends)
    return first, last


def _curve(asked: _Question, said: dict[float, Answer]) -> Table:
    told = {n: each for n, each in said.items() if asked.read(each) is not None}
    sources = np.array(list(told), dtype=np.int64)
    answers = list(told.values())
    above = [_share_above(each, asked.above_bps) for each in answers]
    found: Table = {
        "sources": sources,
        "load": sources / asked.threshold,
        "share_above": np.array(above),
    }
    shares = answers[0].tables["file_goodput"]["share"]
    for at, share in enumerate(shares.tolist()):
        exceeded = [each.tables["file_goodput"]["goodput_bps"][at] for each in answers]
        found[f"g_{100 * share:.4g}_bps"] = np.array(exceeded, dtype=np.float64)
    for column, name in METRICS.items():
        metrics = (each.metrics.get(name) for each in answers)
        found[column] = np.array([math.nan if m is None else m.value for m in metrics])
    return found


def _share_above(found: Answer, above_bps: float) -> float:
    """Return the share of the files above a rate, between the rates of the table."""
    tail = found.tables.get("file_goodput_tail")
    if tail is None:
        return math.nan
    return float(np.interp(math.log(above_bps), np.log(tail["goodput_bps"]), tail["by_file"]))


def _notes(asked: _Question, populations: list[float]) -> list[str]:
    link = asked.link
    return [
        f"{asked.engine} answered for {len(populations)} populations from {populations[0]:,.0f} to "
        f"{populations[-1]:,.0f}, all with seed {asked.scenario.run.seed}; between them a fit that "
        "never rises. The interval is where the ends of their 95 % intervals put the answer.",
        "Goodput of a file: its IP bits over the time from the first packet sent to the last one "
        f"delivered. g {100 * asked.share:.4g}: what {_percent(asked.share)} of the files exceed; "
        "mean: bits of all files over all their time; share above: of the files, above "
        f"{_rate(asked.above_bps)}.",
        f"The load is over the threshold C I / B = {asked.threshold:,.0f}: {link['link_pps']:,.0f} "
        f"packets/s x {link['mean_off_s']:.4g} s / {link['mean_size_pkts']:.4g} packets.",
    ]


def _warnings(answers: Iterable[Answer]) -> list[str]:
    """Return what bears on the goodput, once for all populations."""
    said = dict.fromkeys(warning for each in answers for warning in each.warnings)
    return [text for text in said if "goodput" in text or "MSER" in text]


def _verify(plan: Plan, asked: _Question, options: RunOptions | None) -> None:
    runs = _runs(asked, "packet", lambda sources: asked.changes(sources, VERIFIED), options)
    value = round(plan.value)
    step = max(1, round(STEP * value))
    tried = [n for n in (value - step, value, value + step) if n >= 1]
    verify_by_simulation(plan, runs, lambda: runs.crossing(tried, asked.above_bps), "sources")


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"


def _rate(rate_bps: float) -> str:
    return units.format_rate(float(f"{rate_bps:.4g}"))
