"""Models compared with the kernel, with inputs from the scenario and from the kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpcast.models.cubic import cubic_response
from tcpcast.models.domain import is_in_domain
from tcpcast.models.pftk import path_domain_values, throughput

from tcpcast_papers.kernel.cells import DROP_TAIL, LOSS
from tcpcast_papers.kernel.scenarios import PACKET_BITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcpcast_papers.kernel.cells import Cell
    from tcpcast_papers.kernel.runs import KernelRuns

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
