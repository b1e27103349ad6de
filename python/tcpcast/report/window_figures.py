"""Congestion windows and rates over a whole run: every change, or what is in each of many spans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MOST_CHANGES = 800
"""More changes than these would run together: the range of each span is drawn instead."""

SPANS = 400
RATE_SPANS = 80


@dataclass(frozen=True, slots=True)
class Ranges:
    """The lowest, the highest and the last window in each of equal spans.

    ``edges_s`` are one more than the spans; a span without a change has the window before it, and
    those before the first change have none (NaN).
    """

    edges_s: Floats
    low: Floats
    high: Floats
    last: Floats


def ranges(time_s: NDArray[Any], window_pkts: NDArray[Any], start_s: float, end_s: float) -> Ranges:
    """Return what a window does in each of :data:`SPANS` spans.

    Parameters
    ----------
    time_s, window_pkts
        Changes in order of time, at least one, ``[changes]``; a window holds until the next one.
    start_s, end_s
        Where the first span begins and the last one ends.
    """
    edges = np.linspace(start_s, end_s, SPANS + 1)
    window = np.asarray(window_pkts, dtype=np.float64)
    # The changes before an edge: the last one of them holds there.
    before = np.searchsorted(time_s, edges[:-1], side="right")
    until = np.searchsorted(time_s, edges[1:], side="right")
    known = until > 0
    held = np.where(before > 0, before - 1, 0)[known]
    found = [np.full(SPANS, np.nan) for _ in range(3)]
    bounds = np.stack([held, until[known]], axis=1)
    for place, (first, beyond) in zip(np.flatnonzero(known), bounds, strict=True):
        of_span = window[first:beyond]
        found[0][place], found[1][place] = of_span.min(), of_span.max()
        found[2][place] = of_span[-1]
    return Ranges(edges, *found)


def rates(
    time_s: NDArray[Any], sequence: NDArray[Any], start_s: float, end_s: float
) -> tuple[Floats, Floats]:
    """Return the ends of :data:`RATE_SPANS` spans, and the packets sent per second in each.

    Parameters
    ----------
    time_s, sequence
        When a flow sent which packet for the first time, in order of time; not every packet need be
        there, since numbers count on. Where one is smaller a new connection begins.
    start_s, end_s
        Where the first span begins and the last one ends.
    """
    edges = np.linspace(start_s, end_s, RATE_SPANS + 1)
    steps = np.diff(np.asarray(sequence, dtype=np.float64))
    sent = np.cumsum(np.append(1.0, np.where(steps > 0, steps, 1.0)))
    until = np.append(0.0, sent)[np.searchsorted(time_s, edges[1:], side="right")]
    return edges, np.diff(np.append(0.0, until)) / np.diff(edges)
