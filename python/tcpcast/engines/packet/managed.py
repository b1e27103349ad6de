"""What the simulator is told of queues that may drop or mark what they hold, and of varying rates.

A link whose rate is not constant has its queue, whichever it is, among them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tcpcast.scenario.aqm import Codel, FqCodel, ManagedQueue, Pie
from tcpcast.scenario.queue import FairQueue, Red
from tcpcast.scenario.rate import OpportunityRate

if TYPE_CHECKING:
    from tcpcast.scenario import Scenario
    from tcpcast.scenario.link import Link
    from tcpcast.scenario.return_path import ReturnLink

MARKS_BELOW = 0.1
"""The drop probability up to which PIE marks: RFC 8033, section 5.1."""


def uses_ecn(scenario: Scenario) -> bool:
    """Say whether packets of any class are ECN-capable."""
    return any(bool(group.tcp.ecn) for group in scenario.populations)


def marks(scenario: Scenario, link: Link | ReturnLink) -> bool:
    """Say whether a link may mark packets of the scenario."""
    queue = link.queue
    if isinstance(queue, Red):
        return queue.ecn is not False and uses_ecn(scenario)
    return isinstance(queue, Codel | Pie) and queue.ecn and uses_ecn(scenario)


def managed(scenario: Scenario, link: Link | ReturnLink) -> dict[str, Any] | None:
    """Return a link's discipline whose departures are not known on arrival, or None.

    RED is among them where it marks, and any discipline where the rate is not constant.
    """
    queue = link.queue
    if link.polices:
        told: dict[str, Any] = {"kind": "policer"}
    elif isinstance(queue, ManagedQueue):
        told = _parameters(queue)
    elif isinstance(queue, Red) and (marks(scenario, link) or link.varying is not None):
        told = {"kind": "red", "ecn": marks(scenario, link)}
    elif link.varying is not None:
        told = {"kind": "fq" if isinstance(queue, FairQueue) else "droptail"}
    else:
        return None
    return {**told, **_rate(link), "packet_bytes": scenario.network.packet_bytes}


def _rate(link: Link | ReturnLink) -> dict[str, Any]:
    if isinstance(link.varying, OpportunityRate):
        return {"rate_bps": None, "opportunities": list(link.varying.opportunities.pairs)}
    rate = None if math.isinf(link.rate_bps) else max(1, round(link.rate_bps))
    burst = None if link.varying is None else link.varying.burst
    return {"rate_bps": rate, "burst_bytes": burst}


def _parameters(queue: ManagedQueue) -> dict[str, Any]:
    if isinstance(queue, Codel):
        threshold = queue.ce_threshold
        codel: dict[str, Any] = {
            "kind": queue.kind,
            "target_ns": round(queue.target * 1e9),
            "interval_ns": round(queue.interval * 1e9),
            "ecn": queue.ecn,
            "ce_threshold_ns": None if threshold is None else round(threshold * 1e9),
            "linux": queue.rules == "linux",
        }
        if isinstance(queue, FqCodel):
            codel |= {"quantum_bytes": queue.quantum, "queues": queue.flows}
        return codel
    if isinstance(queue, Pie):
        return {
            "kind": "pie",
            "target_ns": round(queue.target * 1e9),
            "update_ns": round(queue.update * 1e9),
            "burst_ns": round(queue.burst * 1e9),
            "alpha": queue.alpha,
            "beta": queue.beta,
            "ecn_below": MARKS_BELOW if queue.ecn else None,
            "linux": queue.rules == "linux",
        }
    return {"kind": queue.kind}
