"""Upper bound of the rate of BBR, version 1, from published analyses.

- Random loss: "The maximum possible throughput is the link rate times fraction delivered", C (1-p)
  (Cardwell, Cheng, Gunn, Hassas Yeganeh, Jacobson: "BBR: congestion-based congestion control",
  CACM 60(2), 2017), if lost packets use the link; losses before its queue leave capacity. BBR does
  not respond to loss, but its bandwidth estimate is a windowed maximum, which it renews by sending
  1.25 times the estimate in one of eight RTTs. Renewal needs 1.25 (1 - p) >= 1, that is, p up to
  1 - 1/1.25 = 0.2 (N. Cardwell on the mailing list bbr-dev).
- Several BBR flows: each one measures the bandwidth that the others leave in their pauses. The
  flows then have the maximum of 2 BDP in flight, which leaves a standing queue of one BDP; with a
  smaller buffer, packets are lost in addition to p (Hock, Bless, Zitterbart: "Experimental
  evaluation of BBR congestion control", ICNP 2017).
- With loss-based flows, BBR is also limited by the maximum of 2 BDP in flight: BBR's share of the
  link does not depend on the number of loss-based flows (Ware, Mukerjee, Seshan, Sherry: "Modeling
  BBR's interactions with loss-based congestion control", IMC 2019).

It is an upper bound of the mean of long flows. It omits the start-up, the time with four packets in
flight to measure the RTT (about 2 %), different RTTs, and policers. It does not apply to later
versions of BBR, which respond to losses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tcpcast.array_types import Floats
from tcpcast.models.domain import (
    broadcast_arrays,
    to_checked_arrays,
    to_ratio_array,
    to_window_array,
)
from tcpcast.process.errors import DomainError

PROBE_GAIN = 1.25
"""Factor by which BBR exceeds its bandwidth estimate to probe for more."""
TOLERATED_LOSS_RATIO = 0.2
"""Largest loss at which probing renews the estimate: 1 - 1/1.25, which floats round to less."""
MIN_WINDOW_PKTS = 4
"""Packets in flight while BBR measures the RTT."""

BOTTLENECK_REGIME, SHALLOW_BUFFER_REGIME = "bottleneck", "shallow buffer"
COMPETITION_REGIME, COLLAPSE_REGIME = "loss-based competition", "collapse"


@dataclass(frozen=True, slots=True, kw_only=True)
class BbrBound:
    """Upper bound of the rate of BBR; arrays of the broadcast shape.

    Attributes
    ----------
    rate_pps
        Bound of the delivery rate of one flow, packets/s. 0 in a collapse, because no rate is
        sustained: the long-run result of the analysis, below measurements just above 20 % loss.
    share
        Share of the link of all BBR flows, before loss.
    probe_factor
        1.25 (1 - p): if it is below 1, the estimate shrinks by this factor at each probe, once per
        eight RTTs.
    standing_queue_pkts
        Standing queue of the flows in packets: 0 for one flow, up to a BDP for several, a full
        buffer with loss-based flows.
    regime
        ``bottleneck``; ``shallow buffer`` if several flows lose packets in addition to p;
        ``loss-based competition``; ``collapse``.
    """

    rate_pps: Floats
    share: Floats
    probe_factor: Floats
    standing_queue_pkts: Floats
    regime: NDArray[np.str_]


def bbr_bound(
    *,
    bottleneck_pps: ArrayLike,
    rtt_s: ArrayLike,
    loss_ratio: ArrayLike = 0.0,
    buffer_pkts: ArrayLike = np.inf,
    flows: ArrayLike = 1,
    with_loss_based_flows: bool = False,
) -> BbrBound:
    """Return the bound for ``flows`` equal BBR flows on one bottleneck.

    Parameters
    ----------
    bottleneck_pps
        C in packets/s, above 0.
    rtt_s
        RTT without queueing in seconds, above 0.
    loss_ratio
        p of the path itself, packets lost per packet sent, at least 0 and below 1.
    buffer_pkts
        Buffer of the bottleneck in packets, at least 1; ``inf`` for unlimited.
    flows
        N, number of BBR flows, at least 1. All arguments are broadcast.
    with_loss_based_flows
        Whether Reno or CUBIC flows share the link; the buffer must then be finite and larger than
        a BDP, because they fill it.

    Returns
    -------
    BbrBound
        Arrays of the broadcast shape.

    Raises
    ------
    DomainError
        An argument outside its domain.
    """
    capacity, rtt = to_checked_arrays(bottleneck_pps=bottleneck_pps, rtt_s=rtt_s)
    loss = to_ratio_array("loss_ratio", loss_ratio)
    buffer, count = to_window_array("buffer_pkts", buffer_pkts), to_window_array("flows", flows)
    if not np.all(np.isfinite(count)):
        raise DomainError("flows must be finite")
    pipe = capacity * rtt
    several = count > 1
    if with_loss_based_flows:
        # BBR's share at which its data in flight reach the maximum of 2 BDP. Let the other flows
        # have the share x of a full buffer of q packets and of the BDP B. BBR has (1 - x)(q + B) in
        # flight. While it measures the RTT, x q + 4 N packets are queued, and the maximum is 2 (1 -
        # x)(x q + 4 N + B). The data in flight reach this maximum at x = 1/2 - B/(2 q) - 4 N/q.
        if not np.all(np.isfinite(buffer) & (buffer > pipe)):
            raise DomainError(
                "buffer_pkts must be finite and greater than bottleneck_pps x rtt_s, because the "
                "analysis assumes that loss-based flows fill the buffer"
            )
        others = 0.5 - pipe / (2 * buffer) - MIN_WINDOW_PKTS * count / buffer
        share = np.asarray(1 - np.maximum(others, 0.0))
        queue = buffer
    else:
        share = np.ones(())
        queue = np.where(several, np.minimum(pipe, buffer), 0.0)
    factor = PROBE_GAIN * (1 - loss)
    # Compares p: probe_factor may be rounded below 1 at p = 0.2.
    collapsed = loss > TOLERATED_LOSS_RATIO
    shallow = several & (buffer < pipe) & (not with_loss_based_flows)
    rate = np.where(collapsed, 0.0, capacity * (1 - loss) * share / count)
    usual = COMPETITION_REGIME if with_loss_based_flows else BOTTLENECK_REGIME
    regime = np.where(collapsed, COLLAPSE_REGIME, np.where(shallow, SHALLOW_BUFFER_REGIME, usual))
    return BbrBound(
        **broadcast_arrays(
            rate_pps=rate,
            share=share,
            probe_factor=factor,
            standing_queue_pkts=queue,
            regime=regime,
        )
    )
