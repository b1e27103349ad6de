"""The kernel's quantities and the simulator's, side by side: as lines of data, and as a summary."""

from __future__ import annotations

import csv
import io
import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpcast_papers.kernel.agreement import (
    allowed,
    half_width,
    quantity,
    reach,
    simulated,
)
from tcpcast_papers.kernel.cells import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tcpcast.answer import Metric

    from tcpcast_papers.kernel.cells import Cell, Measured
    from tcpcast_papers.kernel.runs import CellResult, KernelRuns

AGREES, DIFFERS, ONE_RUN, NOT_SIMULATED = "agrees", "differs", "one run", "not simulated"

NARROW = 0.05
"""Medians include cells whose total half-width is below this share."""

NO_QUANTITY = "the answer has no such quantity"


@dataclass(frozen=True, slots=True)
class Compared:
    """A quantity of a cell from kernel and simulator.

    Attributes
    ----------
    cell, name
        Cell and quantity.
    kernel
        Measured value.
    own
        Value of engine ``packet``, or None if it was not simulated.
    allowed
        Allowed difference without intervals.
    reach
        Allowed difference with intervals; None if there is no verdict.
    refusal
        Reason of the engine for not simulating the cell.
    """

    cell: Cell
    name: str
    kernel: Measured
    own: Metric | None
    allowed: float
    reach: float | None
    refusal: str = ""

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
        if self.reach is None:
            return ONE_RUN
        return AGREES if abs(self.difference) <= self.reach else DIFFERS

    @property
    def close(self) -> bool:
        """Whether the two agree within the tolerance, without intervals."""
        return self.own is not None and abs(self.difference) <= self.allowed


def compared(runs: KernelRuns) -> tuple[Compared, ...]:
    """Return every compared quantity of every cell.

    Raises
    ------
    Unfinished
        The user pressed Ctrl-C before all simulations had finished.
    """
    return tuple(line for cell in runs.cells for line in of_cell(cell, runs.result_of(cell)))


def of_cell(cell: Cell, cell_result: CellResult) -> Iterator[Compared]:
    """Return the compared quantities of a cell."""
    for name, kernel in cell.measured.items():
        tolerance = None if quantity(name) is None else allowed(cell, name)
        if tolerance is None:
            continue
        within = tolerance.reach(kernel.mean)
        own = None if cell_result.packet is None else simulated(cell, cell_result.packet, name)
        if own is None:
            refusal = cell_result.refusal or NO_QUANTITY
            yield Compared(cell, name, kernel, None, within, None, refusal)
        else:
            yield Compared(cell, name, kernel, own, within, reach(cell, name, own))


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


def data(lines: Iterable[Compared]) -> str:
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
                _figure(line.kernel.half_width),
                line.kernel.runs,
                "" if own is None else f"{own.value:.6g}",
                "" if own is None else _figure(half_width(own)),
                _figure(line.ratio),
                _figure(line.half_widths),
                _figure(line.allowed),
                line.verdict,
                line.refusal,
            ]
        )
    return stream.getvalue()


def _figure(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else ""


SUMMARY_HEAD = (
    "cells",
    "quantity",
    "checked",
    "agree",
    "within the tolerance alone",
    "median difference",
    "not simulated",
)


def summary(lines: Iterable[Compared]) -> list[tuple[str, ...]]:
    """Return the numbers of agreements, one row per kind and quantity, as :data:`SUMMARY_HEAD`.

    The median includes absolute differences with half-widths below :data:`NARROW`.
    """
    result: dict[tuple[str, str], list[Compared]] = {}
    for line in lines:
        known = quantity(line.name)
        title = "" if known is None else known.title.partition(" by ")[0]
        result.setdefault((line.cell.kind, title), []).append(line)
    order = sorted(result.items(), key=lambda each: KINDS.index(each[0][0]))
    return [(kind, title, *_sums(each)) for (kind, title), each in order]


def _sums(lines: list[Compared]) -> tuple[str, ...]:
    verdicts = [line.verdict for line in lines]
    checked = [line for line in lines if line.verdict in {AGREES, DIFFERS}]
    narrow = [abs(line.ratio - 1) for line in checked if line.half_widths < NARROW]
    return (
        str(len(checked)),
        str(verdicts.count(AGREES)),
        str(sum(line.close for line in checked)),
        f"{100 * statistics.median(narrow):.1f} %" if narrow else "–",
        str(verdicts.count(NOT_SIMULATED)),
    )
