"""Where losses come from: the rate between them, and the queue at each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.flows import since

if TYPE_CHECKING:
    from tcpcast.captures.table import Table

    Column = np.ndarray[Any, Any]

FEWEST = 4
"""Fewer loss indications say nothing of the rate between them."""
APART_RTTS = 3
"""Losses that are nearer are one event."""
MOST_SHARING = 1000
"""More flows are not examined together."""
BIN_RTTS = 10
"""Round trips over which the bytes of all flows are added up."""
LEAST_BINS = 4
CONSTANT = 0.2
"""Variation of the rate of all flows together: four at one link have 0.07, each of them 0.3."""
TOGETHER = 0.5
"""Share of the losses that have one of another flow within two RTTs."""


def path_rtt_s(table: Table) -> Column:
    """Return the RTT of the whole path: the mean, or the handshake's if that is longer."""
    return np.asarray(np.fmax(table["rtt_mean_s"], np.nan_to_num(table["handshake_rtt_s"])))


def loss_evidence(table: Table, rounds: Table, losses: Table) -> Table:
    """Return evidence on the origin of losses for each direction, NaN where it is unseen.

    ``loss_rate_variation`` is the standard deviation over the mean of the rates acknowledged
    between losses; ``queue_at_loss_s`` the median RTT above its minimum in the round before a loss.

    Parameters
    ----------
    table, rounds, losses
        The tables of directions, rounds and loss indications.
    """
    size = table["src"].size
    variation, queue = np.full(size, np.nan), np.full(size, np.nan)
    rtt = path_rtt_s(table)
    # Rows of both tables are in the order of directions, and of time within.
    of_rounds, of_losses = (_bounds(part["direction"], size) for part in (rounds, losses))
    origin = table["start"][:1]
    times, lost = (since(part["time"], origin) for part in (rounds, losses))
    for at in np.flatnonzero(np.diff(of_losses) > 0).tolist():
        its = slice(of_rounds[at], of_rounds[at + 1])
        when = lost[of_losses[at] : of_losses[at + 1]]
        if not times[its].size:
            continue
        queue[at] = _queue(times[its], rounds["rtt_s"][its], when) - table["rtt_min_s"][at]
        if when.size >= FEWEST:
            acked = np.cumsum(rounds["acked_bytes"][its])
            variation[at] = _variation(np.interp(when, times[its], acked), when, rtt[at])
    return {"loss_rate_variation": variation, "queue_at_loss_s": np.fmax(queue, 0)}


def _bounds(directions: Column, size: int) -> Column:
    return np.searchsorted(directions, np.arange(size + 1))


def _queue(times: Column, rtt: Column, losses: Column) -> float:
    """Return the median over the losses of the longer RTT of their round and the one before."""
    timed = np.isfinite(rtt)
    if not timed.any():
        return np.nan
    times, rtt = times[timed], rtt[timed]
    row = np.fmax(np.searchsorted(times, losses, "right") - 1, 0)
    return float(np.median(np.fmax(rtt[row], rtt[np.fmax(row - 1, 0)])))


def _variation(acked: Column, losses: Column, rtt: float) -> float:
    """Return the variation of the rates between losses that are apart."""
    apart = np.diff(losses)
    kept = apart > APART_RTTS * rtt
    if kept.sum() < FEWEST - 1:
        return np.nan
    rates = np.diff(acked)[kept] / apart[kept]
    return float(rates.std() / rates.mean()) if rates.mean() > 0 else np.nan


def sharing(table: Table, rounds: Table, losses: Table, rows: Column) -> Table:
    """Return how many flows of some rows share a link, and their rate together, in bit/s.

    Flows share a link if they lose packets together and their rates add up to a constant; a single
    flow varies too much to tell. ``sharing_flows`` is 0 and ``sharing_bps`` NaN otherwise.

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
    if not 2 <= rows.size <= MOST_SHARING:
        return found
    origin = table["start"].min()
    begin = since(table["start"][rows], origin)
    end = begin + table["duration_s"][rows]
    first, last, rtt = begin.max(), end.min(), float(np.nanmax(table["rtt_mean_s"][rows]))
    if not last - first > LEAST_BINS * BIN_RTTS * rtt:
        return found
    bins = np.arange(first, last, BIN_RTTS * rtt)
    its = np.isin(rounds["direction"], rows)
    times = since(rounds["time"][its], origin)
    acked, _ = np.histogram(times, bins, weights=rounds["acked_bytes"][its])
    lost = np.isin(losses["direction"], rows)
    when, whose = since(losses["time"][lost], origin), losses["direction"][lost]
    if acked.std() <= CONSTANT * acked.mean() and _together(when, whose, 2 * rtt) >= TOGETHER:
        found["sharing_flows"][rows] = rows.size
        found["sharing_bps"][rows] = acked.mean() * 8 / (BIN_RTTS * rtt)
    return found


def _together(times: Column, whose: Column, within: float) -> float:
    """Return the share of losses that have a loss of another flow nearby."""
    order = np.argsort(times, kind="stable")
    times, whose = times[order], whose[order]
    near = np.zeros(times.size, dtype=bool)
    for step in range(1, min(8, times.size)):
        pair = (times[step:] - times[:-step] <= within) & (whose[step:] != whose[:-step])
        near[step:] |= pair
        near[:-step] |= pair
    return float(near.mean()) if near.size else 0.0
