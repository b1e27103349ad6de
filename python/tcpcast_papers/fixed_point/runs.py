"""Simulations of the reproduction: of every flow, or as a fixed point."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tcpcast_papers import simulations
from tcpcast_papers.fixed_point.measures import QUANTITY_LABELS, SettingAnswers, metric_with_ends
from tcpcast_papers.fixed_point.published import printed_cell
from tcpcast_papers.fixed_point.settings import Length, LocalLoop
from tcpcast_papers.simulations import SEED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tcpcast.answer import Answer

    from tcpcast_papers.fixed_point.settings import Ftp
    from tcpcast_papers.reproduction import Row

SCHEMES: dict[str, dict[str, Any]] = {
    f"{scheme}{words}": {"scheme": scheme, "conditional": conditional}
    for conditional, words in ((False, ""), (True, ", conditional"))
    for scheme in (2, 1, 0)
}
"""The schemes of section 5.3, and their variants that use the number of active flows."""

SCHEME_1_VARIANTS: dict[str, dict[str, Any]] = {
    f"1, {rule}, {references}": {"scheme": 1, "queue_rule": rule, "references": references}
    for rule in ("delay", "cap", "fill")
    for references in (250, 20)
}
"""Three queue rules for scheme 1, each with 250 and with 20 reference flows."""

PAGE_SCHEMES = ("2", "1")
"""Two of the paper's schemes, which every table includes."""


@dataclass(frozen=True, slots=True)
class IteratedLength:
    """Iterations of a fixed point, and its measurement afterwards.

    Attributes
    ----------
    length
        Length of the measurement; the iterations replace the warm-up.
    steps, step_s
        Number and length of the iterations.
    reference_flows
        Number of reference flows, at most a tenth of all.
    """

    length: Length
    steps: int
    step_s: int
    reference_flows: int

    @property
    def total_s(self) -> float:
        """Simulated seconds of all replications."""
        once_s = self.length.measured_s + self.steps * self.step_s
        return once_s * self.length.replications

    def table(self) -> dict[str, Any]:
        """Return its part of the table ``fixed_point``."""
        return {
            "steps": self.steps,
            "step": f"{self.step_s}s",
            "references": self.reference_flows,
        }


@dataclass(frozen=True, slots=True)
class SampleSizes:
    """Sample sizes of the simulations.

    Attributes
    ----------
    checked
        For settings whose values are checked.
    varied
        For other rules, other noise, and points of curves.
    variance
        For Table 6, whose start has a long effect.
    ftp
        For the 24 flows of section 6.
    fixed_loop, fixed_ftp
        For the fixed points of the local loop, and for those of section 6.
    schemes
        Keys of :data:`SCHEMES` to simulate, including those of :data:`PAGE_SCHEMES`.
    curve
        Numbers of users N in Figure 10.
    blocks_pkts
        Block lengths n in Figure 11.
    traced_s
        Duration of the trace for Figure 7.
    seeds, scheme_tables
        Seeds of the fixed points that are compared with the tables, and keys of :data:`SCHEMES`
        by table.
    scanned
        For scans of parameters.
    """

    checked: Length
    varied: Length
    variance: Length
    ftp: Length
    fixed_loop: IteratedLength
    fixed_ftp: IteratedLength
    schemes: tuple[str, ...]
    curve: tuple[int, ...]
    blocks_pkts: tuple[int, ...]
    traced_s: float
    seeds: tuple[int, ...]
    scheme_tables: dict[int, tuple[str, ...]]
    scanned: Length


WHOLE = SampleSizes(
    checked=Length(1000.0, 300.0, 6),
    varied=Length(500.0, 300.0, 2),
    variance=Length(3000.0, 500.0, 4),
    ftp=Length(10_000.0, 500.0, 4),
    fixed_loop=IteratedLength(Length(500.0, 100.0, 1), steps=16, step_s=30, reference_flows=250),
    fixed_ftp=IteratedLength(Length(5000.0, 500.0, 4), steps=16, step_s=300, reference_flows=2),
    schemes=tuple(SCHEMES),
    curve=(1000, 2500, 4000, 4500, 5000, 5500, 6000, 7500, 9000, 10_000),
    blocks_pkts=(2, 5, 10, 20, 50),
    traced_s=300.0,
    seeds=(1, 2, 3, 4),
    scheme_tables={
        1: tuple(SCHEMES),
        2: tuple(SCHEMES),
        3: tuple(SCHEMES),
        4: ("2",),
        5: ("2",),
        6: PAGE_SCHEMES,
    },
    scanned=Length(500.0, 200.0, 2),
)
QUICK = SampleSizes(
    checked=Length(120.0, 80.0, 2),
    varied=Length(100.0, 60.0, 1),
    variance=Length(120.0, 60.0, 2),
    ftp=Length(1000.0, 200.0, 1),
    fixed_loop=IteratedLength(Length(80.0, 80.0, 1), steps=6, step_s=10, reference_flows=250),
    fixed_ftp=IteratedLength(Length(1000.0, 200.0, 2), steps=16, step_s=100, reference_flows=2),
    schemes=PAGE_SCHEMES,
    curve=(2500, 5000, 6000, 7500, 10_000),
    blocks_pkts=(5, 20),
    traced_s=120.0,
    seeds=(1, 2),
    scheme_tables={1: PAGE_SCHEMES, 2: PAGE_SCHEMES, 3: PAGE_SCHEMES},
    scanned=Length(60.0, 40.0, 1),
)


@dataclass(frozen=True, slots=True)
class Job:
    """One simulation of a setting: either of every flow, or as a fixed point. Equal jobs run once.

    Parameters
    ----------
    setting
        Setting to simulate.
    length
        Length of the run; for a fixed point, including its iterations.
    scheme
        A key of :data:`SCHEMES` or :data:`SCHEME_1_VARIANTS`, or "" for every flow.
    seed
        Seed of the random numbers.
    """

    setting: LocalLoop | Ftp
    length: Length | IteratedLength
    scheme: str = ""
    seed: int = SEED

    @property
    def weight(self) -> float:
        """Approximate number of packets."""
        return self.setting.packets_per_s * self.length.total_s

    def run(self, progress: Callable[[float], None]) -> Answer:
        """Run the simulation; ``not_applicable`` of the answer is the reason if unsupported."""
        if isinstance(self.length, Length):
            scenario = self.setting.scenario(self.length, {})
            return simulations.simulate_scenario(scenario, progress)
        table = self.length.table() | (SCHEMES | SCHEME_1_VARIANTS)[self.scheme]
        scenario = self.setting.scenario(self.length.length, {"fixed_point": table})
        scenario = scenario.with_changes({"run.seed": self.seed})
        return simulations.simulate_scenario(scenario, progress, engine="fixed-point")


class Runs(simulations.Runs[SampleSizes]):
    """The simulations of this paper."""


def fixed_point_job(job: Job, sample_sizes: SampleSizes, scheme: str) -> Job:
    """Return the job of the fixed point of a job's setting; ``scheme`` is in :data:`SCHEMES`."""
    length = (
        sample_sizes.fixed_loop if isinstance(job.setting, LocalLoop) else sample_sizes.fixed_ftp
    )
    return replace(job, length=length, scheme=scheme)


def fixed_point_answers(
    runs: Runs, job: Job, schemes: Iterable[str] = PAGE_SCHEMES
) -> dict[str, Answer]:
    """Return the fixed points of a job's setting, by the names of their columns."""
    result = {scheme: fixed_point_job(job, runs.sample_sizes, scheme) for scheme in schemes}
    return {f"scheme {scheme}": reference_flows(runs[each]) for scheme, each in result.items()}


def reference_flows(result: Answer) -> Answer:
    """Return the results of the reference flows, whether or not they passed the tests.

    If a test fails, the engine's metrics have no intervals. The paper prints the results of the
    reference flows with or without a fixed point.
    """
    table = result.tables.get("reference_flows")
    if result.incomplete_reason is None or table is None:
        return result
    cells = zip(*(table[name].tolist() for name in ("metric", "value", "low", "high")), strict=True)
    metrics = {name: metric_with_ends(value, low, high) for name, value, low, high in cells}
    return replace(result, metrics=metrics)


def row_of_jobs(
    runs: Runs, quantity: str, label: tuple[str, ...], place: tuple[int, int], jobs: list[Job]
) -> list[Row]:
    """Return the row of a quantity, for the table and number of users of ``place``."""
    number, sources = place

    def compute() -> Row:
        first, *rest = (runs[job] for job in jobs)
        printed = printed_cell(number, quantity, str(sources))
        answers = SettingAnswers(first, sources, others=tuple(rest))
        return answers.row(quantity, label, printed, relative=None)

    return runs.row((QUANTITY_LABELS[quantity][0], *label), compute)
