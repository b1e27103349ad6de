"""Theory values that the TCP-Engset paper prints, to their printed digits.

If a printed value contradicts the formulas, the test names the misprint and checks the value that
follows from the paper's own rule.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from tcpcast.errors import DomainError
from tcpcast.models.engset import (
    EngsetResult,
    Path,
    engset,
    flights,
    isolated_connection,
    lone_queue,
    lone_transfer,
    round_trip_s,
    shared_rate_bps,
    simplified_buffer_for_loss,
    spurious_timeouts,
    time_above,
    window_saturation,
)
from tcpcast_papers.engset.buffer_rule import buffer_by_second_method_pkts, engset_rule_pkts

SPECIAL_RTT0 = round_trip_s(propagation_s=0.3, rates_bps=(100e6, 1.5e6, 128e3), packet_bytes=576)
SPECIAL = Path(
    rtt0_s=SPECIAL_RTT0,
    packet_bytes=576,
    bottleneck_bps=1.5e6,
    ingress_bps=100e6,
    egress_bps=128e3,
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


# ---------------------------------------------------------------- section 3.3 and Table 2


def test_special_setting_has_printed_rtt_and_bdp() -> None:
    assert round(SPECIAL_RTT0 * 1000, 2) == 341.83
    assert round(SPECIAL.beta, 1) == 111.3
    assert round(SPECIAL.slowest_beta, 1) == 9.5
    assert round(SPECIAL.delta_s * 1000, 2) == 3.07
    assert round(SPECIAL.slowest_delta_s * 1000, 2) == 36.0


TABLE_2: dict[tuple[int, int], list[tuple[int, float, float, int]]] = {
    (2, 50): [(8, 1.00, 100, 0), (12, 0.67, 150, 5), (20, 0.40, 250, 13), (44, 0.18, 550, 37)],
    (2, 100): [(8, 2.00, 50, 0), (12, 1.33, 75, 0), (20, 0.80, 125, 5), (44, 0.36, 275, 29)],
    (10, 50): [(8, 5.13, 19.5, 0), (12, 3.42, 29.3, 0), (20, 2.05, 48.8, 0), (44, 0.93, 107, 4)],
    (10, 100): [(8, 10.38, 10, 0), (12, 6.92, 14.5, 0), (20, 4.15, 24, 0), (44, 1.89, 53, 0)],
}
"""(Mbit/s, RTT in ms): rows of WR, r, WR/beta in percent, long-run queue."""


@pytest.mark.parametrize(
    ("mbps", "rtt_ms", "delta_ms", "beta"),
    [(2, 50, 6.0, 8.3), (2, 100, 6.0, 16.7), (10, 50, 1.2, 41.7), (10, 100, 1.2, 83.3)],
)
def test_window_saturation_equals_table_2(
    mbps: int, rtt_ms: int, delta_ms: float, beta: float
) -> None:
    path = path_of(mbps, 1000, rtt_ms)
    assert path.delta_s * 1000 == pytest.approx(delta_ms)
    assert round(path.beta, 1) == beta
    for window, ratio, percent, queue in TABLE_2[mbps, rtt_ms]:
        row = window_saturation(beta=path.beta, receiver_window_pkts=window)
        assert row.ratio == pytest.approx(ratio, abs=0.005001)
        # Printed with one decimal, or none: 14.5 for 14.46, 10 for 9.6.
        assert 100 / row.ratio == pytest.approx(percent, abs=0.5)
        assert row.queue_pkts == queue
        assert row.saturated == (queue > 0)
        assert row.onset == (percent == 100)


# ---------------------------------------------------------------- section 4.2 and Table 3


@pytest.mark.parametrize(
    ("size", "window", "beta", "m_n", "sizes"),
    [
        (5, 4, 2.5, (2, 2), (2, 3)),
        (12, 4, 4.5, (4, 1), (2, 4, 4, 2)),  # WR = 4 cannot send the printed flight of 6
        (12, 8, 4.5, (3, 5), (2, 4, 6)),
        (22, 8, 8.5, (4, 7), (2, 4, 8, 8)),
        (36, 16, 16.5, (5, 5), (2, 4, 8, 16, 6)),
        (36, 8, 8.5, (6, 5), (2, 4, 8, 8, 8, 6)),
        (36, 12, 12.5, (5, 9), (2, 4, 8, 12, 10)),
        (36, 16, 9.5, (4, 21), (2, 4, 8, 22)),  # printed condition beta* = 8: 8 < beta* < 16
        (80, 32, 32.5, (6, 17), (2, 4, 8, 16, 32, 18)),
        (80, 44, 20.5, (5, 49), (2, 4, 8, 16, 50)),  # printed flight 22
        (80, 44, 9.5, (4, 65), (2, 4, 8, 66)),  # printed flight 38
        (120, 44, 44.5, (7, 13), (2, 4, 8, 16, 32, 44, 14)),
        (120, 44, 40.5, (6, 57), (2, 4, 8, 16, 32, 58)),  # printed (6, 17)
        (120, 44, 20.5, (5, 89), (2, 4, 8, 16, 90)),  # printed (6, 17)
        (120, 20, 20.5, (9, 9), (2, 4, 8, 16, 20, 20, 20, 20, 10)),
        (120, 12, 12.5, (12, 9), (2, 4, 8, *(12,) * 8, 10)),  # printed (16, 9)
        (120, 8, 8.5, (17, 1), (2, 4, *(8,) * 14, 2)),  # 17 flights as printed
    ],
)
def test_flights_equal_table_3(
    size: int, window: int, beta: float, m_n: tuple[int, int], sizes: tuple[int, ...]
) -> None:
    group = flights(size_pkts=size, receiver_window_pkts=window, slowest_beta=beta)
    assert group.sizes() == sizes
    assert (group.rounds, group.tail_pkts) == m_n
    assert sum(sizes) == size


@pytest.mark.parametrize("window", [10, 12, 44, math.inf])
def test_saturated_special_setting_equals_printed_times(window: float) -> None:
    isolated = isolated_connection(path=SPECIAL, size_pkts=347, receiver_window_pkts=window)
    assert isolated.flights.sizes() == (2, 4, 8, 333)
    assert isolated.flights.saturated
    assert (isolated.rounds, isolated.tail_pkts) == (4, 332)
    assert isolated.on_time_s * 1000 == pytest.approx(13319.3, abs=0.05)
    assert isolated.rate_bps / 1000 == pytest.approx(120.05, abs=0.005)
    assert (isolated.queue_rounds, isolated.queue_tail_pkts) == (38, 9)
    # Printed 13313.54, with RTT0 rounded to 341.83 ms.
    printed_ms = 38 * 341.83 + 9 * 36
    assert round(printed_ms, 2) == 13313.54
    renormalised = isolated.queue_rounds * SPECIAL_RTT0 + isolated.queue_tail_pkts * 0.036
    assert renormalised * 1000 == pytest.approx(13313.54, abs=38 * 0.005)


def test_unsaturated_special_setting_equals_printed_times() -> None:
    isolated = isolated_connection(path=SPECIAL, size_pkts=347, receiver_window_pkts=8)
    assert isolated.flights.sizes() == (2, 4, *(8,) * 42, 5)
    assert (isolated.rounds, isolated.tail_pkts) == (45, 4)
    # Printed 15526.35 with RTT0 = 341.83 ms; 15526.56 without the rounding.
    printed_ms = 45 * 341.83 + 4 * 36
    assert round(printed_ms, 2) == 15526.35
    assert isolated.on_time_s * 1000 == pytest.approx(15526.35, abs=45 * 0.005)
    assert isolated.rate_bps / 1000 == pytest.approx(103.0, abs=0.05)
    assert (isolated.queue_rounds, isolated.queue_tail_pkts) == (45, 4)
    onset = isolated_connection(path=SPECIAL, size_pkts=347, receiver_window_pkts=9)
    assert not onset.flights.saturated  # beta* = 9.5: only above WR = 9


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


# ---------------------------------------------------------------- section 4.4


@pytest.mark.parametrize(
    ("window", "rounds", "printed"), [(44, (3, 8, 24, 11025), 21.7), (12, (3, 8, 24, 1649), 3.3)]
)
def test_lone_queue_equals_printed_rounds_and_mean(
    window: int, rounds: tuple[int, ...], printed: float
) -> None:
    queue = lone_queue(path=SPECIAL, size_pkts=347, mean_off_s=5.0, receiver_window_pkts=window)
    assert queue.rounds == rounds
    assert round(queue.mean_pkts, 1) == printed
    assert queue.delay_s == pytest.approx(queue.mean_pkts * SPECIAL.slowest_delta_s)


def test_lone_queue_integral_equals_printed_value() -> None:
    queue = lone_queue(path=SPECIAL, size_pkts=347, mean_off_s=5.0, receiver_window_pkts=44)
    assert queue.integral == 11060
    # The printed 779.9 ms include only the fourth round, 11025 of the 11060.
    on_off_s = 13.31934 + 5
    assert 11025 * 0.036**2 / on_off_s * 1000 == pytest.approx(779.9, abs=0.1)
    assert queue.delay_s * 1000 == pytest.approx(782.4, abs=0.1)


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


def test_queue_of_one_connection_needs_an_empty_start() -> None:
    with pytest.raises(DomainError, match="initial_window_pkts"):
        lone_queue(
            path=SPECIAL,
            size_pkts=40,
            mean_off_s=5,
            receiver_window_pkts=44,
            initial_window_pkts=10,
        )
    with pytest.raises(DomainError, match="whole number"):
        lone_queue(path=SPECIAL, size_pkts=4.5, mean_off_s=5, receiver_window_pkts=44)  # type: ignore[arg-type]


# ---------------------------------------------------------------- sections 4.1, 5.4.2: Tables 6, 10


@pytest.mark.parametrize(
    ("sources", "load_percent", "rate_kbps", "loss_percent", "decimals"),
    [
        (82, 100.1, 547.8, 0.03, 2),
        (98, 119.6, 344.6, 4.91, 2),
        (115, 140.3, 219.5, 22.0, 1),
        (134, 163.5, 154.9, 38.3, 1),
    ],
)
def test_engset_equals_table_6(
    sources: int, load_percent: float, rate_kbps: float, loss_percent: float, decimals: int
) -> None:
    result = table6(sources)
    assert result.isolated.on_time_s == pytest.approx(0.180)
    assert result.isolated.servers == pytest.approx(12.5)
    assert round(100 * result.offered_load, 1) == load_percent
    assert round(result.rate_bps / 1000, 1) == rate_kbps
    assert result.loss_ratio is not None
    assert round(100 * result.loss_ratio, decimals) == loss_percent


@pytest.mark.parametrize(
    ("buffer_pkts", "loss_percent"),
    list(
        {50: 78.7, 75: 69.8, 100: 61.9, 150: 48.7, 200: 38.3, 300: 23.7, 500: 9.1, 750: 2.7}.items()
    ),
)
def test_engset_equals_table_10(buffer_pkts: int, loss_percent: float) -> None:
    result = table6(134, buffer_pkts)
    assert result.loss_ratio is not None
    assert round(100 * result.loss_ratio, 1) == loss_percent
    assert round(result.rate_bps / 1000, 1) == 154.9
    assert round(result.on_time_s * 1000, 1) == 929.6
    assert result.loss_ratio == pytest.approx(float(result.time_above(buffer_pkts)))


def test_offered_loads_equal_section_5() -> None:
    """Table 4 (F12-10M1G-R50-N80, 99.7 %) and Fig. 13 (119.6 % with 98 sources)."""
    table4 = engset(
        path=path_of(10, 1000, 50),
        sources=80,
        mean_off_s=1.0,
        mean_size_pkts=12,
        receiver_window_pkts=44,
    )
    assert round(100 * table4.offered_load, 1) == 99.7
    assert table4.loss_ratio is None


def test_shared_rate_is_peak_or_equal_share_of_link() -> None:
    result = table6(134)
    curve = shared_rate_bps(
        active=[1, 12, 13, 100], peak_bps=result.isolated.rate_bps, link_bps=10e6
    )
    assert curve == pytest.approx([800e3, 800e3, 10e6 / 13, 100e3])


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


# ---------------------------------------------------------------- section 5.4.1


def test_buffer_rule_equals_printed_values_at_10_mbps() -> None:
    """202 packets for F = 500 (R50, N = 4: 3.04 rounded up), by B = Q ln(U/L)."""
    result = engset(
        path=path_of(10, 1000, 50),
        sources=4,
        mean_off_s=1.0,
        mean_size_pkts=500,
        receiver_window_pkts=44,
    )
    assert result.isolated.queue_rounds == 16
    plain = simplified_buffer_for_loss(
        loss_ratio=0.01, queue_mean_pkts=result.queue_mean_pkts, utilisation=result.utilisation
    )
    assert float(plain) == pytest.approx(201.8, abs=0.05)
    assert result.buffer_for_loss(0.01) == pytest.approx(229.5, abs=0.05)  # eq. 13 itself


def test_buffer_rule_at_50_mbps_uses_second_method() -> None:
    """417 packets for F = 500: eq. 13 with ON2 and U2; N = 15 (14.67 rounded up)."""
    assert buffer_by_second_method_pkts(50e6, 500, 0.050) == pytest.approx(416.9, abs=0.05)
    assert engset_rule_pkts(50e6, 500, 0.050) == pytest.approx(308.8, abs=0.05)


def test_buffer_rule_inverts_the_loss() -> None:
    result = table6(98)
    for loss in (0.5, 0.0491, 0.01, 1e-6):
        assert float(result.time_above(result.buffer_for_loss(loss))) == pytest.approx(loss)
    assert result.buffer_for_loss(0.0491) == pytest.approx(200, abs=0.1)


# ---------------------------------------------------------------- domains


def test_domain_errors_name_the_argument() -> None:
    path = path_of(10, 2, 50)
    good = {"sources": 10, "mean_off_s": 1.0, "mean_size_pkts": 12, "receiver_window_pkts": 44}
    for name, bad in (
        ("sources", 0),
        ("mean_off_s", 0.0),
        ("mean_off_s", math.inf),
        ("mean_size_pkts", 0.5),
        ("receiver_window_pkts", 0),
        ("initial_window_pkts", 0),
        ("buffer_pkts", 0),
    ):
        with pytest.raises(DomainError, match=name.replace("mean_size", "size")):
            engset(path=path, **{**good, name: bad})  # type: ignore[arg-type]
    with pytest.raises(DomainError, match="rtt0_s"):
        path_of(1, 2, 10)
    with pytest.raises(DomainError, match="bottleneck_bps"):
        Path(rtt0_s=1, packet_bytes=1500, bottleneck_bps=math.inf)
    with pytest.raises(DomainError, match="egress_bps"):
        Path(rtt0_s=1, packet_bytes=1500, bottleneck_bps=1e6, egress_bps=0)
    with pytest.raises(DomainError, match="rates_bps"):
        round_trip_s(propagation_s=0, rates_bps=(0,), packet_bytes=1500)
    with pytest.raises(DomainError, match="loss_ratio"):
        table6(98).buffer_for_loss(0.0)
    with pytest.raises(DomainError, match="queue_pkts"):
        table6(98).time_above(-1)
    with pytest.raises(DomainError, match="load"):
        time_above(queue_pkts=1, queue_mean_pkts=1, load=1.5)
    with pytest.raises(DomainError, match="active"):
        shared_rate_bps(active=0, peak_bps=1, link_bps=1)
    with pytest.raises(DomainError, match="beta"):
        window_saturation(beta=0.5, receiver_window_pkts=4)
