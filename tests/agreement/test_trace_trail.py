"""Points of a time-sequence plot: even thinning, retransmissions last, on request only."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import tcpcast
from tcpcast.errors import CaptureError

DATA = Path(__file__).parents[2] / "crates" / "trace" / "tests" / "data"
TRANSFER = gzip.decompress((DATA / "transfer.pcap.gz").read_bytes())
"""240 packets of one transfer: 136 of data, 9 of them retransmitted."""
COLUMNS = ["direction", "time", "kind", "start_bytes", "end_bytes"]
OTHERS = {"data", "ack", "window", "sacked"}


def test_trail_is_empty_by_default() -> None:
    trail = tcpcast.trace(TRANSFER).trail
    assert list(trail) == COLUMNS
    assert {column.size for column in trail.values()} == {0}


def test_trail_contains_all_segments_if_the_limit_allows() -> None:
    capture = tcpcast.trace(TRANSFER, trail_points=10_000)
    trail = capture.trail
    assert list(trail) == COLUMNS
    is_retransmission = ~np.isin(trail["kind"], list(OTHERS))
    assert is_retransmission.sum() == capture.connections["retransmissions"].sum() == 9
    assert sorted(trail["time"][is_retransmission]) == sorted(capture.retransmissions["time"])
    assert set(trail["kind"][is_retransmission]) == set(capture.retransmissions["cause"])
    data = trail["kind"] == "data"
    assert data.sum() == 136 - 9
    # First transmissions cover the stream without a gap.
    assert trail["start_bytes"][data][1:].tolist() == trail["end_bytes"][data][:-1].tolist()
    assert trail["end_bytes"][data][-1] == capture.connections["unique_bytes"][0]
    acks = trail["end_bytes"][trail["kind"] == "ack"]
    assert (np.diff(acks) > 0).all()
    assert acks[-1] <= capture.connections["unique_bytes"][0] + 1


@pytest.mark.parametrize("points", [20, 60, 150])
def test_retransmissions_are_thinned_last(points: int) -> None:
    whole = tcpcast.trace(TRANSFER, trail_points=10_000).trail
    trail = tcpcast.trace(TRANSFER, trail_points=points).trail
    assert points / 2 - 5 <= trail["time"].size <= points
    assert (~np.isin(trail["kind"], list(OTHERS))).sum() == 9
    for kind in OTHERS:
        every, thinned = (table["time"][table["kind"] == kind] for table in (whole, trail))
        stride = (
            max(1, 1 << int(np.ceil(np.log2(every.size / thinned.size)))) if thinned.size else 0
        )
        assert thinned.size == 0 or every[::stride].tolist() == thinned.tolist()


def test_negative_number_of_points_is_rejected() -> None:
    with pytest.raises(CaptureError, match="must be between 0 and"):
        tcpcast.trace(TRANSFER, trail_points=-1)
