"""Figures of captures: segments, limits and models.

``direction_data`` collects the data of one direction. ``sequence`` draws segments, ``over_time``
data in flight, RTT and limits, and ``model`` packets per 100 s against loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast.report.trace import worst_first_order
from tcpcast.report.trace_figures.direction_data import (
    direction_of_row,
    file_name_prefixes,
    worst_directions,
)
from tcpcast.report.trace_figures.model import model_figures
from tcpcast.report.trace_figures.over_time import draw_over_time
from tcpcast.report.trace_figures.sequence import draw_sequence
from tcpcast.report.trace_verdict import all_directions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.figure import Figure

    from tcpcast.captures import Capture
    from tcpcast.report.trace_figures.direction_data import Direction

MAX_DIRECTIONS = 8


def iter_capture_figures(captures: Sequence[Capture]) -> Iterator[tuple[str, Figure]]:
    """Yield names and figures of the worst directions of each capture, one at a time.

    - ``...-sequence`` per direction: segments sent, retransmitted and acknowledged, and the
      receiver window; requires a capture that was read with ``trail_points``
    - ``...-over-time`` per direction: bytes in flight, RTT, and the limits of the rate
    - ``...-model`` per pair of hosts with loss in at least two intervals of 100 s: packets
      against loss, with the models, like figures 7 to 17 of the PFTK paper
    """
    for capture, stem in zip(captures, file_name_prefixes(captures), strict=True):
        for direction in worst_directions(capture, MAX_DIRECTIONS):
            for name, figure in _direction_figures(direction):
                yield f"{stem}-{name}", figure
        for name, figure in model_figures(capture, MAX_DIRECTIONS):
            yield f"{stem}-{name}-model", figure


def _direction_figures(direction: Direction) -> Iterator[tuple[str, Figure]]:
    for name, draw in (("sequence", draw_sequence), ("over-time", draw_over_time)):
        figure = draw(direction)
        if figure is not None:
            yield f"{direction.name}-{name}", figure


def worst_figures(captures: Sequence[Capture], max_count: int) -> Iterator[tuple[str, Figure]]:
    """Yield the figures of the ``max_count`` worst directions of all captures, the worst first."""
    names = file_name_prefixes(captures)
    table = all_directions(captures)
    starts = np.cumsum([0, *(capture.connections["src"].size for capture in captures)])
    for row in worst_first_order(table)[:max_count].tolist():
        index = int(np.searchsorted(starts, row, side="right")) - 1
        direction = direction_of_row(captures[index], row - int(starts[index]))
        for name, figure in _direction_figures(direction):
            yield f"{names[index]}-{name}", figure
