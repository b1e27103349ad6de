"""A quick sweep, and the compared files of its folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tcpcast.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TABLES: dict[str, Any] = {
    "name": "one path",
    "network": {
        "rtt": "50ms",
        "bottleneck": {"rate": "10mbit", "buffer": "1bdp", "loss": "1%"},
    },
    "traffic": {"kind": "bulk", "flows": 1},
    "tcp": {"stack": "rfc-newreno"},
    "run": {"duration": "4s", "warmup": "1s"},
}


@pytest.fixture
def path() -> Scenario:
    return Scenario.from_dict(TABLES)


@pytest.fixture
def contents() -> Callable[[Path], dict[str, bytes]]:
    """Return the contents of all files in a folder except for the wall times."""

    def read(folder: Path) -> dict[str, bytes]:
        files = sorted(folder.iterdir())
        return {file.name: file.read_bytes() for file in files if file.name != "_wall.parquet"}

    return read
