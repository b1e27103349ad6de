"""Convert queue disciplines to the simulator's configuration, and determine which links mark."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, assert_never

from tcpcast.scenario.aqm import ManagedQueue
from tcpcast.scenario.link import Link
from tcpcast.scenario.queue import FairQueue, Red
from tcpcast.scenario.rate import OpportunityRate, TokenBucket, WifiRate

if TYPE_CHECKING:
    from tcpcast.engines.packet.config_types import Choice, Config
    from tcpcast.scenario import Scenario
    from tcpcast.scenario.return_path import ReturnLink

DROP_POLICIES = {
    "arriving": "arriving",
    "longest": "longest-tail",
    "longest-head": "longest-head",
}
"""Drop policies of a scenario's fair queue."""


MAX_QUEUE_S = 1e8
MIN_UNLIMITED_PKTS = 10**7
"""Buffers below this number of packets are limited by ``MAX_QUEUE_S``. Larger buffers need no
limit: memory then limits the queue before the simulator's clock ends."""


def buffer_capacity(packets: float, rate_bps: float, packet_bytes: int) -> int | None:
    """Return the capacity of a buffer in packets, None if unlimited.

    At very low rates it is limited to the packets that the link transmits in ``MAX_QUEUE_S``:
    the simulator's clock, in ns, ends after 292 years.
    """
    transmitted = MAX_QUEUE_S * rate_bps / (8 * packet_bytes)
    if transmitted < MIN_UNLIMITED_PKTS:
        packets = min(packets, max(1.0, transmitted))
    return None if math.isinf(packets) else math.floor(packets)


def may_mark_packets(scenario: Scenario, link: Link | ReturnLink) -> bool:
    """Return True if a link may mark packets of the scenario."""
    ecn = getattr(link.queue, "ecn", False)  # None, the default of RED, marks
    return ecn is not False and any(bool(group.tcp.ecn) for group in scenario.populations)


def discipline_config(scenario: Scenario, link: Link | ReturnLink) -> Choice:
    """Return the discipline of a queue of packets of any length."""
    queue = link.queue
    match queue:
        case "droptail":
            return "drop-tail"
        case ManagedQueue():
            return queue.simulator_config(scenario.network.packet_bytes)
        case FairQueue():
            drawn = scenario.has_loss_feedback and queue.drop != "arriving"
            return {
                "drr": {
                    # A quantum of one packet is round robin per packet.
                    "quantum_bytes": queue.quantum or scenario.network.packet_bytes,
                    "buffers": "per-flow" if queue.buffers == "individual" else "shared",
                    "drop": DROP_POLICIES[queue.drop],
                    "ties": queue.ties or ("random" if drawn else "latest"),
                    "head_of_line": (queue.head_of_line or "in buffer").replace(" ", "-"),
                }
            }
        case Red():
            assert isinstance(link, Link)  # a return link has no RED
            red = scenario.network.red_parameters(link)
            if red is None:
                raise TypeError(f"the link's queue is {link.queue}")
            return {
                "red": {
                    "min_threshold": red.min_threshold_pkts,
                    "max_threshold": red.max_threshold_pkts,
                    "max_probability": red.max_probability,
                    "weight": red.weight,
                    "gentle": red.gentle,
                    "adaptive": red.adaptive,
                    "rules": {"linux": {"packet_bytes": scenario.network.packet_bytes}}
                    if red.rules == "linux"
                    else "ns2",
                    "packets_per_second": red.packets_per_second,
                    "ecn": may_mark_packets(scenario, link),
                }
            }
        case _:
            assert_never(queue)


def rate_config(link: Link | ReturnLink) -> Config:
    """Return the rate of a transmitter: constant, a token bucket, a trace, or Wi-Fi."""
    if isinstance(link.varying, OpportunityRate):
        return {"opportunities": list(link.varying.opportunities.pairs)}
    if isinstance(link.varying, TokenBucket):
        return {"bucket": token_bucket_config(link.varying)}
    if isinstance(link.varying, WifiRate):
        return {
            "wifi": {
                "rate_bps": finite_bps(link.varying.wifi),
                "error": link.varying.error,
                "max_frames": link.varying.frames,
                "max_airtime_ns": round(link.varying.airtime * 1e9),
            }
        }
    return {"constant": None if math.isinf(link.rate_bps) else finite_bps(link.rate_bps)}


def token_bucket_config(bucket: TokenBucket) -> Config:
    """Return rate and depth of a token bucket."""
    return {
        "rate_bps": finite_bps(bucket.bucket),
        "burst_bytes": bucket.burst,
        "overhead_bytes": bucket.overhead,
    }


def finite_bps(rate: float) -> int:
    """Return a limited rate in whole bit/s."""
    return max(1, round(rate))
