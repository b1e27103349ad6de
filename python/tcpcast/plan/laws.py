"""Models of loss for a path: what its flows send at a loss, and the loss at which they send it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tcpcast.models.bbr import BOTTLENECK, TOLERATED_LOSS_RATIO
from tcpcast.models.cubic import cubic_response, cubic_tolerated_loss_ratio
from tcpcast.models.mathis import mathis_rate_pps, mathis_tolerated_loss_ratio
from tcpcast.models.parallel import limited_rate_pps, parallel_tolerated_loss_ratio
from tcpcast.models.pftk import TIMEOUTS, TRIPLE_DUPLICATES, throughput, tolerated_loss_ratio
from tcpcast.plan.path import PlannedPath, waiting_share

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Curve = Callable[[NDArray[np.float64]], NDArray[np.float64]]

LEAST = 1e-12
"""The loss that stands for none, where a link is too slow for what is asked."""


@dataclass(frozen=True, slots=True)
class Law:
    """A model of loss for a path.

    ``inverse`` is the p at which its flows send so many packets/s together, ``rate`` what they send
    at a p, ``regime`` what limits them there.
    """

    name: str
    engine: str
    inverse: Curve
    rate: Curve
    regime: Callable[[float], str]

    @property
    def column(self) -> str:
        """What a table calls it."""
        return self.engine.partition("-")[0]


def pftk_law(path: PlannedPath) -> Law:
    """Return the full PFTK model, of flows that do not meet."""
    inputs, window = path.model_inputs(), path.window_pkts
    below = np.nextafter(window / path.rtt_s, 0)  # at W_max/RTT itself no loss is tolerated
    return Law(
        f"PFTK (31){_each(path)}",
        "pftk",
        lambda rate: tolerated_loss_ratio(
            rate_pps=np.minimum(rate / path.flows, below), receiver_window_pkts=window, **inputs
        ),
        lambda p: (
            path.flows
            * throughput(loss_indication_ratio=p, receiver_window_pkts=window, **inputs).rate_pps
        ),
        lambda p: str(
            throughput(loss_indication_ratio=p, receiver_window_pkts=window, **inputs).regime
        ),
    )


def parallel_law(path: PlannedPath) -> Law:
    """Return algorithm 1 of the model of parallel flows."""
    inputs = path.model_inputs()

    def regime(p: float) -> str:
        share = waiting_share(path, flows=path.flows, loss_ratio=p)
        return TIMEOUTS if share > 0.5 else TRIPLE_DUPLICATES

    return Law(
        f"parallel, algorithm 1, n = {path.flows}",
        "parallel",
        lambda rate: parallel_tolerated_loss_ratio(flows=path.flows, rate_pps=rate, **inputs),
        lambda p: limited_rate_pps(
            flows=path.flows,
            loss_event_ratio=p,
            receiver_window_pkts=path.window_pkts,
            **inputs,
        ),
        regime,
    )


def mathis_law(path: PlannedPath) -> Law:
    """Return the square-root law."""
    return Law(
        f"square root{_each(path)}",
        "mathis",
        lambda rate: mathis_tolerated_loss_ratio(
            rate_pps=rate / path.flows, rtt_s=path.rtt_s, packets_per_ack=path.packets_per_ack
        ),
        lambda p: (
            path.flows
            * mathis_rate_pps(
                rtt_s=path.rtt_s, loss_indication_ratio=p, packets_per_ack=path.packets_per_ack
            )
        ),
        lambda _: TRIPLE_DUPLICATES,
    )


def cubic_law(path: PlannedPath) -> Law:
    """Return CUBIC's response function."""

    def regime(p: float) -> str:
        friendly = bool(cubic_response(rtt_s=path.rtt_s, loss_ratio=p).reno_friendly)
        return "Reno-friendly" if friendly else "cubic"

    return Law(
        f"CUBIC response{_each(path)}",
        "cubic-response",
        lambda rate: cubic_tolerated_loss_ratio(rate_pps=rate / path.flows, rtt_s=path.rtt_s),
        lambda p: path.flows * cubic_response(rtt_s=path.rtt_s, loss_ratio=p).rate_pps,
        regime,
    )


def bbr_law(path: PlannedPath) -> Law:
    """Return the bound of BBR, version 1."""
    return Law(
        "BBR, its bound",
        "bbr-bound",
        lambda rate: np.where(rate <= path.link_pps, TOLERATED_LOSS_RATIO, LEAST),
        lambda p: np.where(p <= TOLERATED_LOSS_RATIO, math.inf, 0.0),
        lambda _: BOTTLENECK,
    )


def _each(path: PlannedPath) -> str:
    return f", each of {path.flows}" if path.flows > 1 else ""


LAWS: dict[str, Callable[[PlannedPath], Law]] = {
    "pftk": pftk_law,
    "parallel": parallel_law,
    "mathis": mathis_law,
    "cubic-response": cubic_law,
    "bbr-bound": bbr_law,
}
"""What makes a law of a path, by its engine."""
