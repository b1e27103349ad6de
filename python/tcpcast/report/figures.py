"""Figures of a scenario's answers: formulas as lines, simulations as points."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np

from tcpcast import output
from tcpcast.compare import is_observed
from tcpcast.output import save_figure
from tcpcast.report import (
    completion_distributions,
    completion_figures,
    document,
    goodput_figures,
    over_time_figures,
    window_figures,
)
from tcpcast.report.chart import (
    DECADES,
    REFERENCE,
    Axis,
    Chart,
    Reference,
    Series,
    figure_class,
    scenario_chart,
    styles,
)
from tcpcast.report.html import html
from tcpcast.report.quantity import scale_of_unit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from matplotlib.figure import Figure

    from tcpcast.answer import Answer
    from tcpcast.report.chart import Drawable, Style
    from tcpcast.scenario import Scenario

    Table = dict[str, np.ndarray[Any, Any]]

_UNUSED = re.compile(r' id="[a-z]+[0-9_.a-z]*_[0-9]+"|<metadata>.*?</metadata>', re.DOTALL)
"""What a page need not have of SVG: ids of groups come again in every figure."""
_PLACES = re.compile(r' d="[^"]*"|<use [^>]*>')
_DIGITS = re.compile(r"([0-9]\.[0-9]{2})[0-9]+")
"""Of places in SVG, hundredths of a point are enough."""


class Figures(list["Figure"]):
    """Figures of matplotlib, which a notebook shows one below the other.

    ``figures["queue"]`` is the one that is written as ``queue.png``; ``names`` has all names.
    """

    def __init__(self, figures: Iterable[tuple[str, Figure]]) -> None:
        found = dict(figures)
        super().__init__(found.values())
        self.names = list(found)

    @overload
    def __getitem__(self, key: SupportsIndex | str) -> Figure: ...
    @overload
    def __getitem__(self, key: slice) -> list[Figure]: ...
    def __getitem__(self, key: SupportsIndex | slice | str) -> Figure | list[Figure]:
        """Return a figure by position or by name.

        Raises
        ------
        KeyError
            No figure of that name; the message lists those there are.
        """
        if not isinstance(key, str):
            return super().__getitem__(key)
        if key not in self.names:
            raise KeyError(f"no figure '{key}'; there are: {', '.join(self.names) or 'none'}")
        return self[self.names.index(key)]

    def __repr__(self) -> str:
        return f"<Figures: {', '.join(self.names) or 'none'}>"

    def _repr_html_(self) -> str:
        return html(inline(name, figure) for name, figure in zip(self.names, self, strict=True))


def plot(
    answers: Sequence[Answer],
    scenario: Scenario,
    folder: str | Path,
    *,
    force: bool = False,
    form: str = "png",
) -> list[Path]:
    """Write the figures that the answers have tables for.

    ``over-time.png``: windows of some flows, mean RTT, queue and goodput over the whole run;
    ``states.png``: probability of j active sources, log scale; ``sharing.png``: the rate each
    of j active sources gets; ``queue.png``: share of time the queue is above x, log scale;
    ``windows.png`` and ``rates.png``: congestion windows of the traced flows, and what they sent,
    over the whole run; ``completion.png``: completion time of single transfers against their size,
    its median, 95th and 99th percentile, and means over all and for each number of losses, with a
    gap where there were none; ``completion-distribution.png``: how many take at most a time, and
    ``completion-tail.png``: how many take longer;
    ``file-goodput.png`` and ``file-goodput-tail.png``: how the goodput of files is distributed,
    and how often it is more, by each definition that was asked for.

    Parameters
    ----------
    answers
        Answers to ``scenario``.
    scenario
        Names the figures and gives link rate and buffer.
    folder
        Where the files go; made if it does not exist. Figures of earlier runs are replaced.
    force
        Whether any other file of the same name is replaced, too.
    form
        ``"png"``, ``"svg"`` or ``"pdf"``, in which the names then end.

    Returns
    -------
    list of Path
        The files written; empty if no engine gave a table to draw.

    Raises
    ------
    MachineError
        matplotlib is not installed, or the folder cannot be written.
    """
    figure_class()
    output.check_folder(folder)
    return [
        save_figure(figure, Path(folder) / f"{name}.{form}", force=force)
        for name, figure in drawn(answers, scenario)
    ]


def drawn(answers: Sequence[Answer], scenario: Scenario) -> Iterator[tuple[str, Figure]]:
    """Yield the name and the figure of each table that there is, one at a time."""
    for name, chart, table, column in _FIGURES:
        given = [a for a in answers if not a.withheld and _has_rows(a, table, column)]
        if given:
            yield name, chart(given, scenario).draw()


def check_figures(folder: str | Path, names: Iterable[str] = (), *, force: bool = False) -> None:
    """Refuse, before the work, a folder that figures cannot go to.

    Parameters
    ----------
    folder
        As for :func:`plot`.
    names
        The figures that may come, such as ``states.png``, as far as they are known.
    force
        As for :func:`plot`.

    Raises
    ------
    TcpcastError
        A file of such a name is no figure of tcpcast, or the folder is a symbolic link.
    MachineError
        matplotlib is not installed, or the folder cannot be written.
    """
    figure_class()
    output.check_folder(folder)
    for name in names:
        kind = output.FIGURES[Path(name).suffix[1:]]
        output.check_file(Path(folder) / name, kind=kind, force=force)


def run_figures(form: str = "png") -> list[str]:
    """Return the names of all files that :func:`plot` may write."""
    return [f"{name}.{form}" for name, *_ in _FIGURES]


def inline(name: str, figure: Figure) -> document.Figure:
    """Return a figure as a part of a report: its SVG, and its title as a caption."""
    svg = output.figure_bytes(figure, "svg", name).decode()
    whole = svg[svg.index("<svg") :]
    short = _PLACES.sub(lambda path: _DIGITS.sub(r"\1", path[0]), _UNUSED.sub("", whole))
    return document.Figure(short, figure.get_suptitle())


def _has_rows(answer: Answer, table: str, column: str) -> bool:
    columns = answer.tables.get(table, {})
    return column in columns and all(len(c) > 0 for c in columns.values())


Curve = Callable[["Table"], "tuple[Any, Any]"]


def _curves(answers: Sequence[Answer], table: str, curve: Curve) -> list[Drawable]:
    """Return a curve per answer; formulas last, so that their lines stay visible over points."""
    ordered = sorted(answers, key=is_observed, reverse=True)
    return [
        Series(*curve(answer.tables[table]), answer.engine, style)
        for answer, style in zip(ordered, styles(map(is_observed, ordered)), strict=False)
    ]


def _probabilities(
    answers: Sequence[Answer], table: str, columns: tuple[str, str]
) -> tuple[list[Drawable], float, float]:
    """Return curves for a logarithmic axis, where they end, and the lowest value to show.

    The axes end a little beyond what was seen: a formula's tail would go to 1e-300.
    """
    x, y = columns
    observed = [a.tables[table][y] for a in answers if is_observed(a)]
    seen = [float(np.min(c[c > 0])) for c in observed if np.any(c > 0)]
    floor = max(10 ** np.floor(np.log10(min(seen)) - 0.5) if seen else 1e-6, 1e-9)
    tables = [a.tables[table] for a in answers]
    ends = [float(np.max(t[x][t[y] >= floor], initial=1.0)) for t in tables]
    curves = _curves(answers, table, lambda t: (t[x][t[y] > 0], t[y][t[y] > 0]))
    return curves, 1.03 * max(ends), floor


def _states(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    curves, right, floor = _probabilities(answers, "states", ("active", "probability"))
    x = Axis("active sources j", 0, right)
    y = Axis("probability of j active", floor, log=True, ticks=DECADES)
    return scenario_chart(scenario, "active sources", x, y, curves)


def _sharing(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    rate = scenario.network.bottleneck.rate_bps
    shared = [a.tables["states"]["shared_rate_bps"] for a in answers]
    peak = max((float(np.nanmax(s)) for s in shared if np.isfinite(s).any()), default=rate)
    scale = scale_of_unit("bit/s", peak)

    def curve(table: Table) -> tuple[Any, Any]:
        shown = (table["active"] > 0) & np.isfinite(table["shared_rate_bps"])
        return table["active"][shown], table["shared_rate_bps"][shown] / scale.factor

    curves = _curves(answers, "states", curve)
    right = max(float(np.max(a.tables["states"]["active"])) for a in answers)
    if np.isfinite(rate) and right >= 1:
        j = np.arange(1, int(right) + 1)
        dotted: Style = {"color": REFERENCE, "linewidth": 1, "linestyle": ":"}
        curves.append(Series(j, rate / j / scale.factor, "equal shares C/j", dotted))
    x = Axis("active sources j", 0, _visible_states(answers) * 1.05)
    y = Axis(f"rate of each active source ({scale.unit})", 0, 1.15 * peak / scale.factor)
    return scenario_chart(scenario, "shares of the capacity", x, y, curves)


def _visible_states(answers: Sequence[Answer]) -> float:
    """Return the state up to which something happens: beyond, the formula's rate is a tail."""
    seen = [
        float(np.max(t["active"][t["probability"] > 1e-6], initial=1.0))
        for t in (a.tables["states"] for a in answers)
    ]
    return max(seen)


def _queue(answers: Sequence[Answer], scenario: Scenario) -> Chart:
    curves, right, floor = _probabilities(answers, "queue", ("queue_pkts", "time_above"))
    buffer_pkts = scenario.buffer_pkts
    right = min(right, 1.25 * buffer_pkts)
    if buffer_pkts <= right:
        curves.append(Reference(buffer_pkts, "buffer", axis="x"))
    x = Axis("queue x (packets, the one in transmission included)", 0, right)
    y = Axis("share of time with a queue above x", floor, log=True, ticks=DECADES)
    return scenario_chart(scenario, "queue length", x, y, curves)


_FIGURES: tuple[tuple[str, Callable[[Sequence[Answer], Scenario], Chart], str, str], ...] = (
    ("over-time", over_time_figures.over_time, "flows_over_time", "to_s"),
    ("states", _states, "states", "active"),
    ("sharing", _sharing, "states", "shared_rate_bps"),
    ("queue", _queue, "queue", "queue_pkts"),
    ("windows", window_figures.windows_chart, "windows", "cwnd_pkts"),
    ("rates", window_figures.rates_chart, "sequences", "sequence"),
    ("completion", completion_figures.completion_chart, "by_size", "size_pkts"),
    (
        "completion-distribution",
        completion_distributions.distribution,
        completion_distributions.TABLE,
        "share",
    ),
    ("completion-tail", completion_distributions.tail, "by_size", "p50"),
    ("file-goodput", goodput_figures.distribution_chart, "file_goodput_tail", "by_file"),
    ("file-goodput-tail", goodput_figures.tail_chart, "file_goodput_tail", "by_file"),
)
"""A figure's name, its chart, and the table and column that it needs."""
