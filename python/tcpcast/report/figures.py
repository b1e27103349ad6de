"""Figures of a scenario's answers: formulas as lines, simulations as points."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np

from tcpcast.process import output
from tcpcast.process.extras import import_matplotlib
from tcpcast.process.output import save_figure
from tcpcast.report import distribution_figures, document, time_figures
from tcpcast.report.chart import LABEL_POINTS, MAX_NARROW_WIDTH_IN, Axis, one_panel_chart
from tcpcast.report.distribution_figures import completion_chart
from tcpcast.report.html import html_elements
from tcpcast.report.palette import COLOURS, REFERENCE
from tcpcast.report.quantity import amount_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
        f"link {busiest} is utilised at {100 * known[busiest]:.0f} %" if busiest else "The network"
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


_UNUSED_SVG = re.compile(
    r' id="[a-z]+[0-9_.a-z]*_[0-9]+"|<metadata>.*?</metadata>|<style.*?</style>', re.DOTALL
)
"""SVG code that a page does not need; group ids would be duplicated across figures."""
_SVG_STYLE = '<svg style="stroke-linejoin: round; stroke-linecap: butt"'
"""The style sheet of matplotlib's SVG as an attribute: style sheets apply to the whole page."""
_SVG_COORDINATES = re.compile(r' d="[^"]*"|<use [^>]*>')
_EXCESS_DECIMALS = re.compile(r"([0-9]\.[0-9]{2})[0-9]+")
"""Coordinates are shortened to hundredths of a point."""


class Figures(list["Figure"]):
    """Figures of matplotlib; a notebook shows them one below the other.

    ``figures["queue"]`` is the figure of the file ``queue.png``; ``names`` lists all names.
    """

    def __init__(self, figures: Iterable[tuple[str, Figure]]) -> None:
        by_name = dict(figures)
        super().__init__(by_name.values())
        self.names = list(by_name)

    @overload
    def __getitem__(self, key: SupportsIndex | str) -> Figure: ...
    @overload
    def __getitem__(self, key: slice) -> list[Figure]: ...
    def __getitem__(self, key: SupportsIndex | slice | str) -> Figure | list[Figure]:
        """Return a figure by position or by name.

        Raises
        ------
        KeyError
            No figure has that name; the message lists the names.
        """
        if not isinstance(key, str):
            return super().__getitem__(key)
        if key not in self.names:
            raise KeyError(
                f"there is no figure '{key}'; the figures are {', '.join(self.names) or 'none'}"
            )
        return self[self.names.index(key)]

    def __repr__(self) -> str:
        return f"<Figures: {', '.join(self.names) or 'none'}>"

    def _repr_html_(self) -> str:
        return html_elements(
            svg_figure(name, figure) for name, figure in zip(self.names, self, strict=True)
        )


def write_figures(
    figures: Iterable[tuple[str, Figure]],
    folder: str | Path,
    *,
    force: bool = False,
    form: str = "png",
) -> list[Path]:
    """Write figures with their names to a folder.

    Parameters
    ----------
    figures
        For example :func:`iter_figures`. Each figure is written before the next one is drawn.
    folder
        Folder for the files, created if it does not exist. Figures of earlier runs are overwritten.
    force
        Overwrite also files that are not figures of tcpcast.
    form
        ``"png"``, ``"svg"`` or ``"pdf"``, which is also the file extension.

    Returns
    -------
    list of Path
        Paths of the files; empty if there is no figure.

    Raises
    ------
    MachineError
        matplotlib is not installed, or the folder cannot be written.
    """
    import_matplotlib()
    output.check_folder_is_writable(folder)
    return [
        save_figure(figure, Path(folder) / f"{name}.{form}", force=force)
        for name, figure in figures
    ]


def iter_figures(answers: Sequence[Answer], scenario: Scenario) -> Iterator[tuple[str, Figure]]:
    """Yield the name and the figure of each available table, one at a time.

    - ``network``: links with their utilisation, and the routes of the classes
    - ``over-time``: windows of some flows, mean RTT, queue and goodput over the whole run
    - ``states``: probability of j active sources, logarithmic scale
    - ``sharing``: rate of each of j active sources
    - ``queue``: share of time with a queue above x, logarithmic scale
    - ``windows`` and ``rates``: congestion windows and sent data of the traced flows over the whole
      run
    - ``completion``: completion time of single transfers against their size: median, 95th and 99th
      percentile, and means over all transfers and by number of losses
    - ``completion-distribution``: share of transfers that take at most a time
    - ``completion-tail``: share of transfers that take longer than a time
    - ``file-goodput`` and ``file-goodput-tail``: distribution of the goodput of files, and the
      share above a goodput by each requested definition
    """
    for name, chart, table, *columns in _FIGURE_DEFINITIONS:
        given = [
            answer
            for answer in answers
            if not answer.withheld
            and all(
                np.isfinite(answer.tables.get(table, {}).get(column, np.nan)).any()
                for column in columns
            )
        ]
        if given:
            yield name, chart(given, scenario).draw()


def check_figure_files(
    folder: str | Path, names: Iterable[str] = (), *, force: bool = False
) -> None:
    """Raise before the work starts if figures cannot be written to a folder.

    Parameters
    ----------
    folder
        As for :func:`write_figures`.
    names
        Names of the expected files, for example ``states.png``, if known.
    force
        As for :func:`write_figures`.

    Raises
    ------
    TcpcastError
        An existing file with one of the names is not a figure of tcpcast, or the folder is a
        symbolic link.
    MachineError
        matplotlib is not installed, or the folder cannot be written.
    """
    import_matplotlib()
    output.check_folder_is_writable(folder)
    for name in names:
        kind = output.FIGURE_KINDS[Path(name).suffix[1:]]
        output.check_file_is_writable(Path(folder) / name, kind=kind, force=force)


def figure_file_names(form: str = "png") -> list[str]:
    """Return the names of all files that :func:`iter_figures` may yield."""
    return [f"{name}.{form}" for name, *_ in _FIGURE_DEFINITIONS]


def svg_figure(name: str, figure: Figure) -> document.Figure:
    """Return a figure as a part of a report: its SVG, with its title as the caption."""
    svg = output.figure_bytes(figure, "svg", name).decode()
    whole = _SVG_STYLE + svg[svg.index("<svg") + len("<svg") :]
    short = _SVG_COORDINATES.sub(
        lambda path: _EXCESS_DECIMALS.sub(r"\1", path[0]), _UNUSED_SVG.sub("", whole)
    )
    caption = " ".join(figure.get_suptitle().split())
    return document.Figure(short, caption, is_wide=figure.get_figwidth() > MAX_NARROW_WIDTH_IN)


def figure_parts(
    heading: str, figures: Iterable[tuple[str, Figure]], explanation: str = ""
) -> Iterator[document.Part]:
    """Yield a section with figures as SVG; nothing if there is no figure."""
    shown = [svg_figure(name, figure) for name, figure in figures]
    if shown:
        yield document.Heading(heading)
        if explanation:
            yield document.Paragraph(explanation, "aside")
        yield from shown


_FIGURE_DEFINITIONS: tuple[
    tuple[str, Callable[[Sequence[Answer], Scenario], Chart], str, *tuple[str, ...]], ...
] = (
    ("network", network_chart, "by_link", "packets"),
    ("over-time", time_figures.over_time_chart, "flows_over_time", "goodput_bps"),
    ("states", distribution_figures.active_users_chart, "states", "active"),
    ("sharing", distribution_figures.shared_rate_chart, "states", "shared_rate_bps"),
    ("queue", distribution_figures.queue_chart, "queue", "queue_pkts"),
    ("windows", time_figures.windows_chart, "windows", "cwnd_pkts"),
    ("rates", time_figures.rates_chart, "sequences", "sequence"),
    ("completion", completion_chart, "by_size", "size_pkts", "completion_time_s"),
    (
        "completion-distribution",
        distribution_figures.cumulative_time_chart,
        distribution_figures.TIMES_TABLE,
        "share",
    ),
    ("completion-tail", distribution_figures.time_tail_chart, "by_size", "p50"),
    (
        "file-goodput",
        distribution_figures.goodput_distribution_chart,
        "file_goodput_tail",
        "by_file",
    ),
    ("file-goodput-tail", distribution_figures.goodput_tail_chart, "file_goodput_tail", "by_file"),
)
"""Name of the figure, function that returns its chart, and the required table and columns."""
