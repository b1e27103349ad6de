"""Description of the reproduction: one section per test case, and their number of runs."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from tcpcast.process.errors import DomainError, ScenarioError
from tcpcast.scenario import Scenario

from tcpcast_papers.bbr3.cases import CASES, PATHS, Case, Path
from tcpcast_papers.bbr3.checks import CHECKS
from tcpcast_papers.bbr3.states import States
from tcpcast_papers.printed import read_lines
from tcpcast_papers.published.runs import metric_over_seeds
from tcpcast_papers.reproduction import NotSelected, Range, Row, Section, Tolerance, Verdict
from tcpcast_papers.runner import Paper
from tcpcast_papers.simulations import Runs, progress_of_run, seed_of_cell, simulate_scenario

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Callable

    from tcpcast.answer import Answer, Metric

    from tcpcast_papers.printed import Line

PACKAGE = "tcpcast_papers.bbr3"


@dataclass(frozen=True, slots=True)
class SampleSizes:
    """Numbers of seeds, and of paths of each case."""

    seeds: int
    paths: int


@dataclass(frozen=True, slots=True)
class CaseJob:
    """A test case on a path, with several seeds."""

    number: int
    path: Path
    seeds: int
    case: Case = field(compare=False)

    @property
    def weight(self) -> float:
        """Approximate number of simulated packets."""
        return self.seeds * self.case.packets(self.path)

    def run(self, progress: Callable[[float], None]) -> dict[str, Metric]:
        """Return the mean of each check over the seeds, with its interval."""
        checks = CHECKS[self.number]
        values: dict[str, list[float]] = {name: [] for name in checks}
        first_seed = seed_of_cell(str(self.number), self.path.name)
        for index in range(self.seeds):
            states = self._states(first_seed + index, progress_of_run(progress, index, self.seeds))
            for name, check in checks.items():
                try:
                    values[name].append(check(states, self.path))
                except DomainError:  # A phase is missing: no statement about it holds.
                    values[name].append(math.nan)
        return {name: metric_over_seeds(runs) for name, runs in values.items()}

    def _states(self, seed: int, progress: Callable[[float], None]) -> States:
        tables = self.case.tables(self.path)
        tables["run"]["seed"] = seed
        change = self.case.change
        if change is None:
            return States(_simulate(tables, progress))
        before = States(_simulate(tables, lambda share: progress(share / 2)))
        change_s = change(tables, self.path, before)
        return States(_simulate(tables, lambda share: progress((1 + share) / 2)), change_s)


def _simulate(tables: dict[str, Any], progress: Callable[[float], None]) -> Answer:
    answer = simulate_scenario(Scenario.from_dict(tables), progress)
    if answer.not_applicable is not None:
        raise ScenarioError(answer.not_applicable)
    return answer


class CaseRuns(Runs[SampleSizes]):
    """The simulations of all test cases."""

    def paths(self, case: Case) -> tuple[Path, ...]:
        """Return the paths of a case that these sample sizes simulate."""
        return (case.paths or PATHS)[: self.sample_sizes.paths]

    def job(self, case: Case, path: Path) -> CaseJob:
        """Return the job of a case on a path."""
        return CaseJob(case.number, path, self.sample_sizes.seeds, case)

    def request_all(self) -> None:
        """Request every case on every path, in decreasing order of work."""
        jobs = [self.job(case, path) for case in CASES for path in self.paths(case)]
        for job in sorted(jobs, key=lambda job: -job.weight):
            self.request(job)


@cache
def statements() -> dict[int, list[Line]]:
    """Return the statements of each test case."""
    lines: defaultdict[int, list[Line]] = defaultdict(list)
    for line in read_lines(PACKAGE, "test_cases.csv"):
        lines[int(line["case"])].append(line)
    return lines


def _row(runs: CaseRuns, case: Case, path: Path, line: Line, label: tuple[str, ...]) -> Row:
    metric = runs[runs.job(case, path)][line["check"]]
    expected = Range(float(line["low"] or -math.inf), float(line["high"] or math.inf))
    return Row.from_metric(label, line["unit"], expected, metric, tolerance=Tolerance())


def _case_section(runs: CaseRuns, _: pathlib.Path, case: Case) -> Section:
    lines = statements()[case.number]
    title = f"Case {case.number}. {lines[0]['title']}"
    section = runs.section(title, ("path", "statement"))
    for path in runs.paths(case):
        for line in lines:
            label = (path.name, line["statement"])
            section.rows += runs.row(label, _row, runs, case, path, line, label)
    if case.note:
        section.remarks = [case.note]
    return section


def _summary_section(runs: CaseRuns, folder: pathlib.Path) -> Section:
    section = runs.section("Summary. Test cases whose statements all hold on all paths")
    if runs.selection is not None:
        raise NotSelected
    failing = []
    for case in CASES:
        rows = _case_section(runs, folder, case).rows
        if any(row.verdict is not Verdict.AGREES for row in rows):
            failing.append(str(case.number))
    held = f"{len(CASES) - len(failing)} of {len(CASES)} test cases hold"
    section.remarks = [f"{held}; not {', '.join(failing)}." if failing else f"{held}."]
    return section


class _Sections:
    """The summary, and one section per test case."""

    @staticmethod
    def request(runs: CaseRuns) -> None:
        """Request every case."""
        runs.request_all()

    @property
    def SECTIONS(self) -> tuple[Callable[[CaseRuns, pathlib.Path], Section], ...]:  # noqa: N802
        """The sections in order."""
        return (_summary_section, *(partial(_case_section, case=case) for case in CASES))


PAPER: Paper[SampleSizes, CaseRuns] = Paper(
    package=PACKAGE,
    title="Test cases of BBR's draft",
    simulations=CaseRuns,
    whole=SampleSizes(seeds=4, paths=3),
    quick=SampleSizes(seeds=2, paths=1),
    parts=(_Sections(),),
    preface=lambda runs: [
        "The 22 example test cases in the appendix of BBR's draft (draft-ietf-ccwg-bbr, source of "
        "3 August 2026) are run with the stack `bbr3` of the packet engine. The draft tolerates 2 "
        "% in comparisons with the bandwidth; the ranges of other values also allow 2 % around the "
        "numbers in its steps.",
        f"Each value is the mean of {runs.sample_sizes.seeds} runs with different seeds, which "
        "vary the times between probes. Hosts have no noise. For a change in a phase, a first run "
        "with the same seed and without the change finds the time at which BBR enters the phase.",
    ],
)

reproduce = PAPER.reproduce
