"""What a report shows first: the values that were asked for, by the kind of traffic."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from tcpcast.report.document import Column, Table
from tcpcast.report.losses import spread
from tcpcast.report.quantity import ABSENT, scale_of_unit
from tcpcast.units import digits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcpcast.answer import Answer
    from tcpcast.compare import Comparison
    from tcpcast.scenario import Scenario

PATH = (
    "loss_ratio",
    "queue_delay_mean_s",
    "queue_delay_p95_s",
    "queue_delay_p99_s",
    "queue_mean_pkts",
    "rtt_mean_s",
    "utilisation",
)
"""What the path does to any traffic."""

LEADING = {
    "on-off": ("connection_rate_bps", "on_time_s"),
    "transfers": ("completion_time_s", "delivery_time_s", "total_time_s", "offered_load"),
    "bulk": ("send_rate_pps", "goodput_bps", "loss_indication_ratio", "jain_index"),
}
"""What is asked of each kind of traffic: rates of flows, completion times of files."""

PERCENTILES = ("p50", "p95", "p99")
_NAMES = {"on_time": "ON time", "connection_rate": "connection rate", "queue": "queue"}
_UNITS = {"packet": "pkt"}


def leading(comparison: Comparison, scenario: Scenario | None) -> Comparison:
    """Return the rows of a comparison that were asked for; all of them where that is not known."""
    kinds = () if scenario is None else (p.traffic.kind for p in scenario.populations)
    wanted = {name for kind in kinds for name in LEADING.get(kind, ())}
    if not wanted:
        return comparison
    asked = [row for row in comparison.rows if row.metric in wanted]
    path = [row for row in comparison.rows if row.metric in PATH]
    return replace(comparison, rows=(*asked, *path)) if asked or path else comparison


def percentile_table(answers: Sequence[Answer]) -> Table | None:
    """Return p50, p95 and p99 of what the answers have distributions of, None without any."""
    rows = [row for answer in answers if not answer.withheld for row in _percentiles(answer)]
    if not rows:
        return None
    headings = ("percentiles", "unit", "by", *PERCENTILES)
    columns = zip(headings, zip(*rows, strict=True), strict=True)
    return Table([Column(name, cells, right=name in PERCENTILES) for name, cells in columns])


def _percentiles(answer: Answer) -> Iterator[list[str]]:
    """Yield rows: what, its unit, the engine, and the percentiles."""
    table = answer.tables.get("percentiles", {})
    columns = [table[name].tolist() for name in ("quantity", "unit", *PERCENTILES) if table]
    for quantity, unit, *values in zip(*columns, strict=True):
        yield _row(_NAMES.get(quantity, quantity.replace("_", " ")), unit, answer, values)
    sizes = answer.tables.get("by_size", {})
    if set(PERCENTILES) <= sizes.keys():
        low, high = (
            sizes["size_pkts" if "size_pkts" in sizes else end] for end in ("low_pkts", "high_pkts")
        )
        for at in spread(len(low)):
            name = f"completion time, {_sizes_text(float(low[at]), float(high[at]))}"
            yield _row(name, "s", answer, [float(sizes[p][at]) for p in PERCENTILES])


def _sizes_text(low: float, high: float) -> str:
    """Return a size in packets, or an interval of them."""
    if not math.isfinite(high):
        return f"{low:,.0f} packets and more"
    if low == high:
        return f"{low:,.0f} packet{'' if low == 1 else 's'}"
    return f"{low:,.0f}–{high:,.0f} packets"


def _row(name: str, unit: str, answer: Answer, values: Sequence[float]) -> list[str]:
    known = [value for value in values if value == value]  # noqa: PLR0124 - not nan
    scale = scale_of_unit(unit, max(known, default=0.0))
    cells = [digits(v / scale.factor) if v in known else ABSENT for v in values]
    return [name, _UNITS.get(unit, scale.unit), answer.engine, *cells]
