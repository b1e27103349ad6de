"""Transfers by aioquic over the emulated link take the simulated time."""

import pytest

from emulation.quic_peers import Cell, find_python, is_within, measure, simulate


@pytest.mark.parametrize("size", [50_000, 200_000])
def test_aioquic_takes_the_simulated_time_without_loss(size: int) -> None:
    python = find_python()
    if python is None:
        pytest.skip("needs aioquic, which AIOQUIC_PYTHON names")
    cell = Cell("100ms", "0%", size)
    times, simulated = measure(python, cell, 8), simulate(cell)
    assert is_within(cell, times, simulated, 0.1), (times, simulated)
