"""Engine ``fixed-point``: a few exact flows among cross flows that repeat their measured values.

Baccelli, Hong and Liu, INRIA report 4154, section 5. The native code runs the iterations and the
measurement (``crates/fixed_point``). This module converts its counters to metrics like the packet
engine, with each class weighted by the number of flows per reference flow. The tests of section
5.4 decide whether the metrics can be trusted (:func:`run_convergence_tests`). Above the threshold
the schemes are invalid, and no value is trusted.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

import tcpcast
from tcpcast import _native, statistics
from tcpcast.answer import UNITS, Answer, Status
from tcpcast.answer.metrics import METRICS
from tcpcast.engines.packet import WallTimeLimit, metric_estimates, tables
from tcpcast.engines.packet.configuration import (
    packet_tcp_config,
    probes_config,
    to_nanoseconds,
    traffic_config,
)
from tcpcast.engines.packet.counters import CLASS_COUNTER, LINK_COUNTER, BatchCounters, Snapshot
from tcpcast.engines.packet.cross_traffic import (
    arrival_process_config,
    fluid_config,
    require_stream_hop,
)
from tcpcast.engines.packet.equilibrium import equilibrium_on_times_s, initial_class_states
from tcpcast.engines.packet.file_goodputs import PIECE_INDEX, estimate_exceeded_goodputs
from tcpcast.engines.packet.memory import check_memory
from tcpcast.engines.packet.network_scale import FULL_SCALE
from tcpcast.engines.packet.queue_config import buffer_capacity, discipline_config, finite_bps
from tcpcast.engines.packet.size_moments import mean_drawn_size_pkts
from tcpcast.engines.registry import changes_to_set_stack
from tcpcast.engines.table_columns import estimate_part_column, rows_to_table
from tcpcast.models.local_loop import open_loop_load
from tcpcast.process.errors import NotApplicable, Suggestion
from tcpcast.scenario import FixedPoint
from tcpcast.scenario.cross_checks import find_stream_hop
from tcpcast.scenario.tcp_rules import MAX_PLUS
from tcpcast.scenario.traffic import Bulk, OnOff

if TYPE_CHECKING:
    from tcpcast.array_types import Counts, Floats, Table
    from tcpcast.engines.options import RunOptions
    from tcpcast.engines.packet.counters import Estimates
    from tcpcast.scenario import Scenario
    from tcpcast.scenario.classes import Population
    from tcpcast.scenario.cross import CrossStream
    from tcpcast.scenario.hops import Hop
    from tcpcast.scenario.link import Link

    Goodputs = tuple[int, Counts, Counts, Counts, Counts | Floats]
    """Goodput counts of one replication: the number of slots, then four arrays of equal length
    with the slot, the index of class and piece, the bucket, and the count."""
    from tcpcast.array_types import Floats
    from tcpcast.engines.packet.config_types import Config

DEFAULT_SETTINGS = FixedPoint.model_validate({})

ALTERNATIVE_ENGINES_TEXT = "use the packet engine, or the mean-field engine for a large population"


def fixed_point(scenario: Scenario, options: RunOptions) -> Answer:
    """Predict a scenario by a fixed point.

    Parameters
    ----------
    scenario
        On/off sources or bulk flows, with TCP ``max-plus-reno``; its table ``fixed_point`` selects
        the scheme. The iterations replace ``run.warmup``; the measured time is not shortened.
    options
        Threads and progress; they do not change results.

    Returns
    -------
    Answer
        The packet engine's metrics, with 95 % intervals over the reference flows, and the tables
        ``convergence`` (each test of each class: reference flows, cross flows, difference and
        limit), ``iterations`` (the measured values of each step) and ``reference_flows`` (the
        values of the reference flows with their intervals). If a test fails, or the load exceeds
        the link, the metrics are untrusted and have no intervals; ``incomplete_reason`` contains
        the reason and the size of the difference.

    Raises
    ------
    NotApplicable
        Another TCP or other traffic, random loss, buffers on the links at both ends, another shared
        hop, a run whose length is a number of transfers or a precision.

    References
    ----------
    INRIA report 4154, sections 5.1 to 5.4.
    """
    raise_if_unsupported(scenario)
    table = scenario.fixed_point or DEFAULT_SETTINGS
    config = road_configuration(scenario)
    check_memory(scenario, config, _native.fixed_point_bytes)
    run = _native.Simulation.fixed_point(
        config, native_configuration(scenario, table), scenario.run.replications
    )
    seconds = table.steps * table.step + measured_duration_s(scenario)
    clock = WallTimeLimit(options.compute_deadline(scenario))
    ended = run.advance(
        transfers=None,
        until_ns=to_nanoseconds(seconds),
        threads=options.threads or os.cpu_count() or 1,
        max_wall_s=clock.remaining_s(),
        progress=options.progress,
    )
    flows_per_reference = flows_per_reference_flow(scenario, table)
    classes = len(flows_per_reference)
    counters = run.counters()
    reference, cross_flows = (
        BatchCounters(counters, classes),
        BatchCounters(run.cross_flow_counters(), classes),
    )
    snapshot = Snapshot(
        BatchCounters(
            [_scale_counters_to_classes(row, flows_per_reference) for row in counters], classes
        ),
        run.totals(),
        run.sources(),
        None,
        [_scale_goodputs_to_classes(found, flows_per_reference) for found in run.file_goodputs()],
    )
    by_name = metric_estimates.estimate_metrics(scenario, snapshot)
    by_name = {name: e for name, e in by_name.items() if not METRICS[name].needs_all_flows}
    if (
        len(set(flows_per_reference)) > 1
    ):  # the reference flows do not represent the shares of classes
        by_name.pop("other_loss_ratio", None)
    answer = Answer("fixed-point", kind="simulation", seed=scenario.run.seed)
    answer.replications = scenario.run.replications
    if all(measuring for _, measuring in run.clocks()):
        verdict = run_convergence_tests(scenario, table, reference, cross_flows, run.steps())
        by_share = estimate_exceeded_goodputs(scenario, snapshot)
        found = tables.make_all_tables(scenario, snapshot, by_share)
        cells = dict(zip(_native.STEP_CELLS, np.mean(run.steps(), axis=0).T, strict=True))
        names = np.array([group.name for group in scenario.populations])
        step, number = cells.pop("step").astype(np.int64), cells.pop("class").astype(np.int64)
        found |= {
            "convergence": verdict.table,
            "iterations": {"step": step, "class": names[number], **cells},
        }
        answer.tables = {name: table for name, table in found.items() if table}
        _set_metrics_or_withhold(answer, by_name, verdict, scenario)
        metrics = metric_estimates.convert_to_metrics(by_name)  # keep their intervals
        answer.tables["reference_flows"] = {
            "metric": np.array(list(metrics)),
            **{
                part: estimate_part_column(metrics.values(), part)
                for part in ("value", "low", "high")
            },
            "unit": np.array([UNITS[name] for name in metrics]),
        }
    if ended == "interrupted":
        answer.mark_incomplete(
            "interrupted: the results cover only the finished part", Status.INTERRUPTED
        )
    elif ended == "out-of-time":
        answer.mark_incomplete("run.max_wall was reached before the end of the run")
    if ended != "done" and not answer.tables:
        answer.mark_incomplete("the run ended during the iterations")
    answer.provenance = {
        "version": tcpcast.__version__,
        "scenario": scenario.digest(),
        "replications": scenario.run.replications,
        "scheme": table.scheme,
        "conditional": table.conditional,
        "references": reference_flow_counts(scenario, table),
        "iterations": table.steps,
        "iteration_s": table.step,
        "simulated_s": [now * 1e-9 for now, _ in run.clocks()],
        "interval": "95 %, jackknife over batches of the reference flows",
    }
    return answer


def _scale_counters_to_classes(row: Counts, weights: list[float]) -> Floats:
    """Scale the counters of reference flows to their class, ``[slots + 2, counters]``."""
    factors = np.ones(row.shape[1])
    first, width = len(LINK_COUNTER), len(CLASS_COUNTER)
    factors[LINK_COUNTER["hop_drops"]] = weights[0]
    for index, weight in enumerate(weights):
        factors[first + index * width : first + (index + 1) * width] = weight
    weighted: Floats = row * factors
    return weighted


def _scale_goodputs_to_classes(goodputs: Goodputs, weights: list[float]) -> Goodputs:
    """Scale the counts of file goodput to the classes."""
    slots, slot, groups, bucket, count = goodputs
    factors = np.array(weights)[groups.astype(np.intp) // len(PIECE_INDEX)]
    return slots, slot, groups, bucket, factors * count


def _set_metrics_or_withhold(
    answer: Answer, by_name: Estimates, verdict: ConvergenceResult, scenario: Scenario
) -> None:
    answer.metrics = metric_estimates.convert_to_metrics(by_name)
    failed = f" (failed tests: {'; '.join(verdict.failed)})" if verdict.failed else ""
    why = certain_failure_reason(scenario)
    warning = "no fixed point"
    if compute_offered_load(scenario) > 1:
        warning = "above the threshold"
        answer.mark_incomplete(
            f"no fixed point exists at this load{failed}: {why}; {ALTERNATIVE_ENGINES_TEXT}"
        )
    elif failed and why:
        answer.mark_incomplete(
            f"no fixed point was reached{failed}: {why}; {ALTERNATIVE_ENGINES_TEXT}"
        )
    elif failed:
        answer.mark_incomplete(
            f"no fixed point was reached{failed}; use another scheme, more steps, more reference "
            f"flows or a longer run. Otherwise, {ALTERNATIVE_ENGINES_TEXT}"
        )
    else:
        return
    answer.mark_untrusted(warning)


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
        "queue at per-source links",
        "own_found",
        "arrived",
        min_scale=MIN_QUEUE_PKTS,
        tolerance_factor=2.0,
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
                f"{differs}, but the values are too noisy for a test: the interval is wider than "
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
        # Compare the losses at hops that each source has for itself.
        reference_sums, cross_sums = (
            _SumRatio(units.link("hop_drops"), units.class_counter("sent"))
            for units in (together.reference, together.cross_flows)
        )
        together._compare_ratios(
            _RatioOfBothFlowKinds(
                "loss at per-source hops", "hop_drops", "sent", 1.0, MIN_LOSS, 2.0
            ),
            reference_sums,
            cross_sums,
        )
    if not _shared_streams(scenario):  # the queue also contains their packets
        together.compare_with_littles_law(flows_per_reference, MIN_WAIT_SHARE * scenario.rtt_s)
    return verdict


MIN_OFF_S = 1e-9
"""The engine's unit of time. It replaces OFF times of 0, for which the load would be infinite."""

_START_STOP_KEYS = ("start", "stop")

MIN_FLOWS_PER_REFERENCE = 10
"""At most one in this many flows is a reference flow; the others are cross flows."""


def raise_if_unsupported(scenario: Scenario) -> None:
    """Raise NotApplicable, with suggestions, if a scenario is not supported."""
    if scenario.isolated_transfers is not None:
        raise NotApplicable(
            "the fixed-point engine requires competing sources; "
            'use traffic of kind "on-off" or "bulk"'
        )
    if any(group.tcp.stack != MAX_PLUS for group in scenario.populations):
        other_stack = Suggestion(changes_to_set_stack(scenario, MAX_PLUS))
        raise NotApplicable(
            "the fixed-point engine assumes instantaneous loss feedback, which the scenario's "
            "TCP stack lacks",
            Suggestion(engine="packet") if certain_failure_reason(scenario) else other_stack,
        )
    if scenario.run.transfers is not None or scenario.run.precision is not None:
        raise NotApplicable(
            "the fixed-point engine requires a fixed duration; use run.duration, and omit "
            "run.precision",
            Suggestion({"run.duration": "60s", "run.precision": None}),
        )
    network = scenario.network
    shared = {
        f"network.hop.{index}.shared": False
        for index, hop in enumerate(network.hops)
        if hop.shared and index != network.measured_index
    }
    if shared:
        raise NotApplicable(
            "in the fixed-point engine, flows share only one router, but the scenario has other "
            "shared hops",
            Suggestion(shared),
        )
    if scenario.bottleneck.varying is not None:
        raise NotApplicable(
            "in the fixed-point engine, the rate of the shared link is constant, but "
            f"network.bottleneck.rate is a {scenario.bottleneck.varying.kind}",
            Suggestion({"network.bottleneck.rate": "10mbit"}),
        )
    if network.jitter is not None:
        raise NotApplicable(
            "the fixed-point engine assumes constant delays, but the scenario has jitter",
            Suggestion({"network.jitter": None}),
        )
    if scenario.network.has_return:
        raise NotApplicable(
            "in the fixed-point engine, ACKs are neither queued nor lost, but the return path "
            "of the scenario queues or loses packets",
            Suggestion({"network.return": None, "network.ack_loss": None}),
        )
    if any(group.has_start_or_stop for group in scenario.populations):
        spans = {
            f"class.{g.name}.{key}": None for g in scenario.classes for key in _START_STOP_KEYS
        }
        raise NotApplicable(
            "in the fixed-point engine, flows are always on, but a class has start or stop times",
            Suggestion(spans),
        )
    for group in scenario.populations:
        if not isinstance(group.traffic, OnOff | Bulk):
            who = f" of class {group.name}" if scenario.classes else ""
            raise NotApplicable(
                f"the fixed-point engine does not support transfers{who} that arrive "
                'and end; use traffic of kind "on-off" or "bulk"'
            )
        links = (group.ingress, scenario.bottleneck, group.egress)
        if any(link.loss is not None for link in links):
            losses: dict[str, str | None] = {
                f"network.{name}.loss": None for name in ("ingress", "bottleneck", "egress")
            }
            if math.isinf(scenario.bottleneck.rate_bps):
                losses["network.bottleneck.rate"] = "10mbit"  # the loss was the only limit
            raise NotApplicable(
                "in the fixed-point engine, packets are lost only in the shared queue, but the "
                "scenario has random loss",
                Suggestion(losses),
            )
        own = (group.ingress, group.egress)
        if any(math.isfinite(scenario.network.buffer_pkts(link)) for link in own):
            raise NotApplicable(
                "in the fixed-point engine, network.ingress and network.egress have unlimited "
                "buffers; for a limited buffer, add a hop with shared = false",
                Suggestion({"network.ingress.buffer": None, "network.egress.buffer": None}),
            )


def certain_failure_reason(scenario: Scenario) -> str:
    """Return the reason why the tests of a fixed point must fail, "" if they can pass."""
    load = compute_offered_load(scenario)
    if load > 1:
        return (
            f"the sources offer {load:.3g} times the capacity of the link. At a load above the "
            "capacity, the schemes violate Little's law"
        )
    bulk = any(isinstance(group.traffic, Bulk) for group in scenario.populations)
    if bulk and scenario.senders > 1:
        return "bulk flows never end, so their differences from the reference flows persist"
    return ""


def compute_offered_load(scenario: Scenario) -> float:
    """Return the load that the on/off sources would offer the link if files took no time.

    It is N B / (C I), summed over classes, and 1 at the threshold of section 7.2. Endless flows do
    not contribute; streams of cross traffic reduce C.
    """
    network = scenario.network
    if math.isinf(scenario.bottleneck.rate_bps):
        return 0.0
    link_bps = scenario.bottleneck.rate_bps
    left_bps = link_bps - sum(each.mean_bps(link_bps) for each in _shared_streams(scenario))
    if left_bps <= 0:
        return math.inf
    link_pps = left_bps / (8 * network.packet_bytes)
    return sum(
        float(
            open_loop_load(
                sources=group.count,
                link_pps=link_pps,
                mean_off_s=max(group.traffic.off.mean_value(), MIN_OFF_S),
                mean_size_pkts=max(1.0, group.traffic.size.mean_value()),
            )
        )
        for group in scenario.populations
        if isinstance(group.traffic, OnOff)
    )


def _shared_streams(scenario: Scenario) -> list[CrossStream]:
    """Return the streams of cross traffic in the shared router."""
    network = scenario.network
    places = ((each, find_stream_hop(network, each)) for each in scenario.cross)
    return [each for each, place in places if place is not None and place.shared]


def flows_per_reference_flow(scenario: Scenario, table: FixedPoint) -> list[float]:
    """Return the number of flows per reference flow, by class."""
    return [
        group.count / count
        for group, count in zip(
            scenario.populations, reference_flow_counts(scenario, table), strict=True
        )
    ]


def reference_flow_counts(scenario: Scenario, table: FixedPoint) -> list[int]:
    """Return the number of reference flows per class: as specified, at most a tenth, at least 1."""
    return [
        min(table.references, max(1, group.count // MIN_FLOWS_PER_REFERENCE))
        for group in scenario.populations
    ]


def native_configuration(scenario: Scenario, table: FixedPoint) -> Config:
    """Return the native configuration of a fixed point."""
    # The initial values, time between packets and service time, are means of an equilibrium in
    # which active sources share the link; on a full link, a packet waits for one of each.
    rate = scenario.bottleneck.rate_bps
    turn_s = 8 * scenario.network.packet_bytes / rate
    gaps = []
    active = load = 0.0
    for group, on_s in zip(scenario.populations, equilibrium_on_times_s(scenario), strict=True):
        if on_s is None or not isinstance(group.traffic, OnOff):
            gaps.append(scenario.senders * max(turn_s, 1e-9))
            active += group.count
            load = 1.0
            continue
        size = group.traffic.size.mean_value()
        gaps.append(on_s / size)
        cycle_s = on_s + group.traffic.off.mean_value()
        active += group.count * on_s / cycle_s
        load += group.count * size / cycle_s * turn_s
    full = load > 0.99
    return {
        "scheme": str(table.scheme),
        "queue_rule": table.queue_rule,
        "conditional": table.conditional,
        "moments": table.moments,
        "references": reference_flow_counts(scenario, table),
        "steps": table.steps,
        "step_ns": to_nanoseconds(table.step),
        "initial": [(gap, max(1e-9, turn_s * (max(1.0, active) if full else 1.0))) for gap in gaps],
    }


def road_configuration(scenario: Scenario) -> Config:
    """Return the native configuration of the paths over the shared router."""
    network, router = scenario.network, scenario.bottleneck
    return {
        "seed": scenario.run.seed,
        "packet_bytes": network.packet_bytes,
        "ack_bytes": network.ack_bytes,
        "router_bps": _rate_bps(router),
        "limit_pkts": _limit_pkts(scenario, router),
        "queue": discipline_config(scenario, router),
        "cross": [
            {
                "stage": place.stage,
                "fluid": fluid_config(scenario, stream, place),
                "process": arrival_process_config(scenario, stream, FULL_SCALE),
            }
            for stream in scenario.cross
            for place in [require_stream_hop(scenario, stream)]
        ],
        "hops_before": [_hop_config(scenario, hop) for hop in network.hops_before],
        "hops_after": [_hop_config(scenario, hop) for hop in network.hops_after],
        "classes": [
            _class_config(scenario, group, start)
            for group, start in zip(
                scenario.populations, initial_class_states(scenario), strict=True
            )
        ],
        "probes": probes_config(scenario),
    }


def _rate_bps(link: Link) -> int | None:
    return None if math.isinf(link.serial_bps) else finite_bps(link.serial_bps)


def _limit_pkts(scenario: Scenario, link: Link) -> int | None:
    network = scenario.network
    return buffer_capacity(network.buffer_pkts(link), link.rate, network.packet_bytes)


def _access_config(link: Link) -> Config:
    return {"rate_bps": _rate_bps(link), "delay_ns": to_nanoseconds(link.delay or 0.0)}


def _hop_config(scenario: Scenario, hop: Hop) -> Config:
    return {"link": _access_config(hop), "limit_pkts": _limit_pkts(scenario, hop)}


def _class_config(
    scenario: Scenario, group: Population, start: tuple[float, float] | None
) -> Config:
    network = scenario.network
    others = [group.ingress, *network.hops_before, *network.hops_after, group.egress]
    elsewhere_s = math.fsum(link.delay or 0.0 for link in others)
    return {
        "sources": group.count,
        "ingress": _access_config(group.ingress),
        "egress": _access_config(group.egress),
        "forward_ns": max(0, to_nanoseconds(group.forward_delay_s - elsewhere_s)),
        "back_ns": max(0, to_nanoseconds(group.return_delay_s - elsewhere_s)),
        "traffic": traffic_config(group, start),
        "tcp": packet_tcp_config(group.tcp),
    }


def measured_duration_s(scenario: Scenario) -> float:
    """Return the duration of a replication after its warm-up, in seconds."""
    return (scenario.run.duration_s or 0.0) - (scenario.run.warmup_s or 0.0)
