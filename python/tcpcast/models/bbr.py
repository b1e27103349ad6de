"""A bound on the rate of BBR, version 1, from public analyses of it.

- Random loss. "The maximum possible throughput is the link rate times fraction delivered": C (1-p)
  (Cardwell, Cheng, Gunn, Hassas Yeganeh, Jacobson: "BBR: congestion-based congestion control",
  CACM 60(2), 2017), where lost packets take time on the link: losses before its queue leave
  room. BBR reads no loss, but its estimate of the bandwidth is a windowed maximum that
  it renews by sending 1.25 times as much for a round trip in eight. Renewed it is only while
  1.25 (1 - p) >= 1: up to p = 1 - 1/1.25 = 0.2 (N. Cardwell on the list bbr-dev).
- Several flows of BBR. Each takes the others' pauses for bandwidth; what stops them is the cap of
  2 BDP in flight, so that a queue of one BDP stands, and where the buffer is smaller packets are
  lost beside those of p (Hock, Bless, Zitterbart: "Experimental evaluation of BBR congestion
  control", ICNP 2017).
- Beside loss-based flows the same cap decides: BBR's share of the link does not depend on how many
  they are (Ware, Mukerjee, Seshan, Sherry: "Modeling BBR's interactions with loss-based congestion
  control", IMC 2019).

It is a bound on the mean of long flows. It knows no start, no time with four packets in flight to
measure the RTT (some 2 % of the time), no different round trips, no policer; later versions of BBR
read losses and are not meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tcpcast.errors import DomainError
from tcpcast.models.domain import positive, windows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

PROBE_GAIN = 1.25
"""How much more than its estimate BBR sends to find more bandwidth."""
TOLERATED_LOSS_RATIO = 1 - 1 / PROBE_GAIN
"""The largest loss at which probing still renews the estimate."""
LEAST_WINDOW_PKTS = 4
"""What stays in flight while BBR measures the RTT."""

BOTTLENECK, SHALLOW_BUFFER = "bottleneck", "shallow buffer"
COMPETITION, COLLAPSE = "loss-based competition", "collapse"


@dataclass(frozen=True, slots=True, kw_only=True)
class BbrBound:
    """What BBR can reach; arrays of the broadcast shape.

    Attributes
    ----------
    rate_pps
        Bound on what one flow delivers, packets/s. 0 in a collapse: no rate is kept up. That is
        what the analysis says in the long run, and less than measured just above 20 %.
    share
        Share of the link of all flows of BBR together, before loss.
    probe_factor
        1.25 (1 - p): below 1 the estimate shrinks by it at each probe, of eight round trips.
    standing_queue_pkts
        Queue that the flows keep: 0 for one alone, up to a BDP for several, a full buffer beside
        loss-based flows.
    regime
        ``bottleneck``; ``shallow buffer`` where several flows lose packets beside those of p;
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
    beside_loss_based: bool = False,
) -> BbrBound:
    """Return the bound for ``flows`` equal flows of BBR on one bottleneck.

    Parameters
    ----------
    bottleneck_pps
        C in packets/s, above 0.
    rtt_s
        RTT without queue in seconds, above 0.
    loss_ratio
        p of the path itself, packets lost per packet sent, at least 0 and below 1.
    buffer_pkts
        Buffer of the bottleneck in packets, at least 1; ``inf`` for one that never fills.
    flows
        N, flows of BBR, at least 1. All broadcast against each other.
    beside_loss_based
        One or more flows of Reno or CUBIC share the link; the buffer must then be finite and more
        than a BDP, as they fill it.

    Raises
    ------
    DomainError
        An argument outside its domain.
    """
    capacity, rtt = positive("bottleneck_pps", bottleneck_pps), positive("rtt_s", rtt_s)
    loss = _losses(loss_ratio)
    buffer, count = windows("buffer_pkts", buffer_pkts), windows("flows", flows)
    if not np.all(np.isfinite(count)):
        raise DomainError("flows must be finite")
    pipe = capacity * rtt
    several = count > 1
    if beside_loss_based:
        share = _share_beside_loss_based(pipe, buffer, count)
        queue = buffer
    else:
        share = np.ones(())
        queue = np.where(several, np.minimum(pipe, buffer), 0.0)
    factor = PROBE_GAIN * (1 - loss)
    # Not through the factor, which rounding may put below 1 at just 0.2.
    collapsed = loss > TOLERATED_LOSS_RATIO
    shallow = several & (buffer < pipe) & (not beside_loss_based)
    rate = np.where(collapsed, 0.0, capacity * (1 - loss) * share / count)
    usual = COMPETITION if beside_loss_based else BOTTLENECK
    regime = np.where(collapsed, COLLAPSE, np.where(shallow, SHALLOW_BUFFER, usual))
    rate, share, factor, queue, _ = np.broadcast_arrays(rate, share, factor, queue, shallow)
    return BbrBound(
        rate_pps=rate,
        share=share,
        probe_factor=factor,
        standing_queue_pkts=queue,
        regime=np.broadcast_to(regime, rate.shape),
    )


def _share_beside_loss_based(pipe: Floats, buffer: Floats, count: Floats) -> Floats:
    """Return the share at which BBR's data in flight meet their cap.

    Let the others hold the share x of a full buffer of q packets and of the pipe's B.
    BBR has (1 - x)(q + B) in flight. While it measures the RTT it finds x q + 4 N packets queued;
    the cap is 2 (1 - x)(x q + 4 N + B). The two meet at x = 1/2 - B/(2 q) - 4 N/q.
    """
    if not np.all(np.isfinite(buffer) & (buffer > pipe)):
        raise DomainError(
            "buffer_pkts must be finite and above bottleneck_pps rtt_s with loss-based flows on "
            "the link: the analysis is for a buffer that they fill"
        )
    others = 0.5 - pipe / (2 * buffer) - LEAST_WINDOW_PKTS * count / buffer
    return np.asarray(1 - np.maximum(others, 0.0))


def _losses(values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if not np.all((array >= 0) & (array < 1)):
        raise DomainError("loss_ratio must be at least 0 and below 1")
    return array
