"""Cells of the measurements: a path, its flows, and what the kernel did there.

A cell is all runs of one set of conditions. What was measured of it is a mean over the runs with
half the width of its 95 % interval: t-based over runs, by order statistics for percentiles, by
Poisson's law for counts. The table that comes with tcpcast (``data/measured.csv``) has a line for
each cell and quantity; :mod:`.originals` makes it of the original files.
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
TABLE = "measured.csv"

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
"""The measured quantity that has the realised random loss of long flows."""

KINDS = (LOSS, DROP_TAIL, AQM, PAIRS, STARTUP, TRANSFERS, ON_OFF)
"""What a cell is about, in the order of the page."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A quantity of the kernel: its mean over runs and half of the 95 % interval.

    Attributes
    ----------
    mean
        In the unit of the quantity.
    half_width
        In the same unit; ``nan`` where one run alone was measured.
    runs
        Over how many runs (transfers, where each is one).
    """

    mean: float
    half_width: float
    runs: int


@dataclass(frozen=True, slots=True)
class Group:
    """Equal flows of a cell: their stack, their propagation RTT and their number."""

    stack: str
    rtt_ms: float
    count: int = 1

    @property
    def text(self) -> str:
        """The group as the table has it: ``linux-cubic@60x5``."""
        return f"{self.stack}@{self.rtt_ms:g}x{self.count}"


@dataclass(frozen=True, slots=True)
class Cell:
    """Conditions of a measurement, and what the kernel did.

    Attributes
    ----------
    series
        The file it stands in, by its letter: ``A`` to ``E``, ``F1`` to ``F6``.
    name
        Unique within the series.
    kind
        One of :data:`KINDS`.
    groups
        The flows.
    rate_bps, queue, waiting_pkts
        The bottleneck; packets that may wait, the one in service not counted.
    loss
        Random loss of each packet of the forward path, as it was configured.
    ecn
        Whether flows negotiate ECN.
    warmup_s, duration_s
        Before and while it was measured.
    starts_s
        Flows start uniformly within so much; 0: within one RTT.
    traffic
        Further keys of traffic, as a scenario has them.
    tcp
        Keys of TCP that differ from the stack's.
    unlike
        What differs from any stack here that no key can ask for, "" for nothing.
    measured
        What the kernel did, by quantity.
    """

    series: str
    name: str
    kind: str
    groups: tuple[Group, ...]
    rate_bps: float
    queue: str = "droptail"
    waiting_pkts: int = 0
    loss: float = 0.0
    ecn: bool = False
    warmup_s: float = 0.0
    duration_s: float = 0.0
    starts_s: float = 0.0
    traffic: tuple[tuple[str, Any], ...] = ()
    tcp: tuple[tuple[str, Any], ...] = ()
    unlike: str = ""
    measured: dict[str, Measured] = field(default_factory=dict, compare=False)

    @property
    def stacks(self) -> str:
        """The stacks, as a row of the page names them."""
        return " + ".join(
            (f"{group.count} x " if group.count > 1 else "") + group.stack for group in self.groups
        )

    @property
    def realised_loss(self) -> float:
        """Random loss that the runs had; the configured one if the realised one is unknown."""
        realised = self.measured.get(REALISED_LOSS)
        return self.loss if realised is None else realised.mean

    @property
    def flows(self) -> int:
        """Flows of all groups."""
        return sum(group.count for group in self.groups)


_CONDITIONS = tuple(
    each for each in Cell.__dataclass_fields__ if each not in {"groups", "measured"}
)
_COLUMNS = (*_CONDITIONS, "groups", "quantity", "mean", "half_width", "runs")
_JSON = {"traffic", "tcp"}


def over_runs(values: Sequence[float]) -> Measured:
    """Return the mean of independent runs with its t-based interval."""
    count = len(values)
    mean = math.fsum(values) / count
    if count == 1:
        return Measured(mean, math.nan, 1)
    spread = math.sqrt(math.fsum((each - mean) ** 2 for each in values) / (count - 1))
    half = float(student.ppf(0.975, count - 1)) * spread / math.sqrt(count)
    return Measured(mean, half, count)


def counts(values: Sequence[float]) -> Measured:
    """Return the mean of counts of independent runs, whose sum varies by Poisson's law."""
    total, count = math.fsum(values), len(values)
    return Measured(total / count, 1.96 * math.sqrt(max(total, 1.0)) / count, count)


def mean_of(runs: Sequence[Mapping[str, Any]], column: str, scale: float = 1.0) -> Measured:
    """Return the mean of a column over the runs of a cell, ``scale`` times its values."""
    return over_runs([scale * float(run[column]) for run in runs])


def share_of(runs: Sequence[Mapping[str, Any]], column: str, of: str) -> Measured:
    """Return the sum of a column over the runs of a cell as a share of the sum of another.

    The mean of the runs' shares would be larger: runs of few packets are those with many losses.
    """
    each = over_runs([float(run[column]) / float(run[of]) for run in runs])
    total = math.fsum(float(run[column]) for run in runs) / math.fsum(
        float(run[of]) for run in runs
    )
    return replace(each, mean=total)


def counts_of(runs: Sequence[Mapping[str, Any]], column: str) -> Measured:
    """Return the mean of a column of counts over the runs of a cell."""
    return counts([float(run[column]) for run in runs])


def percentile(values: Sequence[float], share: float) -> Measured:
    """Return a percentile of single observations, its interval from order statistics."""
    ordered, count = sorted(values), len(values)
    low, high = (int(binom.ppf(each, count, share)) for each in (0.025, 0.975))
    last = count - 1
    ends = ordered[min(max(low - 1, 0), last)], ordered[min(high, last)]
    middle = ordered[min(math.ceil(share * count) - 1, last)]
    return Measured(middle, max(ends[1] - middle, middle - ends[0]), count)


def packaged() -> tuple[Cell, ...]:
    """Return the cells of the table that comes with tcpcast."""
    with files(PACKAGE).joinpath("data", TABLE).open(encoding="utf-8") as stream:
        return read(stream)


def write(cells: Iterable[Cell], stream: IO[str]) -> None:
    """Write cells as a table, a line for each quantity."""
    out = csv.DictWriter(stream, _COLUMNS, lineterminator="\n")
    out.writeheader()
    for cell in cells:
        conditions = {each: _text(each, getattr(cell, each)) for each in _CONDITIONS}
        conditions["groups"] = " ".join(group.text for group in cell.groups)
        for quantity, result in cell.measured.items():
            figures = {"mean": f"{result.mean:.7g}", "half_width": f"{result.half_width:.3g}"}
            out.writerow(conditions | {"quantity": quantity, "runs": result.runs} | figures)


def read(stream: IO[str]) -> tuple[Cell, ...]:
    """Read what :func:`write` wrote.

    Raises
    ------
    DomainError
        A column is missing.
    """
    table = csv.DictReader(stream)
    missing = set(_COLUMNS) - set(table.fieldnames or ())
    if missing:
        raise DomainError(f"{TABLE}: no column {', '.join(sorted(missing))}")
    result: dict[tuple[str, str], Cell] = {}
    for line in table:
        cell = result.setdefault((line["series"], line["name"]), _conditions(line))
        cell.measured[line["quantity"]] = Measured(
            float(line["mean"]), float(line["half_width"]), int(line["runs"])
        )
    return tuple(result.values())


def _conditions(line: dict[str, str]) -> Cell:
    plain = Cell(line["series"], line["name"], line["kind"], _groups(line["groups"]), 0.0)
    given: dict[str, Any] = {
        each: _value(each, line[each], getattr(plain, each)) for each in _CONDITIONS
    }
    return replace(plain, **given, measured={})


def _groups(text: str) -> tuple[Group, ...]:
    result = []
    for each in text.split():
        stack, _, rest = each.partition("@")
        rtt, _, count = rest.partition("x")
        result.append(Group(stack, float(rtt), int(count)))
    return tuple(result)


def _text(name: str, value: object) -> str:
    if name in _JSON:
        return json.dumps(dict(value)) if value else ""  # type: ignore[call-overload]
    if isinstance(value, bool):
        return "1" if value else ""
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _value(name: str, text: str, like: object) -> object:
    if name in _JSON:
        return tuple(json.loads(text).items()) if text else ()
    if isinstance(like, bool):
        return text == "1"
    if isinstance(like, float):
        return float(text)
    return int(text) if isinstance(like, int) else text
