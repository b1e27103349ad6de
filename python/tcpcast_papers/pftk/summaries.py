"""Tables 2 and 3: checks of the printed traces, and predictions of the models."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast_papers import drawing
from tcpcast_papers.pftk import published
from tcpcast_papers.pftk.predictions import (
    APPROXIMATE,
    CHAIN,
    CUBIC,
    FULL,
    MATHIS,
    MODELS,
    TD_ONLY,
    WINDOWS_PKTS,
    chain_rates,
    common_window,
    fitted_windows,
    full_model_packets,
    inputs_of_traces,
    relative_errors,
)
from tcpcast_papers.pftk.published import PACKETS_PER_ACK, traces, values_of_traces
from tcpcast_papers.reproduction import (
    PRINTED_DIGITS,
    Z95,
    Cause,
    Row,
    Section,
    Tolerance,
    Verdict,
    choose_cause,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from tcpcast_papers.pftk.published import Trace
    from tcpcast_papers.pftk.runs import Runs

    Floats = NDArray[np.float64]

NO_WINDOW, COMMON_WINDOW = "none", "one for all, fitted"
FITTED_WINDOW, FITTED_TO_FULL_MODEL = "fitted to each trace", "fitted to the full model"

EVERY_PACKET_ACKED = "receivers that acknowledge every packet (b = 1)"
MEASURED_SHARE = "the printed share of timeouts instead of Q"


def _printed_values_section(runs: Runs, _: Path) -> Section:
    section = runs.section("Tables 2 and 3. The printed values", ("table", "trace", "quantity"))
    for number in (2, 3):
        rows = traces(number)
        for each in rows:
            uneven = each.td_plus_to != each.loss_indications
            section.rows.append(
                Row(
                    (f"Table {number}", each.name, "TD + TO and the loss indications"),
                    "count",
                    each.line.printed("loss_indications"),
                    float(each.td_plus_to),
                    tolerance=PRINTED_DIGITS,
                    note=f"{each.td_plus_to - each.loss_indications:+d}" if uneven else "",
                    fixed_verdict=Verdict.INCONSISTENT if uneven else None,
                )
            )
        shares = 100 * values_of_traces(rows, lambda row: row.timeout_share)
        for quantity, share in (
            ("traces with more TO than TD", 100 * float(np.mean(shares > 50))),
            ("smallest share of TO", float(shares.min())),
        ):
            label = (f"Table {number}", f"{len(rows)} traces", quantity)
            section.rows.append(Row(label, "%", None, share))
    both = [*traces(2), *traces(3)]
    wrong = sum(each.td_plus_to != each.loss_indications for each in both)
    timeouts = sum(int(each.line["timeouts"]) for each in both)
    share = timeouts / sum(each.td_plus_to for each in both)
    section.remarks = [
        f"In {len(both) - wrong} rows the loss indications are the sum of TD and TO. In the other "
        f"{wrong}, all of Table 2, the loss indications are more than TD + TO. It is unknown which "
        "value is wrong, so nothing is corrected, and p uses the column of the loss indications. "
        "RTT, T0 and p are inputs of the models. The T0 of manic to baskerville is 2.305 s here, "
        "and 2.495 s in another printing of the paper.",
        f"Timeouts are {100 * share:.0f} % of all indications.",
    ]
    return section


def _prediction_section(runs: Runs, folder: Path, *, number: int) -> Section:
    """Return the models' predictions for each trace, next to the printed number of packets."""
    rows = traces(number)
    section = runs.section(
        f"{published.published_table(number).title}: predicted",
        ("trace", "p", "W_max", "model"),
        others=("printed TO share",),
    )
    seconds = values_of_traces(rows, lambda row: row.duration_s)
    windows = {model: fitted_windows(rows, model) for model in (FULL, APPROXIMATE)}
    held = {
        model: MODELS[model](inputs_of_traces(rows, windows[model])) * seconds for model in windows
    }
    leading = MODELS[TD_ONLY](inputs_of_traces(rows)) * seconds
    for index, each in enumerate(rows):
        p = f"{100 * each.loss_indication_ratio:.2f} %"
        fits = {model: (windows[model][index], held[model][index]) for model in windows}
        section.rows.append(_row_without_window(each, (each.name, p, NO_WINDOW, FULL), *fits[FULL]))
        shown = [
            (f"{window:.0f}, fitted", model, packets)
            for model, (window, packets) in fits.items()
            if math.isfinite(window)
        ]
        for window, model, packets in (*shown, (NO_WINDOW, TD_ONLY, leading[index])):
            printed = each.line.printed("packets_sent")
            label = (each.name, p, window, model)
            section.rows.append(Row(label, "packets", printed, float(packets)))
    section.figures.append(_draw_ratios(number, rows, windows[FULL], folder))
    section.remarks = [
        "The published values are the packets sent; the paper prints no predictions. Only the full "
        "model without a window limit has a verdict. Its tolerance is the sampling error of p, "
        "which is estimated from a count of loss indications. If the model overestimates, a window "
        "limit lowers its prediction, but the available text has no W_max, so the row cannot be "
        "settled. If the model underestimates, no window limit raises its prediction. Three "
        "changes are then tried: b = 1 (the paper assumes b = 2, which it calls typical), the "
        "printed share of timeouts TO/(TD + TO) instead of Q(E[W]), and both. The row is explained "
        "if the prediction after the change agrees.",
        "The last column contains the full model with the printed share of timeouts. Its average "
        f"error is {100 * _share_error(number):.1f} %, and {100 * _share_error(number, 1):.1f} % "
        f"with b = 1; with Q(E[W]), it is {100 * average_error(number, FULL, NO_WINDOW):.1f} %.",
        *(
            [
                "The predictions may also be too low because p varies between the 100 connections. "
                "If ln p has the standard deviation sigma, the prediction from the total p is too "
                "low by the factor exp(-sigma^2/8); the paper does not print sigma."
            ]
            if number == 3
            else []
        ),
        "A fitted W_max is the integer from 2 to 64 with the smallest error of this model for this "
        "row. A fit has one free parameter per row, so a small error does not confirm the model.",
    ]
    return section


def _row_without_window(each: Trace, label: tuple[str, ...], window: float, limited: float) -> Row:
    """Return the row of the full model without W_max, with the sampling error of p."""
    own = full_model_packets(each)
    error = Z95 / math.sqrt(each.loss_indications)
    low, high = (
        full_model_packets(each, p_factor=1 + error),
        full_model_packets(each, p_factor=1 - error),
    )
    allowed = max(own - low, high - own)
    row = Row(
        label,
        "packets",
        each.line.printed("packets_sent"),
        own,
        low,
        high,
        tolerance=Tolerance(absolute=allowed),
        others=(full_model_packets(each, timeout_share=each.timeout_share),),
    )
    if own < each.packets:
        changes: dict[str, dict[str, Any]] = {
            EVERY_PACKET_ACKED: {"packets_per_ack": 1},
            MEASURED_SHARE: {"timeout_share": each.timeout_share},
        }
        changes[f"{EVERY_PACKET_ACKED} and {MEASURED_SHARE}"] = {
            name: value for change in changes.values() for name, value in change.items()
        }
        causes = (Cause(why, full_model_packets(each, **how)) for why, how in changes.items())
        reach = (each.packets - allowed, each.packets + allowed)
        row = replace(row, explained_by=choose_cause(causes, own, reach))
    smallest = full_model_packets(each, p_factor=1 + error, window_pkts=WINDOWS_PKTS[0])
    if row.verdict is Verdict.DIFFERS and smallest <= each.packets:
        fit = f"; with {window:.0f} packets, fitted, {limited:.0f}" if window < math.inf else ""
        note = f"W_max is not in the text{fit}"
        return replace(row, fixed_verdict=Verdict.UNKNOWN, note=note)
    return row


def _draw_ratios(number: int, rows: Sequence[Trace], windows: Floats, folder: Path) -> drawing.Plot:
    figure, (axes,) = drawing.create_panels(1, width=11.0, height=4.4)
    seconds = values_of_traces(rows, lambda row: row.duration_s)
    sent = values_of_traces(rows, lambda row: row.packets)
    order = np.argsort(MODELS[FULL](inputs_of_traces(rows)) * seconds / sent)
    styles = drawing.series_styles()
    for model, limits, fill in (
        (TD_ONLY, np.inf, "full"),
        (APPROXIMATE, np.inf, "full"),
        (FULL, np.inf, "full"),
        (FULL, windows, "none"),
    ):
        shown = MODELS[model](inputs_of_traces(rows, limits)) * seconds / sent
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
    _set_axes(axes, [rows[index] for index in order])
    axes.set_title(f"Table {number}, without W_max unless stated otherwise", fontsize=10)
    return drawing.Plot(figure, folder / f"table{number}.png")


def _set_axes(axes: Axes, rows: Sequence[Trace]) -> None:
    axes.axhline(1, color=drawing.REFERENCE_COLOUR, linewidth=1)
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
        ``FITTED_WINDOW``: W_max fitted to each trace for this model; ``FITTED_TO_FULL_MODEL``:
        fitted to each trace for the full model; ``COMMON_WINDOW``: one W_max for all traces, fitted
        for this model; or ``NO_WINDOW``.
    """
    rows = traces(number)
    limits = np.full(len(rows), np.inf)
    if window in {FITTED_WINDOW, FITTED_TO_FULL_MODEL}:
        limits = fitted_windows(rows, FULL if window == FITTED_TO_FULL_MODEL else model)
    elif window == COMMON_WINDOW:
        limits = np.full(len(rows), common_window(rows, model))
    rates = (
        chain_rates(rows, limits)
        if model == CHAIN
        else MODELS[model](inputs_of_traces(rows, limits))
    )
    predicted = rates * values_of_traces(rows, lambda row: row.duration_s)
    return float(relative_errors(predicted, values_of_traces(rows, lambda row: row.packets)).mean())


def _share_error(number: int, packets_per_ack: int = PACKETS_PER_ACK) -> float:
    """Return the average error of the full model with the printed share of timeouts."""
    predicted, sent = zip(
        *(
            (
                full_model_packets(
                    row, timeout_share=row.timeout_share, packets_per_ack=packets_per_ack
                ),
                row.packets,
            )
            for row in traces(number)
        ),
        strict=True,
    )
    return float(relative_errors(predicted, sent).mean())


MODELS_WITH_WINDOW = (FULL, APPROXIMATE, MATHIS, CUBIC)
"""Models with a W_max whose fit is fast."""

MODELS_BY_WINDOW = {
    NO_WINDOW: (*MODELS, CHAIN),
    COMMON_WINDOW: MODELS_WITH_WINDOW,
    FITTED_WINDOW: MODELS_WITH_WINDOW,
    FITTED_TO_FULL_MODEL: (APPROXIMATE, CHAIN),
}
"""Models in the table of average errors, by their W_max."""


def _average_error_percent(number: int, model: str, window: str) -> float:
    return 100 * average_error(number, model, window)


def _average_error_section(runs: Runs, _: Path) -> Section:
    section = runs.section(
        "Tables 2 and 3. Average errors of all models", ("table", "W_max", "model")
    )
    for number in (2, 3):
        for window, models in MODELS_BY_WINDOW.items():
            for model in models:
                label = (f"Table {number}", window, model)
                section.rows += runs.value(
                    label, "%", _average_error_percent, number, model, window
                )
    section.remarks = [
        "The rows contain the mean of |predicted - sent| / sent (section 3) over whole traces, "
        "with b = 2. The paper plots these errors, without numbers, for intervals of 100 s and "
        "with the W_max of each trace (Figures 19 and 20). Over whole traces and without W_max, "
        f"the full model has an error of {100 * average_error(2, FULL, NO_WINDOW):.0f} % for the "
        f"hours of Table 2, TD only {100 * average_error(2, TD_ONLY, NO_WINDOW):.0f} %. The result "
        "of the comparison therefore depends on W_max and on the intervals.",
        "W_max is fitted for each formula separately: the minimum in (32) needs smaller windows "
        "than the gradual limit in (31). TD only does not use W_max. Mathis is (20), limited by "
        "W_max. CUBIC did not exist in 1998; its response function shows the rate of a modern "
        "sender. The window chain is the Markov chain with the closed form's assumptions. It "
        "predicts less than (31), because its window is 1 packet after a timeout.",
    ]
    return section


SECTIONS: tuple[Callable[[Runs, Path], Section], ...] = (
    _printed_values_section,
    *(partial(_prediction_section, number=number) for number in (2, 3)),
    _average_error_section,
)
