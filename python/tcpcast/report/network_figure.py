"""Figure of a network: its links with their utilisation, and the routes of the classes."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpcast.report.chart import LABEL_POINTS, Axis, one_panel_chart
from tcpcast.report.palette import COLOURS, REFERENCE
from tcpcast.report.quantity import amount_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from tcpcast.answer import Answer
    from tcpcast.report.chart import Chart
    from tcpcast.scenario import Scenario

    Places = Mapping[str, tuple[float, float]]

MAX_DRAWN_CLASSES = 8
"""Maximum number of classes with a line; the picture of more would be unreadable."""
_SPREAD = 0.4
"""Height of all lines together, in rows; that of a box is about 0.3."""


def network_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    """Return the picture of a network: a box per link, and a line per class from end to end.

    Data of the server go from left to right. Links that only carry traffic of clients are below.
    """
    table = answers[0].tables["by_link"]
    # Links without a rate have no utilisation.
    shares = zip(table["link"].tolist(), table.get("utilisation", ()), strict=False)
    known = {name: float(share) for name, share in shares if math.isfinite(share)}
    busiest = max(known, key=lambda name: known[name], default="")
    title = (
        f"{busiest} carries {100 * known[busiest]:.0f} % of its rate" if busiest else "The network"
    )
    picture = _NetworkPicture(scenario, place_links(scenario), known)
    ys = [y for _, y in picture.places.values()]
    width = max(x for x, _ in picture.places.values())
    return one_panel_chart(
        scenario,
        title,
        Axis(low=-1.4, high=width + 1.4),
        Axis(low=min(ys) - 0.5, high=max(ys) + 0.6),
        [picture],
    )


def place_links(scenario: Scenario) -> dict[str, tuple[float, float]]:
    """Return a column and a row for each link, such that routes go from left to right."""
    topology = scenario.topology
    columns: dict[str, int] = {}
    routes = [route for entry in topology.classes for route in entry.route]
    for _ in routes:  # until the order of each route holds, at most once per route
        for route in routes:
            for index, name in enumerate(route):
                before = columns[route[index - 1]] + 1 if index else 0
                columns[name] = min(max(columns.get(name, 0), before), len(topology.links))
    depth, rows = max(columns.values(), default=0), Counter[tuple[int, bool]]()
    there = set(columns)
    for entry in topology.classes:
        for route in entry.back:
            for index, name in enumerate(route):
                columns.setdefault(name, max(0, depth - index))
    places: dict[str, tuple[float, float]] = {}
    for name in topology.links:
        column, is_back = columns[name], name not in there
        places[name] = (column, -1.0 - rows[column, is_back] if is_back else rows[column, is_back])
        rows[column, is_back] += 1
    return places


@dataclass(frozen=True, slots=True)
class _NetworkPicture:
    scenario: Scenario
    places: Places
    utilisation: Mapping[str, float]

    def draw(self, axes: Axes) -> None:
        """Draw lines of classes, and boxes of links over them."""
        axes.set_axis_off()
        last = max(x for x, _ in self.places.values()) + 1
        topology, groups = self.scenario.topology, self.scenario.populations
        classes = topology.classes[:MAX_DRAWN_CLASSES]
        for index, entry in enumerate(classes):
            shift = _SPREAD * ((index + 0.5) / len(classes) - 0.5)
            colour = COLOURS[index % len(COLOURS)]
            style: dict[str, Any] = {"color": colour, "linewidth": 1.4, "zorder": 1}
            for routes, is_back in ((entry.route, False), (entry.back, True)):
                for route in routes:
                    names = route[::-1] if is_back else route
                    middle = [(x, y + shift) for x, y in map(self.places.__getitem__, names)]
                    ends = (-1.0, shift), (last, shift)
                    xs, ys = zip(ends[0], *middle, ends[1], strict=True)
                    axes.plot(xs, ys, linestyle="--" if is_back else "-", **style)
            text: dict[str, Any] = {"fontsize": LABEL_POINTS, "color": colour, "va": "center"}
            axes.text(last + 0.05, shift, groups[index].name, **text)
        for name, (x, y) in self.places.items():
            share = self.utilisation.get(name, 0.0)
            link = topology.links[name]
            each = f" per {link.each}" if link.each else ""
            lines = [f"{name}{each}", amount_text(link.rate, "bit/s")]
            lines += [f"{100 * share:.0f} %"] if name in self.utilisation else []
            shade = 1 - 0.55 * min(1.0, share)
            box = {"boxstyle": "round", "facecolor": (1.0, shade, shade), "edgecolor": REFERENCE}
            axes.text(
                x, y, "\n".join(lines), ha="center", va="center", fontsize=LABEL_POINTS, bbox=box
            )
        axes.text(-1.05, 0.0, "server", fontsize=LABEL_POINTS, ha="right", va="center")
