"""Rows that compare a value of the paper with the simulator, and their tolerances."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from tcpcast.answer import Metric

from tcpcast_papers.reproduction import Printed, Row, Tolerance

if TYPE_CHECKING:
    from tcpcast.answer import Answer

RATE = Tolerance(relative=0.01)
"""Tolerance of the connection rate, and of the ON time divided by the run's mean file size."""

LOSS = Tolerance(relative=0.08, absolute=0.3)
"""Tolerance of the loss ratio in %: 0.3 percentage points or 8 % of the value."""

COMMON_INTERVAL = Tolerance(relative=0.05)
"""Tolerance of the rate of a size interval that contains at least 1 % of the files."""

OFF_MS = 1000.0
"""Mean OFF time of every setting whose ON time is checked."""

RARE = 0.10
"""Tolerance of the rate of a size interval with fewer files, in addition to the range between two
printed values."""


def interval_tolerance(files_percent: float, *, printed: tuple[float, ...] = ()) -> Tolerance:
    """Return the tolerance of a size interval's rate.

    Parameters
    ----------
    files_percent
        Percentage of files in the interval.
    printed
        Values that the paper prints for it: two if two tables show the same setting.
    """
    if files_percent >= 1:
        return COMMON_INTERVAL
    between = (min(printed), max(printed)) if len(printed) > 1 else None
    return Tolerance(relative=RARE, between=between)


def rate_row(label: tuple[str, ...], published: Printed | None, answer: Answer) -> Row:
    """Return the connection rate in kbit/s, checked within 1 %."""
    metric = answer.metrics["connection_rate_bps"]
    return Row.of((*label, "rate"), "kbit/s", published, metric, 1e-3, tolerance=RATE)


def loss_row(label: tuple[str, ...], published: Printed | None, answer: Answer) -> Row:
    """Return the loss ratio in %, checked within 0.3 points or 8 %."""
    metric = answer.metrics["loss_ratio"]
    return Row.of((*label, "loss"), "%", published, metric, 100, tolerance=LOSS)


def on_per_packet_row(
    label: tuple[str, ...], published: tuple[float, float], answer: Answer
) -> Row:
    """Return the ON time divided by the run's own mean file size, checked within 1 %.

    The sizes are random, and the ON time of a run depends on its mean size: the paper prints 927.1
    ms (F = 11.94) and 917.3 ms (F = 11.88) for one setting. ``published`` is the paper's ON time
    in ms and its run's mean size in packets.

    If the link is always busy, the cycle of a source is proportional to its file size: ON + OFF
    = N 8FP/(C U). The note gives the difference of the cycles per packet, which does not depend
    on the sizes of a particular run.
    """
    on_time_ms, size_pkts = published
    own_ms, own_size = 1e3 * answer["on_time_s"], answer["mean_size_pkts"]
    rate = answer.metrics["connection_rate_bps"]
    low = high = None
    if rate.low is not None and rate.high is not None and rate.low > 0:
        # ON/F is the packet's bits over the rate: both have the same relative interval.
        low, high = (own_ms / own_size * rate.value / end for end in (rate.high, rate.low))
    cycles = (own_ms + OFF_MS) / own_size / ((on_time_ms + OFF_MS) / size_pkts) - 1
    note = (
        f"ON time {own_ms:.1f} ms, F = {own_size:.2f}; the paper's {on_time_ms}, {size_pkts:.2f}; "
        f"ON + OFF per packet {100 * cycles:+.2f} %"
    )
    return Row(
        (*label, "ON time a packet"),
        "ms",
        Printed(f"{on_time_ms / size_pkts:.2f}"),
        own_ms / own_size,
        low,
        high,
        RATE,
        note=note,
    )


def interval_cells(answer: Answer, low_pkts: int) -> dict[str, float]:
    """Return the row of ``by_size`` whose interval starts at ``low_pkts`` packets.

    Every value is nan if the run has no file of that size.
    """
    table = answer.tables["by_size"]
    (result,) = np.nonzero(table["low_pkts"] == low_pkts)
    return {
        name: float(column[result[0]]) if len(result) else math.nan
        for name, column in table.items()
    }


def interval_rate(cells: dict[str, float]) -> Metric | None:
    """Return the connection rate of a size interval in kbit/s, from :func:`interval_cells`.

    Tables 8 and 9 print the mean over connections of size/ON time. It cannot be packets per ON
    time: with the rates of Table 8 that would give a mean ON time of 0.69 s, but Table 10 prints
    0.917 s for the same run.
    """
    rate = 1e-3 * cells["transfer_rate_mean_bps"]
    if not math.isfinite(rate):
        return None
    # The simulator has no interval for this mean; use the relative interval of the ON time.
    on, shortest, longest = (cells[f"on_time_{end}s"] for end in ("", "low_", "high_"))
    if not (math.isfinite(shortest) and math.isfinite(longest)):
        return Metric(rate)
    # With few files the ON time's interval can include 0, so the rate has no upper bound.
    high = rate * on / shortest if shortest > 0 else math.inf
    return Metric(rate, rate * on / longest, high)
