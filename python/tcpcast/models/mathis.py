"""The square-root law of Mathis, Semke, Mahdavi and Ott (1997), the usual baseline.

B = C / (RTT sqrt(p)) packets/s. The constant C here is sqrt(3/(2b)), for periodic loss and b
packets per ACK: 1.22 if every packet is acknowledged, 0.87 with delayed ACKs. The law omits
timeouts and recovery time, so it overestimates the rate above a few per cent of loss.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tcpcast.array_types import Floats
from tcpcast.models.domain import to_checked_arrays


def mathis_constant(*, packets_per_ack: ArrayLike = 2) -> Floats:
    """Return C = sqrt(3/(2b)), the constant of the square-root law for periodic loss.

    Parameters
    ----------
    packets_per_ack
        b, at least 1: 2 with delayed ACKs.

    Raises
    ------
    DomainError
        b below 1 or not finite.
    """
    (b,) = to_checked_arrays(packets_per_ack=packets_per_ack)
    return np.asarray(np.sqrt(1.5 / b))


def mathis_rate_pps(
    *,
    rtt_s: ArrayLike,
    loss_indication_ratio: ArrayLike,
    packets_per_ack: ArrayLike = 2,
    receiver_window_pkts: ArrayLike = np.inf,
) -> Floats:
    """Return min(W_max/RTT, C/(RTT sqrt(p))), the rate of the square-root law.

    Parameters
    ----------
    rtt_s
        RTT in seconds, above 0.
    loss_indication_ratio
        p, loss indications per packet sent, above 0 and below 1.
    packets_per_ack
        b, at least 1: 2 with delayed ACKs.
    receiver_window_pkts
        W_max in packets, at least 1; ``inf`` for unlimited. All arguments are broadcast.

    Returns
    -------
    ndarray
        Packets/s, of the broadcast shape.

    Raises
    ------
    DomainError
        An argument outside its domain.

    Notes
    -----
    Mathis, Semke, Mahdavi, Ott: "The macroscopic behavior of the TCP congestion avoidance
    algorithm", CCR 27(3), 1997. The limit by the window is an addition.
    """
    rtt, p, window = to_checked_arrays(
        rtt_s=rtt_s,
        loss_indication_ratio=loss_indication_ratio,
        receiver_window_pkts=receiver_window_pkts,
    )
    constant = mathis_constant(packets_per_ack=packets_per_ack)
    return np.asarray(np.minimum(window, constant / np.sqrt(p)) / rtt)


def mathis_tolerated_loss_ratio(
    *, rate_pps: ArrayLike, rtt_s: ArrayLike, packets_per_ack: ArrayLike = 2
) -> Floats:
    """Return the loss at which the square-root law has a given rate, p = (C/(B RTT))^2.

    Parameters
    ----------
    rate_pps
        B in packets/s, above 0.
    rtt_s, packets_per_ack
        As in :func:`mathis_rate_pps`. All arguments are broadcast.

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
    constant = mathis_constant(packets_per_ack=packets_per_ack)
    return np.asarray(np.minimum(1.0, (constant / (rate * rtt)) ** 2))
