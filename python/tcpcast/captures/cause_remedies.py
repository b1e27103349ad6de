"""Advice on causes that are not sender states: evidence, and what to change.

Each function receives the directions with one cause, and returns a ``Remedy`` for each row.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.captures import limit_remedies
from tcpcast.captures.failed_connections import has_shrunk_window, shrunk_window_clause
from tcpcast.captures.limit_remedies import FASTER_LINK, Remedy
from tcpcast.captures.loss_evidence import path_rtt_s, reordered_packets
from tcpcast.captures.quantity_text import format_digits, format_percent, format_rate, format_time

if TYPE_CHECKING:
    from tcpcast.array_types import Table
    from tcpcast.captures.predicted_gain import GainPredictor

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
        f" According to IP identifications, {count:,.0f} acks were lost before the tap, and "
        f"{arrived:,} arrived. The return path drops or filters acks, so the window grows more "
        "slowly and in bursts. Check the queue of the return path."
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
            rest = "A larger window would also fill up."
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
            f": data are sent at {format_rate(now)}, with even gaps (variation "
            f"{format_percent(table['pacing_variation'][at])}) and without waiting for acks",
            f". The network is not the limit. First {raised} (SO_MAX_PACING_RATE of the socket, or "
            "maxrate of the fq queue).",
            f"{raised}, because the network is not the limit",
        )
        for at, now in enumerate(table["goodput_bps"].tolist())
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


def remedies_for_policer(gains: GainPredictor) -> list[Remedy]:
    """Return the rate above which packets are dropped, and the queue before the drops."""
    table = gains.table
    ends = []
    for at, now in enumerate(table["goodput_bps"].tolist()):
        queue = table["queue_at_loss_s"][at]
        if table["tap_side"][at] != "sender":
            queue = table["queue_delay_s"][at]
        action = "raise the rate of the policer, or shape the traffic at the sender"
        ends.append(
            Remedy(
                f": losses occur whenever the rate exceeds about {format_rate(now)} (this rate "
                "varies "
                f"by {format_percent(table['loss_rate_variation'][at])} between losses), and the "
                f"queueing delay just before a loss is short ({format_time(queue)})",
                f". Fewer losses at other hops do not increase the rate. First {action}. A shaper "
                "delays packets instead of dropping them.",
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
                ": according to timestamps, the queue of the link delayed packets by "
                f"{format_time(queue)} on average"
                if away
                else ": losses occurred with a full queue, which delayed packets by "
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
