"""What formulas of one path are fed, wherever it comes from, and the steps that they tell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsFloat

from tcpcast.models.pftk import path_values

if TYPE_CHECKING:
    from tcpcast.answer import Answer, Step
    from tcpcast.scenario.link import PathLink


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a link lets through in packets/s, all flows together."""

    on: PathLink
    pps: float

    @property
    def key(self) -> str:
        """Where its rate is from."""
        return f"network.{self.on.key}.rate" + ("" if self.on.shared else " times n")


@dataclass(frozen=True, slots=True, kw_only=True)
class PathInputs:
    """What the formulas take of a scenario.

    ``delivered_bits`` is the payload that arrives of each packet sent, on the mean; None where that
    is not known. ``capacity`` is of the link that limits; None where none has a rate, or where the
    inputs were measured.
    ``steps`` say how each input came about, by its symbol: p, RTT, T0, b, W_max, n.
    """

    flows: int
    loss: float
    rtt_s: float
    t0_s: float
    packets_per_ack: float
    window_pkts: float
    delivered_bits: float | None
    capacity: Capacity | None
    steps: dict[str, Step]
    warnings: tuple[str, ...] = ()

    @property
    def capacity_pps(self) -> float:
        """What the links let through, all flows together; inf where nothing limits."""
        return math.inf if self.capacity is None else self.capacity.pps

    def domain_values(self) -> dict[str, float]:
        """Return the quantities that bound the domains of formulas, by name."""
        found = path_values(
            loss_ratio=self.loss,
            rtt_s=self.rtt_s,
            t0_s=self.t0_s,
            packets_per_ack=self.packets_per_ack,
            receiver_window_pkts=self.window_pkts,
        )
        return {name: float(value) for name, value in found.items()}

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


def delivered_bits(measured: Answer) -> float | None:
    """Return the payload that arrived of each packet sent; None where it was not measured."""
    goodput, sent = figure(measured, "goodput_bps"), figure(measured, "send_rate_pps")
    return None if goodput is None or sent is None else goodput / sent


def figure(measured: Answer, name: str) -> float | None:
    """Return a metric of a measured answer, None where it is absent, zero or no number."""
    metric = measured.metrics.get(name)
    return metric.value if metric is not None and metric.value > 0 else None
