"""Why a transfer was slow: its limit, what to change first, the gain that models predict."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tcpcast.captures.advice import LIMITS, advice, shares
from tcpcast.captures.predicted_gain import Gains, start_round_trips
from tcpcast.models.cubic import cubic_response
from tcpcast.models.parallel import limited_rate_pps
from tcpcast.models.pftk import throughput, unlimited_window_pkts

if TYPE_CHECKING:
    from tcpcast.captures import Table

PLAIN: dict[str, Any] = {
    "src": "10.0.0.1:1000",
    "tap_side": "sender",
    "data_packets": 10_000,
    "unique_bytes": 9_900_000,
    "segment_bytes": 1000,
    "retransmissions": 100,
    "timeouts": 10,
    "max_backoff": 1,
    "spurious_dsack": 0,
    "spurious_eifel": 0,
    "ecn_echoes": 0,
    "loss_indication_ratio": 0.01,
    "rtt_mean_s": 0.1,
    "rtt_min_s": 0.09,
    "rtt_lower_bound": False,
    "tap_to_sender_s": 0.0,
    "t0_s": 0.3,
    "packets_per_ack": 2.0,
    "w_max_pkts": 100.0,
    "window_max_bytes": 100_000,
    "flight_max_bytes": 20_000,
    "flight_mean_bytes": 9_000.0,
    "initial_window_pkts": 10.0,
    "throughput_bps": 600_000.0,
    "send_rate_pps": 75.0,
    "td": 90,
    "to": 10,
    "bottleneck_rate_bps": np.nan,
    "window_reduction": 0.5,
    "looks_like": "unknown",
    "window_scale": 7.0,
    "zero_windows": 0,
    "zero_window_probes": 0,
    "acks": 5_000,
    "duplicate_acks": 0,
    "missing_acks": np.nan,
    "window_updates": 0,
    "duration_s": 100.0,
    "sack": True,
    "syn_captured": True,
}
"""A direction with every column that a sentence uses."""

LOSSLESS: dict[str, Any] = {"loss_indication_ratio": 0.0, "td": 0, "to": 0, "retransmissions": 0}


def direction(limited_by: str, **columns: Any) -> Table:
    row = PLAIN | {f"share_{limit}": 0.0 for limit in LIMITS}
    row |= {f"share_{limited_by}": 1.0, "limited_by": limited_by} | columns
    return {name: np.array([value]) for name, value in row.items()}


def sentence(limited_by: str, **columns: Any) -> str:
    (said,) = advice(direction(limited_by, **columns)).tolist()
    assert said.endswith(".")
    return str(said)


def pftk(*, loss: float = 0.01, rtt: float = 0.1, t0: float = 0.3, window: float = 100.0) -> float:
    return float(
        throughput(
            rtt_s=rtt, t0_s=t0, loss_indication_ratio=loss, receiver_window_pkts=window
        ).rate_pps
    )


def kbps(text: str, before: str = "") -> float:
    """Return the rate that a sentence names, the first one behind some words."""
    found = re.search(before + r".*?([\d.,]+) ([kM])bit/s", text)
    assert found, text
    return float(found[1].replace(",", "")) * {"k": 1, "M": 1000}[found[2]]


def test_a_share_of_the_time_is_named_and_another_that_is_large() -> None:
    said = sentence("loss_recovery", share_loss_recovery=0.55, share_timeout=0.3)
    assert said.startswith("Limited by: loss recovery 55 % of the time (timeouts 30 %), one loss")
    assert "(" not in sentence("bottleneck", share_bottleneck=0.9, share_timeout=0.1)
    assert " of the time" not in sentence("bottleneck", share_bottleneck=np.nan)


def test_the_application_is_no_fault_of_the_network() -> None:
    said = sentence("application", throughput_bps=100_000.0)
    assert "The network is not the limit" in said
    assert kbps(said, "PFTK predicts") == pytest.approx(pftk() * 8, rel=0.01)
    without = sentence("application", **LOSSLESS)
    assert "No packet was lost" in without
    assert kbps(without) == pytest.approx(8 * 100_000 / 0.1 / 1000)
    slower = sentence("application", throughput_bps=100_000.0, bottleneck_rate_bps=300_000.0)
    assert kbps(slower) == 300
    assert "PFTK" not in sentence("application", throughput_bps=9e6)


def test_from_who_knows_where_an_application_only_seems_slow() -> None:
    unknown = sentence("application", tap_side="unknown")
    assert "if the tap is at the sender" in unknown
    assert "if the tap" not in sentence("application")


def test_a_receiver_s_window_should_reach_what_loss_allows() -> None:
    said = sentence(
        "receiver_window", w_max_pkts=4.0, window_max_bytes=4_000, throughput_bps=300_000.0
    )
    (needed,) = re.findall(r"to at least (\d+) KiB", said)
    least = float(unlimited_window_pkts(loss_indication_ratio=0.01)) * 1000
    assert least <= int(needed) * 1024 < least + 1024
    ratio = pftk(window=np.inf) / pftk(window=4.0)
    assert kbps(said, "\\(PFTK\\), at") == pytest.approx(300 * ratio, rel=0.01)


def test_a_receiver_s_window_should_reach_what_the_link_carries() -> None:
    link = {"bottleneck_rate_bps": 20e6, "loss_indication_ratio": 0.0}
    said = sentence("receiver_window", window_max_bytes=60_000, w_max_pkts=60.0, **link)
    assert (
        "to at least 220 KiB with SO_RCVBUF, or tcp_rmem with twice the value: then the" in said
    )  # 20e6 * 0.09 / 8
    assert "window scaling" not in said
    unscaled = sentence("receiver_window", window_scale=np.nan, **link)
    assert "this needs window scaling, which is off" in unscaled


def test_without_loss_or_link_twice_the_window_is_twice_the_rate() -> None:
    said = sentence("receiver_window", loss_indication_ratio=0.0)
    assert "twice the window gives twice the rate, 1.20 Mbit/s" in said


def test_a_window_that_is_large_enough_is_not_the_remedy() -> None:
    assert "according to PFTK, loss is the limit" in sentence("receiver_window")
    full = sentence("receiver_window", bottleneck_rate_bps=610_000.0, loss_indication_ratio=0.0)
    assert "the link carries at most 610 kbit/s" in full


def test_a_window_that_closes_is_the_reading_application_s() -> None:
    said = sentence("receiver_window", zero_windows=115, bottleneck_rate_bps=286e6)
    assert "closed 115 times. First make the receiving application read faster" in said
    assert "the link carries" not in said
    assert "0 B" not in sentence("receiver_window", window_max_bytes=0)
    open_ = sentence("receiver_window", zero_windows=1, throughput_bps=7.9e6)
    assert "read faster" not in open_  # nearly all of the window in each RTT


def test_a_window_that_is_not_announced_is_the_one_that_held() -> None:
    said = sentence("receiver_window", window_max_bytes=6_000, w_max_pkts=np.nan)
    assert "loss is the limit" not in said
    ratio = pftk(window=np.inf) / pftk(window=6.0)
    assert kbps(said, "\\(PFTK\\), at") == pytest.approx(600 * ratio, rel=0.01)


def test_a_window_that_does_not_fit_the_mean_rtt_has_no_model() -> None:
    said = sentence("receiver_window", window_max_bytes=4_000)  # 7,500 in a mean RTT
    assert said.endswith("The RTT varies too much for a prediction.")


def test_a_send_buffer_is_the_window_that_was_in_flight() -> None:
    said = sentence("send_buffer", flight_max_bytes=5_000)
    assert "SO_SNDBUF" in said
    assert kbps(said, "\\(PFTK\\), at") == pytest.approx(600 * pftk() / pftk(window=5.0), rel=0.01)


def test_a_larger_initial_window_saves_round_trips() -> None:
    assert (start_round_trips(70, 10, np.inf), start_round_trips(70, 32, np.inf)) == (3, 2)
    said = sentence("slow_start", unique_bytes=70_000)
    assert "70 packets in total, initial window 10" in said
    assert "First raise the initial window to 32:" in said
    assert "this reduces 3 round trips of 100 ms to 2;" in said
    small = sentence("slow_start", unique_bytes=70_000, initial_window_pkts=2.0)
    assert "this reduces 6 round trips of 100 ms to 3;" in small
    assert "First" not in sentence("slow_start", unique_bytes=8_000)


def test_losses_of_every_other_packet_are_no_plural_of_one() -> None:
    assert "one loss indication per 1.3 packets" in sentence(
        "congestion_window", loss_indication_ratio=0.75
    )


def test_no_factor_is_beyond_the_link() -> None:
    said = sentence("congestion_window", bottleneck_rate_bps=690_000.0)
    assert "half the loss gives 1.1 times the rate, 690 kbit/s, and half the RTT 1.1" in said
    assert "4 parallel flows give 1.1 times" in said
    assert said.endswith("(limited by the link).")


def test_a_row_held_by_the_link_does_not_change_the_next() -> None:
    rows = [
        direction("congestion_window", bottleneck_rate_bps=610_000.0),
        direction("congestion_window", bottleneck_rate_bps=690_000.0),
    ]
    both = {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}
    assert advice(both).tolist() == [advice(row)[0] for row in rows]


def test_no_initial_window_is_named_that_was_not_seen() -> None:
    said = sentence("slow_start", unique_bytes=900, initial_window_pkts=np.nan)
    assert "one packet in total. Use one connection" in said


def test_half_the_loss_half_the_rtt_and_several_flows() -> None:
    said = sentence("congestion_window")
    assert "one loss indication per 100 packets" in said
    assert kbps(said) == pytest.approx(600 * pftk(loss=0.005) / pftk(), rel=0.01)
    (near,) = re.findall(r"half the RTT ([\d.]+) times", said)
    assert float(near) == pytest.approx(pftk(rtt=0.05) / pftk(), abs=0.05)
    path: dict[str, Any] = {
        "rtt_s": 0.1,
        "t0_s": 0.3,
        "loss_event_ratio": 0.01,
        "receiver_window_pkts": 100.0,
    }
    four, one = (limited_rate_pps(flows=n, **path) for n in (4, 1))
    (many,) = re.findall(r"algorithm 1, 4 parallel flows give ([\d.]+) times", said)
    assert float(many) == pytest.approx(float(four / one), abs=0.05)


def test_several_flows_that_would_be_in_rto_are_n_times_pftk() -> None:
    said = sentence("congestion_window", loss_indication_ratio=0.08, t0_s=1.0, send_rate_pps=12.0)
    assert "n times PFTK, 4 parallel flows give 4.0 times" in said


def test_cubic_is_asked_of_its_own_distribution() -> None:
    said = sentence("congestion_window", window_reduction=0.7, rtt_mean_s=0.2)
    after, before = (
        cubic_response(rtt_s=0.2, loss_ratio=p, receiver_window_pkts=100.0).rate_pps
        for p in (0.005, 0.01)
    )
    assert "according to CUBIC's response" in said
    assert kbps(said) == pytest.approx(600 * float(after / before), rel=0.01)


def test_less_loss_gives_no_more_than_the_link() -> None:
    said = sentence("congestion_window", bottleneck_rate_bps=700_000.0)
    assert kbps(said) == 700
    full = sentence("loss_recovery", bottleneck_rate_bps=610_000.0, sack=False)
    assert "First enable SACK" in full
    assert "Less loss alone does not increase the rate: the link (610 kbit/s) is the limit" in full
    held = sentence("congestion_window", w_max_pkts=2.0)
    assert "Less loss alone does not increase the rate: the receiver's window is the limit" in held


def test_a_sender_that_a_model_does_not_describe_is_promised_nothing() -> None:
    rate = 4 * pftk()
    said = sentence("congestion_window", send_rate_pps=rate, throughput_bps=8000 * rate)
    assert "the measured rate is 4.0 times that of PFTK." in said
    assert "reduce loss" not in said
    few = sentence("congestion_window", send_rate_pps=rate, throughput_bps=8000 * rate, td=5, to=1)
    assert "No model applies to so few losses" in few


def test_bbr_is_promised_nothing_of_less_loss() -> None:
    seen = sentence("loss_recovery", looks_like="bbr", bottleneck_rate_bps=800_000.0)
    assert "one loss indication per 100 packets. It behaves like BBR" in seen
    assert "it uses 75 % of the link (800 kbit/s)" in seen
    unseen = sentence("congestion_window", looks_like="bbr")
    assert unseen.endswith("whose rate hardly depends on losses.")
    for said in (seen, unseen):
        assert "PFTK" not in said
        assert "reduce loss" not in said


def test_where_nothing_was_lost_no_model_of_loss_speaks() -> None:
    said = sentence("congestion_window", **LOSSLESS)
    assert "No packet was lost in the capture" in said
    assert "PFTK" not in said
    marked = sentence("congestion_window", **LOSSLESS, ecn_echoes=4)
    assert "ECN" in marked
    again = sentence("congestion_window", loss_indication_ratio=0.0)
    assert "No packet was lost" not in again
    assert "100 retransmissions" in again


@pytest.mark.parametrize(
    ("columns", "remedy"),
    [
        ({"max_backoff": 5}, "find the cause of the outage: there are up to 5 consecutive"),
        ({"spurious_eifel": 80}, "increase the RTO or use F-RTO"),
        ({"sack": False}, "enable SACK and RACK-TLP"),
        ({"t0_s": 1.0}, "reduce the RTO: RTT + 200 ms, as in Linux, would be 300 ms; then, PFTK"),
        ({"t0_s": 63.0}, "find the reason for the long RTO: no sender has such a large"),
        (
            {"flight_mean_bytes": 2_400.0},
            "use limited transmit, early retransmit or tail loss probes",
        ),
        ({}, "reduce loss"),
    ],
)
def test_remedies_of_timeouts(columns: dict[str, Any], remedy: str) -> None:
    said = sentence("timeout", **columns)
    assert f"First {remedy}" in said
    assert "10 timeouts, T0 = " in said


def test_a_shorter_timer_gives_what_pftk_says() -> None:
    said = sentence("timeout", t0_s=1.0)
    assert kbps(said) == pytest.approx(600 * pftk(t0=0.3) / pftk(t0=1.0), rel=0.01)


def test_a_full_link_and_its_queue() -> None:
    said = sentence("bottleneck", bottleneck_rate_bps=2e6, throughput_bps=1.9e6)
    assert said.endswith("at 2.00 Mbit/s. Only a faster link increases the rate.")
    bloated = sentence("bottleneck", bottleneck_rate_bps=2e6, rtt_mean_s=0.36)
    assert "The mean rate was only 600 kbit/s because of other limits" in bloated
    assert "the mean RTT to 4.0 times the minimum, 360 ms instead of 90.0 ms" in bloated
    away = sentence("bottleneck", rtt_mean_s=0.36, tap_side="middle", tap_to_sender_s=0.2)
    assert "queue" not in away, "the tap saw only a part of the RTT"


def test_what_cannot_be_told_asks_for_another_capture() -> None:
    assert "too short" in sentence("unknown", data_packets=3)
    assert "Capture at the sender" in sentence("unknown", tap_side="receiver")
    assert "share" not in sentence("unknown")


def test_without_limits_nothing_is_said() -> None:
    table = direction("timeout")
    del table["limited_by"]
    assert advice(table).tolist() == [""]


def test_every_limit_has_its_words() -> None:
    rows = [direction(limit) for limit in LIMITS]
    table = {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}
    assert shares(table).tolist() == [1.0] * len(LIMITS)
    together = advice(table).tolist()
    assert together == [sentence(limit) for limit in LIMITS], "a row does not depend on others"


def unknown(least: float, most: float) -> st.SearchStrategy[float]:
    return st.one_of(st.just(np.nan), st.floats(least, most))


ROWS = st.fixed_dictionaries(
    {
        "limited_by": st.sampled_from(list(LIMITS)),
        "tap_side": st.sampled_from(["sender", "receiver", "middle", "unknown"]),
        "data_packets": st.integers(1, 10**6),
        "unique_bytes": st.integers(0, 10**9),
        "segment_bytes": st.integers(0, 65_000),
        "retransmissions": st.integers(0, 1000),
        "timeouts": st.integers(0, 100),
        "max_backoff": st.integers(0, 9),
        "spurious_dsack": st.integers(0, 10),
        "ecn_echoes": st.integers(0, 3),
        "loss_indication_ratio": st.one_of(st.sampled_from([0.0, 1.0, np.nan]), st.floats(1e-9, 1)),
        "rtt_mean_s": unknown(1e-6, 10),
        "rtt_min_s": unknown(1e-6, 10),
        "tap_to_sender_s": unknown(0, 1),
        "t0_s": unknown(1e-3, 60),
        "packets_per_ack": unknown(0.1, 50),
        "w_max_pkts": unknown(0, 10_000),
        "window_max_bytes": st.integers(0, 10**9),
        "flight_max_bytes": st.integers(0, 10**8),
        "flight_mean_bytes": st.floats(0, 1e8),
        "initial_window_pkts": unknown(0, 100),
        "throughput_bps": unknown(1, 1e11),
        "send_rate_pps": unknown(1e-3, 1e7),
        "td": st.integers(0, 1000),
        "bottleneck_rate_bps": unknown(1, 1e11),
        "window_reduction": unknown(0, 1),
        "window_scale": unknown(0, 14),
        "sack": st.booleans(),
        "syn_captured": st.booleans(),
    }
)


@settings(max_examples=50, deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=5), st.one_of(st.just(np.nan), st.floats(0, 1)))
def test_whatever_is_measured_a_sentence_has_only_figures(
    given_rows: list[dict[str, Any]], part: float
) -> None:
    rows = [PLAIN | {f"share_{limit}": part for limit in LIMITS} | row for row in given_rows]
    table = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    for said in advice(table).tolist():
        assert said.endswith(".")
        assert not re.search(r"\b(nan|inf|NaN)\b", said), said


@given(st.floats(1e-4, 0.3), st.floats(0.01, 1.0), st.floats(1.0, 5.0), st.floats(4.0, 1000.0))
def test_no_change_gives_the_same_rate(p: float, rtt: float, b: float, window: float) -> None:
    gains = Gains.of(
        direction(
            "timeout", loss_indication_ratio=p, rtt_mean_s=rtt, packets_per_ack=b, w_max_pkts=window
        )
    )
    assert gains.pftk() == 1
    assert gains.loss_limited() == 1
    assert gains.several_flows(1)[0] == 1
    assert gains.after(gains.pftk()).tolist() == [600_000.0]


@pytest.mark.parametrize(
    ("missing", "per_ack", "seen"),
    [(531, 4.0, True), (0, 4.0, False), (531, 2.0, False), (50_000, 4.0, False)],
)
def test_a_return_path_that_loses_acks_is_named(missing: float, per_ack: float, seen: bool) -> None:
    found = {"missing_acks": missing, "packets_per_ack": per_ack, "acks": 377}
    said = sentence("congestion_window", **found, data_packets=1658, duplicate_acks=0)
    assert ("531 acks were lost before" in said) is seen
