"""Engine ``fixed-point``: a few exact flows among cross flows that repeat their measured values.

Baccelli, Hong and Liu, INRIA report 4154, section 5. The native code runs the iterations and the
measurement (``crates/fixed_point``). This module converts its counters to metrics like the packet
engine, with each class weighted by the number of flows per reference flow. The tests of section
5.4 decide whether the metrics can be trusted (:mod:`.convergence`). Above the threshold the
schemes are invalid, and no value is trusted.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

import tcpcast
from tcpcast import _native
from tcpcast.answer import UNITS, Answer, Status
from tcpcast.engines.fixed_point.configuration import (
    certain_failure_reason,
    compute_offered_load,
    flows_per_reference_flow,
    measured_duration_s,
    native_configuration,
    raise_if_unsupported,
    reference_flow_counts,
)
from tcpcast.engines.fixed_point.convergence import ConvergenceResult, run_convergence_tests
from tcpcast.engines.packet import WallTimeLimit, metric_estimates, tables
from tcpcast.engines.packet.configuration import make_configuration, to_nanoseconds
from tcpcast.engines.packet.file_goodputs import PIECE_INDEX, estimate_exceeded_goodputs
from tcpcast.engines.packet.memory import check_memory
from tcpcast.engines.table_columns import estimate_part_column
from tcpcast.metrics import METRICS
from tcpcast.scenario import FixedPoint

if TYPE_CHECKING:
    from tcpcast.array_types import Counts, Floats, Table
    from tcpcast.engines import RunOptions
    from tcpcast.engines.packet.metric_estimates import Estimates
    from tcpcast.scenario import Scenario

    Goodputs = tuple[int, Counts, Counts, Counts, Counts | Floats]
    """Goodput counts of one replication: the number of slots, then four arrays of equal length
    with the slot, the index of class and piece, the bucket, and the count."""

DEFAULT_SETTINGS = FixedPoint.model_validate({})

ALTERNATIVE_ENGINES_TEXT = "use --engine packet, or --engine mean-field for a large population"


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
        hop, cross traffic in the shared router, a run whose length is a number of transfers or a
        precision.

    References
    ----------
    INRIA report 4154, sections 5.1 to 5.4.
    """
    raise_if_unsupported(scenario)
    table = scenario.fixed_point or DEFAULT_SETTINGS
    config = make_configuration(scenario, 0.0)
    check_memory(scenario, config)
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
    return _make_answer(scenario, table, run, ended)


def _make_answer(
    scenario: Scenario, table: FixedPoint, run: _native.Simulation, ended: str
) -> Answer:
    flows_per_reference = flows_per_reference_flow(scenario, table)
    classes = len(flows_per_reference)
    counters = run.counters()
    reference, cross_flows = (
        metric_estimates.BatchCounters(counters, classes),
        metric_estimates.BatchCounters(run.cross_flow_counters(), classes),
    )
    snapshot = metric_estimates.Snapshot(
        metric_estimates.BatchCounters(
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
        # Its counts are of the reference flows only.
        found.pop("by_hop", None)
        found |= {
            "convergence": verdict.table,
            "iterations": _iteration_table(scenario, run.steps()),
        }
        answer.tables = {name: table for name, table in found.items() if table}
        _set_metrics_or_withhold(answer, by_name, verdict, scenario)
        answer.tables["reference_flows"] = _metric_table(by_name)  # keeps its intervals
    _warn_if_ended_early(answer, ended)
    answer.provenance = _provenance(scenario, table, run)
    return answer


def _scale_counters_to_classes(row: Counts, weights: list[float]) -> Floats:
    """Scale the counters of reference flows to their class, ``[slots + 2, counters]``."""
    factors = np.ones(row.shape[1])
    first, width = len(metric_estimates.LINK_COUNTER), len(metric_estimates.CLASS_COUNTER)
    factors[metric_estimates.LINK_COUNTER["hop_drops"]] = weights[0]
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


def _warn_if_ended_early(answer: Answer, ended: str) -> None:
    if ended == "interrupted":
        answer.mark_incomplete(
            "interrupted: the results cover only the finished part", Status.INTERRUPTED
        )
    elif ended == "out-of-time":
        answer.mark_incomplete("run.max_wall was reached before the end of the run")
    if ended != "done" and not answer.tables:
        answer.mark_incomplete("the run ended during the iterations")


def _metric_table(by_name: Estimates) -> Table:
    metrics = metric_estimates.convert_to_metrics(by_name)
    return {
        "metric": np.array(list(metrics)),
        **{part: estimate_part_column(metrics.values(), part) for part in ("value", "low", "high")},
        "unit": np.array([UNITS[name] for name in metrics]),
    }


def _iteration_table(scenario: Scenario, steps: list[Floats]) -> Table:
    """Return the values of each step, the measurement last, as means over replications."""
    cells = dict(zip(_native.STEP_CELLS, np.mean(steps, axis=0).T, strict=True))
    names = np.array([group.name for group in scenario.populations])
    step, number = cells.pop("step").astype(np.int64), cells.pop("class").astype(np.int64)
    return {"step": step, "class": names[number], **cells}


def _provenance(scenario: Scenario, table: FixedPoint, run: _native.Simulation) -> dict[str, Any]:
    return {
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
