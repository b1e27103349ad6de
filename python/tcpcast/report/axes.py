"""What all figures share: colours, marks and lines, axes and legends."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from tcpcast.compare import is_observed
from tcpcast.extras import import_matplotlib
from tcpcast.report.summary import describe
from tcpcast.units import digits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from tcpcast.answer import Answer, Metric
    from tcpcast.scenario import Scenario

# Okabe and Ito's palette, told apart by every common kind of colour vision.
OBSERVED = ("#0072B2", "#009E73", "#56B4E9")
CALCULATED = ("#D55E00", "#CC79A7", "#E69F00")
REFERENCE = "#666666"
MARKERS, LINES = "os^Dv", ("-", "--", "-.", ":")
MORE_LINES: tuple[Any, ...] = (*LINES, (0, (6, 1.5, 1.5, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
"""Of what is simulated and of what is calculated: told apart without colours, too."""
_WIDEST = 100


def figure_class() -> type[Figure]:
    """Return matplotlib's figure; asked before a simulation, it saves one made in vain.

    Raises
    ------
    EnvironmentFault
        matplotlib is not installed.
    """
    import_matplotlib()
    from matplotlib.figure import Figure  # noqa: PLC0415 - optional, and slow to import

    return Figure


def lay_out(axes: Axes) -> None:
    """Give axes the grid and the two spines that all figures have."""
    axes.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def tell(axes: Axes, said: str, width: int) -> None:
    """Write above axes what was asked; a number stays with its unit, a stack's name in one."""
    lines = textwrap.wrap(said.replace(" %", "\u00a0%"), width, break_on_hyphens=False)
    axes.set_title("\n".join(lines), fontsize=7.5, color=REFERENCE)


def titled(figure: Figure, scenario: Scenario, title: str, x: str, y: str) -> Axes:
    """Return a figure's only axes, with what was asked above them."""
    axes = figure.add_subplot()
    figure.suptitle(f"{scenario.name}: {title}", fontsize=12)
    tell(axes, describe(scenario), _WIDEST)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    lay_out(axes)
    return axes


def log_ticks(axis: Axis) -> None:
    """Give a logarithmic axis ticks at 1, 2 and 5, in plain digits."""
    from matplotlib.ticker import LogLocator, NullFormatter  # noqa: PLC0415 - slow to import

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(lambda value, _at: digits(value))
    axis.set_minor_formatter(NullFormatter())


def legend_above(panels: Sequence[Axes]) -> None:
    """Put the entries of all panels above the first; one may have more of them than another."""
    entries = {
        label: handle
        for axes in panels
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    look: dict[str, Any] = {"frameon": False, "fontsize": 8, "ncols": len(entries)}
    panels[0].legend(entries.values(), entries, loc="lower right", bbox_to_anchor=(1, 1), **look)


def colours_of(answers: Sequence[Answer]) -> list[str]:
    """Return a colour for each answer, by whether it is observed or calculated."""
    shades = {True: iter(OBSERVED * 4), False: iter(CALCULATED * 4)}
    return [next(shades[is_observed(answer)]) for answer in answers]


def points_with_intervals(
    axes: Axes, at: Sequence[float], metrics: Sequence[Metric], factor: float, name: str
) -> None:
    """Draw what was simulated as points with 95 % intervals, over the curve of a model.

    ``name`` is the engine's, ``factor`` what one of the unit of the axis is in that of the metrics.
    """
    reach = [
        [
            0.0 if end is None else abs(end - metric.value) / factor
            for end, metric in zip(ends, metrics, strict=True)
        ]
        for ends in ([m.low for m in metrics], [m.high for m in metrics])
    ]
    axes.errorbar(
        at,
        [metric.value / factor for metric in metrics],
        yerr=reach,
        fmt="o",
        color=OBSERVED[0],
        markeredgecolor="white",
        markeredgewidth=0.6,
        markersize=5.5,
        capsize=3,
        clip_on=False,
        zorder=30,
        label=f"{name}, with 95 % interval",
    )
