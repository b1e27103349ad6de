"""Latency of short transfers given their number of losses (Ayesta and Avrachenkov).

The window grows as a fluid; the first of k losses ends a stretch of y packets, costs a timeout or
a fast recovery, and the rest is a transfer with k - 1 losses from the window it left. Units of the
paper's quantities: packets of MSS, windows in packets a round trip. Where the printed recursion
contradicts its text it is read as its text says: the timeouts cost RTO, not RTT; the three
integrals meet at n - dup_t; what precedes a loss among the last packets is L_0(y).

Not in the paper, and off unless asked for: the handshake, the delayed-ack timer, the doubling of
the RTO, losses of one flight that share its recovery.
"""

from tcpcast.models.short.growth import (
    ShortTransfer,
    least_recoverable_pkts,
    timeout_packets,
    timeout_volume_pkts,
)
from tcpcast.models.short.losses import (
    LossDistribution,
    loss_probability,
    losses_considered,
)
from tcpcast.models.short.recursion import (
    conditional_latency_s,
    expected_latency_s,
    relative_reduction,
)
from tcpcast.models.short.waits import lossless_latency_s

__all__ = [
    "LossDistribution",
    "ShortTransfer",
    "conditional_latency_s",
    "expected_latency_s",
    "least_recoverable_pkts",
    "loss_probability",
    "losses_considered",
    "lossless_latency_s",
    "relative_reduction",
    "timeout_packets",
    "timeout_volume_pkts",
]
