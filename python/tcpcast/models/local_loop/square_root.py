"""Equation (1): the square-root law with timeouts or restarts after idle times."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tcpcast.array_types import Floats
from tcpcast.errors import DomainError
from tcpcast.models.domain import to_positive_array, to_ratio_array


def restarting_goodput_pps(
    *,
    rtt_s: ArrayLike,
    loss_ratio: ArrayLike = 0.0,
    timeout_ratio: ArrayLike = 0.0,
    idle_restart_ratio: ArrayLike = 0.0,
) -> Floats:
    """Return sqrt(3 / (2 max(p_loss + p_to, p_idle))) / RTT, the goodput of a user while on.

    A window reset after an idle time counts like a window halved by a loss; the more frequent of
    the two determines the rate.

    Parameters
    ----------
    rtt_s
        RTT, mean round-trip time in seconds, above 0.
    loss_ratio, timeout_ratio
        p_loss and p_to, packets lost and timeouts per packet sent, from 0 to below 1.
    idle_restart_ratio
        p_idle, restarts of the window after idle times per packet sent, from 0 to below 1. All
        arguments are broadcast.

    Returns
    -------
    ndarray
        Packets/s, of the broadcast shape, without a limit by receiver window or link.

    Raises
    ------
    DomainError
        An argument outside its domain, or all three ratios 0, for which the rate is unlimited.

    Notes
    -----
    Equation (1), with an MSS of one packet. It is missing in the text of the report; this form
    reproduces the twelve values of Table 7 from Tables 3 to 5.
    """
    rtt = to_positive_array("rtt_s", rtt_s)
    lost = to_ratio_array("loss_ratio", loss_ratio) + to_ratio_array("timeout_ratio", timeout_ratio)
    ratio = np.maximum(lost, to_ratio_array("idle_restart_ratio", idle_restart_ratio))
    if ratio.size and float(ratio.min()) == 0:
        raise DomainError(
            "loss_ratio, timeout_ratio and idle_restart_ratio are all 0, so the "
            "square-root law has no limit; write at least one ratio above 0"
        )
    return np.asarray(np.sqrt(1.5 / ratio) / rtt)
