"""Sections of the page: a summary, the cells of each kind, the sign test and the models."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from tcpcast.models.cubic import cubic_response
from tcpcast.models.domain import is_in_domain
from tcpcast.models.pftk import path_domain_values, throughput

from tcpcast_papers.drawing import Plot, agreement_plot
from tcpcast_papers.kernel import signs
from tcpcast_papers.kernel.agreement import half_width, quantity_format
from tcpcast_papers.kernel.cells import DROP_TAIL, KINDS, LOSS
from tcpcast_papers.kernel.comparison import (
    AGREES,
    DIFFERS,
    MAX_HALF_WIDTHS,
    NOT_SIMULATED,
    ONE_RUN,
    compare_cell,
    compare_cells,
    compared_quantities,
)
from tcpcast_papers.kernel.scenarios import PACKET_BITS
from tcpcast_papers.reproduction import NotSelected, Printed, Row, Section, Tolerance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tcpcast_papers.kernel.cells import Cell
    from tcpcast_papers.kernel.comparison import Comparison
    from tcpcast_papers.kernel.runs import KernelRuns
    from tcpcast_papers.kernel.signs import SignTest

MIN_RTO_S = 0.2
"""Time that Linux adds to srtt."""

SHOWN_MODELS = ("pftk", "parallel", "cubic-response", "bbr-bound")
"""Models that the page shows."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """Prediction of a model for a cell.

    Attributes
    ----------
    cell
        Measured cell.
    model
        Name of the engine.
    feed
        Source of p, RTT and T0: ``scenario`` or ``kernel``.
    unit
        Unit of both values.
    kernel, value
        Goodput or send rate, measured and predicted.
    trusted
        Whether the cell is in the model's domain.
    """

    cell: Cell
    model: str
    feed: str
    unit: str
    kernel: float
    value: float
    trusted: bool

    @property
    def ratio(self) -> float:
        """Predicted divided by measured value."""
        return self.value / self.kernel


def predict_cells(runs: KernelRuns) -> tuple[Prediction, ...]:
    """Return the predictions of every applicable model for every cell of long flows."""
    return tuple(
        each
        for cell in runs.cells
        if cell.kind in {LOSS, DROP_TAIL} and not cell.unsupported
        for each in (*_predict_from_scenario(runs, cell), *_predict_from_measurements(cell))
    )


def _predict_from_scenario(runs: KernelRuns, cell: Cell) -> Iterator[Prediction]:
    for result in runs.result_of(cell).models:
        metric = result.metrics.get("goodput_bps")
        if result.engine in SHOWN_MODELS and metric is not None:
            kernel = cell.measured["goodput_bps"].mean
            yield Prediction(
                cell, result.engine, "scenario", "bit/s", kernel, metric.value, metric.trusted
            )


def _predict_from_measurements(cell: Cell) -> Iterator[Prediction]:
    """Yield the prediction of the stack's model with the kernel's p, RTT and T0, and b = 1.

    p is the loss indication ratio, RTT is the smoothed RTT, T0 is the smoothed RTT plus 200 ms; the
    capacity of the link limits the rate.
    """
    stack, measured = cell.groups[0].stack, cell.measured
    p, rtt = measured["loss_indication_ratio"].mean, measured["srtt_s"].mean
    if not p or stack == "linux-bbr":
        return
    fed: dict[str, Any] = {
        "rtt_s": rtt,
        "t0_s": rtt + MIN_RTO_S,
        "packets_per_ack": 1,
        "receiver_window_pkts": float(dict(cell.tcp).get("receiver_window", math.inf)),
    }
    if stack == "linux-cubic":
        model, window = "cubic-response", fed["receiver_window_pkts"]
        rate = cubic_response(rtt_s=rtt, loss_ratio=p, receiver_window_pkts=window).rate_pps
    else:
        model, rate = "pftk", throughput(loss_indication_ratio=p, **fed).rate_pps
    inside = is_in_domain(model, **path_domain_values(loss_indication_ratio=p, **fed))
    most = cell.rate_bps / PACKET_BITS
    yield Prediction(
        cell,
        model,
        "kernel",
        "packet/s",
        measured["send_rate_pps"].mean,
        min(most, cell.flows * float(rate)),
        bool(inside),
    )


KERNEL_COLUMN = "kernel"
"""Title of the kernel's column; reports on papers have printed values in this column."""

TITLES = {
    "random loss": "Random loss. Long flows",
    "drop-tail": "Drop-tail. Flows of one stack at a drop-tail queue",
    "AQM": "AQM. CoDel and FQ-CoDel",
    "pairs": "Pairs. Flows of two stacks or round-trip times at a drop-tail queue",
    "startup": "Start-up. Bytes delivered at times after the accept",
    "transfers": "Transfers. Short files",
    "on/off": "On/off. Files on a shared link",
}
"""Titles of the sections, by kind of cells."""

SIGN_TEST_TITLE = "Signs. Share of values above the kernel's, of those that differ"
"""Title of the section with the sign test."""

COLUMNS = ("series", "cell", "quantity")


def request(runs: KernelRuns) -> None:
    """Request every cell."""
    runs.request_all()


def _kind_section(runs: KernelRuns, _: Path, *, kind: str) -> Section:
    if all(cell.kind != kind for cell in runs.cells):
        raise NotSelected
    section = runs.section(TITLES[kind], COLUMNS)
    for cell in runs.cells:
        if cell.kind == kind:
            for name in compared_quantities(cell):
                quantity = quantity_format(name)
                label = (cell.series, cell.name, "" if quantity is None else quantity.title)
                section.rows += runs.row(label, _comparison_row, runs, cell, name)
    return section


def _sign_section(runs: KernelRuns, _: Path) -> Section:
    section = runs.section(SIGN_TEST_TITLE, ("kind", "quantity", "stack", "queue", "buffer"))
    section.rows = [sign_test_row(each) for each in signs.sign_tests(compare_cells(runs))]
    if not section.rows:
        raise NotSelected
    return section


_FIGURE_QUANTITIES = {
    "goodput_bps": "goodput",
    "loss_ratio": "loss ratio",
    "queue_delay_s": "mean queueing delay",
}
"""Quantities of the headline and of its figure."""


def headline(lines: Sequence[Comparison]) -> str:
    """Return the typical errors of the main quantities, and the range of the measured cells."""
    known = [line for line in lines if line.own is not None and math.isfinite(line.ratio)]
    parts = []
    for name, title in _FIGURE_QUANTITIES.items():
        errors = sorted(abs(line.ratio - 1) for line in known if line.name == name)
        if errors:
            high = errors[math.ceil(0.9 * len(errors)) - 1]
            parts.append(f"{title} {100 * median(errors):.1f} % ({100 * high:.0f} %)")
    cells = {(line.cell.series, line.cell.name): line.cell for line in known}.values()
    if not (parts and cells):
        return ""
    rates = [cell.rate_bps * 1e-6 for cell in cells]
    rtts = [group.rtt_ms for cell in cells for group in cell.groups]
    loss = max(cell.loss for cell in cells)
    return (
        f"Median error (90 % of the values are below): {', '.join(parts)}, for {min(rates):g} to "
        f"{max(rates):g} Mbit/s, RTTs of {min(rtts):g} to {max(rtts):g} ms, random loss up to "
        f"{100 * loss:g} % and up to {max(cell.flows for cell in cells)} flows."
    )


def _agreement_figure(lines: Sequence[Comparison], folder: Path) -> Plot:
    panels: dict[str, tuple[str, list[tuple[float, float, float, float]]]] = {}
    for line in lines:
        kernel, own, scale = line.kernel, line.own, line.quantity.scale
        if line.name in _FIGURE_QUANTITIES and own is not None and math.isfinite(kernel.half_width):
            title = _FIGURE_QUANTITIES[line.name]
            point = (kernel.mean, kernel.half_width, own.value, half_width(own))
            _, points = panels.setdefault(title, (line.quantity.unit, []))
            points.append((scale * point[0], scale * point[1], scale * point[2], scale * point[3]))
    return agreement_plot(panels, folder / "simulated-against-measured.png")


def _summary_section(runs: KernelRuns, folder: Path) -> Section:
    """Return typical errors, the validated range, and the numbers of values that agree."""
    section = runs.section("Summary. Errors, and numbers of values that agree")
    lines = compare_cells(runs)
    if text := headline(lines):
        section.figures.append(_agreement_figure(lines, folder))
    groups: dict[tuple[str, str], list[Comparison]] = {}
    for line in lines:
        groups.setdefault((line.cell.kind, line.quantity_group), []).append(line)
    order = sorted(groups.items(), key=lambda group: KINDS.index(group[0][0]))
    section.remarks = [
        *([text] if text else []),
        *(f"- {kind}, {title}: {_summary_text(group)}" for (kind, title), group in order),
    ]
    return section


def _summary_text(lines: list[Comparison]) -> str:
    verdicts = [line.verdict for line in lines]
    checked = [line for line in lines if line.verdict in {AGREES, DIFFERS}]
    parts = []
    if checked:
        narrow = [abs(line.ratio - 1) for line in checked if line.half_widths < MAX_HALF_WIDTHS]
        parts = [
            f"{verdicts.count(AGREES)} of {len(checked)} agree, "
            f"{sum(line.is_within_tolerance for line in checked)} of them without intervals",
            f"median difference {100 * median(narrow):.1f} %" if narrow else "median difference –",
        ]
    if missing := verdicts.count(NOT_SIMULATED):
        parts.append(f"{missing} not simulated")
    return "; ".join(parts)


def sign_test_row(each: SignTest) -> Row:
    """Return the row of a group, with its probability before and after Bonferroni's correction."""
    return Row(
        each.group,
        "%",
        Printed("50", "chance"),
        100 * each.share,
        tolerance=Tolerance(absolute=100 * each.max_deviation),
        note=f"{each.above} above, {each.below} below, p = {each.probability:.2g}, "
        f"corrected for {each.groups} groups {each.corrected_probability:.2g}",
    )


def _comparison_row(runs: KernelRuns, cell: Cell, name: str) -> Row:
    line = next(each for each in compare_cell(cell, runs.result_of(cell)) if each.name == name)
    scale = line.quantity.scale
    kernel = line.kernel.mean * scale
    return Row.from_metric(
        (line.cell.series, line.cell.name, line.quantity.title),
        line.quantity.unit,
        Printed(digits_text(kernel), KERNEL_COLUMN, kernel),
        line.own,
        scale,
        tolerance=None
        if line.max_difference is None
        else Tolerance(absolute=line.max_difference * scale),
        note=_comparison_note(line, scale),
    )


def _comparison_note(line: Comparison, scale: float) -> str:
    if line.verdict == NOT_SIMULATED:
        return f"not simulated: {line.refusal}"
    if line.verdict == ONE_RUN:
        return "one run of the kernel: no interval, no verdict"
    half = f"kernel ±{digits_text(line.kernel.half_width * scale, 2)}"
    own = half_width(line.own) * scale if line.own is not None else 0.0
    return f"{half}, tolerance ±{digits_text(line.tolerance * scale, 2)}" + (
        "" if own else ", own value without interval"
    )


def digits_text(value: float, digits: int = 4) -> str:
    """Return a value with this number of digits, without an exponent."""
    if not value or not math.isfinite(value):
        return "0"
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"


def _model_section(runs: KernelRuns, _: Path) -> Section:
    """Return the models and the kernel side by side, without a verdict."""
    title = "Models. Formulas compared with the kernel"
    section = runs.section(title, ("model", "fed by", "series", "cell"))
    predictions = predict_cells(runs)
    groups: dict[tuple[str, str, str], list[Prediction]] = {}
    for each in predictions:
        stack = each.cell.stacks.split()[-1]
        groups.setdefault((each.model, each.feed, stack), []).append(each)
    remarks = []
    for (model, feed, stack), group in groups.items():
        ratios = [each.ratio for each in group if each.trusted]
        middle, span = "–", "–"
        if ratios:
            middle, span = f"{median(ratios):.2f}", f"{min(ratios):.2f} to {max(ratios):.2f}"
        remarks.append(
            f"- {model}, with inputs from the {feed}, {stack}: {middle} of the kernel's rate "
            f"({span}) in {len(ratios)} of {len(group)} cells, those in its domain"
        )
    section.rows, section.remarks = list(map(_prediction_row, predictions)), remarks
    return section


def _prediction_row(each: Prediction) -> Row:
    scale, unit = (1e-6, "Mbit/s") if each.unit == "bit/s" else (1.0, each.unit)
    return Row(
        (each.model, each.feed, each.cell.series, each.cell.name),
        unit,
        Printed(digits_text(each.kernel * scale), KERNEL_COLUMN, each.kernel * scale),
        each.value * scale,
        note="" if each.trusted else "outside the model's domain",
    )


SECTIONS: tuple[Callable[[KernelRuns, Path], Section], ...] = (
    _summary_section,
    *(partial(_kind_section, kind=kind) for kind in KINDS),
    _sign_section,
    _model_section,
)
