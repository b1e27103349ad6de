"""Measures the networks of ``tcpcast reproduce kernel`` with engine kernel.

``python benches/kernel_networks.py [--runs 4] [--write] [WORD ...]`` runs the cells whose name
contains a word, by default all, and prints the measured values beside simulated ones. ``--write``
replaces the lines of these cells in the packaged table. A run during which the machine was late is
repeated, up to three times. Run it as root on a quiet machine.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import os
import sys
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpcast.answer import Status
from tcpcast.engines import RunOptions, answer
from tcpcast.scenario import Scenario
from tcpcast_papers.kernel.cells import mean_over_runs
from tcpcast_papers.kernel.networks import CELLS, PACKAGE, TABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcpcast.answer import Answer
    from tcpcast_papers.kernel.networks import NetworkCell

COLUMNS = ("cell", "quantity", "unit", "mean", "half_width", "runs")
CONDITIONS = ("kernel", "date", "late_per_mille", "paused_per_mille")
MAX_ATTEMPTS = 3


def run(cell: NetworkCell, engine: str, seed: int) -> Answer:
    """Run one replication of a cell."""
    tables = cell.tables | {"name": "cell", "run": cell.tables["run"] | {"seed": seed}}
    [result] = answer(Scenario.from_dict(tables), [engine], RunOptions())
    return result


def measure(cell: NetworkCell, seed: int) -> Answer | None:
    """Measure a cell until the machine was in time; None after three attempts."""
    for _ in range(MAX_ATTEMPTS):
        result = run(cell, "kernel", seed)
        if result.not_applicable is not None:
            sys.exit(str(result.not_applicable))
        if result.metrics and result.status is Status.DONE:
            return result
        print(f"  repeated: {result.reason or result.warnings[:1]}", flush=True)
    return None


def lateness(results: list[Answer]) -> tuple[float, float]:
    """Return the shares of late packets (more than 1 ms) and of paused time, per mille."""
    late = [result.provenance["lateness_packets"] for result in results]
    packets = [sum(column) for column in zip(*late, strict=True)]
    links = [link for result in results for link in result.provenance["link"] if link]
    paused = sum(link["away_ns"] for link in links) / sum(link["elapsed_ns"] for link in links)
    return 1e3 * sum(packets[4:]) / sum(packets), 1e3 * paused


def rows_of(name: str, cell: NetworkCell, runs: int) -> Iterator[dict[str, Any]]:
    """Yield the measured values of a cell, and print them."""
    results = [each for seed in range(1, runs + 1) if (each := measure(cell, seed)) is not None]
    if not results:
        print(f"{name}: not measured; this machine was too busy")
        return
    simulated = [run(cell, "packet", seed) for seed in range(1, runs + 1)]
    late, paused = lateness(results)
    conditions = {
        "kernel": results[0].provenance["kernel"],
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "late_per_mille": f"{late:.2g}",
        "paused_per_mille": f"{paused:.2g}",
    }
    for quantity in cell.quantities:
        mean, own = (
            mean_over_runs([quantity.read(each) for each in of]) for of in (results, simulated)
        )
        verdict = abs(own.mean - mean.mean) <= quantity.allowed(mean.mean).absolute
        print(
            f"{name:34} {quantity.name:30} {quantity.unit:7} "
            f"{mean.mean:8.4g} +-{mean.half_width:<7.2g} packet "
            f"{own.mean:8.4g} +-{own.half_width:<7.2g} {'inside' if verdict else 'OUTSIDE'}",
            flush=True,
        )
        figures = {"mean": f"{mean.mean:.6g}", "half_width": f"{mean.half_width:.3g}"}
        title = {"cell": name, "quantity": quantity.name, "unit": quantity.unit, "runs": mean.runs}
        yield title | figures | conditions


def write(rows: list[dict[str, Any]]) -> None:
    """Replace the lines of the measured cells in the packaged table."""
    path = Path(str(files(PACKAGE))) / "data" / TABLE
    old = []
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            old = list(csv.DictReader(file))
    new = {row["cell"] for row in rows}
    kept = [row for row in old if row["cell"] not in new]
    order = list(CELLS)
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, (*COLUMNS, *CONDITIONS), lineterminator="\n")
        out.writeheader()
        out.writerows(sorted(kept + rows, key=lambda row: order.index(row["cell"])))


def main() -> None:
    """Measure the cells one after another."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--runs", type=int, default=4, help="runs of each cell, with other seeds")
    parser.add_argument("--write", action="store_true", help="write the packaged table")
    options = parser.parse_args()
    print(f"{os.uname().sysname} {os.uname().release}, load {os.getloadavg()[0]:.1f}")
    for name, cell in CELLS.items():
        if not options.words or any(word in name for word in options.words):
            rows = list(rows_of(name, cell, options.runs))
            if options.write and rows:
                write(rows)


if __name__ == "__main__":
    main()
