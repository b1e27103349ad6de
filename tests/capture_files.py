"""The capture files of the project, and those in ``shared/captures`` next to it."""

from pathlib import Path

import pytest
from tcpcast.captures import Capture, trace
from tcpcast.process.errors import CaptureError

ROOT = Path(__file__).parents[1]
SHARED = [parent / "shared" / "captures" for parent in ROOT.parents]
FOLDERS = [
    ROOT / "crates" / "trace" / "tests" / "data",
    *[folder for folder in SHARED if folder.is_dir()][:1],
]
SUFFIXES = (".pcap", ".pcapng", ".gz", ".zst")
CAPTURES = [
    path
    for folder in FOLDERS
    for path in sorted(folder.rglob("*"))
    if path.suffix in SUFFIXES and path.is_file()
]
TRANSFER = FOLDERS[0] / "transfer.pcap.gz"


def read(path: Path) -> Capture:
    """Read a capture; skip the test if the file is not one."""
    try:
        return trace(path)
    except CaptureError:
        pytest.skip("not a capture")
