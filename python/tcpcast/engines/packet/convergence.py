"""Withhold intervals of runs that have not converged: values drift, or stay correlated too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.drift import (
    MIN_CYCLES,
    MIN_INDEPENDENT_UNITS,
    count_independent_units,
    find_drifting_metrics,
)
from tcpcast.metrics import LOSS_INDICATIONS
from tcpcast.scenario.modern_tcp import RATE_BASED
from tcpcast.statistics import find_correlated_metrics
from tcpcast.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcpcast.engines.packet.metric_estimates import BatchCounters, Estimates, Snapshot
    from tcpcast.intervals import MetricKey
    from tcpcast.scenario import Scenario
    from tcpcast.statistics import Estimate

RUN_LENGTH_FACTOR = 4
"""Factor by which the message advises to lengthen a run that has not converged."""

RATE_METRICS = ("send_rate_pps", "goodput_pps", "goodput_bps")
"""Metrics of a class that change if the classes' shares of the link change."""

MAX_WARM_UP_SHARE = 1 / 3
"""Maximum ratio of the measured warm-up to the run. With a larger ratio, the run is too short for
the rates of classes: their slowest fluctuation takes about as long as the warm-up."""

MIN_LOSS_CYCLES = 8
"""Minimum length of a replication, in mean times between losses, if classes with and without BBR
share a link. With only 4 mean times, half of the runs with one flow per class missed the true rates
by a factor of three, but showed no trend (60 s, buffer 16 BDP, 4 replications)."""

BBR_CYCLE_S = 10.0
"""Time in seconds between two PROBE_RTT phases, in which BBR flows empty the queue and change
their shares."""


def find_unconverged_metrics(
    scenario: Scenario, snapshot: Snapshot, estimates: Estimates
) -> dict[str, str]:
    """Return the metrics of an answer that have no interval because they vary slowly, with reasons.

    Jain's index is one number per replication. It drifts if the goodput of any class does.
    """
    if scenario.isolated_transfers is not None:  # each transfer starts from the initial state
        return {}
    reasons = _find_drifting_or_correlated(scenario, estimates)
    if "jain_index" in estimates:
        drifts = (
            _drift_reason(scenario)
            if find_drifting_metrics(_goodput_per_class(scenario, snapshot))
            else None
        )
        if (reason := drifts or _too_short_for_rates_reason(scenario, snapshot)) is not None:
            reasons["jain_index"] = reason
    return reasons


def find_unconverged_class_metrics(
    scenario: Scenario, snapshot: Snapshot, each: Sequence[Estimates]
) -> list[dict[str, str]]:
    """Return :func:`find_unconverged_metrics` for the estimates of each class.

    All classes share one significance level, so that many classes do not cause more false alarms.
    """
    if scenario.isolated_transfers is not None:
        return [{} for _ in each]
    tested = {
        (index, name): e for index, estimates in enumerate(each) for name, e in estimates.items()
    }
    short = _too_short_for_rates_reason(scenario, snapshot)
    rates = (
        {named: short for named in tested if named[1] in RATE_METRICS} if short is not None else {}
    )
    reasons = rates | _find_drifting_or_correlated(scenario, tested)
    return [
        {name: reasons[index, name] for name in estimates if (index, name) in reasons}
        for index, estimates in enumerate(each)
    ]


def _too_short_for_rates_reason(scenario: Scenario, snapshot: Snapshot) -> str | None:
    groups = scenario.populations
    if len(groups) == 1:
        return None
    measured_s = snapshot.units.measured_s
    warm_up_s = snapshot.units.elapsed_s - measured_s / snapshot.units.replications
    if scenario.run.warmup_s is None and warm_up_s > MAX_WARM_UP_SHARE * snapshot.units.elapsed_s:
        advice = _longer_run_advice(scenario)
        return f"the run is too short: the warm-up takes more than a third of the run; {advice}"
    of_bbr = [g for g in groups if g.traffic.kind == "bulk" and g.tcp.control in RATE_BASED]
    if len(of_bbr) > 1 and measured_s < MIN_CYCLES * BBR_CYCLE_S:
        cycles = f"{MIN_CYCLES} cycles of {BBR_CYCLE_S:g} s, in which the shares of BBR flows vary"
    else:
        cycle_s = _loss_cycle_s(scenario, snapshot.units)
        each_s = measured_s / snapshot.units.replications
        if not of_bbr or each_s >= MIN_LOSS_CYCLES * cycle_s:
            return None
        cycles = f"{MIN_LOSS_CYCLES} times {cycle_s:.3g} s, the mean time between losses of a flow"
    return (
        f"the run is too short: the time after the warm-up is less than {cycles}; "
        f"{_longer_run_advice(scenario)}"
    )


def count_loss_indications(units: BatchCounters, numbers: Sequence[int] | None = None) -> float:
    """Return the number of loss indications of the given classes (default: all)."""
    return float(sum(units.total(cell, numbers) for cell in LOSS_INDICATIONS))


def _loss_cycle_s(scenario: Scenario, units: BatchCounters) -> float:
    """Return the longest mean time in seconds between losses of an endless flow, excluding BBR."""
    measured_s = units.measured_s
    cycles = [0.0]
    for index, group in enumerate(scenario.populations):
        if group.traffic.kind == "bulk" and group.tcp.control not in RATE_BASED:
            losses = count_loss_indications(units, [index])
            cycles.append(measured_s * group.count / losses if losses else 0.0)
    return max(cycles)


def _find_drifting_or_correlated(
    scenario: Scenario, estimates: Mapping[MetricKey, Estimate | None]
) -> dict[MetricKey, str]:
    slow = {
        name: _correlation_reason(scenario)
        for name in find_correlated_metrics(estimates)
        if _has_few_independent_units(estimates[name])
    }
    return slow | dict.fromkeys(find_drifting_metrics(estimates), _drift_reason(scenario))


def _has_few_independent_units(estimate: Estimate | None) -> bool:
    if estimate is None or estimate.pseudo_values is None:
        return False
    return (
        count_independent_units(estimate.pseudo_values, estimate.replications)
        < MIN_INDEPENDENT_UNITS
    )


def _goodput_per_class(scenario: Scenario, snapshot: Snapshot) -> dict[int, Estimate | None]:
    """Return the goodput of each class, if there are several."""
    units, groups = snapshot.units, scenario.populations
    if len(groups) == 1:
        return {}
    return {
        index: units.ratio(units.class_counter("delivered", [index]), units.on_seconds([group]))
        for index, group in enumerate(groups)
    }


def _drift_reason(scenario: Scenario) -> str:
    advice = _longer_run_advice(scenario)
    return f"still drifting: the values at the start and at the end of the run differ; {advice}"


def _correlation_reason(scenario: Scenario) -> str:
    few = f"it contains fewer than {MIN_INDEPENDENT_UNITS} statistically independent periods"
    return f"the run is too short: {few}; {_longer_run_advice(scenario)}"


def _longer_run_advice(scenario: Scenario) -> str:
    """Return the advice to make the run longer: the present run becomes the warm-up."""
    run = scenario.run
    if run.transfers is not None:
        return f"run longer (run.transfers = {RUN_LENGTH_FACTOR * run.transfers})"
    if run.duration_s is None:
        return f"run {RUN_LENGTH_FACTOR} times as long"
    present, longer = (
        format_duration(float(f"{s:.6g}"))
        for s in (run.duration_s, RUN_LENGTH_FACTOR * run.duration_s)
    )
    return f'run longer (run.duration = "{longer}", run.warmup = "{present}")'
