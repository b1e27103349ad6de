"""Rules that decide which intervals of a run can be trusted.

A rule stores a warning in the estimate. An interval is withheld if the run had too few observations
for any interval; otherwise it is kept and shown with its warning. The rules per metric, and the
coverage of the remaining intervals, are in ``docs/background/statistics.md``.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer import Note
from tcpcast.drift import MIN_CYCLES
from tcpcast.engines.packet.convergence import (
    count_loss_indications,
    find_unconverged_class_metrics,
    find_unconverged_metrics,
)
from tcpcast.engines.packet.heavy_tails import warn_about_heavy_tails
from tcpcast.engines.packet.identical_classes import compare_identical_classes
from tcpcast.engines.packet.unfinished_transfers import replace_by_lower_bounds
from tcpcast.metrics import LOSS_INDICATIONS, METRICS
from tcpcast.readable_units import count_text, time_text
from tcpcast.scenario.modern_tcp import RATE_BASED
from tcpcast.scenario.queue import FairQueue
from tcpcast.statistics import MIN_EVENTS, MIN_UNITS, find_correlated_metrics

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tcpcast.array_types import Floats, Table
    from tcpcast.engines.packet.metric_estimates import BatchCounters, Estimates, Snapshot
    from tcpcast.metric_definition import Counters
    from tcpcast.scenario import Scenario
    from tcpcast.statistics import Estimate

MIN_FILES = 100
"""Minimum number of files for an interval of a metric of files."""

MIN_REPLICATIONS = 4
"""Minimum number of replications for an interval of a metric with one value per replication."""

MIN_CORRELATION_TIMES = 200
"""Minimum run length in correlation times of the queue, for transfers with random arrivals."""

MIN_TAIL_CORRELATION_TIMES = 30
"""Minimum time in the tail of the queue, in its correlation times, for an interval of a goodput
quantile of transfers with random arrivals: the slowest files arrive while the queue is long."""

MAX_SKEW_CORRECTION = 0.1
"""Maximum of skewness / ``(6 sqrt(batches))`` for which the interval can be corrected for the
skewness of the batches."""

MIN_EQUAL_VALUES = 1000
"""Minimum number of equal observations from which the value is treated as constant, with the
interval of the rule of three."""

NEAR_LOSS_SHARE = 0.5
"""If the queue never exceeded this share of its buffer, it was far from loss."""

PERCENTILES = np.array([0.5, 0.95, 0.99])
"""Percentiles in the tables."""

TIMEOUT_SEQUENCES = ("timeout_sequences",)

MAX_STEADY_WIDTH = 0.01
"""Relative half-width of the interval up to which a value is steady although fewer than
:data:`MIN_EVENTS` batches differ from the others."""
RARE_BATCHES_FACTOR = 2.3
"""Upper 95 % limit of a Poisson mean after one event, 5.57, minus 1, over the half-width by Student
with one differing batch, 2.04; smaller for more batches."""

EVENT_NAMES: dict[Counters, str] = {
    ("timeouts",): "timeouts",
    TIMEOUT_SEQUENCES: "timeouts",
    ("fast_retransmits",): "fast retransmits",
}
"""Names of counted events in messages; all others are "losses"."""


def add_interval_warnings(
    scenario: Scenario, snapshot: Snapshot, estimates: Estimates
) -> Estimates:
    """Return the estimates over all classes with their warnings: see :func:`_add_warnings`."""
    classes = range(len(scenario.populations))
    return _add_warnings(
        scenario,
        snapshot,
        estimates,
        classes,
        find_unconverged_metrics(scenario, snapshot, estimates),
    )


def add_class_interval_warnings(
    scenario: Scenario, snapshot: Snapshot, each: Sequence[Estimates]
) -> list[Estimates]:
    """Return the estimates of each class with their warnings: see :func:`_add_warnings`."""
    slow = find_unconverged_class_metrics(scenario, snapshot, each)
    warned = [
        _add_warnings(scenario, snapshot, estimates, (index,), slow[index])
        for index, estimates in enumerate(each)
    ]
    return compare_identical_classes(scenario.populations, warned)


def _add_warnings(
    scenario: Scenario,
    snapshot: Snapshot,
    estimates: Estimates,
    classes: Sequence[int],
    slow: Mapping[str, str],
) -> Estimates:
    """Return the estimates with their warnings; too few observations withhold an interval.

    Parameters
    ----------
    scenario, seen
        The scenario and the counters of its run.
    estimates
        Estimates by metric, over all classes or some.
    classes
        Indices of the classes.
    slow
        Metrics that have not converged, with reasons.
    """
    units = snapshot.units
    missing = _few_data_text(scenario, units, classes)
    if has_too_few_files(scenario, units, classes):
        estimates = {
            name: replace(e, value=math.nan) if e is not None and e.units else e
            for name, e in estimates.items()
        }
    warnings = [
        *_short_run_warnings(scenario, units, classes),
        *warn_about_heavy_tails(scenario, units, classes, min_files=MIN_FILES),
    ]
    rare, short = (
        _rare_loss_warnings(scenario, snapshot, classes),
        find_correlated_metrics(estimates),
    )
    by_metric = {
        name: None
        if e is None
        else _add_metric_warnings(
            name, e, units, missing or rare.get(name) or slow.get(name), warnings
        )
        for name, e in estimates.items()
    }
    by_batches = {
        name: None if e is None else _add_batch_warnings(name, e, units, correlated=name in short)
        for name, e in by_metric.items()
    }
    return replace_by_lower_bounds(scenario, snapshot, by_batches, classes)


def reliable_percentiles(percentiles: Floats, files: NDArray[Any]) -> Floats:
    """Return the 50th, 95th and 99th percentiles; nan if fewer than 10 files exceed the percentile.

    Parameters
    ----------
    percentiles
        ``[rows, 3]``.
    files
        Number of files per row, ``[rows]``.
    """
    beyond = np.asarray(files, dtype=np.float64)[:, None] * (1.0 - PERCENTILES)
    # Tolerance of half a file for rounding: 1000 times 1 % is slightly less than 10.
    return np.where(beyond > MIN_EVENTS - 0.5, percentiles.astype(np.float64), np.nan)


def withhold_goodput_intervals(table: Mapping[str, NDArray[Any]], files: float) -> Table:
    """Return table ``file_goodput``, without intervals if too few files represent all."""
    if files >= MIN_FILES or not table:
        return dict(table)
    return dict(table) | {name: np.full_like(table[name], np.nan) for name in ("low", "high")}


def warn_about_goodput_quantiles(
    scenario: Scenario, units: BatchCounters, estimates: Mapping[float, Estimate]
) -> list[Note]:
    """Return notes on quantiles of file goodput whose interval is missing or needs a check.

    Parameters
    ----------
    scenario, units
        The scenario and the counters of its run.
    estimates
        Estimates by the share of the files that exceeds them.
    """
    files = units.total("transfers")
    load = scenario.arriving_load
    relaxation_s = 0.0 if load is None or load >= 1.0 else _queue_relaxation_s(scenario, load)
    reasons: dict[str, list[float]] = {}
    withheld = ""
    lacking = [share for share, e in estimates.items() if e.low is None or files < MIN_FILES]
    if lacking:
        rarest = min(min(share, 1.0 - share) for share in lacking)
        needed = max(MIN_FILES, math.ceil(MIN_EVENTS / rarest - 1e-6))
        found = count_text(files, "file")
        withheld = f"too few files: {found}, but {needed:,} are needed; no interval for"
        reasons[withheld] = lacking
    short = find_correlated_metrics(estimates)
    for share, e in estimates.items():
        needed_s = MIN_TAIL_CORRELATION_TIMES * relaxation_s / min(share, 1.0 - share)
        warning = _shorter_than_text(units, needed_s) or next(
            _short_run_warnings_by_metric(e, correlated=share in short), None
        )
        if share not in lacking and warning is not None:
            reasons.setdefault(f"{warning}; check the interval of", []).append(share)
    return [
        Note(
            f"{why} the goodput that {', '.join(f'{100 * share:.6g} %' for share in shares)} of "
            "files reach",
            ("file_goodput",),
            kind="withheld" if why == withheld else "check",
        )
        for why, shares in reasons.items()
    ]


def _add_metric_warnings(
    name: str,
    estimate: Estimate,
    units: BatchCounters,
    missing: str | None,
    warnings: Sequence[tuple[str, bool]],
) -> Estimate:
    if estimate.low is None and estimate.units == 0:  # a requested number, or an extreme
        return estimate
    if name == "rtt_packet_mean_s" and estimate.value > units.elapsed_s:
        # Packets that are still in flight count with their times, but not as acked packets.
        text = "the run is too short: packets wait for their ACKs longer than it lasts"
        return replace(estimate, value=math.nan).with_warning(text, withheld=True)
    if METRICS[name].unit == "1" and METRICS[name].counts_events and estimate.value > 1.0:
        # Packets of the warm-up that are lost later count as lost, but not as sent.
        text = "the run is too short: most packets were sent during the warm-up"
        return replace(estimate, value=math.nan).with_warning(text, withheld=True)
    reason = missing or _few_data_text_of_metric(name, estimate, units)
    if name == "jain_index" and estimate.units < MIN_REPLICATIONS:
        reason = f"too few replications: at least {MIN_REPLICATIONS} replications are needed"
    if reason is None and estimate.low is None:
        reason = "all events occurred in one batch of the run"
    if reason is not None:
        return estimate.with_warning(reason, withheld=True)
    if METRICS[name].can_be_constant and estimate.half_width == 0.0:
        estimate = _rule_of_three_interval(name, estimate, units)
    elif METRICS[name].can_be_constant and (ends := _steady_interval(estimate)) is not None:
        low, high = ends
        maximum = 1.0 if METRICS[name].unit == "1" else math.inf
        estimate = replace(estimate, low=max(low, 0.0), high=min(high, maximum))
    for warning, is_permanent in warnings:
        estimate = estimate.with_warning(warning, is_permanent=is_permanent)
    return estimate


def _add_batch_warnings(
    name: str, estimate: Estimate, units: BatchCounters, *, correlated: bool
) -> Estimate:
    for warning in _short_run_warnings_by_metric(estimate, correlated=correlated):
        # The batches of this metric may differ because few packets wait for a timeout.
        timeouts = units.total("timeouts") if name == "rtt_packet_mean_s" else 0.0
        rare = _few_events_text("timeouts", timeouts, "timeout") if timeouts else None
        estimate = estimate.with_warning(rare or warning)
    return estimate


def _few_events_text(events: str, count: float, noun: str) -> str | None:
    if count >= MIN_EVENTS:
        return None
    return f"too few {events}: {count_text(count, noun)}, but {MIN_EVENTS} are needed"


def _rule_of_three_interval(name: str, estimate: Estimate, units: BatchCounters) -> Estimate:
    """Return an interval for a value that was equal in all n observations (rule of three).

    With 95 % confidence, less than a share 3/n of all observations differs from the constant. The
    interval assumes that this share differs, by as much as the constant itself.
    """
    _, among = METRICS[name].ratio_of
    snapshot = units.sums(
        among if among in (TIMEOUT_SEQUENCES, LOSS_INDICATIONS) else ("arrived",)
    ).sum()
    half = 3.0 / max(snapshot, 3.0) * abs(estimate.value)
    high = estimate.value + half
    high = min(high, max(1.0, estimate.value)) if name == "utilisation" else high
    return replace(estimate, low=estimate.value - half, high=high, half_width=half)


def has_too_few_files(
    scenario: Scenario, units: BatchCounters, classes: Sequence[int] | None = None
) -> bool:
    """Return True if the run finished too few files for sums over the run to be representative.

    False for isolated transfers, each of which is complete by itself, and for flows without files,
    whose observations are packets.
    """
    groups = scenario.populations
    kinds = {
        groups[index].traffic.kind for index in (range(len(groups)) if classes is None else classes)
    }
    if scenario.isolated_transfers is not None or not kinds & {"on-off", "transfers"}:
        return False
    return units.total("transfers", classes) < MIN_EVENTS


def _few_data_text(scenario: Scenario, units: BatchCounters, classes: Sequence[int]) -> str | None:
    """Return a message if all metrics rest on too few files, or on too few losses of flows."""
    kinds = {scenario.populations[index].traffic.kind for index in classes}
    if kinds & {"on-off", "transfers"}:
        files = units.total("transfers", classes)
        enough = min_files(scenario, float(files), count_loss_indications(units, classes))
        if files < enough:
            return f"too few files: {count_text(files, 'file')}, but {enough} are needed"
        return None
    losses = count_loss_indications(units, classes)
    has_marks = count_effective_marks(scenario, units, classes) >= MIN_EVENTS
    if has_marks or (losses == 0 and not scenario.has_random_loss):
        return None
    return _few_events_text("loss indications", losses, "loss indication")


def min_transfers_by_size(scenario: Scenario, snapshot: Snapshot) -> dict[int, int]:
    """Return the minimum number of transfers for an interval, per listed size.

    Loss indications are counted over all sizes: each size gets its share of all losses.
    """
    counts, lost = Counter[int](), Counter[int]()
    for size, losses, count, *_ in snapshot.totals["transfers"]:
        counts[size] += count
        lost[size] += losses * count
    each = count_loss_indications(snapshot.units) / max(lost.total(), 1)
    return {size: min_files(scenario, counts[size], each * lost[size]) for size in counts}


def min_files(scenario: Scenario, files: float, indications: float) -> int:
    """Return the minimum number of files for an interval.

    Isolated transfers need fewer files if each has many losses, or if all are equal because only
    their own queue drops packets.
    """
    if scenario.isolated_transfers is None or files == 0.0:
        return MIN_FILES
    network = scenario.network
    own_queue = network.bottleneck.queue == "droptail" and network.jitter is None
    if own_queue and not scenario.cross and not scenario.has_random_loss:
        return MIN_UNITS
    each = max(1.0, indications / files / MIN_EVENTS)
    return max(MIN_UNITS, math.ceil(MIN_FILES / each))


def _rare_loss_warnings(
    scenario: Scenario, snapshot: Snapshot, classes: Sequence[int]
) -> dict[str, str]:
    """Return messages, by metric, for metrics that rest on too few bursts of losses.

    Random losses are independent; with them, only ``queue_loss_ratio`` needs bursts.
    """
    units = snapshot.units
    bursts = int(np.count_nonzero(units.class_counter("queue_drops")))
    if scenario.isolated_transfers is not None or (
        bursts == 0 and not _is_queue_near_loss(scenario, snapshot)
    ):
        return {}
    messages = {}
    for name in ("queue_loss_ratio",) if scenario.has_random_loss else METRICS:
        counters = METRICS[name].bursts
        if not counters:
            continue
        own = int(np.count_nonzero(units.sums(counters, classes)))
        what, count = (EVENT_NAMES.get(counters, "losses"), own) if own else ("losses", bursts)
        if count == 0:
            reached = _largest_queue_text(scenario, snapshot)
            messages[name] = f"too few losses: none, although the queue reached {reached}"
        elif count < MIN_EVENTS:
            where = f"they occurred in {count} of {units.link('time_ns').size} batches of the run"
            messages[name] = f"too few {what}: {where}, but must occur in {MIN_EVENTS} batches"
    return messages


def _largest_queue_text(scenario: Scenario, snapshot: Snapshot) -> str:
    """Return the largest queue as text, with the buffer if it is limited and all flows share it."""
    queue = scenario.network.bottleneck.queue
    if isinstance(queue, FairQueue) and queue.buffers == "individual":
        return f"{snapshot.largest_queue:,} packets in total over all flows"
    if math.isinf(scenario.buffer_pkts):
        return count_text(snapshot.largest_queue, "packet")
    return f"{snapshot.largest_queue:,} of {scenario.buffer_pkts:,.0f} packets"


def _is_queue_near_loss(scenario: Scenario, snapshot: Snapshot) -> bool:
    """Return True if the queue came so close to its buffer that the next burst may cause loss."""
    if not {group.traffic.kind for group in scenario.populations} & {"on-off", "transfers"}:
        return False
    if scenario.network.bottleneck.is_policer:
        return False
    room = scenario.buffer_pkts
    red = scenario.network.red_parameters()
    if red is not None:
        room = min(room, red.min_threshold_pkts / NEAR_LOSS_SHARE)
    return snapshot.largest_queue >= NEAR_LOSS_SHARE * room


def count_effective_marks(
    scenario: Scenario, units: BatchCounters, classes: Sequence[int]
) -> float:
    """Return the number of marked packets of flows that reduce their window on a mark."""
    groups = scenario.populations
    responding = [
        index
        for index in classes
        if groups[index].tcp.ecn and groups[index].tcp.control not in RATE_BASED
    ]
    return units.total("marked", responding) if responding else 0.0


def _few_data_text_of_metric(name: str, estimate: Estimate, units: BatchCounters) -> str | None:
    """Return a message if the run has too few observations for this metric."""
    timeouts = units.total("timeout_sequences")
    losses, row = count_loss_indications(units), METRICS[name]
    is_of_timeouts = row.ratio_of[1] == TIMEOUT_SEQUENCES
    if is_of_timeouts and timeouts < MIN_EVENTS:
        return _few_events_text("timeouts", timeouts, "timeout")
    if row.ratio_of[1] == LOSS_INDICATIONS and losses < MIN_EVENTS:
        return _few_events_text("loss indications", losses, "loss indication")
    if name == "timeout_share" and losses - timeouts < MIN_EVENTS:
        return _few_events_text("fast retransmits", losses - timeouts, "fast retransmit")
    if row.can_be_constant and estimate.differing_units is not None:
        if _steady_interval(estimate) is not None:
            return None
        return _equal_batches_warning(
            estimate.differing_units, timeouts if is_of_timeouts else None
        )
    return None


def _steady_interval(estimate: Estimate) -> tuple[float, float] | None:
    """Return the interval of a value from which only a few batches differ, by a little.

    With few differing batches, their number is uncertain as that of rare events: the interval is
    :data:`RARE_BATCHES_FACTOR` times as wide as that by Student. None unless it is still narrow.
    """
    differing = estimate.differing_units
    if differing is None or not 0 < differing < MIN_EVENTS or estimate.low is None:
        return None
    half_width = RARE_BATCHES_FACTOR * estimate.half_width
    if half_width > MAX_STEADY_WIDTH * abs(estimate.value):
        return None
    return estimate.value - half_width, estimate.value + half_width


def _equal_batches_warning(differing_units: int, timeouts: float | None) -> str | None:
    """Return the warning if too few batches differ from the most frequent value.

    ``timeouts`` is the number of observations if the metric counts timeouts.
    """
    is_constant = differing_units == 0 and (timeouts is None or timeouts >= MIN_EQUAL_VALUES)
    if is_constant or differing_units >= MIN_EVENTS:
        return None
    rest = f" except {differing_units}" if differing_units > 0 else ""
    found = f"all batches of the run{rest} have the same value"
    return f"too few different values: {found}, but {MIN_EVENTS} must have another value"


def _short_run_warnings_by_metric(estimate: Estimate, *, correlated: bool) -> Iterator[str]:
    if estimate.has_few_events and estimate.value != 0.0:
        yield f"the value is based on fewer than {MIN_EVENTS} events"
    if correlated:
        yield "the run is too short: successive batches are correlated; make the run longer"
    skewed = estimate.units >= MIN_UNITS and abs(estimate.skewness_term) > MAX_SKEW_CORRECTION
    if skewed and _steady_interval(estimate) is None:  # this interval covers further such batches
        yield "the run is too short: one batch dominates the mean; make the run longer"


def _short_run_warnings(
    scenario: Scenario, units: BatchCounters, classes: Sequence[int]
) -> Iterator[tuple[str, bool]]:
    """Yield pairs: why batches are not independent, and whether a longer run would not help."""
    if scenario.isolated_transfers is not None:
        return
    load = scenario.arriving_load
    if load is not None and load >= 1.0:
        yield "the offered load is above the bottleneck's rate: the queue has no steady state", True
        return
    needed_s = MIN_CYCLES * max(
        (_mean_file_cycle_s(scenario, units, index) for index in classes), default=0.0
    )
    if load is not None:
        needed_s = max(needed_s, MIN_CORRELATION_TIMES * _queue_relaxation_s(scenario, load))
    if (lacking := _shorter_than_text(units, needed_s)) is not None:
        yield lacking, False


def _shorter_than_text(units: BatchCounters, needed_s: float) -> str | None:
    measured_s = units.measured_s
    if measured_s >= needed_s:
        return None
    measured, needed = (time_text(s) for s in (measured_s, needed_s))
    return f"the run is too short: the measured time is {measured}, but {needed} are needed"


def _mean_file_cycle_s(scenario: Scenario, units: BatchCounters, index: int) -> float:
    """Return the mean time from one file of a source to the next.

    For an endless flow, the mean time from loss to loss, or from mark to mark if it responds to
    marks.
    """
    group = scenario.populations[index]
    if group.traffic.kind == "bulk":
        losses = count_loss_indications(units, (index,)) + count_effective_marks(
            scenario, units, (index,)
        )
        measured_s = units.measured_s
        return measured_s * group.count / losses if losses else 0.0
    files = units.total("transfers", (index,))
    if files == 0.0:
        return 0.0
    on_s = units.total("on_time_ns", (index,)) * 1e-9 / files
    return on_s + (group.traffic.off.mean_value() if group.traffic.kind == "on-off" else 0.0)


def _queue_relaxation_s(scenario: Scenario, load: float) -> float:
    """Return the correlation time of an M/G/1 queue in seconds; it grows with the load."""
    bits = [
        group.traffic.mean_size_pkts * 8.0 * group.packet_bytes
        for group in scenario.populations
        if group.traffic.kind == "transfers"
    ]
    service_s = max(bits, default=0.0) / scenario.network.bottleneck.rate_bps
    return service_s * (1.0 + load) / (1.0 - load) ** 2
