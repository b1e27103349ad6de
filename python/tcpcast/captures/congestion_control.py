"""Identification of the congestion control of a direction from its windows.

Reno halves its window at a loss (RFC 5681); CUBIC reduces it to 0.7 (RFC 9438, section 4.6). BBR
varies its pacing rate in probing cycles, so that its data in flight decrease periodically in rounds
without loss. With Reno and CUBIC, data in flight do not decrease without loss while the window is
the limit. BBR also sends more than a loss-based window allows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.model_rates import (
    cubic_pps,
    measured_loss_and_rate,
    model_inputs,
    model_rates_or_nan,
    pftk_pps,
)

if TYPE_CHECKING:
    from tcpcast.array_types import Table

    Column = np.ndarray[Any, Any]

RENO, CUBIC, BBR, UNKNOWN = "reno", "cubic", "bbr", "unknown"

RENO_REDUCTION_RANGE = (0.4, 0.54)
CUBIC_REDUCTION_RANGE = (0.6, 0.82)
MIN_BBR_REDUCTION = 0.9
"""Median ratio of the windows after and before a loss: range for Reno, range for CUBIC, and minimum
for BBR. Between the ranges of Reno and CUBIC, the ratio is ambiguous because of rounding in small
windows."""

MIN_CALM_PAIRS = 20
"""Minimum number of pairs of calm rounds to decide whether the data in flight decrease without
loss."""
MIN_BBR_DECREASE_SHARE = 0.05
"""Minimum share of pairs of calm rounds with a decrease for BBR, which drains in one of the eight
phases of its cycle. Captures of Linux with Reno and CUBIC have less than 0.01."""
MIN_DECREASE, MIN_DECREASE_PKTS = 0.05, 1.5
"""Minimum decrease from one round to the next: relative, and in packets."""

MIN_RATIO_TO_LOSS_BASED_RATE = 1.8
"""Minimum ratio of the measured rate to the larger rate of PFTK (b = 1) and CUBIC's response
function for a sender that is not loss-based. In simulations, the ratio is at most 1.22 for Reno and
CUBIC, and 2 to 13 for BBR with frequent losses."""
MIN_LOSS_INDICATIONS = 20
"""Minimum number of loss indications to compare the measured rate with loss-based models."""

MAX_DECREASES_PER_ECN_MARK = 2
"""Number of rounds in which data in flight may decrease after an ECN mark."""

_LIMITS_OTHER_THAN_CONGESTION_CONTROL = (
    "application",
    "receiver_window",
    "send_buffer",
    "timeout",
    "unknown",
)


def identify_congestion_control(table: Table, rounds: Table) -> Table:
    """Return ``looks_like`` for each direction: ``reno``, ``cubic``, ``bbr`` or ``unknown``.

    Parameters
    ----------
    table
        The table of directions.
    rounds
        The table of rounds.

    Notes
    -----
    Windows are visible only near the sender. ``reno`` and ``cubic`` require calm rounds between
    losses, because otherwise BBR may look like Reno or CUBIC. ``reno`` includes NewReno with and
    without SACK. Later versions of BBR react to losses and may not be identified.
    """
    falling = flight_decrease_share(table, rounds)
    with np.errstate(invalid="ignore"):
        left = table["window_reduction"]
        found = np.full(left.size, UNKNOWN, dtype="<U7")
        steady = falling < MIN_BBR_DECREASE_SHARE
        found[steady & (left >= RENO_REDUCTION_RANGE[0]) & (left <= RENO_REDUCTION_RANGE[1])] = RENO
        found[steady & (left >= CUBIC_REDUCTION_RANGE[0]) & (left <= CUBIC_REDUCTION_RANGE[1])] = (
            CUBIC
        )
        found[
            (falling >= MIN_BBR_DECREASE_SHARE)
            | (left >= MIN_BBR_REDUCTION)
            | exceeds_loss_based_rate(table)
        ] = BBR
    return {"looks_like": found}


def exceeds_loss_based_rate(table: Table) -> Column:
    """Return a mask of directions with SACK that send more than a loss-based window allows."""
    ratio, rate = measured_loss_and_rate(table)
    inputs = model_inputs(table) | {"packets_per_ack": np.ones(ratio.size)}
    by_model = [model_rates_or_nan(model, ratio, inputs) for model in (pftk_pps, cubic_pps)]
    enough = (table["td"] + table["to"] >= MIN_LOSS_INDICATIONS) & (table["by_sack"] > 0)
    return enough & (rate > MIN_RATIO_TO_LOSS_BASED_RATE * np.fmax(*by_model))


def flight_decrease_share(table: Table, rounds: Table) -> Column:
    """Return the share of pairs of calm rounds in which the data in flight decrease.

    A pair is calm if congestion control is the only limit and no segment is retransmitted, in both
    rounds and in the round before them: data in flight still decrease after a recovery. NaN if
    there are too few pairs, or if decreases may be reactions to ECN marks (flag CWR).
    """
    size = table["src"].size
    flight = rounds["flight_bytes"].astype(np.float64)
    if flight.size < 3:
        return np.full(size, np.nan)
    calm = (rounds["retransmissions"] == 0) & ~np.isin(
        rounds["limited_by"], _LIMITS_OTHER_THAN_CONGESTION_CONTROL
    )
    one = np.diff(rounds["direction"]) == 0
    pairs = calm[2:] & calm[1:-1] & calm[:-2] & one[1:] & one[:-1]
    lost = flight[1:-1] - flight[2:]
    segment = np.fmax(table["segment_bytes"], 1)[rounds["direction"][2:]]
    falls = pairs & (lost > MIN_DECREASE * flight[1:-1]) & (lost > MIN_DECREASE_PKTS * segment)
    at = rounds["direction"][2:]
    every, fell = (np.bincount(at[each], minlength=size) for each in (pairs, falls))
    marked = (fell > 0) & (fell <= MAX_DECREASES_PER_ECN_MARK * table["window_reductions"])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((every >= MIN_CALM_PAIRS) & ~marked, fell / every, np.nan)
