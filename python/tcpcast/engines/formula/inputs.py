"""What formulas of one path are fed, wherever it comes from, and the steps that they tell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsFloat

if TYPE_CHECKING:
    from tcpcast.answer import Answer

Step = dict[str, Any]
"""A quantity on the way to the answer: ``symbol``, ``value``, ``unit`` and ``source``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathInputs:
    """What the formulas take of a scenario.

    ``capacity_pps`` is what the links let through, all flows together, and ``capacity_link`` which
    of them limits; inf and ``""`` where none has a rate, or where the inputs were measured.
    ``steps`` say how each input came about, by its symbol: p, RTT, T0, b, W_max, n.
    """

    flows: int
    loss: float
    rtt_s: float
    t0_s: float
    packets_per_ack: float
    window_pkts: float
    capacity_pps: float
    capacity_link: str
    steps: dict[str, Step]
    warnings: tuple[str, ...] = ()

    def used(self, *symbols: str) -> list[Step]:
        """Return the steps of some inputs, in the order named."""
        return [self.steps[symbol] for symbol in symbols]


def step(symbol: str, value: SupportsFloat, unit: str, source: str) -> Step:
    """Return a step as :class:`tcpcast.answer.Answer` carries it; what is endless has no value."""
    number = float(value)
    return {
        "symbol": symbol,
        "value": number if math.isfinite(number) else None,
        "unit": unit,
        "source": source,
    }


def figure(measured: Answer, name: str) -> float | None:
    """Return a metric of a measured answer, None where it is absent, zero or no number."""
    metric = measured.metrics.get(name)
    return metric.value if metric is not None and metric.value > 0 else None
