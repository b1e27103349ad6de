"""Rates of models, fed with the measured values of a direction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.models.cubic import cubic_response
from tcpcast.models.mathis import mathis_rate_pps
from tcpcast.models.pftk import throughput

if TYPE_CHECKING:
    from tcpcast.captures.table import Table

    Column = np.ndarray[Any, Any]

LEAST_VARIATION_S = 0.2
"""The least that Linux adds to the RTT for its RTO: T0 where a capture shows no timeout."""


def modelled(table: Table) -> Table:
    """Return measured rates, and those of PFTK (31) and of the square-root law, as columns.

    p is ``loss_indication_ratio``: ``td`` + ``to`` by packets sent; the rest is :func:`fed`. A
    direction without loss, or without RTT, has no model, and one data packet no rate: NaN.
    """
    ratio, rate = measured(table)
    with np.errstate(divide="ignore", invalid="ignore"):
        retransmitted = table["retransmissions"] / table["data_packets"]
    rates = {name: np.full(ratio.size, np.nan) for name in ("pftk_pps", "mathis_pps")}
    given = fed(table)
    known = usable(ratio, given)
    if known.any():
        path = {name: column[known] for name, column in given.items()}
        rates["pftk_pps"][known] = pftk_pps(ratio[known], path)
        rates["mathis_pps"][known] = mathis_pps(ratio[known], path)
    return {
        "loss_indication_ratio": ratio,
        "retransmit_ratio": retransmitted,
        "send_rate_pps": rate,
        **rates,
    }


def measured(table: Table) -> tuple[Column, Column]:
    """Return loss indications by packets sent, and packets sent in a second, of each direction."""
    sent = table["data_packets"]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (table["td"] + table["to"]) / sent
        return ratio, np.where(has_rate(table), sent / table["duration_s"], np.nan)


def fed(table: Table) -> Table:
    """Return the inputs of path models for each direction, apart from its loss.

    RTT is ``rtt_mean_s``, b ``packets_per_ack`` (1 where acks are more than packets, and where
    ``window_grows_by`` says that the window grows by packets acknowledged, not by acks), W_max
    ``w_max_pkts`` (unlimited where the capture does not say). T0 is ``t0_s``, or RTT + 200 ms as
    Linux would have it where there was no timeout.
    """
    rtt, timer, window = table["rtt_mean_s"], table["t0_s"], table["w_max_pkts"]
    measured = np.fmax(table["packets_per_ack"], 1.0)
    grows = table.get("window_grows_by")
    return {
        "rtt_s": rtt,
        "t0_s": np.where(timer > 0, timer, rtt + LEAST_VARIATION_S),
        "packets_per_ack": (
            measured if grows is None else np.where(grows == "packets", 1.0, measured)
        ),
        "receiver_window_pkts": np.where(np.isnan(window), np.inf, window),
    }


def pftk_pps(loss: Column, given: Table) -> Column:
    """Return PFTK's rate (31) for losses and what :func:`fed` gives, in packets/s."""
    return throughput(
        rtt_s=given["rtt_s"],
        t0_s=given["t0_s"],
        loss_indication_ratio=loss,
        packets_per_ack=given["packets_per_ack"],
        receiver_window_pkts=given["receiver_window_pkts"],
    ).rate_pps


def cubic_pps(loss: Column, given: Table) -> Column:
    """Return the rate of CUBIC's response function, at most W_max/RTT, in packets/s."""
    return cubic_response(
        rtt_s=given["rtt_s"],
        loss_ratio=loss,
        receiver_window_pkts=given["receiver_window_pkts"],
    ).rate_pps


def mathis_pps(loss: Column, given: Table) -> Column:
    """Return the rate of the square-root law, at most W_max/RTT, in packets/s."""
    rate = mathis_rate_pps(
        rtt_s=given["rtt_s"],
        loss_indication_ratio=loss,
        packets_per_ack=given["packets_per_ack"],
        receiver_window_pkts=given["receiver_window_pkts"],
    )
    return np.asarray(rate)


def usable(loss: Column, given: Table) -> Column:
    """Return where models of loss apply: a loss above 0 and below 1, an RTT, a window."""
    window = given["receiver_window_pkts"]
    return np.asarray((loss > 0) & (loss < 1) & (given["rtt_s"] > 0) & (window >= 1))


def has_rate(table: Table) -> Column:
    """Return where there is more than one data packet: a single one has no rate."""
    return np.asarray(table["data_packets"] > 1)
