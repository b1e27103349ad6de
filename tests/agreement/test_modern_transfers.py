"""Short transfers of Linux: the formula against the simulation for losses, paths and sizes."""

from typing import Any

import numpy as np
import pytest
import tcpcast
from tcpcast.engines.stack_support import SupportLevel, get_stack_support
from tcpcast.scenario import Scenario

# RTT, loss, link, sizes in packets, maximum and minimum relative error of the formula.
POINTS: list[tuple[str, str, str, list[int], tuple[float, float]]] = [
    ("100ms", "1%", "100mbit", [5, 20, 70, 200], (-0.08, 0.08)),
    ("20ms", "1%", "100mbit", [5, 20, 70, 200], (-0.10, 0.03)),
    ("100ms", "0.1%", "1gbit", [20, 100, 700], (-0.04, 0.04)),
    ("200ms", "3%", "50mbit", [3, 10, 30, 60], (-0.08, 0.15)),
    ("50ms", "5%", "100mbit", [1, 10, 30], (-0.07, 0.16)),
    ("60ms", "0.01%", "1gbit", [1000, 7000], (-0.09, 0.07)),
]
LOSSLESS = [
    ("100ms", "100mbit", [1, 10, 11, 100, 1000, 7000]),
    ("20ms", "20mbit", [10, 100, 1000]),
    ("30ms", "1gbit", [10_000]),
]


def make_scenario(rtt: str, rate: str, sizes: list[int], loss: str = "0%", **tcp: Any) -> Scenario:
    count = 1 if loss == "0%" else 1000 if max(sizes) < 1000 else 320
    return Scenario.from_dict(
        {
            "network": {"rtt": rtt, "bottleneck": {"rate": rate, "buffer": "1bdp", "loss": loss}},
            "traffic": {"kind": "transfers", "size": [f"{n}pkt" for n in sizes], "count": count},
            "tcp": {"stack": "linux-cubic", **tcp},
            "run": {},
        }
    )


def times(scenario: Scenario) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the times by the formula and by the simulation for each size."""
    short, packet = tcpcast.run(scenario, ["short", "packet"])
    assert short.metrics["completion_time_s"].trusted
    result = (np.asarray(a.tables["by_size"]["completion_time_s"]) for a in (short, packet))
    return next(result), next(result)


@pytest.mark.parametrize(("rtt", "loss", "rate", "sizes", "error"), POINTS)
def test_linux_transfers_with_losses_agree(
    rtt: str, loss: str, rate: str, sizes: list[int], error: tuple[float, float]
) -> None:
    short, packet = times(make_scenario(rtt, rate, sizes, loss))
    relative = short / packet - 1
    assert relative.min() > error[0], relative
    assert relative.max() < error[1], relative


@pytest.mark.parametrize(("rtt", "rate", "sizes"), LOSSLESS)
def test_linux_transfers_without_loss_are_exact(rtt: str, rate: str, sizes: list[int]) -> None:
    short, packet = times(make_scenario(rtt, rate, sizes))
    # The last ack may be delayed, and HyStart leaves slow start before the link is full.
    assert short == pytest.approx(packet, rel=0.02, abs=0.001)


def test_time_since_the_syn_has_one_round_trip_more() -> None:
    scenario = make_scenario("100ms", "100mbit", [10, 100], "1%")
    short, packet = tcpcast.run(scenario, ["short", "packet"])
    assert short["total_time_s"] == pytest.approx(packet["total_time_s"], rel=0.05)
    # A lost SYN-ACK is retransmitted after 1 s, 2 s, ...: twice as long each time.
    handshake_s = short["total_time_s"] - short["completion_time_s"]
    assert handshake_s == pytest.approx(0.1 + 0.01 / (1 - 2 * 0.01), rel=1e-6)
    (without_handshake,) = tcpcast.run(
        make_scenario("100ms", "100mbit", [10], handshake="none"), ["short"]
    )
    assert "total_time_s" not in without_handshake.metrics


def test_table_of_engines_and_stacks_contains_the_error() -> None:
    for stack in ("linux-cubic", "linux-reno"):
        assert get_stack_support("short", stack).level is SupportLevel.STATED_ERROR
    for stack in ("linux-bbr", "dctcp"):
        assert get_stack_support("short", stack).level is SupportLevel.REFUSED
    assert get_stack_support("cardwell", "linux-cubic").level is SupportLevel.REFUSED


def test_moderate_losses_are_within_the_domain() -> None:
    """Up to the long-term goodput, the formula is more accurate than slow start alone."""
    scenario = make_scenario("40ms", "50mbit", [600, 1400], "0.5%")
    short, packet = times(scenario.with_changes({"traffic.count": 300}))
    assert np.abs(short / packet - 1).max() < 0.25, short / packet


def test_many_losses_are_outside_the_domain() -> None:
    (short,) = tcpcast.run(make_scenario("60ms", "20mbit", [3000], "1%"), ["short"])
    assert not short.metrics["completion_time_s"].trusted
    assert "30 losses per transfer with SACK, but the limit is 8" in short.warnings[0]
