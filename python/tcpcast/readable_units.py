"""Rates and times with the units of sentences and tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.units import digits

if TYPE_CHECKING:
    from collections.abc import Sequence

RATE_LADDER = ((1.0, "bit/s"), (1e3, "kbit/s"), (1e6, "Mbit/s"), (1e9, "Gbit/s"))
TIME_LADDER = ((1e-6, "µs"), (1e-3, "ms"), (1.0, "s"))
"""Units in which quantities are shown, each with its size."""


def rate_text(rate_bps: float) -> str:
    """Return a rate for a sentence: ``138.7 Mbit/s``."""
    return "unlimited" if math.isinf(rate_bps) else _in_ladder(rate_bps, RATE_LADDER)


def time_text(seconds: float) -> str:
    """Return a time for a sentence: ``83.7 ms``."""
    return _in_ladder(seconds, TIME_LADDER)


def _in_ladder(value: float, ladder: Sequence[tuple[float, str]]) -> str:
    """Return a value in the largest unit in which it is at least 1; 0 is in the basic unit."""
    basic = next(step for step in ladder if step[0] == 1.0)
    fitting = [step for step in ladder if step[0] <= abs(value) * (1 + 1e-9)]
    size, unit = fitting[-1] if fitting else ladder[0] if value else basic
    return f"{digits(value / size)} {unit}"
