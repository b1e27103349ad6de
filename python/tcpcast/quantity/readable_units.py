"""Rates, times and sizes as texts in readable units."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.quantity.units import digits

if TYPE_CHECKING:
    from collections.abc import Sequence

RATE_LADDER = ((1.0, "bit/s"), (1e3, "kbit/s"), (1e6, "Mbit/s"), (1e9, "Gbit/s"))
TIME_LADDER = ((1e-6, "µs"), (1e-3, "ms"), (1.0, "s"))
SIZE_LADDER = ((1.0, "byte"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"))
"""Units of sizes: size in bytes, and symbol."""


def rate_text(rate_bps: float) -> str:
    """Return a rate for a sentence: ``138.7 Mbit/s``."""
    return "unlimited" if math.isinf(rate_bps) else _with_unit(rate_bps, RATE_LADDER)


def time_text(seconds: float) -> str:
    """Return a time for a sentence: ``83.7 ms``."""
    return _with_unit(seconds, TIME_LADDER)


def count_text(number: float, noun: str, plural: str = "") -> str:
    """Return a number with its noun: ``1 packet``, ``2,000 packets``."""
    return f"{number:,.0f} {noun if round(number) == 1 else plural or f'{noun}s'}"


def past_clause(count: int, noun: str, predicate: str) -> str:
    """Return a count with a predicate in the past tense, such as ``2 frames were lost``.

    ``predicate`` is in the plural: an initial ``were`` becomes ``was`` for a count of 1.
    """
    if count == 1 and predicate.startswith("were "):
        predicate = f"was {predicate.removeprefix('were ')}"
    return f"{count_text(count, noun)} {predicate}"


def readable_unit(value: float, ladder: Sequence[tuple[float, str]]) -> tuple[float, str]:
    """Return the size and the symbol of the largest unit in which a value is at least 1.

    For values below 1 in every unit, return the smallest unit; for 0, infinity and NaN, the unit of
    size 1, or the smallest unit if the ladder has no unit of size 1.
    """
    magnitude = abs(value)
    if magnitude == 0 or not math.isfinite(magnitude):
        return next((step for step in ladder if step[0] == 1.0), ladder[0])
    fitting = [step for step in ladder if step[0] <= magnitude * (1 + 1e-9)]
    return fitting[-1] if fitting else ladder[0]


def _with_unit(value: float, ladder: Sequence[tuple[float, str]]) -> str:
    size, unit = readable_unit(value, ladder)
    return f"{digits(value / size)} {unit}"
