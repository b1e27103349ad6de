"""A quick sweep, and the compared file of its folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tcpcast.scenario import Scenario
from tcpcast.sweeps.database import RESULTS_FILE

TABLES: dict[str, Any] = {
    "name": "one path",
    "network": {"rtt": "50ms", "bottleneck": {"rate": "10mbit", "buffer": "1bdp", "loss": "1%"}},
    "traffic": {"kind": "bulk", "flows": 1},
    "tcp": {"stack": "rfc-newreno"},
    "run": {"duration": "12s", "warmup": "2s"},
}


@pytest.fixture
def path() -> Scenario:
    return Scenario.from_dict(TABLES)


@pytest.fixture
def table() -> Callable[[Path], bytes]:
    """Return the bytes of the table in a folder."""
    return lambda folder: (folder / RESULTS_FILE).read_bytes()
