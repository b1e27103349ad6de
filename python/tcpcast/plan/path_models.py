"""Models of loss for a path: the send rate at a given loss, and the loss for a given rate."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.models.bbr import BOTTLENECK_REGIME, COLLAPSE_REGIME, TOLERATED_LOSS_RATIO
from tcpcast.models.cubic import cubic_response, cubic_tolerated_loss_ratio
from tcpcast.models.mathis import mathis_rate_pps, mathis_tolerated_loss_ratio
from tcpcast.models.parallel import limited_rate_pps, parallel_tolerated_loss_ratio
from tcpcast.models.pftk import (
    TIMEOUTS_REGIME,
    TRIPLE_DUPLICATES_REGIME,
    throughput,
    tolerated_loss_ratio,
)
from tcpcast.plan.formula_trust import formula_untrusted_reason
from tcpcast.plan.planned_path import percent_text, share_of_flows_in_rto

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tcpcast.plan.inverse_question import InverseQuestion
    from tcpcast.plan.planned_path import PlannedPath
    from tcpcast.scenario import Scenario

    Floats = NDArray[np.float64]

MAX_VALIDATED_LOSS = 0.1
"""Maximum loss for which the authors validate PFTK and algorithm 1. In simulations, BBR's rate
falls below its bound from a loss of 12 %."""

MIN_LOSS = 1e-12
"""Loss ratio that stands for no loss: if a link is too slow for the rate, and in searches."""


@dataclass(frozen=True, slots=True)
class PathModel:
    """A model of loss for a path.

    ``inverse`` returns the p at which the flows of the path send a rate in packets/s. ``rate``
    returns the packets/s of n flows at a p, at most n windows per RTT. ``regime`` returns the name
    of what limits the rate at a p, such as timeouts. ``engine`` is the formula's engine, or the
    prefix of the column of a model without an engine, whose ``is_always_trusted`` is True.
    """

    name: str
    engine: str
    inverse: Callable[[PlannedPath, Floats], Floats]
    rate: Callable[[PlannedPath, Any, Any], Floats]
    regime: Callable[[PlannedPath, float], str]
    is_always_trusted: bool = False

    @property
    def column(self) -> str:
        """The model's column in a table."""
        return self.engine.partition("-")[0]

    def title(self, path: PlannedPath) -> str:
        """Return the model's name, with the number of flows of a path."""
        each = f", each of {path.flows}" if path.flows > 1 else ""
        return self.name.format(each=each, flows=path.flows)

    def untrusted_reason(
        self, scenario: Scenario, question: InverseQuestion, value: float, loss_ratio: float
    ) -> str:
        """Return the reason not to trust the model at a plan's answer, or ""."""
        if self.is_always_trusted:
            return ""
        if loss_ratio > MAX_VALIDATED_LOSS:
            return (
                f"the loss is {percent_text(loss_ratio)}, but the models are validated only up to "
                f"{percent_text(MAX_VALIDATED_LOSS)}"
            )
        return formula_untrusted_reason(self.engine, scenario, question.changes(value))

    def is_window_limited(self, path: PlannedPath, flows: Any) -> NDArray[np.bool_]:
        """Return True if windows limit the flows at the loss of the path."""
        free = replace(path, receiver_window_pkts=math.inf, own_link_pps=math.inf)
        rates = (self.rate(each, flows, path.loss_ratio) for each in (path, free))
        return np.less(*rates)


def _make_pftk_model(path: PlannedPath, p: Any) -> Any:
    return throughput(
        loss_indication_ratio=p, receiver_window_pkts=path.window_pkts, **path.model_inputs()
    )


def _pftk_loss_at_rate(path: PlannedPath, rate: Floats) -> Floats:
    below = np.nextafter(path.window_pkts / path.rtt_s, 0)  # at W_max/RTT no loss is tolerated
    return tolerated_loss_ratio(
        rate_pps=np.minimum(rate / path.flows, below),
        receiver_window_pkts=path.window_pkts,
        **path.model_inputs(),
    )


def _timeout_or_duplicates(path: PlannedPath, p: float) -> str:
    return (
        TIMEOUTS_REGIME
        if share_of_flows_in_rto(path, flows=path.flows, loss_ratio=p) > 0.5
        else (TRIPLE_DUPLICATES_REGIME)
    )


def _make_cubic_model(path: PlannedPath, p: Any) -> Any:
    return cubic_response(rtt_s=path.rtt_s, loss_ratio=p, receiver_window_pkts=path.window_pkts)


PFTK = PathModel(
    "PFTK (31){each}",
    "pftk",
    _pftk_loss_at_rate,
    lambda path, flows, p: flows * _make_pftk_model(path, p).rate_pps,
    lambda path, p: str(_make_pftk_model(path, p).regime),
)
"""The full PFTK model, for independent flows."""

PARALLEL = PathModel(
    "parallel, algorithm 1, n = {flows}",
    "parallel",
    lambda path, rate: parallel_tolerated_loss_ratio(
        flows=path.flows, rate_pps=rate, **path.model_inputs()
    ),
    lambda path, flows, p: limited_rate_pps(
        flows=flows,
        loss_event_ratio=p,
        receiver_window_pkts=path.window_pkts,
        **path.model_inputs(),
    ),
    _timeout_or_duplicates,
)

MATHIS = PathModel(
    "square root{each}",
    "mathis",
    lambda path, rate: mathis_tolerated_loss_ratio(
        rate_pps=rate / path.flows, rtt_s=path.rtt_s, packets_per_ack=path.packets_per_ack
    ),
    lambda path, flows, p: (
        flows
        * mathis_rate_pps(
            rtt_s=path.rtt_s, loss_indication_ratio=p, packets_per_ack=path.packets_per_ack
        )
    ),
    lambda *_: TRIPLE_DUPLICATES_REGIME,
)

CUBIC = PathModel(
    "CUBIC response{each}",
    "cubic-response",
    lambda path, rate: cubic_tolerated_loss_ratio(rate_pps=rate / path.flows, rtt_s=path.rtt_s),
    lambda path, flows, p: flows * _make_cubic_model(path, p).rate_pps,
    lambda path, p: "Reno-friendly" if bool(_make_cubic_model(path, p).reno_friendly) else "cubic",
)

BBR = PathModel(
    "BBR, its bound",
    "bbr-bound",
    lambda path, rate: np.where(rate <= path.link_pps, TOLERATED_LOSS_RATIO, MIN_LOSS),
    lambda path, flows, p: np.where(
        np.less_equal(p, TOLERATED_LOSS_RATIO),
        flows * min(path.link_pps, path.window_pkts / path.rtt_s),
        0.0,
    ),
    lambda _, p: COLLAPSE_REGIME if p >= TOLERATED_LOSS_RATIO else BOTTLENECK_REGIME,
)
"""The bound of BBR, version 1."""

LOSSLESS = PathModel(
    "windows without loss{each}",
    "window",
    lambda _, rate: np.full_like(rate, MIN_LOSS),
    lambda path, flows, _: flows * min(path.link_pps, path.window_pkts / path.rtt_s),
    lambda *_: BOTTLENECK_REGIME,
    is_always_trusted=True,
)
"""Without random loss, each flow sends its full window per RTT, at most at the rate of its own
links, with any congestion control."""
