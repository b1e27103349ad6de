"""Cells of the measurements: a path, its flows, and the results of the kernel.

A cell combines all runs under the same conditions. A measured quantity is a mean over the runs with
half the width of its 95 % interval. A table of cells, such as the packaged ``data/measured.csv``,
has one line per cell and quantity.
"""

from __future__ import annotations

import csv
import json
import math
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from scipy.stats import t as student
from tcpcast.process.errors import DomainError, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
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


CONDITION_COLUMNS = tuple(
    each for each in Cell.__dataclass_fields__ if each not in {"groups", "measured"}
)
COLUMNS = (*CONDITION_COLUMNS, "groups", "quantity", "mean", "half_width", "runs")
JSON_COLUMNS = {"traffic", "tcp"}


def mean_over_runs(values: Sequence[float]) -> Measured:
    """Return the mean of independent runs with an interval from the t distribution."""
    count = len(values)
    mean = math.fsum(values) / count
    if count == 1:
        return Measured(mean, math.nan, 1)
    spread = math.sqrt(math.fsum((each - mean) ** 2 for each in values) / (count - 1))
    half = float(student.ppf(0.975, count - 1)) * spread / math.sqrt(count)
    return Measured(mean, half, count)


def packaged_cells() -> tuple[Cell, ...]:
    """Return the cells of the packaged table."""
    with files(PACKAGE).joinpath("data", TABLE_NAME).open(encoding="utf-8") as stream:
        return read_cells(stream)


def read_cells_in_folders(folders: Sequence[Path]) -> tuple[Cell, ...]:
    """Return the cells of the tables in folders.

    Raises
    ------
    ScenarioError
        A folder has no table, or a table lacks a column or has a value that cannot be read.
    """
    result: list[Cell] = []
    for folder in folders:
        path = folder / TABLE_NAME
        try:
            with path.open(encoding="utf-8", newline="") as stream:
                result += read_cells(stream)
        except FileNotFoundError:
            raise ScenarioError(
                f"--measurements {folder}: the folder contains no {TABLE_NAME}; use a folder with "
                f"a table like the packaged {TABLE_NAME}"
            ) from None
        except ValueError as error:
            raise ScenarioError(f"--measurements: {path}: {error}") from None
    return tuple(result)


def read_cells(stream: IO[str]) -> tuple[Cell, ...]:
    """Read a table of cells.

    Raises
    ------
    DomainError
        A column is missing.
    ValueError
        A value is not a number.
    """
    table = csv.DictReader(stream)
    missing = set(COLUMNS) - set(table.fieldnames or ())
    if missing:
        raise DomainError(f"no column {', '.join(sorted(missing))}")
    result: dict[tuple[str, str], Cell] = {}
    for line in table:
        plain = Cell(line["series"], line["name"], line["kind"], _parse_groups(line["groups"]), 0.0)
        given: dict[str, Any] = {
            each: _parse_cell(each, line[each], getattr(plain, each)) for each in CONDITION_COLUMNS
        }
        cell = result.setdefault(
            (line["series"], line["name"]), replace(plain, **given, measured={})
        )
        cell.measured[line["quantity"]] = Measured(
            float(line["mean"]), float(line["half_width"]), int(line["runs"])
        )
    return tuple(result.values())


def _parse_groups(text: str) -> tuple[FlowGroup, ...]:
    result = []
    for each in text.split():
        stack, _, rest = each.partition("@")
        rtt, _, count = rest.partition("x")
        result.append(FlowGroup(stack, float(rtt), int(count)))
    return tuple(result)


def _parse_cell(name: str, text: str, like: object) -> object:
    if name in JSON_COLUMNS:
        return tuple(json.loads(text).items()) if text else ()
    if isinstance(like, bool):
        return text == "1"
    if isinstance(like, float):
        return float(text)
    return int(text) if isinstance(like, int) else text
