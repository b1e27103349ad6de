"""Search for the largest population in which a share of the files is fast enough."""

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
from tcpcast.plan.inverse_question import InverseQuestion, check_positive_rate
from tcpcast.plan.planned_path import percent_text
from tcpcast.plan.questions import SEARCH_REPLICATIONS
from tcpcast.plan.search import SearchGoal, SearchResult, search_in_bracket
from tcpcast.plan.varied_classes import select_varied_classes, slowest_class_text
from tcpcast.plan.verification import PlanSimulations
from tcpcast.readable_units import rate_text
from tcpcast.scenario.traffic import MAX_SOURCES, OnOff

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.answer import Answer
    from tcpcast.engines import RunOptions
    from tcpcast.plan.result import Table
    from tcpcast.plan.varied_classes import VariedClasses
    from tcpcast.plan.verification import SimulationStopped
    from tcpcast.scenario import Scenario

FILE_GOODPUT_ENGINES = ("packet", "fixed-point", "mean-field")
"""Engines that compute the goodput of files."""

MAX_DEFAULT_EXACT_SOURCES = 30_000
"""Maximum threshold (in sources) at which the default engine simulates every source."""

MAX_EXACT_SOURCES = 300_000
"""Largest population that is simulated source by source; each source takes 1 kB or more."""

CURVE_SHARES = (0.95, 0.9, 0.8, 0.5)
"""Additional shares of files whose goodput the curve shows."""

MIN_FILES = 2000
"""Approximate minimum number of files per run; runs with few sources become longer."""

VERIFICATION_REPLICATIONS = 16
"""Minimum number of replications per population in the check; see also ``SEARCH_REPLICATIONS``.

Near the threshold, the queue varies over minutes, and batches of one run underestimate this
variation.
"""

NEAR_FACTOR = 1.5
"""If a goodput is below the target by at most this factor, its number of sources is close to the
answer."""


@dataclass(frozen=True, slots=True)
class FileGoodputTarget:
    """The target: a ``share`` of the files of each class exceeds ``above_bps``."""

    scenario: Scenario
    varied: VariedClasses
    share: float
    above_bps: float
    engine: str
    of_class: str | None = None
    """The class whose files must exceed the target; None for every class."""

    @property
    def files_text(self) -> str:
        """Description of the files whose goodput is compared with the target."""
        slowest = slowest_class_text(self.scenario, self.of_class)
        return f"files of {slowest}" if slowest else "files"

    @property
    def text(self) -> str:
        """Description of the target."""
        return f"{percent_text(self.share)} of files above {rate_text(self.above_bps)}"

    @property
    def question(self) -> InverseQuestion:
        """Return the varied key and the metric."""
        return InverseQuestion(
            text=self.varied.population_text(self.text),
            key=self.varied.key,
            column="sources",
            unit="sources",
            metric="goodput_bps",
            make_changes=self.varied.changes,
            read_metric=self.read,
            quantity=f"the goodput that {percent_text(self.share)} of {self.files_text} reach",
            tables=("file_goodput",),
        )

    def simulations(
        self,
        extra_changes: Callable[[float], dict[str, Any]],
        options: RunOptions | None,
        engine: str = "packet",
    ) -> PlanSimulations:
        """Return simulations by an engine; ``extra_changes`` returns additional changes."""
        transfers = self.scenario.run.transfers or 0
        return PlanSimulations(
            self.scenario, self.question, options, transfers, engine, extra_changes
        )

    @property
    def maximum(self) -> int:
        """Largest population for the engine."""
        return MAX_EXACT_SOURCES if self.engine == "packet" else MAX_SOURCES

    @property
    def minimum(self) -> int:
        """Smallest population: one source per growing class."""
        return len(self.varied.counts)

    @property
    def search_goal(self) -> SearchGoal:
        """Goal of the search."""
        return SearchGoal(target=self.above_bps, minimum=self.minimum, maximum=self.maximum)

    @property
    def model_inputs(self) -> dict[str, float]:
        """Inputs of the mean-value models: link rate C, mean OFF time I, mean file size B."""
        network = self.scenario.network
        off_s, size_pkts = self._mean_off_time_and_size()
        return {
            "link_pps": network.bottleneck.rate_bps / (8 * network.packet_bytes),
            "mean_off_s": off_s,
            "mean_size_pkts": size_pkts,
        }

    def _mean_off_time_and_size(self) -> tuple[float, float]:
        """Return an OFF time and a size whose ratio is the mean load of the growing sources."""
        counts, total = self.varied.counts, self.varied.total
        means = [
            (
                counts[each.name] / total,
                each.traffic.off.mean_value(),
                max(1.0, each.traffic.size.mean_value()),
            )
            for each in self.scenario.populations
            if each.name in counts and isinstance(each.traffic, OnOff)
        ]
        if len(means) == 1:
            return means[0][1:]
        mean_off_s = math.fsum(share * off_s for share, off_s, _ in means)
        return mean_off_s, mean_off_s * math.fsum(f * size / off_s for f, off_s, size in means)

    @property
    def threshold_sources(self) -> float:
        """C I / B: number of sources that would fill the link if transfers took no time."""
        return float(threshold_sources(**self.model_inputs))

    def read(self, answer: Answer) -> Metric | None:
        """Return the goodput that the share of the files exceeds, or None without files.

        For several classes, the value is from ``of_class``, or from the slowest class.
        """
        table = get_exceeded_goodputs(answer, self.of_class)
        if table is None or answer.withheld:
            return None
        (rows,) = np.nonzero(np.isclose(table["share"], self.share))
        if not rows.size or not table["goodput_bps"][rows[0]] > 0:
            return None
        value, low, high = (float(table[name][rows[0]]) for name in ("goodput_bps", "low", "high"))
        bounded = math.isfinite(low) and math.isfinite(high)
        return Metric(value, low, high) if bounded else Metric(value)

    def changes(self, sources: float, replications: int = SEARCH_REPLICATIONS) -> dict[str, Any]:
        """Return the additional changes for a run with this number of sources."""
        shares = sorted({self.share, *CURVE_SHARES}, reverse=True)
        run = self.scenario.run
        changes: dict[str, Any] = {
            "probes.goodput_shares": shares,
            "run.replications": max(replications, run.replications),
        }
        if run.duration_s is not None:
            needed = self._min_duration_s(sources, changes["run.replications"])
            if needed > run.duration_s:
                changes["run.duration"] = units.format_duration(needed)
        return changes

    def _min_duration_s(self, sources: float, replications: int) -> int:
        cycles = MIN_FILES * self.model_inputs["mean_off_s"] / sources
        return math.ceil((self.scenario.run.warmup_s or 0.0) + 1.2 * cycles / replications)

    def estimate_packets(self, sources: int) -> float:
        """Return the approximate number of packets in a replication."""
        run, link = self.scenario.run, self.model_inputs
        if run.transfers is not None:
            return run.transfers * link["mean_size_pkts"]
        seconds = max(
            run.duration_s or 0.0, self._min_duration_s(sources, VERIFICATION_REPLICATIONS)
        )
        return min(1.0, sources / self.threshold_sources) * link["link_pps"] * seconds


def get_exceeded_goodputs(answer: Answer, name: str | None = None) -> Table | None:
    """Return the goodput that each share of the files exceeds.

    The name selects one of several classes; the default is the lowest goodput of all classes.
    """
    by_class = answer.tables.get("file_goodput_by_class")
    if by_class is None:
        return answer.tables.get("file_goodput")
    rows = []
    for share in np.unique(by_class["share"])[::-1]:
        is_counted = (name is None) | (by_class["name"] == name)
        (of_share,) = np.nonzero((by_class["share"] == share) & is_counted)
        rows.append(int(of_share[np.argmin(by_class["goodput_bps"][of_share])]))
    return {name: by_class[name][rows] for name in ("share", "goodput_bps", "low", "high")}


def make_file_goodput_target(  # noqa: PLR0913 - parameters of the question
    scenario: Scenario,
    share: float,
    above_bps: float,
    engine: str | None,
    *,
    plan: str = "plan users",
    grows: str | None = None,
    of_class: str | None = None,
) -> FileGoodputTarget:
    """Return the target and its engine; the default engine depends on the threshold.

    Raises
    ------
    NotApplicable, DomainError, UnknownEngine
        See :func:`tcpcast.plan.plan_quality`.
    """
    varied = select_varied_classes(scenario, grows, plan)
    if math.isinf(scenario.network.bottleneck.rate_bps):
        raise NotApplicable(
            f'{plan} needs a bottleneck with a rate; write network.bottleneck.rate = "10mbit"'
        )
    if not 0 < share < 1:
        raise DomainError(f"share must be above 0 and below 1, not {share!r}; write 95%")
    check_positive_rate("goodput", above_bps, "500kbit")
    exact = FileGoodputTarget(scenario, varied, share, above_bps, "packet", of_class)
    # A scaled population has one class, of a classic stack.
    if engine is None and (scenario.is_modern or len(scenario.populations) > 1):
        return exact
    return replace(exact, engine=_choose_engine(engine, exact.threshold_sources))


def _choose_engine(name: str | None, threshold: float) -> str:
    known_engines = [name for name in FILE_GOODPUT_ENGINES if name in REGISTRY]
    if name is None:
        large = threshold > MAX_DEFAULT_EXACT_SOURCES and "mean-field" in known_engines
        return "mean-field" if large else "packet"
    if name not in known_engines:
        raise UnknownEngine(
            f"plan users needs one engine that computes the goodput of files, not '{name}'; write "
            f"{', '.join(known_engines[:-1])} or {known_engines[-1]}"
        )
    return name


def search_largest_population(target: FileGoodputTarget, runs: PlanSimulations) -> SearchResult:
    """Return the largest population that meets the target, by simulation."""
    runs.goal = target.search_goal
    return search_in_bracket(runs, target.search_goal, *_bracket_population(target, runs))


def _bracket_population(target: FileGoodputTarget, runs: PlanSimulations) -> tuple[int, int]:
    """Return a population that meets the target and a larger one that does not."""
    low = start = min(max(target.minimum, round(target.threshold_sources)), target.maximum)
    _check_smallest_population(target, runs)
    if runs.measure(start) >= target.above_bps:
        high = _upper_bound_population(target)
        while runs.measure(high) >= target.above_bps:
            if high == target.maximum:
                raise DomainError(_unlimited_message(target))
            low, high = high, min(math.ceil(1.5 * high), target.maximum)
        return low, high
    while True:
        if low == target.minimum:
            raise DomainError(_unreachable_message(target, runs))
        near = runs.measure(low) > target.above_bps / NEAR_FACTOR
        high, low = low, max(target.minimum, low // 2 if near else low // 8)
        if runs.measure(low) >= target.above_bps:
            return low, high


def _check_smallest_population(target: FileGoodputTarget, runs: PlanSimulations) -> None:
    """Raise early if the smallest population misses the target; this run is the fastest."""
    try:
        if runs.measure(target.minimum) < target.above_bps:
            raise DomainError(_unreachable_message(target, runs))
    except NotApplicable:  # the engine may support only larger populations
        return


def _upper_bound_population(target: FileGoodputTarget) -> int:
    """Return the population whose mean goodput by equation (3) is half the target."""
    half_pps = target.above_bps / 2 / (8 * target.scenario.network.packet_bytes)
    link = target.model_inputs
    excess = link["mean_size_pkts"] / (half_pps * link["mean_off_s"])
    return math.ceil(
        min(max(target.threshold_sources * (1 + excess), target.minimum + 1), target.maximum)
    )


def _unlimited_message(target: FileGoodputTarget) -> str:
    other = (
        ", or use --engine mean-field, which simulates more sources"
        if target.engine == "packet"
        else ""
    )
    return (
        f"{percent_text(target.share)} of the {target.files_text} reach "
        f"{rate_text(target.above_bps)} even with {target.maximum:,} sources; write a "
        f"higher rate{other}"
    )


def _unreachable_message(target: FileGoodputTarget, runs: PlanSimulations) -> str:
    smallest = runs.metric_at(target.minimum)
    assert smallest is not None
    noise = ""
    if smallest.high is not None and smallest.high >= target.above_bps:
        noise = (
            f" (95 % interval up to {rate_text(smallest.high)}; a longer run gives a narrower "
            "interval)"
        )
    beyond = share_of_files_above(runs.answers[target.minimum], target.above_bps)
    reach = (
        ""
        if math.isnan(beyond)
        else (f". Only {percent_text(beyond)} of the files reach the target")
    )
    return (
        f"even with {target.varied.smallest_population_text}, {percent_text(target.share)} of the "
        f"{target.files_text} reach only {rate_text(smallest.value)}{noise}, not "
        f"{rate_text(target.above_bps)}{reach}; write a lower rate, a smaller share of the files, "
        "or a shorter RTT"
    )


def result_of_stopped_search(
    target: FileGoodputTarget, runs: PlanSimulations, stop: SimulationStopped
) -> SearchResult:
    """Return the result of a stopped search, from the simulated populations."""
    goodputs = {n: target.read(answer) for n, answer in runs.finished_answers.items()}
    keeps = [int(n) for n, each in goodputs.items() if each and each.value >= target.above_bps]
    fails = [int(n) for n, each in goodputs.items() if each and each.value < target.above_bps]
    if not keeps and stop.interrupted:
        raise KeyboardInterrupt
    if not keeps:
        raise NotApplicable(
            "run.max_wall was reached before any population met the target; write a longer "
            "run.max_wall: it limits the total time of all simulations of a plan"
        )
    beyond = min((n for n in fails if n > max(keeps)), default=None)
    return SearchResult(max(keeps), max(keeps), beyond)


def share_of_files_above(answer: Answer, above_bps: float) -> float:
    """Return the share of the files above a rate, interpolated in the table, or NaN.

    It is also NaN for several classes, because the table combines their files.
    """
    tail = answer.tables.get("file_goodput_tail")
    if tail is None or "file_goodput_by_class" in answer.tables:
        return math.nan
    return float(np.interp(math.log(above_bps), np.log(tail["goodput_bps"]), tail["by_file"]))
