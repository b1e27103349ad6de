"""Names of the limits of a transfer, the same in all outputs for people."""

from __future__ import annotations

LINK, RECEIVER_WINDOW, LOSS, TIMEOUTS = "link", "receiver window", "loss", "timeouts"

LIMIT_NAMES = {
    "application": "application",
    "receiver_window": RECEIVER_WINDOW,
    "send_buffer": "send buffer",
    "slow_start": "slow start",
    "congestion_window": "congestion window",
    "loss_recovery": "loss recovery",
    "timeout": TIMEOUTS,
    "bottleneck": LINK,
    "unknown": "unknown",
    # Causes in captures.
    "application_pacing": "application pacing",
    "receiver": RECEIVER_WINDOW,
    "short_transfer": "slow start",
    "reordering": "reordering",
    "policer": "policer",
    "link": LINK,
    "loss": LOSS,
    # Regimes of models.
    "window": RECEIVER_WINDOW,
    "own link": "own link",
    "link full": LINK,
    "shallow buffer": f"{LINK} (shallow buffer)",
    "triple duplicates": f"{LOSS} (triple duplicates)",
    "timeouts": TIMEOUTS,
    "cubic": f"{LOSS} (CUBIC region)",
    "Reno-friendly": f"{LOSS} (Reno-friendly region)",
    "collapse": f"{LOSS} (collapse)",
    "loss-based competition": "loss-based flows",
}
"""Name of each state of a sender (``limited_by``), cause (``cause``) and regime (``regime``)."""

_ARTICLES = {
    "application": "the",
    "receiver window": "the",
    "send buffer": "the",
    "congestion window": "the",
    "link": "the",
    "own link": "its",
    "policer": "a",
}


def limit_name(limit: str) -> str:
    """Return the name of a limit; a regime that only one model has is its own name."""
    return LIMIT_NAMES.get(limit, limit)


def with_article(limit: str) -> str:
    """Return the name of a limit for a sentence: ``the link (shallow buffer)``."""
    name = limit_name(limit)
    return f"{_ARTICLES.get(name.partition(' (')[0], '')} {name}".strip()
