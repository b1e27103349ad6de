"""Reads the output of ``iperf3 -J`` as a test of a line."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.captures.iperf3_log import read_iperf3
from tcpcast.errors import CaptureError
from tcpcast.json_file import read_content
from tcpcast.measurements.line_test import DOWN, STACKS, UP, FlowGroup, LineTest

if TYPE_CHECKING:
    from pathlib import Path

_BITS = 8


def read_iperf3_test(path: Path) -> LineTest:
    """Return the test of a file; the host that wrote it is at home.

    Raises
    ------
    CaptureError
        The file is damaged, too large, or has no flow of TCP.
    """
    file = str(path)
    logged, warnings = read_iperf3(read_content(path).decode("utf-8", "replace").strip(), file)
    flows: dict[FlowGroup, list[float]] = {}
    rtts: dict[FlowGroup, list[float]] = {}
    notes = []
    for flow in logged:
        control = flow.control or "cubic"
        if control not in STACKS:
            notes.append(f"congestion control {control} is simulated as CUBIC")
        group = FlowGroup(UP if flow.is_measured_by_sender else DOWN, control, "BE")
        flows.setdefault(group, []).append(_BITS * flow.unique_bytes / flow.seconds)
        if flow.rtt_s > 0:
            rtts.setdefault(group, []).append(flow.rtt_s)
    seconds = max(flow.seconds for flow in logged)
    if not (0 < seconds < math.inf):
        raise CaptureError("the test has no duration; repeat it", file=file)
    smallest = [flow.rtt_min_s for flow in logged if flow.rtt_min_s > 0]
    return LineTest(
        "iperf3",
        "iperf3",
        seconds,
        flows,
        idle_rtt_s=min(smallest, default=math.nan),
        rtt_mean_s={group: math.fsum(each) / len(each) for group, each in rtts.items()},
        notes=[*dict.fromkeys(notes), *(each for each in warnings if "did not end" in each)],
    )
