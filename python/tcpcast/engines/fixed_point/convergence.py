"""Tests of convergence (INRIA report 4154, section 5.4), because a fixed point may not exist.

*Environment*: the mean file sizes and OFF times of the reference flows in the measurement are
close to the means of their distributions. The bounds follow from the central limit theorem, and
must be narrow enough to be meaningful.

*Fixed point*: reference flows and cross flows agree in four quantities: rate while on, ON time,
the number of their own packets in the shared router, and losses. The parameters of the cross flows
agree with the values measured with them. A difference passes up to the tolerance (twice the
tolerance for queues and losses), or up to its own 95 % interval if that is wider.

*Several classes*: each class has its own tests, so more tests can fail by chance. Intervals are
therefore wider: 95 % (and 99 %) is the probability for all classes (Bonferroni).

*Little's law*, an addition to the report: reference and cross flows may agree and still differ from
the content of the router. The time of reference packets in it must agree with the mean queue and
the arrival rate of all packets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast import _native, statistics
from tcpcast.engines.fixed_point.configuration import (
    flows_per_reference_flow,
    measured_duration_s,
    reference_flow_counts,
)
from tcpcast.engines.packet.size_moments import mean_drawn_size_pkts
from tcpcast.scenario.traffic import OnOff

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcpcast.engines.packet.metric_estimates import CounterUnits, Floats
    from tcpcast.scenario import FixedPoint, Scenario

WIDEST_BOUND = 0.2
"""Largest bound with which a test can pass. The report's 200 files have a bound of 14 %."""

UNKNOWN = 0.0
"""Limit of a test whose bound is larger, so that it cannot pass."""

MIN_QUEUE_PKTS = 1.0
MIN_LOSS = 0.01
MIN_WAIT = 0.01
"""Minimum denominators of relative differences: of queues, of losses, and of waits (as a share of
the base RTT)."""

WITH_WINDOWS = 2
"""Scheme whose cross flows use their own hops."""

EVERY = "all"
"""Name of the class in tests over all classes."""


@dataclass(slots=True)
class ConvergenceResult:
    """Rows of table ``convergence``, and descriptions of failed tests."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @property
    def table(self) -> dict[str, NDArray[Any]]:
        """The rows as columns; empty without rows."""
        names = self.rows[0] if self.rows else {}
        return {name: np.array([row[name] for row in self.rows]) for name in names}


@dataclass(frozen=True, slots=True)
class _CommonRatio:
    """A ratio of counters that both kinds of flows have, its scale and minimum denominator."""

    what: str
    above: str
    below: str
    scale: float = 1.0
    min_scale: float = 0.0
    tolerances: float = 1.0


PAIRS = (
    _CommonRatio("rate while on", "transfer_packets", "on_time_ns", 1e9),
    _CommonRatio("time on", "on_time_ns", "transfers", 1e-9),
    _CommonRatio(
        "queue at own links", "own_found", "arrived", min_scale=MIN_QUEUE_PKTS, tolerances=2.0
    ),
    _CommonRatio("loss", "queue_drops", "arrived", min_scale=MIN_LOSS, tolerances=2.0),
)


@dataclass(frozen=True, slots=True)
class _SumRatio:
    """A ratio of sums, ``[units]`` each."""

    above: Floats
    below: Floats

    @property
    def value(self) -> float:
        """The ratio."""
        return float(self.above.sum() / self.below.sum())

    @property
    def influence(self) -> Floats:
        """Contribution of each unit to the ratio, to first order; their mean is the ratio."""
        above: Floats = self.above - self.value * self.below
        return self.value + above.size * above / float(self.below.sum())


@dataclass(frozen=True, slots=True)
class _ClassTests:
    """Tests of one class, which add rows to ``verdict``."""

    verdict: ConvergenceResult
    index: int
    name: str
    of: str
    reference: CounterUnits
    cross_flows: CounterUnits
    tolerance: float
    classes: int

    def _half_widths(self, level: float) -> float:
        """Return (half-width at ``level`` over all classes) / (half-width at 95 %)."""
        normal = NormalDist()
        at_level = normal.inv_cdf(1 - (1 - level) / 2 / self.classes)
        return at_level / normal.inv_cdf(0.975)

    def compare_distribution_mean(self, what: str, cells: tuple[str, str], expected: float) -> None:
        """Compare a mean of reference flows with its distribution, with a 99 % bound."""
        above, below = (self.reference.class_counter(name, [self.index]) for name in cells)
        estimate = self.reference.ratio(above, below)
        value = math.nan if estimate is None else estimate.value
        noise = math.inf if estimate is None else estimate.relative_half_width
        scale = 1e-9 if cells[0].endswith("_ns") else 1.0
        limit = self._half_widths(0.99) * noise if noise <= WIDEST_BOUND else UNKNOWN
        self._add_verdict_row(what, (scale * value, scale * expected), limit)

    def compare_common_ratios(self) -> None:
        """Compare the ratios that reference flows and cross flows have in common."""
        for pair in PAIRS:
            reference_sums, cross_sums = (
                _SumRatio(
                    pair.scale * units.class_counter(pair.above, [self.index]),
                    units.class_counter(pair.below, [self.index]),
                )
                for units in (self.reference, self.cross_flows)
            )
            self._compare(pair, reference_sums, cross_sums)

    def compare_with_cross_rates(self, flows: tuple[int, int]) -> None:
        """Compare the rates of endless flows; ``flows`` is the number of each kind."""
        reference_sums, cross_sums = (
            _SumRatio(
                units.class_counter("delivered", [self.index]), count * 1e-9 * units.link("time_ns")
            )
            for units, count in zip((self.reference, self.cross_flows), flows, strict=True)
        )
        self._compare(_CommonRatio("rate", "delivered", "time_ns"), reference_sums, cross_sums)

    def compare_loss_elsewhere(self) -> None:
        """Compare the losses at hops that each source has for itself."""
        reference_sums, cross_sums = (
            _SumRatio(units.link("hop_drops"), units.class_counter("sent"))
            for units in (self.reference, self.cross_flows)
        )
        min_scale = MIN_LOSS
        self._compare(
            _CommonRatio("loss at own hops", "hop_drops", "sent", 1.0, min_scale, 2.0),
            reference_sums,
            cross_sums,
        )

    def compare_with_littles_law(self, own_weight: list[float], least_s: float) -> None:
        """Compare the time of packets in the shared router with Little's law.

        The mean queue and the arrival rate include all flows; their quotient is the mean time of a
        packet.
        """
        reference_sums, arrived = (
            np.sum(
                [
                    w * self.reference.class_counter(cell, [index])
                    for index, w in enumerate(own_weight)
                ],
                axis=0,
            )
            for cell in ("inside_ns", "arrived")
        )
        every = self.reference.class_counter("arrived") + self.cross_flows.class_counter("arrived")
        pair = _CommonRatio("time in the router", "inside_ns", "arrived", 1.0, least_s, 2.0)
        inside = _SumRatio(1e-9 * reference_sums, arrived)
        self._compare(pair, inside, _SumRatio(1e-9 * self.reference.link("queue_integral"), every))

    def _compare(
        self, pair: _CommonRatio, reference_sums: _SumRatio, cross_sums: _SumRatio
    ) -> None:
        """Compare two ratios of sums, unless one has no observations.

        Both kinds of flows share the router and vary together over time, so the noise is
        computed from the difference per unit.
        """
        if not (reference_sums.below.sum() and cross_sums.below.sum()):
            return
        difference = statistics.estimate_mean(
            reference_sums.influence - cross_sums.influence,
            replications=self.reference.replications,
        )
        scale = max(abs(cross_sums.value), pair.min_scale)
        noise = math.inf if difference is None or not scale else difference.half_width / scale
        limit = max(pair.tolerances * self.tolerance, self._half_widths(0.95) * noise)
        if noise > WIDEST_BOUND:
            limit = UNKNOWN
        self._add_verdict_row(
            pair.what, (reference_sums.value, cross_sums.value), limit, pair.min_scale
        )

    def iteration(
        self, cells: dict[str, float], table: FixedPoint, measured_duration_s: float
    ) -> None:
        """Compare the parameters of the cross flows with the values measured with them.

        The parameters are averages too, over the second half of the iterations.
        """
        what, name, above = "time between packets", "gap", "on_time_ns"
        if table.scheme == 2:
            what, name, above = "service time", "service", "service_ns"
        delivered = self.reference.class_counter("delivered", [self.index])
        estimate = self.reference.ratio(
            self.reference.class_counter(above, [self.index]), delivered
        )
        noise = 0.0 if estimate is None else estimate.relative_half_width
        averaged_s = table.step * (table.steps - table.steps // 2 + 1)
        noise *= self._half_widths(0.95) * math.sqrt(1 + measured_duration_s / averaged_s)
        limit = max(self.tolerance, noise if math.isfinite(noise) else 0.0)
        self._add_verdict_row(what, (cells[f"{name}_s"], cells[f"{name}_used_s"]), limit)

    def _add_verdict_row(
        self, what: str, values: tuple[float, float], limit: float, min_scale: float = 0.0
    ) -> None:
        reference, cross = values
        scale = max(abs(cross), min_scale)
        difference = (reference - cross) / scale if scale else 0.0
        passed = limit != UNKNOWN and abs(difference) <= limit
        self.verdict.rows.append(
            {
                "class": self.name,
                "what": what,
                "reference": reference,
                "cross": cross,
                "difference": difference,
                "limit": limit,
                "passed": passed,
            }
        )
        differs = f"{what}{self.of} differs by {100 * difference:+.3g} %"
        if math.isnan(difference):
            self.verdict.failed.append(f"{what}{self.of} was not measured")
        elif limit == UNKNOWN:
            self.verdict.failed.append(
                f"{differs}, but the interval of this difference is wider than "
                f"{100 * WIDEST_BOUND:g} %"
            )
        elif not passed:
            self.verdict.failed.append(differs)


def run_convergence_tests(
    scenario: Scenario,
    table: FixedPoint,
    reference: CounterUnits,
    cross_flows: CounterUnits,
    steps: list[NDArray[np.float64]],
) -> ConvergenceResult:
    """Run the tests of each class.

    Parameters
    ----------
    scenario, table
        The scenario and its table ``fixed_point``.
    reference, cross_flows
        Counters of the reference flows and of the cross flows over the measurement.
    steps
        Values of each step per replication, ``[steps x classes, values]``, the measurement last.
    """
    verdict = ConvergenceResult()
    groups = scenario.populations
    followed = reference_flow_counts(scenario, table)
    last = np.mean([rows[-len(groups) :] for rows in steps], axis=0)
    units = (reference, cross_flows, table.tolerance, len(groups))
    for index, group in enumerate(groups):
        of = f" of class {group.name}" if len(groups) > 1 else ""
        judge = _ClassTests(verdict, index, group.name, of, *units)
        if isinstance(group.traffic, OnOff):
            off = group.traffic.off.mean_value()
            size = mean_drawn_size_pkts(
                group.traffic.size, rounded_down=group.traffic.size_rounding == "down"
            )
            judge.compare_distribution_mean("file size", ("transfer_packets", "transfers"), size)
            judge.compare_distribution_mean("silence", ("off_time_ns", "off_times"), 1e9 * off)
        else:
            judge.compare_with_cross_rates((followed[index], group.count - followed[index]))
        judge.compare_common_ratios()
        cells = dict(zip(_native.STEP_CELLS, last[index], strict=True))
        judge.iteration(cells, table, measured_duration_s(scenario))
    stand_for = flows_per_reference_flow(scenario, table)
    together = _ClassTests(verdict, 0, EVERY, "", *units)
    if scenario.network.hops and table.scheme == WITH_WINDOWS and len(set(stand_for)) == 1:
        together.compare_loss_elsewhere()
    together.compare_with_littles_law(stand_for, MIN_WAIT * scenario.rtt_s)
    return verdict
