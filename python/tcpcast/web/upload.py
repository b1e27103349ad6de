"""Analysis of a capture uploaded to the page."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tcpcast.captures import trace
from tcpcast.captures.advice import REMEDIES_BY_LIMIT
from tcpcast.captures.failed_connections import failure_sentences, failure_summary
from tcpcast.captures.quantity_text import format_percent, format_rate, format_time
from tcpcast.errors import CaptureError
from tcpcast.limit_names import LIMIT_NAMES
from tcpcast.sanitize import escape_control_characters

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.array_types import Table

MIN_SHARE = 0.01
"""Minimum share of the time of a listed limit."""

MAX_ROWS = 50
"""Maximum number of listed directions, those with the most bytes."""


def analyse_upload(path: str, name: str) -> dict[str, Any]:
    """Read a capture and return its directions, those with the most bytes first.

    Parameters
    ----------
    path
        Path of the uploaded file.
    name
        Original file name.

    Raises
    ------
    CaptureError
        The file is not a capture; the message contains its name instead of the path.
    """
    name = name.replace("\n", "\\n").replace("\t", "\\t")  # one line, whatever it contains
    try:
        capture = trace(path)
    except CaptureError as error:
        raise CaptureError(
            escape_control_characters(error.reason), file=escape_control_characters(name)
        ) from None
    table = capture.connections
    order = (-table["bytes"].astype(float)).argsort(kind="stable")[:MAX_ROWS]
    sentences = capture.advice()
    failures = [*filter(None, [failure_summary(capture.rest, capture.connection_count)])]
    failures += failure_sentences(capture.failed)
    return {
        "file": escape_control_characters(name),
        "verdict": escape_control_characters(capture.verdict()),
        "segments": capture.segments,
        "connections": capture.connection_count,
        "directions": int(table["src"].size),
        "damaged": capture.damaged,
        "warnings": [
            escape_control_characters(text.replace(path, name))
            for text in (*failures, *capture.warnings)
        ],
        "rows": [_capture_row(table, int(at), str(sentences[at])) for at in order],
    }


def _capture_row(table: Table, row: int, advice: str) -> dict[str, Any]:
    shares = {
        name: float(table[f"share_{name}"][row])
        for name in REMEDIES_BY_LIMIT
        if f"share_{name}" in table
    }
    known = {name: share for name, share in shares.items() if share >= MIN_SHARE}
    return {
        "src": escape_control_characters(str(table["src"][row])),
        "dst": escape_control_characters(str(table["dst"][row])),
        "bytes": int(table["bytes"][row]),
        "throughput": _text_of_cell(format_rate, table["throughput_bps"][row]),
        "rtt": _text_of_cell(format_time, table["rtt_mean_s"][row]),
        "retransmissions": int(table["retransmissions"][row]),
        "limited_by": LIMIT_NAMES[str(table["limited_by"][row])] if shares else "",
        "shares": [
            {"name": LIMIT_NAMES[name], "text": format_percent(share), "share": share}
            for name, share in sorted(known.items(), key=lambda item: -item[1])
        ],
        "advice": escape_control_characters(advice),
    }


def _text_of_cell(format_value: Callable[[float], str], value: float) -> str:
    return format_value(float(value)) if math.isfinite(float(value)) and value > 0 else "–"
