"""Evidence on the origin of losses: the rate between losses, the queue at losses, and growth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.direction_selection import seconds_since
from tcpcast.captures.table import is_tap_at_sender

if TYPE_CHECKING:
    from tcpcast.array_types import Table

    Column = np.ndarray[Any, Any]

MIN_LOSSES = 4
"""Minimum number of loss indications to compare the rates between losses."""
MIN_SEPARATION_RTTS = 3
"""Distance in RTTs below which losses belong to one event."""
MIN_GROWTH_ROUNDS = 12
"""Minimum number of rounds to determine the growth of the rate."""
MAX_SHARING_FLOWS = 1000
"""Maximum number of flows examined for a shared link."""
BIN_RTTS = 10
"""Length in RTTs of a time bin for the total bytes of all flows."""
MIN_BINS = 4
MAX_TOTAL_RATE_VARIATION = 0.2
"""Maximum coefficient of variation of the total rate of flows that share a link. For four flows on
one link, it is 0.07 for the total rate, and 0.3 for each flow."""
MIN_COMMON_LOSS_SHARE = 0.5
"""Minimum share of losses with a loss of another flow within two RTTs, for flows that share a
link."""


def path_rtt_s(table: Table) -> Column:
    """Return the RTT of the whole path: the mean RTT, if it is measured over the whole path.

    If the mean is unknown or a lower bound, the handshake RTT replaces it if it is larger. It is a
    single sample, which may include a queue or a delay of a host.
    """
    mean = table["rtt_mean_s"]
    is_partial = table["rtt_lower_bound"] | np.isnan(mean)
    return np.where(is_partial, np.fmax(mean, table["handshake_rtt_s"]), mean)


def unnecessary_retransmissions(table: Table) -> Column:
    """Return the number of unnecessary retransmissions according to DSACK or timestamps."""
    needless = table["spurious_dsack"] + table["spurious_eifel"]
    return np.asarray(np.minimum(needless, table["retransmissions"]))


def reordered_packets(table: Table) -> Column:
    """Return the number of reordered packets.

    A tap behind the sender captures reordered packets directly. At the sender, SACK reveals
    reordered packets that were not retransmitted; the other ones are unnecessary retransmissions
    without a timeout.
    """
    here = is_tap_at_sender(table)
    again = np.fmax(unnecessary_retransmissions(table) - table["timeouts"], 0)
    return np.asarray(table["out_of_order"] + np.where(here, table["late_packets"] + again, 0))


def loss_origin_columns(table: Table, rounds: Table, losses: Table) -> Table:
    """Return evidence on the origin of losses for each direction, NaN if unknown.

    ``loss_rate_variation`` is the coefficient of variation of the rates acknowledged between
    losses. ``queue_at_loss_s`` is the median RTT above its minimum in the round before a loss.

    Parameters
    ----------
    table, rounds, losses
        The tables of directions, rounds and loss indications.
    """
    size = table["src"].size
    variation, queue = np.full(size, np.nan), np.full(size, np.nan)
    rtt = path_rtt_s(table)
    # Rows of both tables are sorted by direction and time.
    of_rounds, of_losses = (
        np.searchsorted(part["direction"], np.arange(size + 1)) for part in (rounds, losses)
    )
    origin = table["start"][:1]
    times, lost = (seconds_since(part["time"], origin) for part in (rounds, losses))
    for at in np.flatnonzero(np.diff(of_losses) > 0).tolist():
        its = slice(of_rounds[at], of_rounds[at + 1])
        when = lost[of_losses[at] : of_losses[at + 1]]
        if not times[its].size:
            continue
        queue[at] = (
            _median_rtt_at_losses(times[its], rounds["rtt_s"][its], when) - table["rtt_min_s"][at]
        )
        if when.size >= MIN_LOSSES:
            acked = np.cumsum(rounds["acked_bytes"][its])
            variation[at] = _rate_variation_between_losses(
                np.interp(when, times[its], acked), when, rtt[at]
            )
    return {"loss_rate_variation": variation, "queue_at_loss_s": np.fmax(queue, 0)}


def rate_growth_ratios(table: Table, rounds: Table) -> Column:
    """Return the ratio of the rates acknowledged late and early in each transfer.

    The first quarter of the rounds is not used, because it may contain the slow start; the rest is
    divided into halves. NaN with few rounds.
    """
    growth = np.full(table["src"].size, np.nan)
    edges = np.searchsorted(rounds["direction"], np.arange(growth.size + 1))
    for at in np.flatnonzero(np.diff(edges) >= MIN_GROWTH_ROUNDS).tolist():
        first, last = edges[at], edges[at + 1]
        first += (last - first) // 4
        middle = (first + last) // 2
        times = seconds_since(rounds["time"][[first, middle, last - 1]], rounds["time"][first])
        acked = rounds["acked_bytes"]
        early, late = acked[first:middle].sum(), acked[middle : last - 1].sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            growth[at] = (late / early) * times[1] / (times[2] - times[1])
    return growth


def _median_rtt_at_losses(times: Column, rtt: Column, losses: Column) -> float:
    """Return the median RTT at losses; NaN without RTTs."""
    timed = np.isfinite(rtt)
    return (
        float(np.median(rtts_at_losses(times[timed], rtt[timed], losses)))
        if timed.any()
        else np.nan
    )


def rtts_at_losses(times: Column, rtt: Column, losses: Column) -> Column:
    """Return, for each loss, the longer RTT of the round of the loss and the round before.

    ``times`` are the times of the rounds, and ``losses`` the times of the losses, both sorted.
    """
    row = np.fmax(np.searchsorted(times, losses, "right") - 1, 0)
    return np.asarray(np.fmax(rtt[row], rtt[np.fmax(row - 1, 0)]))


def _rate_variation_between_losses(acked: Column, losses: Column, rtt: float) -> float:
    """Return the coefficient of variation of the rates between separate losses."""
    apart = np.diff(losses)
    kept = apart > MIN_SEPARATION_RTTS * rtt
    if kept.sum() < MIN_LOSSES - 1:
        return np.nan
    rates = np.diff(acked)[kept] / apart[kept]
    return float(rates.std() / rates.mean()) if rates.mean() > 0 else np.nan


def sharing_flow_columns(table: Table, rounds: Table, losses: Table, rows: Column) -> Table:
    """Return the number of flows among ``rows`` that share a link, and their total rate in bit/s.

    Flows share a link if they lose packets at the same time, and if their total rate is constant
    although the rate of each flow varies. Otherwise ``sharing_flows`` is 0 and ``sharing_bps`` NaN.

    Parameters
    ----------
    table, rounds, losses
        The tables of directions, rounds and loss indications.
    rows
        The rows that a full link limits.
    """
    size = table["src"].size
    found = {
        "sharing_flows": np.zeros(size, dtype=np.int64),
        "sharing_bps": np.full(size, np.nan),
    }
    if not 2 <= rows.size <= MAX_SHARING_FLOWS:
        return found
    origin = table["start"].min()
    begin = seconds_since(table["start"][rows], origin)
    end = begin + table["duration_s"][rows]
    first, last, rtt = begin.max(), end.min(), float(np.fmax.reduce(table["rtt_mean_s"][rows]))
    if not last - first > MIN_BINS * BIN_RTTS * rtt:
        return found
    bins = np.arange(first, last, BIN_RTTS * rtt)
    its = np.isin(rounds["direction"], rows)
    times = seconds_since(rounds["time"][its], origin)
    acked, _ = np.histogram(times, bins, weights=rounds["acked_bytes"][its])
    lost = np.isin(losses["direction"], rows)
    when, whose = seconds_since(losses["time"][lost], origin), losses["direction"][lost]
    if (
        acked.std() <= MAX_TOTAL_RATE_VARIATION * acked.mean()
        and _share_of_common_losses(when, whose, 2 * rtt) >= MIN_COMMON_LOSS_SHARE
    ):
        found["sharing_flows"][rows] = rows.size
        found["sharing_bps"][rows] = acked.mean() * 8 / (BIN_RTTS * rtt)
    return found


def _share_of_common_losses(times: Column, whose: Column, within: float) -> float:
    """Return the share of losses with a loss of another flow at most ``within`` seconds apart."""
    order = np.argsort(times, kind="stable")
    times, whose = times[order], whose[order]
    near = np.zeros(times.size, dtype=bool)
    for step in range(1, min(8, times.size)):
        pair = (times[step:] - times[:-step] <= within) & (whose[step:] != whose[:-step])
        near[step:] |= pair
        near[:-step] |= pair
    return float(near.mean()) if near.size else 0.0
