"""What models say of a direction, fed with what was measured in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.models.mathis import mathis_rate_pps
from tcpcast.models.pftk import throughput

if TYPE_CHECKING:
    from tcpcast.captures.table import Table

    Column = np.ndarray[Any, Any]

LEAST_VARIATION_S = 0.2
"""What Linux adds to the RTT for its timer, at least: T0 where a capture shows no timeout."""


def modelled(table: Table) -> Table:
    """Return measured rates, and those of PFTK (31) and of the square-root law, as columns.

    p is ``loss_indication_ratio``: ``td`` + ``to`` by packets sent; RTT is ``rtt_mean_s``, b
    ``packets_per_ack`` (1 where acks are more than packets), W_max ``w_max_pkts`` (unlimited where
    the capture does not say). T0 is ``t0_s``, or RTT + 200 ms as Linux would have it where there
    was no timeout. A direction without loss, or without RTT, has no model: NaN.
    """
    sent = packets_sent(table)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (table["td"] + table["to"]) / sent
        again = table["retransmissions"] / table["data_packets"]
        rate = sent / table["duration_s"]
    rates = {name: np.full(sent.size, np.nan) for name in ("pftk_pps", "mathis_pps")}
    window = np.where(np.isnan(table["w_max_pkts"]), np.inf, table["w_max_pkts"])
    fed = (ratio > 0) & (ratio < 1) & (table["rtt_mean_s"] > 0) & (window >= 1)
    if fed.any():
        rtt = table["rtt_mean_s"][fed]
        timer = table["t0_s"][fed]
        acknowledged = np.fmax(table["packets_per_ack"][fed], 1.0)
        rates["pftk_pps"][fed] = throughput(
            rtt_s=rtt,
            t0_s=np.where(timer > 0, timer, rtt + LEAST_VARIATION_S),
            loss_indication_ratio=ratio[fed],
            packets_per_ack=acknowledged,
            receiver_window_pkts=window[fed],
        ).rate_pps
        rates["mathis_pps"][fed] = mathis_rate_pps(
            rtt_s=rtt,
            loss_indication_ratio=ratio[fed],
            packets_per_ack=acknowledged,
            receiver_window_pkts=window[fed],
        )
    return {
        "loss_indication_ratio": ratio,
        "retransmit_ratio": again,
        "send_rate_pps": rate,
        **rates,
    }


def packets_sent(table: Table) -> Column:
    """Return data packets on the wire: by bytes where the tap saw segments larger than the MSS."""
    full = np.fmax(table["segment_bytes"], 1)
    by_bytes = np.ceil(table["bytes"] / full)
    return np.where(table["super_segments"] > 0, by_bytes, table["data_packets"])
