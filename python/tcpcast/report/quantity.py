"""Values in readable units: kbit/s, ms and % instead of bit/s, s and 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpcast.answer import unit_of_metric
from tcpcast.answer.metrics import METRICS
from tcpcast.comparison.compare import is_percentage
from tcpcast.quantity import readable_units, units

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tcpcast.answer import Metric
    from tcpcast.comparison.compare import ComparisonRow, Difference

MIN_FIXED_POINT = 1e-4
"""Values below this limit are shown with an exponent."""

ABSENT_MARK = "–"
UNTRUSTED_MARK = "†"
DOUBTED_MARK = "!"

_UNIT_LADDERS: dict[str, tuple[tuple[float, str], ...]] = {
    "bit/s": readable_units.RATE_LADDER,
    "s": readable_units.TIME_LADDER,
    "byte": readable_units.SIZE_LADDER,
    "ratio": ((0.01, "%"),),
}
_SHORT_UNITS = {"packet": "pkt", "packet/s": "pkt/s", "count": "", "1": ""}
_WORD_SPELLINGS = {
    "on": "ON",
    "rtt": "RTT",
    "t0": "T0",
    "td": "TD",
    "to": "TO",
    "w": "window",
    "jain": "Jain",
}
_FIRST_WORDS = ("mean", "max")
_UNIT_SUFFIXES = ("_cumulative", "_bps", "_pps", "_pkts", "_s")


@dataclass(frozen=True, slots=True)
class Scale:
    """A unit for display; values in the unit of the metric are divided by ``factor``."""

    factor: float
    unit: str

    def text(self, value: float, count: int = 4) -> str:
        """Return a value of the metric with this unit and ``count`` significant digits."""
        return f"{units.digits(value / self.factor, count)} {self.unit}".rstrip()


def scale_for_metric(metric: str, magnitude: float) -> Scale:
    """Choose a readable unit for a value of this magnitude.

    Parameters
    ----------
    metric
        A name of :data:`tcpcast.answer.UNITS`.
    magnitude
        The value in the unit of the metric; its sign is ignored.
    """
    if is_percentage(metric):
        return scale_for_unit("ratio", magnitude)
    return scale_for_unit(unit_of_metric(metric), magnitude)


def scale_for_unit(unit: str, magnitude: float) -> Scale:
    """Choose a readable unit for a quantity that is not a metric, for example a link rate."""
    ladder = _UNIT_LADDERS.get(unit)
    if ladder is None:
        return Scale(1.0, _SHORT_UNITS.get(unit, unit))
    return Scale(*readable_units.readable_unit(magnitude, ladder))


def is_count(unit: str) -> bool:
    """Return True for the unit of a count, such as "packet"; False for bit/s, s and ratios."""
    return unit != "1" and unit not in _UNIT_LADDERS


def scale_for_row(row: ComparisonRow) -> Scale:
    """Choose one unit for all engines of a row by its largest value."""
    values = [f.value if f.at_least is None else f.at_least for f in row.metrics if f is not None]
    sizes = [abs(value) for value in values if math.isfinite(value)]
    largest = max(sizes, default=0.0)
    if is_percentage(row.metric):
        return scale_for_metric(row.metric, largest)
    return scale_for_unit(row.unit, largest)


def metric_label(metric: str) -> str:
    """Return the name of a metric in words: "mean RTT" for ``rtt_mean_s``."""
    if metric in METRICS and METRICS[metric].label:
        return METRICS[metric].label
    stem = metric
    for suffix in _UNIT_SUFFIXES:
        stem = stem.removesuffix(suffix)
    words = stem.split("_")
    words.sort(key=lambda word: word not in _FIRST_WORDS)
    return " ".join(_WORD_SPELLINGS.get(word, word) for word in words)


def amount_text(value: float, unit: str) -> str:
    """Return a quantity with its unit: ``10 Mbit/s`` for (1e7, "bit/s")."""
    if math.isinf(value):
        return "unlimited"
    return scale_for_unit(unit, value).text(value, 6)


def three_digit_text(value: float, unit: str) -> str:
    """Return a quantity with three significant digits and its unit: ``23.1 Mbit/s``."""
    return amount_text(float(f"{value:.3g}"), unit)


def value_text(metric: Metric, scale: Scale) -> str:
    """Return the value only; the interval determines its digits (four without an interval)."""
    if metric.at_least is not None:
        bound = metric.at_least / scale.factor
        return f"≥ {_fixed_decimals(bound, _decimals(bound, None))}"
    if not math.isfinite(metric.value):
        return metric.missing_interval or ABSENT_MARK
    value = metric.value / scale.factor
    half = _half_width(metric, scale)
    if half is None and scale.factor == 1.0 and value == int(value):
        return f"{value:,.0f}"
    return _fixed_decimals(value, _decimals(value, half))


def interval_text(metric: Metric, scale: Scale) -> str:
    """Return the interval as "± half", or as "low–high" if it is asymmetric; "" for none.

    If there are too few events for an interval, return the reason, for example "too few files".
    """
    half = _half_width(metric, scale)
    if half is None or metric.low is None or metric.high is None:
        # Without a value, `value_text` returns the reason.
        has_value = math.isfinite(metric.value) or metric.at_least is not None
        return metric.missing_interval or "" if has_value else ""
    value, low, high = (v / scale.factor for v in (metric.value, metric.low, metric.high))
    decimals = _decimals(value, half)
    if abs((high - value) - (value - low)) > 0.1 * half:
        return f"{_fixed_decimals(low, decimals)}–{_fixed_decimals(high, decimals)}"
    return f"± {_half_width_text(value, half, decimals)}"


def difference_text(difference: Difference | None) -> str:
    """Return a difference as text, relative ("+2.1 %") or in percentage points ("+1.2 pp")."""
    if difference is None:
        return ""
    percent = 100 * difference.amount
    size = abs(percent)
    decimals = 0 if size >= 99.5 else 1 if size >= 0.095 else 2
    shown = "0" if size < 0.005 else f"{percent:+.{decimals}f}"
    return f"{shown} {'pp' if difference.in_percentage_points else '%'}"


def is_absent_or_untrusted_text(cell: str) -> bool:
    """Return True for the text of an absent or untrusted value."""
    return cell == ABSENT_MARK or cell.endswith(UNTRUSTED_MARK)


def has_untrusted_metric(metrics: Iterable[Metric | None]) -> bool:
    """Return True if a value is marked as untrusted."""
    return any(f is not None and not f.trusted for f in metrics)


def _half_width(metric: Metric, scale: Scale) -> float | None:
    if metric.low is None or metric.high is None:
        return None
    half = (metric.high - metric.low) / 2 / scale.factor
    return half if math.isfinite(half) else None


def _half_width_text(value: float, half: float, decimals: int) -> str:
    """Return a half-width with these decimals, or for example "<0.001" if it rounds to 0."""
    form = f",.{decimals}f"
    smallest = 10.0**-decimals
    if 0.0 < abs(value) < MIN_FIXED_POINT:
        form, smallest = ".0e", 10.0 ** (math.floor(math.log10(abs(value))) - 2)
    if half == 0.0:
        return "0"
    return f"<{smallest:{form}}" if half < 0.5 * smallest else f"{half:{form}}"


def _decimals(value: float, half: float | None) -> int:
    leading = math.floor(math.log10(abs(value))) if value else 0
    if half:
        # Two significant digits of the half-width, but at most six of the value.
        return max(0, min(1 - math.floor(math.log10(half)), 5 - leading))
    return max(0, 3 - leading)


def _fixed_decimals(value: float, decimals: int) -> str:
    if value == 0:
        return "0"
    if abs(value) < MIN_FIXED_POINT:
        return f"{value:.2e}"
    return f"{value:,.{decimals}f}"
