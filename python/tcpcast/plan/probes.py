"""The probes of a plan: one run per value of the varied quantity, each with another seed."""

from __future__ import annotations

import hashlib
import math
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tcpcast.answer import Metric
from tcpcast.engines import RunOptions, answer
from tcpcast.engines.formula.collect_inputs import loss_limited_pps
from tcpcast.process.errors import NotApplicable, name_of
from tcpcast.quantity import units
from tcpcast.scenario.modern_tcp import RATE_BASED
from tcpcast.scenario.traffic import OnOff, Transfers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tcpcast.answer import Answer
    from tcpcast.plan.search import SearchGoal
    from tcpcast.plan.varied import Varied
    from tcpcast.scenario import Scenario

MIN_FILES = 2000
"""Approximate minimum number of files per run; runs with few sources become longer."""

MIN_LOSSES, MIN_LOSSES_PER_FLOW, WARM_UP_LOSSES_PER_FLOW = 400, 10, 5
"""Minimum number of random losses in a run with bulk flows: in total, per flow, and per flow before
the measurement. With fewer losses, the start of the flows affects their rate."""

WARM_UP_RTTS, SLOW_WARM_UP_RTTS = 20, 500
"""Minimum warm-up with random loss in RTTs; the second value is for BBR, whose rate estimate falls
only by a few per cent per cycle of eight RTTs if losses exceed what its probes recover."""

MAX_RUN_PACKETS = 1e7
"""Maximum number of packets to which runs are extended, a few seconds."""

MIN_FULL_UTILISATION = 0.99
"""Utilisation from which a link without finished transfers is overloaded."""

MAX_START_PACKETS = 2e8
"""Maximum number of packets of the shortest useful run; longer runs are refused."""


class SimulationStopped(Exception):  # noqa: N818 - the user's decision rather than an error
    """The user interrupted a run, or ``run.max_wall`` was reached."""

    def __init__(self, *, interrupted: bool) -> None:
        super().__init__()
        self.interrupted = interrupted


@dataclass(slots=True)
class Probes:
    """Runs of one scenario for values of the varied quantity.

    ``read`` returns the metric that is compared with the target of ``goal``. ``share`` is the
    length of a run, relative to the scenario's run, and ``warm_up_s`` its minimum warm-up (None for
    that of the scenario). The total time is limited to the scenario's ``run.max_wall``.
    ``fixed_changes`` are changes of all runs. A formula (``is_exact``) has no seed and no interval.
    """

    varied: Varied
    engine: str
    goal: SearchGoal
    read: Callable[[Answer], Metric | None]
    options: RunOptions | None = None
    fixed_changes: Mapping[str, Any] = field(default_factory=dict)
    is_exact: bool = False
    share: float = 1.0
    warm_up_s: float | None = None
    answers: dict[float, Answer] = field(default_factory=dict)
    metrics: dict[float, Metric] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Start the time limit."""
        options = self.options or RunOptions()
        if options.deadline is None:
            options = replace(options, deadline=options.compute_deadline(self.varied.scenario))
        self.options = options

    def with_share(self, share: float, warm_up_s: float | None = None) -> Probes:
        """Return probes of another length, without results."""
        warm_up_s = self.warm_up_s if warm_up_s is None else warm_up_s
        return replace(self, share=share, warm_up_s=warm_up_s, answers={}, metrics={})

    def measure(self, value: float) -> float:
        """Return the metric at a value; simulate at the first call.

        An overloaded run, whose metric grows with its length, misses the target by far.

        Raises
        ------
        SimulationStopped
            The run was interrupted, or the time limit reached.
        NotApplicable
            The engine does not cover the scenario, or the run has no data for the metric.
        """
        if value not in self.metrics:
            if self._is_past_deadline():
                raise SimulationStopped(interrupted=False)
            try:
                scenario, found = self.simulate(value)
            except KeyboardInterrupt:
                raise SimulationStopped(interrupted=True) from None
            if found.interrupted or (found.incomplete_reason and self._is_past_deadline()):
                raise SimulationStopped(interrupted=found.interrupted)
            self.metrics[value] = self._read_metric(value, scenario, found)
            self.answers[value] = found
        return self.metrics[value].value

    def _read_metric(self, value: float, scenario: Scenario, found: Answer) -> Metric:
        metric = None if found.withheld else self.read(found)
        is_known = metric is not None and math.isfinite(metric.value)
        has_bound = metric is not None and metric.at_least is not None
        busy = found.metrics.get("utilisation")
        # On a full link, transfers do not end in time.
        is_full = not is_known and busy is not None and busy.value >= MIN_FULL_UTILISATION
        if (scenario.arriving_load or 0.0) >= 1 or (has_bound and not is_known) or is_full:
            worst = self.goal.worst_metric
            return Metric(worst, worst, worst)
        if metric is not None and is_known:
            return replace(metric, low=metric.value, high=metric.value) if self.is_exact else metric
        why = found.incomplete_reason
        length = "transfers" if scenario.run.duration_s is None else "duration"
        raise NotApplicable(
            f"{self.engine} gives no {self.goal.metric} at {self.varied.name} = {value:,.6g}"
            + (f": {why}" if why else f"; use a larger run.{length}")
        )

    def without_exact_interval(self, metric: Metric) -> Metric:
        """Return a metric without the interval of width 0 that a formula has in the search."""
        return replace(metric, low=None, high=None) if self.is_exact else metric

    def _is_past_deadline(self) -> bool:
        end = None if self.options is None else self.options.deadline
        return end is not None and time.perf_counter() >= end

    def scenario_at(self, value: float) -> Scenario:
        """Return the scenario with a value, as a user would run it."""
        return self.varied.scenario.with_changes(self.varied.make_changes(value))

    def simulate(self, value: float) -> tuple[Scenario, Answer]:
        """Run the engine at a value; return the scenario of the run, and the answer."""
        scenario = self.scenario_at(value)
        if not self.is_exact:
            changes = {**self.fixed_changes, **self._length_changes(scenario)}
            key = f"{scenario.run.seed} {sorted(self.varied.make_changes(value).items())} {changes}"
            # Equal seeds would correlate the errors of nearby values.
            seed = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=4).digest())
            scenario = scenario.with_changes(changes | {"run.seed": seed})
        (found,) = answer(scenario, [self.engine], self.options)
        if not found.applies:
            raise NotApplicable(found.reason, *found.suggestions)
        return scenario, found

    def is_longer_than(self, other: Probes, value: float) -> bool:
        """Return True if the runs at a value are longer than those of other probes."""
        scenario = self.scenario_at(value)
        return self._length_changes(scenario) != other._length_changes(scenario)

    def estimate_packets(self) -> float:
        """Return the approximate number of packets in a run of the scenario's length."""
        scenario = self.varied.scenario
        run, network = scenario.run, scenario.network
        if scenario.isolated_transfers is not None:
            return 0.0
        if run.transfers is not None:
            packets = run.transfers * max(
                _mean_size_pkts(each.traffic) for each in scenario.populations
            )
        else:
            link_pps = scenario.bottleneck.rate_bps / (8 * network.packet_bytes)
            packets = link_pps * (run.duration_s or 0.0)
        return packets * run.replications if packets < math.inf else 0.0

    def _length_changes(self, scenario: Scenario) -> dict[str, Any]:
        """Return the changes that set the length of a run."""
        run = scenario.run
        changes: dict[str, Any] = {}
        share = min(self.share, max(1.0, MAX_RUN_PACKETS / max(self.estimate_packets(), 1.0)))
        if scenario.isolated_transfers is not None:
            return changes
        if run.transfers is not None:
            enough = min(run.transfers, MIN_FILES)
            return changes | {"run.transfers": max(math.ceil(share * run.transfers), enough)}
        warm_up = run.warmup_s or 0.0
        measured = share * ((run.duration_s or 0.0) - warm_up)
        warm_up = max(warm_up, self.warm_up_s or 0.0)
        # The maximum number of files per second; infinity without files.
        rates = []
        for each in scenario.populations:
            if isinstance(each.traffic, OnOff):
                rates.append(each.count / each.traffic.off.mean_value())
            elif isinstance(each.traffic, Transfers) and each.traffic.arrivals is not None:
                rates.append(each.traffic.arrivals.rate)
        measured = max(
            measured, 1.2 * MIN_FILES / (math.fsum(rates) if rates else math.inf) / run.replications
        )
        if any(each.traffic.kind == "bulk" for each in scenario.populations):
            warm_up, measured = _extend_for_losses(scenario, warm_up, measured, self.share)
        # Round up to seconds, or to milliseconds if no measured time would remain.
        per_s = 1 if math.ceil(warm_up) < math.ceil(warm_up + measured) else 1000
        length = math.ceil(per_s * (warm_up + measured)) / per_s
        changes |= {"run.duration": units.format_duration(length)}
        if run.warmup_s is not None or warm_up > 0:
            start = math.ceil(per_s * warm_up) / per_s
            changes |= {"run.warmup": units.format_duration(start)}
        return changes


def _mean_size_pkts(traffic: Any) -> float:
    return float(traffic.size.mean_value() if traffic.kind == "on-off" else traffic.mean_size_pkts)


def _extend_for_losses(
    scenario: Scenario, warm_up: float, measured: float, times: float
) -> tuple[float, float]:
    """Return warm-up and measured time of a run in which bulk flows have enough losses, n times.

    Without random loss, they are as given.
    """
    bulk = [each for each in scenario.populations if each.traffic.kind == "bulk"]
    packet_bits, flows = 8 * scenario.network.packet_bytes, sum(each.count for each in bulk)
    total_pps, first, least = 0.0, 0.0, 0.0
    for each in bulk:
        loss = scenario.path(each).loss
        pps = min(
            loss_limited_pps(each, loss),
            each.tcp.receiver_window / each.rtt_s,
            min(on.link.rate_bps / (flows if on.shared else 1) for on in each.route) / packet_bits,
        )
        total_pps += each.count * pps
        if loss > 0:
            slow = SLOW_WARM_UP_RTTS if each.tcp.control in RATE_BASED else WARM_UP_RTTS
            start = max(WARM_UP_LOSSES_PER_FLOW / (loss * pps), slow * each.rtt_s)
            wanted = max(MIN_LOSSES_PER_FLOW, MIN_LOSSES / each.count) / (loss * pps)
            first, least = max(first, start), max(least, times * wanted, start)
    shortest = 2 * WARM_UP_RTTS * max(each.rtt_s for each in bulk)
    if shortest * total_pps > MAX_START_PACKETS:
        raise NotApplicable(
            f"each simulation would send more than {shortest * total_pps / 1e6:,.0f} million "
            f"packets; use a lower rate, or a formula ({name_of('--engine')})"
        )
    if not first:
        return warm_up, measured
    affordable = max(MAX_RUN_PACKETS / total_pps, shortest)
    first = min(first, affordable / 2)
    return first, min(least, affordable - first)
