"""Sentences of verdicts whose cause is no state of the sender: the evidence, then what to change.

Each function takes the rows with one cause and returns the rest of the sentence for each row.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.captures import recommendations
from tcpcast.captures.losses import late_packets, path_rtt_s
from tcpcast.captures.words import digits, percent, rate, time

if TYPE_CHECKING:
    from tcpcast.captures.predicted_gain import Gains
    from tcpcast.captures.table import Table

FULL_QUEUE = 1.0
"""Queueing delay over the least RTT from which on a shorter queue is advised."""


MISSING_ACKS = 0.2
"""Share of missing acknowledgements at and above which the return path is named: 0 in captures of a
Linux kernel without loss of acknowledgements, 0.33 with 30 % lost."""
STRETCHED = 2.4
"""Packets per acknowledgement at and above which many may be missing: 2.6 with 30 % lost, 4.0 on a
return link of 100 kbit/s; receivers send one for two packets."""


def return_path(table: Table) -> list[str]:
    """Return a remark on lost acknowledgements for each row, empty where few or none are missing.

    A receiver sends at most one for each packet: otherwise the identifications of its packets count
    also those of other connections.
    """
    missing, seen = table["missing_acks"], table["acks"] + table["duplicate_acks"]
    many = (missing >= MISSING_ACKS * (missing + seen)) & (table["packets_per_ack"] >= STRETCHED)
    lost = many & (missing + seen <= table["data_packets"])
    return [
        f" {count:,.0f} acknowledgements are missing before the tap, by their IP identifications, "
        f"and {arrived:,} arrived: the return path drops or filters them, so that the window grows "
        "more slowly and in bursts. Look at the queue of the return path."
        if thin
        else ""
        for thin, count, arrived in zip(lost, missing, seen, strict=True)
    ]


def application(gains: Gains) -> list[str]:
    """Return how often the sender ran out of data although its windows had room."""
    table = gains.table
    ends = []
    dry = table["short_segments"] * path_rtt_s(table) / table["duration_s"]
    for at, end in enumerate(recommendations.application(gains)):
        found = f": it ran out of data {digits(float(dry[at]), 2)} times per RTT"
        if table["tap_side"][at] == "sender":
            own = table["unprompted_bytes"][at] / max(table["unique_bytes"][at], 1)
            found += f", and no acknowledgement triggered {percent(own)} of the data"
        else:
            found += "; seen from this tap, a full send buffer looks alike"
        ends.append(found + end)
    return ends


def pacing(gains: Gains) -> list[str]:
    """Return the rate that the sender sets itself."""
    table = gains.table
    return [
        f": data leave at even gaps (they vary by {percent(table['pacing_variation'][at])}) and "
        f"without waiting for acknowledgements, at {rate(now)}. The network is not the limit: "
        "raise the pacing rate, SO_MAX_PACING_RATE of the socket or maxrate of the queue fq."
        for at, now in enumerate(table["goodput_bps"].tolist())
    ]


def reordering(gains: Gains) -> list[str]:
    """Return the number of late packets, and of the retransmissions that they caused."""
    table = gains.table
    ends = []
    counts = zip(late_packets(table).tolist(), table["retransmissions"].tolist(), strict=True)
    for at, (late, again) in enumerate(counts):
        ends.append(
            f": {late:,} packets arrived after later ones without being lost, which made "
            f"{table['duplicate_acks'][at]:,} duplicate acks and {again:,} retransmissions. "
            "First find the parallel links or the queue that reorders one flow."
        )
    return ends


def policer(gains: Gains) -> list[str]:
    """Return the rate above which packets are dropped, and the queue before the drops."""
    table = gains.table
    ends = []
    for at, now in enumerate(table["goodput_bps"].tolist()):
        queue = table["queue_at_loss_s"][at]
        if table["tap_side"][at] != "sender":
            queue = table["queue_delay_s"][at]
        ends.append(
            f": losses come whenever the rate exceeds about {rate(now)} (it varies by "
            f"{percent(table['loss_rate_variation'][at])} between them), without a queue before "
            f"them ({time(queue)}). Less loss elsewhere does not raise the rate: first have the "
            "policed rate raised, or shape to it at the sender, where a queue delays packets "
            "instead of dropping them."
        )
    return ends


def link(gains: Gains) -> list[str]:
    """Return how the link shows that it is full, and the number of flows that share it."""
    table, ends = gains.table, []
    for at, now in enumerate(table["goodput_bps"].tolist()):
        away = table["tap_side"][at] != "sender"
        queue = float(table["queue_delay_s" if away else "queue_at_loss_s"][at])
        found = f" at {rate(now)}"
        if table["sharing_flows"][at] > 1:
            together = max(float(table["sharing_bps"][at]), now)
            found = (
                f" that {table['sharing_flows'][at]} flows share: together {rate(together)}, "
                f"this one {rate(now)}"
            )
        if math.isfinite(queue) and queue > 0:
            when = (
                "packets waited"
                if away
                else "losses came at a full queue, which delayed packets by"
            )
            found += f": {when} {time(queue)}"
            found += " on average in its queue, by their timestamps" if away else ""
        found += ". Only a faster link raises the rate."
        least = float(gains.rtt_min_s[at])
        if queue > FULL_QUEUE * least > 0:
            found += (
                " A smaller buffer or AQM (fq_codel) shortens the queue and costs hardly any rate."
            )
        ends.append(found)
    return ends
