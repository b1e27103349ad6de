"""Models and measurements side by side, for a whole capture and for intervals of 100 s.

The method follows section 3 of the PFTK paper, which compares predicted and sent packets and
defines the average error. p is measured per capture or per interval. RTT, T0, b and W_max are
always measured over the whole capture (:func:`tcpcast.captures.model_rates.model_inputs`).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.direction_selection import seconds_since
from tcpcast.captures.model_rates import (
    cubic_pps,
    has_model_inputs,
    mathis_pps,
    model_inputs,
    model_rates_or_nan,
    pftk_pps,
)
from tcpcast.captures.table import INTERVAL_S, select_rows
from tcpcast.models.bbr import bbr_bound
from tcpcast.models.cardwell import cardwell_latency
from tcpcast.models.domain import EXPECTED_LOSSES, is_in_domain
from tcpcast.models.pftk import (
    approximate_rate_pps,
    path_domain_values,
    td_only_rate_pps,
    window_chain,
)
from tcpcast.process.errors import DomainError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.array_types import Table
    from tcpcast.captures.capture_tables import CaptureTables

    Column = np.ndarray[Any, Any]

UNNECESSARY_RTO_RETRANS_SHARE = 0.5
"""Among the segments that a sender without SACK retransmits after an RTO, the assumed share that
had already arrived. In simulations with 2 to 8 % loss, the share is 40 to 60 %."""

NO_LOSS_CLASS, TD_CLASS = "-", "TD"
"""Classes of intervals without timeouts. The other classes are T0 (single timeouts), T1 (two
timeouts in sequence) etc."""


def _window_chain_pps(loss: Column, path: Table) -> Column:
    """Return the rate by the Markov chain for each direction, with b rounded to an integer."""
    rates = np.full(loss.size, np.nan)
    for row, p in enumerate(loss.tolist()):
        rtt, t0, acknowledged, window = (float(path[name][row]) for name in PATH_INPUTS)
        packets_per_ack = max(1, round(acknowledged))
        # The chain has too many states if the window is unlimited and the loss is very small.
        with contextlib.suppress(DomainError):
            chain = window_chain(
                loss_probability=p, packets_per_ack=packets_per_ack, receiver_window_pkts=window
            )
            rates[row] = chain.rate_pps(rtt_s=rtt, t0_s=t0)
    return rates


def _td_only_pps(loss: Column, path: Table) -> Column:
    return td_only_rate_pps(
        rtt_s=path["rtt_s"],
        loss_indication_ratio=loss,
        packets_per_ack=path["packets_per_ack"],
    )


PATH_INPUTS = ("rtt_s", "t0_s", "packets_per_ack", "receiver_window_pkts")
"""Inputs from :func:`tcpcast.captures.model_rates.model_inputs`, in the order of chain
arguments."""

LOSS_MODELS: dict[str, Callable[[Column, Table], Column]] = {
    "pftk": pftk_pps,
    "pftk_share": pftk_pps,
    # The window grows by acknowledged packets (RFC 3465, Linux).
    "pftk_b1": lambda loss, path: pftk_pps(loss, path | {"packets_per_ack": np.ones(loss.size)}),
    "pftk_approx": lambda loss, path: approximate_rate_pps(loss_indication_ratio=loss, **path),
    "chain": _window_chain_pps,
    "td_only": _td_only_pps,
    "mathis": mathis_pps,
    "cubic": cubic_pps,
}
"""Loss-based models of the rate, in the order of the report."""

DOMAIN_ENGINE = {
    "pftk": "pftk",
    "pftk_share": "pftk",
    "pftk_b1": "pftk",
    "pftk_approx": "pftk-approx",
    "chain": "pftk",
    "td_only": "td-only",
    "mathis": "mathis",
    "cubic": "cubic-response",
    "bbr_bound": "bbr-bound",
    "cardwell": "cardwell",
}
"""Engine whose domain applies to each model; the Markov chain assumes PFTK's losses and
timeouts."""

MODEL_LABELS = {
    "pftk": "PFTK, full (31)",
    "pftk_share": "PFTK (31), measured share of timeouts",
    "pftk_b1": "PFTK (31), window grows by bytes acked",
    "pftk_approx": "PFTK, approximate (32)",
    "chain": "PFTK, window as a Markov chain",
    "td_only": "PFTK, triple duplicates only (19)",
    "mathis": "square-root formula, at most W_max/RTT",
    "cubic": "CUBIC's response function",
    "bbr_bound": "BBR's bound: link rate",
    "cardwell": "Cardwell et al., including slow start",
}
"""Names of the models in reports, by the prefix of their columns."""


def model_rates_by_direction(capture: CaptureTables, rows: Column) -> Table:
    """Return the rate of each model for directions, one row per direction.

    Parameters
    ----------
    capture
        The capture.
    rows
        Rows of ``connections``.

    Returns
    -------
    dict
        ``direction``; the inputs of the models (``loss_indication_ratio``, ``rtt_s``, ``t0_s``,
        ``packets_per_ack``, ``receiver_window_pkts``); the measured ``send_rate_pps``; and one
        column per model in packets/s, including retransmissions, NaN if the model does not apply.
        ``bbr_bound_pps`` is the link rate, if known. ``cardwell_pps`` is the number of packets sent
        divided by the latency in Cardwell's model. Columns such as ``pftk_trusted`` are True if the
        inputs are in the domain of the model.
    """
    table = select_rows(capture.connections, rows)
    path, loss = model_inputs(table), table["loss_indication_ratio"]
    known = has_model_inputs(loss, path)
    rates = _loss_model_rates(table, loss, path)
    rates["bbr_bound"] = _bbr_bound_pps(table)
    rates["cardwell"] = np.full(rows.size, np.nan)
    if known.any():
        of_known, given = (select_rows(part, known) for part in (table, path))
        rates["cardwell"][known] = _cardwell_pps(of_known, loss[known], given)
    return {
        "direction": rows,
        "loss_indication_ratio": loss,
        **path,
        "send_rate_pps": table["send_rate_pps"],
        **{f"{name}_pps": column for name, column in rates.items()},
        **{f"{name}_trusted": column for name, column in _domain_masks(table, path, loss).items()},
    }


def _domain_masks(table: Table, path: Table, loss: Column) -> Table:
    """Return, for each model, a mask of rows with inputs in its domain."""
    known = has_model_inputs(loss, path)
    values = path_domain_values(
        loss_indication_ratio=loss[known], **{name: path[name][known] for name in PATH_INPUTS}
    )
    values[EXPECTED_LOSSES] = loss[known] * table["data_packets"][known]
    found = {name: np.ones(loss.size, dtype=np.bool_) for name in MODEL_LABELS}
    for name, column in found.items():
        column[known] = is_in_domain(DOMAIN_ENGINE[name], **values)
    return found


def _bbr_bound_pps(table: Table) -> Column:
    """Return BBR's upper bound of the send rate; NaN if the link rate is unknown."""
    found = np.full(table["bytes"].size, np.nan)
    link = table.get("bottleneck_rate_bps", found)
    loss = measured_loss_ratio(table)
    known = (link > 0) & (loss < 1) & (table["segment_bytes"] > 0) & (table["rtt_min_s"] > 0)
    if known.any():
        bound = bbr_bound(
            bottleneck_pps=link[known] / (8 * table["segment_bytes"][known]),
            rtt_s=table["rtt_min_s"][known],
            loss_ratio=loss[known],
        )
        found[known] = bound.rate_pps / (1 - loss[known])
    return found


def measured_loss_ratio(table: Table) -> Column:
    """Return lost packets per packet sent, measured by two taps or estimated.

    The estimate is the number of retransmissions without unnecessary ones. Without SACK, all
    packets in flight at an RTO are retransmitted; the share
    :data:`UNNECESSARY_RTO_RETRANS_SHARE` is assumed unnecessary.
    """
    needless = table["spurious_dsack"] + table["spurious_eifel"] + table["dsack_unexplained"]
    needless = needless + np.where(
        table["sack"], 0.0, UNNECESSARY_RTO_RETRANS_SHARE * table["after_timeout"]
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.maximum(table["retransmissions"] - needless, 0) / table["data_packets"]
    exact = table.get("loss_ratio_between")
    return np.asarray(ratio if exact is None else np.where(np.isfinite(exact), exact, ratio))


def _cardwell_pps(table: Table, loss: Column, path: dict[str, Any]) -> Column:
    """Return packets sent divided by the latency in Cardwell's model, which includes slow start."""
    sent = table["data_packets"].astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.ceil(sent * table["unique_bytes"] / table["bytes"])
    window = np.fmax(np.nan_to_num(table["initial_window_pkts"], nan=1.0), 1.0)
    latency = cardwell_latency(
        size_pkts=np.fmax(size, 1.0),
        loss_ratio=loss,
        initial_window_pkts=window,
        connection=False,
        **path,
    ).latency_s
    return np.asarray(sent / latency)


def model_intervals(capture: CaptureTables, rows: Column) -> Table:
    """Return the packets sent and the packets predicted in each interval of 100 s.

    Parameters
    ----------
    capture
        The capture.
    rows
        Rows of ``connections``.

    Returns
    -------
    dict
        The columns of :func:`measured_intervals`, and one column per model, for example
        ``pftk_pkts``: the model's rate times the interval length.
    """
    measured = measured_intervals(capture, rows)
    loss, length = measured["loss_indication_ratio"], measured["length_s"]
    at = measured["direction"]
    path = model_inputs(select_rows(capture.connections, at))
    kept = select_rows(capture.intervals, np.isin(capture.intervals["direction"], rows))
    predicted = {
        f"{name}_pkts": rate * length for name, rate in _loss_model_rates(kept, loss, path).items()
    }
    return measured | predicted


def _loss_model_rates(table: Table, loss: Column, path: Table) -> Table:
    """Return the rate of each loss-based model; ``table`` has the columns ``td`` and ``to``."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = {"timeout_share": table["to"] / (table["td"] + table["to"])}
    return {
        name: model_rates_or_nan(rate, loss, path | share if name == "pftk_share" else path)
        for name, rate in LOSS_MODELS.items()
    }


def measured_intervals(capture: CaptureTables, rows: Column) -> Table:
    """Return the intervals of 100 s of directions, each with its class as in the PFTK paper.

    Parameters
    ----------
    capture
        The capture.
    rows
        Rows of ``connections``.

    Returns
    -------
    dict
        ``direction``; ``start_s`` since the direction's first data; ``length_s`` (shorter for the
        last interval); ``class`` (``-`` without loss, ``TD`` with loss but without timeouts, ``T0``
        with single timeouts, ``T1`` with two timeouts in sequence, etc.); ``loss_indication_ratio``
        of the interval; and ``sent_pkts``.
    """
    kept = np.isin(capture.intervals["direction"], rows)
    table = select_rows(capture.intervals, kept)
    at = table["direction"]
    of_all = select_rows(capture.connections, at)
    sent = table["data_packets"].astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = (table["td"] + table["to"]) / sent
    # The class of each interval by its longest sequence of timeouts.
    deepest = _longest_timeout_sequences(capture, table)
    names = [
        f"T{depth - 1}" if depth > 0 else TD_CLASS if indications else NO_LOSS_CLASS
        for depth, indications in zip(deepest, table["td"] + table["to"], strict=True)
    ]
    return {
        "direction": at,
        "start_s": table["start_s"],
        "length_s": np.clip(of_all["duration_s"] - table["start_s"], 0, INTERVAL_S),
        "class": np.array(names, dtype=np.str_),
        "loss_indication_ratio": loss,
        "sent_pkts": sent,
    }


def _longest_timeout_sequences(capture: CaptureTables, table: Table) -> Column:
    """Return the length of the longest sequence of timeouts in each interval.

    The source is the list of retransmissions, or the counters if the list is incomplete.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        implied = np.ceil(table["timeouts"] / np.fmax(table["to"], 1))
    again = capture.retransmissions
    timer = again["backoff"] > 0
    direction = again["direction"][timer]
    begin = capture.connections["start"][direction]
    index = np.floor(seconds_since(again["time"][timer], begin) / INTERVAL_S)
    places = {
        key: place
        for place, key in enumerate(
            zip(table["direction"].tolist(), (table["start_s"] // INTERVAL_S).tolist(), strict=True)
        )
    }
    deepest = np.where(table["timeouts"] > 0, implied, 0).astype(np.int64)
    seen = zip(direction.tolist(), index.tolist(), again["backoff"][timer].tolist(), strict=True)
    for of, number, depth in seen:
        place = places.get((of, int(number)))
        if place is not None:
            deepest[place] = max(deepest[place], depth)
    return deepest


def model_errors(intervals: Table) -> Table:
    """Return PFTK's average error of each model over the intervals of each direction.

    The error is the mean of abs(predicted - sent) / sent over complete intervals of 100 s with at
    least one loss indication. A direction shorter than 100 s has one interval.

    Parameters
    ----------
    intervals
        Intervals as returned by :func:`model_intervals`.

    Returns
    -------
    dict
        ``direction``, the number of ``intervals`` used, and one column per model: 0.3 is an error
        of 30 %. NaN without such an interval.
    """
    directions = np.unique(intervals["direction"])
    # A mask of complete or sole intervals of directions with a model.
    whole = intervals["length_s"] >= INTERVAL_S
    alone = ~np.isin(intervals["direction"], intervals["direction"][whole])
    counted = np.asarray((whole | alone) & np.isfinite(intervals["pftk_pkts"]))
    found: Table = {
        "direction": directions,
        "intervals": np.zeros(directions.size, dtype=np.int64),
        **{name: np.full(directions.size, np.nan) for name in LOSS_MODELS},
    }
    for place, direction in enumerate(directions):
        kept = counted & (intervals["direction"] == direction)
        found["intervals"][place] = kept.sum()
        for name in LOSS_MODELS:
            predicted, sent = intervals[f"{name}_pkts"][kept], intervals["sent_pkts"][kept]
            errors = np.abs(predicted - sent) / sent
            if np.isfinite(errors).any():
                found[name][place] = np.nanmean(errors)
    return found


@dataclass(frozen=True, slots=True)
class ModelResults:
    """Results of models for one direction.

    ``row`` is the row index in ``connections``, ``rates`` the row of
    :func:`model_rates_by_direction`, and ``intervals`` and ``errors`` the tables of
    :func:`model_intervals` and :func:`model_errors`.
    """

    row: int
    rates: dict[str, Any]
    intervals: Table
    errors: Table


def model_results(capture: CaptureTables, order: Column) -> list[ModelResults]:
    """Return the results of models for the directions with loss, in order.

    Parameters
    ----------
    capture
        The capture.
    order
        Rows of ``connections``.
    """
    found = []
    for row in order[capture.connections["loss_indication_ratio"][order] > 0].tolist():
        rows = np.array([row])
        intervals = model_intervals(capture, rows)
        rates = {
            name: column[0] for name, column in model_rates_by_direction(capture, rows).items()
        }
        found.append(ModelResults(row, rates, intervals, model_errors(intervals)))
    return found


def model_tables(capture: CaptureTables) -> dict[str, Table]:
    """Return the tables ``models``, ``model_intervals`` and ``model_errors`` of all directions.

    ``direction`` is a row index of ``connections``.
    """
    every = np.arange(capture.connections["src"].size)
    intervals = model_intervals(capture, every)
    return {
        "models": model_rates_by_direction(capture, every),
        "model_intervals": intervals,
        "model_errors": model_errors(intervals),
    }
