"""Figures of a scenario's answers: formulas as lines, simulations as points."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, SupportsIndex, overload

import numpy as np

from tcpcast import output
from tcpcast.extras import import_matplotlib
from tcpcast.output import save_figure
from tcpcast.report import distribution_figures, document, time_figures
from tcpcast.report.chart import MAX_NARROW_WIDTH_IN
from tcpcast.report.distribution_figures import completion_chart
from tcpcast.report.html import html_elements
from tcpcast.report.network_figure import network_chart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from matplotlib.figure import Figure

    from tcpcast.answer import Answer
    from tcpcast.report.chart import Chart
    from tcpcast.scenario import Scenario

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
