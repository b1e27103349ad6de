"""Mean values of many HTTP users on one access link: section 10 of INRIA report 4154.

Baccelli, Hong, Liu: "Fixed Point Methods for the Simulation of the Sharing of a Local Loop by a
Large Number of Interacting TCP Connections", 2001. Each of N users alternately thinks, for I
seconds on average, and fetches a file of B packets on average over a link of C packets/s.

``restarting_goodput_pps`` is equation (1), ``fair_send_rate_pps`` (2), ``overload_goodput_pps``
(3), and ``threshold_sources`` the number of users from which the link is full.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tcpcast.array_types import Floats
from tcpcast.models.domain import to_checked_arrays, to_positive_array, to_ratio_array
from tcpcast.process.errors import DomainError


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
    not count them in p (docs/background/fixed-point.md).
    """
    off, size, count, link = to_checked_arrays(
        mean_off_s=mean_off_s, mean_size_pkts=mean_size_pkts, sources=sources, link_pps=link_pps
    )
    sent = size / (1 - to_ratio_array("loss_ratio", loss_ratio))
    on_s = np.maximum(count * sent / link - off, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(sent / on_s)


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
            "loss_ratio, timeout_ratio and idle_restart_ratio are all 0, so the square-root law "
            "gives an infinite rate; use at least one ratio above 0"
        )
    return np.asarray(np.sqrt(1.5 / ratio) / rtt)


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
