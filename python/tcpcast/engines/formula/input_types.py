"""Input types of path formulas, and the derivation steps of an answer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsFloat

from tcpcast.models.domain import BURST_FILL, QUEUE_FILL
from tcpcast.models.pftk import path_domain_values

if TYPE_CHECKING:
    from tcpcast.answer import Answer, Step
    from tcpcast.scenario.path import PathView


PEAK_RATIO = 2.5
"""Large windows between random losses, relative to the mean window: from 1 Gbit/s, 10 ms, a loss of
0.001 % and a buffer of 0.1 BDP, where overflows at such windows reduce the rate by 40 %."""
RANDOM_PEAK_RATIO = 1.7
"""Ratio of the largest windows to their mean with random losses, whose intervals vary. CUBIC over
2 ms at .01 % loss, a buffer of 1 BDP: formula 1.20, 1.31 and 1.40 times the simulated rate for mean
windows of .3, .7 and 1.0 BDP; over 20 ms, where bursts take a tenth of the buffer, .99 to 1.12."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathInputs:
    """Inputs of path formulas.

    ``delivered_bits`` is the mean delivered payload per sent packet, None if unknown. ``capacity``
    is the path, None if no link has a rate, or if the inputs were measured.
    ``steps`` contains the derivation of each input by symbol: p, RTT, T0, b, W_max, n.
    ``burst_pkts`` is the largest burst at the limiting link, and ``decrease`` the window after a
    loss relative to before.
    """

    flows: int
    loss: float
    rtt_s: float
    t0_s: float
    packets_per_ack: float
    window_pkts: float
    delivered_bits: float | None
    capacity: PathView | None
    steps: dict[str, Step]
    warnings: tuple[str, ...] = ()
    burst_pkts: float = 0.0
    decrease: float = 0.5

    @property
    def capacity_pps(self) -> float:
        """Total capacity of the path over all flows; inf if unlimited."""
        return math.inf if self.capacity is None else self.capacity.capacity_pps

    @property
    def model_arguments(self) -> dict[str, Any]:
        """Arguments of :func:`tcpcast.models.pftk.throughput`, by name."""
        return {
            "loss_indication_ratio": self.loss,
            "rtt_s": self.rtt_s,
            "t0_s": self.t0_s,
            "packets_per_ack": self.packets_per_ack,
            "receiver_window_pkts": self.window_pkts,
        }

    def domain_values(self, rate_pps: float) -> dict[str, float]:
        """Return the quantities that bound the domains of formulas, by name.

        ``rate_pps`` is the total rate without the limit of links.
        """
        values = path_domain_values(**self.model_arguments) if self.loss > 0 else {}
        return {name: float(value) for name, value in values.items()} | self._buffer_use(rate_pps)

    def _buffer_use(self, rate_pps: float) -> dict[str, float]:
        """Return what must fit in the buffer, relative to it, for the rate not to suffer.

        These are the queue that keeps the link full after a loss, 0 if the windows do not fill the
        path and the buffer, and the bursts of the hosts, which are parts of the windows. Where
        random losses limit the windows, the largest windows leave only a part of the buffer.
        """
        if self.capacity is None:
            return {}
        held_pkts = self.capacity.buffer_pkts * self.capacity.link.instances
        path_pkts = self.capacity_pps * self.rtt_s
        window = min(self.flows * self.window_pkts, PEAK_RATIO * rate_pps * self.rtt_s)
        is_filled = window > path_pkts + held_pkts
        queue_pkts = (1 / self.decrease - 1) * path_pkts if is_filled else 0.0
        mean_pkts, used_pkts = rate_pps * self.rtt_s, 0.0
        if mean_pkts < path_pkts + held_pkts:
            used_pkts = min(max(RANDOM_PEAK_RATIO * mean_pkts - path_pkts, 0.0), held_pkts / 2)
        return {
            QUEUE_FILL: queue_pkts / max(held_pkts, 1.0),
            BURST_FILL: min(self.burst_pkts, window) / max(held_pkts - used_pkts, 1.0),
        }

    def select_steps(self, *symbols: str) -> list[Step]:
        """Return the derivation steps of some inputs, in the given order."""
        return [self.steps[symbol] for symbol in symbols]


def make_path_inputs(
    steps: list[Step],
    *,
    window_pkts: float,
    delivered_bits: float | None,
    capacity: PathView | None = None,
    **more: Any,
) -> PathInputs:
    """Return the inputs from the derivation steps of p, RTT, T0, b, W_max and n."""
    by_symbol = {step["symbol"]: step for step in steps}
    return PathInputs(
        flows=int(by_symbol["n"]["value"]),
        loss=by_symbol["p"]["value"],
        rtt_s=by_symbol["RTT"]["value"],
        t0_s=by_symbol["T0"]["value"],
        packets_per_ack=by_symbol["b"]["value"],
        window_pkts=window_pkts,
        delivered_bits=delivered_bits,
        capacity=capacity,
        steps=by_symbol,
        **more,
    )


def make_step(symbol: str, value: SupportsFloat, unit: str, source: str) -> Step:
    """Return a step of :class:`tcpcast.answer.Answer`; an infinite value becomes None."""
    number = float(value)
    return {
        "symbol": symbol,
        "value": number if math.isfinite(number) else None,
        "unit": unit,
        "source": source,
    }


def delivered_bits_per_sent_packet(measured: Answer) -> float | None:
    """Return the delivered payload per sent packet, None if it was not measured."""
    goodput, sent = (
        get_positive_metric(measured, "goodput_bps"),
        get_positive_metric(measured, "send_rate_pps"),
    )
    return None if goodput is None or sent is None else goodput / sent


def get_positive_metric(measured: Answer, name: str) -> float | None:
    """Return a metric of a measured answer, None if it is absent, zero or nan."""
    metric = measured.metrics.get(name)
    return metric.value if metric is not None and metric.value > 0 else None
