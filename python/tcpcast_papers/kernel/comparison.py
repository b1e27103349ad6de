"""The kernel's quantities and the simulator's, side by side: as lines of data, and as a summary."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpcast_papers.kernel.agreement import (
    allowed_difference,
    half_width,
    max_difference,
    quantity_format,
    simulated_metric,
)
from tcpcast_papers.kernel.cells import KINDS

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from tcpcast.answer import Metric

    from tcpcast_papers.kernel.agreement import AllowedDifference, QuantityFormat
    from tcpcast_papers.kernel.cells import Cell, Measured
    from tcpcast_papers.kernel.runs import CellResult, KernelRuns

AGREES, DIFFERS, ONE_RUN, NOT_SIMULATED = "agrees", "differs", "one run", "not simulated"

MAX_HALF_WIDTHS = 0.05
"""Medians include cells whose total half-width is below this share."""

NO_QUANTITY = "the answer does not contain this quantity"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A quantity of a cell from kernel and simulator.

    Attributes
    ----------
    cell, name
        Cell and quantity.
    kernel
        Measured value.
    own
        Value of engine ``packet``, or None if it was not simulated.
    tolerance
        Allowed difference without intervals.
    max_difference
        Allowed difference with intervals; None if there is no verdict.
    refusal
        Reason of the engine for not simulating the cell.
    """

    cell: Cell
    name: str
    kernel: Measured
    own: Metric | None
    tolerance: float
    max_difference: float | None
    refusal: str = ""

    @property
    def quantity(self) -> QuantityFormat:
        """Description and unit of the quantity."""
        result = quantity_format(self.name)
        assert result is not None
        return result

    @property
    def quantity_group(self) -> str:
        """Description of the quantity, without the time of a start-up curve."""
        return self.quantity.title.partition(" by ")[0]

    @property
    def difference(self) -> float:
        """The simulated value minus the kernel's."""
        return math.nan if self.own is None else self.own.value - self.kernel.mean

    @property
    def ratio(self) -> float:
        """The simulated value divided by the kernel's; ``nan`` if the kernel's is 0."""
        if self.own is None or not self.kernel.mean:
            return math.nan
        return self.own.value / self.kernel.mean

    @property
    def half_widths(self) -> float:
        """Total half-width, as a share of the kernel's value."""
        if self.own is None or not self.kernel.mean:
            return math.nan
        return (self.kernel.half_width + half_width(self.own)) / abs(self.kernel.mean)

    @property
    def verdict(self) -> str:
        """Whether the two agree."""
        if self.own is None:
            return NOT_SIMULATED
        if self.max_difference is None:
            return ONE_RUN
        return AGREES if abs(self.difference) <= self.max_difference else DIFFERS

    @property
    def is_within_tolerance(self) -> bool:
        """Whether the two agree within the tolerance, without intervals."""
        return self.own is not None and abs(self.difference) <= self.tolerance


def compare_cells(runs: KernelRuns, kinds: Container[str] = KINDS) -> tuple[Comparison, ...]:
    """Return every compared quantity of the cells of these kinds.

    Raises
    ------
    Unfinished
        The user pressed Ctrl-C before all simulations had finished.
    """
    return tuple(
        line
        for cell in runs.cells
        if cell.kind in kinds
        for line in compare_cell(cell, runs.result_of(cell))
    )


def compared_quantities(cell: Cell) -> dict[str, AllowedDifference]:
    """Return the tolerances of the measured quantities of a cell that are compared."""
    tolerances = {
        name: allowed_difference(cell, name)
        for name in cell.measured
        if quantity_format(name) is not None
    }
    return {name: each for name, each in tolerances.items() if each is not None}


def compare_cell(cell: Cell, cell_result: CellResult) -> Iterator[Comparison]:
    """Return the compared quantities of a cell."""
    for name, tolerance in compared_quantities(cell).items():
        kernel = cell.measured[name]
        within = tolerance.absolute_to(kernel.mean)
        own = (
            None if cell_result.packet is None else simulated_metric(cell, cell_result.packet, name)
        )
        if own is None:
            refusal = cell_result.refusal or NO_QUANTITY
            yield Comparison(cell, name, kernel, None, within, None, refusal)
        else:
            yield Comparison(cell, name, kernel, own, within, max_difference(cell, name, own))


COLUMNS = (
    "series",
    "cell",
    "kind",
    "stacks",
    "flows",
    "queue",
    "rate_bps",
    "rtt_ms",
    "waiting_pkts",
    "loss",
    "realised_loss",
    "quantity",
    "kernel",
    "kernel_half_width",
    "runs",
    "packet",
    "packet_half_width",
    "ratio",
    "half_widths_ratio",
    "tolerance",
    "verdict",
    "refusal",
)
"""Columns of the data file of a reproduction."""


def csv_text(lines: Iterable[Comparison]) -> str:
    """Return the comparison as CSV."""
    stream = io.StringIO()
    out = csv.writer(stream, lineterminator="\n")
    out.writerow(COLUMNS)
    for line in lines:
        cell, own = line.cell, line.own
        out.writerow(
            [
                cell.series,
                cell.name,
                cell.kind,
                cell.stacks,
                cell.flows,
                cell.queue,
                f"{cell.rate_bps:.0f}",
                " ".join(f"{group.rtt_ms:g}" for group in cell.groups),
                cell.waiting_pkts,
                f"{cell.loss:g}",
                f"{cell.realised_loss:.6g}",
                line.name,
                f"{line.kernel.mean:.6g}",
                _number_text(line.kernel.half_width),
                line.kernel.runs,
                "" if own is None else f"{own.value:.6g}",
                "" if own is None else _number_text(half_width(own)),
                _number_text(line.ratio),
                _number_text(line.half_widths),
                _number_text(line.tolerance),
                line.verdict,
                line.refusal,
            ]
        )
    return stream.getvalue()


def _number_text(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else ""
