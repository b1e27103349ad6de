"""What the rounds of flows tell of the path: how windows grow, how fast and full the link is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.flows import since
from tcpcast.captures.selection import tables

if TYPE_CHECKING:
    from tcpcast.captures import Capture, Table

    Column = np.ndarray[Any, Any]

FEWEST_ROUNDS = 20
"""Fewer calm rounds tell nothing of how a window grows."""
BIN_ROUNDS = 20
"""Acknowledged bytes are counted over so many round trips."""
BUSY = 0.99
"""The quantile of these counts that stands for a busy time: the largest may be by chance."""
LEAST_FULL = 0.01
"""Share of the time of several flows that a full link takes, at least."""
NEAR = 0.9
"""Share of that count from which on a time was as busy: their mean is the rate of a full link."""


def growth_pkts(rounds: Table | None, segment_bytes: Column) -> float:
    """Return how many packets a flight grows in a round of congestion avoidance; NaN if not seen.

    From one round to the next, where nothing was lost and the congestion window was the limit: 1 if
    windows grow by what is acknowledged, 1/b if they grow by acks.

    Parameters
    ----------
    rounds
        The table of rounds; None where there is none.
    segment_bytes
        Payload of a full segment of each direction.
    """
    if rounds is None:
        return math.nan
    kept, grown, apart = _calm_growth(rounds, segment_bytes)
    if kept.sum() < FEWEST_ROUNDS:
        return math.nan
    return float(grown[kept].sum() / apart[kept].sum())


def growth_each(rounds: Table, segment_bytes: Column) -> Column:
    """Return the same of each direction, whose rows ``segment_bytes`` are."""
    kept, grown, apart = _calm_growth(rounds, segment_bytes)
    at = rounds["direction"][1:][kept]
    count = segment_bytes.size
    sums = [np.bincount(at, weights=part[kept], minlength=count) for part in (grown, apart)]
    enough = np.bincount(at, minlength=count) >= FEWEST_ROUNDS
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(enough, sums[0] / sums[1], np.nan)


def _calm_growth(rounds: Table, segment_bytes: Column) -> tuple[Column, Column, Column]:
    """Return which pairs of rounds tell of growth, by how many packets, and how far apart."""
    payload = segment_bytes[rounds["direction"]][1:]
    calm = (rounds["limited_by"] == "congestion_window") & (rounds["retransmissions"] == 0)
    grown = np.diff(rounds["flight_bytes"]) / np.fmax(payload, 1)
    # Rows of long transfers are several rounds each.
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.diff(rounds["time"]).astype(np.int64) * 1e-9 / rounds["rtt_s"][1:]
    kept = (
        calm[1:] & calm[:-1] & (np.diff(rounds["direction"]) == 0) & (apart > 0) & (apart < np.inf)
    )
    # A flight that shrinks was cut by a loss, and one that leaps is no congestion avoidance.
    kept &= (grown > -1) & (grown < 2 * apart + 1)
    return kept, grown, apart


def link_bps(capture: Capture) -> float:
    """Return the payload rate of the link that flows share, in bit/s; NaN where nobody saw it.

    One flow sees it while the path is full. Of several each sees its share, and seldom are all
    there at once: together they are no faster than what was acknowledged in busy times. What they
    saw for a moment, that of a burst perhaps, is none.
    """
    table = capture.connections
    found = table.get("bottleneck_rate_bps")
    if found is None or not np.isfinite(found).any():
        return math.nan
    seen = float(np.nanmax(found))
    if table["src"].size == 1:
        return seen
    lived = np.nan_to_num(table["duration_s"])
    full = float((np.nan_to_num(table["share_bottleneck"]) * lived).sum())
    if full < LEAST_FULL * lived.sum():
        return math.nan
    length = float((since(table["start"], table["start"].min()) + lived).max())
    together = float(np.nanmean(found)) * max(1.0, float(lived.sum()) / max(length, 1e-9))
    return max(seen, min(together, _busiest_bps(capture)))


def _busiest_bps(capture: Capture) -> float:
    """Return the rate acknowledged by all flows together in busy times; inf without rounds."""
    rounds: Table | None = tables(capture).get("rounds")
    if rounds is None or not rounds["acked_bytes"].size:
        return math.inf
    rtt = float(np.nanmean(capture.connections["rtt_mean_s"]))
    if not rtt > 0:
        return math.inf
    width = BIN_ROUNDS * rtt
    at = (since(rounds["time"], rounds["time"].min()) // width).astype(np.int64)
    counted = np.bincount(at, weights=rounds["acked_bytes"])
    busy = counted >= NEAR * np.quantile(counted, BUSY)
    return float(counted[busy].mean()) * 8 / width


def queued_at_losses_s(capture: Capture, which: str) -> Column:
    """Return how long the queue was at each loss, s: the RTT above its least.

    Of the round of the loss and the one before it the longer; those without a time are left out,
    and so all are where the capture has no rounds.

    Parameters
    ----------
    capture
        What was read.
    which
        What losses are: ``"loss_indications"`` or ``"retransmissions"``.
    """
    found = tables(capture)
    rounds, losses = found.get("rounds"), found.get(which)
    if rounds is None or losses is None:
        return np.zeros(0)
    timed = np.isfinite(rounds["rtt_s"])
    at, times, rtt = (rounds[name][timed] for name in ("direction", "time", "rtt_s"))
    least = capture.connections["rtt_min_s"]
    apart = [np.zeros(0)]
    for each in np.intersect1d(at, losses["direction"]).tolist():
        # Rows stand by direction, and by time within.
        of_it, its = (
            slice(*np.searchsorted(rows, (each, each + 1))) for rows in (at, losses["direction"])
        )
        row = np.fmax(np.searchsorted(times[of_it], losses["time"][its], "right") - 1, 0)
        longer = np.fmax(rtt[of_it][row], rtt[of_it][np.fmax(row - 1, 0)])
        apart.append(longer - least[each])
    return np.concatenate(apart)
