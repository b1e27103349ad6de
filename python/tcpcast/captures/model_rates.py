"""Rates of models whose inputs are the measured values of a direction, and their curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.table import INTERVAL_S, select_rows
from tcpcast.models.cubic import cubic_response
from tcpcast.models.mathis import mathis_rate_pps
from tcpcast.models.pftk import (
    LINUX_MIN_RTO_MINUS_RTT_S,
    approximate_rate_pps,
    td_only_leading_rate_pps,
    throughput,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.array_types import Table

    Column = np.ndarray[Any, Any]
    Floats = np.ndarray[Any, np.dtype[np.float64]]
    Counts = np.ndarray[Any, np.dtype[np.int64]]


def measured_and_model_rate_columns(table: Table) -> Table:
    """Return as columns: measured rates, and rates of PFTK (31) and the square-root formula.

    p is ``loss_indication_ratio``, ``td`` + ``to`` per packet sent; :func:`model_inputs` returns
    the other inputs. Rates of models are NaN if loss or RTT is unknown; the measured rate of a
    single data packet is NaN.
    """
    ratio, rate = measured_loss_and_rate(table)
    with np.errstate(divide="ignore", invalid="ignore"):
        retransmitted = table["retransmissions"] / table["data_packets"]
    inputs = model_inputs(table)
    return {
        "loss_indication_ratio": ratio,
        "retransmit_ratio": retransmitted,
        "send_rate_pps": rate,
        "pftk_pps": model_rates_or_nan(pftk_pps, ratio, inputs),
        "mathis_pps": model_rates_or_nan(mathis_pps, ratio, inputs),
    }


def measured_loss_and_rate(table: Table) -> tuple[Column, Column]:
    """Return loss indications per packet sent and packets sent per second of each direction."""
    sent = table["data_packets"]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (table["td"] + table["to"]) / sent
        return ratio, np.where(has_measurable_rate(table), sent / table["duration_s"], np.nan)


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


def model_rates_or_nan(
    model: Callable[[Column, Table], Column], loss: Column, inputs: Table
) -> Column:
    """Return the rate of a model for each row; NaN for rows without :func:`has_model_inputs`."""
    rates = np.full(loss.size, np.nan)
    known = has_model_inputs(loss, inputs)
    if known.any():
        rates[known] = model(loss[known], select_rows(inputs, known))
    return rates


def pftk_pps(loss: Column, inputs: dict[str, Any]) -> Column:
    """Return PFTK's rate (31) in packets/s for losses and other :func:`model_inputs`."""
    return throughput(loss_indication_ratio=loss, **inputs).rate_pps


def cubic_pps(loss: Column, inputs: Table) -> Column:
    """Return the rate of CUBIC's response function in packets/s, at most W_max/RTT."""
    window = inputs["receiver_window_pkts"]
    return cubic_response(
        rtt_s=inputs["rtt_s"], loss_ratio=loss, receiver_window_pkts=window
    ).rate_pps


def mathis_pps(loss: Column, inputs: Table) -> Column:
    """Return the rate of the square-root formula in packets/s, at most W_max/RTT."""
    path = {name: inputs[name] for name in inputs if name != "t0_s"}
    return np.asarray(mathis_rate_pps(loss_indication_ratio=loss, **path))


def has_model_inputs(loss: Column, given: Table) -> Column:
    """Return a mask of rows to which models of loss apply: 0 < loss < 1, with RTT and window."""
    window = given["receiver_window_pkts"]
    return np.asarray((loss > 0) & (loss < 1) & (given["rtt_s"] > 0) & (window >= 1))


def has_measurable_rate(table: Table) -> Column:
    """Return a mask of rows with more than one data packet; a single packet has no rate."""
    return np.asarray(table["data_packets"] > 1)


PFTK_LABEL = "PFTK (31)"


def mean_model_inputs(connections: Table, rows: Counts) -> dict[str, float] | None:
    """Return the inputs of models: means over the directions ``rows``, weighted by packets sent.

    None if no direction has both a round-trip time and a window.
    """
    table = select_rows(connections, rows)
    path, weight = model_inputs(table), table["data_packets"].astype(float)
    known = np.isfinite(path["rtt_s"]) & (path["rtt_s"] > 0) & (weight > 0)
    known &= path["receiver_window_pkts"] >= 1
    if not known.any():
        return None
    return {
        name: float(np.average(column[known], weights=weight[known]))
        for name, column in path.items()
    }


def model_curves(loss: Floats, path: dict[str, float]) -> dict[str, Floats]:
    """Return the packets per interval of each model against loss, by the name of the model.

    Parameters
    ----------
    loss
        Loss indications per packet, above 0 and below 1, any shape.
    path
        Inputs as returned by :func:`mean_model_inputs`.
    """
    given: dict[str, Any] = path | {"loss_indication_ratio": loss}
    of_loss = {name: given[name] for name in given if name not in {"t0_s", "receiver_window_pkts"}}
    rates = {
        PFTK_LABEL: throughput(**given).rate_pps,
        "PFTK, approximate (32)": approximate_rate_pps(**given),
        "TD only (20)": td_only_leading_rate_pps(**of_loss),
    }
    return {name: np.asarray(rate) * INTERVAL_S for name, rate in rates.items()}
