"""Pages from HAR files (HTTP Archive 1.2), which browsers export.

The parent of an object is its initiator (``_initiator`` of Chrome), otherwise the document. The
time between the arrival of the part of the parent in which the browser found the object and its
request is the delay of the object. ``timings.wait`` contains a round trip to the host, estimated
by the smallest ``connect`` without ``ssl``, or the smallest ``wait``; the rest is the server time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tcpcast import units
from tcpcast.errors import CaptureError
from tcpcast.json_file import number, read_json, rows, table, text

if TYPE_CHECKING:
    from pathlib import Path

MAX_ENTRIES = 2_000
MAX_URL = 4_000
_ADVICE = "export a single page"
_PRIORITIES = {"VeryHigh": 0, "High": 1, "Medium": 3, "Low": 4, "VeryLow": 5}
"""Urgency in RFC 9218 by Chrome's priorities, as Chrome sends it."""


@dataclass(slots=True)
class _Entry:
    url: str
    initiator: str
    host: str
    size: int
    request: int
    priority: int
    begins_s: float
    wait_s: float
    receive_s: float
    ends_s: float
    connect_s: float


def read_har(path: Path) -> list[dict[str, Any]]:
    """Return the objects of the first page of a HAR file, as typed in a scenario.

    Parameters
    ----------
    path
        The file, which may be compressed by gzip.

    Raises
    ------
    CaptureError
        The file cannot be read, is damaged or too large, contains no requests, or its objects find
        each other in a cycle.
    """
    document = read_json(path, "a browser's HAR export", advice=_ADVICE)
    log = table(document.get("log"))
    listed = rows(log.get("entries"))
    pages = rows(log.get("pages"))
    first = table(pages[0]).get("id") if pages else None
    entries = [
        entry
        for row in map(table, listed)
        if len(pages) < 2 or row.get("pageref") == first
        if (entry := _read_entry(row)) is not None
    ]
    if not entries:
        raise CaptureError(
            "contains no requests with a time; use a complete HAR export", file=str(path)
        )
    if len(entries) > MAX_ENTRIES:
        raise CaptureError(f"more than {MAX_ENTRIES:,} requests; {_ADVICE}", file=str(path))
    entries.sort(key=lambda entry: entry.begins_s)
    return _make_objects(entries, path)


def _read_entry(row: dict[str, Any]) -> _Entry | None:
    """Return a request; None for objects that did not cross the network."""
    request, response, timings = (table(row.get(k)) for k in ("request", "response", "timings"))
    url = text(request.get("url"), MAX_URL)
    begins_s = _time_s(row.get("startedDateTime"))
    is_cached = row.get("_fromCache") is not None or response.get("status") in (0, None)
    parts = _split(url)
    if parts is None or math.isnan(begins_s) or is_cached:
        return None
    blocked, wait, receive, connect, ssl = (
        _milliseconds(timings.get(key)) for key in ("blocked", "wait", "receive", "connect", "ssl")
    )
    total = _milliseconds(row.get("time"))
    return _Entry(
        url=url,
        initiator=_initiator(table(row.get("_initiator"))),
        host=parts,
        size=_size(response),
        request=max(1, round(_first_number(request.get("headersSize"), 400))),
        priority=_PRIORITIES.get(str(row.get("_priority")), 3),
        begins_s=begins_s,
        wait_s=wait,
        receive_s=receive,
        ends_s=begins_s + max(total, blocked + wait + receive),
        connect_s=max(0.0, connect - ssl),
    )


def _split(url: str) -> str | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return parts.netloc[:200] if parts.scheme in ("http", "https") and parts.netloc else None


def _initiator(value: dict[str, Any]) -> str:
    """Return the URL of the initiator: the parser's document, or the innermost script."""
    if url := text(value.get("url"), MAX_URL):
        return url
    stack = table(value.get("stack"))
    for _ in range(100):  # asynchronous calls have parents
        for frame in map(table, rows(stack.get("callFrames"))):
            if url := text(frame.get("url"), MAX_URL):
                return url
        stack = table(stack.get("parent"))
    return ""


def _size(response: dict[str, Any]) -> int:
    """Return the bytes of an answer on the network: Chrome's measurement, or body and headers."""
    moved = number(response.get("_transferSize"))
    if moved > 0:
        return round(moved)
    body = number(response.get("bodySize"))
    if not body > 0:
        body = _first_number(table(response.get("content")).get("size"), 0)
    return max(1, round(body + _first_number(response.get("headersSize"), 300)))


def _first_number(value: object, default: float) -> float:
    found = number(value)
    return default if math.isnan(found) else min(found, 1e12)


def _milliseconds(value: object) -> float:
    """Return a time in seconds; 0 for -1, which means that it does not apply."""
    return 1e-3 * min(_first_number(value, 0.0), 1e7)


def _time_s(value: object) -> float:
    try:
        return datetime.fromisoformat(text(value, 40)).timestamp()
    except (ValueError, OverflowError, OSError):
        return math.nan


def _make_objects(entries: list[_Entry], path: Path) -> list[dict[str, Any]]:
    rtts: dict[str, float] = {}
    for entry in entries:
        rtt = entry.connect_s or entry.wait_s
        rtts[entry.host] = min(rtt, rtts.get(entry.host, math.inf))
    by_url: dict[str, int] = {}
    for place, entry in enumerate(entries):
        by_url.setdefault(entry.url, place)
    parents = [0, *(by_url.get(entry.initiator, 0) for entry in entries[1:])]
    parents = [0 if parent == place else parent for place, parent in enumerate(parents)]
    _refuse_cycles(entries, parents, path)
    names = [f"{place + 1} {_name(entry.url)}" for place, entry in enumerate(entries)]
    objects = []
    for place, (entry, parent) in enumerate(zip(entries, parents, strict=True)):
        made: dict[str, Any] = {"name": names[place], "size": units.format_bytes(entry.size)}
        if place > 0:
            above = entries[parent]
            made["parent"] = names[parent]
            late_s = entry.begins_s - above.ends_s
            if late_s >= 0 or above.receive_s <= 0:
                made["delay"] = units.format_duration(round(max(0.0, late_s), 6))
            else:
                made["found"] = round(min(1.0, max(0.0, 1 + late_s / above.receive_s)), 4)
        made["server_time"] = units.format_duration(
            round(max(0.0, entry.wait_s - rtts[entry.host]), 6)
        )
        made |= {"priority": entry.priority, "host": entry.host}
        made["request"] = units.format_bytes(entry.request)
        objects.append(made)
    return objects


def _refuse_cycles(entries: list[_Entry], parents: list[int], path: Path) -> None:
    reached = {0}
    for start in range(1, len(entries)):
        chain: dict[int, None] = {}
        place = start
        while place not in reached:
            if place in chain:
                raise CaptureError(
                    f"requests cause each other in a cycle ({_name(entries[place].url)}); "
                    f"{_ADVICE}",
                    file=str(path),
                )
            chain[place] = None
            place = parents[place]
        reached |= chain.keys()


def _name(url: str) -> str:
    """Return the last part of the path of a URL."""
    path = urlsplit(url).path.rstrip("/")
    return path.rpartition("/")[2][:60] or "/"
