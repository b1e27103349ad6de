"""Equation (2): users share a full link equally."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tcpcast.array_types import Floats
from tcpcast.models.domain import to_checked_arrays, to_ratio_array


def mean_user_rate_pps(
    *,
    send_rate_pps: ArrayLike,
    mean_off_s: ArrayLike,
    mean_size_pkts: ArrayLike,
    loss_ratio: ArrayLike = 0.0,
) -> Floats:
    """Return a = A T / (I + T) with T = B / (A (1 - p)): a user's mean rate, including think times.

    Parameters
    ----------
    send_rate_pps
        A, rate at which data are sent to a user while on, packets/s, above 0.
    mean_off_s
        I, mean think time in seconds, above 0.
    mean_size_pkts
        B, mean file size in packets, above 0.
    loss_ratio
        p, the share of sent packets that are retransmitted, from 0 to below 1. All arguments are
        broadcast.

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
    Second half of equation (2) of section 10.
    """
    rate, off, size = to_checked_arrays(
        send_rate_pps=send_rate_pps, mean_off_s=mean_off_s, mean_size_pkts=mean_size_pkts
    )
    p = to_ratio_array("loss_ratio", loss_ratio)
    on_s = size / (rate * (1 - p))
    return np.asarray(rate * on_s / (off + on_s))


def fair_send_rate_pps(
    *,
    sources: ArrayLike,
    link_pps: ArrayLike,
    mean_off_s: ArrayLike,
    mean_size_pkts: ArrayLike,
    loss_ratio: ArrayLike = 0.0,
) -> Floats:
    """Return the A that solves N a = C: the send rate per user while on that fills the link.

    With a of :func:`mean_user_rate_pps`, the solution is A = S / (N S / C - I), where
    S = B / (1 - p) is the number of packets sent per file.

    Parameters
    ----------
    sources
        N, number of users, above 0.
    link_pps
        C, capacity of the shared link, packets/s, above 0.
    mean_off_s, mean_size_pkts, loss_ratio
        As in :func:`mean_user_rate_pps`. All arguments are broadcast.

    Returns
    -------
    ndarray
        Packets/s, of the broadcast shape; ``inf`` if N users cannot fill the link with any A,
        N S / C <= I, so that something else limits them.

    Raises
    ------
    DomainError
        An argument outside its domain.

    Notes
    -----
    Equation (2) of section 10. It assumes that all sent packets pass the link, so p counts only
    packets lost behind the link. Packets dropped by the link's own full buffer use no capacity: do
    not count them in p (docs/background/local-loop.md).
    """
    off, size, count, link = to_checked_arrays(
        mean_off_s=mean_off_s, mean_size_pkts=mean_size_pkts, sources=sources, link_pps=link_pps
    )
    sent = size / (1 - to_ratio_array("loss_ratio", loss_ratio))
    on_s = np.maximum(count * sent / link - off, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(sent / on_s)
