"""Predicted send rates of each model, and the paper's measure of error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from tcpcast.models.cubic import cubic_response
from tcpcast.models.mathis import mathis_rate_pps
from tcpcast.models.pftk import (
    approximate_rate_pps,
    td_only_leading_rate_pps,
    td_only_rate_pps,
    throughput,
    window_chain,
)

from tcpcast_papers.pftk.published import PACKETS_PER_ACK

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from tcpcast_papers.pftk.published import Trace

    Floats = NDArray[np.float64]

WINDOWS_PKTS = tuple(range(2, 65))
"""W_max for fits to traces: up to 64 KiB in segments of 1 KiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Inputs of the models; scalars or arrays that broadcast against each other.

    Attributes
    ----------
    rtt_s, t0_s
        RTT and T0 in seconds.
    loss_indication_ratio
        p.
    window_pkts
        W_max in packets, ``inf`` for none.
    """

    rtt_s: ArrayLike
    t0_s: ArrayLike
    loss_indication_ratio: ArrayLike
    window_pkts: ArrayLike = np.inf


def _square_root_inputs(given: Inputs) -> dict[str, Any]:
    return {
        "rtt_s": given.rtt_s,
        "loss_indication_ratio": given.loss_indication_ratio,
        "packets_per_ack": PACKETS_PER_ACK,
    }


def _pftk_inputs(given: Inputs) -> dict[str, Any]:
    limits = {"t0_s": given.t0_s, "receiver_window_pkts": given.window_pkts}
    return _square_root_inputs(given) | limits


FULL, APPROXIMATE, TD_ONLY = "full (31)", "approximate (32)", "TD only (20)"
TD_ONLY_EQUATION_19, MATHIS, CUBIC = "TD only (19)", "Mathis within W_max", "CUBIC response"
CHAIN = "window chain"

MODELS: dict[str, Callable[[Inputs], Floats]] = {
    FULL: lambda given: throughput(**_pftk_inputs(given)).rate_pps,
    APPROXIMATE: lambda given: approximate_rate_pps(**_pftk_inputs(given)),
    TD_ONLY: lambda given: td_only_leading_rate_pps(**_square_root_inputs(given)),
    TD_ONLY_EQUATION_19: lambda given: td_only_rate_pps(**_square_root_inputs(given)),
    MATHIS: lambda given: mathis_rate_pps(
        **_square_root_inputs(given), receiver_window_pkts=given.window_pkts
    ),
    CUBIC: lambda given: (
        cubic_response(
            rtt_s=given.rtt_s,
            loss_ratio=given.loss_indication_ratio,
            receiver_window_pkts=given.window_pkts,
        ).rate_pps
    ),
}
"""Rates in packets/s. "TD only" does not use W_max, as in the paper; (20) is the model that its
figures plot under that name, the square-root formula with delayed acks."""

PLOTTED_MODELS = (FULL, APPROXIMATE, TD_ONLY)
"""The models of Figures 19 and 20."""


def full_model_packets(
    row: Trace,
    *,
    p_factor: float = 1.0,
    window_pkts: float = np.inf,
    packets_per_ack: int = PACKETS_PER_ACK,
    timeout_share: float | None = None,
) -> float:
    """Return the packets of the full model in a trace's time, with p times ``p_factor``.

    ``timeout_share`` replaces Q.
    """
    rate = throughput(
        rtt_s=row.rtt_s,
        t0_s=row.t0_s,
        loss_indication_ratio=p_factor * row.loss_indication_ratio,
        packets_per_ack=packets_per_ack,
        receiver_window_pkts=window_pkts,
        timeout_share=timeout_share,
    ).rate_pps
    return float(rate) * row.duration_s


def chain_rates(rows: Sequence[Trace], windows_pkts: Floats) -> Floats:
    """Return the Markov chain's rate for each trace, in packets/s, ``[traces]``."""
    return np.array(
        [
            window_chain(
                loss_probability=row.loss_indication_ratio,
                packets_per_ack=PACKETS_PER_ACK,
                receiver_window_pkts=float(window),
            ).rate_pps(rtt_s=row.rtt_s, t0_s=row.t0_s)
            for row, window in zip(rows, windows_pkts, strict=True)
        ]
    )


def relative_errors(predicted: ArrayLike, observed: ArrayLike) -> Floats:
    """Return |predicted - observed| / observed, whose mean is the paper's average error."""
    seen = np.asarray(observed, dtype=np.float64)
    return np.abs(np.asarray(predicted, dtype=np.float64) - seen) / seen


def fitted_windows(rows: Sequence[Trace], model: str = FULL) -> Floats:
    """Return for each trace the W_max with the smallest error of a model, ``[traces]``.

    One of :data:`WINDOWS_PKTS`, or ``inf`` if the model underestimates without a limit.
    """
    return np.asarray(_WINDOW_CHOICES_PKTS[_errors_by_window(rows, model).argmin(axis=0)])


def common_window(rows: Sequence[Trace], model: str = FULL) -> float:
    """Return the W_max with the smallest average error of a model over traces."""
    return float(_WINDOW_CHOICES_PKTS[_errors_by_window(rows, model).mean(axis=1).argmin()])


_WINDOW_CHOICES_PKTS = np.array([np.inf, *WINDOWS_PKTS])


def _errors_by_window(rows: Sequence[Trace], model: str) -> Floats:
    rates = MODELS[model](inputs_of_traces(rows, _WINDOW_CHOICES_PKTS[:, None]))
    return relative_errors(rates * [row.duration_s for row in rows], [row.packets for row in rows])


def inputs_of_traces(rows: Sequence[Trace], windows_pkts: ArrayLike = np.inf) -> Inputs:
    """Return the inputs of models for printed traces, ``[traces]``."""
    return Inputs(
        rtt_s=[row.rtt_s for row in rows],
        t0_s=[row.t0_s for row in rows],
        loss_indication_ratio=[row.loss_indication_ratio for row in rows],
        window_pkts=windows_pkts,
    )
