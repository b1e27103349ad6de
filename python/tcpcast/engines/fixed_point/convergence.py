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
from tcpcast.engines.table_columns import rows_to_table
from tcpcast.scenario.traffic import OnOff

if TYPE_CHECKING:
    from tcpcast.array_types import Floats, Table
    from tcpcast.engines.packet.metric_estimates import BatchCounters
    from tcpcast.scenario import FixedPoint, Scenario

MAX_BOUND = 0.2
"""Largest bound with which a test can pass. The report's 200 files have a bound of 14 %."""

UNPASSABLE_LIMIT = 0.0
"""Limit of a test whose bound is larger, so that it cannot pass."""

MIN_QUEUE_PKTS = 1.0
MIN_LOSS = 0.01
MIN_WAIT_SHARE = 0.01
"""Minimum denominators of relative differences: of queues, of losses, and of waits (as a share of
the base RTT)."""

OWN_HOPS_SCHEME = 2
"""Scheme whose cross flows use their own hops."""

ALL_CLASSES = "all"
"""Value of column ``class`` for tests over all classes."""


@dataclass(slots=True)
class ConvergenceResult:
    """Rows of table ``convergence``, and descriptions of failed tests."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @property
    def table(self) -> Table:
        """The rows as columns; empty without rows."""
        return rows_to_table(self.rows)


@dataclass(frozen=True, slots=True)
class _RatioOfBothFlowKinds:
    """A ratio of counters that both kinds of flows have, its scale and minimum denominator."""

    quantity: str
    numerator: str
    denominator: str
    scale: float = 1.0
    min_scale: float = 0.0
    tolerance_factor: float = 1.0


COMMON_RATIOS = (
    _RatioOfBothFlowKinds("rate while on", "transfer_packets", "on_time_ns", 1e9),
    _RatioOfBothFlowKinds("time on", "on_time_ns", "transfers", 1e-9),
    _RatioOfBothFlowKinds(
        "queue at own links", "own_found", "arrived", min_scale=MIN_QUEUE_PKTS, tolerance_factor=2.0
    ),
    _RatioOfBothFlowKinds(
        "loss", "queue_drops", "arrived", min_scale=MIN_LOSS, tolerance_factor=2.0
    ),
)


@dataclass(frozen=True, slots=True)
class _SumRatio:
    """A ratio of sums, ``[units]`` each."""

    numerator: Floats
    denominator: Floats

    @property
    def value(self) -> float:
        """The ratio."""
        return float(self.numerator.sum() / self.denominator.sum())

    @property
    def influence(self) -> Floats:
        """Contribution of each unit to the ratio, to first order; their mean is the ratio."""
        numerator: Floats = self.numerator - self.value * self.denominator
        return self.value + numerator.size * numerator / float(self.denominator.sum())


@dataclass(frozen=True, slots=True)
class _ClassTests:
    """Tests of one class, which add rows to ``verdict``."""

    verdict: ConvergenceResult
    index: int
    name: str
    class_suffix: str
    reference: BatchCounters
    cross_flows: BatchCounters
    tolerance: float
    classes: int

    def _half_width_ratio(self, level: float) -> float:
        """Return (half-width at ``level`` over all classes) / (half-width at 95 %)."""
        normal = NormalDist()
        at_level = normal.inv_cdf(1 - (1 - level) / 2 / self.classes)
        return at_level / normal.inv_cdf(0.975)

    def compare_distribution_mean(
        self, quantity: str, cells: tuple[str, str], expected: float
    ) -> None:
        """Compare a mean of reference flows with that of the scenario, with a 99 % bound."""
        numerator, denominator = (
            self.reference.class_counter(name, [self.index]) for name in cells
        )
        estimate = self.reference.ratio(numerator, denominator)
        value = math.nan if estimate is None else estimate.value
        noise = math.inf if estimate is None else estimate.relative_half_width
        scale = 1e-9 if cells[0].endswith("_ns") else 1.0
        limit = self._half_width_ratio(0.99) * noise if noise <= MAX_BOUND else UNPASSABLE_LIMIT
        self._add_verdict_row(quantity, (scale * value, scale * expected), limit)

    def compare_common_ratios(self) -> None:
        """Compare the ratios that reference flows and cross flows have in common."""
        for pair in COMMON_RATIOS:
            reference_sums, cross_sums = (
                _SumRatio(
                    pair.scale * units.class_counter(pair.numerator, [self.index]),
                    units.class_counter(pair.denominator, [self.index]),
                )
                for units in (self.reference, self.cross_flows)
            )
            self._compare_ratios(pair, reference_sums, cross_sums)

    def compare_with_cross_rates(self, flows: tuple[int, int]) -> None:
        """Compare the rates of endless flows; ``flows`` is the number of each kind."""
        reference_sums, cross_sums = (
            _SumRatio(
                units.class_counter("delivered", [self.index]), count * 1e-9 * units.link("time_ns")
            )
            for units, count in zip((self.reference, self.cross_flows), flows, strict=True)
        )
        self._compare_ratios(
            _RatioOfBothFlowKinds("rate", "delivered", "time_ns"), reference_sums, cross_sums
        )

    def compare_loss_at_own_hops(self) -> None:
        """Compare the losses at hops that each source has for itself."""
        reference_sums, cross_sums = (
            _SumRatio(units.link("hop_drops"), units.class_counter("sent"))
            for units in (self.reference, self.cross_flows)
        )
        min_scale = MIN_LOSS
        self._compare_ratios(
            _RatioOfBothFlowKinds("loss at own hops", "hop_drops", "sent", 1.0, min_scale, 2.0),
            reference_sums,
            cross_sums,
        )

    def compare_with_littles_law(self, flows_per_reference: list[float], min_wait_s: float) -> None:
        """Compare the time of packets in the shared router with Little's law.

        The mean queue and the arrival rate include all flows; their quotient is the mean time of a
        packet.
        """
        reference_sums, arrived = (
            np.sum(
                [
                    w * self.reference.class_counter(cell, [index])
                    for index, w in enumerate(flows_per_reference)
                ],
                axis=0,
            )
            for cell in ("inside_ns", "arrived")
        )
        every = self.reference.class_counter("arrived") + self.cross_flows.class_counter("arrived")
        pair = _RatioOfBothFlowKinds(
            "time in the router", "inside_ns", "arrived", 1.0, min_wait_s, 2.0
        )
        inside = _SumRatio(1e-9 * reference_sums, arrived)
        self._compare_ratios(
            pair, inside, _SumRatio(1e-9 * self.reference.link("queue_integral"), every)
        )

    def _compare_ratios(
        self, pair: _RatioOfBothFlowKinds, reference_sums: _SumRatio, cross_sums: _SumRatio
    ) -> None:
        """Compare two ratios of sums, unless one has no observations.

        Both kinds of flows share the router and vary together over time, so the noise is
        computed from the difference per unit.
        """
        if not (reference_sums.denominator.sum() and cross_sums.denominator.sum()):
            return
        difference = statistics.estimate_mean(
            reference_sums.influence - cross_sums.influence,
            replications=self.reference.replications,
        )
        scale = max(abs(cross_sums.value), pair.min_scale)
        noise = math.inf if difference is None or not scale else difference.half_width / scale
        limit = max(pair.tolerance_factor * self.tolerance, self._half_width_ratio(0.95) * noise)
        if noise > MAX_BOUND:
            limit = UNPASSABLE_LIMIT
        self._add_verdict_row(
            pair.quantity, (reference_sums.value, cross_sums.value), limit, pair.min_scale
        )

    def compare_iteration(
        self, cells: dict[str, float], table: FixedPoint, measured_duration_s: float
    ) -> None:
        """Compare the parameters of the cross flows with the values measured with them.

        The parameters are averages too, over the second half of the iterations.
        """
        quantity, name, numerator = "time between packets", "gap", "on_time_ns"
        if table.scheme == 2:
            quantity, name, numerator = "service time", "service", "service_ns"
        delivered = self.reference.class_counter("delivered", [self.index])
        estimate = self.reference.ratio(
            self.reference.class_counter(numerator, [self.index]), delivered
        )
        noise = 0.0 if estimate is None else estimate.relative_half_width
        averaged_s = table.step * (table.steps - table.steps // 2 + 1)
        noise *= self._half_width_ratio(0.95) * math.sqrt(1 + measured_duration_s / averaged_s)
        limit = max(self.tolerance, noise if math.isfinite(noise) else 0.0)
        self._add_verdict_row(quantity, (cells[f"{name}_s"], cells[f"{name}_used_s"]), limit)

    def _add_verdict_row(
        self, quantity: str, values: tuple[float, float], limit: float, min_scale: float = 0.0
    ) -> None:
        reference, cross = values
        scale = max(abs(cross), min_scale)
        difference = (reference - cross) / scale if scale else 0.0
        passed = limit != UNPASSABLE_LIMIT and abs(difference) <= limit
        self.verdict.rows.append(
            {
                "class": self.name,
                "what": quantity,
                "reference": reference,
                "cross": cross,
                "difference": difference,
                "limit": limit,
                "passed": passed,
            }
        )
        differs = f"{quantity}{self.class_suffix} differs by {100 * difference:+.3g} %"
        if math.isnan(difference):
            self.verdict.failed.append(f"{quantity}{self.class_suffix} was not measured")
        elif limit == UNPASSABLE_LIMIT:
            self.verdict.failed.append(
                f"{differs}, with too much noise for a test: its interval is wider than "
                f"±{100 * MAX_BOUND:g} %"
            )
        elif not passed:
            self.verdict.failed.append(differs)


def run_convergence_tests(
    scenario: Scenario,
    table: FixedPoint,
    reference: BatchCounters,
    cross_flows: BatchCounters,
    steps: list[Floats],
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
        class_suffix = f" of class {group.name}" if len(groups) > 1 else ""
        judge = _ClassTests(verdict, index, group.name, class_suffix, *units)
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
        judge.compare_iteration(cells, table, measured_duration_s(scenario))
    flows_per_reference = flows_per_reference_flow(scenario, table)
    together = _ClassTests(verdict, 0, ALL_CLASSES, "", *units)
    if (
        scenario.network.hops
        and table.scheme == OWN_HOPS_SCHEME
        and len(set(flows_per_reference)) == 1
    ):
        together.compare_loss_at_own_hops()
    together.compare_with_littles_law(flows_per_reference, MIN_WAIT_SHARE * scenario.rtt_s)
    return verdict
