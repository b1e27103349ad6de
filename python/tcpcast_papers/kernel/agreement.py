"""Tolerances of cells, and the metrics of an answer that correspond to quantities of the kernel.

A quantity agrees if engine and kernel differ by at most the sum of a tolerance and the half-widths
of both 95 % intervals.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpcast.answer import Metric

from tcpcast_papers.kernel.cells import LOSS, ON_OFF, STARTUP, TRANSFERS
from tcpcast_papers.kernel.scenarios import ACK_BYTES, LINK_DELAY_S, PACKET_BITS, startup_times_s
from tcpcast_papers.reproduction import scale_metric

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.answer import Answer

    from tcpcast_papers.kernel.cells import Cell

FEW_EVENTS_PER_RUN = 20.0
"""Counts below this number per run have an additional tolerance: one loss episode per run."""

COUNT_QUANTITIES = ("loss_indications", "timeouts")


@dataclass(frozen=True, slots=True)
class QuantityFormat:
    """Presentation of a quantity: its description, its unit, and the scale factor of the unit."""

    title: str
    unit: str
    scale: float = 1.0


QUANTITY_FORMATS = {
    "goodput_bps": QuantityFormat("goodput", "Mbit/s", 1e-6),
    "share": QuantityFormat("share of the first", "%", 100.0),
    "loss_ratio": QuantityFormat("loss ratio", "%", 100.0),
    "queue_delay_s": QuantityFormat("mean queueing delay", "ms", 1e3),
    "loss_indications": QuantityFormat("loss indications a run", "count"),
    "timeouts": QuantityFormat("timeouts a run", "count"),
    "delivery_time_s": QuantityFormat("mean delivery time", "ms", 1e3),
    "delivery_time_p99_s": QuantityFormat("p99 of the delivery time", "ms", 1e3),
    "total_time_s": QuantityFormat("mean total time", "ms", 1e3),
    "completions_per_s": QuantityFormat("files completed", "1/s"),
}
"""Quantities that are compared with the kernel, in the order of a cell's rows."""


def quantity_format(name: str) -> QuantityFormat | None:
    """Return the presentation of a quantity, or None if it is only an input of models."""
    if name.startswith("delivered_by_"):
        return QuantityFormat(f"delivered by {name.rpartition('_')[2]}", "kB", 1e-3)
    return QUANTITY_FORMATS.get(name)


@dataclass(frozen=True, slots=True)
class AllowedDifference:
    """Allowed difference without intervals: a share of the kernel's value, and a fixed amount."""

    relative: float = 0.0
    absolute: float = 0.0

    def absolute_to(self, kernel: float) -> float:
        """Return the allowed difference from this value of the kernel, without the intervals."""
        return self.relative * abs(kernel) + self.absolute


_LONG_FLOW_TOLERANCES = {
    "goodput_bps": AllowedDifference(0.05),
    "loss_indications": AllowedDifference(0.1),
    "timeouts": AllowedDifference(0.1),
}
_QUEUE_TOLERANCES = {
    "goodput_bps": AllowedDifference(0.03),
    "loss_ratio": AllowedDifference(0.1, 1e-4),
    "queue_delay_s": AllowedDifference(0.1, 0.0002),
    "share": AllowedDifference(absolute=0.05),
}
_FILE_TOLERANCES = {
    "delivery_time_s": AllowedDifference(0.02, 0.001),
    "delivery_time_p99_s": AllowedDifference(0.05),
    "total_time_s": AllowedDifference(0.02, 0.001),
}
_ON_OFF_TOLERANCES = {
    "completions_per_s": AllowedDifference(0.01),
    "loss_ratio": AllowedDifference(0.1, 1e-4),
}
_LOSSLESS_FILE_TOLERANCE = AllowedDifference(0.005, 0.001)
_STARTUP_SHARE, _STARTUP_S = 0.05, 0.0015


def allowed_difference(cell: Cell, name: str) -> AllowedDifference | None:
    """Return the tolerance of a quantity of a cell, or None if it is not compared."""
    if cell.kind == STARTUP:
        # 5 % of the delivered bytes or the rise of the curve in 1.5 ms, whichever is larger.
        curve = [(0.0, 0.0)] + [
            (time, result.mean)
            for time, result in zip(startup_times_s(cell), cell.measured.values(), strict=True)
        ]
        at = list(cell.measured).index(name) + 1
        ends = curve[at - 1 : at + 2]
        steepest = max(
            (later[1] - sooner[1]) / (later[0] - sooner[0])
            for sooner, later in itertools.pairwise(ends)
        )
        return AllowedDifference(
            absolute=max(_STARTUP_SHARE * cell.measured[name].mean, _STARTUP_S * steepest)
        )
    if cell.kind == TRANSFERS:
        lossless = not cell.loss and name != "delivery_time_p99_s"
        return _LOSSLESS_FILE_TOLERANCE if lossless else _FILE_TOLERANCES.get(name)
    if cell.kind == ON_OFF:
        return _ON_OFF_TOLERANCES.get(name)
    if cell.kind != LOSS:
        return _QUEUE_TOLERANCES.get(name)
    few = name in COUNT_QUANTITIES and cell.measured[name].mean < FEW_EVENTS_PER_RUN
    usual = _LONG_FLOW_TOLERANCES.get(name)
    return AllowedDifference(usual.relative, 1.0) if usual and few else usual


def half_width(result: Metric) -> float:
    """Return half the width of a metric's 95 % interval, 0 if it has none."""
    if result.low is None or result.high is None:
        return 0.0
    return (result.high - result.low) / 2


def max_difference(cell: Cell, name: str, result: Metric) -> float | None:
    """Return the allowed difference of engine and kernel, including intervals.

    None if the quantity is not compared, or if the kernel ran once and has no interval.
    """
    tolerance, kernel = allowed_difference(cell, name), cell.measured[name]
    if tolerance is None or math.isnan(kernel.half_width):
        return None
    return tolerance.absolute_to(kernel.mean) + kernel.half_width + half_width(result)


def simulated_metric(cell: Cell, answer: Answer, name: str) -> Metric | None:
    """Return the metric of an answer for a quantity of the kernel, or None."""
    if name.startswith("delivered_by_"):
        table = answer.tables.get("delivered")
        if table is None:
            return None
        at = list(cell.measured).index(name)
        low, high = (float(table[end][at]) if end in table else None for end in ("low", "high"))
        return Metric(float(table["bytes"][at]), low, high)
    result = _DERIVED_METRICS.get(name)
    return answer.metrics.get(name) if result is None else result(cell, answer)


def _queue_delay(cell: Cell, answer: Answer) -> Metric | None:
    """Return the mean wait before service; by Little's law if no metric reports it."""
    if (known := answer.metrics.get("queue_delay_mean_s")) is not None:
        return known
    queue = answer.metrics.get("queue_mean_pkts")
    busy = answer.metrics.get("utilisation")
    if queue is None or busy is None or not busy.value:
        return None
    service = PACKET_BITS / cell.rate_bps
    each = service / busy.value
    low, high = (None if end is None else end * each - service for end in (queue.low, queue.high))
    return Metric(queue.value * each - service, low, high)


def _share_of_first(_: Cell, answer: Answer) -> Metric:
    """Return the first group's share of the goodput, with the relative width of its interval."""
    table = answer.tables["by_class"]
    rates = table["goodput_pps"]
    total = float(sum(rates))
    ends = (float(table[f"goodput_pps_{end}"][0]) / total for end in ("low", "high"))
    low, high = (None if math.isnan(end) else end for end in ends)
    return Metric(float(rates[0]) / total, low, high)


def _loss_indications(_: Cell, answer: Answer) -> Metric | None:
    result = [answer.metrics.get(name) for name in ("td_indications", "to_indications")]
    known = [each for each in result if each is not None]
    if not known:
        return None
    value, half = sum(each.value for each in known), math.hypot(*map(half_width, known))
    return Metric(value, value - half, value + half)


def _completion_time_p99(cell: Cell, answer: Answer) -> Metric:
    """Return the 99th percentile of the completion time minus the return path of the last ack."""
    ack_s = (1e-3 * cell.groups[0].rtt_ms + LINK_DELAY_S) / 2 + 8 * ACK_BYTES / cell.rate_bps
    return Metric(float(answer.tables["by_size"]["p99"][0]) - ack_s)


def _completions_per_s(_: Cell, answer: Answer) -> Metric | None:
    """Return the files completed per second: packets delivered divided by packets per file."""
    top, under = answer.metrics.get("goodput_pps"), answer.metrics.get("mean_size_pkts")
    if top is None or under is None or not under.value:
        return None
    return scale_metric(top, 1 / under.value)


_DERIVED_METRICS: dict[str, Callable[[Cell, Answer], Metric | None]] = {
    "queue_delay_s": _queue_delay,
    "share": _share_of_first,
    "loss_indications": _loss_indications,
    "delivery_time_p99_s": _completion_time_p99,
    "completions_per_s": _completions_per_s,
}
"""Functions that compute quantities for which there is no metric with the same name."""
