"""The search for the largest population of which a share of the files is fast enough."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast import units
from tcpcast.answer import Metric
from tcpcast.engines import REGISTRY
from tcpcast.errors import DomainError, NotApplicable, UnknownEngine
from tcpcast.models.local_loop import threshold_sources
from tcpcast.plan.growth import growing
from tcpcast.plan.path import percent, rate_text
from tcpcast.plan.question import Question
from tcpcast.plan.search import Found, Goal, solve_between
from tcpcast.plan.verification import Simulations
from tcpcast.scenario.traffic import MOST_SOURCES, OnOff

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.answer import Answer
    from tcpcast.engines import RunOptions
    from tcpcast.plan.growth import Growth
    from tcpcast.plan.result import Table
    from tcpcast.plan.verification import Stopped
    from tcpcast.scenario import Scenario

ENGINES = ("packet", "fixed-point", "mean-field")
"""Engines that know the goodput of files."""

EXACT_SOURCES = 30_000
"""With up to so many sources at the threshold every source is simulated, if no engine is named."""

MOST_EXACT = 300_000
"""The largest population that is simulated source by source; each takes a kilobyte and more."""

SHARES = (0.95, 0.9, 0.8, 0.5)
"""Shares of the files whose goodput the curve shows beside that asked for."""

MIN_FILES = 2000
"""A run of few sources is made longer, until about so many files come in it."""

SEARCHED, VERIFIED = 4, 16
"""Replications, at the least, of each population that the search or the check simulates.

Near the threshold a population's queue goes up and down for minutes, and batches of one run tell
too little of it.
"""

NEAR = 1.5
"""A goodput by which factor below what is asked for is soon reached with fewer sources."""


@dataclass(frozen=True, slots=True)
class Quality:
    """The target: a ``share`` of the files of each class exceeds ``above_bps``."""

    scenario: Scenario
    growth: Growth
    share: float
    above_bps: float
    engine: str

    @property
    def words(self) -> str:
        """Return the target in words."""
        return f"{percent(self.share)} of their files above {rate_text(self.above_bps)}"

    @property
    def question(self) -> Question:
        """Return the varied key and the figure that is read."""
        return Question(
            words=f"most sources with {self.words}",
            key=self.growth.key,
            column="sources",
            unit="sources",
            metric="goodput_bps",
            place=self.growth.changes,
            read=self.read,
            figure=f"the goodput that {percent(self.share)} of files reach",
            tables=("file_goodput",),
        )

    def simulations(
        self,
        beside: Callable[[float], dict[str, Any]],
        options: RunOptions | None,
        engine: str = "packet",
    ) -> Simulations:
        """Return simulations of populations by an engine; ``beside`` returns other changes."""
        transfers = self.scenario.run.transfers or 0
        return Simulations(self.scenario, self.question, options, transfers, engine, beside)

    @property
    def most(self) -> int:
        """The largest population that the engine is asked for."""
        return MOST_EXACT if self.engine == "packet" else MOST_SOURCES

    @property
    def least(self) -> int:
        """The smallest population: one source of each class that grows."""
        return len(self.growth.counts)

    @property
    def goal(self) -> Goal:
        """What the search is for."""
        return Goal(target=self.above_bps, least=self.least, most=self.most)

    @property
    def link(self) -> dict[str, float]:
        """Return C, I and B as the mean-value models take them: I and B of a mean source."""
        network = self.scenario.network
        off_s, size_pkts = self._mean_source()
        return {
            "link_pps": network.bottleneck.rate_bps / (8 * network.packet_bytes),
            "mean_off_s": off_s,
            "mean_size_pkts": size_pkts,
        }

    def _mean_source(self) -> tuple[float, float]:
        """Return an OFF time and a size whose ratio is the mean load of a source that grows."""
        counts, total = self.growth.counts, self.growth.total
        means = [
            (counts[each.name] / total, each.traffic.off.mean_value(), _mean_size(each.traffic))
            for each in self.scenario.populations
            if each.name in counts and isinstance(each.traffic, OnOff)
        ]
        if len(means) == 1:
            return means[0][1:]
        mean_off_s = math.fsum(share * off_s for share, off_s, _ in means)
        return mean_off_s, mean_off_s * math.fsum(f * size / off_s for f, off_s, size in means)

    @property
    def threshold(self) -> float:
        """C I / B, the number of sources that would fill the link if files took no time."""
        return float(threshold_sources(**self.link))

    def read(self, found: Answer, name: str | None = None) -> Metric | None:
        """Return the goodput that the share of the files exceeds, None where none was seen.

        The name selects the files of one class; otherwise the slowest class counts.
        """
        table = lowest_goodputs(found, name)
        if table is None or found.withheld:
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
            needed = self._least_s(sources, found["run.replications"])
            if needed > run.duration_s:
                found["run.duration"] = units.format_duration(needed)
        return found

    def _least_s(self, sources: float, replications: int) -> int:
        cycles = MIN_FILES * self.link["mean_off_s"] / sources
        return math.ceil((self.scenario.run.warmup_s or 0.0) + 1.2 * cycles / replications)

    def packets(self, sources: int) -> float:
        """Return about how many packets a replication with so many sources is."""
        run, link = self.scenario.run, self.link
        if run.transfers is not None:
            return run.transfers * link["mean_size_pkts"]
        seconds = max(run.duration_s or 0.0, self._least_s(sources, VERIFIED))
        return min(1.0, sources / self.threshold) * link["link_pps"] * seconds


def _mean_size(traffic: OnOff) -> float:
    return max(1.0, traffic.size.mean_value())


def lowest_goodputs(found: Answer, name: str | None = None) -> Table | None:
    """Return the goodput that each share of the files exceeds.

    The name selects one of several classes; otherwise the lowest goodput counts.
    """
    by_class = found.tables.get("file_goodput_by_class")
    if by_class is None:
        return found.tables.get("file_goodput")
    rows = []
    for share in np.unique(by_class["share"])[::-1]:
        is_counted = (name is None) | (by_class["name"] == name)
        (of_share,) = np.nonzero((by_class["share"] == share) & is_counted)
        rows.append(int(of_share[np.argmin(by_class["goodput_bps"][of_share])]))
    return {name: by_class[name][rows] for name in ("share", "goodput_bps", "low", "high")}


def quality(  # noqa: PLR0913 - what is asked
    scenario: Scenario,
    share: float,
    above_bps: float,
    engine: str | None,
    *,
    plan: str = "plan users",
    grows: str | None = None,
) -> Quality:
    """Return the question, with the engine that is asked where none was named.

    Raises
    ------
    NotApplicable, DomainError, UnknownEngine
        See :func:`tcpcast.plan.plan_quality`.
    """
    growth = growing(scenario, grows, plan)
    if math.isinf(scenario.network.bottleneck.rate_bps):
        raise NotApplicable(f"{plan} needs a shared link; write network.bottleneck.rate")
    if not 0 < share < 1:
        raise DomainError(f"share must be above 0 and below 1, not {share!r}; write 95%")
    if not (above_bps > 0 and math.isfinite(above_bps)):
        raise DomainError(
            f"the goodput must be above 0 and finite, not {above_bps!r}; write 500kbit"
        )
    exact = Quality(scenario, growth, share, above_bps, "packet")
    # A scaled population has one class, of a classic stack.
    if engine is None and (scenario.is_modern or len(scenario.populations) > 1):
        return exact
    return replace(exact, engine=_engine(engine, exact.threshold))


def _engine(asked: str | None, threshold: float) -> str:
    there = [name for name in ENGINES if name in REGISTRY]
    if asked is None:
        large = threshold > EXACT_SOURCES and "mean-field" in there
        return "mean-field" if large else "packet"
    if asked not in there:
        raise UnknownEngine(
            f"plan users needs one engine that knows the goodput of files, not '{asked}'; write "
            f"{', '.join(there[:-1])} or {there[-1]}"
        )
    return asked


def search(asked: Quality, runs: Simulations) -> Found:
    """Return the largest population that keeps the quality, simulated itself."""
    return solve_between(runs, asked.goal, *_bracket(asked, runs))


def _bracket(asked: Quality, runs: Simulations) -> tuple[int, int]:
    """Return a population that keeps the quality and a larger one that does not."""
    low = start = min(max(asked.least, round(asked.threshold)), asked.most)
    _check_alone(asked, runs)
    if runs.measure(start) >= asked.above_bps:
        high = _beyond(asked)
        while runs.measure(high) >= asked.above_bps:
            if high == asked.most:
                raise DomainError(_never_ends(asked))
            low, high = high, min(math.ceil(1.5 * high), asked.most)
        return low, high
    while True:
        if low == asked.least:
            raise DomainError(_out_of_reach(asked, runs))
        near = runs.measure(low) > asked.above_bps / NEAR
        high, low = low, max(asked.least, low // 2 if near else low // 8)
        if runs.measure(low) >= asked.above_bps:
            return low, high


def _check_alone(asked: Quality, runs: Simulations) -> None:
    """Refuse at once what the fewest sources do not have: that takes the least time to see."""
    try:
        if runs.measure(asked.least) < asked.above_bps:
            raise DomainError(_out_of_reach(asked, runs))
    except NotApplicable:  # an engine that has no answer for one may have some for many
        return


def _beyond(asked: Quality) -> int:
    """Return where the mean goodput is half of what is asked for, by equation (3) inverted."""
    half_pps = asked.above_bps / 2 / (8 * asked.scenario.network.packet_bytes)
    link = asked.link
    excess = link["mean_size_pkts"] / (half_pps * link["mean_off_s"])
    return math.ceil(min(max(asked.threshold * (1 + excess), asked.least + 1), asked.most))


def _never_ends(asked: Quality) -> str:
    other = ", or for --engine mean-field, which simulates more" if asked.engine == "packet" else ""
    return (
        f"{percent(asked.share)} of the files reach {rate_text(asked.above_bps)} even with "
        f"{asked.most:,} sources; give a higher rate{other}"
    )


def _out_of_reach(asked: Quality, runs: Simulations) -> str:
    alone = runs.at(asked.least)
    assert alone is not None
    noise = ""
    if alone.high is not None and alone.high >= asked.above_bps:
        noise = f" (up to {rate_text(alone.high)} by the 95 % interval: a longer run decides)"
    beyond = share_above(runs.answers[asked.least], asked.above_bps)
    reach = "" if math.isnan(beyond) else f", and {percent(beyond)} of them reach the target"
    return (
        f"{percent(asked.share)} of the files do not reach {rate_text(asked.above_bps)} even with "
        f"{asked.growth.fewest}: they reach {rate_text(alone.value)}{noise}{reach}; give "
        "a lower rate or a smaller share of the files (small ones end in slow start), or shorten "
        "the round trip"
    )


def known(asked: Quality, runs: Simulations, stop: Stopped) -> Found:
    """Return the largest population seen to keep the quality, and the smallest that did not."""
    goodputs = {n: asked.read(found) for n, found in runs.finished.items()}
    keeps = [int(n) for n, each in goodputs.items() if each and each.value >= asked.above_bps]
    fails = [int(n) for n, each in goodputs.items() if each and each.value < asked.above_bps]
    if not keeps and stop.interrupted:
        raise KeyboardInterrupt
    if not keeps:
        raise NotApplicable(
            "run.max_wall was reached before any population met the target; write a longer one: "
            "it limits all simulations of a plan together"
        )
    beyond = min((n for n in fails if n > max(keeps)), default=None)
    return Found(max(keeps), max(keeps), beyond)


def share_above(found: Answer, above_bps: float) -> float:
    """Return the share of the files above a rate, between the rates of the table; NaN without.

    Of several classes, whose files the table has together, it is NaN, too.
    """
    tail = found.tables.get("file_goodput_tail")
    if tail is None or "file_goodput_by_class" in found.tables:
        return math.nan
    return float(np.interp(math.log(above_bps), np.log(tail["goodput_bps"]), tail["by_file"]))
