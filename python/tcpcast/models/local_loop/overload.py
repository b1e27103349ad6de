"""Equation (3): what users of an overloaded link get while on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast.models.domain import ratios
from tcpcast.models.local_loop.fair_share import fair_send_rate_pps

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def overload_goodput_pps(
    *,
    sources: ArrayLike,
    link_pps: ArrayLike,
    mean_off_s: ArrayLike,
    mean_size_pkts: ArrayLike,
    loss_ratio: ArrayLike = 0.0,
) -> NDArray[np.float64]:
    """Return B / (N B / (C (1 - p)) - I), the goodput of a user while on where the link is full.

    Parameters
    ----------
    sources, link_pps, mean_off_s, mean_size_pkts
        N, C, I and B, as in :func:`.fair_send_rate_pps`.
    loss_ratio
        p, the share of the packets sent that are retransmitted, from 0 to below 1; 0 where
        packets are lost before the link and take nothing of it. All broadcast against each other.

    Returns
    -------
    ndarray
        Packets/s, of the broadcast shape; ``inf`` up to the threshold, N B / (C (1 - p)) <= I,
        where the bound says nothing.

    Raises
    ------
    DomainError
        An argument outside its domain.

    Notes
    -----
    Equation (3) of section 10: of the A of equation (2), the share 1 - p arrives.
    No user can be on for less time than the link needs for what all are sent, so with p = 0 it
    bounds the goodput of any sharing from above. With p above 0 it is lower, and no bound where
    packets are lost at the link's own buffer.
    """
    sent = fair_send_rate_pps(
        sources=sources,
        link_pps=link_pps,
        mean_off_s=mean_off_s,
        mean_size_pkts=mean_size_pkts,
        loss_ratio=loss_ratio,
    )
    return np.asarray(sent * (1 - ratios("loss_ratio", loss_ratio)))
