"""Advice on slow transfers: the limit, what to change first, and the predicted gain.

Gains are predicted by models with measured inputs. If no model applies, no gain is stated.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tcpcast.captures import cause_remedies, cause_rules, limit_remedies
from tcpcast.captures.predicted_gain import GainPredictor
from tcpcast.captures.quantity_text import format_percent, sentence_case
from tcpcast.captures.service_advice import service_verdicts
from tcpcast.captures.table import select_rows
from tcpcast.limit_names import LIMIT_NAMES, limit_name_with_article

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.array_types import Table
    from tcpcast.captures.limit_remedies import Remedy

REMEDIES_BY_LIMIT: dict[str, Callable[[GainPredictor], list[Remedy]]] = {
    "application": limit_remedies.remedies_for_application,
    "receiver_window": limit_remedies.remedies_for_receiver_window,
    "send_buffer": limit_remedies.remedies_for_send_buffer,
    "slow_start": limit_remedies.remedies_for_slow_start,
    "congestion_window": limit_remedies.remedies_for_congestion_window,
    "loss_recovery": limit_remedies.remedies_for_loss_recovery,
    "timeout": limit_remedies.remedies_for_timeout,
    "bottleneck": limit_remedies.remedies_for_bottleneck,
    "unknown": limit_remedies.remedies_for_unknown,
}
"""Function that returns the remedies, for each limit that is a state of the sender."""

REMEDIES_BY_CAUSE: dict[str, Callable[[GainPredictor], list[Remedy]]] = {
    cause_rules.NO_RESPONSE: cause_remedies.remedies_for_no_response,
    cause_rules.APPLICATION: cause_remedies.remedies_for_application,
    cause_rules.PACING: cause_remedies.remedies_for_pacing,
    cause_rules.RECEIVER: limit_remedies.remedies_for_receiver_window,
    cause_rules.SHORT_TRANSFER: limit_remedies.remedies_for_slow_start,
    cause_rules.REORDERING: cause_remedies.remedies_for_reordering,
    cause_rules.POLICER: cause_remedies.remedies_for_policer,
    cause_rules.LINK: cause_remedies.remedies_for_link,
    cause_rules.LOSS: limit_remedies.remedies_for_loss_recovery,
}
"""Function that returns evidence and remedy, for each cause that needs evidence."""

MIN_SECOND_LIMIT_SHARE = 0.2
"""Minimum share of the time for a second limit to be named."""


NO_SHARE_TEXTS = ("", "", "")
"""Texts of a direction without known shares of the time."""


class NamedLimit(NamedTuple):
    """The limit of a direction: its key, its share of the time, and the remedy.

    ``share_text`` is "" if unknown. ``second_limit`` names a second limit with a large share, and
    ``second_action`` is the action against it, "" if it is the action against the first limit.
    Without a second limit, both are "".
    """

    limit: str
    share_text: str
    second_limit: str
    remedy: Remedy
    second_action: str


def limit_of_each_direction(table: Table) -> list[NamedLimit]:
    """Return the limit of each row of ``connections``; ``limited_by`` is required.

    A cause with evidence takes precedence over the sender's state with the largest share of the
    time.
    """
    keys = cause_or_limit_keys(table)
    evident = has_evident_cause(table)
    result: list[Any] = [None] * keys.size
    for of_cause, remedies in ((True, REMEDIES_BY_CAUSE), (False, REMEDIES_BY_LIMIT)):
        for limit, remedy in remedies.items():
            rows = np.flatnonzero((keys == limit) & (evident == of_cause))
            if not rows.size:
                continue
            part = select_rows(table, rows)
            shares = (
                [NO_SHARE_TEXTS] * rows.size if of_cause else _shares_and_second_limit(part, limit)
            )
            found = zip(rows.tolist(), shares, remedy(GainPredictor.from_table(part)), strict=True)
            for row, (share, also, second), each in found:
                then = (
                    _action_against_second_limit(table, row, second, each.action) if second else ""
                )
                result[row] = NamedLimit(limit, share, also, each, then)
    return result


def limit_shares_text(found: NamedLimit) -> str:
    """Return the limit's share of the time and the second limit in parentheses, or ""."""
    shares = "; ".join(filter(None, (found.share_text, found.second_limit)))
    return f" ({shares})" if shares else ""


def _action_against_second_limit(table: Table, row: int, limit: str, first: str) -> str:
    """Return the action against the second limit of a row as a clause, unless it is ``first``."""
    part = select_rows(table, [row])
    remedy = REMEDIES_BY_LIMIT[limit](GainPredictor.from_table(part))[0]
    return (
        "" if remedy.action == first else f"for {limit_name_with_article(limit)}, {remedy.action}"
    )


def advise_each_direction(table: Table, services: Table | None = None) -> np.ndarray[Any, Any]:
    """Return the advice for each row of ``connections``; empty if the limit is unknown.

    For directions of services, the advice is the verdict on the service.
    """
    said = np.full(table["src"].size, "", dtype=object)
    if "limited_by" not in table:
        return said
    more = cause_remedies.return_path_remarks(table)
    for row, found in enumerate(limit_of_each_direction(table)):
        start = f"Limited by {limit_name_with_article(found.limit)}{limit_shares_text(found)}"
        start = "Limit unknown" if found.limit == "unknown" else start
        remedy, then = found.remedy, found.second_action
        second = f" {sentence_case(then)}." if then else ""
        said[row] = f"{start}{remedy.evidence}{remedy.rest}{second}{more[row]}"
    if not services:
        return said
    shared = np.array(["", *service_verdicts(services)], dtype=object)[table["service"] + 1]
    return np.where(table["service"] >= 0, shared, said)


def cause_or_limit_keys(table: Table) -> np.ndarray[Any, Any]:
    """Return the cause of each row if there is evidence for a cause, otherwise ``limited_by``."""
    if "cause" not in table:
        return table["limited_by"]
    return np.where(has_evident_cause(table), table["cause"], table["limited_by"])


def has_evident_cause(table: Table) -> np.ndarray[Any, Any]:
    """Return a mask of rows with evidence for a cause that is not a state of the sender."""
    if "cause" not in table:
        return np.zeros(table["src"].size, dtype=bool)
    return np.asarray(table["cause_evident"] & np.isin(table["cause"], list(REMEDIES_BY_CAUSE)))


def share_of_main_limit(table: Table) -> np.ndarray[Any, Any]:
    """Return, per row, the share of time in which its limit ``limited_by`` applied, or NaN."""
    found = np.full(table["src"].size, np.nan)
    for limit in REMEDIES_BY_LIMIT:
        rows = table["limited_by"] == limit
        found[rows] = table[f"share_{limit}"][rows]
    return found


def _shares_and_second_limit(table: Table, limit: str) -> list[tuple[str, str, str]]:
    """Return the share of the time and the second limit as texts, and the second limit's key.

    Without a second limit with a large share, its text and its key are "".
    """
    if limit == "unknown":
        return [NO_SHARE_TEXTS] * table["src"].size
    first = table[f"share_{limit}"]
    others = [name for name in REMEDIES_BY_LIMIT if name not in (limit, "unknown")]
    rest = np.nan_to_num(np.stack([table[f"share_{name}"] for name in others]))
    second = rest.argmax(axis=0)
    said = []
    for at, value in enumerate(first.tolist()):
        if not math.isfinite(value):
            said.append(NO_SHARE_TEXTS)
            continue
        also = float(rest[second[at], at])
        key = others[second[at]] if also >= MIN_SECOND_LIMIT_SHARE else ""
        more = f"{LIMIT_NAMES[key]} {format_percent(also)}" if key else ""
        said.append((f"{format_percent(value)} of the time", more, key))
    return said
