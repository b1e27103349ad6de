"""Figures of captures: segments, limits and models.

``direction_data`` collects the data of one direction. ``sequence`` draws segments, ``over_time``
data in flight, RTT and limits, and ``model`` packets per 100 s against loss.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tcpcast.output import save_figure
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


def write_capture_figures(
    captures: Sequence[Capture], folder: str | Path, *, force: bool = False, form: str = "png"
) -> list[Path]:
    """Write figures of the worst directions of each capture.

    - ``...-sequence.png`` per direction: segments sent, retransmitted and acknowledged, and the
      receiver window
    - ``...-over-time.png`` per direction: bytes in flight, RTT, and the limits of the rate
    - ``...-model.png`` per pair of hosts with loss in at least two intervals of 100 s: packets
      against loss, with the models, like figures 7 to 17 of the PFTK paper

    Parameters
    ----------
    captures
        The captures; sequence figures require captures that were read with ``trail_points``.
    folder
        Folder for the files, created if it does not exist. Figures of earlier runs are overwritten.
    force
        Overwrite existing files, even if tcpcast did not create them.
    form
        ``"png"``, ``"svg"`` or ``"pdf"``, which is also the file extension.

    Returns
    -------
    list of Path
        Paths of the files.

    Raises
    ------
    MachineError
        matplotlib is not installed, or the folder cannot be written.
    """
    target = Path(folder)
    written = []
    for capture, stem in zip(captures, file_name_prefixes(captures), strict=True):
        for name, figure in _iter_capture_figures(capture):
            written.append(save_figure(figure, target / f"{stem}-{name}.{form}", force=force))
    return written


def _iter_capture_figures(capture: Capture) -> Iterator[tuple[str, Figure]]:
    """Yield names and figures, one at a time to save memory."""
    for direction in worst_directions(capture, MAX_DIRECTIONS):
        yield from _direction_figures(direction)
    for name, figure in model_figures(capture, MAX_DIRECTIONS):
        yield f"{name}-model", figure


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
