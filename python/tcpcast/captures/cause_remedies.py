"""Advice on causes that are not sender states: evidence, and what to change.

Each function receives the directions with one cause, and returns a ``Remedy`` for each row.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.captures import limit_remedies
from tcpcast.captures.limit_remedies import FASTER_LINK, Remedy
from tcpcast.captures.loss_evidence import path_rtt_s, reordered_packets
from tcpcast.captures.quantity_text import digits, percent, rate, time

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
        f"{arrived:,} acks arrived. The return path drops or filters acks, so the window grows "
        "more "
        "slowly and in bursts. Check the queue of the return path."
        if thin
        else ""
        for thin, count, arrived in zip(lost, missing, seen, strict=True)
    ]


def remedies_for_application(gains: GainPredictor) -> list[Remedy]:
    """Return the evidence that the sender had no data although its windows were open."""
    table = gains.table
    ends = []
    dry = table["short_segments"] * path_rtt_s(table) / table["duration_s"]
    for at, advice in enumerate(limit_remedies.remedies_for_application(gains)):
        found = f": the sender ran out of data {digits(float(dry[at]), 2)} times per RTT"
        if table["tap_side"][at] == "sender":
            own = table["unprompted_bytes"][at] / max(table["unique_bytes"][at], 1)
            found += f", and {percent(own)} of the data were not triggered by an ack"
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
            f": data are sent at {rate(now)} at even intervals (variation "
            f"{percent(table['pacing_variation'][at])}), without waiting for acks",
            f". The network is not the limit; {raised} (SO_MAX_PACING_RATE of the socket, or "
            "maxrate of the fq queue).",
            f"the network is not the limit; {raised}",
        )
        for at, now in enumerate(table["goodput_bps"].tolist())
    ]


def remedies_for_reordering(gains: GainPredictor) -> list[Remedy]:
    """Return the numbers of late packets, and of retransmissions that late packets caused."""
    table = gains.table
    ends = []
    counts = zip(reordered_packets(table).tolist(), table["retransmissions"].tolist(), strict=True)
    for at, (late, again) in enumerate(counts):
        action = (
            "find out where packets of one flow are reordered (by parallel links or by a queue)"
        )
        seen = (
            f": reordering of {late:,} packets, not their loss, caused "
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
        action = "raise the rate of the policer, or shape the traffic to its rate at the sender"
        ends.append(
            Remedy(
                f": losses occur whenever the rate exceeds about {rate(now)} (variation "
                f"{percent(table['loss_rate_variation'][at])}), and the queueing delay just "
                f"before a loss is only {time(queue)}",
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
        found = f" at {rate(now)}"
        if table["sharing_flows"][at] > 1:
            together = max(float(table["sharing_bps"][at]), now)
            found = (
                f" shared by {table['sharing_flows'][at]} flows ({rate(together)} in total, "
                f"{rate(now)} for this flow)"
            )
        rest = f". {FASTER_LINK.capitalize()}."
        if math.isfinite(queue) and queue > 0:
            rest = (
                ": according to timestamps, the queue of the link delayed packets by "
                f"{time(queue)} on average"
                if away
                else f": losses occurred with a full queue, which delayed packets by {time(queue)}"
            ) + rest
        least = float(gains.rtt_min_s[at])
        if queue > MIN_LONG_QUEUE_RATIO * least > 0:
            rest += (
                " A smaller buffer or AQM (fq_codel) shortens the queue and hardly reduces the "
                "rate."
            )
        ends.append(Remedy(found, rest, FASTER_LINK))
    return ends
