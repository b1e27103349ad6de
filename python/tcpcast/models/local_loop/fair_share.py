"""Equation (2): users share the link equally, and together fill it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast.models.domain import positive, ratios

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def accepted_rate_pps(
    *,
    send_rate_pps: ArrayLike,
    mean_off_s: ArrayLike,
    mean_size_pkts: ArrayLike,
    loss_ratio: ArrayLike = 0.0,
) -> NDArray[np.float64]:
    """Return a = A T / (I + T) with T = B / (A (1 - p)): a user's mean rate, think times included.

    Parameters
    ----------
    send_rate_pps
        A, what a user is sent while on, packets/s, above 0.
    mean_off_s
        I, mean think time in seconds, above 0.
    mean_size_pkts
        B, mean file size in packets, above 0.
    loss_ratio
        p, the share of the packets sent that are retransmitted, from 0 to below 1. All
        broadcast against each other.

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
    Equation (2) of section 10, its second half.
    """
    rate, off = positive("send_rate_pps", send_rate_pps), positive("mean_off_s", mean_off_s)
    size, p = positive("mean_size_pkts", mean_size_pkts), ratios("loss_ratio", loss_ratio)
    on_s = size / (rate * (1 - p))
    return np.asarray(rate * on_s / (off + on_s))


def fair_send_rate_pps(
    *,
    sources: ArrayLike,
    link_pps: ArrayLike,
    mean_off_s: ArrayLike,
    mean_size_pkts: ArrayLike,
    loss_ratio: ArrayLike = 0.0,
) -> NDArray[np.float64]:
    """Return the A that solves N a = C: what each user is sent while on, so that all fill the link.

    With a of :func:`accepted_rate_pps` the solution is A = S / (N S / C - I), S = B / (1 - p)
    being what is sent for a file.

    Parameters
    ----------
    sources
        N, users, above 0.
    link_pps
        C, what the shared link carries, packets/s, above 0.
    mean_off_s, mean_size_pkts, loss_ratio
        As in :func:`accepted_rate_pps`. All broadcast against each other.

    Returns
    -------
    ndarray
        Packets/s, of the broadcast shape; ``inf`` where N users cannot fill the link whatever A,
        N S / C <= I, so that something else limits them.

    Raises
    ------
    DomainError
        An argument outside its domain.

    Notes
    -----
    Equation (2) of section 10. It has whatever is sent pass the link: p stands for packets that are
    lost behind it. Those that find its buffer full take nothing of C, and for them p is 0; see
    docs/background/local-loop.md.
    """
    off, p = positive("mean_off_s", mean_off_s), ratios("loss_ratio", loss_ratio)
    sent = positive("mean_size_pkts", mean_size_pkts) / (1 - p)
    cycle_s = positive("sources", sources) * sent / positive("link_pps", link_pps)
    on_s = np.maximum(cycle_s - off, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(sent / on_s)
