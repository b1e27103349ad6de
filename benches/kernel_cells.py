"""Recorded cells of the kernel, repeated under the same conditions by engine kernel.

``python benches/kernel_cells.py [--seconds 20] [--minutes 10] [--list] [WORD ...]`` runs the cells
whose series, name or kind contains a word; by default a set that covers stacks, queues, loss, RTT,
numbers of flows and short transfers. Quantities agree within the tolerances of ``tcpcast reproduce
kernel`` and both half-widths. Run it as root for TAP, as another user for veth.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from tcpcast.answer import Metric
from tcpcast.engines import RunOptions
from tcpcast.engines.kernel import estimate_duration_s, kernel
from tcpcast.process.errors import NotApplicable, ScenarioError
from tcpcast.scenario import Scenario
from tcpcast_papers.kernel.agreement import (
    COUNT_QUANTITIES,
    half_width,
    max_difference,
    quantity_format,
)
from tcpcast_papers.kernel.cells import LOSS, STARTUP, TRANSFERS, Cell, packaged_cells
from tcpcast_papers.kernel.comparison import AGREES, DIFFERS, Comparison, compare_cell
from tcpcast_papers.kernel.runs import CellResult, SampleSizes
from tcpcast_papers.kernel.scenarios import scenario_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcpcast.answer import Answer

CHOSEN = (
    ("D", "linux-reno-classic iw2 p0 30segs"),
    ("D", "linux-reno iw10 p0.05 30segs"),
    ("F5", "cubic 20M 60ms p0 140segs"),
    ("E", "linux-reno n20"),
    ("C2", "linux-reno-classic 60ms B100 n1"),
    ("C2", "linux-cubic 60ms B100 n5"),
    ("F1", "cubic 20M 60ms B100"),
    ("F1", "bbr 20M 60ms B50"),
    ("F2", "cubic60+bbr60 20M B100"),
    ("F2", "reno20+reno80 20M B50"),
    ("F4", "codel drop cubic 20M"),
    ("F4", "fqcodel drop 4cubic"),
    ("F4", "fqcodel ecn cubic+bbr"),
    ("A", "delack linux-reno-classic 60ms p0.01"),
    ("A", "delack linux-reno-classic 200ms p0.01"),
    ("A", "delack linux-reno-classic 20ms p0.06"),
    ("B", "1gbit linux-cubic 60ms p0.01"),
    ("B", "20mbit linux-bbr 60ms p0.01"),
    ("C1", "linux-reno-classic 60ms p0.03 n5"),
)
"""Series and words of the default set; each selects the first cell that contains them."""

UNKNOWN = "too few data"

TRANSFERS_EACH = 40
"""Number of transfers of a cell with short transfers."""


def chosen(words: Sequence[str]) -> list[Cell]:
    """Return the cells selected by words, or the default set."""
    cells = [cell for cell in packaged_cells() if cell.kind != STARTUP and not cell.unsupported]
    if words:
        return [
            cell
            for cell in cells
            if any(word in f"{cell.series} {cell.name} {cell.kind}" for word in words)
        ]
    result: list[Cell] = []
    for series, word in CHOSEN:
        same = [c for c in cells if c.series == series and word in c.name and c not in result]
        result += same[:1]
    return result


def shorter(cell: Cell, max_s: float) -> Cell:
    """Return a cell whose run is shorter, with an unchanged warm-up."""
    if cell.kind == TRANSFERS:
        return cell
    return replace(cell, duration_s=min(cell.duration_s, max_s))


def asked(cell: Cell, max_s: float) -> Scenario:
    """Return the scenario of a cell."""
    sample_sizes = SampleSizes(loss_runs=1, queue_runs=1, transfers=TRANSFERS_EACH)
    return Scenario.from_dict(
        {"name": "cell", **scenario_tables(shorter(cell, max_s), sample_sizes)}
    )


def scaled(cell: Cell, answer: Answer) -> Answer:
    """Return an answer with counts scaled to the length of the recorded run."""
    if cell.kind != LOSS:
        return answer
    longer = cell.duration_s / (answer.measured_s or cell.duration_s)
    names = ("td_indications", "to_indications", *COUNT_QUANTITIES)
    for name in names:
        result = answer.metrics.get(name)
        if result is not None:
            low, high = (None if e is None else e * longer for e in (result.low, result.high))
            answer.metrics[name] = Metric(result.value * longer, low, high)
    return answer


def repeated(cell: Cell, max_s: float) -> tuple[list[Comparison], str]:
    """Run a cell; return its quantities with the recorded ones, or the reason for none."""
    try:
        answer = kernel(asked(cell, max_s), RunOptions())
    except (NotApplicable, ScenarioError) as reason:
        return [], "; ".join(str(reason).splitlines())
    if not answer.metrics:
        return [], str(answer.incomplete_reason)
    lines = [counted(line, answer) for line in compare_cell(cell, CellResult(scaled(cell, answer)))]
    # With few transfers percentiles are not reported.
    return [line for line in lines if line.own is None or math.isfinite(line.own.value)], ""


def counted(line: Comparison, answer: Answer) -> Comparison:
    """Return the completed files as a count, because the mean size of a short run varies more."""
    files = answer.metrics.get("transfers")
    if line.name != "completions_per_s" or files is None or not answer.measured_s:
        return line
    low, high = (None if e is None else e / answer.measured_s for e in (files.low, files.high))
    own = Metric(files.value / answer.measured_s, low, high)
    return replace(line, own=own, max_difference=max_difference(line.cell, line.name, own))


def verdict(line: Comparison) -> str:
    """Return whether both agree; there is no verdict for a short run without an interval."""
    if line.own is not None and line.own.low is None and line.name != "delivery_time_p99_s":
        return UNKNOWN
    return line.verdict


def rows(cell: Cell, lines: Sequence[Comparison]) -> Iterator[str]:
    """Yield one line per quantity."""
    for line in lines:
        known = quantity_format(line.name)
        if known is None or line.own is None:
            continue
        cells = (
            line.kernel.mean,
            line.kernel.half_width,
            line.own.value,
            half_width(line.own),
        )
        figures = " ".join(f"{known.scale * value:7.4g}" for value in cells)
        difference = f"{line.ratio:6.3f}" if math.isfinite(line.ratio) else "     -"
        title = f"{known.title.removeprefix('mean ')}, {known.unit}"
        begins = f"{cell.series:2} {cell.name[:34]:34} {title[:25]:25}"
        yield f"{begins} {figures} {difference} {verdict(line)}"


def main() -> None:
    """Run the cells sequentially until the time limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--seconds", type=float, default=20.0, help="longest measurement")
    parser.add_argument("--minutes", type=float, default=10.0, help="start no cell after this time")
    parser.add_argument("--list", action="store_true", help="list the cells and their durations")
    options = parser.parse_args()
    cells = chosen(options.words)
    if options.list:
        for cell in cells:
            duration_s = estimate_duration_s(asked(cell, options.seconds))
            print(f"{cell.series:3} {cell.name:50} {duration_s:6.0f} s")
        return
    began, verdicts, late, refused = time.monotonic(), [], 0, 0
    device = "TAP" if os.access("/dev/net/tun", os.R_OK | os.W_OK) else "veth"
    print(f"{os.uname().sysname} {os.uname().release}, {device}, user {os.geteuid()}")
    print(f"{'':64}recorded  95 %     now    95 %  ratio")
    for cell in cells:
        if time.monotonic() - began > 60 * options.minutes:
            print(f"{cell.series:2} {cell.name[:34]:34} not run: time limit")
            continue
        lines, reason = repeated(cell, options.seconds)
        for row in rows(cell, lines):
            print(row)
        verdicts += [verdict(line) for line in lines]
        if reason:
            print(f"{cell.series:2} {cell.name[:34]:34} no numbers: {reason}")
            late += "late" in reason or "still" in reason
            refused += "late" not in reason and "still" not in reason
        sys.stdout.flush()
    checked = verdicts.count(AGREES) + verdicts.count(DIFFERS)
    print(
        f"{verdicts.count(AGREES)} of {checked} quantities agree; {late} cells were late on this "
        f"machine, {refused} are not supported by engine kernel"
    )


if __name__ == "__main__":
    main()
