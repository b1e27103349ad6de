"""Reads results of Crusader, as ``crusader export`` writes them in JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tcpcast.measurements.line_test import DOWN, UP, FlowGroup, LineTest
from tcpcast.process.errors import CaptureError
from tcpcast.process.json_file import number, read_content, read_json, rows, table, text

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = 0x5372AB82AE7C59CB.to_bytes(8, "little")
"""First bytes of a result before its export."""

VERSIONS = (0, 1, 2)
MAX_STREAMS = 2000
_NANOS = 1e-9


def read_crusader(path: Path) -> LineTest:
    """Return the part of a test that loads both directions, or else the only part.

    Raises
    ------
    CaptureError
        The file is damaged, too large, not exported, or has no load.
    """
    file = str(path)
    if read_content(path, len(MAGIC)) == MAGIC:
        raise CaptureError(
            "the file is a result of Crusader that was not exported; use `crusader export FILE`, "
            "which writes FILE.json",
            file=file,
        )
    document = read_json(path, "Crusader")
    groups = [table(each) for each in rows(document.get("stream_groups"))]
    if "pings" not in document or not groups:
        raise CaptureError(
            "the JSON is not from Crusader: pings and streams are missing", file=file
        )
    if document.get("version") not in VERSIONS:
        raise CaptureError("this version of Crusader's format is not supported", file=file)
    both = [each for each in groups if each.get("both") is True]
    alone = [each for each in groups if each.get("both") is not True]
    used, notes = both or alone[:1], []
    if both and alone:
        notes.append("tcpcast omits the parts of the test with load in one direction")
    elif len(alone) > 1:
        notes.append("tcpcast omits the upload after the download")
    flows: dict[FlowGroup, list[float]] = {}
    start_s, end_s = math.inf, 0.0
    for each in used:
        group = FlowGroup(DOWN if each.get("download") is True else UP, "cubic", "BE")
        streams = rows(each.get("streams"))
        if len(streams) > MAX_STREAMS:
            raise CaptureError(f"the file contains more than {MAX_STREAMS} streams", file=file)
        for stream in map(table, streams):
            begin, end, amount = _sent(stream)
            if end > begin and amount > 0:
                start_s, end_s = min(start_s, begin), max(end_s, end)
                flows.setdefault(group, []).append(8 * amount / (end - begin))
    if not flows:
        raise CaptureError("no stream of the test carried data; repeat the test", file=file)
    pings = [
        (_seconds(ping.get("sent")), _seconds(table(ping.get("latency")).get("total")))
        for ping in map(table, rows(document.get("pings")))
    ]
    answered = [(at, rtt) for at, rtt in pings if rtt > 0 and not math.isnan(at)]
    loads = [_sent(each)[0] for group in groups for each in map(table, rows(group.get("streams")))]
    idle = [rtt for at, rtt in answered if at < min(loads)] or [rtt for _, rtt in answered]
    version = text(document.get("generated_by"), 40)
    return LineTest(
        "crusader",
        version or "Crusader",
        end_s - start_s,
        flows,
        [rtt for at, rtt in answered if start_s <= at <= end_s],
        min(idle, default=math.nan),
        notes=[
            "Crusader does not report the congestion control; the simulation uses CUBIC",
            *notes,
        ],
    )


def _sent(stream: dict[str, Any]) -> tuple[float, float, float]:
    """Return begin and end of the load of a stream in seconds, and its bytes."""
    begin, end, amount = math.inf, 0.0, 0.0
    for point in map(table, rows(stream.get("data"))):
        at, total = _seconds(point.get("time")), number(point.get("bytes"))
        if math.isnan(at) or math.isnan(total):
            continue
        # Points before the load repeat zero bytes.
        if total == 0:
            begin = at
        else:
            begin, end, amount = min(begin, at), at, total
    return begin, end, amount


def _seconds(value: object) -> float:
    """Return a duration of Rust's serde in seconds."""
    return number(table(value).get("secs")) + _NANOS * number(table(value).get("nanos"))
