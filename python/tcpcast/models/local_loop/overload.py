"""Equation (3): what users of an overloaded link get while on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast.models.domain import positive, ratios

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
    sources
        N, users, above 0.
    link_pps
        C, what the shared link carries, packets/s, above 0.
    mean_off_s
        I, mean think time in seconds, above 0.
    mean_size_pkts
        B, mean file size in packets, above 0.
    loss_ratio
        p, the share of the packets sent that have to be sent again, from 0 to below 1; 0 where
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
    Equation (3) of section 10. No user can be on for less time than the link needs for what all
    are sent, so with p = 0 it bounds the goodput of any sharing from above. With p above 0 it is
    lower, and no bound where packets are lost at the link's own buffer.
    """
    size, off = positive("mean_size_pkts", mean_size_pkts), positive("mean_off_s", mean_off_s)
    carried = positive("link_pps", link_pps) * (1 - ratios("loss_ratio", loss_ratio))
    on_s = np.maximum(positive("sources", sources) * size / carried - off, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(size / on_s)
