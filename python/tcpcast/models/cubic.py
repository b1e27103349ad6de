"""CUBIC's response function with its Reno-friendly region (RFC 9438, sections 4.3 and 5).

With 1/p packets between losses (deterministic loss), CUBIC's mean window is
(C (3 + beta)/(4 (1 - beta)))^(1/4) (RTT/p)^(3/4) packets, so its rate is proportional to
RTT^(-1/4), Reno's to 1/RTT. If this is less than Reno's window, CUBIC follows Reno: an AIMD with
alpha_cubic = 3 (1 - beta)/(1 + beta) has Reno's mean window sqrt(3/(2p)) (section 4.3). Recovery
time and timeouts are not included. CUBIC counts acknowledged segments, so delayed ACKs do not slow
its growth, and there is no parameter b.

The tables of sections 5.1 and 5.2, and those of RFC 8312, use Reno's window from RFC 3649:
1.2/sqrt(p), 2 % less than sqrt(3/(2p)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tcpcast.array_types import Floats
from tcpcast.models.domain import broadcast_arrays, to_checked_arrays, to_positive_array
from tcpcast.process.errors import DomainError

CUBIC_C = 0.4
"""C of RFC 9438 (section 5.1), packets/s^3."""
CUBIC_BETA = 0.7
"""beta_cubic of RFC 9438 (section 4.6)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CubicResponse:
    """CUBIC's mean window and rate; arrays of the broadcast shape.

    Attributes
    ----------
    cubic_window_pkts
        Mean window of the cubic function.
    reno_window_pkts
        Mean window of Reno at the same loss.
    window_pkts
        The larger of the two windows, at most the receiver window.
    rate_pps
        ``window_pkts`` per RTT, packets/s.
    reno_friendly
        True in the Reno-friendly region, where Reno's window is the larger.
    window_limited
        True if the receiver window is the limit.
    """

    cubic_window_pkts: Floats
    reno_window_pkts: Floats
    window_pkts: Floats
    rate_pps: Floats
    reno_friendly: NDArray[np.bool_]
    window_limited: NDArray[np.bool_]


def cubic_response(
    *,
    rtt_s: ArrayLike,
    loss_ratio: ArrayLike,
    receiver_window_pkts: ArrayLike = np.inf,
    scale: ArrayLike = CUBIC_C,
    decrease: ArrayLike = CUBIC_BETA,
) -> CubicResponse:
    """Return CUBIC's mean window and rate at a given loss (RFC 9438, section 5).

    Parameters
    ----------
    rtt_s
        RTT in seconds, above 0.
    loss_ratio
        p, loss events per packet sent, above 0 and below 1.
    receiver_window_pkts
        Receiver window in packets, at least 1; ``inf`` for unlimited.
    scale
        C in packets/s^3, above 0.
    decrease
        beta_cubic, above 0 and below 1. All arguments are broadcast.

    Returns
    -------
    CubicResponse
        Arrays of the broadcast shape.

    Raises
    ------
    DomainError
        An argument outside its domain.
    """
    rtt, p, limit = to_checked_arrays(
        rtt_s=rtt_s, loss_ratio=loss_ratio, receiver_window_pkts=receiver_window_pkts
    )
    cubic = np.sqrt(np.sqrt(_fourth_power_of_constant(scale, decrease) * (rtt / p) ** 3))
    reno = np.sqrt(1.5 / p)
    free = np.maximum(cubic, reno)
    window = np.minimum(free, limit)
    return CubicResponse(
        **broadcast_arrays(
            cubic_window_pkts=cubic,
            reno_window_pkts=reno,
            window_pkts=window,
            rate_pps=window / rtt,
            reno_friendly=reno > cubic,
            window_limited=limit <= free,
        )
    )


def cubic_tolerated_loss_ratio(
    *,
    rate_pps: ArrayLike,
    rtt_s: ArrayLike,
    scale: ArrayLike = CUBIC_C,
    decrease: ArrayLike = CUBIC_BETA,
) -> Floats:
    """Return the largest loss at which CUBIC reaches a rate.

    Parameters
    ----------
    rate_pps
        Rate in packets/s, above 0.
    rtt_s, scale, decrease
        As in :func:`cubic_response`. All arguments are broadcast.

    Returns
    -------
    ndarray
        p, of the broadcast shape; 1 if any loss is tolerated.

    Raises
    ------
    DomainError
        An argument outside its domain.
    """
    rate, rtt = to_checked_arrays(rate_pps=rate_pps, rtt_s=rtt_s)
    window = rate * rtt
    cubic = rtt * np.cbrt(_fourth_power_of_constant(scale, decrease) / window) / window
    return np.asarray(np.minimum(1.0, np.maximum(cubic, 1.5 / window**2)))


def reno_friendly_loss_ratio(
    *, rtt_s: ArrayLike, scale: ArrayLike = CUBIC_C, decrease: ArrayLike = CUBIC_BETA
) -> Floats:
    """Return the loss above which CUBIC follows Reno, where the two windows are equal.

    p = C (3 + beta)/(4 (1 - beta)) RTT^3 (2/3)^2, at most 1, which means that CUBIC is above Reno
    at any loss. Arguments and errors as in :func:`cubic_response`.
    """
    rtt = to_positive_array("rtt_s", rtt_s)
    return np.asarray(np.minimum(1.0, _fourth_power_of_constant(scale, decrease) * rtt**3 / 2.25))


def _fourth_power_of_constant(scale: ArrayLike, decrease: ArrayLike) -> Floats:
    """Return C (3 + beta)/(4 (1 - beta)), the fourth power of the response's constant."""
    factor, beta = to_checked_arrays(scale=scale, decrease=decrease)
    if beta.size and float(beta.max()) >= 1:
        raise DomainError(f"decrease must be below 1, not {float(beta.max())!r}")
    return np.asarray(factor * (3 + beta) / (4 * (1 - beta)))
