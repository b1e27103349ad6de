"""Colours of figures: one fixed colour per engine and per congestion control."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 1.5, 1.5, 1.5)), (0, (3, 1, 1, 1, 1, 1)))

_ENGINES: dict[str, tuple[str, Any]] = {
    "packet": (BLUE, "o"),
    "mean-field": (GREEN, "s"),
    "fixed-point": (SKY, "^"),
    "kernel": (BLACK, "D"),
    "trace": (BLACK, "v"),
    "engset": (VERMILION, "-"),
    "restart-sqrt": (PURPLE, "--"),
    "fair-share": (ORANGE, "-."),
    "overload-bound": (BLACK, ":"),
    "pftk": (VERMILION, "-"),
    "cubic-response": (PURPLE, "--"),
    "bbr-bound": (ORANGE, "-."),
    "mathis": (GREEN, ":"),
    "parallel": (SKY, LINES[4]),
    "pftk-approx": (VERMILION, ":"),
    "td-only": (BLACK, "--"),
    "parallel-cumulative": (SKY, LINES[5]),
    "short": (VERMILION, "-"),
    "cardwell": (PURPLE, "--"),
}
"""Colour of each engine, and the marker of observed or the dash pattern of calculated values."""

_OTHER = (0, (2, 1))
"""Dash pattern of formulas of other packages."""

_CONTROLS = {"cubic": BLUE, "bbr": VERMILION, "reno": GREEN, "bbr3": ORANGE, "dctcp": PURPLE}
"""Colour of each congestion control."""


def engine_look(name: str) -> tuple[str, Any]:
    """Return the colour of an engine, and its marker or dash pattern.

    Engines of other packages share the look of the reference lines.
    """
    return _ENGINES.get(name, (REFERENCE, "P"))


def engine_style(name: str, *, is_observed: bool) -> dict[str, Any]:
    """Return the style of an engine's values: markers if observed, a line if calculated."""
    colour, look = engine_look(name)
    if is_observed:
        marker = look if look in {*MARKERS, "P"} else "o"
        return {"color": colour, "marker": marker, "linestyle": "none", "markersize": 3.2}
    return {"color": colour, "linestyle": _OTHER if look == "P" else look, "linewidth": 1.8}


def line_style(index: int, colours: Sequence[str] = COLOURS) -> dict[str, Any]:
    """Return the style of line ``index``; consecutive lines differ in colour and dash pattern."""
    return {"color": colours[index % len(colours)], "linestyle": LINES[index % len(LINES)]}


def class_styles(groups: Iterable[Population]) -> dict[str, dict[str, Any]]:
    """Return one line style per class: the colour of its congestion control if all differ."""
    several = list(groups)
    controls = [group.tcp.control for group in several]
    distinct = len(set(controls)) == len(controls) and set(controls) <= _CONTROLS.keys()
    return {
        group.name: line_style(i) | ({"color": _CONTROLS[group.tcp.control]} if distinct else {})
        for i, group in enumerate(several)
    }


def stack_colour(name: str) -> str | None:
    """Return the colour of the congestion control that a stack's name contains, or None."""
    words = name.split("-")
    return next((colour for control, colour in _CONTROLS.items() if control in words), None)
