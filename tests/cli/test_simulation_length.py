"""Duration and number of transfers in simulations of ``predict --packet``."""

import math

import pytest
from tcpcast.path.options import PathOptions, expand_points
from tcpcast.path.run_size import (
    DEFAULT_DURATION_S,
    DEFAULT_TRANSFERS,
    MAX_PACKETS,
    MIN_LOSSES,
    MIN_TRANSFERS,
    SimulatedPath,
    choose_simulated_s,
    choose_transfer_count,
)
from tcpcast.statistics import MIN_UNITS


def path(loss: float, *, stack: str = "linux-cubic", link_pps: float = math.inf) -> SimulatedPath:
    return SimulatedPath(rtt_s=0.08, loss_ratio=loss, link_pps=link_pps, flows=1, stack=stack)


@pytest.mark.parametrize("stack", ["linux-cubic", "linux-reno", "rfc-newreno"])
def test_run_is_long_enough_for_hundreds_of_losses(stack: str) -> None:
    rare = path(1e-4, stack=stack)
    seconds = choose_simulated_s(rare)
    assert seconds > DEFAULT_DURATION_S
    assert seconds * rare.send_rate_pps * rare.loss_ratio == pytest.approx(MIN_LOSSES, rel=1e-2)


def test_run_length_is_limited_by_packet_count() -> None:
    rarer = path(1e-6)
    assert choose_simulated_s(rarer) * rarer.send_rate_pps <= 1.01 * max(
        MAX_PACKETS, 0.2 * DEFAULT_DURATION_S * rarer.send_rate_pps
    )


def test_link_limited_run_has_default_duration() -> None:
    assert choose_simulated_s(path(1e-4, link_pps=1000)) == DEFAULT_DURATION_S
    assert choose_simulated_s(path(1e-4, link_pps=1000, stack="linux-bbr")) == DEFAULT_DURATION_S
    assert choose_simulated_s(path(0.01)) == DEFAULT_DURATION_S


@pytest.mark.parametrize(
    ("stack", "seconds"),
    [
        ("linux-reno", 24 * 104 * 0.2),
        ("linux-cubic", DEFAULT_DURATION_S),
        ("linux-bbr", DEFAULT_DURATION_S),
    ],
)
def test_run_is_long_enough_for_window_cycles(stack: str, seconds: float) -> None:
    """Windows of 208 packets with an RTT of 200 ms: a shorter run gives a warning for Reno."""
    link_pps = 50e6 / 12e3
    flows = SimulatedPath(
        rtt_s=0.1, loss_ratio=0, link_pps=link_pps, flows=4, stack=stack, buffer_pkts=417
    )
    assert choose_simulated_s(flows) == pytest.approx(seconds, rel=0.01)


def test_run_length_includes_buffer_option() -> None:
    options = PathOptions(rtt="100ms", rate="50mbit", flows="4", buffer="2bdp")
    (point,) = expand_points(options, None)
    assert options.path(point).buffer_pkts == 834 == 2 * 417


def test_number_of_transfers_falls_with_size() -> None:
    assert choose_transfer_count(70) == DEFAULT_TRANSFERS
    assert MIN_TRANSFERS < choose_transfer_count(400_000) < DEFAULT_TRANSFERS
    assert choose_transfer_count(1e7) == MIN_TRANSFERS >= MIN_UNITS
