"""Simulations of the reproduction: one for each cell, with predictions of models."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tcpcast.engines import answer
from tcpcast.process.errors import NotApplicable, ScenarioError
from tcpcast.scenario import Scenario

from tcpcast_papers.kernel.cells import LOSS, ON_OFF, TRANSFERS, packaged_cells
from tcpcast_papers.kernel.scenarios import scenario_tables
from tcpcast_papers.simulations import Runs, simulate_scenario

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.answer import Answer

    from tcpcast_papers.kernel.cells import Cell


@dataclass(frozen=True, slots=True)
class SampleSizes:
    """Sample sizes of the simulations.

    Attributes
    ----------
    loss_runs, queue_runs
        Number of independent runs of a cell with random loss (``loss_runs``) or of another cell
        (``queue_runs``). Each run is as long as the measurement.
    transfers
        Number of transfers for a cell of short transfers.
    max_packets
        Maximum number of packets of a cell in all runs; larger cells are left out.
    """

    loss_runs: int
    queue_runs: int
    transfers: int
    max_packets: float = math.inf

    def replications(self, cell: Cell) -> int:
        """Return the number of independent runs of a cell."""
        return self.loss_runs if cell.kind == LOSS else self.queue_runs


WHOLE = SampleSizes(loss_runs=12, queue_runs=6, transfers=12_000)
QUICK = SampleSizes(loss_runs=4, queue_runs=3, transfers=2000, max_packets=2e6)
LEFT_OUT_REASON = "left out of the quick run"


@dataclass(frozen=True, slots=True)
class CellResult:
    """Results for a cell: the simulator's answer, or why it is missing; the models' answers."""

    packet: Answer | None = None
    refusal: str = ""
    models: tuple[Answer, ...] = ()


@dataclass(frozen=True, slots=True)
class CellJob:
    """A cell to simulate."""

    series: str
    name: str
    sample_sizes: SampleSizes
    cell: Cell = field(compare=False)

    @property
    def weight(self) -> float:
        """Approximate number of simulated packets."""
        cell = self.cell
        if cell.kind in {TRANSFERS, ON_OFF}:
            return 20.0 * self.sample_sizes.transfers
        rate = (
            cell.measured["goodput_bps"].mean if "goodput_bps" in cell.measured else cell.rate_bps
        )
        seconds = cell.warmup_s + cell.duration_s
        return max(1e4, rate * seconds * self.sample_sizes.replications(cell) / 12_000)

    def run(self, progress: Callable[[float], None]) -> CellResult:
        """Simulate the cell, and compute the formulas that ``tcpcast run`` includes by default."""
        if self.cell.unsupported:
            return CellResult(refusal=self.cell.unsupported)
        if self.weight > self.sample_sizes.max_packets:
            return CellResult(refusal=LEFT_OUT_REASON)
        try:
            scenario = Scenario.from_dict(scenario_tables(self.cell, self.sample_sizes))
            packet = simulate_scenario(scenario, progress)
        except (ScenarioError, NotApplicable) as reason:
            return CellResult(refusal="; ".join(str(reason).splitlines()))
        if packet.not_applicable is not None:
            return CellResult(refusal=packet.not_applicable)
        return CellResult(
            packet, models=_formula_answers(scenario) if self.cell.kind == LOSS else ()
        )


def _formula_answers(scenario: Scenario) -> tuple[Answer, ...]:
    """Return the answers of the default formulas for a scenario."""
    from tcpcast.engines import REGISTRY  # noqa: PLC0415 - filled while it is imported
    from tcpcast.engines.registry import PATH_FAMILY  # noqa: PLC0415

    names = [
        name
        for name, entry in REGISTRY.items()
        if entry.family == PATH_FAMILY and entry.is_default_for(scenario)
    ]
    return tuple(each for each in answer(scenario, names) if each.not_applicable is None)


@dataclass(slots=True)
class KernelRuns(Runs[SampleSizes]):
    """The answers to the cells of the measurements.

    Parameters
    ----------
    cells
        Measurements; default: the packaged ones.
    has_networks
        Whether the packaged networks are compared.
    """

    cells: tuple[Cell, ...] = field(default_factory=packaged_cells)
    has_networks: bool = True

    def request_all(self) -> None:
        """Request every cell, in decreasing order of work."""
        for job_of in sorted(map(self.job_of, self.cells), key=lambda each: -each.weight):
            self.request(job_of)

    def job_of(self, cell: Cell) -> CellJob:
        """Return the key of a cell's results."""
        return CellJob(cell.series, cell.name, self.sample_sizes, cell)

    def result_of(self, cell: Cell) -> CellResult:
        """Return the results for a cell.

        Raises
        ------
        Unfinished
            The user pressed Ctrl-C before it finished.
        """
        return self[self.job_of(cell)]
