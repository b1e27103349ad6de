"""Equation (3): goodput of users of an overloaded link while on."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tcpcast.array_types import Floats
from tcpcast.models.domain import to_ratio_array
from tcpcast.models.local_loop.fair_share import fair_send_rate_pps


def overload_goodput_pps(
    *,
    sources: ArrayLike,
    link_pps: ArrayLike,
    mean_off_s: ArrayLike,
    mean_size_pkts: ArrayLike,
    loss_ratio: ArrayLike = 0.0,
) -> Floats:
    """Return B / (N B / (C (1 - p)) - I), the goodput of a user while on if the link is full.

    Parameters
    ----------
    sources, link_pps, mean_off_s, mean_size_pkts
        N, C, I and B, as in :func:`.fair_send_rate_pps`.
    loss_ratio
        p, the share of sent packets that are retransmitted, from 0 to below 1; 0 if packets are
        lost before the link and use no capacity. All arguments are broadcast.

    Returns
    -------
    ndarray
        Packets/s, of the broadcast shape; ``inf`` up to the threshold, N B / (C (1 - p)) <= I,
        where there is no bound.

    Raises
    ------
    DomainError
        An argument outside its domain.

    Notes
    -----
    Equation (3) of section 10: the goodput is (1 - p) A, with the send rate A of equation (2). A
    cycle of a user (ON and OFF time) cannot be shorter than the time in which the link sends one
    file to every user. Therefore, with p = 0 the result is an upper bound of the goodput, however
    the users share the link. With p above 0 the result is lower. If packets are lost at the link's
    own buffer, they use no capacity, and the result for p above 0 is not an upper bound.
    """
    sent = fair_send_rate_pps(
        sources=sources,
        link_pps=link_pps,
        mean_off_s=mean_off_s,
        mean_size_pkts=mean_size_pkts,
        loss_ratio=loss_ratio,
    )
    return np.asarray(sent * (1 - to_ratio_array("loss_ratio", loss_ratio)))
