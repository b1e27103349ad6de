"""A capture to drop onto the page."""

from pathlib import Path

import tcpcast


def write_lossy_capture(folder: Path) -> Path:
    """Simulate a lossy path and write what its sender would capture."""
    scenario = tcpcast.load("lossy-path").with_changes(
        {
            "traffic.flows": 1,
            "network.bottleneck.rate": "5mbit",
            "run.duration": "5s",
            "run.warmup": "0s",
            "run.replications": 1,
            "probes.pcap": [{"link": "sender", "file": str(folder / "path.pcap")}],
        }
    )
    tcpcast.run(scenario, ["packet"])
    (file,) = folder.glob("*.pcap*")
    return file
