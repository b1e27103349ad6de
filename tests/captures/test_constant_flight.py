"""Senders whose data in flight do not grow, although the path is free."""

from pathlib import Path

import pytest
from replays import simulated
from tcpcast.captures.advice import limit_of_each_direction


@pytest.mark.parametrize("stack", ["linux-bbr", "linux-cubic"])
def test_full_send_buffer_is_named(stack: str, tmp_path: Path) -> None:
    base = {
        "network": {"rtt": "100ms", "bottleneck": {"rate": "50mbit"}},
        "traffic": {"kind": "bulk", "flows": 1},
        "tcp": {"stack": stack, "socket_buffers": {"send": "128KiB", "receive": "8MiB"}},
        "run": {"duration": "12s", "seed": 1},
    }
    _, _, capture = simulated(base, tmp_path, {})
    found = limit_of_each_direction(capture.connections)[0]
    assert (found.limit, "raise the send buffer" in found.remedy.action) == ("send_buffer", True)
