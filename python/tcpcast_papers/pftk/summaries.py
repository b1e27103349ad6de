"""Tables 2 and 3: checks of the printed traces, and predictions of the models."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tcpcast_papers import drawing
from tcpcast_papers.pftk import published
from tcpcast_papers.pftk.predictions import (
    APPROXIMATE,
    CHAIN,
    FULL,
    MODELS,
    TD_ONLY,
    TD_ONLY_WHOLE,
    chain_rates,
    common_window,
    errors,
    fitted_windows,
    of_traces,
)
from tcpcast_papers.pftk.published import column, traces
from tcpcast_papers.reproduction import PRINTED_DIGITS, Printed, Row, Section

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from tcpcast_papers.pftk.published import Trace
    from tcpcast_papers.pftk.runs import Runs

    Floats = NDArray[np.float64]

NO_WINDOW, FITTED, COMMON = "none", "fitted to each trace", "one for all, fitted"


def sections(_: Runs, folder: Path) -> list[Section]:
    """Return the check of the tables, the predictions and their average errors."""
    return [_checks(), *(_predictions(number, folder) for number in (2, 3)), _averages()]


def _checks() -> Section:
    section = Section("Tables 2 and 3. The printed values", ("what", "quantity"))
    both = [*traces(2), *traces(3)]
    hosts = {each.line[end] for each in both for end in ("sender", "receiver")}
    for what, unit, stated, own in (
        ("Table 2, data sets", "traces", "24", len(traces(2))),
        ("Table 3, data sets", "traces", "13", len(traces(3))),
        ("both, connections", "traces", "37", len(both)),
        ("both, hosts", "hosts", "18", len(hosts)),
    ):
        label = (what, "count, and value in the text")
        row = Row(label, unit, Printed(stated), float(own), tolerance=PRINTED_DIGITS)
        section.rows.append(row)
    for each in both:
        if each.kinds != each.loss_indications:
            section.rows.append(
                Row(
                    (each.name, "TD + TO and the loss indications"),
                    "count",
                    each.line.printed("loss_indications"),
                    float(each.kinds),
                    note=f"{each.kinds - each.loss_indications:+d}",
                )
            )
    uneven = sum(each.kinds != each.loss_indications for each in both)
    section.remarks = [
        f"In {len(both) - uneven} rows the loss indications are the sum of TD and TO. In the "
        f"{uneven} rows shown (all of Table 2) they are more. It is unknown which value is wrong, "
        "so nothing is corrected, and p uses the column of the loss indications. T0 "
        "of manic to baskerville is 2.305 s here and 2.495 s in another printing.",
        f"Timeouts are {100 * _timeout_share(both):.0f} % of all indications, and more than half "
        f"in {sum(each.timeout_share > 0.5 for each in both)} of the {len(both)} traces.",
    ]
    return section


def _timeout_share(rows: Sequence[Trace]) -> float:
    timeouts = sum(int(each.line["timeouts"]) for each in rows)
    return timeouts / sum(each.kinds for each in rows)


def _predictions(number: int, folder: Path) -> Section:
    """Return the models' predictions for each trace, with the printed packets."""
    rows = traces(number)
    section = Section(
        f"{published.table(number).title}: predicted", ("trace", "p", "W_max", "model")
    )
    windows = fitted_windows(rows)
    seconds = column(rows, lambda row: row.duration_s)
    free = MODELS[FULL](of_traces(rows)) * seconds
    held = MODELS[FULL](of_traces(rows, windows)) * seconds
    leading = MODELS[TD_ONLY](of_traces(rows)) * seconds
    for index, each in enumerate(rows):
        p = f"{100 * each.loss_indication_ratio:.2f} %"
        shown = [(NO_WINDOW, FULL, free[index]), (NO_WINDOW, TD_ONLY, leading[index])]
        if math.isfinite(windows[index]):
            shown.insert(1, (f"{windows[index]:.0f}, fitted", FULL, held[index]))
        for window, model, packets in shown:
            section.rows.append(
                Row(
                    (each.name, p, window, model),
                    "packets",
                    each.line.printed("packets_sent"),
                    float(packets),
                )
            )
    section.figures.append(_draw(number, rows, windows, folder))
    section.remarks = [
        "Published are the packets sent; the paper prints no predictions. A fitted W_max is "
        "the integer from 2 to 64 with the smallest error of the full model for this row. Rows "
        "without one are underestimated even without a limit. As each row has a free parameter, "
        "its small error does not confirm the model; it shows which windows the rows would imply.",
    ]
    return section


def _draw(number: int, rows: Sequence[Trace], windows: Floats, folder: Path) -> drawing.Plot:
    figure, (axes,) = drawing.panels(1, width=11.0, height=4.4)
    seconds = column(rows, lambda row: row.duration_s)
    sent = column(rows, lambda row: row.packets)
    order = np.argsort(MODELS[FULL](of_traces(rows)) * seconds / sent)
    styles = drawing.styles()
    for model, limits, fill in (
        (TD_ONLY, np.inf, "full"),
        (APPROXIMATE, np.inf, "full"),
        (FULL, np.inf, "full"),
        (FULL, windows, "none"),
    ):
        shown = MODELS[model](of_traces(rows, limits)) * seconds / sent
        label = model if limits is np.inf else f"{model}, W_max fitted to the trace"
        axes.plot(
            np.arange(len(rows)),
            shown[order],
            linestyle="none",
            fillstyle=fill,
            label=label,
            markersize=6,
            **next(styles),
        )
    _finish(axes, [rows[index] for index in order])
    axes.set_title(f"Table {number}, without W_max unless stated otherwise", fontsize=10)
    return drawing.Plot(figure, folder / f"table{number}.png")


def _finish(axes: Axes, rows: Sequence[Trace]) -> None:
    axes.axhline(1, color=drawing.MUTED, linewidth=1)
    axes.set_yscale("log")
    ticks = [0.5, 0.7, 1, 1.5, 2, 3, 4, 6]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xticks(
        np.arange(len(rows)),
        [row.name.replace(" to ", " – ") for row in rows],
        rotation=45,
        ha="right",
        rotation_mode="anchor",
        fontsize=8,
    )
    axes.set_ylabel("packets predicted / sent")
    axes.legend(frameon=False, fontsize=8)


def average_error(number: int, model: str, window: str) -> float:
    """Return a model's average error over a table's traces, by the paper's definition.

    Parameters
    ----------
    number
        2 or 3.
    model
        A key of :data:`~tcpcast_papers.pftk.predictions.MODELS`, or ``CHAIN``.
    window
        ``NO_WINDOW``, ``FITTED`` (to the full model, a W_max for each trace) or ``COMMON``.
    """
    rows = traces(number)
    limits = np.full(len(rows), np.inf)
    if window == FITTED:
        limits = fitted_windows(rows)
    elif window == COMMON:
        limits = np.full(len(rows), common_window(rows))
    rates = chain_rates(rows, limits) if model == CHAIN else MODELS[model](of_traces(rows, limits))
    predicted = rates * column(rows, lambda row: row.duration_s)
    return float(errors(predicted, column(rows, lambda row: row.packets)).mean())


def _averages() -> Section:
    section = Section("Tables 2 and 3. Average errors of all models", ("table", "W_max", "model"))
    for number in (2, 3):
        for window in (NO_WINDOW, COMMON, FITTED):
            for model in (*MODELS, CHAIN):
                if window != NO_WINDOW and model in {TD_ONLY, TD_ONLY_WHOLE}:
                    continue  # They do not use W_max; see the rows above.
                label = (f"Table {number}", window, model)
                own = 100 * average_error(number, model, window)
                section.rows.append(Row(label, "%", None, own))
    commons = " and ".join(f"{common_window(traces(n)):.0f}" for n in (2, 3))
    section.remarks = [
        "The mean over traces of |predicted - sent| / sent, section 3; b = 2. The paper shows "
        "these errors over intervals of 100 s and with each trace's W_max, in Figures 19 and 20, "
        "and prints none. Over whole traces, and without W_max, the full model has an error of "
        f"{100 * average_error(2, FULL, NO_WINDOW):.0f} % for the hours of "
        f"Table 2, TD only {100 * average_error(2, TD_ONLY, NO_WINDOW):.0f} %. The limit of the "
        "window and the intervals are therefore part of the method.",
        f"A common W_max for all traces is also fitted ({commons} packets for Tables 2 and 3). "
        "Mathis here is (20), limited by W_max. "
        "The CUBIC response belongs to a stack that did not exist in 1998: it shows the rate that "
        "a modern sender could use. The window chain is the Markov chain with the closed form's "
        "assumptions; it predicts less than (31), because its periods after a timeout start from "
        "1.",
    ]
    return section
