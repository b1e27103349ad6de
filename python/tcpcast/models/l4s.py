"""TCP Prague beside classic TCP: windows at given marks, and shares behind a coupled queue.

A mark reduces Prague's window by half the share of marked packets, p, at most once per round trip,
and the window grows by one packet per round trip
(draft-briscoe-iccrg-prague-congestion-control). Balanced, this gives p W = 2 if each round trip has
a mark (RFC 9332, appendix A.1). Marks that hit packets independently, as those of PI2, leave a gap
of 1/p packets on average between the end of a round and the next mark, in which the window grows:
W + 1/p packets per reduction instead of W, so p W = 2 (1 + 1/(p W)), and p W = 1 + sqrt(3).

Round trips below 25 ms count as 25 ms: the window grows by (RTT / 25 ms)^2 packets per round trip
and is reduced at most once per 25 ms, so that the rate is that of a flow with an RTT of 25 ms.

A step marks all packets above a threshold. If a flow crosses it for a whole round trip after each
p W / 2 rounds of growth (DCTCP, Alizadeh et al. 2010, section 3.3), p = sqrt(2 / W); if the flow is
paced so evenly that it crosses it with two packets per round trip, p = 2 / W.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from tcpcast.array_types import Floats
from tcpcast.models.domain import to_checked_arrays, to_positive_array
from tcpcast.process.errors import DomainError

PRAGUE_TARGET_RTT_S = 0.025
"""RTT that Prague emulates if its own is shorter (``prague_rtt_target``)."""

MARKS_PER_ROUND = 1 + math.sqrt(3)
"""p W of Prague at independent marks."""

MARKS_PER_ROUND_AT_LEAST = 2.0
"""p W of Prague if each round trip has a mark."""

RENO_CONSTANT = math.sqrt(1.5)
"""W sqrt(p) of Reno, and of CUBIC in its Reno-friendly region (RFC 9438, section 4.3)."""


def prague_rate_pps(
    *,
    rtt_s: ArrayLike,
    mark_ratio: ArrayLike,
    target_rtt_s: ArrayLike = PRAGUE_TARGET_RTT_S,
) -> Floats:
    """Return the rate of a Prague flow at independent marks.

    Parameters
    ----------
    rtt_s
        RTT in seconds, above 0.
    mark_ratio
        p, share of marked packets, above 0 and below 1.
    target_rtt_s
        Smallest RTT that counts, above 0; a tiny one for the Prague of August 2020. All arguments
        are broadcast.

    Returns
    -------
    ndarray
        Packets/s, of the broadcast shape. Against packet simulation behind DualPI2, it is right
        within 20 % for RTTs up to 25 ms, and up to 35 % too low for 100 ms, over which the
        probability of PI2 changes.

    Raises
    ------
    DomainError
        An argument outside its domain.
    """
    rtt, p = to_checked_arrays(rtt_s=rtt_s, loss_ratio=mark_ratio)
    target = to_positive_array("target_rtt_s", target_rtt_s)
    return np.asarray(MARKS_PER_ROUND / (p * np.maximum(rtt, target)))


def prague_step_mark_ratio_bounds(*, window_pkts: ArrayLike) -> tuple[Floats, Floats]:
    """Return the smallest and the largest share of marked packets of a Prague flow alone at a step.

    Parameters
    ----------
    window_pkts
        Window with which the flow fills the link, above 2, packets.

    Returns
    -------
    tuple of ndarray
        2/W of an evenly paced flow, and sqrt(2/W) of one that crosses the threshold for a round.

    Raises
    ------
    DomainError
        A window of 2 packets or less.
    """
    window = to_positive_array("window_pkts", window_pkts)
    if not (window > MARKS_PER_ROUND_AT_LEAST).all():
        raise DomainError("window_pkts must be above 2")
    low = MARKS_PER_ROUND_AT_LEAST / window
    return np.asarray(low), np.asarray(np.sqrt(low))


def coupled_share(
    *,
    scalable_rtt_s: ArrayLike,
    classic_rtt_s: ArrayLike,
    coupling: ArrayLike = 2.0,
    scalable_flows: ArrayLike = 1,
    classic_flows: ArrayLike = 1,
    target_rtt_s: ArrayLike = PRAGUE_TARGET_RTT_S,
) -> Floats:
    """Return the share of Prague flows behind a dual queue with coupled marks (RFC 9332).

    The classic queue drops or marks with p^2, and the coupling marks Prague's packets with k p.

    Parameters
    ----------
    scalable_rtt_s, classic_rtt_s
        RTTs with the queueing delay of the own queue in seconds, above 0: with defaults about 0.5
        ms for Prague, and 15 ms for classic flows.
    coupling
        k, above 0.
    scalable_flows, classic_flows
        Numbers of flows, above 0.
    target_rtt_s
        As in :func:`prague_rate_pps`. All arguments are broadcast.

    Returns
    -------
    ndarray
        Share of Prague flows in the rate, from 0 to 1, of the broadcast shape. Against packet
        simulation, it is right within 10 points for RTTs of Prague up to 25 ms, and within 15
        points for 100 ms, if classic flows are Reno or CUBIC in its Reno-friendly region.

    Raises
    ------
    DomainError
        An argument outside its domain.
    """
    own = to_positive_array("scalable_rtt_s", scalable_rtt_s)
    other = to_positive_array("classic_rtt_s", classic_rtt_s)
    k = to_positive_array("coupling", coupling)
    prague = MARKS_PER_ROUND / (
        k * np.maximum(own, to_positive_array("target_rtt_s", target_rtt_s))
    )
    prague = prague * to_positive_array("scalable_flows", scalable_flows)
    classic = to_positive_array("classic_flows", classic_flows) * RENO_CONSTANT / other
    return np.asarray(prague / (prague + classic))
