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
from tcpcast.answer.metrics import LOSS_INDICATIONS, METRICS
from tcpcast.answer.metrics import PERCENTILES as PERCENTILE_METRICS
from tcpcast.engines.packet.size_moments import mean_drawn_size_pkts, rare_size_share_of_square_mean
from tcpcast.engines.packet.unfinished_transfers import replace_by_lower_bounds
from tcpcast.process.errors import assignment_of, name_of
from tcpcast.quantity.readable_units import count_text, time_text
from tcpcast.quantity.units import format_duration
from tcpcast.scenario.distributions import Distribution
from tcpcast.scenario.modern_tcp import RATE_BASED
from tcpcast.scenario.queue import FairQueue
from tcpcast.statistics import MIN_EVENTS, MIN_UNITS, find_correlated_metrics
from tcpcast.statistics.drift import (
    MIN_CYCLES,
    MIN_INDEPENDENT_UNITS,
    count_independent_units,
    find_drifting_metrics,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tcpcast import _native
    from tcpcast.answer import Answer
    from tcpcast.answer.metric_definition import Counters
    from tcpcast.array_types import Floats, Table
    from tcpcast.engines.packet.counters import BatchCounters, Estimates, Snapshot
    from tcpcast.scenario import Population, Scenario
    from tcpcast.statistics import Estimate
    from tcpcast.statistics.intervals import MetricKey

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
"""Ratio of two half-widths with one differing batch: that of a Poisson mean after one event (the
upper 95 % limit, 5.57, minus 1), and that by Student (2.04). It is smaller with more batches."""

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
    if scenario.isolated_transfers is not None:
        slow: list[dict[str, str]] = [{} for _ in each]
    else:
        tested = {
            (index, name): e
            for index, estimates in enumerate(each)
            for name, e in estimates.items()
        }
        short = _too_short_for_rates_reason(scenario, snapshot)
        rates = (
            {named: short for named in tested if named[1] in RATE_METRICS}
            if short is not None
            else {}
        )
        reasons = rates | _find_drifting_or_correlated(scenario, tested)
        slow = [
            {name: reasons[index, name] for name in estimates if (index, name) in reasons}
            for index, estimates in enumerate(each)
        ]
    warned = [
        _add_warnings(scenario, snapshot, estimates, (index,), slow[index])
        for index, estimates in enumerate(each)
    ]
    result = [dict(estimates) for estimates in warned]
    found: list[tuple[Population, list[int]]] = []
    for place, group in enumerate(scenario.populations):
        settings = replace(
            group,
            name="",
            count=0,
            traffic=group.traffic.model_copy(update={"declared": None}),
            route=tuple(replace(on, instances=1) for on in group.route),
            back=tuple(replace(on, instances=1) for on in group.back),
        )
        for other, same in found:
            if other == settings:
                same.append(place)
                break
        else:
            found.append((settings, [place]))
    for members in [same for _, same in found if len(same) > 1]:
        for name in result[members[0]]:
            estimates = {
                index: e
                for index in members
                if (e := result[index].get(name)) is not None and math.isfinite(e.value)
            }
            if len(estimates) < 2:
                continue
            scales = {
                index: float(max(scenario.populations[index].count, 1))
                if METRICS[name].is_extensive
                else 1.0
                for index in estimates
            }
            mean = math.fsum(e.value / scales[index] for index, e in estimates.items())
            mean /= len(estimates)
            distances = {
                index: _distance_from(mean * scales[index], e) for index, e in estimates.items()
            }
            is_locked = max(distances.values()) > MAX_CHANCE_DISTANCE
            for index, e in estimates.items():
                if is_locked:
                    result[index][name] = e.with_warning(LOCKED_TEXT, withheld=True)
                elif distances[index] > 1.0:
                    expected = mean * scales[index]
                    assert e.low is not None
                    assert e.high is not None
                    start, stop = min(e.low, expected), max(e.high, expected)
                    half_width = max(e.value - start, stop - e.value)
                    result[index][name] = replace(e, low=start, high=stop, half_width=half_width)
    return result


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
    kinds = {scenario.populations[index].traffic.kind for index in classes}
    if kinds & {"on-off", "transfers"}:
        files = units.total("transfers", classes)
        enough = min_files(scenario, float(files), count_loss_indications(units, classes))
        if files < enough:
            missing = _too_few_text(scenario, "files", files, "file", enough)
        else:
            missing = None
    else:
        losses = count_loss_indications(units, classes)
        has_marks = count_effective_marks(scenario, units, classes) >= MIN_EVENTS
        if has_marks or (losses == 0 and not scenario.has_random_loss):
            missing = None
        else:
            missing = _few_events_text(scenario, "loss indications", losses, "loss indication")
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
            scenario, name, e, units, missing or rare.get(name) or slow.get(name), warnings
        )
        for name, e in estimates.items()
    }
    by_batches = {
        name: None
        if e is None
        else _add_batch_warnings(scenario, name, e, units, correlated=name in short)
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


def withhold_goodput_intervals(
    table: Mapping[str, NDArray[Any]], files: float | NDArray[np.float64]
) -> Table:
    """Return goodputs of files, without intervals if too few files (of a row) represent all."""
    return dict(table) | {
        name: np.where(np.asarray(files) >= MIN_FILES, table[name], np.nan)
        for name in ("low", "high")
        if name in table
    }


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
        few = _too_few_text(scenario, "files", files, "file", needed)
        withheld = f"{few}; no interval for"
        reasons[withheld] = lacking
    short = find_correlated_metrics(estimates)
    for share, e in estimates.items():
        needed_s = MIN_TAIL_CORRELATION_TIMES * relaxation_s / min(share, 1.0 - share)
        warning = _shorter_than_text(scenario, units, needed_s) or next(
            _short_run_warnings_by_metric(scenario, e, correlated=share in short), None
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


def _add_metric_warnings(  # noqa: PLR0913, PLR0917 - the reasons, and what their texts name
    scenario: Scenario,
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
        text = "the run is too short: packets wait for their ACKs longer than the run lasts"
        return replace(estimate, value=math.nan).with_warning(text, withheld=True)
    if METRICS[name].unit == "1" and METRICS[name].counts_events and estimate.value > 1.0:
        # Packets of the warm-up that are lost later count as lost, but not as sent.
        text = "the run is too short: most packets were sent during the warm-up"
        return replace(estimate, value=math.nan).with_warning(text, withheld=True)
    reason = missing or _few_data_text_of_metric(scenario, name, estimate, units)
    if METRICS[name].is_one_per_replication and estimate.units < MIN_REPLICATIONS:
        more = assignment_of("run.replications", MIN_REPLICATIONS)
        reason = f"too few replications: {MIN_REPLICATIONS} are needed; use {more}"
    if reason is None and estimate.low is None:
        why = "all events occurred in one batch of the run"
        if name in PERCENTILE_METRICS and estimate.units > 1:
            why = f"too few samples: fewer than {MIN_EVENTS} exceed the percentile"
        reason = f"{why}; {_more_events_advice(scenario)}"
    if reason is not None:
        return estimate.with_warning(reason, withheld=True)
    if METRICS[name].can_be_constant and estimate.half_width == 0.0:
        # An interval for a value that was equal in all n observations (rule of three). With 95 %
        # confidence, less than a share 3/n of all observations differs from the constant. The
        # interval assumes that this share differs, by as much as the constant itself.
        _, among = METRICS[name].ratio_of
        snapshot = units.sums(
            among if among in (TIMEOUT_SEQUENCES, LOSS_INDICATIONS) else ("arrived",)
        ).sum()
        half = 3.0 / max(snapshot, 3.0) * abs(estimate.value)
        high = estimate.value + half
        high = min(high, max(1.0, estimate.value)) if name == "utilisation" else high
        estimate = replace(estimate, low=estimate.value - half, high=high, half_width=half)
    elif METRICS[name].can_be_constant and (ends := _steady_interval(estimate)) is not None:
        low, high = ends
        maximum = 1.0 if METRICS[name].unit == "1" else math.inf
        estimate = replace(estimate, low=max(low, 0.0), high=min(high, maximum))
    for warning, is_permanent in warnings:
        estimate = estimate.with_warning(warning, is_permanent=is_permanent)
    return estimate


def _add_batch_warnings(
    scenario: Scenario, name: str, estimate: Estimate, units: BatchCounters, *, correlated: bool
) -> Estimate:
    for warning in _short_run_warnings_by_metric(scenario, estimate, correlated=correlated):
        # The batches of this metric may differ because few packets wait for a timeout.
        timeouts = units.total("timeouts") if name == "rtt_packet_mean_s" else 0.0
        rare = _few_events_text(scenario, "timeouts", timeouts, "timeout") if timeouts else None
        estimate = estimate.with_warning(rare or warning)
    return estimate


def _few_events_text(scenario: Scenario, events: str, count: float, noun: str) -> str | None:
    if count >= MIN_EVENTS:
        return None
    return _too_few_text(scenario, events, count, noun, MIN_EVENTS)


def _too_few_text(scenario: Scenario, events: str, count: float, noun: str, needed: float) -> str:
    found = f"{count_text(count, noun)}, but {needed:,} are needed"
    return f"too few {events}: {found}; {_more_events_advice(scenario, count / needed)}"


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
    own_queue = scenario.bottleneck.queue == "droptail" and scenario.network.jitter is None
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
            queue = scenario.bottleneck.queue
            if isinstance(queue, FairQueue) and queue.buffers == "individual":
                reached = f"{snapshot.largest_queue:,} packets in total over all flows"
            elif math.isinf(scenario.buffer_pkts):
                reached = count_text(snapshot.largest_queue, "packet")
            else:
                reached = f"{snapshot.largest_queue:,} of {scenario.buffer_pkts:,.0f} packets"
            few = f"too few losses: the queue dropped no packet, although it reached {reached}"
            messages[name] = f"{few}; {_more_events_advice(scenario)}"
        elif count < MIN_EVENTS:
            where = f"they occurred in {count} of {units.link('time_ns').size} batches of the run"
            few = f"too few {what}: {where}, but must occur in {MIN_EVENTS} batches"
            messages[name] = f"{few}; {_more_events_advice(scenario, count / MIN_EVENTS)}"
    return messages


def _is_queue_near_loss(scenario: Scenario, snapshot: Snapshot) -> bool:
    """Return True if the queue came so close to its buffer that the next burst may cause loss."""
    if not {group.traffic.kind for group in scenario.populations} & {"on-off", "transfers"}:
        return False
    if scenario.bottleneck.is_policer:
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


def _few_data_text_of_metric(
    scenario: Scenario, name: str, estimate: Estimate, units: BatchCounters
) -> str | None:
    """Return a message if the run has too few observations for this metric."""
    timeouts = units.total("timeout_sequences")
    losses, row = count_loss_indications(units), METRICS[name]
    is_of_timeouts = row.ratio_of[1] == TIMEOUT_SEQUENCES
    if is_of_timeouts and timeouts < MIN_EVENTS:
        return _few_events_text(scenario, "timeouts", timeouts, "timeout")
    if row.ratio_of[1] == LOSS_INDICATIONS and losses < MIN_EVENTS:
        return _few_events_text(scenario, "loss indications", losses, "loss indication")
    if name == "timeout_share" and losses - timeouts < MIN_EVENTS:
        fast = losses - timeouts
        return _few_events_text(scenario, "fast retransmits", fast, "fast retransmit")
    if row.can_be_constant and estimate.differing_units is not None:
        if _steady_interval(estimate) is not None:
            return None
        observations = timeouts if is_of_timeouts else None
        is_constant = estimate.differing_units == 0 and (
            observations is None or observations >= MIN_EQUAL_VALUES
        )
        if is_constant or estimate.differing_units >= MIN_EVENTS:
            return None
        rest = f" except {estimate.differing_units}" if estimate.differing_units > 0 else ""
        found = f"all batches of the run{rest} have the same value"
        few = f"too few different values: {found}, but at least {MIN_EVENTS} must differ"
        advice = _more_events_advice(scenario, estimate.differing_units / MIN_EVENTS)
        return f"{few}; {advice}"
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


def _short_run_warnings_by_metric(
    scenario: Scenario, estimate: Estimate, *, correlated: bool
) -> Iterator[str]:
    if estimate.has_few_events and estimate.value != 0.0:
        few = f"the value is based on fewer than {MIN_EVENTS} events"
        yield f"{few}; {_more_events_advice(scenario)}"
    if correlated:
        why = "successive batches are correlated"
        yield _correlation_reason(scenario, why, _more_events_advice)
    skewed = estimate.units >= MIN_UNITS and abs(estimate.skewness_term) > MAX_SKEW_CORRECTION
    if skewed and _steady_interval(estimate) is None:  # this interval covers further such batches
        dominated = "the run is too short: one batch dominates the mean"
        yield f"{dominated}; {_more_events_advice(scenario)}"


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
    if (lacking := _shorter_than_text(scenario, units, needed_s)) is not None:
        yield lacking, False


def _shorter_than_text(scenario: Scenario, units: BatchCounters, needed_s: float) -> str | None:
    measured_s = units.measured_s
    if measured_s >= needed_s:
        return None
    measured, needed = (time_text(s) for s in (measured_s, needed_s))
    advice = _more_events_advice(scenario, measured_s / needed_s)
    return (
        f"the run is too short: the measured time is {measured}, but {needed} are needed; {advice}"
    )


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
    service_s = max(bits, default=0.0) / scenario.bottleneck.rate_bps
    return service_s * (1.0 + load) / (1.0 - load) ** 2


MAX_UNSEEN_SHARE = 0.1
"""Maximum share of the mean square file size that is due to files too large to be expected in the
run. Above, intervals need a check."""


def warn_about_heavy_tails(
    scenario: Scenario, units: BatchCounters, numbers: Sequence[int], *, min_files: int
) -> Iterator[tuple[str, bool]]:
    """Yield a warning if the drawn files do not represent the distribution, with both means.

    Parameters
    ----------
    scenario, units
        The scenario and the counters of its run.
    numbers
        Indices of the classes.
    min_files
        Minimum number of files for this warning; fewer files cause another warning.

    Yields
    ------
    str, bool
        The warning, and True if no number of files is enough.
    """
    for index in numbers:
        group = scenario.populations[index]
        traffic = group.traffic
        if traffic.kind not in {"on-off", "transfers"}:
            distribution = None
        else:
            distribution = traffic.size if isinstance(traffic.size, Distribution) else None
        files = units.total("transfers", (index,))
        if distribution is None or files < min_files:
            continue
        if rare_size_share_of_square_mean(distribution, files) > MAX_UNSEEN_SHARE:
            down = group.traffic.kind == "on-off" and group.traffic.size_rounding == "down"
            expected = mean_drawn_size_pkts(distribution, rounded_down=down)
            drawn = units.total("transfer_packets", (index,)) / files
            if not distribution.has_finite_variance():
                enough = math.inf
            else:
                steps = (factor * 10.0**power for power in range(2, 12) for factor in (1, 2, 5))
                enough = next(
                    (
                        files
                        for files in steps
                        if rare_size_share_of_square_mean(distribution, files) <= MAX_UNSEEN_SHARE
                    ),
                    math.inf,
                )
            endless = math.isinf(enough)
            needed = (
                "no number of files is enough" if endless else f"about {enough:,.0f} are needed"
            )
            text = (
                f"file sizes vary too much for {files:,.0f} files ({needed}): the mean simulated "
                f"size is {drawn:.4g} packets ({drawn / expected - 1:+.1%}), but the mean of the "
                f"distribution is {expected:.4g} packets"
            )
            yield (text, endless)


MAX_CHANCE_DISTANCE = 2.0
"""Distance from the common mean, in half-widths, up to which an interval excludes it by chance: the
probability of more is about 0.0001."""

EQUAL_SHARE = 1e-9
"""Relative difference below which values are equal, apart from rounding."""

LOCKED_TEXT = (
    "locked into a phase: identical classes differ by more than their intervals, depending on the "
    "start of the run; average over several starts (run.replications = 8)"
)


def _distance_from(mean: float, estimate: Estimate) -> float:
    """Return the distance of an estimate from a value, in half-widths on the side of the value."""
    if estimate.low is None or estimate.high is None:
        return 0.0
    distance = abs(estimate.value - mean)
    if distance <= EQUAL_SHARE * abs(mean):
        return 0.0
    end = estimate.low if mean < estimate.value else estimate.high
    half_width = abs(end - estimate.value)
    return distance / half_width if half_width else math.inf


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
    # Isolated transfers start from the initial state; links that change have no steady state.
    if scenario.isolated_transfers is not None or scenario.has_changes:
        return {}
    reasons = _find_drifting_or_correlated(scenario, estimates)
    if "jain_index" in estimates:
        units, groups = snapshot.units, scenario.populations
        if len(groups) == 1:
            goodput_per_class: dict[int, Estimate | None] = {}
        else:
            goodput_per_class = {
                index: units.ratio(
                    units.class_counter("delivered", [index]), units.on_seconds([group])
                )
                for index, group in enumerate(groups)
            }
        drifts = _drift_reason(scenario) if find_drifting_metrics(goodput_per_class) else None
        if (reason := drifts or _too_short_for_rates_reason(scenario, snapshot)) is not None:
            reasons["jain_index"] = reason
    return reasons


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
        cycles_s = [0.0]
        for index, group in enumerate(scenario.populations):
            if group.traffic.kind == "bulk" and group.tcp.control not in RATE_BASED:
                losses = count_loss_indications(snapshot.units, [index])
                cycles_s.append(measured_s * group.count / losses if losses else 0.0)
        cycle_s = max(cycles_s)
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


def _find_drifting_or_correlated(
    scenario: Scenario, estimates: Mapping[MetricKey, Estimate | None]
) -> dict[MetricKey, str]:
    if scenario.has_changes:
        return {}
    few = f"it contains fewer than {MIN_INDEPENDENT_UNITS} statistically independent periods"
    correlated = _correlation_reason(scenario, few, _longer_run_advice)
    slow = {
        name: correlated
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


def _correlation_reason(scenario: Scenario, why: str, advise: Callable[[Scenario], str]) -> str:
    """Return why values of successive batches are correlated, and what to do.

    With ``run.rtt_spread``, all batches of a replication have the same round-trip time, so that
    only further replications help.
    """
    run = scenario.run
    if not run.rtt_spread or run.replications == 1:
        return f"the run is too short: {why}; {advise(scenario)}"
    more = assignment_of("run.replications", RUN_LENGTH_FACTOR * run.replications)
    return f"too few replications: each uses a different RTT (run.rtt_spread); use {more}"


def _drift_reason(scenario: Scenario) -> str:
    advice = _longer_run_advice(scenario)
    return f"still drifting: the values at the start and at the end of the run differ; {advice}"


def _longer_run_advice(scenario: Scenario) -> str:
    """Return the advice to make the run longer: the present run becomes the warm-up."""
    run = scenario.run
    if run.transfers is not None or run.duration_s is None:
        return _more_events_advice(scenario)
    changes = {"run.duration": RUN_LENGTH_FACTOR * run.duration_s, "run.warmup": run.duration_s}
    longer = [assignment_of(key, format_duration(float(f"{s:.6g}"))) for key, s in changes.items()]
    return f"run longer ({', '.join(longer)})"


EVENTS_MARGIN = 1.5
"""Ratio of the events expected in an advised run to those needed: random numbers vary."""


def _more_events_advice(scenario: Scenario, share: float = 0.0) -> str:
    """Return the advice to run longer with the present warm-up.

    ``share`` is the ratio of the present events to those needed; 0 if it is unknown.
    """
    run = scenario.run
    times = EVENTS_MARGIN / share if share > 0.0 else float(RUN_LENGTH_FACTOR)
    if run.transfers is not None:
        longer = assignment_of("run.transfers", _round_up(times * run.transfers))
    elif run.duration_s is not None:
        warmup_s = run.warmup_s or 0.0
        seconds = warmup_s + times * (run.duration_s - warmup_s)
        longer = assignment_of("run.duration", format_duration(float(_round_up(seconds))))
    else:
        return f"run {_round_up(times)} times as long"
    return f"run longer ({longer})"


def _round_up(value: float) -> int:
    """Return the value with two digits, at least as large."""
    unit: int = 10 ** max(0, math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit) * unit


LOSSLESS_STAGE, FIRST_RECOVERY_STAGE = 0, 1
"""Stages of a flow in ``Simulation.stages``; larger values are later stages."""

MIN_FULL_SHARE = 0.95
"""Minimum rate of a lossless flow in a steady state, as a share of the rate that its receiver
window or its links allow."""

MAX_UNSETTLED_SHARE = 0.1
"""Largest share of flows without a steady state for which values are kept."""


def no_steady_state_reason(
    scenario: Scenario, snapshot: Snapshot, run: _native.Simulation, answer: Answer
) -> str | None:
    """Return the reason why the flows of a run are not in a steady state, None if they are.

    A flow without a loss or mark still grows its window, unless the receiver window, its pacing or
    a link limits it. A flow in its first fast recovery retransmits the packets lost in slow start,
    one packet per RTT.
    """
    bulk = [
        index for index, group in enumerate(scenario.populations) if _can_reach_steady_state(group)
    ]
    if not bulk:
        return None
    growing, repairing, flows = 0, 0, 0
    first = np.cumsum([0, *(group.count for group in scenario.populations)])
    for index in bulk:
        of_class = slice(first[index], first[index + 1])
        stages = np.concatenate([each[of_class] for each in run.stages()])
        flows += stages.size
        repairing += int(np.count_nonzero(stages == FIRST_RECOVERY_STAGE))
        is_limited = _is_limited_without_loss(
            scenario, scenario.populations[index], snapshot, answer, index
        )
        if (
            not is_limited
            and count_effective_marks(scenario, snapshot.units, (index,)) < stages.size
        ):
            indications = snapshot.units.total("fast_retransmits", [index])
            indications += snapshot.units.total("timeout_sequences", [index])
            beyond = np.count_nonzero(stages > FIRST_RECOVERY_STAGE) if indications == 0 else 0
            growing += int(np.count_nonzero(stages == LOSSLESS_STAGE) + beyond)
    if growing + repairing <= MAX_UNSETTLED_SHARE * flows:
        return None
    marked = any(scenario.populations[index].tcp.ecn for index in bulk)
    end = "a loss or a mark" if marked else "a loss"
    parts = []
    if repairing:
        parts.append(f"{_some_flows_text(repairing, flows)} still in the first fast recovery")
    if growing:
        parts.append(
            f"{_some_flows_text(growing, flows)} still increasing the window without {end}"
        )
    return (
        f"no steady state: {' and '.join(parts)}; run longer (run.duration), or limit the window "
        f"({name_of('tcp.receiver_window')})"
    )


def _can_reach_steady_state(group: Population) -> bool:
    """Return True if the senders never finish, and losses end the growth of their windows."""
    tcp = group.tcp
    return (
        group.traffic.kind == "bulk" and not tcp.has_loss_feedback and tcp.control not in RATE_BASED
    )


def _is_limited_without_loss(
    scenario: Scenario, group: Population, snapshot: Snapshot, answer: Answer, index: int
) -> bool:
    """Return True if a class sends as fast as its windows, pacing, applications or links allow."""
    seconds = snapshot.units.measured_s
    if not seconds:
        return False
    rate = snapshot.units.total("sent", [index]) / seconds
    rtt = answer.metrics.get("rtt_mean_s")
    rtt_s = group.rtt_s if rtt is None else max(rtt.value, group.rtt_s)
    # Excludes start-up, in which the window opens, and the truncated last round trip.
    rounds = seconds / rtt_s - snapshot.units.replications
    window = min(group.allowed_windows_pkts)
    if rounds > 0 and rate * seconds >= MIN_FULL_SHARE * group.count * window * rounds:
        return True
    utilisation = answer.metrics.get("utilisation")
    if utilisation is not None and utilisation.value >= MIN_FULL_SHARE:
        return True
    paced_pps = group.count * group.tcp.max_rate_bps / (8 * group.payload_bytes)
    stepped_pps = group.count * group.application_bps / (8 * group.payload_bytes)
    return rate >= MIN_FULL_SHARE * min(scenario.path(group).capacity_pps, paced_pps, stepped_pps)


def _some_flows_text(some: int, flows: int) -> str:
    if flows == 1:
        return "the flow is"
    return f"{some} of {flows} flows {'is' if some == 1 else 'are'}"
