"""Figures of how completion times are distributed: the share within a time, and that beyond it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.report.axes import CALCULATED, MARKERS, MORE_LINES, OBSERVED, titled
from tcpcast.report.completion_figures import is_wide
from tcpcast.report.leading import PERCENTILES
from tcpcast.report.losses import spread

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tcpcast.answer import Answer
    from tcpcast.scenario import Scenario

    Table = dict[str, np.ndarray[Any, Any]]

TABLE = "completion_distribution"


def distribution(figure: Figure, answers: Sequence[Answer], scenario: Scenario) -> None:
    """Draw the share of transfers that take at most a time, with its 95 % interval as a band."""
    axes = titled(
        figure, scenario, _title(scenario), _across(scenario), "share within this time (%)"
    )
    drawn = list(_curves(answers))
    for curve, look in drawn:
        low, high = 100 * curve["low"], 100 * curve["high"]
        if np.isfinite(low).any():
            band: dict[str, Any] = {"color": look["color"], "alpha": 0.2, "linewidth": 0}
            axes.fill_between(curve["time_s"], low, high, step="post", **band)
        axes.step(curve["time_s"], 100 * curve["share"], where="post", linewidth=1.4, **look)
    _times(axes, [curve["time_s"] for curve, _ in drawn])
    axes.set_ylim(0, 101)
    axes.legend(frameon=False, fontsize=8, loc="lower right")


def tail(figure: Figure, answers: Sequence[Answer], scenario: Scenario) -> None:
    """Draw how many transfers take longer than a time: all there is, or three percentiles."""
    axes = titled(
        figure, scenario, _title(scenario), _across(scenario), "share of transfers that take longer"
    )
    told = [answer for answer in answers if TABLE in answer.tables]
    for curve, look in _curves(told):
        longer = 1.0 - curve["share"]
        shown = longer > 0.5 / curve["transfers"]
        axes.step(curve["time_s"][shown], longer[shown], where="post", linewidth=1.4, **look)
    _percentiles(axes, [answer for answer in answers if TABLE not in answer.tables])
    _log_times(axes)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
    axes.legend(frameon=False, fontsize=8)


def _percentiles(axes: Axes, answers: Sequence[Answer]) -> None:
    """Draw the median, p95 and p99 of some sizes."""
    for answer, colour in zip(answers, OBSERVED * 4, strict=False):
        sizes = answer.tables["by_size"]["size_pkts"]
        for at, mark in zip(spread(len(sizes))[:: -(-len(sizes) // 5)], MARKERS, strict=False):
            times = [float(answer.tables["by_size"][name][at]) for name in PERCENTILES]
            look: dict[str, Any] = {"color": colour, "marker": mark, "linewidth": 1.2}
            axes.plot(times, (0.5, 0.05, 0.01), label=_of(answer, int(sizes[at])), **look)


def _curves(answers: Sequence[Answer]) -> Iterator[tuple[Table, dict[str, Any]]]:
    """Yield the curve of each size of each answer, and how it looks."""
    colours = (*OBSERVED, *CALCULATED)
    at = 0
    for answer in answers:
        table = answer.tables[TABLE]
        sizes = table.get("size_pkts")
        for size in [None] if sizes is None else np.unique(sizes).tolist():
            chosen = slice(None) if sizes is None else sizes == size
            curve = _from_nothing({name: column[chosen] for name, column in table.items()})
            look = {
                "color": colours[at % len(colours)],
                "linestyle": MORE_LINES[at % len(MORE_LINES)],
            }
            yield curve, look | {"label": _of(answer, size, int(curve["transfers"][0]))}
            at += 1


def _from_nothing(curve: Table) -> Table:
    """Return a curve that begins with no transfer, at the first time that one took."""
    begins = {name: column[:1] for name, column in curve.items()}
    begins |= {"share": np.zeros(1), "low": np.full(1, np.nan), "high": np.full(1, np.nan)}
    return {name: np.concatenate([begins[name], column]) for name, column in curve.items()}


def _of(answer: Answer, size: int | None, transfers: int | None = None) -> str:
    packets = "" if size is None else f", {size:,} packet{'' if size == 1 else 's'}"
    count = "" if transfers is None else f" ({transfers:,} times)"
    return f"{answer.engine}{packets}{count}"


def _title(scenario: Scenario) -> str:
    return f"distribution of {'completion' if _has_transfers(scenario) else 'ON'} times"


def _across(scenario: Scenario) -> str:
    return "completion time (s)" if _has_transfers(scenario) else "ON time of a file (s)"


def _has_transfers(scenario: Scenario) -> bool:
    return all(group.traffic.kind == "transfers" for group in scenario.populations)


def _times(axes: Axes, times: Sequence[Any]) -> None:
    """Have an axis of times begin at 0, or be logarithmic where they are far apart."""
    if is_wide(times):
        _log_times(axes)
    else:
        axes.set_xlim(left=0)


def _log_times(axes: Axes) -> None:
    """Have an axis of times be logarithmic, with labels between the powers of ten."""
    from matplotlib.ticker import LogLocator  # noqa: PLC0415 - optional, and slow to import

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
