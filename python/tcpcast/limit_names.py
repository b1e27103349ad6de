"""Names of the limits of a transfer, the same in all outputs for people."""

from __future__ import annotations

from tcpcast.captures import verdict

LIMIT_NAMES = {
    "application": "application",
    "receiver_window": "receiver window",
    "send_buffer": "send buffer",
    "slow_start": "slow start",
    "congestion_window": "congestion window",
    "loss_recovery": "loss recovery",
    "timeout": "timeouts",
    "bottleneck": "full link",
    "unknown": "unknown",
    verdict.PACING: "application pacing",
    verdict.RECEIVER: "receiver window",
    verdict.SHORT_TRANSFER: "slow start",
    verdict.REORDERING: "reordering",
    verdict.POLICER: "policer",
    verdict.LINK: "full link",
    verdict.LOSS: "packet loss",
}
"""Name of each state of a sender (``limited_by``) and of each cause (``cause``)."""

_ARTICLES = {"application": "the", "receiver window": "the", "send buffer": "the"} | {
    "congestion window": "the",
    "full link": "a",
    "policer": "a",
}


def with_article(limit: str) -> str:
    """Return the name of a limit for a sentence: ``a full link``."""
    name = LIMIT_NAMES[limit]
    return f"{_ARTICLES.get(name, '')} {name}".strip()
