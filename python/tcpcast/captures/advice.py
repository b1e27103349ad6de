"""Why a transfer was slow, in a sentence: what held it, what to change first, what that gives.

The figures are those of models fed with what was measured. Where no model can be fed the sentence
says less.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures import remedies
from tcpcast.captures.gains import Gains
from tcpcast.captures.words import percent

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.captures.table import Table

    Sentences = list[str]

LIMITS: dict[str, tuple[str, Callable[[Gains], list[str]]]] = {
    "application": ("The application had nothing to send", remedies.application),
    "receiver_window": ("The receiver's window held it", remedies.receiver_window),
    "send_buffer": ("The sender's buffer held it", remedies.send_buffer),
    "slow_start": ("It was in slow start", remedies.slow_start),
    "congestion_window": ("The congestion window held it", remedies.congestion_window),
    "loss_recovery": ("It was repairing losses", remedies.loss_recovery),
    "timeout": ("It waited for timers", remedies.timeout),
    "bottleneck": ("The link was full", remedies.bottleneck),
    "unknown": ("What held it cannot be told", remedies.unknown),
}
"""What limits a direction: what that is in words, and what to do about it."""

SHORT = {
    "application": "app",
    "receiver_window": "rwnd",
    "send_buffer": "sndbuf",
    "slow_start": "start",
    "congestion_window": "cwnd",
    "loss_recovery": "loss",
    "timeout": "RTO",
    "bottleneck": "link",
    "unknown": "–",
}
"""The same for a narrow column."""

ALSO = 0.2
"""Share of the time from which on a second limit is named."""


def advice(table: Table) -> np.ndarray[Any, Any]:
    """Return a sentence a row of ``connections``, an empty one where nothing is known."""
    count = table["src"].size
    said = np.full(count, "", dtype=object)
    if "limited_by" not in table:
        return said
    for limit, (what, remedy) in LIMITS.items():
        rows = np.flatnonzero(table["limited_by"] == limit)
        if rows.size:
            part = {name: column[rows] for name, column in table.items()}
            shares = _shares(part, limit)
            said[rows] = [
                f"{what}{share}{rest}"
                for share, rest in zip(shares, remedy(Gains.of(part)), strict=True)
            ]
    return said


def share(table: Table, limit: str) -> np.ndarray[Any, Any]:
    """Return the share of the time that a limit has."""
    return table[f"share_{limit}"]


def shares(table: Table) -> np.ndarray[Any, Any]:
    """Return the share of the time of what limits each row, by ``limited_by``; NaN without."""
    found = np.full(table["src"].size, np.nan)
    for limit in LIMITS:
        rows = table["limited_by"] == limit
        found[rows] = share(table, limit)[rows]
    return found


def _shares(table: Table, limit: str) -> list[str]:
    """Return for how much of the time, and what else held it for long."""
    if limit == "unknown":
        return [""] * table["src"].size
    first = share(table, limit)
    others = [name for name in LIMITS if name not in (limit, "unknown")]
    rest = np.nan_to_num(np.stack([share(table, name) for name in others]))
    second = rest.argmax(axis=0)
    said = []
    for at, value in enumerate(first.tolist()):
        if not math.isfinite(value):
            said.append("")
            continue
        also = float(rest[second[at], at])
        name = others[second[at]].replace("_", " ")
        beside = f" ({name} {percent(also)})" if also >= ALSO else ""
        said.append(f" for {percent(value)} of the time{beside}")
    return said
