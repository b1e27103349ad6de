"""Colours and marks in figures of captures, the same in every figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpcast.limit_names import LIMIT_NAMES
from tcpcast.report.chart import style_axes
from tcpcast.report.chart_text import LABEL_POINTS
from tcpcast.report.palette import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, YELLOW

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DATA_COLOUR, ACK_COLOUR, WINDOW_COLOUR, SACK_COLOUR = "#333333", "#999999", "#9A7D0A", PURPLE

TRACE_DPI = 130
"""Resolution of figures of captures in dots per inch."""

_MAX_LEGEND_COLUMNS = 3
_LEGEND_ROW_POINTS = 1.6 * LABEL_POINTS
_AXIS_TEXTS_IN, _END_LABELS_IN = 0.8, 0.95
"""Width of the label and the numbers of a vertical axis, and of the names at the ends of lines."""

MAX_LARGE_POINTS = 60
"""Number of points of one kind above which points are drawn smaller."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Style and label of points of one kind."""

    label: str
    colour: str
    marker: str

    def mark(self, axes: Axes, x: Any, y: Any, label: str, **more: Any) -> None:
        """Draw points, smaller if there are many."""
        size = 5.5 if len(x) <= MAX_LARGE_POINTS else 4.0
        look: dict[str, Any] = {"markersize": size, "markeredgecolor": "white", "zorder": 3}
        axes.plot(
            x,
            y,
            linestyle="none",
            marker=self.marker,
            color=self.colour,
            label=label,
            **(look | {"markeredgewidth": 0.4} | more),
        )


CAUSE_MARKS = {
    "duplicates": Mark("duplicates", BLUE, "v"),
    "sack": Mark("SACK", SKY, "^"),
    "rack": Mark("RACK", GREEN, "s"),
    "tail-loss-probe": Mark("tail-loss probe", YELLOW, "D"),
    "timeout": Mark("timeout", VERMILION, "X"),
    "after-timeout": Mark("after a timeout", ORANGE, "P"),
    "unexplained": Mark("unexplained", BLACK, "*"),
}
"""Marks of retransmitted segments by cause."""

OTHER_CAUSES = Mark("other causes", BLACK, "*")
"""Common mark of the rarest causes if the legend has no space for all."""

LOSS_INDICATION_MARKS = {
    "td": Mark("fast recoveries", BLUE, "v"),
    "to": Mark("timeouts", VERMILION, "X"),
}
"""Marks of loss indications: fast recoveries (PFTK's TD) and timeouts (PFTK's TO)."""

_LIMIT_COLOURS = {
    "application": SKY,
    "receiver_window": BLUE,
    "send_buffer": PURPLE,
    "slow_start": YELLOW,
    "congestion_window": GREEN,
    "bottleneck": "#444444",
    "loss_recovery": ORANGE,
    "timeout": VERMILION,
    "unknown": "#DDDDDD",
}

LIMIT_STYLES = {limit: (LIMIT_NAMES[limit], colour) for limit, colour in _LIMIT_COLOURS.items()}
"""Labels and colours of the limits of the rate."""


def three_digits(value: float) -> str:
    """Return a number with three significant digits, or all integer digits if it has more."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def legend_above(axes: Axes) -> None:
    """Place the legend above a panel, where it covers no data.

    It has as many columns as fit above the panel, and the figure grows by the height of further
    rows. Call this function before the title is written.
    """
    entries = len(axes.get_legend_handles_labels()[1])
    sides_in = _AXIS_TEXTS_IN + (_END_LABELS_IN if axes.texts else 0.0)
    figure: Any = axes.figure
    max_width = (figure.get_figwidth() - sides_in) * figure.dpi
    for columns in range(min(_MAX_LEGEND_COLUMNS, entries), 0, -1):
        legend = axes.legend(
            loc="lower right",
            bbox_to_anchor=(1, 1.01),
            borderaxespad=0,
            fontsize=LABEL_POINTS,
            frameon=False,
            ncols=columns,
            columnspacing=1.2,
            handletextpad=0.5,
        )
        if legend.get_window_extent().width <= max_width:
            break
    more_rows = -(-entries // columns) - 1
    figure.set_figheight(figure.get_figheight() + more_rows * _LEGEND_ROW_POINTS / 72)


def simplify_axes(axes: Axes) -> None:
    """Remove axis offsets and unnecessary spines."""
    for axis in (axes.xaxis, axes.yaxis):
        formatter = axis.get_major_formatter()
        if hasattr(formatter, "set_useOffset"):
            formatter.set_useOffset(False)
    style_axes(axes)
