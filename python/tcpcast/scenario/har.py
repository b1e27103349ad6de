"""Pages from HAR files (HTTP Archive 1.2), which browsers export.

The parent of an object is the request that was redirected to it, or its initiator (``_initiator``
of Chrome), otherwise the document, which is the first request. Entries without a transfer are left
out: those from the cache of the browser, failed ones, WebSockets and ``data:`` URLs. The
time between the arrival of the part of the parent in which the browser found the object and its
request is the delay of the object. ``timings.wait`` contains a round trip to the host, estimated
by the smallest ``connect`` without ``ssl``, or the smallest ``wait``; the rest is the server time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag, urljoin, urlsplit

from tcpcast.process.errors import CaptureError
from tcpcast.process.json_file import number, read_json, rows, table, text
from tcpcast.quantity import units

if TYPE_CHECKING:
    from pathlib import Path

MAX_ENTRIES = 2_000
MAX_URL = 4_000
MAX_LENGTH_S = 3_600
"""Largest time from the document to a request; more is a wrong clock, or more than one page."""
MAX_BYTES = 10**10
"""Most bytes of an object or its request; more is a damaged number."""
_ADVICE = "export a single page"
_PRIORITIES = {"VeryHigh": 0, "High": 1, "Medium": 3, "Low": 4, "VeryLow": 5}
"""Urgency in RFC 9218 by Chrome's priorities, as Chrome sends it."""


@dataclass(slots=True)
class _Entry:
    url: str
    initiator: str
    redirect: str
    is_document: bool
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
        The file cannot be read, is damaged or too large, or contains no requests of a page.
    """
    document = read_json(path, "a browser's HAR export", advice=_ADVICE)
    log = table(document.get("log"))
    listed = rows(log.get("entries"))
    several = len(rows(log.get("pages"))) > 1
    # A page without a request, such as an empty tab, is not the first one.
    found: dict[str, list[_Entry]] = {}
    for row in map(table, listed):
        if (entry := _read_entry(row, str(path))) is not None:
            found.setdefault(text(row.get("pageref")) if several else "", []).append(entry)
    ids = [text(table(page).get("id")) for page in rows(log.get("pages"))] if several else [""]
    everything = [entry for entries in found.values() for entry in entries]
    entries = next((found[each] for each in ids if each in found), everything)
    if not entries:
        what = "no requests; use a complete HAR export"
        if listed:
            what = (
                "no requests over HTTP that have a time and crossed the network; export a page "
                "that was loaded without the cache"
            )
        raise CaptureError(f"contains {what}", file=str(path))
    if len(entries) > MAX_ENTRIES:
        raise CaptureError(
            f"contains more than {MAX_ENTRIES:,} requests; {_ADVICE}", file=str(path)
        )
    entries.sort(key=lambda entry: entry.begins_s)
    # Beacons of the page before may begin before the document.
    begins = next((place for place, entry in enumerate(entries) if entry.is_document), 0)
    entries = entries[begins:]
    length_s = entries[-1].begins_s - entries[0].begins_s
    if length_s > MAX_LENGTH_S:
        late = entries[-1]
        raise CaptureError(
            f"{_name(late.url)} begins {length_s:.0f} s after the document, but a page lasts at "
            f"most {MAX_LENGTH_S} s; {_ADVICE}",
            file=str(path),
        )
    return _make_objects(entries)


def _read_entry(row: dict[str, Any], file: str) -> _Entry | None:
    """Return a request; None for objects that did not cross the network."""
    request, response, timings = (table(row.get(k)) for k in ("request", "response", "timings"))
    url = text(request.get("url"), MAX_URL)
    begins_s = _time_s(row.get("startedDateTime"))
    host = _host(url)
    if host is None or math.isnan(begins_s) or not _is_moved(row, response):
        return None
    size, sent = _size(response), max(1.0, _first_number(request.get("headersSize"), 400))
    if max(size, sent) > MAX_BYTES:
        raise CaptureError(
            f"{_name(url)} contains {max(size, sent):.3g} B, but the maximum for an object is "
            f"{MAX_BYTES:.0e} B; correct the file, or export the page again",
            file=file,
        )
    blocked, wait, receive, connect, ssl = (
        _milliseconds(timings.get(key)) for key in ("blocked", "wait", "receive", "connect", "ssl")
    )
    total = _milliseconds(row.get("time"))
    # Chrome navigates to a document that is not in a frame of another one.
    by = table(row.get("_initiator")).get("type")
    return _Entry(
        url=urldefrag(url).url,
        initiator=urldefrag(_initiator(table(row.get("_initiator")))).url,
        redirect=_redirect(url, text(response.get("redirectURL"), MAX_URL)),
        is_document=row.get("_resourceType") == "document" and by == "other",
        host=host,
        size=round(size),
        request=round(sent),
        priority=_PRIORITIES.get(str(row.get("_priority")), 3),
        begins_s=begins_s,
        wait_s=wait,
        receive_s=receive,
        ends_s=begins_s + max(total, blocked + wait + receive),
        connect_s=max(0.0, connect - ssl),
    )


def _host(url: str) -> str | None:
    """Return the host of a URL of HTTP, and its port if it is unusual; None for other URLs."""
    try:
        parts = urlsplit(url)
        name, port = parts.hostname, parts.port
    except ValueError:
        return None
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    if usual is None or not name:
        return None
    name = f"[{name}]" if ":" in name else name
    return name[:190] if port in (None, usual) else f"{name[:190]}:{port}"


def _is_moved(row: dict[str, Any], response: dict[str, Any]) -> bool:
    """Return whether an answer crossed the network: not if it failed, or was in a cache."""
    status = number(response.get("status"))
    if row.get("_fromCache") is not None or not status >= 200:
        return False
    moved = response.get("_transferSize")
    if number(moved) >= 0:
        return bool(number(moved) > 0)  # 0 for a service worker and the cache of the memory
    # HAR 1.2: the body has no bytes "in case of responses coming from the cache (304)".
    has_content = number(table(response.get("content")).get("size")) > 0
    return not (has_content and number(response.get("bodySize")) == 0 and status != 304)


def _redirect(url: str, target: str) -> str:
    try:
        return urldefrag(urljoin(url, target)).url if target else ""
    except ValueError:
        return ""


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


def _size(response: dict[str, Any]) -> float:
    """Return the bytes of an answer on the network: Chrome's measurement, or body and headers."""
    moved = _first_number(response.get("_transferSize"), 0)
    if moved > 0:
        return moved
    body = _first_number(response.get("bodySize"), math.nan)
    if number(response.get("status")) == 304:
        body = 0.0
    elif math.isnan(body):
        body = _first_number(table(response.get("content")).get("size"), 0)
    return max(1.0, body + _first_number(response.get("headersSize"), 300))


def _first_number(value: object, default: float) -> float:
    found = number(value)
    if not math.isnan(found):
        return found
    is_too_large = isinstance(value, int | float) and value > MAX_BYTES
    return math.inf if is_too_large else default


def _milliseconds(value: object) -> float:
    """Return a time in seconds; 0 for -1, which means that it does not apply."""
    return 1e-3 * min(_first_number(value, 0.0), 1e7)


def _time_s(value: object) -> float:
    try:
        return datetime.fromisoformat(text(value, 40)).timestamp()
    except (ValueError, OverflowError, OSError):
        return math.nan


def _make_objects(entries: list[_Entry]) -> list[dict[str, Any]]:
    rtts: dict[str, float] = {}
    for entry in entries:
        rtt = entry.connect_s or entry.wait_s
        rtts[entry.host] = min(rtt, rtts.get(entry.host, math.inf))
    by_url: dict[str, int] = {}
    redirects: dict[str, int] = {}
    parents = []
    for place, entry in enumerate(entries):
        # A request has its cause before it, so that no requests cause each other.
        parents.append(redirects.pop(entry.url, by_url.get(entry.initiator, 0)))
        by_url.setdefault(entry.url, place)
        if entry.redirect:
            redirects[entry.redirect] = place
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


def _name(url: str) -> str:
    """Return the last part of the path of a URL."""
    path = urlsplit(url).path.rstrip("/")
    return path.rpartition("/")[2][:60] or "/"
