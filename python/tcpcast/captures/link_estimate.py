"""Estimates from the rounds of flows: window growth, link rate, and queue at losses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.capture_tables import tables_by_name
from tcpcast.captures.direction_selection import seconds_since
from tcpcast.captures.loss_evidence import rtts_at_losses

if TYPE_CHECKING:
    from tcpcast.array_types import Table
    from tcpcast.captures.capture_tables import CaptureTables

    Column = np.ndarray[Any, Any]

MIN_ROUNDS = 20
"""Minimum number of calm rounds (without loss) to determine the growth of a window."""
BIN_RTTS = 20
"""Length in round trips of a time bin of acknowledged bytes."""
BUSY_QUANTILE = 0.99
"""Quantile of the bytes per time bin that replaces the maximum, which may be an outlier."""
MIN_FULL_TIME_SHARE = 0.01
"""If several flows fill the link for less than this share of the time, its rate is unknown."""
MIN_BUSY_BIN_SHARE = 0.9
"""A bin is busy if it has at least this share of the bytes at ``BUSY_QUANTILE``."""


def window_growth_per_round_pkts(rounds: Table | None, segment_bytes: Column) -> float:
    """Return the growth of the flight per round of congestion avoidance in packets, or NaN.

    Only rounds that the congestion window limited and that had no losses are used. The growth is 1
    if windows grow by acknowledged packets, and 1/b if they grow by acks.

    Parameters
    ----------
    rounds
        The table of rounds; None if there is none.
    segment_bytes
        Payload of a full segment of each direction.
    """
    if rounds is None:
        return math.nan
    kept, grown, apart = _growth_without_loss(rounds, segment_bytes)
    if kept.sum() < MIN_ROUNDS:
        return math.nan
    return float(grown[kept].sum() / apart[kept].sum())


def growth_per_round_by_direction_pkts(rounds: Table, segment_bytes: Column) -> Column:
    """Return :func:`window_growth_per_round_pkts` for each row of ``segment_bytes``."""
    kept, grown, apart = _growth_without_loss(rounds, segment_bytes)
    at = rounds["direction"][1:][kept]
    count = segment_bytes.size
    sums = [np.bincount(at, weights=part[kept], minlength=count) for part in (grown, apart)]
    enough = np.bincount(at, minlength=count) >= MIN_ROUNDS
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(enough, sums[0] / sums[1], np.nan)


def _growth_without_loss(rounds: Table, segment_bytes: Column) -> tuple[Column, Column, Column]:
    """Return a mask of usable pairs of rounds, their growth in packets, and distances in rounds."""
    payload = segment_bytes[rounds["direction"]][1:]
    calm = (rounds["limited_by"] == "congestion_window") & (rounds["retransmissions"] == 0)
    grown = np.diff(rounds["flight_bytes"]) / np.fmax(payload, 1)
    # In long transfers, each row combines several rounds.
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.diff(rounds["time"]).astype(np.int64) * 1e-9 / rounds["rtt_s"][1:]
    kept = (
        calm[1:] & calm[:-1] & (np.diff(rounds["direction"]) == 0) & (apart > 0) & (apart < np.inf)
    )
    # A large decrease is due to a loss, and a large increase is not congestion avoidance.
    kept &= (grown > -1) & (grown < 2 * apart + 1)
    return kept, grown, apart


def link_bps(capture: CaptureTables) -> float:
    """Return the payload rate of the shared link in bit/s; NaN if it is unknown.

    A single flow receives the link rate while the path is full. Several flows receive only shares,
    rarely measured at the same time, so the sum of their rates is limited by the total rate
    acknowledged in busy times. Rates measured only for a short time, for example in a burst, are
    ignored.
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
    if full < MIN_FULL_TIME_SHARE * lived.sum():
        return math.nan
    length = float((seconds_since(table["start"], table["start"].min()) + lived).max())
    together = float(np.nanmean(found)) * max(1.0, float(lived.sum()) / max(length, 1e-9))
    return max(seen, min(together, _total_busy_time_bps(capture)))


def _total_busy_time_bps(capture: CaptureTables) -> float:
    """Return the total rate acknowledged in busy times in bit/s; inf if there are no rounds."""
    rounds: Table | None = tables_by_name(capture).get("rounds")
    if rounds is None or not rounds["acked_bytes"].size:
        return math.inf
    rtt = float(np.nanmean(capture.connections["rtt_mean_s"]))
    if not rtt > 0:
        return math.inf
    width = BIN_RTTS * rtt
    at = (seconds_since(rounds["time"], rounds["time"].min()) // width).astype(np.int64)
    counted = np.bincount(at, weights=rounds["acked_bytes"])
    busy = counted >= MIN_BUSY_BIN_SHARE * np.quantile(counted, BUSY_QUANTILE)
    return float(counted[busy].mean()) * 8 / width


def queueing_delays_at_losses_s(capture: CaptureTables, losses_table: str) -> Column:
    """Return the queueing delay at each loss in seconds: the RTT above its minimum.

    The RTT is the maximum over the round of the loss and the round before. Rounds without RTT are
    ignored; without rounds, the result is empty.

    Parameters
    ----------
    capture
        The capture.
    losses_table
        The table of losses: ``"loss_indications"`` or ``"retransmissions"``.
    """
    found = tables_by_name(capture)
    rounds, losses = found.get("rounds"), found.get(losses_table)
    if rounds is None or losses is None:
        return np.zeros(0)
    timed = np.isfinite(rounds["rtt_s"])
    at, times, rtt = (rounds[name][timed] for name in ("direction", "time", "rtt_s"))
    least = capture.connections["rtt_min_s"]
    apart = [np.zeros(0)]
    for each in np.intersect1d(at, losses["direction"]).tolist():
        # Rows are sorted by direction and time.
        of_it, its = (
            slice(*np.searchsorted(rows, (each, each + 1))) for rows in (at, losses["direction"])
        )
        longest = rtts_at_losses(times[of_it], rtt[of_it], losses["time"][its])
        apart.append(longest - least[each])
    return np.concatenate(apart)
