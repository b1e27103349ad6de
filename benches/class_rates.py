"""Coverage of the intervals of class rates: 12 links with two classes of different TCPs.

Each setting runs with many seeds and the default warm-up. The true values are in
``class_rates.csv``: means and standard errors of four long runs. ``--truths`` computes them again.
For each class the table shows the share of runs without an interval for the rate, the share of the
other intervals that contain the true value, and their median width relative to the ideal one, see
``benches.coverage``.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from tcpcast.engines import RunOptions
from tcpcast.engines.packet import packet
from tcpcast.scenario import Scenario

from benches.coverage import COVERED, FEWEST_JUDGED, Figure

if TYPE_CHECKING:
    from collections.abc import Sequence

TRUTHS = Path(__file__).with_suffix(".csv")

LONG_RUN = {"duration": "5000s", "warmup": "1500s"}
"""Length of each run for a true value."""

TRUTH_SEEDS = range(900, 904)
"""Seeds of the runs for true values."""

RUNS = 50
"""Runs of each setting, with seeds from 1 to this number."""


@dataclass(frozen=True)
class Setting:
    """Two classes of bulk flows on one link: ``flows`` and RTT of each, and the run."""

    flows: tuple[tuple[int, str], tuple[int, str]]
    rtts_ms: tuple[int, int]
    rate_mbit: int
    buffer_bdp: int
    duration_s: int
    replications: int = 1

    @property
    def link(self) -> str:
        """Name of the flows and the link, which determine the true value."""
        flows = " + ".join(f"{count} {stack}" for count, stack in self.flows)
        rtts = " and ".join(str(ms) for ms in dict.fromkeys(self.rtts_ms))
        return f"{flows}; {self.rate_mbit} Mbit/s; {rtts} ms; {self.buffer_bdp} BDP"

    @property
    def length(self) -> str:
        """Length of the run in words."""
        many = "" if self.replications == 1 else f" x {self.replications}"
        return f"{self.duration_s} s{many}"

    def scenario(self, run: dict[str, Any]) -> Scenario:
        """Return the scenario with a table ``run``."""
        bottleneck = {"rate": f"{self.rate_mbit}mbit", "buffer": f"{self.buffer_bdp}bdp"}
        classes = [
            {"name": name, "flows": count, "rtt": f"{ms}ms", "tcp": {"stack": f"linux-{stack}"}}
            for name, (count, stack), ms in zip("ab", self.flows, self.rtts_ms, strict=True)
        ]
        return Scenario.from_dict(
            {
                "network": {"rtt": f"{self.rtts_ms[0]}ms", "bottleneck": bottleneck},
                "traffic": {"kind": "bulk"},
                "class": classes,
                "run": run,
            }
        )


SETTINGS = (
    Setting(((1, "cubic"), (1, "bbr")), (50, 50), 20, 16, 60, 4),
    Setting(((1, "cubic"), (1, "bbr")), (50, 50), 20, 16, 200),
    Setting(((1, "cubic"), (1, "bbr")), (50, 50), 20, 1, 100),
    Setting(((1, "cubic"), (1, "bbr")), (40, 40), 10, 4, 200),
    Setting(((2, "cubic"), (2, "bbr")), (40, 40), 20, 1, 120),
    Setting(((2, "cubic"), (2, "bbr")), (40, 40), 20, 8, 200),
    Setting(((8, "cubic"), (8, "bbr")), (40, 40), 10, 2, 200),
    Setting(((7, "cubic"), (1, "bbr")), (40, 40), 20, 16, 300),
    Setting(((15, "cubic"), (1, "bbr")), (40, 40), 10, 32, 400),
    Setting(((1, "reno"), (1, "cubic")), (50, 50), 20, 4, 300),
    Setting(((2, "cubic"), (2, "cubic")), (20, 80), 20, 2, 300),
    Setting(((2, "bbr"), (2, "bbr")), (20, 80), 20, 4, 180),
)


def rates(setting: Setting, run: dict[str, Any]) -> list[Figure]:
    """Run once and return the goodput of each class in Mbit/s."""
    table = packet(setting.scenario(run), RunOptions(threads=1)).tables["by_class"]
    ends = (table["goodput_bps"], table["goodput_bps_low"], table["goodput_bps_high"])
    doubts = table.get("goodput_bps_interval_warning", np.array(["", ""]))
    return [
        Figure(1e-6 * value, 1e-6 * low, 1e-6 * high, str(doubt) or None)
        for value, low, high, doubt in zip(*ends, doubts, strict=True)
    ]


def _short(setting: Setting, seed: int) -> list[Figure]:
    run = {"duration": f"{setting.duration_s}s", "replications": setting.replications}
    return rates(setting, run | {"seed": seed})


def _long(setting: Setting, seed: int) -> list[Figure]:
    return rates(setting, LONG_RUN | {"seed": seed})


def print_truths(pool: ProcessPoolExecutor) -> None:
    """Print the table of true values: mean and standard error over long runs."""
    print("link,class,goodput_mbps,standard_error_mbps")
    for setting in {setting.link: setting for setting in SETTINGS}.values():
        result = list(pool.map(_long, [setting] * len(TRUTH_SEEDS), TRUTH_SEEDS))
        for at, name in enumerate("ab"):
            values = np.array([figures[at].value for figures in result])
            error = values.std(ddof=1) / math.sqrt(values.size)
            print(f"{setting.link},{name},{values.mean():.4f},{error:.4f}", flush=True)


def truths() -> dict[tuple[str, str], tuple[float, float]]:
    """Return the true value of each link and class with its standard error, in Mbit/s."""
    with TRUTHS.open() as file:
        return {
            (row["link"], row["class"]): (
                float(row["goodput_mbps"]),
                float(row["standard_error_mbps"]),
            )
            for row in csv.DictReader(file)
        }


@dataclass(frozen=True)
class Row:
    """Results of all runs of a setting for one class; ``covered`` is None with too few runs."""

    setting: Setting
    name: str
    runs: int
    kept: int
    covered: float | None
    width: float

    @property
    def fails(self) -> bool:
        """Whether the coverage is too low by more than two standard errors."""
        if self.covered is None:
            return False
        return self.covered < COVERED - 2.0 * math.sqrt(COVERED * (1.0 - COVERED) / self.kept)


def row(setting: Setting, name: str, truth: float, seen: Sequence[Figure]) -> Row:
    """Summarise one class of a setting."""
    kept = [f for f in seen if f.interval_warning is None and not math.isnan(f.low)]
    if len(kept) < FEWEST_JUDGED:
        return Row(setting, name, len(seen), len(kept), None, math.nan)
    covered = float(np.mean([f.low <= truth <= f.high for f in kept]))
    ideal = 2 * 1.96 * float(np.std([f.value for f in seen]))
    width = float(np.median([f.high - f.low for f in kept])) / ideal
    return Row(setting, name, len(seen), len(kept), covered, width)


def rows(setting: Setting, runs: int, pool: ProcessPoolExecutor) -> list[Row]:
    """Run a setting and return a row for each class."""
    known = truths()
    result = list(pool.map(_short, [setting] * runs, range(1, runs + 1)))
    return [
        row(setting, name, known[setting.link, name][0], [figures[at] for figures in result])
        for at, name in enumerate("ab")
    ]


def print_row(line: Row) -> None:
    """Print a row of a Markdown table."""
    truth, error = truths()[line.setting.link, line.name]
    withheld = 1.0 - line.kept / line.runs
    covered = "-" if line.covered is None else f"{line.covered:.2f}"
    width = "-" if math.isnan(line.width) else f"{line.width:.2f}"
    cells = (line.setting.link, line.setting.length, line.name, f"{truth:.3f} ± {error:.3f}")
    verdict = (" FAIL",) if line.fails else ()
    print("|", " | ".join((*cells, f"{withheld:.0%}", covered, width)), "|", *verdict, flush=True)


def main() -> int:
    """Measure and print; return 1 if the coverage of a row is too low."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--truths", action="store_true", help="print class_rates.csv: minutes")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"runs of each setting ({RUNS})")
    parser.add_argument("--workers", type=int, default=2, help="processes (2)")
    options = parser.parse_args()
    failed = False
    with ProcessPoolExecutor(options.workers) as pool:
        if options.truths:
            print_truths(pool)
            return 0
        print("| flows, link, RTT, buffer | run | class | Mbit/s | no interval | covered | width |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for setting in SETTINGS:
            for line in rows(setting, options.runs, pool):
                print_row(line)
                failed = failed or line.fails
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
