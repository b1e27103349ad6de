"""Colours of figures: one fixed colour per engine and per congestion control."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpcast.engines import REGISTRY
from tcpcast.scenario.modern_stacks import MODERN_STACKS
from tcpcast.scenario.modern_tcp import get_congestion_control
from tcpcast.scenario.tcp import STACKS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tcpcast.scenario import Population

# Palette of Okabe and Ito, distinguishable with every common colour vision deficiency.
BLUE, GREEN, SKY = "#0072B2", "#009E73", "#56B4E9"
VERMILION, PURPLE, ORANGE = "#D55E00", "#CC79A7", "#E69F00"
YELLOW, BLACK = "#F0E442", "#000000"
OBSERVED = (BLUE, GREEN, SKY)
CALCULATED = (VERMILION, PURPLE, ORANGE)
COLOURS = (*OBSERVED, *CALCULATED)
REFERENCE = "#666666"
MARKERS = "os^Dv"
DASH_PATTERNS: tuple[Any, ...] = (
    "-",
    "--",
    "-.",
    ":",
    (0, (6, 1.5, 1.5, 1.5)),
    (0, (3, 1, 1, 1, 1, 1)),
)

COLOUR_NAMES = {
    "blue": BLUE,
    "green": GREEN,
    "sky": SKY,
    "vermilion": VERMILION,
    "purple": PURPLE,
    "orange": ORANGE,
    "black": BLACK,
}
"""Colours by the names that the registry of engines uses."""

_PLUGIN_DASHES = (0, (2, 1))
"""Dash pattern of formulas of other packages."""

_CONGESTION_CONTROL_COLOURS = dict(
    zip(
        dict.fromkeys(stack.control for stack in MODERN_STACKS.values()),
        (BLUE, GREEN, VERMILION, ORANGE, PURPLE, SKY, BLACK, YELLOW),
        strict=False,
    )
)
"""Colour of each congestion control; those after the eighth have none."""


def engine_style(name: str, *, is_observed: bool) -> dict[str, Any]:
    """Return the style of an engine's values: markers if observed, a line if calculated."""
    entry = REGISTRY.get(name)
    plot_style = None if entry is None else entry.plot_style
    colour = REFERENCE if plot_style is None else COLOUR_NAMES[plot_style[0]]
    if is_observed:
        marker = "P" if plot_style is None else MARKERS[plot_style[1] % len(MARKERS)]
        return {"color": colour, "marker": marker, "linestyle": "none", "markersize": 3.2}
    return {
        "color": colour,
        "linestyle": _PLUGIN_DASHES if plot_style is None else DASH_PATTERNS[plot_style[1]],
        "linewidth": 1.8,
    }


def line_style(index: int) -> dict[str, Any]:
    """Return the style of line ``index``; consecutive lines differ in colour and dash pattern."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": DASH_PATTERNS[index % len(DASH_PATTERNS)],
    }


def class_styles(groups: Iterable[Population]) -> dict[str, dict[str, Any]]:
    """Return one line style per class, with the congestion control's colour if all differ."""
    several = list(groups)
    controls = [group.tcp.control for group in several]
    distinct = (
        len(set(controls)) == len(controls) and set(controls) <= _CONGESTION_CONTROL_COLOURS.keys()
    )
    return {
        group.name: line_style(i)
        | ({"color": _CONGESTION_CONTROL_COLOURS[group.tcp.control]} if distinct else {})
        for i, group in enumerate(several)
    }


def stack_colour(name: str) -> str | None:
    """Return the colour of a stack's congestion control, or None if no stack has this name."""
    return _CONGESTION_CONTROL_COLOURS.get(get_congestion_control(name)) if name in STACKS else None
