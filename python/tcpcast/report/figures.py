"""Figures of a scenario's answers: formulas as lines, simulations as points."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np

from tcpcast import output
from tcpcast.compare import is_observed
from tcpcast.extras import import_matplotlib
from tcpcast.output import save_figure
from tcpcast.readable_units import count_text
from tcpcast.report import (
    completion_distributions,
    completion_figures,
    document,
    goodput_figures,
    over_time_figures,
    window_figures,
)
from tcpcast.report.chart import (
    MAX_NARROW_WIDTH_IN,
    Axis,
    Chart,
    ReferenceLine,
    Series,
    one_panel_chart,
    percent_tick,
)
from tcpcast.report.figure_titles import (
    answer_for_title,
    engine_label,
    finding_title,
    sender_noun,
)
from tcpcast.report.html import html_elements
from tcpcast.report.palette import REFERENCE, engine_style
from tcpcast.report.quantity import scale_for_unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from matplotlib.figure import Figure

    from tcpcast.answer import Answer
    from tcpcast.report.chart import Drawable, Style
    from tcpcast.scenario import Scenario

    Table = dict[str, np.ndarray[Any, Any]]

_UNUSED_SVG = re.compile(r' id="[a-z]+[0-9_.a-z]*_[0-9]+"|<metadata>.*?</metadata>', re.DOTALL)
"""SVG code that a page does not need; group ids would be duplicated across figures."""
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


def write_answer_figures(
    answers: Sequence[Answer],
    scenario: Scenario,
    folder: str | Path,
    *,
    force: bool = False,
    form: str = "png",
) -> list[Path]:
    """Write one figure for each table in the answers.

    - ``over-time.png``: windows of some flows, mean RTT, queue and goodput over the whole run
    - ``states.png``: probability of j active sources, logarithmic scale
    - ``sharing.png``: rate of each of j active sources
    - ``queue.png``: share of time with a queue above x, logarithmic scale
    - ``windows.png`` and ``rates.png``: congestion windows and sent data of the traced flows over
      the whole run
    - ``completion.png``: completion time of single transfers against their size: median, 95th and
      99th percentile, and means over all transfers and by number of losses, with gaps for sizes
      without transfers
    - ``completion-distribution.png``: share of transfers that take at most a time
    - ``completion-tail.png``: share of transfers that take longer than a time
    - ``file-goodput.png`` and ``file-goodput-tail.png``: distribution of the goodput of files, and
      the share above a goodput by each requested definition

    Parameters
    ----------
    answers
        Answers to ``scenario``.
    scenario
        Source of the titles, the link rate and the buffer.
    folder
        Folder for the files, created if it does not exist. Figures of earlier runs are overwritten.
    force
        Overwrite also files that are not figures of tcpcast.
    form
        ``"png"``, ``"svg"`` or ``"pdf"``, which is also the file extension.

    Returns
    -------
    list of Path
        Paths of the files; empty if no answer has a table to draw.

    Raises
    ------
    MachineError
        matplotlib is not installed, or the folder cannot be written.
    """
    import_matplotlib()
    output.check_folder_is_writable(folder)
    return [
        save_figure(figure, Path(folder) / f"{name}.{form}", force=force)
        for name, figure in iter_figures(answers, scenario)
    ]


def iter_figures(answers: Sequence[Answer], scenario: Scenario) -> Iterator[tuple[str, Figure]]:
    """Yield the name and the figure of each available table, one at a time."""
    for name, chart, table, *columns in _FIGURE_DEFINITIONS:
        given = [a for a in answers if not a.withheld and _has_values(a, table, *columns)]
        if given:
            yield name, chart(given, scenario).draw()


def check_figure_files(
    folder: str | Path, names: Iterable[str] = (), *, force: bool = False
) -> None:
    """Raise before the work starts if figures cannot be written to a folder.

    Parameters
    ----------
    folder
        As for :func:`write_answer_figures`.
    names
        Names of the expected files, for example ``states.png``, if known.
    force
        As for :func:`write_answer_figures`.

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
    """Return the names of all files that :func:`write_answer_figures` may write."""
    return [f"{name}.{form}" for name, *_ in _FIGURE_DEFINITIONS]


def svg_figure(name: str, figure: Figure) -> document.Figure:
    """Return a figure as a part of a report: its SVG, with its title as the caption."""
    svg = output.figure_bytes(figure, "svg", name).decode()
    whole = svg[svg.index("<svg") :]
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


def _has_values(answer: Answer, table: str, *columns: str) -> bool:
    """Return True if each of these columns has a finite value."""
    given = answer.tables.get(table, {})
    return all(column in given and np.isfinite(given[column]).any() for column in columns)


Curve = Callable[["Table"], "tuple[Any, Any]"]


def _answer_curves(answers: Sequence[Answer], table: str, curve: Curve) -> list[Drawable]:
    """Return one curve per answer; formulas last, so that their lines are drawn over points."""
    ordered = sorted(answers, key=is_observed, reverse=True)
    return [
        Series(
            *curve(answer.tables[table]),
            engine_label(answer),
            engine_style(answer.engine, is_observed=is_observed(answer)),
        )
        for answer in ordered
    ]


def _probability_curves(
    answers: Sequence[Answer], table: str, columns: tuple[str, str]
) -> tuple[list[Drawable], float, float]:
    """Return curves for a logarithmic axis, the largest x value, and the lowest value to show.

    The axes end slightly beyond the simulated values, because the tail of a formula may extend to
    1e-300.
    """
    x, y = columns
    observed = [a.tables[table][y] for a in answers if is_observed(a)]
    seen = [float(np.min(c[c > 0])) for c in observed if np.any(c > 0)]
    floor = max(10 ** np.floor(np.log10(min(seen)) - 0.5) if seen else 1e-6, 1e-9)
    tables = [a.tables[table] for a in answers]
    ends = [float(np.max(t[x][t[y] >= floor], initial=1.0)) for t in tables]
    curves = _answer_curves(answers, table, lambda t: (t[x][t[y] > 0], t[y][t[y] > 0]))
    return curves, 1.03 * max(ends), floor


def _active_users_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    curves, right, floor = _probability_curves(answers, "states", ("active", "probability"))
    x = Axis(_active_label(scenario), 0, right, integer_ticks=True)
    y = Axis("share of time", floor, 1, log=True, ticks=percent_tick)
    return one_panel_chart(
        scenario, _active_users_title(answer_for_title(answers), scenario), x, y, curves
    )


def _active_label(scenario: Scenario) -> str:
    return f"{sender_noun(scenario.populations)}s active at the same time"


def _active_users_title(answer: Answer, scenario: Scenario) -> str:
    """Return the title with the range of active users between the 5th and 95th percentile."""
    table = answer.tables["states"]
    below = np.cumsum(table["probability"])
    ends = [
        int(table["active"][min(np.searchsorted(below, share * below[-1]), len(below) - 1)])
        for share in (0.05, 0.95)
    ]
    noun = sender_noun(scenario.populations)
    return finding_title(answer, f"90 % of the time, the number of active {noun}s", ends, noun)


def _shared_rate_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    rate = scenario.network.bottleneck.rate_bps
    shared = [a.tables["states"]["shared_rate_bps"] for a in answers]
    peak = max((float(np.nanmax(s)) for s in shared if np.isfinite(s).any()), default=rate)
    scale = scale_for_unit("bit/s", peak)

    def curve(table: Table) -> tuple[Any, Any]:
        shown = (table["active"] > 0) & np.isfinite(table["shared_rate_bps"])
        return table["active"][shown], table["shared_rate_bps"][shown] / scale.factor

    curves = _answer_curves(answers, "states", curve)
    right = max(float(np.max(a.tables["states"]["active"])) for a in answers)
    if np.isfinite(rate) and right >= 1:
        j = np.arange(1, int(right) + 1)
        dotted: Style = {"color": REFERENCE, "linewidth": 1, "linestyle": ":"}
        curves.append(Series(j, rate / j / scale.factor, "equal shares of the link", dotted))
    noun = sender_noun(scenario.populations)
    right = _max_visible_state(answers) * 1.05
    x = Axis(_active_label(scenario), 0, right, integer_ticks=True)
    y = Axis(f"rate of each active {noun} ({scale.unit})", 0, 1.15 * peak / scale.factor)
    title = _shared_rate_title(answer_for_title(answers), noun)
    return one_panel_chart(scenario, title, x, y, curves)


def _shared_rate_title(answer: Answer, noun: str) -> str:
    """Return the title with the rate for the number of active users of highest probability."""
    table = answer.tables["states"]
    known = (table["active"] > 0) & np.isfinite(table["shared_rate_bps"])
    if not known.any():
        return f"Rate of each active {noun}, by the number of active {noun}s"
    row = int(np.argmax(np.where(known, table["probability"], -1.0)))
    number, rate = int(table["active"][row]), float(table["shared_rate_bps"][row])
    return finding_title(
        answer, f"with {count_text(number, f'active {noun}')}, the rate of each", [rate], "bit/s"
    )


def _max_visible_state(answers: Sequence[Answer]) -> float:
    """Return the largest number of active sources with a probability above 1e-6."""
    seen = [
        float(np.max(t["active"][t["probability"] > 1e-6], initial=1.0))
        for t in (a.tables["states"] for a in answers)
    ]
    return max(seen)


def _queue_chart(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    curves, right, floor = _probability_curves(answers, "queue", ("queue_pkts", "time_above"))
    buffer_pkts = scenario.buffer_pkts
    right = min(right, 1.25 * buffer_pkts)
    if buffer_pkts <= right:
        curves.append(ReferenceLine(buffer_pkts, "buffer", axis="x"))
    x = Axis("packets in the queue, including the packet in transmission", 0, right)
    y = Axis("share of time with a longer queue", floor, 1, log=True, ticks=percent_tick)
    return one_panel_chart(scenario, _queue_title(answer_for_title(answers)), x, y, curves)


def _queue_title(answer: Answer) -> str:
    """Return the title with the median queue length, or the 95th percentile if the median is 0."""
    table = answer.tables["queue"]
    longest = [
        float(np.max(table["queue_pkts"][table["time_above"] >= share], initial=0.0))
        for share in (0.5, 0.05)
    ]
    which = "median" if longest[0] else "95th percentile"
    return finding_title(answer, f"the {which} of the queue", [longest[0] or longest[1]], "packet")


_FIGURE_DEFINITIONS: tuple[
    tuple[str, Callable[[Sequence[Answer], Scenario], Chart], str, *tuple[str, ...]], ...
] = (
    ("over-time", over_time_figures.over_time_chart, "flows_over_time", "goodput_bps"),
    ("states", _active_users_chart, "states", "active"),
    ("sharing", _shared_rate_chart, "states", "shared_rate_bps"),
    ("queue", _queue_chart, "queue", "queue_pkts"),
    ("windows", window_figures.windows_chart, "windows", "cwnd_pkts"),
    ("rates", window_figures.rates_chart, "sequences", "sequence"),
    (
        "completion",
        completion_figures.completion_chart,
        "by_size",
        "size_pkts",
        "completion_time_s",
    ),
    (
        "completion-distribution",
        completion_distributions.cumulative_time_chart,
        completion_distributions.DISTRIBUTION_TABLE,
        "share",
    ),
    ("completion-tail", completion_distributions.time_tail_chart, "by_size", "p50"),
    ("file-goodput", goodput_figures.goodput_distribution_chart, "file_goodput_tail", "by_file"),
    ("file-goodput-tail", goodput_figures.goodput_tail_chart, "file_goodput_tail", "by_file"),
)
"""Name of the figure, function that returns its chart, and the required table and columns."""
