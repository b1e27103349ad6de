"""Modern stacks against a real kernel over an emulated link: selected measurements.

Linux 6.18, November 2026; ``tcpcast reproduce kernel`` compares all of them. This file has single
flows over a drop-tail queue, pairs of flows, random loss and short transfers.
"""

import pytest
from tcpcast_papers.kernel.cells import Cell, packaged_cells
from tcpcast_papers.kernel.comparison import AGREES, compare_cell
from tcpcast_papers.kernel.runs import CellJob, SampleSizes

EFFORT = SampleSizes(loss_runs=6, queue_runs=3, transfers=1500)
PAIRS_EFFORT = SampleSizes(loss_runs=12, queue_runs=6, transfers=3000)

CELLS = {(cell.series, cell.name): cell for cell in packaged_cells()}

DROPTAIL = (
    "cubic 20M 60ms B50",
    "cubic 20M 60ms B100",
    "cubic 20M 60ms B400",
    "cubic 100M 40ms B333",
    "reno 20M 60ms B25",
    "reno 20M 60ms B200",
    "bbr 20M 60ms B12",
    "bbr 20M 60ms B100",
)

SHARED = (
    "cubic60+bbr60 20M B100",
    "cubic60+reno60 20M B200",
    "cubic20+cubic80 20M B25",
    "cubic20+cubic80 20M B50",
    "reno20+reno80 20M B25",
    "reno60+bbr60 20M B50",
    "bbr20+bbr80 20M B100",
)

LOSSES = (
    "bbr 50M 120ms p0.01",
    "bbr 50M 30ms p0.05",
    "cubic 1000M 20ms p0.02",
    "cubic 1000M 150ms p0.05",
    "reno 1000M 20ms p0.005",
    "reno 1000M 20ms p0.02",
    "reno 1000M 150ms p0.05",
)

TRANSFERS = (
    "cubic 20M 60ms p0 20segs",
    "cubic 20M 60ms p0 70segs",
    "cubic 20M 60ms p0 140segs",
    "cubic 20M 60ms p0.01 5segs",
    "cubic 20M 60ms p0.01 20segs",
    "cubic 20M 60ms p0.01 70segs",
    "cubic 20M 60ms p0.03 70segs",
    "cubic 20M 60ms p0.03 140segs",
)


def find_differences(cell: Cell, effort: SampleSizes, quantities: set[str]) -> list[str]:
    """Return the quantities of a cell that differ by more than the tolerance."""
    replied = CellJob(cell.series, cell.name, effort, cell).run(lambda _: None)
    lines = [line for line in compare_cell(cell, replied) if line.name in quantities]
    assert {line.name for line in lines} == quantities
    return [
        f"{line.name}: {line.own} beside {line.kernel}, at most {line.max_difference} apart"
        for line in lines
        if line.verdict != AGREES
    ]


@pytest.mark.parametrize("name", DROPTAIL)
def test_single_flow_over_a_drop_tail_queue_agrees(name: str) -> None:
    cell = CELLS["F1", name]
    assert not find_differences(cell, EFFORT, {"goodput_bps", "loss_ratio", "queue_delay_s"})


@pytest.mark.parametrize("name", SHARED)
def test_two_flows_over_a_drop_tail_queue_agree(name: str) -> None:
    assert not find_differences(CELLS["F2", name], PAIRS_EFFORT, {"share"})


@pytest.mark.parametrize("name", LOSSES)
def test_single_flow_under_random_loss_agrees(name: str) -> None:
    cell = CELLS["F6", name]
    assert not find_differences(cell, EFFORT, {"goodput_bps", "loss_indications"})


@pytest.mark.parametrize("name", TRANSFERS)
def test_short_transfers_agree(name: str) -> None:
    assert not find_differences(CELLS["F5", name], EFFORT, {"delivery_time_s"})
