"""Advice on slow transfers: the limit, what to change first, and the predicted gain.

Gains are predicted by models with measured inputs. If no model applies, no gain is stated.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tcpcast.answer.limit_names import LIMIT_NAMES, limit_name_with_article
from tcpcast.captures import cause_rules, limit_remedies
from tcpcast.captures.failed_connections import has_shrunk_window, shrunk_window_clause
from tcpcast.captures.limit_remedies import FASTER_LINK, SEND_BUFFER_KEYS, Remedy
from tcpcast.captures.loss_evidence import path_rtt_s, reordered_packets
from tcpcast.captures.predicted_gain import GainPredictor
from tcpcast.captures.quantity_text import (
    format_digits,
    format_percent,
    format_rate,
    format_size_rounded_up,
    format_time,
    sentence_case,
)
from tcpcast.captures.service_advice import service_verdicts
from tcpcast.captures.table import select_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.array_types import Table


MIN_LONG_QUEUE_RATIO = 1.0
"""Minimum ratio of queueing delay to minimum RTT for the advice to shorten the queue."""


MIN_MISSING_ACK_SHARE = 0.2
"""Minimum share of missing ACKs for a remark on the return path. Captures of Linux have a share of
0.33 with 30 % ACK loss, and 0 without ACK loss."""
MIN_STRETCH_ACK_PACKETS = 2.4
"""Minimum number of packets per ACK that indicates many missing ACKs. The number is 2.6 with 30 %
ACK loss, and 4.0 with a return link of 100 kbit/s. Receivers send one ACK per two packets."""


def return_path_remarks(table: Table) -> list[str]:
    """Return a remark on lost ACKs for each row, or "" if few or no ACKs are missing.

    Gaps in the IP identifications indicate missing ACKs. If the total exceeds one ACK per packet,
    other connections use the same identifications, so the row gets no remark.
    """
    missing, seen = table["missing_acks"], table["acks"] + table["duplicate_acks"]
    many = (missing >= MIN_MISSING_ACK_SHARE * (missing + seen)) & (
        table["packets_per_ack"] >= MIN_STRETCH_ACK_PACKETS
    )
    lost = many & (missing + seen <= table["data_packets"])
    return [
        f" Gaps in the IP IDs show that {count:,.0f} acks were lost before the tap; {arrived:,} "
        "acks arrived. The return path drops or filters acks, so the window grows more slowly "
        "and in bursts. Check the queue of the return path."
        if thin
        else ""
        for thin, count, arrived in zip(lost, missing, seen, strict=True)
    ]


def remedies_for_no_response(gains: GainPredictor) -> list[Remedy]:
    """Return the time since which the receiver has been silent, and its last window."""
    table = gains.table
    ends = []
    for at, silence in enumerate(table["receiver_silence_s"].tolist()):
        largest, last = (int(table[name][at]) for name in ("window_max_bytes", "window_last_bytes"))
        found = f": no response in the last {format_time(silence)}"
        action = "check the path, the receiver and the firewalls between them"
        rest = "No window or timer of the sender changes this."
        if has_shrunk_window(largest, last):
            unscaled = math.isnan(table["w_max_pkts"][at])
            found += f", {shrunk_window_clause(largest, last, unscaled=unscaled)}"
            action = "check the receiver, which did not read its data in time"
            rest = "A larger receive buffer would also fill up."
        ends.append(Remedy(found, f". First {action}. {rest}", f"first {action}"))
    return ends


def remedies_for_application(gains: GainPredictor) -> list[Remedy]:
    """Return the evidence that the sender had no data although its windows were open."""
    table = gains.table
    ends = []
    dry = table["short_segments"] * path_rtt_s(table) / table["duration_s"]
    for at, advice in enumerate(limit_remedies.remedies_for_application(gains)):
        found = f": the sender ran out of data {format_digits(float(dry[at]), 2)} times per RTT"
        if table["tap_side"][at] == "sender":
            own = table["unprompted_bytes"][at] / max(table["unique_bytes"][at], 1)
            found += f", and {format_percent(own)} of the data were not triggered by an ack"
        else:
            found += "; at this tap, a full send buffer would look the same"
        ends.append(advice._replace(evidence=found + advice.evidence))
    return ends


def remedies_for_pacing(gains: GainPredictor) -> list[Remedy]:
    """Return the rate at which the sender paces its data."""
    table = gains.table
    raised = "raise the pacing rate"
    return [
        Remedy(
            f": data are sent at {format_rate(now)}, evenly spaced (the gaps vary by "
            f"{format_percent(table['pacing_variation'][at])}), and without waiting for acks",
            f". The network is not the limit. First {raised} (SO_MAX_PACING_RATE of the socket, or "
            "maxrate of the fq queue).",
            f"{raised}, because the network is not the limit",
        )
        for at, now in enumerate(table["goodput_bps"].tolist())
    ]


def remedies_for_constant_flight(gains: GainPredictor) -> list[Remedy]:
    """Return the advice for data in flight that do not grow although the path is free."""
    largest = gains.table["flight_max_bytes"]
    action = (
        "raise the send buffer; if ss -tin at the sender shows no sndbuf_limited, its pacing_rate "
        "or a fixed cwnd is the limit instead"
    )
    return [
        Remedy(
            ": no packet was lost, but the data in flight stayed below "
            f"{format_size_rounded_up(now)}",
            f". First {action}. {limit_remedies.buffer_setting_text(*SEND_BUFFER_KEYS)}",
            action,
        )
        for now in largest.tolist()
    ]


def remedies_for_reordering(gains: GainPredictor) -> list[Remedy]:
    """Return the numbers of late packets, and of retransmissions that late packets caused."""
    table = gains.table
    ends = []
    counts = zip(reordered_packets(table).tolist(), table["retransmissions"].tolist(), strict=True)
    for at, (late, again) in enumerate(counts):
        action = "find out where packets of one flow are reordered, for example on parallel links"
        seen = (
            f": {late:,} packets were reordered, but not lost. They caused "
            f"{table['duplicate_acks'][at]:,} duplicate acks and {again:,} retransmissions"
        )
        ends.append(Remedy(seen, f". First {action}.", action))
    return ends


CODEL_DELAY_S = 0.0045
"""Queueing delay above which CoDel (RFC 8289, target of 5 ms) may have dropped a packet, with a
tolerance for the measurement."""


def remedies_for_policer(gains: GainPredictor) -> list[Remedy]:
    """Return the rate above which packets are dropped, and the queue before the drops."""
    table = gains.table
    ends = []
    for at, now in enumerate(table["goodput_bps"].tolist()):
        queue = table["queue_at_loss_s"][at]
        if table["tap_side"][at] != "sender":
            queue = table["queue_delay_s"][at]
        action = "raise the rate of the policer, or shape the traffic at the sender"
        managed = ""
        if queue >= CODEL_DELAY_S:
            managed = ", as with CoDel or CAKE"
            action = (
                "find out whether the link uses CoDel or CAKE; if it does, only a faster link "
                f"increases the rate; if not, {action}"
            )
        ends.append(
            Remedy(
                f": losses occur whenever the rate exceeds about {format_rate(now)} (this "
                f"threshold varies by {format_percent(table['loss_rate_variation'][at])}), and "
                f"the queueing delay just before a loss is short ({format_time(queue)}){managed}",
                f". Reducing losses at other hops does not increase the rate. First {action}. A "
                "shaper delays packets instead of dropping them.",
                action,
            )
        )
    return ends


def remedies_for_link(gains: GainPredictor) -> list[Remedy]:
    """Return the evidence for a full link, and the number of flows that share it."""
    table, ends = gains.table, []
    for at, now in enumerate(table["goodput_bps"].tolist()):
        away = table["tap_side"][at] != "sender"
        queue = float(table["queue_delay_s" if away else "queue_at_loss_s"][at])
        found = f" at {format_rate(now)}"
        if table["sharing_flows"][at] > 1:
            together = max(float(table["sharing_bps"][at]), now)
            found = (
                f" shared by {table['sharing_flows'][at]} flows ({format_rate(together)} in total, "
                f"{format_rate(now)} for this flow)"
            )
        rest = f". {FASTER_LINK.capitalize()}."
        if math.isfinite(queue) and queue > 0:
            rest = (
                ": TCP timestamps show that the link's queue delayed packets by "
                f"{format_time(queue)} on average"
                if away
                else ": losses occurred when the queue was full and delayed packets by "
                f"{format_time(queue)}"
            ) + rest
        least = float(gains.rtt_min_s[at])
        if queue > MIN_LONG_QUEUE_RATIO * least > 0:
            rest += (
                " A smaller buffer or AQM (fq_codel) shortens the queue and hardly reduces the "
                "rate."
            )
        ends.append(Remedy(found, rest, FASTER_LINK))
    return ends


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
    cause_rules.NO_RESPONSE: remedies_for_no_response,
    cause_rules.APPLICATION: remedies_for_application,
    cause_rules.PACING: remedies_for_pacing,
    cause_rules.SEND_BUFFER: remedies_for_constant_flight,
    cause_rules.RECEIVER: limit_remedies.remedies_for_receiver_window,
    cause_rules.SHORT_TRANSFER: limit_remedies.remedies_for_slow_start,
    cause_rules.REORDERING: remedies_for_reordering,
    cause_rules.POLICER: remedies_for_policer,
    cause_rules.LINK: remedies_for_link,
    cause_rules.LOSS: limit_remedies.remedies_for_loss_recovery,
    cause_rules.TIMEOUT: limit_remedies.remedies_for_timeout,
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
    more = return_path_remarks(table)
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
