"""Theory values that the TCP-Engset paper prints, to their printed digits.

If a printed value contradicts the formulas, the test names the misprint and checks the value that
follows from the paper's own rule.
"""

import numpy as np
import pytest
from tcpcast.models.engset import (
    EngsetResult,
    Path,
    engset,
    flights,
    isolated_connection,
    lone_queue,
    lone_transfer,
    round_trip_s,
    spurious_timeouts,
)

SPECIAL_RTT0 = round_trip_s(propagation_s=0.3, rates_bps=(100e6, 1.5e6, 128e3), packet_bytes=576)
SPECIAL = Path(
    rtt0_s=SPECIAL_RTT0, packet_bytes=576, bottleneck_bps=1.5e6, ingress_bps=100e6, egress_bps=128e3
)


def path_of(bottleneck_mbps: float, egress_mbps: float, rtt_ms: float) -> Path:
    """The notation of the paper: (100M, 10M, 2M, R50)."""
    return Path(
        rtt0_s=rtt_ms / 1000,
        packet_bytes=1500,
        bottleneck_bps=bottleneck_mbps * 1e6,
        ingress_bps=100e6,
        egress_bps=egress_mbps * 1e6,
    )


def table6(sources: int, buffer_pkts: float = 200) -> EngsetResult:
    """100M-10M-2M, R50, WR44, F12: the setting of Tables 6, 9 and 10."""
    return engset(
        path=path_of(10, 2, 50),
        sources=sources,
        mean_off_s=1.0,
        mean_size_pkts=12,
        receiver_window_pkts=44,
        buffer_pkts=buffer_pkts,
    )


def test_flights_of_five_packets_equal_figure_6() -> None:
    """Five packets: 2 RTT0 + 2 Delta* if not saturated; 1 RTT0 + 4 Delta* if saturated."""
    loose = flights(size_pkts=5, receiver_window_pkts=44, slowest_beta=5)
    assert (loose.rounds, loose.tail_pkts) == (2, 2)
    tight = flights(size_pkts=5, receiver_window_pkts=44, slowest_beta=1.5)
    assert (tight.rounds, tight.tail_pkts) == (1, 4)
    slow = Path(rtt0_s=1.5, packet_bytes=125, bottleneck_bps=1000)
    isolated = isolated_connection(path=slow, size_pkts=5, receiver_window_pkts=44)
    # "renormalised to 3 RTT0 + 1"
    assert (isolated.queue_rounds, isolated.queue_tail_pkts) == (3, 1)


def test_spurious_timeouts_affect_files_of_54_to_106_packets() -> None:
    sizes, packets = spurious_timeouts(path=SPECIAL, largest_pkts=1000, receiver_window_pkts=44)
    assert sizes.tolist() == list(range(54, 107))
    assert (packets[0], packets[-1]) == (54, 90)
    for window in (8, 12):
        none, _ = spurious_timeouts(path=SPECIAL, largest_pkts=1000, receiver_window_pkts=window)
        assert none.size == 0


def test_rtt_above_timeout_affects_every_file() -> None:
    far = Path(rtt0_s=1.5, packet_bytes=1500, bottleneck_bps=10e6)
    sizes, packets = spurious_timeouts(path=far, largest_pkts=20, receiver_window_pkts=44)
    assert sizes.tolist() == list(range(1, 21))
    assert set(packets.tolist()) == {1}


def test_timed_packets_have_timeouts_of_rfc_6298() -> None:
    """'1' to '31' leave the timeout at its minimum; '63' raises it (section 4.2)."""
    transfer = lone_transfer(path=SPECIAL, size_pkts=300, receiver_window_pkts=44)
    raised = np.flatnonzero(transfer.rto_s > 1.1)
    assert raised[0] + 1 == 107
    rtt = transfer.acked_s - transfer.sent_s
    assert np.flatnonzero(rtt > 1.0)[0] + 1 == 54
    assert rtt[-1] == pytest.approx(44 * 0.036)


def test_lone_queue_rounds_without_saturation_follow_formula() -> None:
    """I(I + 2), an odd end, and a round in which the window is reached after I of a acks."""
    wide = Path(rtt0_s=1.0, packet_bytes=1250, bottleneck_bps=1e6)  # beta = 100
    growing = lone_queue(path=wide, size_pkts=14, mean_off_s=0, receiver_window_pkts=44)
    assert growing.rounds == (3, 8, 24)
    odd = lone_queue(path=wide, size_pkts=11, mean_off_s=0, receiver_window_pkts=44)
    assert odd.rounds == (3, 8, (2 + 1) * (2 + 2) - 1)
    reached = lone_queue(path=wide, size_pkts=100, mean_off_s=0, receiver_window_pkts=12)
    assert reached.rounds[:4] == (3, 8, 24, (8 + 1) * (4 + 1) - 1)
    assert reached.rounds[4] == 12  # the window full: one packet queued at a time
    assert reached.rounds[-1] == 100 - 14 - 7 * 12


def test_few_sources_have_peak_rate_and_no_queue() -> None:
    """For N <= s only h1 applies, the peak rate (note (a) of section 4.1)."""
    result = table6(12)
    assert not result.can_overload_link
    assert result.sharing.rate2_bps is None
    assert result.rate_bps == pytest.approx(result.isolated.rate_bps)
    assert result.utilisation == pytest.approx(result.offered_load)
    assert (result.queue_mean_pkts, result.loss_ratio) == (0.0, 0.0)
    assert result.buffer_for_loss(0.01) == 0.0
    assert result.time_above([0, 1]).tolist() == pytest.approx([result.offered_load, 0.0])
    assert table6(13).can_overload_link
