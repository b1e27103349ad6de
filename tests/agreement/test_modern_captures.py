"""Captures of modern stacks with SACK and timestamps, compared with the simulator's counters."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast import _native
from tcpcast.captures import Capture
from tcpcast.engines.packet.configuration import make_configuration
from tcpcast.scenario import Scenario
from tcpcast.scenario.modern_tcp import MODERN_PRESETS

SECONDS = 120
Counted = dict[str, int]


def make_scenario(stack: str, folder: Path) -> Scenario:
    taps = [
        {"link": tap, "file": str(folder / f"{tap}.pcap"), "packets": 1_000_000}
        for tap in ("sender", "receiver")
    ]
    return Scenario.from_dict(
        {
            "network": {
                "rtt": "60ms",
                "bottleneck": {"rate": "10mbit", "buffer": "40pkt", "loss": "1%"},
            },
            "traffic": {"kind": "bulk", "flows": 2},
            "tcp": {"stack": stack},
            "run": {"duration": f"{SECONDS}s", "warmup": "0s"},
            "probes": {"pcap": taps},
        }
    )


@pytest.fixture(scope="module", params=MODERN_PRESETS)
def loop(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Counted, Capture, Capture]:
    folder = tmp_path_factory.mktemp("loop")
    scenario = make_scenario(request.param, folder)
    counted = simulate(scenario)
    sender, receiver = (tcpcast.trace(folder / f"{tap}.pcap") for tap in ("sender", "receiver"))
    return request.param, counted, sender, receiver


def simulate(scenario: Scenario) -> Counted:
    """Write the captures of a scenario, and return the simulator's counters."""
    tcpcast.run(scenario, ["packet"])
    run = _native.Simulation(make_configuration(scenario, 0.0), 1)
    run.advance(transfers=None, until_ns=SECONDS * 10**9, threads=1)
    cells = run.counters()[0][-1].tolist()[len(_native.LINK_CELLS) :]
    return dict(zip(_native.CLASS_CELLS, cells, strict=False))


def column_sum(capture: Capture, column: str) -> Any:
    return capture.connections[column].sum()


def test_packets_and_retransmissions_equal_engine_counters(
    loop: tuple[str, Counted, Capture, Capture],
) -> None:
    stack, counted, sender, _ = loop
    assert column_sum(sender, "data_packets") == counted["sent"]
    assert column_sum(sender, "retransmissions") == counted["retransmitted"] > 50
    payload = 1460 if stack == "rfc-sack" else 1448
    assert set(sender.connections["segment_bytes"]) == {payload}


def test_loss_indications_equal_engine_counters(
    loop: tuple[str, Counted, Capture, Capture],
) -> None:
    _, counted, sender, _ = loop
    assert column_sum(sender, "td") == pytest.approx(counted["fast_retransmits"], rel=0.05, abs=2)
    assert column_sum(sender, "to") == pytest.approx(counted["timeout_sequences"], rel=0.1, abs=2)
    assert column_sum(sender, "timeouts") == pytest.approx(counted["timeouts"], rel=0.1, abs=2)


def test_round_trips_are_measured_at_the_sender(
    loop: tuple[str, Counted, Capture, Capture],
) -> None:
    _, counted, sender, _ = loop
    mean = counted["rtt_sum_ns"] * 1e-9 / counted["rtt_samples"]
    assert np.mean(sender.connections["rtt_mean_s"]) == pytest.approx(mean, rel=0.1)


def test_both_taps_record_the_same_flow(loop: tuple[str, Counted, Capture, Capture]) -> None:
    _, counted, _, receiver = loop
    lost = counted["random_drops"] + counted["queue_drops"]
    arrived = column_sum(receiver, "data_packets")
    # Packets in flight at the end have not arrived.
    assert counted["sent"] - lost - 200 <= arrived <= counted["sent"] - lost


@pytest.fixture(scope="module", params=MODERN_PRESETS)
def files(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Counted, Capture]:
    """Short files, many of which lose their last packets."""
    folder = tmp_path_factory.mktemp("files")
    traffic = {
        "kind": "transfers",
        "size": ["2KB", "20000B"],
        "arrivals": {"distribution": "poisson", "rate": "10/s"},
    }
    changes = {"network.bottleneck.loss": "5%", "traffic": traffic}
    counted = simulate(make_scenario(request.param, folder).with_changes(changes))
    return request.param, counted, tcpcast.trace(folder / "sender.pcap")


def test_tail_losses_and_timeouts_of_files_equal_engine_counters(
    files: tuple[str, Counted, Capture],
) -> None:
    _, counted, capture = files
    assert column_sum(capture, "retransmissions") == counted["retransmitted"]
    # A tail loss probe may be the FIN, which the reader counts separately.
    tails = column_sum(capture, "tail_loss_probes") + column_sum(capture, "fin_retransmissions")
    assert tails == pytest.approx(counted["tail_retransmissions"], rel=0.1, abs=3)
    for column, cell in (("timeouts", "timeouts"), ("td", "fast_retransmits")):
        assert column_sum(capture, column) == pytest.approx(counted[cell], rel=0.1, abs=3), column


def test_spurious_retransmissions_equal_duplicates_at_the_receiver(
    loop: tuple[str, Counted, Capture, Capture],
) -> None:
    stack, counted, sender, _ = loop
    if stack in ("linux-reno-classic", "rfc-sack"):
        pytest.skip("without DSACK the receiver does not tell")
    reported = column_sum(sender, "spurious_dsack")
    assert reported == pytest.approx(counted["spurious_retransmissions"], rel=0.1, abs=3)
