"""Modern stacks against a real kernel over an emulated link: selected measurements.

Linux 6.18, November 2026; ``tcpcast reproduce kernel`` compares all of them. This file has single
flows over a drop-tail queue, pairs of flows, AQM, short transfers and random loss.
"""

import pytest
from tcpcast_papers.kernel.cells import packaged_cells
from tcpcast_papers.kernel.comparison import AGREES, compare_cell
from tcpcast_papers.kernel.runs import CellJob, SampleSizes

EFFORT = SampleSizes(loss_runs=6, queue_runs=3, transfers=1500)
PAIRS_EFFORT = SampleSizes(loss_runs=12, queue_runs=6, transfers=3000)
LINK = {"goodput_bps", "loss_ratio", "queue_delay_s"}
CHECKED: dict[str, tuple[SampleSizes, set[str], tuple[str, ...]]] = {
    # Single flows over a drop-tail queue.
    "F1": (
        EFFORT,
        LINK,
        (
            "cubic 20M 60ms B50",
            "cubic 20M 60ms B100",
            "cubic 20M 60ms B400",
            "cubic 100M 40ms B333",
            "reno 20M 60ms B25",
            "reno 20M 60ms B200",
            "bbr 20M 60ms B12",
            "bbr 20M 60ms B100",
        ),
    ),
    # Pairs of flows.
    "F2": (
        PAIRS_EFFORT,
        {"share"},
        (
            "cubic60+bbr60 20M B100",
            "cubic60+reno60 20M B200",
            "cubic20+cubic80 20M B25",
            "cubic20+cubic80 20M B50",
            "reno20+reno80 20M B25",
            "reno60+bbr60 20M B50",
            "bbr20+bbr80 20M B100",
        ),
    ),
    # CoDel and FQ-CoDel, with and without ECN; a mark counts as a loss.
    "F4": (
        PAIRS_EFFORT,
        LINK,
        (
            "codel drop cubic 20M 60ms B1000",
            "codel drop cubic+bbr 20M 60ms B1000",
            "codel ecn 4cubic 20M 60ms B1000",
            "codel ecn reno 20M 60ms B1000",
            "fqcodel drop 4cubic 20M 60ms B1000",
            "fqcodel drop cubic 20M 60ms B1000",
            "fqcodel ecn 4cubic 20M 60ms B1000",
            "fqcodel ecn cubic+bbr 20M 60ms B1000",
        ),
    ),
    "F5": (
        EFFORT,
        {"delivery_time_s"},
        (
            "cubic 20M 60ms p0 20segs",
            "cubic 20M 60ms p0 70segs",
            "cubic 20M 60ms p0 140segs",
            "cubic 20M 60ms p0.01 5segs",
            "cubic 20M 60ms p0.01 20segs",
            "cubic 20M 60ms p0.01 70segs",
            "cubic 20M 60ms p0.03 70segs",
            "cubic 20M 60ms p0.03 140segs",
        ),
    ),
    "F6": (
        EFFORT,
        {"goodput_bps", "loss_indications"},
        (
            "bbr 50M 120ms p0.01",
            "bbr 50M 30ms p0.05",
            "cubic 1000M 20ms p0.02",
            "cubic 1000M 150ms p0.05",
            "reno 1000M 20ms p0.005",
            "reno 1000M 20ms p0.02",
            "reno 1000M 150ms p0.05",
        ),
    ),
}
"""Runs, compared quantities and names of the cells of each series."""


@pytest.mark.parametrize(
    ("series", "name"), [(series, name) for series in CHECKED for name in CHECKED[series][2]]
)
def test_cell_agrees_with_the_kernel(series: str, name: str) -> None:
    effort, quantities, _ = CHECKED[series]
    (cell,) = (each for each in packaged_cells() if (each.series, each.name) == (series, name))
    simulated = CellJob(series, name, effort, cell).run(lambda _: None)
    lines = [line for line in compare_cell(cell, simulated) if line.name in quantities]
    assert {line.name for line in lines} == quantities
    assert [
        f"{line.name}: {line.own} beside {line.kernel}, at most {line.max_difference} apart"
        for line in lines
        if line.verdict != AGREES
    ] == []
