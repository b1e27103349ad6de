"""Which congestion control a direction looks like, by its windows at losses and between them.

Reno halves its window at a loss (RFC 5681), CUBIC leaves 0.7 of it (RFC 9438, section 4.6). BBR
sends at a rate and probes with it, so that its flight falls again and again in rounds without a
loss, which that of the others never does while the window is the limit; and it sends more than any
window that follows its losses could.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.model_rates import cubic_pps, fed, measured, pftk_pps, usable

if TYPE_CHECKING:
    from tcpcast.captures.table import Table

    Column = np.ndarray[Any, Any]

RENO, CUBIC, BBR, UNKNOWN = "reno", "cubic", "bbr", "unknown"

HALVED = (0.4, 0.54)
KEPT = (0.6, 0.82)
NOT_CUT = 0.9
"""Median windows after by before a loss. Between the two lie windows of a few packets, of which
whole packets are left, so that either may be it."""

FEWEST_PAIRS = 20
"""Fewer pairs of calm rounds do not tell whether a flight falls by itself."""
FALLING = 0.05
"""Share of the pairs of calm rounds in which a flight falls, from which on it is BBR's: one of the
eight phases of its probing drains. Captures of Linux's Reno and CUBIC have less than 0.01."""
FALL, FALL_PKTS = 0.05, 1.5
"""A flight falls that has so much less than in the round before, and so many packets less."""

BEYOND = 1.8
"""Rate over that of PFTK (with b = 1) and CUBIC's response for the same losses, from which on no
window that follows losses has it: those of simulated Reno and CUBIC have at most 1.22 times it, BBR
2 to 13 times where losses are frequent for its window."""
ENOUGH_LOSSES = 20
"""With fewer loss indications chance, or the slow start, decides the rate."""

FALLS_OF_A_MARK = 2
"""Rounds in which a flight falls after a mark: that of the reduction and the next."""

_HELD_BY_OTHERS = ("application", "receiver_window", "send_buffer", "timeout", "unknown")


def looks_like(table: Table, rounds: Table) -> Table:
    """Return ``looks_like`` of each direction: ``reno``, ``cubic``, ``bbr`` or ``unknown``.

    Parameters
    ----------
    table
        The table of directions.
    rounds
        The table of rounds.

    Notes
    -----
    Windows show near the sender alone, and ``reno`` and ``cubic`` need calm rounds between losses,
    without which BBR may look like either. Reno stands for all that halve: NewReno, with SACK or
    without. BBR of a later version reads losses, and may look like none of these.
    """
    falling = falling_share(table, rounds)
    with np.errstate(invalid="ignore"):
        left = table["window_reduction"]
        found = np.full(left.size, UNKNOWN, dtype="<U7")
        steady = falling < FALLING
        found[steady & (left >= HALVED[0]) & (left <= HALVED[1])] = RENO
        found[steady & (left >= KEPT[0]) & (left <= KEPT[1])] = CUBIC
        found[(falling >= FALLING) | (left >= NOT_CUT) | beyond_losses(table)] = BBR
    return {"looks_like": found}


def beyond_losses(table: Table) -> Column:
    """Return which directions with SACK send more than any window that follows their losses."""
    ratio, rate = measured(table)
    given = fed(table) | {"packets_per_ack": np.ones(ratio.size)}
    found = np.zeros(ratio.size, dtype=bool)
    enough = table["td"] + table["to"] >= ENOUGH_LOSSES
    known = usable(ratio, given) & enough & (table["by_sack"] > 0)
    if known.any():
        path = {name: column[known] for name, column in given.items()}
        most = np.fmax(pftk_pps(ratio[known], path), cubic_pps(ratio[known], path))
        found[known] = rate[known] > BEYOND * most
    return found


def falling_share(table: Table, rounds: Table) -> Column:
    """Return in which share of the pairs of calm rounds a flight falls; NaN of too few pairs.

    Calm are rounds that nothing but congestion control held, without a retransmission, three in a
    row: after a recovery a flight still falls to what the recovery left. NaN, too, where as many
    reductions were answers to marks (ECN, flag CWR).
    """
    size = table["src"].size
    flight = rounds["flight_bytes"].astype(np.float64)
    if flight.size < 3:
        return np.full(size, np.nan)
    calm = (rounds["retransmissions"] == 0) & ~np.isin(rounds["limited_by"], _HELD_BY_OTHERS)
    one = np.diff(rounds["direction"]) == 0
    pairs = calm[2:] & calm[1:-1] & calm[:-2] & one[1:] & one[:-1]
    lost = flight[1:-1] - flight[2:]
    segment = np.fmax(table["segment_bytes"], 1)[rounds["direction"][2:]]
    falls = pairs & (lost > FALL * flight[1:-1]) & (lost > FALL_PKTS * segment)
    at = rounds["direction"][2:]
    every, fell = (np.bincount(at[each], minlength=size) for each in (pairs, falls))
    marked = (fell > 0) & (fell <= FALLS_OF_A_MARK * table["window_reductions"])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((every >= FEWEST_PAIRS) & ~marked, fell / every, np.nan)
