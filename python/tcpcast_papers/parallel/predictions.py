"""Predictions of the models for a simulated point, by measure of loss."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from tcpcast.models.parallel import (
    cumulative_throughput,
    multiplied_pftk_rate_pps,
    parallel_throughput,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tcpcast_papers.parallel.runs import Measured

    Floats = NDArray[np.float64]

PER_FLOW, CUMULATIVE, BOTH = "p", "p_e", "p_e and p_r"
"""Measures of loss: loss events per flow, of all flows combined, and of all flows combined, with
lost packets."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A model and its measure of loss.

    Attributes
    ----------
    model
        Name as in the tables: ``"algorithm 1"``.
    measure
        One of :data:`PER_FLOW`, :data:`CUMULATIVE`, :data:`BOTH`.
    rate_pps
        Function that computes packets/s from measurements.
    """

    model: str
    measure: str
    rate_pps: Callable[[Measured], float]

    def loss(self, seen: Measured) -> float:
        """Return the loss that the model uses."""
        return seen.p if self.measure == PER_FLOW else seen.p_e

    def applies(self, seen: Measured) -> bool:
        """Return whether the loss is not 0."""
        return 0 < self.loss(seen) < 1 and 0 < seen.p_r < 1


def _flows_times_and_acks(seen: Measured) -> dict[str, float]:
    return {
        "flows": seen.point.flows,
        "rtt_s": seen.rtt_s,
        "t0_s": seen.t0_s,
        "packets_per_ack": seen.point.choice.packets_per_ack,
    }


def _algorithm_1(seen: Measured, measure: str = PER_FLOW, *, equations: bool = False) -> float:
    loss = seen.p if measure == PER_FLOW else seen.p_e
    result = parallel_throughput(
        **_flows_times_and_acks(seen), loss_event_ratio=loss, equations=equations
    )
    return float(result.rate_pps)


def _algorithm_2(seen: Measured, *, equations: bool = False, flows_hit: bool = False) -> float:
    result = cumulative_throughput(
        **_flows_times_and_acks(seen),
        loss_event_ratio_cumulative=seen.p_e,
        loss_ratio=seen.p if flows_hit else seen.p_r,
        equations=equations,
    )
    return float(result.rate_pps)


def _n_times_pftk(seen: Measured, measure: str = PER_FLOW) -> float:
    loss = seen.p if measure == PER_FLOW else seen.p_e
    return float(
        multiplied_pftk_rate_pps(**_flows_times_and_acks(seen), loss_indication_ratio=loss)
    )


ALGORITHM_1 = Prediction("algorithm 1", PER_FLOW, _algorithm_1)
EQUATION_28 = Prediction("equation (28)", PER_FLOW, partial(_algorithm_1, equations=True))
PFTK = Prediction("n times PFTK", PER_FLOW, _n_times_pftk)
ALGORITHM_1_CUMULATIVE_LOSS = Prediction(
    "algorithm 1", CUMULATIVE, partial(_algorithm_1, measure=CUMULATIVE)
)
PFTK_CUMULATIVE_LOSS = Prediction(
    "n times PFTK", CUMULATIVE, partial(_n_times_pftk, measure=CUMULATIVE)
)
ALGORITHM_2 = Prediction("algorithm 2", BOTH, _algorithm_2)
ALGORITHM_2_FLOWS_HIT = Prediction(
    "algorithm 2", "p_e and p", partial(_algorithm_2, flows_hit=True)
)
"""Algorithm 2 with j = p / p_e, the flows that lose packets in an event, instead of p_r / p_e."""
EQUATION_48 = Prediction("equation (48)", BOTH, partial(_algorithm_2, equations=True))


def rate_ratios(model: Prediction, seen: Sequence[Measured]) -> Floats:
    """Return model rates / simulated rates, nan if the model does not apply, ``[points]``."""
    return np.array(
        [
            model.rate_pps(each) / each.send_rate_pps if model.applies(each) else np.nan
            for each in seen
        ]
    )


def relative_rate_errors(model: Prediction, seen: Sequence[Measured]) -> Floats:
    """Return the errors of the model, relative to the simulated rates, ``[points]``."""
    return rate_ratios(model, seen) - 1


def mean_absolute_error(model: Prediction, seen: Sequence[Measured]) -> float:
    """Return the mean of |model - simulation| / simulation over the points to which it applies."""
    result = relative_rate_errors(model, seen)
    kept = result[np.isfinite(result)]
    return float(np.abs(kept).mean()) if kept.size else float("nan")
