"""What the first scenario of a process builds, built once for all workers that are forked from it.

Imported by that process alone, whose workers would each take a third of a second for it.
"""

from __future__ import annotations

import tcpcast
from tcpcast.scenario import Scenario

_ANY = {
    "network": {"rtt": "50ms", "bottleneck": {"rate": "10mbit", "buffer": "50pkt", "loss": "1%"}},
    "traffic": {"kind": "bulk", "flows": 1},
    "run": {"duration": "2s", "warmup": "1s"},
}
"""Any scenario: its classes build what reads them at their first use."""

BUILT = (
    Scenario.from_dict(_ANY)
    .with_changes({"network.rtt": "20ms", "traffic.flows": 2, "run.seed": 2})
    .digest(),
    tcpcast.__version__,
)
"""What was asked of them."""
