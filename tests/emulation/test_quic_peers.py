"""Transfers by implementations of QUIC over the emulated link take the simulated time."""

import pytest

from emulation.quic_peers import TOLERANCE, Cell, find_peer, is_within, measure, simulate


@pytest.mark.parametrize("name", ["aioquic", "quiche", "quinn"])
@pytest.mark.parametrize("size", [50_000, 200_000])
def test_implementation_takes_the_simulated_time_without_loss(name: str, size: int) -> None:
    peer = find_peer(name)
    if peer is None:
        pytest.skip(f"needs {name}, which `make peers` installs")
    cell = Cell("2mbit", "100ms", "50pkt", "0%", size)
    transfers, simulated = measure(peer, cell, 4), simulate(name, cell)
    assert is_within(cell, transfers, simulated, TOLERANCE[name]), (transfers, simulated)


@pytest.mark.parametrize("name", ["aioquic", "quiche", "quinn"])
def test_early_data_saves_a_round_trip(name: str) -> None:
    peer = find_peer(name)
    if peer is None:
        pytest.skip(f"needs {name}, which `make peers` installs")
    cell = Cell("10mbit", "100ms", "50pkt", "0%", 1_000)
    real, simulated = (
        [min(measure(peer, cell, 3, handshake).total_s) for handshake in ("tls13", "tls13-0rtt")],
        [simulate(name, cell, handshake).total_s for handshake in ("tls13", "tls13-0rtt")],
    )
    for full, early in (real, simulated):
        assert full - early == pytest.approx(0.1, abs=0.03)
