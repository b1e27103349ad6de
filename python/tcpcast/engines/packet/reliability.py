"""Which intervals of a run can be trusted: how much stands behind each, and how much it takes.

A rule finds a doubt and puts it into the estimate, in words. Where too little was seen for any
interval the interval is withheld; otherwise it stays, to be read with its warning. Which rule holds
for which metric, and the coverage of what is left, is in ``docs/background/statistics.md``.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast import units as written
from tcpcast.answer import Note
from tcpcast.drift import FEWEST_CYCLES
from tcpcast.engines.packet.convergence import indications, unconverged, unconverged_classes
from tcpcast.engines.packet.heavy_tails import heavy_tails
from tcpcast.engines.packet.unfinished import without_survivors
from tcpcast.metrics import LOSS_INDICATIONS, METRICS
from tcpcast.scenario.modern_tcp import RATE_BASED
from tcpcast.scenario.queue import FairQueue
from tcpcast.statistics import FEW_EVENTS, FEWEST_UNITS, too_short

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from tcpcast.engines.packet.metric_estimates import Estimates, Snapshot, Units
    from tcpcast.metrics import Counters
    from tcpcast.scenario import Scenario
    from tcpcast.statistics import Estimate

FEWEST_FILES = 100
"""Below so many files nothing that is made of files has an interval."""

FEWEST_REPLICATIONS = 4
"""What is one number a replication has an interval from so many on."""

FEWEST_RELAXATIONS = 200
"""A run is long where it has so many times the correlation time of an open queue."""

FEWEST_RARE_RELAXATIONS = 30
"""The slowest files of an open queue come while it is long: a run has so many times its correlation
time of nothing else before a quantile has an interval."""

MOST_BEND = 0.1
"""Skewness of the batches over ``6 sqrt(batches)`` beyond which no correction helps."""

ALIKE_ENOUGH = 1000
"""So many observations, all the same, may be taken for a constant to within the rule of three."""

NEAR_LOSS = 0.5
"""A queue that was never longer than so much of its room says that losses are far away."""

PERCENTILES = np.array([0.5, 0.95, 0.99])
"""Those of the tables."""

SEQUENCES = ("timeout_sequences",)

EVENTS: dict[Counters, str] = {
    ("timeouts",): "timeouts",
    SEQUENCES: "timeouts",
    ("fast_retransmits",): "fast retransmits",
}
"""Names of counted events in messages; all others are losses."""


def judged(scenario: Scenario, seen: Snapshot, found: Estimates) -> Estimates:
    """Return the estimates of all classes together with their doubts: see :func:`_judged`."""
    numbers = range(len(scenario.populations))
    return _judged(scenario, seen, found, numbers, unconverged(scenario, seen, found))


def judged_classes(
    scenario: Scenario, seen: Snapshot, each: Sequence[Estimates]
) -> list[Estimates]:
    """Return the estimates of each class with their doubts: see :func:`_judged`."""
    slow = unconverged_classes(scenario, seen, each)
    return [_judged(scenario, seen, found, (at,), slow[at]) for at, found in enumerate(each)]


def _judged(
    scenario: Scenario,
    seen: Snapshot,
    found: Estimates,
    numbers: Sequence[int],
    slow: Mapping[str, str],
) -> Estimates:
    """Return the estimates with their doubts, the interval withheld where too little was seen.

    Parameters
    ----------
    scenario, seen
        The scenario, and what its run saw.
    found
        Estimates by metric, of all classes or of some.
    numbers
        The numbers of the classes.
    slow
        Metrics that have not converged, with reasons.
    """
    units = seen.units
    missing = _missing(scenario, units, numbers)
    if meaningless(scenario, units, numbers):
        found = {
            name: replace(e, value=math.nan) if e is not None and e.units else e
            for name, e in found.items()
        }
    doubts = [
        *_too_short(scenario, units, numbers),
        *heavy_tails(scenario, units, numbers, fewest=FEWEST_FILES),
    ]
    rare, short = _rare_losses(scenario, seen, numbers), too_short(found)
    alone = {
        name: None
        if e is None
        else _judged_one(name, e, units, missing or rare.get(name) or slow.get(name), doubts)
        for name, e in found.items()
    }
    by_batches = {
        name: None if e is None else _judged_by_batches(name, e, units, correlated=name in short)
        for name, e in alone.items()
    }
    return without_survivors(scenario, seen, by_batches, numbers)


def enough_beyond(percentiles: NDArray[np.float64], files: NDArray[Any]) -> NDArray[np.float64]:
    """Return the 50th, 95th and 99th percentiles with nan where fewer than 10 files are beyond.

    Parameters
    ----------
    percentiles
        ``[rows, 3]``.
    files
        How many there are in each row, ``[rows]``.
    """
    beyond = np.asarray(files, dtype=np.float64)[:, None] * (1.0 - PERCENTILES)
    # Half a file is forgiven to rounding: 1000 times 1 % is a little less than 10.
    return np.where(beyond > FEW_EVENTS - 0.5, percentiles.astype(np.float64), np.nan)


def of_quantiles(table: Mapping[str, NDArray[Any]], files: float) -> dict[str, NDArray[Any]]:
    """Return table ``file_goodput`` without intervals where there are too few files for any."""
    if files >= FEWEST_FILES or not table:
        return dict(table)
    return dict(table) | {name: np.full_like(table[name], np.nan) for name in ("low", "high")}


def quantile_warnings(
    scenario: Scenario, units: Units, found: Mapping[float, Estimate]
) -> list[Note]:
    """Say which quantiles of file goodput have no interval, or one to be checked.

    Parameters
    ----------
    scenario, units
        The scenario, and what its run saw.
    found
        Estimates by the share of the files that exceeds them.
    """
    files = float(units.of_class("transfers").sum())
    load = scenario.arriving_load
    relaxation_s = 0.0 if load is None or load >= 1.0 else _relaxation_s(scenario, load)
    reasons: dict[str, list[float]] = {}
    withheld = set[str]()
    lacking = [share for share, e in found.items() if e.low is None or files < FEWEST_FILES]
    if lacking:
        rarest = min(min(share, 1.0 - share) for share in lacking)
        needed = max(FEWEST_FILES, math.ceil(FEW_EVENTS / rarest - 1e-6))
        why = f"too few files: {_counted(files, 'file')}, {needed:,} are needed; no interval for"
        reasons[why] = lacking
        withheld = {why}
    short = too_short(found)
    for share, e in found.items():
        needed_s = FEWEST_RARE_RELAXATIONS * relaxation_s / min(share, 1.0 - share)
        doubt = _shorter_than(units, needed_s) or next(
            _of_its_batches(e, correlated=share in short), None
        )
        if share not in lacking and doubt is not None:
            reasons.setdefault(f"{doubt}; check the interval of", []).append(share)
    return [
        Note(
            f"{why} the goodput that {', '.join(f'{100 * share:.6g} %' for share in shares)} of "
            "files reach",
            ("file_goodput",),
            kind="withheld" if why in withheld else "check",
        )
        for why, shares in reasons.items()
    ]


def _judged_one(
    name: str,
    estimate: Estimate,
    units: Units,
    missing: str | None,
    doubts: Sequence[tuple[str, bool]],
) -> Estimate:
    if estimate.low is None and estimate.units == 0:  # no estimate: asked for, or an extreme
        return estimate
    scarce = missing or _scarce(name, estimate, units)
    if name == "jain_index" and estimate.units < FEWEST_REPLICATIONS:
        scarce = f"too few replications: {FEWEST_REPLICATIONS} are needed"
    if scarce is None and estimate.low is None:
        scarce = "all events were in one batch of the run"
    if scarce is not None:
        return estimate.doubted(scarce, withheld=True)
    if METRICS[name].can_be_constant and estimate.half_width == 0.0:
        estimate = _rule_of_three(name, estimate, units)
    for doubt, endless in doubts:
        estimate = estimate.doubted(doubt, endless=endless)
    return estimate


def _judged_by_batches(
    name: str, estimate: Estimate, units: Units, *, correlated: bool
) -> Estimate:
    for doubt in _of_its_batches(estimate, correlated=correlated):
        estimate = estimate.doubted(_rare_timeouts(name, units) or doubt)
    return estimate


def _rare_timeouts(name: str, units: Units) -> str | None:
    """Say that the few packets which wait for a timeout make the batches differ."""
    timeouts = float(units.of_class("timeouts").sum())
    rare = name == "rtt_packet_mean_s" and timeouts > 0.0
    return _too_few_timeouts(timeouts) if rare else None


def _too_few_timeouts(timeouts: float) -> str | None:
    if timeouts >= FEW_EVENTS:
        return None
    return f"too few timeouts: {_counted(timeouts, 'timeout')}, {FEW_EVENTS} are needed"


def _rule_of_three(name: str, estimate: Estimate, units: Units) -> Estimate:
    """Give what was always the same the width that a share of 3 / n, had it differed, would make.

    Fewer than that of n observations differ, at 95 %; each is taken to differ by the value itself.
    """
    _, among = METRICS[name].ratio_of
    seen = units.sums(among if among in (SEQUENCES, LOSS_INDICATIONS) else ("arrived",)).sum()
    half = 3.0 / max(seen, 3.0) * abs(estimate.value)
    high = estimate.value + half
    high = min(high, max(1.0, estimate.value)) if name == "utilisation" else high
    return replace(estimate, low=estimate.value - half, high=high, half_width=half)


def meaningless(scenario: Scenario, units: Units, numbers: Sequence[int] | None = None) -> bool:
    """Say whether so few files came that sums over the run tell of nothing but these.

    A transfer that is alone tells of itself, and flows without files are counted by their packets.
    """
    groups = scenario.populations
    kinds = {groups[at].traffic.kind for at in (range(len(groups)) if numbers is None else numbers)}
    if scenario.isolated_transfers is not None or not kinds & {"on-off", "transfers"}:
        return False
    return float(units.of_class("transfers", numbers).sum()) < FEW_EVENTS


def _missing(scenario: Scenario, units: Units, numbers: Sequence[int]) -> str | None:
    """Say that too few files, or losses of flows without files, stand behind every metric."""
    kinds = {scenario.populations[at].traffic.kind for at in numbers}
    if kinds & {"on-off", "transfers"}:
        files = units.of_class("transfers", numbers).sum()
        enough = fewest_files(scenario, float(files), indications(units, numbers))
        if files < enough:
            return f"too few files: {_counted(files, 'file')}, {enough} are needed"
        return None
    losses = indications(units, numbers)
    if losses >= FEW_EVENTS or (losses == 0 and not scenario.has_random_loss):
        return None
    if marks_heeded(scenario, units, numbers) >= FEW_EVENTS:
        return None
    return f"too few losses: {_counted(losses, 'loss indication')}, {FEW_EVENTS} are needed"


def fewest_files_by_size(scenario: Scenario, seen: Snapshot) -> dict[int, int]:
    """Return how many transfers of each listed size stand behind an interval at least.

    Loss indications are counted of all together: each size has the share that it has of all losses.
    """
    counts, lost = Counter[int](), Counter[int]()
    for size, losses, count, *_ in seen.totals["transfers"]:
        counts[size] += count
        lost[size] += losses * count
    each = indications(seen.units) / max(lost.total(), 1)
    return {size: fewest_files(scenario, counts[size], each * lost[size]) for size in counts}


def fewest_files(scenario: Scenario, files: float, indications: float) -> int:
    """Return how many files stand behind an interval at least.

    Transfers that are each alone may be fewer where each has many losses, or where all are alike
    since only their own queue loses.
    """
    if scenario.isolated_transfers is None or files == 0.0:
        return FEWEST_FILES
    network = scenario.network
    own_queue = network.bottleneck.queue == "droptail" and network.jitter is None
    if own_queue and not scenario.cross and not scenario.has_random_loss:
        return FEWEST_UNITS
    each = max(1.0, indications / files / FEW_EVENTS)
    return max(FEWEST_UNITS, math.ceil(FEWEST_FILES / each))


def _rare_losses(scenario: Scenario, seen: Snapshot, numbers: Sequence[int]) -> dict[str, str]:
    """Say of which metrics too few bursts of losses tell, by name.

    Random losses come singly: a count of them has the interval of its events.
    """
    units = seen.units
    bursts = int(np.count_nonzero(units.of_class("queue_drops")))
    if scenario.isolated_transfers is not None or (bursts == 0 and not _near_loss(scenario, seen)):
        return {}
    found = {}
    for name in ("queue_loss_ratio",) if scenario.has_random_loss else METRICS:
        counters = METRICS[name].bursts
        if not counters:
            continue
        own = int(np.count_nonzero(units.sums(counters, numbers)))
        what, came = (EVENTS.get(counters, "losses"), own) if own else ("losses", bursts)
        if came == 0:
            found[name] = f"too few losses: none, and the queue reached {_longest(scenario, seen)}"
        elif came < FEW_EVENTS:
            where = f"they came in {came} of {units.link('time_ns').size} batches of the run"
            found[name] = f"too few {what}: {where}, {FEW_EVENTS} are needed"
    return found


def _longest(scenario: Scenario, seen: Snapshot) -> str:
    """Say how long the queue was, beside its room where all share it."""
    queue = scenario.network.bottleneck.queue
    if isinstance(queue, FairQueue) and queue.buffers == "individual":
        return f"{seen.largest_queue:,} packets of all flows together"
    return f"{seen.largest_queue:,} of {scenario.buffer_pkts:,.0f} packets"


def _near_loss(scenario: Scenario, seen: Snapshot) -> bool:
    """Say whether files made a queue so long that their next burst overflows it, or RED drops."""
    if not {group.traffic.kind for group in scenario.populations} & {"on-off", "transfers"}:
        return False
    if scenario.network.bottleneck.is_policer:
        return False
    room = scenario.buffer_pkts
    red = scenario.network.red_parameters()
    if red is not None:
        room = min(room, red.min_threshold_pkts / NEAR_LOSS)
    return seen.largest_queue >= NEAR_LOSS * room


def marks_heeded(scenario: Scenario, units: Units, numbers: Sequence[int]) -> float:
    """Return how many packets were marked of flows that reduce their windows for it."""
    groups = scenario.populations
    heeding = [
        at for at in numbers if groups[at].tcp.ecn and groups[at].tcp.control not in RATE_BASED
    ]
    return float(units.of_class("marked", heeding).sum()) if heeding else 0.0


def _scarce(name: str, estimate: Estimate, units: Units) -> str | None:
    """Say what there is too little of for one metric, beyond what all metrics need."""
    timeouts = float(units.of_class("timeout_sequences").sum())
    losses, row = indications(units), METRICS[name]
    is_of_timeouts = row.ratio_of[1] == SEQUENCES
    if is_of_timeouts and _too_few_timeouts(timeouts):
        return _too_few_timeouts(timeouts)
    if row.ratio_of[1] == LOSS_INDICATIONS and losses < FEW_EVENTS:
        return f"too few losses: {_counted(losses, 'loss indication')}, {FEW_EVENTS} are needed"
    if name == "timeout_share" and losses - timeouts < FEW_EVENTS:
        return f"too few fast retransmits: {losses - timeouts:.0f}, {FEW_EVENTS} are needed"
    if row.can_be_constant and estimate.unlike is not None:
        return _alike(estimate.unlike, timeouts if is_of_timeouts else None)
    return None


def _alike(unlike: int, timeouts: float | None) -> str | None:
    """Return the doubt about batches that are alike, because too few events make a difference.

    ``timeouts`` is the number of observations if the metric is of timeouts.
    """
    if unlike == 0 and (timeouts is None or timeouts >= ALIKE_ENOUGH):
        return None
    if unlike >= FEW_EVENTS:
        return None
    differ = "all batches of the run are alike"
    if unlike > 0:
        differ = f"{_counted(unlike, 'batch is', 'batches are')} unlike"
    return f"too few values: {differ}, {FEW_EVENTS} unlike the rest are needed"


def _counted(number: float, what: str, several: str = "") -> str:
    return f"{number:,.0f} {what if round(number) == 1 else several or f'{what}s'}"


def _of_its_batches(estimate: Estimate, *, correlated: bool) -> Iterator[str]:
    if estimate.few and estimate.value != 0.0:
        yield f"it rests on fewer than {FEW_EVENTS} events"
    if correlated:
        yield "the run is too short: neighbouring batches are correlated; make it longer"
    if estimate.units >= FEWEST_UNITS and abs(estimate.bend) > MOST_BEND:
        yield "the run is too short: one batch differs more than all others; make it longer"


def _too_short(
    scenario: Scenario, units: Units, numbers: Sequence[int]
) -> Iterator[tuple[str, bool]]:
    """Say how long a run has to be for batches that are independent, and if none is enough."""
    if scenario.isolated_transfers is not None:
        return
    load = scenario.arriving_load
    if load is not None and load >= 1.0:
        yield "the offered load is above the bottleneck's rate: the queue has no steady state", True
        return
    needed_s = FEWEST_CYCLES * max((_cycle_s(scenario, units, at) for at in numbers), default=0.0)
    if load is not None:
        needed_s = max(needed_s, FEWEST_RELAXATIONS * _relaxation_s(scenario, load))
    lacking = _shorter_than(units, needed_s)
    if lacking is not None:
        yield lacking, False


def _shorter_than(units: Units, needed_s: float) -> str | None:
    measured_s = float(units.link("time_ns").sum()) * 1e-9
    if measured_s >= needed_s:
        return None
    measured, needed = (written.format_duration(float(f"{s:.3g}")) for s in (measured_s, needed_s))
    return f"the run is too short: {measured} were measured, {needed} are needed"


def _cycle_s(scenario: Scenario, units: Units, at: int) -> float:
    """Return the mean time from one file of a source to the next; of a flow, from loss to loss.

    Or from mark to mark, where its sender heeds marks.
    """
    group = scenario.populations[at]
    if group.traffic.kind == "bulk":
        losses = indications(units, (at,)) + marks_heeded(scenario, units, (at,))
        measured_s = float(units.link("time_ns").sum()) * 1e-9
        return measured_s * group.count / losses if losses else 0.0
    files = float(units.of_class("transfers", (at,)).sum())
    if files == 0.0:
        return 0.0
    on_s = float(units.of_class("on_time_ns", (at,)).sum()) * 1e-9 / files
    return on_s + (group.traffic.off.mean_value() if group.traffic.kind == "on-off" else 0.0)


def _relaxation_s(scenario: Scenario, load: float) -> float:
    """Return the correlation time of an M/G/1 queue: heavy traffic makes it long."""
    bits = [
        group.traffic.mean_size_pkts * 8.0 * group.packet_bytes
        for group in scenario.populations
        if group.traffic.kind == "transfers"
    ]
    service_s = max(bits, default=0.0) / scenario.network.bottleneck.rate_bps
    return service_s * (1.0 + load) / (1.0 - load) ** 2
