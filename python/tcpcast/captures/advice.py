"""Advice on slow transfers: the limit, what to change first, and the predicted gain.

Gains are predicted by models with measured inputs. If no model applies, no gain is stated.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures import findings, recommendations, verdict
from tcpcast.captures.predicted_gain import Gains
from tcpcast.captures.quantity_text import percent
from tcpcast.captures.service_advice import sentences

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.captures.table import Table

    Sentences = list[str]

LIMITS: dict[str, tuple[str, Callable[[Gains], list[str]]]] = {
    "application": ("application", recommendations.application),
    "receiver_window": ("receiver window", recommendations.receiver_window),
    "send_buffer": ("send buffer", recommendations.send_buffer),
    "slow_start": ("slow start", recommendations.slow_start),
    "congestion_window": ("congestion window", recommendations.congestion_window),
    "loss_recovery": ("loss recovery", recommendations.loss_recovery),
    "timeout": ("retransmission timeouts", recommendations.timeout),
    "bottleneck": ("full link", recommendations.bottleneck),
    "unknown": ("unknown", recommendations.unknown),
}
"""Name of each limit in sentences, and the function that returns the remedy."""

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
"""Names of limits in a narrow column."""

CAUSES: dict[str, tuple[str, Callable[[Gains], list[str]]]] = {
    verdict.APPLICATION: ("application", findings.application),
    verdict.PACING: ("application pacing", findings.pacing),
    verdict.RECEIVER: ("receive window", recommendations.receiver_window),
    verdict.SHORT_TRANSFER: ("short transfer", recommendations.slow_start),
    verdict.REORDERING: ("reordering", findings.reordering),
    verdict.POLICER: ("policer", findings.policer),
    verdict.LINK: ("full link", findings.link),
    verdict.LOSS: ("packet loss", recommendations.loss_recovery),
}
"""Name of each cause with evidence, and the function that returns the evidence and the remedy."""

SHORT_CAUSES = {
    verdict.APPLICATION: "app",
    verdict.PACING: "pacing",
    verdict.RECEIVER: "rwnd",
    verdict.SHORT_TRANSFER: "short",
    verdict.REORDERING: "reorder",
    verdict.LINK: "link",
    verdict.LOSS: "loss",
}
"""Names of causes in a narrow column, if different."""

ALSO = 0.2
"""Minimum share of the time of a second limit that is named."""


def advice(table: Table, services: Table | None = None) -> np.ndarray[Any, Any]:
    """Return the advice for each row of ``connections``; empty if the limit is unknown.

    A cause with evidence takes precedence over the sender's state with the largest share of the
    time. Directions of connections with requests have the verdict on their service.
    """
    count = table["src"].size
    said = np.full(count, "", dtype=object)
    if "limited_by" not in table:
        return said
    causes = _evident(table)
    for cause, (what, finding) in CAUSES.items():
        rows = np.flatnonzero(causes == cause)
        if rows.size:
            part = {name: column[rows] for name, column in table.items()}
            said[rows] = [f"Limited by: {what}{rest}" for rest in finding(Gains.of(part))]
    for limit, (what, remedy) in LIMITS.items():
        rows = np.flatnonzero((table["limited_by"] == limit) & (causes == ""))
        if rows.size:
            part = {name: column[rows] for name, column in table.items()}
            shares = _shares(part, limit)
            said[rows] = [
                f"Limited by: {what}{share}{rest}"
                for share, rest in zip(shares, remedy(Gains.of(part)), strict=True)
            ]
    said = np.where(said == "", said, said + np.array(findings.return_path(table), dtype=object))
    if not services:
        return said
    shared = np.array(["", *sentences(services)], dtype=object)[table["service"] + 1]
    return np.where(table["service"] >= 0, shared, said)


def _evident(table: Table) -> np.ndarray[Any, Any]:
    """Return the cause of each row if there is evidence for it, otherwise ""."""
    if "cause" not in table:
        return np.full(table["src"].size, "")
    return np.where(
        table["cause_evident"] & np.isin(table["cause"], list(CAUSES)), table["cause"], ""
    )


def share(table: Table, limit: str) -> np.ndarray[Any, Any]:
    """Return the share of the time of a limit for each row."""
    return table[f"share_{limit}"]


def shares(table: Table) -> np.ndarray[Any, Any]:
    """Return the share of the time of the limit of each row (``limited_by``); NaN if unknown."""
    found = np.full(table["src"].size, np.nan)
    for limit in LIMITS:
        rows = table["limited_by"] == limit
        found[rows] = share(table, limit)[rows]
    return found


def _shares(table: Table, limit: str) -> list[str]:
    """Return texts with the share of the time, and with the second limit if its share is large."""
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
        name, _ = LIMITS[others[second[at]]]
        second_limit = f" ({name} {percent(also)})" if also >= ALSO else ""
        said.append(f" {percent(value)} of the time{second_limit}")
    return said
