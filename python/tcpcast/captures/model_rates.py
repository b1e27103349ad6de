"""Rates of models whose inputs are the measured values of a direction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.models.cubic import cubic_response
from tcpcast.models.mathis import mathis_rate_pps
from tcpcast.models.pftk import throughput

if TYPE_CHECKING:
    from tcpcast.captures.table import Table

    Column = np.ndarray[Any, Any]

LINUX_MIN_RTO_MINUS_RTT_S = 0.2
"""Minimum in seconds that Linux adds to the RTT for its RTO; determines T0 without a timeout."""


def rate_columns(table: Table) -> Table:
    """Return as columns: measured rates, and rates of PFTK (31) and the square-root formula.

    p is ``loss_indication_ratio``, ``td`` + ``to`` per packet sent; :func:`model_inputs` returns
    the other inputs. Rates of models are NaN if loss or RTT is unknown; the measured rate of a
    single data packet is NaN.
    """
    ratio, rate = measured_loss_and_rate(table)
    with np.errstate(divide="ignore", invalid="ignore"):
        retransmitted = table["retransmissions"] / table["data_packets"]
    rates = {name: np.full(ratio.size, np.nan) for name in ("pftk_pps", "mathis_pps")}
    given = model_inputs(table)
    known = has_model_inputs(ratio, given)
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


def measured_loss_and_rate(table: Table) -> tuple[Column, Column]:
    """Return loss indications per packet sent and packets sent per second of each direction."""
    sent = table["data_packets"]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (table["td"] + table["to"]) / sent
        return ratio, np.where(has_rate(table), sent / table["duration_s"], np.nan)


def model_inputs(table: Table) -> Table:
    """Return the inputs of path models for each direction, except for its loss.

    RTT is ``rtt_mean_s``. b is ``packets_per_ack``, or 1 if there are more ACKs than packets or
    ``window_grows_by`` is "packets". W_max is ``w_max_pkts``, or unlimited if unknown. T0 is
    ``t0_s``; without a timeout, it is RTT + 200 ms as in Linux.
    """
    rtt, timer, window = table["rtt_mean_s"], table["t0_s"], table["w_max_pkts"]
    measured = np.fmax(table["packets_per_ack"], 1.0)
    grows = table.get("window_grows_by")
    return {
        "rtt_s": rtt,
        "t0_s": np.where(timer > 0, timer, rtt + LINUX_MIN_RTO_MINUS_RTT_S),
        "packets_per_ack": (
            measured if grows is None else np.where(grows == "packets", 1.0, measured)
        ),
        "receiver_window_pkts": np.where(np.isnan(window), np.inf, window),
    }


def pftk_pps(loss: Column, given: Table) -> Column:
    """Return PFTK's rate (31) in packets/s for losses and other :func:`model_inputs`."""
    return throughput(
        rtt_s=given["rtt_s"],
        t0_s=given["t0_s"],
        loss_indication_ratio=loss,
        packets_per_ack=given["packets_per_ack"],
        receiver_window_pkts=given["receiver_window_pkts"],
    ).rate_pps


def cubic_pps(loss: Column, given: Table) -> Column:
    """Return the rate of CUBIC's response function in packets/s, at most W_max/RTT."""
    return cubic_response(
        rtt_s=given["rtt_s"],
        loss_ratio=loss,
        receiver_window_pkts=given["receiver_window_pkts"],
    ).rate_pps


def mathis_pps(loss: Column, given: Table) -> Column:
    """Return the rate of the square-root formula in packets/s, at most W_max/RTT."""
    rate = mathis_rate_pps(
        rtt_s=given["rtt_s"],
        loss_indication_ratio=loss,
        packets_per_ack=given["packets_per_ack"],
        receiver_window_pkts=given["receiver_window_pkts"],
    )
    return np.asarray(rate)


def has_model_inputs(loss: Column, given: Table) -> Column:
    """Return a mask of rows to which models of loss apply: 0 < loss < 1, with RTT and window."""
    window = given["receiver_window_pkts"]
    return np.asarray((loss > 0) & (loss < 1) & (given["rtt_s"] > 0) & (window >= 1))


def has_rate(table: Table) -> Column:
    """Return a mask of rows with more than one data packet; a single packet has no rate."""
    return np.asarray(table["data_packets"] > 1)
