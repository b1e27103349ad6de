"""Rows that hold a figure of the paper against the simulator's, and what counts as agreement."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from tcpcast.answer import Metric

from tcpcast_papers.reproduction import Printed, Row, Tolerance

if TYPE_CHECKING:
    from tcpcast.answer import Answer

RATE = Tolerance(relative=0.01)
"""Connection rate, and ON time divided by the run's mean file size."""

LOSS = Tolerance(relative=0.08, absolute=0.3)
"""Loss ratio in %: 0.3 percentage points or 8 % of the value."""

COMMON_INTERVAL = Tolerance(relative=0.05)
"""The rate of a size interval that holds at least 1 % of the files."""

OFF_MS = 1000.0
"""Mean OFF time of every setting whose ON time is checked."""

RARE = 0.10
"""The rate of a rarer interval, or anything between two printed values of the same figure."""


def interval_tolerance(files_percent: float, *, printed: tuple[float, ...] = ()) -> Tolerance:
    """Return the tolerance of a size interval's rate.

    Parameters
    ----------
    files_percent
        Share of the files in the interval.
    printed
        The values that the paper prints for it; two of them where two tables show one setting.
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

    The sizes are random, and a run's mean size moves its ON time with it: the paper prints 927.1
    ms (F = 11.94) and 917.3 ms (F = 11.88) for one setting. ``published`` is the paper's ON time
    in ms and its run's mean size in packets.

    Where the link is always busy, a source's whole cycle is in proportion to its files: ON + OFF
    = N 8FP/(C U). The note gives how far the cycles a packet are apart, which does not depend on
    the sizes that a run happened to draw.
    """
    on_time_ms, size_pkts = published
    own_ms, own_size = 1e3 * answer["on_time_s"], answer["mean_size_pkts"]
    rate = answer.metrics["connection_rate_bps"]
    low = high = None
    if rate.low is not None and rate.high is not None and rate.low > 0:
        # ON/F is the packet's bits over the rate: the interval of the one is that of the other.
        low, high = (own_ms / own_size * rate.value / end for end in (rate.high, rate.low))
    cycles = (own_ms + OFF_MS) / own_size / ((on_time_ms + OFF_MS) / size_pkts) - 1
    note = (
        f"ON time {own_ms:.1f} ms, F = {own_size:.2f}; the paper's {on_time_ms}, {size_pkts:.2f}; "
        f"ON + OFF a packet {100 * cycles:+.2f} %"
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
    """Return the line of ``by_size`` whose interval starts at ``low_pkts`` packets.

    Every figure is nan where the run had no file of that size.
    """
    table = answer.tables["by_size"]
    (result,) = np.nonzero(table["low_pkts"] == low_pkts)
    return {
        name: float(column[result[0]]) if len(result) else math.nan for name, column in table.items()
    }


def interval_rate(cells: dict[str, float]) -> Metric | None:
    """Return the connection rate of a size interval in kbit/s, of :func:`interval_cells`.

    Tables 8 and 9 print the mean over connections of size/ON time. It cannot be packets over ON
    time: with the rates of Table 8 that would make the mean ON time 0.69 s, where the same run
    has 0.917 s (Table 10).
    """
    rate = 1e-3 * cells["transfer_rate_mean_bps"]
    if not math.isfinite(rate):
        return None
    # The simulator gives this mean without an interval; the ON time's, relative, stands in.
    on, shortest, longest = (cells[f"on_time_{end}s"] for end in ("", "low_", "high_"))
    if not (math.isfinite(shortest) and math.isfinite(longest)):
        return Metric(rate)
    # A handful of files may leave an ON time that could as well be none, and a rate without bound.
    high = rate * on / shortest if shortest > 0 else math.inf
    return Metric(rate, rate * on / longest, high)
