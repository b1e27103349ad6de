"""The tests of convergence (INRIA report 4154, section 5.4): there need not be a fixed point.

*Environment*: over the measurement, the means of file sizes and silences of the reference flows
lie within their bounds by the central limit theorem of the means of their laws, and those bounds
are narrow enough for the run to say anything.

*Fixed point*: the reference flows are like the cross flows in what both have, the rate while on,
the time on, the packets of their own in the shared router, the losses; and what the cross flows
were made of is what was then measured. A difference passes for none up to the tolerance (twice
that for queues and losses), or up to its own 95 % interval where that is wider.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast import _native, statistics
from tcpcast.engines.fixed_point.configuration import references
from tcpcast.scenario.traffic import OnOff

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcpcast.engines.packet.figures import Floats, Units
    from tcpcast.scenario import FixedPoint, Scenario
    from tcpcast.statistics import Estimate

WIDEST_BOUND = 0.2
"""What is known no better than this, of itself, passes no test."""

LEAST_QUEUE_PKTS = 1.0
LEAST_LOSS = 0.01
"""Differences of queues and losses are relative to these where the values are smaller."""


@dataclass(slots=True)
class Tested:
    """The table ``convergence``, and in words what failed."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @property
    def table(self) -> dict[str, NDArray[Any]]:
        """The rows as columns."""
        return {name: np.array([row[name] for row in self.rows]) for name in self.rows[0]}


@dataclass(slots=True)
class _Judge:
    """Adds the rows of one class."""

    verdict: Tested
    name: str
    several: bool

    def add(
        self, what: str, reference: float, cross: float, *, least: float = 0.0, limit: float
    ) -> None:
        scale = max(abs(cross), least)
        difference = (reference - cross) / scale if scale else 0.0
        passed = abs(difference) <= limit
        self.verdict.rows.append(
            {
                "class": self.name,
                "what": what,
                "reference": reference,
                "cross": cross,
                "difference": difference,
                "limit": limit,
                "passed": passed,
            }
        )
        if not passed:
            of = f" of class {self.name}" if self.several else ""
            self.verdict.failed.append(f"{what}{of} differs by {100 * difference:+.3g} %")


def tested(
    scenario: Scenario,
    table: FixedPoint,
    own: Units,
    crowd: Units,
    steps: list[NDArray[np.float64]],
) -> Tested:
    """Make the tests of each class.

    Parameters
    ----------
    scenario, table
        What was asked.
    own, crowd
        Sums of the reference flows and of the cross flows over the measurement.
    steps
        Of each replication, what each step found, ``[steps x classes, cells]``, the measurement
        last.
    """
    verdict = Tested()
    groups = scenario.populations
    last = np.mean([rows[-len(groups) :] for rows in steps], axis=0)
    for at, group in enumerate(groups):
        judge = _Judge(verdict, group.name, len(groups) > 1)
        if isinstance(group.traffic, OnOff):
            size, off = group.traffic.size.mean_value(), group.traffic.off.mean_value()
            if group.traffic.size_rounding == "down":
                size -= 0.5
            _of_environment(judge, own, at, "file size", ("transfer_packets", "transfers"), size)
            _of_environment(judge, own, at, "silence", ("silence_ns", "silences"), 1e9 * off)
        else:
            flows = references(scenario, table)[at]
            _of_rates(judge, own, crowd, at, (flows, group.count - flows), table.tolerance)
        _of_fixed_point(judge, own, crowd, at, table.tolerance)
        cells = dict(zip(_native.STEP_CELLS, last[at], strict=True))
        _of_iteration(judge, own, at, cells, table)
    return verdict


def _of_environment(
    judge: _Judge, own: Units, at: int, what: str, cells: tuple[str, str], expected: float
) -> None:
    """Compare a mean with its law's; the bound is that of 99 %."""
    above, below = (own.of_class(name, [at]) for name in cells)
    found = own.ratio(above, below)
    value = math.nan if found is None else found.value
    bound = 2.576 / 1.96 * _half_width(found)
    limit = bound if bound <= WIDEST_BOUND else 0.0
    scale = 1e-9 if cells[0].endswith("_ns") else 1.0
    judge.add(what, scale * value, scale * expected, limit=limit)


def _half_width(found: Estimate | None) -> float:
    """Return half the interval over the value; infinite where there is none."""
    return math.inf if found is None else found.relative_half_width


@dataclass(frozen=True, slots=True)
class _Pair:
    """What both kinds of flows have: a ratio of cells, its scale, and what is too little to tell."""

    what: str
    above: str
    below: str
    scale: float = 1.0
    least: float = 0.0
    tolerances: float = 1.0


PAIRS = (
    _Pair("rate while on", "transfer_packets", "on_time_ns", 1e9),
    _Pair("time on", "on_time_ns", "transfers", 1e-9),
    _Pair("own queue", "own_found", "arrived", least=LEAST_QUEUE_PKTS, tolerances=2.0),
    _Pair("loss", "queue_drops", "arrived", least=LEAST_LOSS, tolerances=2.0),
)


def _of_fixed_point(judge: _Judge, own: Units, crowd: Units, at: int, tolerance: float) -> None:
    for pair in PAIRS:
        mine, others = (
            (scale * units.of_class(pair.above, [at]), units.of_class(pair.below, [at]))
            for units, scale in ((own, pair.scale), (crowd, pair.scale))
        )
        allowed = pair.tolerances * tolerance
        _compare(judge, pair.what, mine, others, allowed, own.replications, pair.least)


def _of_rates(
    judge: _Judge, own: Units, crowd: Units, at: int, flows: tuple[int, int], tolerance: float
) -> None:
    """Compare what flows that never end get."""
    mine, others = (
        (units.of_class("delivered", [at]), count * 1e-9 * units.link("time_ns"))
        for units, count in zip((own, crowd), flows, strict=True)
    )
    _compare(judge, "rate", mine, others, tolerance, own.replications)


def _compare(
    judge: _Judge,
    what: str,
    mine: tuple[Floats, Floats],
    others: tuple[Floats, Floats],
    tolerance: float,
    replications: int,
    least: float = 0.0,
) -> None:
    """Compare two ratios of sums; nothing where one of them was not seen.

    Both kinds of flows share the router, so what varies with time varies for both: the noise is
    that of the difference, unit by unit.
    """
    if not (mine[1].sum() and others[1].sum()):
        return
    values = [above.sum() / below.sum() for above, below in (mine, others)]
    apart = statistics.mean(_influence(*mine) - _influence(*others), replications=replications)
    scale = max(abs(values[1]), least)
    noise = math.inf if apart is None or not scale else apart.half_width / scale
    limit = max(tolerance, noise) if noise <= WIDEST_BOUND else 0.0
    judge.add(what, *values, least=least, limit=limit)


def _influence(above: Floats, below: Floats) -> Floats:
    """Return what each unit says of a ratio of sums, to first order; the mean is the ratio."""
    value = above.sum() / below.sum()
    return value + above.size * (above - value * below) / below.sum()


def _of_iteration(
    judge: _Judge, own: Units, at: int, cells: dict[str, float], table: FixedPoint
) -> None:
    """Compare what the cross flows went by with what was then measured."""
    if table.scheme == 2 and table.departures == "served":
        return
    if table.scheme == 2:
        what, name, above = "service time", "service", "service_ns"
    else:
        what, name, above = "time between packets", "gap", "on_time_ns"
    found = own.ratio(own.of_class(above, [at]), own.of_class("delivered", [at]))
    noise = 0.0 if found is None else found.relative_half_width
    limit = max(table.tolerance, noise if math.isfinite(noise) else 0.0)
    judge.add(what, cells[f"{name}_s"], cells[f"{name}_used_s"], limit=limit)
