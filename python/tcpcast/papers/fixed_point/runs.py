"""The simulations of the reproduction: every flow, and the fixed point of the same scenario."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tcpcast.answer import Answer, Metric
from tcpcast.errors import ScenarioError, UnknownEngine
from tcpcast.papers import simulations
from tcpcast.papers.fixed_point.settings import Length, LocalLoop

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.papers.fixed_point.settings import Ftp

EXACT, FIXED_POINT = "packet", "fixed-point"

Options = tuple[tuple[str, object], ...]

SCHEMES: dict[str, Options] = {
    f"{scheme}{words}": (
        ("scheme", scheme),
        ("conditional", conditional),
        ("departures", "sampled"),
    )
    for conditional, words in ((False, ""), (True, ", conditional"))
    for scheme in (2, 1, 0)
}
"""The schemes of section 5.3, and their variants that go by the number of active flows."""

BEST = "2"
"""The scheme that stands beside every table: the paper's last word."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much to simulate.

    Attributes
    ----------
    checked
        Of settings whose figures are checked.
    varied
        Of other rules, other noise, and points of curves.
    variance
        Of Table 6, whose users are slow to forget.
    ftp
        Of the 24 flows of section 6.
    fixed_point
        Of the fixed point's reference flows, after its iterations.
    step_s
        Length of each of the iterations.
    schemes
        Keys of :data:`SCHEMES` that are tried.
    curve
        N of Figure 10.
    blocks_pkts
        n of Figure 11.
    traced_s
        How long the flow of Figure 7 is watched.
    """

    checked: Length
    varied: Length
    variance: Length
    ftp: Length
    fixed_point: Length
    step_s: int
    schemes: tuple[str, ...]
    curve: tuple[int, ...]
    blocks_pkts: tuple[int, ...]
    traced_s: float


WHOLE = Effort(
    checked=Length(1000.0, 300.0, 6),
    varied=Length(500.0, 300.0, 2),
    variance=Length(3000.0, 500.0, 4),
    ftp=Length(10_000.0, 500.0, 4),
    fixed_point=Length(500.0, 100.0, 2),
    step_s=30,
    schemes=tuple(SCHEMES),
    curve=(1000, 2500, 4000, 4500, 5000, 5500, 6000, 7500, 9000, 10_000),
    blocks_pkts=(2, 5, 10, 20, 50),
    traced_s=300.0,
)
QUICK = Effort(
    checked=Length(200.0, 120.0, 2),
    varied=Length(100.0, 100.0, 1),
    variance=Length(400.0, 100.0, 2),
    ftp=Length(1000.0, 200.0, 2),
    fixed_point=Length(150.0, 100.0, 1),
    step_s=10,
    schemes=("2", "1", "0"),
    curve=(2500, 5000, 6000, 10_000),
    blocks_pkts=(5, 20),
    traced_s=120.0,
)


@dataclass(frozen=True, slots=True)
class Job:
    """A setting, answered by an engine; equal ones are the same.

    Parameters
    ----------
    setting
        What is simulated.
    length
        For how long.
    engine
        ``"packet"`` for every flow, ``"fixed-point"`` for one and the others in its image.
    options
        Keys of the engine's own table, ``[fixed_point]``.
    """

    setting: LocalLoop | Ftp
    length: Length
    engine: str = EXACT
    options: Options = ()

    @property
    def weight(self) -> float:
        """About how many packets it takes."""
        return self.setting.packets_per_s * self.length.total_s

    def run(self, progress: Callable[[float], None]) -> Answer:
        """Simulate it; what this version cannot answer says why in ``not_applicable``."""
        tables = {"fixed_point": dict(self.options)} if self.options else {}
        try:
            scenario = self.setting.scenario(self.length, tables)
            return simulations.simulated(scenario, progress, engine=self.engine)
        except (ScenarioError, UnknownEngine) as reason:
            return Answer(self.engine, not_applicable=str(reason))


class Runs(simulations.Runs[Effort]):
    """The simulations of this paper."""

    @property
    def packets(self) -> float:
        """About how many packets all of them have."""
        return sum(job.weight for job in self.jobs)


def fixed_point(job: Job, effort: Effort, scheme: str = BEST) -> Job:
    """Return the fixed point of what a job simulates, by a key of :data:`SCHEMES`."""
    options = (*SCHEMES[scheme], ("step", f"{effort.step_s}s"))
    return replace(job, engine=FIXED_POINT, length=effort.fixed_point, options=options)


def reference_flows(found: Answer) -> Answer:
    """Return what the reference flows do, whether or not they passed for a fixed point.

    The engine gives no metrics where its tests say that the reference flows are not like the
    others. What they do is what the paper prints.
    """
    table = found.tables.get("reference_flows")
    if found.metrics or table is None:
        return found
    cells = zip(*(table[name].tolist() for name in ("metric", "value", "low", "high")), strict=True)
    metrics = {name: Metric(value, _end(low), _end(high)) for name, value, low, high in cells}
    return replace(found, metrics=metrics)


def _end(figure: float) -> float | None:
    return figure if math.isfinite(figure) else None
