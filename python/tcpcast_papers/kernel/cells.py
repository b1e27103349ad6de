"""Cells of the measurements: a path, its flows, and the results of the kernel.

A cell combines all runs under the same conditions. A measured quantity is a mean over the runs with
half the width of its 95 % interval: from the t distribution over runs, from order statistics for
percentiles, from the Poisson distribution for counts. The packaged table (``data/measured.csv``)
has one line per cell and quantity; :mod:`.measurement_files` creates it from the original files.
"""

from __future__ import annotations

import csv
import json
import math
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from scipy.stats import binom
from scipy.stats import t as student
from tcpcast.errors import DomainError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import IO

PACKAGE = "tcpcast_papers.kernel"
TABLE_NAME = "measured.csv"

LOSS, DROP_TAIL, AQM, PAIRS, STARTUP, TRANSFERS, ON_OFF = (
    "random loss",
    "drop-tail",
    "AQM",
    "pairs",
    "startup",
    "transfers",
    "on/off",
)
REALISED_LOSS = "random_loss_ratio"
"""The measured quantity with the realised random loss of long flows."""

KINDS = (LOSS, DROP_TAIL, AQM, PAIRS, STARTUP, TRANSFERS, ON_OFF)
"""Kinds of cells, in the order of the page."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A quantity of the kernel: its mean over runs, and half the width of its 95 % interval.

    Attributes
    ----------
    mean
        Mean, in the unit of the quantity.
    half_width
        Half-width, in the same unit; ``nan`` for a single run.
    runs
        Number of runs, or of transfers if each is a run.
    """

    mean: float
    half_width: float
    runs: int


@dataclass(frozen=True, slots=True)
class FlowGroup:
    """Flows of a cell with equal stack and propagation RTT, and their number."""

    stack: str
    rtt_ms: float
    count: int = 1

    @property
    def text(self) -> str:
        """The group in the notation of the table: ``linux-cubic@60x5``."""
        return f"{self.stack}@{self.rtt_ms:g}x{self.count}"


@dataclass(frozen=True, slots=True)
class Cell:
    """Conditions of a measurement, and results of the kernel.

    Attributes
    ----------
    series
        Letter of the original file: ``A`` to ``E``, ``F1`` to ``F6``.
    name
        Unique within the series.
    kind
        One of :data:`KINDS`.
    groups
        The flows.
    rate_bps, queue, waiting_pkts
        The bottleneck; ``waiting_pkts`` is its limit without the packet in service.
    loss
        Configured random loss per packet of the forward path.
    ecn
        Whether flows negotiate ECN.
    warmup_s, duration_s
        Time before the measurement, and its length.
    start_interval_s
        Interval in which flows start uniformly; 0: one RTT.
    traffic
        Further keys of ``traffic`` of a scenario.
    tcp
        Keys of TCP that differ from the stack's defaults.
    unsupported
        Reason why no stack and keys describe the kernel's settings; "" if they do.
    measured
        Results of the kernel, by quantity.
    """

    series: str
    name: str
    kind: str
    groups: tuple[FlowGroup, ...]
    rate_bps: float
    queue: str = "droptail"
    waiting_pkts: int = 0
    loss: float = 0.0
    ecn: bool = False
    warmup_s: float = 0.0
    duration_s: float = 0.0
    start_interval_s: float = 0.0
    traffic: tuple[tuple[str, Any], ...] = ()
    tcp: tuple[tuple[str, Any], ...] = ()
    unsupported: str = ""
    measured: dict[str, Measured] = field(default_factory=dict, compare=False)

    @property
    def stacks(self) -> str:
        """Names of the stacks, for rows of the page."""
        return " + ".join(
            (f"{group.count} x " if group.count > 1 else "") + group.stack for group in self.groups
        )

    @property
    def realised_loss(self) -> float:
        """Realised random loss of the runs, or the configured one if that is unknown."""
        realised = self.measured.get(REALISED_LOSS)
        return self.loss if realised is None else realised.mean

    @property
    def flows(self) -> int:
        """Number of flows in all groups."""
        return sum(group.count for group in self.groups)


_CONDITION_COLUMNS = tuple(
    each for each in Cell.__dataclass_fields__ if each not in {"groups", "measured"}
)
_COLUMNS = (*_CONDITION_COLUMNS, "groups", "quantity", "mean", "half_width", "runs")
_JSON_COLUMNS = {"traffic", "tcp"}


def mean_over_runs(values: Sequence[float]) -> Measured:
    """Return the mean of independent runs with an interval from the t distribution."""
    count = len(values)
    mean = math.fsum(values) / count
    if count == 1:
        return Measured(mean, math.nan, 1)
    spread = math.sqrt(math.fsum((each - mean) ** 2 for each in values) / (count - 1))
    half = float(student.ppf(0.975, count - 1)) * spread / math.sqrt(count)
    return Measured(mean, half, count)


def mean_count(values: Sequence[float]) -> Measured:
    """Return the mean of counts of independent runs; their sum has a Poisson distribution."""
    total, count = math.fsum(values), len(values)
    return Measured(total / count, 1.96 * math.sqrt(max(total, 1.0)) / count, count)


def mean_of_column(runs: Sequence[Mapping[str, Any]], column: str, scale: float = 1.0) -> Measured:
    """Return the mean of a column over the runs of a cell, multiplied by ``scale``."""
    return mean_over_runs([scale * float(run[column]) for run in runs])


def ratio_of_sums(runs: Sequence[Mapping[str, Any]], column: str, of: str) -> Measured:
    """Return the ratio of the sums of two columns over the runs of a cell.

    The mean of the runs' ratios would be larger, because runs with few packets have many losses.
    """
    each = mean_over_runs([float(run[column]) / float(run[of]) for run in runs])
    total = math.fsum(float(run[column]) for run in runs) / math.fsum(
        float(run[of]) for run in runs
    )
    return replace(each, mean=total)


def mean_count_of_column(runs: Sequence[Mapping[str, Any]], column: str) -> Measured:
    """Return the mean of a column of counts over the runs of a cell."""
    return mean_count([float(run[column]) for run in runs])


def percentile_with_interval(values: Sequence[float], share: float) -> Measured:
    """Return a percentile of single observations, with an interval from order statistics."""
    ordered, count = sorted(values), len(values)
    low, high = (int(binom.ppf(each, count, share)) for each in (0.025, 0.975))
    last = count - 1
    ends = ordered[min(max(low - 1, 0), last)], ordered[min(high, last)]
    middle = ordered[min(math.ceil(share * count) - 1, last)]
    return Measured(middle, max(ends[1] - middle, middle - ends[0]), count)


def packaged_cells() -> tuple[Cell, ...]:
    """Return the cells of the packaged table."""
    with files(PACKAGE).joinpath("data", TABLE_NAME).open(encoding="utf-8") as stream:
        return read_cells(stream)


def write_cells(cells: Iterable[Cell], stream: IO[str]) -> None:
    """Write cells as a table with one line per quantity."""
    out = csv.DictWriter(stream, _COLUMNS, lineterminator="\n")
    out.writeheader()
    for cell in cells:
        conditions = {each: _cell_text(each, getattr(cell, each)) for each in _CONDITION_COLUMNS}
        conditions["groups"] = " ".join(group.text for group in cell.groups)
        for quantity, result in cell.measured.items():
            figures = {"mean": f"{result.mean:.7g}", "half_width": f"{result.half_width:.3g}"}
            out.writerow(conditions | {"quantity": quantity, "runs": result.runs} | figures)


def read_cells(stream: IO[str]) -> tuple[Cell, ...]:
    """Read a table that :func:`write_cells` has written.

    Raises
    ------
    DomainError
        A column is missing.
    """
    table = csv.DictReader(stream)
    missing = set(_COLUMNS) - set(table.fieldnames or ())
    if missing:
        raise DomainError(f"{TABLE_NAME}: no column {', '.join(sorted(missing))}")
    result: dict[tuple[str, str], Cell] = {}
    for line in table:
        cell = result.setdefault((line["series"], line["name"]), _cell_of_line(line))
        cell.measured[line["quantity"]] = Measured(
            float(line["mean"]), float(line["half_width"]), int(line["runs"])
        )
    return tuple(result.values())


def _cell_of_line(line: dict[str, str]) -> Cell:
    plain = Cell(line["series"], line["name"], line["kind"], _parse_groups(line["groups"]), 0.0)
    given: dict[str, Any] = {
        each: _parse_cell(each, line[each], getattr(plain, each)) for each in _CONDITION_COLUMNS
    }
    return replace(plain, **given, measured={})


def _parse_groups(text: str) -> tuple[FlowGroup, ...]:
    result = []
    for each in text.split():
        stack, _, rest = each.partition("@")
        rtt, _, count = rest.partition("x")
        result.append(FlowGroup(stack, float(rtt), int(count)))
    return tuple(result)


def _cell_text(name: str, value: object) -> str:
    if name in _JSON_COLUMNS:
        return json.dumps(dict(value)) if value else ""  # type: ignore[call-overload]
    if isinstance(value, bool):
        return "1" if value else ""
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _parse_cell(name: str, text: str, like: object) -> object:
    if name in _JSON_COLUMNS:
        return tuple(json.loads(text).items()) if text else ()
    if isinstance(like, bool):
        return text == "1"
    if isinstance(like, float):
        return float(text)
    return int(text) if isinstance(like, int) else text
