"""Latency of short transfers given their number of losses (Ayesta and Avrachenkov).

The window grows as a fluid. The first of k losses occurs after y of n packets, and costs a timeout
or a fast recovery. The remaining packets are a transfer with k - 1 losses, which starts with the
window after the timeout or recovery. Sizes are in packets of MSS, windows in packets per RTT. Where
the printed recursion contradicts its text, the text is used: timeouts cost RTO, not RTT; the three
integrals meet at n - dup_t; the data before a loss among the last packets take L_0(y).

Optional additions to the paper: the handshake, the delayed-ACK timer, the doubling of the RTO, and
a shared recovery for the losses of one flight.
"""

from tcpcast.models.short.losses import (
    LossDistribution,
    first_negligible_loss_count,
    loss_probability,
)
from tcpcast.models.short.lossless_latency import lossless_latency_s
from tcpcast.models.short.recursion import (
    conditional_latency_s,
    expected_latency_s,
)
from tcpcast.models.short.window_growth import (
    ShortTransfer,
    fluid_timeout_pkts,
    min_recoverable_pkts,
    timeout_packets,
)

__all__ = [
    "LossDistribution",
    "ShortTransfer",
    "conditional_latency_s",
    "expected_latency_s",
    "first_negligible_loss_count",
    "fluid_timeout_pkts",
    "loss_probability",
    "lossless_latency_s",
    "min_recoverable_pkts",
    "timeout_packets",
]
