"""Number of users from which a link is full if files take no time."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tcpcast.array_types import Floats
from tcpcast.models.domain import to_checked_arrays, to_positive_array


def threshold_sources(
    *, link_pps: ArrayLike, mean_off_s: ArrayLike, mean_size_pkts: ArrayLike
) -> Floats:
    """Return N* = C I / B, the number of users that would fill the link if files took no time.

    Parameters
    ----------
    link_pps
        C, capacity of the shared link, packets/s, above 0.
    mean_off_s
        I, mean think time in seconds, above 0.
    mean_size_pkts
        B, mean file size in packets, above 0. All arguments are broadcast.

    Returns
    -------
    ndarray
        Number of users, not rounded, of the broadcast shape.

    Raises
    ------
    DomainError
        An argument outside its domain.

    Notes
    -----
    Section 7.2, after Table 5. Because files do take time, slightly more than N* users still leave
    capacity, and queues grow before N*: it is the transition between the two regimes.
    """
    link, off, size = to_checked_arrays(
        link_pps=link_pps, mean_off_s=mean_off_s, mean_size_pkts=mean_size_pkts
    )
    return np.asarray(link * off / size)


def open_loop_load(
    *,
    sources: ArrayLike,
    link_pps: ArrayLike,
    mean_off_s: ArrayLike,
    mean_size_pkts: ArrayLike,
) -> Floats:
    """Return N B / (C I), the load that N users would offer if files took no time.

    Parameters
    ----------
    sources
        N, number of users, above 0.
    link_pps, mean_off_s, mean_size_pkts
        As in :func:`threshold_sources`. All arguments are broadcast.

    Returns
    -------
    ndarray
        N / N*, of the broadcast shape: above 1 the link is overloaded.

    Raises
    ------
    DomainError
        An argument outside its domain.
    """
    threshold = threshold_sources(
        link_pps=link_pps, mean_off_s=mean_off_s, mean_size_pkts=mean_size_pkts
    )
    return np.asarray(to_positive_array("sources", sources) / threshold)
