"""Networks of the kernel's measurements: every cell is a scenario with measured values."""

import pytest
from tcpcast.engines.kernel.config import raise_if_unsupported
from tcpcast.scenario import Scenario
from tcpcast_papers.kernel.networks import CELLS, NETWORKS


@pytest.mark.parametrize("name", CELLS)
def test_cell_can_be_simulated_and_measured(name: str) -> None:
    scenario = Scenario.from_dict(CELLS[name].tables)
    raise_if_unsupported(scenario)
    assert scenario.run.duration_s


def test_every_quantity_of_a_measured_cell_has_a_value() -> None:
    cells = {cell.label[0]: cell for cell in NETWORKS.read(())}
    assert cells.keys() <= CELLS.keys()
    for name, cell in cells.items():
        assert [v.quantity for v in cell.values] == [q.name for q in CELLS[name].quantities]
        assert all(value.measured > 0 for value in cell.values)
