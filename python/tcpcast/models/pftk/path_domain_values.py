"""Quantities of a path that determine whether its formulas can be trusted."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tcpcast.array_types import Floats
from tcpcast.models.domain import LOSS_RATIO, T0_RTTS, TIMEOUT_TIME_SHARE
from tcpcast.models.pftk.closed_form import throughput


def path_domain_values(
    *,
    loss_indication_ratio: ArrayLike,
    rtt_s: ArrayLike,
    t0_s: ArrayLike,
    packets_per_ack: ArrayLike,
    receiver_window_pkts: ArrayLike,
) -> dict[str, Floats]:
    """Return the quantities that bound the domains of path formulas.

    Parameters
    ----------
    loss_indication_ratio, rtt_s, t0_s, packets_per_ack, receiver_window_pkts
        Inputs of the formulas, as for :func:`tcpcast.models.pftk.throughput`.

    Returns
    -------
    dict
        ``loss_ratio``, ``t0_rtts`` and ``timeout_time_share``, the arguments of
        :func:`tcpcast.models.domain.outside_domain_reason`.

    Raises
    ------
    DomainError
        As for :func:`tcpcast.models.pftk.throughput`.
    """
    result = throughput(
        rtt_s=rtt_s,
        t0_s=t0_s,
        loss_indication_ratio=loss_indication_ratio,
        packets_per_ack=packets_per_ack,
        receiver_window_pkts=receiver_window_pkts,
    )
    return {
        LOSS_RATIO: np.asarray(loss_indication_ratio, dtype=np.float64),
        T0_RTTS: np.asarray(t0_s, dtype=np.float64) / np.asarray(rtt_s, dtype=np.float64),
        TIMEOUT_TIME_SHARE: result.timeout_time_share,
    }
