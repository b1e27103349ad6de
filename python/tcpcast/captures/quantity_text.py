"""Formatting of quantities in sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.quantity.readable_units import RATE_LADDER, readable_unit

if TYPE_CHECKING:
    from tcpcast.array_types import Table


def format_digits(value: float, min_digits: int = 3) -> str:
    """Return a number with at least three significant digits."""
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f}"
    decimals = max(0, min_digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def format_rate(bps: float) -> str:
    """Return ``1.43 Mbit/s``."""
    factor, unit = readable_unit(bps, RATE_LADDER)
    return f"{format_digits(bps / factor)} {unit}"


def format_size_rounded_up(octets: float) -> str:
    """Return ``64 KiB``, rounded up for advice on minimum sizes."""
    if octets >= 1 << 20:
        return f"{math.ceil(10 * octets / (1 << 20)) / 10:,.4g} MiB"
    if octets >= 1 << 10:
        return f"{math.ceil(octets / (1 << 10))} KiB"
    return f"{math.ceil(octets)} B"


def format_volume(octets: float) -> str:
    """Return ``6.11 MiB``, rounded to the nearest value, for an amount of data."""
    if octets >= 1 << 20:
        return f"{format_digits(octets / (1 << 20))} MiB"
    return f"{format_digits(octets / (1 << 10))} KiB" if octets >= 1 << 10 else f"{octets:,.0f} B"


def format_time(seconds: float) -> str:
    """Return ``83.7 ms`` or ``1.2 s``."""
    return f"{format_digits(seconds)} s" if seconds >= 1 else f"{format_digits(seconds * 1e3)} ms"


def mean_rtt_text(table: Table, at: int) -> str:
    """Return the mean RTT of a row: ``83.7 ms``, or ``at least ...`` for a lower bound."""
    bound = "at least " if table["rtt_lower_bound"][at] else ""
    return f"{bound}{format_time(table['rtt_mean_s'][at])}"


def sentence_case(text: str) -> str:
    """Return a text with its first letter in upper case; other letters are unchanged."""
    return text[:1].upper() + text[1:]


def format_percent(share: float) -> str:
    """Return ``71 %``."""
    return f"{100 * share:.0f} %"


def format_times(factor: float) -> str:
    """Return ``1.5 times``."""
    return f"{format_digits(factor, 2)} times"
