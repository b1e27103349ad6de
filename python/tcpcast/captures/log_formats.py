"""Detects and reads logs of other programs instead of captures."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from tcpcast.captures.flow_log import MAX_LOG_BYTES, capture_of_flows
from tcpcast.captures.iperf3_log import read_iperf3
from tcpcast.captures.ss_log import HEADER, read_ss
from tcpcast.process.errors import CaptureError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from tcpcast.captures.capture import Capture

HEAD_BYTES = 4096
"""Number of bytes at the beginning that show the format."""
IPERF3, SS = "iperf3", "ss"
_READERS = {IPERF3: read_iperf3, SS: read_ss}
_IPERF3_START = re.compile(rb'\{\s*"(start|event)"\s*:')
_ENCODING_MARK = b"\xef\xbb\xbf"


def log_program(head: bytes) -> str:
    """Return the program that wrote a log with this beginning, or "" for a capture."""
    text = head.removeprefix(_ENCODING_MARK).lstrip()
    if _IPERF3_START.match(text):
        return IPERF3
    if b"\0" in text:
        return ""
    lines = text.splitlines()
    if any(HEADER.match(line) for line in lines[:2]) or any(
        b" cwnd:" in line and b" rtt:" in line for line in lines
    ):
        return SS
    return ""


def read_log(
    source: str | os.PathLike[str] | bytes, file: str, read: Callable[[bytes], Capture]
) -> Capture | None:
    """Return the results of a log, or None if the source is no log.

    Parameters
    ----------
    source
        Path of a regular file, or its content.
    file
        Its name for errors and results.
    read
        Reads the content of a capture.

    Raises
    ------
    CaptureError
        The log cannot be understood, or it is larger than 64 MiB.
    """
    if isinstance(source, bytes):
        program, content = log_program(source[:HEAD_BYTES]), source
        if not program:
            return None
    else:
        try:
            path = Path(source)
            if not stat.S_ISREG(path.stat().st_mode):
                return None
            with path.open("rb") as opened:
                head = opened.read(HEAD_BYTES)
                program = log_program(head)
                if not program:
                    return None
                content = head + opened.read(MAX_LOG_BYTES + 1)
        except (OSError, ValueError):
            return None  # the reader of captures reports the error
    if len(content) > MAX_LOG_BYTES:
        raise CaptureError(f"the log is larger than {MAX_LOG_BYTES >> 20} MiB; split it", file=file)
    text = content.removeprefix(_ENCODING_MARK).decode("utf-8", "replace").strip()
    flows, warnings = _READERS[program](text, file)
    return capture_of_flows(file, program, flows, warnings, read)
