"""Figures of a scenario's answers: formulas as lines, simulations as points."""

from __future__ import annotations

import math
import re
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
from tcpcast.report.axes import (
    CALCULATED,
    LINES,
    MARKERS,
    OBSERVED,
    REFERENCE,
    colours_of,
    figure_class,
    lay_out,
    legend_above,
    titled,
)
from tcpcast.report.html import html
from tcpcast.report.quantity import scale_of_unit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tcpcast.answer import Answer
    from tcpcast.scenario import Scenario

    Table = dict[str, np.ndarray[Any, Any]]

_UNUSED = re.compile(r' id="[a-z]+[0-9_.a-z]*_[0-9]+"|<metadata>.*?</metadata>', re.DOTALL)
"""What a page need not have of SVG: ids of groups come again in every figure."""
_PLACES = re.compile(r' d="[^"]*"|<use [^>]*>')
_DIGITS = re.compile(r"([0-9]\.[0-9]{2})[0-9]+")
"""Of places in SVG, hundredths of a point are enough."""
_SIZE = (6.4, 4.2)
_DPI = 150
_IN_A_ROW, _ROW = 3, 0.15
"""Entries in a row of a legend below its axes, and how high a row is, inches."""
_MAX_FLOWS = 6
_WIDE = 15.0
"""From this ratio of the largest to the median window on, windows are drawn to a log scale."""


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
    EnvironmentFault
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
    new_figure = figure_class()
    for name, draw, table, column in _FIGURES:
        given = [a for a in answers if not a.withheld and _has_rows(a, table, column)]
        if given:
            figure = new_figure(figsize=_SIZE, dpi=_DPI, layout="constrained")
            draw(figure, given, scenario)
            yield name, figure


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
    EnvironmentFault
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


def _series(
    axes: Axes, answers: Sequence[Answer], curve: Callable[[Table], tuple[Any, Any]], table: str
) -> None:
    """Draw one curve an answer; formulas last, so that their lines stay visible over points."""
    shades = {True: iter(OBSERVED * 4), False: iter(CALCULATED * 4)}
    marks, lines = iter(MARKERS * 3), iter(LINES * 3)
    for answer in sorted(answers, key=is_observed, reverse=True):
        observed = is_observed(answer)
        x, y = curve(answer.tables[table])
        look: dict[str, Any] = {"color": next(shades[observed]), "label": answer.engine}
        if observed:
            axes.plot(x, y, linestyle="none", marker=next(marks), markersize=3.2, **look)
        else:
            axes.plot(x, y, linewidth=1.8, linestyle=next(lines), **look)


def _states(figure: Figure, answers: Sequence[Answer], scenario: Scenario) -> None:
    axes = titled(figure, scenario, "active sources", "active sources j", "probability of j active")
    axes.set_yscale("log")
    _series(axes, answers, lambda t: _positive(t["active"], t["probability"]), "states")
    _frame(axes, answers, "states", ("active", "probability"), np.inf)
    axes.legend(frameon=False)


def _sharing(figure: Figure, answers: Sequence[Answer], scenario: Scenario) -> None:
    rate = scenario.network.bottleneck.rate_bps
    shared = [a.tables["states"]["shared_rate_bps"] for a in answers]
    peak = max((float(np.nanmax(s)) for s in shared if np.isfinite(s).any()), default=rate)
    scale = scale_of_unit("bit/s", peak)
    axes = titled(
        figure,
        scenario,
        "shares of the capacity",
        "active sources j",
        f"rate of each active source ({scale.unit})",
    )

    def curve(table: Table) -> tuple[Any, Any]:
        shown = (table["active"] > 0) & np.isfinite(table["shared_rate_bps"])
        return table["active"][shown], table["shared_rate_bps"][shown] / scale.factor

    _series(axes, answers, curve, "states")
    right = max(float(np.max(a.tables["states"]["active"])) for a in answers)
    if np.isfinite(rate) and right >= 1:
        j = np.arange(1, int(right) + 1)
        equal = rate / j / scale.factor
        axes.plot(j, equal, color=REFERENCE, linewidth=1, linestyle=":", label="equal shares C/j")
    axes.set_ylim(0, 1.15 * peak / scale.factor)
    axes.set_xlim(0, _visible_states(answers) * 1.05)
    axes.legend(frameon=False)


def _visible_states(answers: Sequence[Answer]) -> float:
    """Return the state up to which something happens: beyond, the formula's rate is a tail."""
    seen = [
        float(np.max(t["active"][t["probability"] > 1e-6], initial=1.0))
        for t in (a.tables["states"] for a in answers)
    ]
    return max(seen)


def _queue(figure: Figure, answers: Sequence[Answer], scenario: Scenario) -> None:
    axes = titled(
        figure,
        scenario,
        "queue length",
        "queue x (packets, the one in transmission included)",
        "share of time with a queue above x",
    )
    axes.set_yscale("log")
    _series(axes, answers, lambda t: _positive(t["queue_pkts"], t["time_above"]), "queue")
    buffer_pkts = scenario.buffer_pkts
    _frame(axes, answers, "queue", ("queue_pkts", "time_above"), 1.25 * buffer_pkts)
    if buffer_pkts <= axes.get_xlim()[1]:
        axes.axvline(buffer_pkts, color=REFERENCE, linewidth=1, linestyle=":", label="buffer")
    axes.legend(frameon=False)


def _windows(figure: Figure, answers: Sequence[Answer], scenario: Scenario) -> None:
    answer = answers[0]
    table = answer.tables["windows"]
    traced = np.unique(table["flow"])
    flows = traced[:_MAX_FLOWS]
    start, end = float(np.min(table["time_s"])), float(np.max(table["time_s"]))
    figure.set_size_inches(_SIZE[0], 1.2 + 1.6 * len(flows))
    panels = figure.subplots(len(flows), sharex=True, squeeze=False)[:, 0]
    some = f", {len(flows)} of {len(traced)} flows" if len(traced) > len(flows) else ""
    figure.suptitle(f"{scenario.name}: congestion windows{some} ({answer.engine})", fontsize=12)
    for axes, flow in zip(panels, flows, strict=True):
        shown = table["flow"] == flow
        time, window = table["time_s"][shown], table["cwnd_pkts"][shown]
        threshold = table["ssthresh_pkts"][shown].astype(float)
        threshold[~np.isfinite(threshold)] = np.nan
        look: dict[str, Any] = {"color": CALCULATED[0], "linewidth": 1, "label": "ssthresh"}
        if len(time) > window_figures.MOST_CHANGES:
            held = window_figures.ranges(time, threshold, start, end)
            axes.stairs(held.last, held.edges_s, baseline=None, **look)
            _window_ranges(axes, window_figures.ranges(time, window, start, end))
        else:
            axes.step(time, threshold, where="post", **look)
            look = {"color": OBSERVED[0], "linewidth": 1.2, "label": "window"}
            axes.step(time, window, where="post", **look)
        axes.set_ylabel(f"flow {int(flow)}\npackets")
        lay_out(axes)
        # A threshold that nothing has lowered yet may be endless; the window is what matters.
        peak = float(np.max(window, initial=1.0))
        if peak > _WIDE * np.median(window):
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:,.0f}")
            axes.set_ylim(0.8, 1.6 * peak)
        else:
            axes.set_ylim(0, 1.1 * peak)
    legend_above(list(panels))
    panels[-1].set_xlim(start, max(end, start + 1e-9))
    panels[-1].set_xlabel("time (s)")


def _rates(figure: Figure, answers: Sequence[Answer], scenario: Scenario) -> None:
    """Draw what traced flows sent over the whole run, retransmissions left out."""
    answer = answers[0]
    table = answer.tables["sequences"]
    new = table["event"] == "sent"
    start, end = float(np.min(table["time_s"])), float(np.max(table["time_s"]))
    axes = titled(figure, scenario, f"rate of new data ({answer.engine})", "time (s)", "")
    found = {
        int(flow): window_figures.rates(
            table["time_s"][new & (table["flow"] == flow)],
            table["sequence"][new & (table["flow"] == flow)],
            start,
            max(end, start + 1e-9),
        )
        for flow in np.unique(table["flow"][new])[:_MAX_FLOWS]
    }
    ends = np.cumsum([group.count for group in scenario.populations])
    payloads = [8 * group.payload_bytes for group in scenario.populations]
    bits = {flow: payloads[int(np.searchsorted(ends, flow, "right"))] for flow in found}
    most = max(bits[flow] * float(rate.max()) for flow, (_, rate) in found.items())
    scale = scale_of_unit("bit/s", most)
    for at, (flow, (edges, rate)) in enumerate(found.items()):
        look: dict[str, Any] = {"color": (*OBSERVED, *CALCULATED)[at], "label": f"flow {flow}"}
        look["linestyle"] = LINES[at % len(LINES)]
        axes.stairs(rate * bits[flow] / scale.factor, edges, baseline=None, linewidth=1.2, **look)
    axes.set_ylabel(f"payload sent for the first time ({scale.unit})")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8)


def _window_ranges(axes: Axes, found: window_figures.Ranges) -> None:
    """Draw from where to where a window goes in each span, and where it is at its end."""
    span = found.edges_s[1] - found.edges_s[0]
    look: dict[str, Any] = {"color": OBSERVED[2], "alpha": 0.6, "linewidth": 0}
    look["label"] = f"window, lowest to highest of each {span:.2g} s"
    axes.stairs(found.high, found.edges_s, baseline=found.low, fill=True, **look)
    look = {"color": OBSERVED[0], "linewidth": 0.6, "label": "at its end"}
    axes.stairs(found.last, found.edges_s, baseline=None, **look)


def _completion(figure: Figure, answers: Sequence[Answer], scenario: Scenario) -> None:
    axes = titled(
        figure,
        scenario,
        "completion times of transfers",
        "size (packets)",
        "completion time (s)",
    )
    asked = {size for group in scenario.populations for size in _listed(group.traffic)}
    sizes = completion_figures.sizes(answers, asked)
    drawn = []
    lines = iter(("-", "--", "-.") * len(answers))
    for answer in sorted(answers, key=is_observed, reverse=True):
        observed = is_observed(answer)
        drawn += _completion_bands(axes, answer, sizes) if observed else []
        drawn += _completion_means(axes, answer, sizes, ":" if observed else next(lines))
    if completion_figures.is_wide(drawn):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
    else:
        axes.set_ylim(bottom=0)
    # Bands and lines fill the axes.
    entries = axes.get_legend_handles_labels()
    rows = math.ceil(len(entries[0]) / _IN_A_ROW)
    figure.set_size_inches(_SIZE[0], _SIZE[1] + _ROW * rows)
    look: dict[str, Any] = {"frameon": False, "fontsize": 7, "ncols": _IN_A_ROW}
    figure.legend(*entries, loc="outside lower center", **look)


def _listed(traffic: Any) -> Sequence[int]:
    return (traffic.sizes or ()) if traffic.kind == "transfers" else ()


def _completion_bands(axes: Axes, answer: Answer, sizes: Any) -> list[Any]:
    """Draw the median, and from there up to what 95 and 99 % of the transfers stay below."""
    found = completion_figures.percentiles(answer, sizes)
    if not found:
        return []
    p50, p95, p99 = found
    look: dict[str, Any] = {"color": OBSERVED[0], "linewidth": 0}
    for low, high, alpha, label in ((p50, p95, 0.3, "p50 to p95"), (p95, p99, 0.13, "p95 to p99")):
        axes.fill_between(sizes, low, high, alpha=alpha, label=label, **look)
        lone = completion_figures.alone(p50)
        axes.vlines(sizes[lone], low[lone], high[lone], color=OBSERVED[0], alpha=alpha, linewidth=5)
    look = {"color": OBSERVED[0], "linewidth": 1.4, "marker": "_", "markersize": 7}
    axes.plot(sizes, p50, label=f"{answer.engine}, median", **look)
    return found


def _completion_means(axes: Axes, answer: Answer, sizes: Any, line: str) -> list[Any]:
    """Draw mean times, over all transfers and by the number of losses; gaps stay gaps."""
    curves = {"mean": completion_figures.means(answer, sizes)}
    for losses, times in completion_figures.by_losses(answer, sizes).items():
        curves[f"{losses} lost"] = times
    colours = iter((REFERENCE, *OBSERVED[1:], *CALCULATED))
    for name, times in curves.items():
        look: dict[str, Any] = {"color": next(colours), "label": f"{answer.engine}, {name}"}
        look |= {"marker": "o", "markersize": 3.2} if is_observed(answer) else {}
        axes.plot(sizes, times, linestyle=line, linewidth=1.2, **look)
    low, high = completion_figures.intervals(answer, sizes)
    if np.isfinite(low).any():
        label = f"{answer.engine}, mean, 95 % interval"
        axes.fill_between(sizes, low, high, color=REFERENCE, alpha=0.3, linewidth=0, label=label)
    return list(curves.values())


def _file_goodput(figure: Figure, answers: Sequence[Answer], scenario: Scenario) -> None:
    axes = titled(figure, scenario, "goodput of files", "", "share of files per 1 % of goodput")
    factor, unit = goodput_figures.frame(axes, answers, ("by_file",))
    axes.set_xlabel(f"goodput of a file ({unit})")
    for answer, colour in zip(answers, colours_of(answers), strict=True):
        edges, shares = goodput_figures.distribution(answer)
        look: dict[str, Any] = {"color": colour, "label": answer.engine, "linewidth": 1.4}
        axes.stairs(shares, edges / factor, **look)
        if len(answers) == 1:
            axes.stairs(shares, edges / factor, fill=True, alpha=0.2, color=colour)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)


def _file_goodput_tail(figure: Figure, answers: Sequence[Answer], scenario: Scenario) -> None:
    title = "distribution of goodput above x"
    axes = titled(figure, scenario, title, "", "share with more")
    factor, unit = goodput_figures.frame(axes, answers, goodput_figures.COLUMNS)
    axes.set_xlabel(f"goodput x ({unit})")
    lines = dict(zip(goodput_figures.COLUMNS, ("-", "--", ":"), strict=True))
    for answer, colour in zip(answers, colours_of(answers), strict=True):
        table = answer.tables["file_goodput_tail"]
        for column, name in goodput_figures.COLUMNS.items():
            if column in table:
                look: dict[str, Any] = {"color": colour, "linestyle": lines[column]}
                look["label"] = f"{answer.engine}, {name}"
                axes.plot(table["goodput_bps"] / factor, table[column], linewidth=1.4, **look)
    axes.set_ylim(0, 1.02)
    axes.legend(frameon=False, fontsize=8)


def _positive(x: Any, y: Any) -> tuple[Any, Any]:
    shown = y > 0
    return x[shown], y[shown]


def _frame(
    axes: Axes, answers: Sequence[Answer], table: str, columns: tuple[str, str], right: float
) -> None:
    """End the axes a little beyond what was seen: a formula's tail would go to 1e-300."""
    x, y = columns
    observed = [a.tables[table][y] for a in answers if is_observed(a)]
    seen = [float(np.min(c[c > 0])) for c in observed if np.any(c > 0)]
    floor = max(10 ** np.floor(np.log10(min(seen)) - 0.5) if seen else 1e-6, 1e-9)
    axes.set_ylim(bottom=floor)
    tables = [a.tables[table] for a in answers]
    ends = [float(np.max(t[x][t[y] >= floor], initial=1.0)) for t in tables]
    axes.set_xlim(0, min(1.03 * max(ends), right))


_FIGURES: tuple[tuple[str, Callable[[Figure, Sequence[Answer], Scenario], None], str, str], ...] = (
    ("over-time", over_time_figures.over_time, "flows_over_time", "to_s"),
    ("states", _states, "states", "active"),
    ("sharing", _sharing, "states", "shared_rate_bps"),
    ("queue", _queue, "queue", "queue_pkts"),
    ("windows", _windows, "windows", "cwnd_pkts"),
    ("rates", _rates, "sequences", "sequence"),
    ("completion", _completion, "by_size", "size_pkts"),
    (
        "completion-distribution",
        completion_distributions.distribution,
        completion_distributions.TABLE,
        "share",
    ),
    ("completion-tail", completion_distributions.tail, "by_size", "p50"),
    ("file-goodput", _file_goodput, "file_goodput_tail", "by_file"),
    ("file-goodput-tail", _file_goodput_tail, "file_goodput_tail", "by_file"),
)
"""A figure's name, what draws it, and the table and column that it needs."""
