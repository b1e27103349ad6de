"""Coverage of the packet engine's intervals, over a grid of distributions and run lengths.

Each cell is a scenario that runs many times with separate seeds. The true value is from one run
that is a few hundred times as long. For each metric and quantile the table shows how many runs had
too little data (by a stated minimum), how many of the rest were flagged, how many of the unflagged
intervals contain the true value, and their median width relative to the ideal width. The ideal
width results from the true sampling deviation, or from the range of 95 % of the estimates if that
is wider: a median between two clusters of goodputs is not normal. If most runs saw no such event,
their intervals are the bound of the rule of three, and have no ideal width.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tomllib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from tcpcast.engines import RunOptions
from tcpcast.engines.packet import packet
from tcpcast.scenario import Scenario
from tcpcast.scenario.loading import PACKAGED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from tcpcast.answer import Answer

COVERED, MAX_WIDTH, MAX_FLAGGED = 0.93, 1.3, 0.10
"""Limits for every row."""

SETTLED = 1e-3
"""A row with a relative standard deviation below this value is printed, but not judged."""

FEWEST_JUDGED = 20
"""Minimum number of unflagged runs for a coverage."""

FIRST_SEED, TRUTH_SEED = 1000, 7

LACKING = (
    "too few",
    "it rests on fewer than",
    "the run is too short: ",
    "file sizes",
    "all of it was seen",
)
"""Beginnings of the warnings that state a minimum; other warnings come from batch tests."""

IN_BATCHES = ("the run is too short: successive", "the run is too short: one batch")

COUNTS = ("td_indications", "to_indications", "timeouts", "transfers")
"""Metrics that grow with the length of the run."""


@dataclass(frozen=True)
class Cell:
    """A scenario of a distribution and a length, and the length ratio of the true run."""

    distribution: str
    length: str
    tables: dict[str, Any] = field(hash=False)
    times: int = 300

    def scenario(self, seed: int, times: int = 1) -> Scenario:
        """Return the scenario with a seed, ``times`` times as long."""
        run = self.tables["run"] | {"seed": seed}
        if times > 1:
            run["replications"] = 1
            for key in ("transfers", "duration"):
                if key in run:
                    run[key] = _times(run[key], times)
        return Scenario.from_dict(self.tables | {"run": run})


def _times(length: int | str, times: int) -> int | str:
    return length * times if isinstance(length, int) else f"{float(length[:-1]) * times:g}s"


DISTRIBUTIONS: dict[str, dict[str, Any]] = {
    "exponential": {"distribution": "exponential", "mean": "12pkt", "minimum": "3pkt"},
    "lognormal sd 2": {"distribution": "lognormal", "mean": "12pkt", "sd": "24pkt"},
    "lognormal sd 10": {"distribution": "lognormal", "mean": "12pkt", "sd": "120pkt"},
    "Pareto 1.5": {"distribution": "pareto", "mean": "12pkt", "alpha": 1.5},
}


def cells(*, quick: bool) -> Iterator[Cell]:
    """Return the grid: few to many files, light to very heavy tails, arrivals, and bulk flows."""
    lengths = (1, 10, 50, 300, 1000, 3000, 10_000)
    for distribution, size in DISTRIBUTIONS.items():
        for files in lengths if distribution == "exponential" else (300, 3000, 10_000):
            if not quick or files in {10, 300, 3000}:
                yield _web(distribution, size, files)
    for rate, load in ((30, 43), (50, 72), (60, 86)):
        for seconds in (60, 300):
            if not quick or (rate, seconds) == (50, 60):
                yield _arrivals(f"Poisson, load {load} %", rate, seconds)
    for name in ("lossy-path", "one-path"):
        for seconds, replications in ((10, 1), (60, 1), (60, 4), (300, 1)):
            if not quick or (seconds, replications) == (60, 1):
                yield _bulk(name, seconds, replications)


def _packaged(name: str) -> dict[str, Any]:
    return tomllib.loads((PACKAGED / f"{name}.toml").read_text())


def _web(distribution: str, size: dict[str, Any], files: int) -> Cell:
    tables = _packaged("web-10mbit")
    tables["traffic"]["size"] = size
    tables["run"] = {"transfers": files, "warmup": "20s"}
    return Cell(distribution, f"{files:,} files", tables, max(100, 1_000_000 // files))


def _arrivals(distribution: str, rate: int, seconds: int) -> Cell:
    tables = _packaged("web-10mbit")
    arrivals = {"distribution": "poisson", "rate": f"{rate}/s"}
    tables["traffic"] = {
        "kind": "transfers",
        "size": DISTRIBUTIONS["exponential"],
        "arrivals": arrivals,
    }
    tables["run"] = {"duration": f"{seconds}s"}
    return Cell(distribution, f"{seconds} s", tables, 30_000 // seconds)


def _bulk(name: str, seconds: int, replications: int) -> Cell:
    tables = _packaged(name)
    warmup = 20
    tables["run"] = {
        "duration": f"{warmup + seconds}s",
        "warmup": f"{warmup}s",
        "replications": replications,
    }
    many = "" if replications == 1 else f" x {replications}"
    return Cell(f"{name} (bulk)", f"{seconds} s{many}", tables, 30_000 // (warmup + seconds))


@dataclass(frozen=True)
class Figure:
    """A metric or quantile of one run: its interval, and the reason of a flag."""

    value: float
    low: float
    high: float
    interval_warning: str | None


def figures(cell: Cell, seed: int, times: int = 1) -> dict[str, Figure]:
    """Run once and return every value with an interval; counts are per second or per file."""
    answer = packet(cell.scenario(seed, times), RunOptions(threads=1))
    per = _length(answer)
    found = {}
    for name, m in answer.metrics.items():
        if m.low is None and m.interval_warning is None:
            continue
        whole = per if name in COUNTS else 1.0
        low, high = (math.nan if end is None else end / whole for end in (m.low, m.high))
        found[name] = Figure(m.value / whole, low, high, m.interval_warning)
    return found | _quantiles(answer)


def _length(answer: Answer) -> float:
    warmup = answer.warmup_s or 0.0
    if answer.metrics.get("transfers") and answer.metrics["transfers"].low is None:
        return answer.metrics["transfers"].value
    return float(answer.provenance["simulated_s"][0]) - warmup


def _quantiles(answer: Answer) -> dict[str, Figure]:
    table = answer.tables.get("file_goodput")
    if table is None:
        return {}
    rows = zip(
        *(table[name].tolist() for name in ("share", "goodput_bps", "low", "high")), strict=True
    )
    return {
        f"goodput, {share:.0%}": Figure(value, low, high, _warning_of(answer, share, low))
        for share, value, low, high in rows
    }


def _warning_of(answer: Answer, share: float, low: float) -> str | None:
    if math.isnan(low):
        return "too few files"
    everywhere = [w for w in answer.warnings if w.endswith("check every interval")]
    shares = [
        w for w in answer.warnings if "of files reach" in w and f"{share:.0%}"[:-1] + " %" in w
    ]
    return next(iter([*everywhere, *shares]), None)


@dataclass(frozen=True)
class Row:
    """Results of the runs of a cell for one metric."""

    cell: Cell
    metric: str
    runs: int
    lacking: float
    flagged: float
    covered: float
    width: float
    deviation: float

    @property
    def verdict(self) -> str:
        """Pass, fail, or the reason for no verdict."""
        if self.deviation < SETTLED:
            return "settled"
        if math.isnan(self.covered):
            return "flagged"
        # Two standard errors of the coverage: few of hundreds of rows fail by chance.
        spare = 2.0 * math.sqrt(COVERED * (1.0 - COVERED) / (self.runs * (1.0 - self.lacking)))
        fails = [
            name
            for name, bad in (
                ("coverage", self.covered < COVERED - spare),
                ("width", self.width > MAX_WIDTH),
                ("flagged", self.flagged > MAX_FLAGGED),
            )
            if bad and not (self.lacking > 0.5)
        ]
        return f"FAIL: {', '.join(fails)}" if fails else "pass"


def row(cell: Cell, metric: str, truth: float, runs: Sequence[Mapping[str, Figure]]) -> Row:
    """Summarise one metric of all runs of a cell."""
    seen = [found[metric] for found in runs if metric in found]
    lacking = [f for f in seen if _lacks(f)]
    kept = [f for f in seen if f.interval_warning is None and not math.isnan(f.low)]
    enough = len(runs) - len(lacking) - (len(runs) - len(seen))
    values = np.array([f.value for f in seen])
    deviation = float(np.nanstd(values)) if np.isfinite(values).any() else math.nan
    covered, width = math.nan, math.nan
    if len(kept) >= FEWEST_JUDGED:
        slack = 1e-9 * abs(truth)
        covered = float(np.mean([f.low - slack <= truth <= f.high + slack for f in kept]))
        if deviation > 0.0 and np.nanmedian(values) != 0.0:
            width = float(np.median([f.high - f.low for f in kept])) / _ideal_width(values)
    return Row(
        cell,
        metric,
        len(runs),
        1.0 - enough / len(runs),
        (enough - len(kept)) / enough if enough else 0.0,
        covered,
        width,
        deviation / abs(truth) if truth else (0.0 if deviation == 0.0 else math.inf),
    )


def _ideal_width(values: NDArray[np.float64]) -> float:
    """Return the width of an interval with the true variation of the estimates."""
    low, high = np.nanquantile(values, (0.025, 0.975))
    return max(2 * 1.96 * float(np.nanstd(values)), float(high - low))


def _lacks(figure: Figure) -> bool:
    doubt = figure.interval_warning or ""
    return doubt.startswith(LACKING) and not doubt.startswith(IN_BATCHES)


def rows(cell: Cell, runs: int, pool: ProcessPoolExecutor) -> list[Row]:
    """Run a cell and return a row for each metric."""
    truth = pool.submit(figures, cell, TRUTH_SEED, cell.times)
    seeds = range(FIRST_SEED, FIRST_SEED + runs)
    found = list(pool.map(figures, [cell] * runs, seeds, chunksize=10))
    names = dict.fromkeys(name for each in found for name in each)
    known = truth.result()
    return [row(cell, name, known[name].value, found) for name in names if name in known]


def print_row(line: Row) -> None:
    """Print a row as a line."""
    covered = "      -" if math.isnan(line.covered) else f"{line.covered:7.3f}"
    width = "     -" if math.isnan(line.width) else f"{line.width:6.2f}"
    print(
        f"{line.metric:28s} {line.cell.distribution:20s} {line.cell.length:12s} {line.runs:5d} "
        f"{line.lacking:7.1%} {line.flagged:7.1%} {covered} {width}  {line.verdict}",
        flush=True,
    )


def main() -> int:
    """Measure and print; return 1 if a row fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few cells of 100 runs: minutes")
    parser.add_argument("--runs", type=int, help="runs of each cell (1000; quick: 100)")
    parser.add_argument(
        "--only", default="", help="only cells whose distribution contains this text"
    )
    options = parser.parse_args()
    runs = options.runs or (100 if options.quick else 1000)
    print(
        f"limits: covered {COVERED:.0%}, width {MAX_WIDTH} of the ideal, {MAX_FLAGGED:.0%} "
        "flagged\n"
    )
    print(
        f"{'metric':28s} {'distribution':20s} {'length':12s} {'runs':>5s} {'lacking':>7s} "
        f"{'flagged':>7s} "
        f"{'covered':>7s} {'width':>6s}"
    )
    counts: dict[str, int] = {}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for cell in cells(quick=options.quick):
            if options.only in cell.distribution:
                for line in rows(cell, runs, pool):
                    print_row(line)
                    kind = line.verdict.partition(":")[0]
                    counts[kind] = counts.get(kind, 0) + 1
    print("\n" + ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items())))
    return 1 if counts.get("FAIL") else 0


if __name__ == "__main__":
    sys.exit(main())
