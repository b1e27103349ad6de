"""Names of the limits of a transfer for all outputs that people read."""

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
    "no_response": "silent receiver",
    # Regimes of models.
    "window": RECEIVER_WINDOW,
    "own link": "own link",
    "pacing": "pacing rate",
    "reader": "receiving application",
    "link full": LINK,
    "shallow buffer": LINK,
    "triple duplicates": LOSS,
    "timeouts": TIMEOUTS,
    "cubic": LOSS,
    "Reno-friendly": LOSS,
    "collapse": LOSS,
    "loss-based competition": "loss-based flows",
}
"""Name of each state of a sender (``limited_by``), cause (``cause``) and regime (``regime``)."""

_DETAILS = {
    "shallow buffer": "shallow buffer",
    "triple duplicates": "triple duplicates",
    "cubic": "CUBIC region",
    "Reno-friendly": "Reno-friendly region",
    "collapse": "collapse",
}
"""Text in parentheses for regimes that share the name of another limit."""

_ARTICLES = {
    "application": "the",
    RECEIVER_WINDOW: "the",
    "send buffer": "the",
    "pacing rate": "the",
    "receiving application": "the",
    "congestion window": "the",
    LINK: "the",
    "own link": "its",
    "policer": "a",
    "silent receiver": "a",
}


def limit_name(limit: str) -> str:
    """Return the name of a limit with its detail; a limit without a name is returned unchanged."""
    name, detail = LIMIT_NAMES.get(limit, limit), _DETAILS.get(limit)
    return f"{name} ({detail})" if detail else name


def limit_name_with_article(limit: str) -> str:
    """Return the name of a limit for a sentence: ``the link (shallow buffer)``."""
    article = _ARTICLES.get(LIMIT_NAMES.get(limit, limit), "")
    return f"{article} {limit_name(limit)}".strip()
