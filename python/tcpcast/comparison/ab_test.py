"""Comparison of two scenarios with common random numbers, as an A/B test sees it.

Both scenarios run with the same seeds. Each replication gives a pair of values of a metric, whose
mean difference has an interval. The round-trip times of both runs of a pair differ from those of
the scenarios by the same random share: on a line without variations, all pages of all runs meet the
queue in the same few states, so that runs with equal round-trip times are one observation. The
number of users is that of a test with two groups of equal size, a power of 80 % and a level of 5 %
(two-sided): ``(1.960 + 0.842)^2 (var A + var B) / difference^2``, where ``var`` is the variance of
the value of one user, who loads one page: for a mean that of the times, for a percentile ``p (1 -
p) / density^2``, its asymptotic variance per value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer import Metric
from tcpcast.answer.finding import Finding
from tcpcast.answer.metrics import METRICS, PERCENTILES, sort_metrics
from tcpcast.comparison.compare import main_metric
from tcpcast.engines import RunOptions
from tcpcast.engines import answer as run_engines
from tcpcast.process.errors import DomainError, OptionError
from tcpcast.quantity.readable_units import count_text
from tcpcast.statistics import estimate_mean
from tcpcast.statistics.intervals import student_quantile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tcpcast.answer import Answer
    from tcpcast.scenario import Scenario

    Floats = np.ndarray[Any, np.dtype[np.float64]]
    Table = Mapping[str, np.ndarray[Any, Any]]

DEFAULT_REPLICATIONS = 20
MIN_REPLICATIONS = 3
DEFAULT_RTT_SPREAD = 0.1
"""``run.rtt_spread`` of scenarios without it."""
POWER_QUANTILES = 1.959964 + 0.841621
"""Quantiles of the standard normal distribution for a level of 5 % (two-sided) and 80 % power."""

DENSITY_SPAN = 0.05
"""Largest difference in probability on both sides of a percentile for its density."""

MAX_ROUNDING = 1e-12
"""Largest relative difference by the rounding of sums."""

MEANS = {"page_time_mean_s": "page_time"}
"""Kind of time of each metric that is a mean of such times."""


@dataclass(frozen=True, slots=True)
class PairedMetric:
    """A metric in both scenarios, the paired difference B - A, and the users of an A/B test.

    ``users`` is the number in each group; None for a metric of something else than single users, or
    without a significant difference.
    """

    name: str
    values: tuple[Metric, Metric]
    difference: Metric
    users: int | None = None

    @property
    def is_significant(self) -> bool:
        """Whether the interval of the difference excludes 0."""
        low, high = self.difference.low, self.difference.high
        return low is not None and high is not None and (low > 0 or high < 0)


@dataclass(frozen=True, slots=True)
class ABTest:
    """Two scenarios, their answers, and their metrics; ``main`` is the metric of the verdict."""

    scenarios: tuple[Scenario, Scenario]
    answers: tuple[Answer, Answer]
    metrics: tuple[PairedMetric, ...]
    main: PairedMetric

    @property
    def replications(self) -> int:
        """Number of pairs."""
        return self.scenarios[0].run.replications

    @property
    def rtt_spread(self) -> float:
        """Largest relative difference of the round-trip times of a pair from the scenarios'."""
        return self.scenarios[0].run.rtt_spread or 0.0


def run_ab_test(
    scenarios: tuple[Scenario, Scenario],
    *,
    metric: str | None = None,
    replications: int | None = None,
    threads: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> ABTest:
    """Run two scenarios with the same seeds, and compare all metrics that both have.

    Parameters
    ----------
    scenarios
        A and B; the seed, the number of replications and the spread of round-trip times are those
        of A, whose default is 10 %.
    metric
        Metric of the verdict; default: the main metric of the traffic.
    replications
        Number of pairs; default: ``run.replications`` of A if it is above 1, or 20.
    threads, progress
        As in :class:`tcpcast.engines.RunOptions`.

    Raises
    ------
    OptionError
        The metric is unknown, a scenario lacks it, or there are too few pairs.
    """
    count = replications or scenarios[0].run.replications
    count = DEFAULT_REPLICATIONS if replications is None and count == 1 else count
    if count < MIN_REPLICATIONS:
        raise OptionError(
            "--replications",
            f"{count_text(count, 'pair')} cannot give an interval; use at least {MIN_REPLICATIONS}",
        )
    if metric is not None and metric not in METRICS:
        raise OptionError(
            "--metric", f"there is no metric {metric}; use page_time_p95_s, for example"
        )
    spread = scenarios[0].run.rtt_spread
    changes = {
        "run.replications": count,
        "run.seed": scenarios[0].run.seed,
        "run.rtt_spread": DEFAULT_RTT_SPREAD if spread is None else spread,
    }
    paired = (scenarios[0].with_changes(changes), scenarios[1].with_changes(changes))
    found = [_run(scenario, half, threads, progress) for half, scenario in enumerate(paired)]
    answers = (found[0], found[1])
    rows = [answer.tables["by_replication"] for answer in answers]
    names = sort_metrics(name for name in rows[0] if name in rows[1] and name in METRICS)
    metrics = tuple(compare_metric(name, answers) for name in names)
    # If classes differ, their pages are what users wait for.
    groups = paired[0].populations
    pages = [group for group in groups if group.traffic.kind == "page"]
    main = metric or main_metric(pages or groups) or names[0]
    chosen = next((each for each in metrics if each.name == main), None)
    if chosen is None:
        listed = ", ".join(names[:8])
        raise OptionError(
            "--metric", f"only metrics of both scenarios can be compared; use one of {listed}, ..."
        )
    return ABTest(paired, answers, metrics, chosen)


def _run(
    scenario: Scenario,
    half: int,
    threads: int | None,
    progress: Callable[[float], None] | None,
) -> Answer:
    def show(share: float) -> None:
        if progress is not None:
            progress((half + share) / 2)

    options = RunOptions(threads=threads, progress=show, by_replication=True)
    (answer,) = run_engines(scenario, "packet", options)
    if "by_replication" not in answer.tables:
        raise DomainError(f"{scenario.name}: {answer.notes[0] if answer.notes else answer.status}")
    return answer


def compare_metric(name: str, answers: tuple[Answer, Answer]) -> PairedMetric:
    """Return a metric of two answers with the table ``by_replication``."""
    columns = [answer.tables["by_replication"][name] for answer in answers]
    pairs = min(column.size for column in columns)
    values = [_mean_with_interval(column[:pairs]) for column in columns]
    changes = columns[1][:pairs] - columns[0][:pairs]
    # Rounding errors are no difference.
    changes[np.abs(changes) <= MAX_ROUNDING * np.abs(columns[0][:pairs])] = 0.0
    difference = estimate_paired_difference(changes)
    paired = PairedMetric(name, (values[0], values[1]), difference)
    if not paired.is_significant:
        return paired
    variances = [_variance_of_user(name, a.tables["time_distribution"]) for a in answers]
    if not all(math.isfinite(variance) for variance in variances):
        return paired
    users = POWER_QUANTILES**2 * sum(variances) / difference.value**2
    return PairedMetric(name, paired.values, difference, max(2, math.ceil(users)))


def _mean_with_interval(values: Floats) -> Metric:
    known = values[np.isfinite(values)]
    if known.size < values.size:
        return Metric(math.nan, interval_warning="some replications have no value")
    estimate = estimate_mean(known, replications=known.size)
    if estimate is None:
        return Metric(math.nan, interval_warning="too few replications")
    return Metric(estimate.value, estimate.low, estimate.high)


def estimate_paired_difference(changes: Floats) -> Metric:
    """Return the mean of the differences of independent pairs, with Student's interval.

    Under the hypothesis of no difference, a skewness estimated from the same few pairs is
    correlated with their mean, so that an interval corrected by it would exclude 0 too often.

    Parameters
    ----------
    changes
        Difference of each pair, ``[pairs]``; nan if a run has no value.
    """
    if not np.isfinite(changes).all():
        return Metric(math.nan, interval_warning="some replications have no value")
    value, pairs = float(changes.mean()), changes.size
    error = float(changes.std(ddof=1)) / math.sqrt(pairs)
    half_width = student_quantile(pairs - 1) * error
    return Metric(value, value - half_width, value + half_width)


def _variance_of_user(name: str, table: Table) -> float:
    """Return the variance of the value that one user contributes; nan if there is none."""
    kind, percent = PERCENTILES.get(name, (MEANS.get(name, ""), None))
    chosen = table["kind"] == kind
    low, high, count = (table[key][chosen] for key in ("low_s", "high_s", "count"))
    total = count.sum()
    if kind in ("", "rtt") or total == 0:
        return math.nan
    share = count / total
    middle = (low + high) / 2
    if percent is None:
        mean = float(share @ middle)
        return float(share @ ((middle - mean) ** 2 + (high - low) ** 2 / 12))
    level = percent / 100
    span = min(DENSITY_SPAN, level / 2, (1 - level) / 2)
    edges = np.append(low[:1], high)
    below = np.concatenate(([0.0], np.cumsum(share)))
    ends = np.interp([level - span, level + span], below, edges)
    return float(level * (1 - level) * ((ends[1] - ends[0]) / (2 * span)) ** 2)


def find_verdict(test: ABTest, names: tuple[str, str]) -> list[Finding]:
    """Return the findings of the verdict: the difference in the main metric, and the users."""
    main, low, high = test.main, test.main.difference.low, test.main.difference.high
    if not main.is_significant:
        span = Metric(math.nan, low, high)
        return [Finding("", main.name, span, "alike", "packet", evidence="B - A")]
    users = (
        f"an A/B test needs {main.users:,} users in each group to detect it" if main.users else ""
    )
    is_change = "=" in names[1]  # "tcp.initial_window=32" is no alternative to a scenario
    subject = f"with {names[1]} {'in' if is_change else 'instead of'} {names[0]}"
    return [Finding(subject, main.name, main.difference, "difference", "packet", action=users)]
