"""Simulations of the cells: each with several seeds, whose values give the interval."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tcpcast.answer import Metric
from tcpcast.process.errors import ScenarioError
from tcpcast.scenario import Scenario

from tcpcast_papers.kernel.cells import mean_over_runs
from tcpcast_papers.published.cells import spread
from tcpcast_papers.published.sets import (
    BBR_AND_ONE_CUBIC,
    CWND_SERIES,
    FIFTY_FLOWS,
    LOSSY_PATHS,
    NEST,
    PAIRS,
    ROUTER_BUFFERS,
    SINGLE_FLOWS,
)
from tcpcast_papers.simulations import Runs, progress_of_run, seed_of_cell, simulate_scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tcpcast_papers.published.cells import Cell, CellSet, Value

SETS: tuple[CellSet, ...] = (
    SINGLE_FLOWS,
    BBR_AND_ONE_CUBIC,
    FIFTY_FLOWS,
    LOSSY_PATHS,
    ROUTER_BUFFERS,
    PAIRS,
    CWND_SERIES,
    NEST,
)
"""All sets, in the order of the page."""


@dataclass(frozen=True, slots=True)
class SampleSizes:
    """Sample sizes of the simulations.

    Attributes
    ----------
    seeds
        Number of runs of each cell, at least 2.
    packets
        Approximate number of packets of all runs of a set; it has fewer cells if necessary.
    """

    seeds: int
    packets: float


WHOLE = SampleSizes(seeds=4, packets=4e7)
QUICK = SampleSizes(seeds=2, packets=7e6)


@dataclass(frozen=True, slots=True)
class CellJob:
    """A cell to simulate with several seeds."""

    set_name: str
    label: tuple[str, ...]
    seeds: int
    cell: Cell = field(compare=False)
    variant: str = ""
    """Reason of the variant to simulate, or the scenario of the cell."""

    @property
    def weight(self) -> float:
        """Approximate number of simulated packets."""
        return self.seeds * self.cell.packets

    def run(self, progress: Callable[[float], None]) -> dict[str, Metric]:
        """Return the mean of each value of the cell, with its interval over the seeds."""
        values: dict[str, list[float]] = {value.quantity: [] for value in self.cell.values}
        tables, first_seed = self._tables, seed_of_cell(self.set_name, *self.label)
        for index in range(self.seeds):
            run = tables["run"] | {"seed": first_seed + index}
            scenario = Scenario.from_dict(tables | {"run": run})
            answer = simulate_scenario(scenario, progress_of_run(progress, index, self.seeds))
            if answer.not_applicable is not None:
                raise ScenarioError(answer.not_applicable)
            for value in self.cell.values:
                values[value.quantity].append(value.read(answer))
        return {quantity: metric_over_seeds(runs) for quantity, runs in values.items()}

    @property
    def _tables(self) -> dict[str, Any]:
        changed = (each.tables for each in self.cell.variants if each.reason == self.variant)
        return next(changed, self.cell.tables)


def metric_over_seeds(runs: Sequence[float]) -> Metric:
    """Return the mean of the values of runs with different seeds, with its interval."""
    result = mean_over_runs(runs)
    return Metric(result.mean, result.mean - result.half_width, result.mean + result.half_width)


@dataclass(slots=True)
class PublishedRuns(Runs[SampleSizes]):
    """The simulations of sets.

    Parameters
    ----------
    sets
        The sets.
    folders
        Folders with tables of measurements; default: the packaged tables.
    """

    sets: tuple[CellSet, ...] = SETS
    folders: tuple[Path, ...] = ()
    _cells: dict[str, tuple[Cell, ...]] = field(default_factory=dict)

    def cells_of(self, cell_set: CellSet) -> tuple[Cell, ...]:
        """Return the cells of a set that these sample sizes simulate."""
        if cell_set.name not in self._cells:
            per_seed = self.sample_sizes.packets / self.sample_sizes.seeds
            self._cells[cell_set.name] = spread(cell_set.read(self.folders), per_seed)
        return self._cells[cell_set.name]

    def request_all(self) -> None:
        """Request every cell, in decreasing order of work."""
        jobs = [
            self._job(each, cell, variant)
            for each in self.sets
            for cell in self.cells_of(each)
            for variant in ("", *(every.reason for every in cell.variants))
        ]
        for job in sorted(jobs, key=lambda job: -job.weight):
            self.request(job)

    def metrics_of(self, cell_set: CellSet, cell: Cell, variant: str = "") -> dict[str, Metric]:
        """Return the simulated values of a cell, or of a variant, by quantity.

        Raises
        ------
        Unfinished
            The user pressed Ctrl-C before it finished.
        """
        return self[self._job(cell_set, cell, variant)]

    def compare(self, cell_set: CellSet) -> list[Comparison]:
        """Return all values of a set beside the measured ones.

        Raises
        ------
        Unfinished
            The user pressed Ctrl-C before all simulations had finished.
        """
        return [
            self.comparison(cell_set, cell, value)
            for cell in self.cells_of(cell_set)
            for value in cell.values
        ]

    def comparison(self, cell_set: CellSet, cell: Cell, value: Value) -> Comparison:
        """Return a simulated value beside the measured one.

        Raises
        ------
        Unfinished
            The user pressed Ctrl-C before it finished.
        """
        own = self.metrics_of(cell_set, cell)[value.quantity]
        return Comparison(cell, value, own, self.sample_sizes.seeds)

    def _job(self, cell_set: CellSet, cell: Cell, variant: str = "") -> CellJob:
        return CellJob(cell_set.name, cell.label, self.sample_sizes.seeds, cell, variant)


@dataclass(frozen=True)
class Comparison:
    """A measured value, and the mean of the simulated values of a number of seeds."""

    cell: Cell
    value: Value
    own: Metric
    seeds: int

    @cached_property
    def difference(self) -> float:
        """The simulated value minus the measured one."""
        return self.own.value - self.value.measured

    @property
    def error(self) -> float:
        """The difference in percentage points for unit %, else relative to the measured value."""
        return self.difference if self.value.unit == "%" else self.difference / self.value.measured

    @property
    def error_text(self) -> str:
        """The error with its unit."""
        if self.value.unit == "%":
            return f"{self.error:+.1f} points"
        return f"{100 * self.error:+.1f} %"

    @property
    def half_widths(self) -> tuple[float, float]:
        """Half-widths of the intervals of the measured and of the simulated value.

        If the measured runs have no interval of their own, the sum is the half-width of the
        prediction interval of their mean: that of the simulated mean, times the square root of
        1 + seeds / runs.
        """
        own = 0.0 if self.own.high is None else self.own.high - self.own.value
        if not math.isnan(self.value.half_width):
            return self.value.half_width, own
        runs = self.value.runs
        return own * (math.sqrt(1 + self.seeds / runs) - 1) if runs else 0.0, own

    @property
    def tolerance(self) -> float:
        """Allowed difference without intervals."""
        allowed = self.value.allowed
        return 0.0 if allowed is None else allowed.absolute_to(self.value.measured)

    @property
    def max_difference(self) -> float:
        """Allowed difference: the tolerance and both half-widths."""
        return self.tolerance + sum(self.half_widths)

    @property
    def is_inside(self) -> bool:
        """Whether the values agree, with intervals."""
        return abs(self.difference) <= self.max_difference

    @property
    def is_inside_tolerance(self) -> bool:
        """Whether the values agree without intervals."""
        return abs(self.difference) <= self.tolerance
