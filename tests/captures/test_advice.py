"""Advice for slow transfers: the limit, the first change to make, and its predicted gain."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from segments import ACK, CWR, ECE, Connection, Written
from tcpcast.array_types import Table
from tcpcast.captures import trace
from tcpcast.captures.advice import REMEDIES_BY_LIMIT, advise_each_direction, share_of_main_limit
from tcpcast.captures.predicted_gain import GainPredictor
from tcpcast.models.cubic import cubic_response
from tcpcast.models.parallel import limited_rate_pps
from tcpcast.models.pftk import throughput, unlimited_window_pkts

PLAIN: dict[str, Any] = {
    "src": "10.0.0.1:1000",
    "tap_side": "sender",
    "rtt_samples": 1_000,
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
    "window_closed_s": 0.0,
    "missing_bytes": 0,
    "zero_window_probes": 0,
    "acks": 5_000,
    "duplicate_acks": 0,
    "missing_acks": np.nan,
    "window_updates": 0,
    "duration_s": 100.0,
    "sack": True,
    "syn_captured": True,
}
"""A direction with every column that the advice uses."""

LOSSLESS: dict[str, Any] = {"loss_indication_ratio": 0.0, "td": 0, "to": 0, "retransmissions": 0}


def direction(limited_by: str, **columns: Any) -> Table:
    row = PLAIN | {f"share_{limit}": 0.0 for limit in REMEDIES_BY_LIMIT}
    row |= {f"share_{limited_by}": 1.0, "limited_by": limited_by} | columns
    return {name: np.array([value]) for name, value in row.items()}


def sentence(limited_by: str, **columns: Any) -> str:
    (text,) = advise_each_direction(direction(limited_by, **columns)).tolist()
    assert text.endswith(".")
    return str(text)


def pftk(*, loss: float = 0.01, rtt: float = 0.1, t0: float = 0.3, window: float = 100.0) -> float:
    return float(
        throughput(
            rtt_s=rtt, t0_s=t0, loss_indication_ratio=loss, receiver_window_pkts=window
        ).rate_pps
    )


def kbps(text: str, before: str = "") -> float:
    """Return the first rate after ``before`` in the text."""
    match = re.search(before + r".*?([\d.,]+) ([kM])bit/s", text)
    assert match, text
    return float(match[1].replace(",", "")) * {"k": 1, "M": 1000}[match[2]]


ADVICE = """
loss_recovery share_loss_recovery=0.55 share_timeout=0.3 | Limited by loss recovery (55 % of the
    time; timeouts 30 %), with one
bottleneck share_bottleneck=0.9 share_timeout=0.1 | !timeouts
bottleneck share_bottleneck=nan | ! of the time
application tap_side=unknown | if the tap is not at the sender
application | !if the tap
receiver_window loss_indication_ratio=0 | doubling the window doubles the rate (1.20 Mbit/s)
receiver_window | according to PFTK, loss is the limit
receiver_window bottleneck_rate_bps=610000 loss_indication_ratio=0 | the link carries at most 610
    kbit/s
receiver_window zero_windows=115 bottleneck_rate_bps=2.86e+08 | the receiver window (100 % of the
    time): it was closed 115 times. The receiving |
    First make the receiving application read faster | !the link carries
receiver_window window_max_bytes=0 | !0 B
congestion_window cause=policer cause_evident=1 loss_rate_variation=0.03
    goodput_bps=17e6 tap_side=sender queue_at_loss_s=0.002
    | First raise the rate of the policer | !CAKE
congestion_window cause=policer cause_evident=1 loss_rate_variation=0.03
    goodput_bps=17e6 tap_side=sender queue_at_loss_s=0.0066
    | is short (6.60 ms), as with CoDel or CAKE |
    only a faster link increases the rate; if not, raise the rate of the policer
receiver_window zero_windows=1 throughput_bps=7.9e+06 | !read faster
receiver_window window_max_bytes=4000 | The RTT varies too much for a prediction.
slow_start unique_bytes=70000 | 70 packets in total with an initial window of 10 | First raise the
    initial window to 32 or | the larger window reduces 3 round trips of 100 ms to 2.
slow_start unique_bytes=70000 initial_window_pkts=2 | reduces 6 round trips of 100 ms to 3.
slow_start unique_bytes=8000 | !First
slow_start unique_bytes=900 initial_window_pkts=nan | one packet in total. Use one connection
congestion_window loss_indication_ratio=0.75 | one loss indication per 1.3 packets
congestion_window bottleneck_rate_bps=690000 | half the loss gives 1.1 times the rate (690 kbit/s),
    and half the RTT gives 1.1 | 4 parallel flows give 1.1 times | The link limits at least one of
    these rates.
congestion_window loss_indication_ratio=0.08 t0_s=1 send_rate_pps=12 | n times PFTK, 4 parallel
    flows give 4.0 times
loss_recovery bottleneck_rate_bps=610000 sack=False | First enable SACK | Less loss alone does not
    increase the rate: the link (610 kbit/s) is the limit
congestion_window w_max_pkts=2 | Less loss alone does not increase the rate: the receiver's window
    is the limit
congestion_window send_rate_pps=317.724 throughput_bps=2.54179e+06 | The measured rate is 4.0 times
    the rate predicted by PFTK. | !reduce loss
congestion_window send_rate_pps=317.724 throughput_bps=2.54179e+06 td=5 to=1 | No model applies,
    because the capture contains too few losses
loss_recovery looks_like=bbr bottleneck_rate_bps=800000 | one loss indication per 100 packets. The
    sender behaves like BBR | The mean rate is 75 % of the link rate (800 kbit/s) | !PFTK | !reduce
    loss
congestion_window looks_like=bbr | whose rate hardly depends on losses. | !PFTK | !reduce loss
congestion_window loss_indication_ratio=0 td=0 to=0 retransmissions=0 | No packet was lost in the
    capture | !PFTK
congestion_window loss_indication_ratio=0 td=0 to=0 retransmissions=0 ecn_echoes=4 | ECN
congestion_window loss_indication_ratio=0 | 100 retransmissions | !No packet was lost
bottleneck bottleneck_rate_bps=2e+06 throughput_bps=1.9e+06 | at 2.00 Mbit/s. Only a faster link
    increases the rate.
bottleneck bottleneck_rate_bps=2e+06 rtt_mean_s=0.36 | The mean rate was only 600 kbit/s because of
    other limits | the mean RTT to 4.0 times the minimum (360 ms instead of 90.0 ms)
bottleneck rtt_mean_s=0.36 tap_side=middle tap_to_sender_s=0.2 | !queue
unknown data_packets=3 | 3 data packets are not enough
unknown tap_side=receiver | Capture at the sender
unknown | !share
unknown retransmissions=0 unique_bytes=500 flight_max_bytes=500 data_packets=1 | The data packet was
    in flight for one round trip, so no window was a limit
unknown retransmissions=1 unique_bytes=500 flight_max_bytes=500 data_packets=1 | !one round trip
receiver_window receiver_silence_s=16 duration_s=20 cause=no_response cause_evident=True
    window_max_bytes=8760 window_last_bytes=1350 | no response in the last 16.0 s, after its window
    had shrunk from 8,760 to 1,350 | First check the receiver | !raise
receiver_window receiver_silence_s=16 duration_s=20 cause=no_response cause_evident=True
    window_max_bytes=8760 window_last_bytes=8760 | First check the path, the receiver and the
    firewalls
"""
"""Limits with changed columns, and texts that their advice contains, or lacks with ``!``."""


@pytest.mark.parametrize("row", re.sub(r"\n +", " ", ADVICE).strip().splitlines())
def test_advice_contains(row: str) -> None:
    columns, *texts = row.split(" | ")
    limit, *changes = columns.split()
    values = dict(change.split("=") for change in changes)
    kinds = PLAIN | {"cause": "", "cause_evident": True}
    typed = {name: type(kinds.get(name, 0.0))(value) for name, value in values.items()}
    if "sack" in values:
        typed["sack"] = values["sack"] == "True"
    advice = sentence(limit, **typed)
    for text in texts:
        assert (text.removeprefix("!") in advice) is not text.startswith("!"), advice


def test_application_limit_is_not_attributed_to_network() -> None:
    text = sentence("application", throughput_bps=100_000.0)
    assert "The network is not the limit" in text
    assert kbps(text, "the rate would be") == pytest.approx(pftk() * 8, rel=0.01)
    lossless = sentence("application", **LOSSLESS)
    assert "No packet was lost" in lossless
    assert kbps(lossless) == pytest.approx(8 * 100_000 / 0.1 / 1000)
    slower = sentence("application", throughput_bps=100_000.0, bottleneck_rate_bps=300_000.0)
    assert kbps(slower) == 300
    for factor, predicts in ((0.94, True), (0.96, False)):
        near = sentence("application", throughput_bps=factor * pftk() * 8000)
        assert ("(PFTK)" in near) == predicts  # a gain of less than 5 % is left out
    assert "PFTK" not in sentence("application", throughput_bps=9e6)


def test_recommended_receiver_window_covers_loss_limited_window() -> None:
    text = sentence(
        "receiver_window", w_max_pkts=4.0, window_max_bytes=4_000, throughput_bps=300_000.0
    )
    (needed,) = re.findall(r"to at least (\d+) KiB", text)
    loss_limited_bytes = float(unlimited_window_pkts(loss_indication_ratio=0.01)) * 1000
    assert loss_limited_bytes <= int(needed) * 1024 < loss_limited_bytes + 1024
    ratio = pftk(window=np.inf) / pftk(window=4.0)
    assert kbps(text, "Then the rate is") == pytest.approx(300 * ratio, rel=0.01)


def test_recommended_receiver_window_covers_link_bdp() -> None:
    link = {"bottleneck_rate_bps": 20e6, "loss_indication_ratio": 0.0}
    text = sentence("receiver_window", window_max_bytes=60_000, w_max_pkts=60.0, **link)
    assert (
        "to at least 220 KiB. Set SO_RCVBUF to the new window, or tcp_rmem to twice the new "
        "window. Then the rate is" in text
    )  # 20e6 * 0.09 / 8
    assert "window scaling" not in text
    unscaled = sentence("receiver_window", window_scale=np.nan, **link)
    assert "needs window scaling, which is off" in unscaled


def test_maximum_window_replaces_unknown_w_max() -> None:
    text = sentence("receiver_window", window_max_bytes=6_000, w_max_pkts=np.nan)
    assert "PFTK, loss is the limit" not in text
    ratio = pftk(window=np.inf) / pftk(window=6.0)
    assert kbps(text, "Then the rate is") == pytest.approx(600 * ratio, rel=0.01)


def test_send_buffer_limit_uses_maximum_flight_as_window() -> None:
    text = sentence("send_buffer", flight_max_bytes=5_000)
    assert "SO_SNDBUF" in text
    assert kbps(text, "Then the rate is") == pytest.approx(
        600 * pftk() / pftk(window=5.0), rel=0.01
    )


def test_advice_predicts_half_loss_half_rtt_and_parallel_flows() -> None:
    text = sentence("congestion_window")
    assert "one loss indication per 100 packets" in text
    assert kbps(text) == pytest.approx(600 * pftk(loss=0.005) / pftk(), rel=0.01)
    (rtt_factor,) = re.findall(r"half the RTT gives ([\d.]+) times", text)
    assert float(rtt_factor) == pytest.approx(pftk(rtt=0.05) / pftk(), abs=0.05)
    path: dict[str, Any] = {
        "rtt_s": 0.1,
        "t0_s": 0.3,
        "loss_event_ratio": 0.01,
        "receiver_window_pkts": 100.0,
    }
    four, one = (limited_rate_pps(flows=n, **path) for n in (4, 1))
    (flows_factor,) = re.findall(
        r"the model of parallel flows, 4 parallel flows give ([\d.]+) times", text
    )
    assert float(flows_factor) == pytest.approx(float(four / one), abs=0.05)


def test_cubic_gain_uses_cubic_response_function() -> None:
    text = sentence("congestion_window", window_reduction=0.7, rtt_mean_s=0.2)
    after, before = (
        cubic_response(rtt_s=0.2, loss_ratio=p, receiver_window_pkts=100.0).rate_pps
        for p in (0.005, 0.01)
    )
    assert "According to CUBIC's response" in text
    assert kbps(text) == pytest.approx(600 * float(after / before), rel=0.01)


@pytest.mark.parametrize("marks", [True, False])
def test_constant_flight_with_ecn_marks_is_not_limited_by_the_send_buffer(marks: bool) -> None:
    written = Written()
    connection = Connection(written, 50_000, away=(0, 100))
    now = connection.open(0)
    for index in range(100):
        is_marked = marks and index % 5 == 4
        for _ in range(10):
            connection.send(now, 0, ACK | (CWR if marks and index % 5 == 0 else 0), size=1460)
        now += 100
        connection.send(now, 1, ACK | (ECE if is_marked else 0))
    capture = trace(written.to_bytes())
    assert capture.connections["ecn_echoes"].tolist() == [20 if marks else 0]
    (advice,) = capture.advice().tolist()
    if marks:
        assert capture.connections["cause"].tolist() == ["congestion_window"]
        assert "No packet was lost, but a queue marked packets (ECN)" in advice
    else:
        assert capture.connections["cause"].tolist() == ["send_buffer"]


@pytest.mark.parametrize(
    ("columns", "remedy"),
    [
        ({"max_backoff": 3}, "find the cause of the outage: up to 3 consecutive"),
        ({"max_backoff": 2, "to": 5}, "find the cause of the outage: up to 2 consecutive"),
        ({"max_backoff": 2}, "reduce loss"),
        (
            {"t0_s": 17.8, "tap_side": "middle"},
            "find the cause of the outage: probably, the sender had retransmitted the same data",
        ),
        ({"spurious_eifel": 80}, "increase the RTO or use F-RTO"),
        ({"sack": False}, "enable SACK and RACK-TLP"),
        (
            {"t0_s": 1.0},
            "reduce the RTO: Linux uses RTT + 200 ms, here 300 ms. With this RTO, PFTK",
        ),
        ({"t0_s": 63.0}, "find the reason for the long RTO: no common TCP uses such"),
        (
            {"flight_mean_bytes": 2_400.0},
            "use limited transmit, early retransmit or tail loss probes",
        ),
        ({}, "reduce loss"),
    ],
)
def test_timeout_advice_depends_on_cause(columns: dict[str, Any], remedy: str) -> None:
    text = sentence("timeout", **columns)
    assert f"First {remedy}" in text
    assert "10 timeouts, mean first timeout " in text


def test_advice_is_empty_without_limits() -> None:
    table = direction("timeout")
    del table["limited_by"]
    assert advise_each_direction(table).tolist() == [""]


def test_every_limit_has_advice() -> None:
    rows = [direction(limit) for limit in REMEDIES_BY_LIMIT]
    table = {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}
    assert share_of_main_limit(table).tolist() == [1.0] * len(REMEDIES_BY_LIMIT)
    texts = advise_each_direction(table).tolist()
    assert texts == [sentence(limit) for limit in REMEDIES_BY_LIMIT], (
        "a row does not depend on others"
    )


def unknown(low: float, high: float) -> st.SearchStrategy[float]:
    return st.one_of(st.just(np.nan), st.floats(low, high))


ROWS = st.fixed_dictionaries(
    {
        "limited_by": st.sampled_from(list(REMEDIES_BY_LIMIT)),
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
def test_advice_contains_no_nan_or_infinity(given_rows: list[dict[str, Any]], share: float) -> None:
    rows = [
        PLAIN | {f"share_{limit}": share for limit in REMEDIES_BY_LIMIT} | row for row in given_rows
    ]
    table = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    for text in advise_each_direction(table).tolist():
        assert text.endswith(".")
        assert not re.search(r"\b(nan|inf|NaN)\b", text), text


@given(st.floats(1e-4, 0.3), st.floats(0.01, 1.0), st.floats(1.0, 5.0), st.floats(4.0, 1000.0))
def test_gains_are_one_without_a_change(p: float, rtt: float, b: float, window: float) -> None:
    gains = GainPredictor.from_table(
        direction(
            "timeout", loss_indication_ratio=p, rtt_mean_s=rtt, packets_per_ack=b, w_max_pkts=window
        )
    )
    assert gains.pftk_gain() == 1
    assert gains.loss_model_gain() == 1
    assert gains.parallel_flows_gain(1)[0] == 1
    assert gains.rate_after_gain_bps(gains.pftk_gain()).tolist() == [600_000.0]


@pytest.mark.parametrize(
    ("missing", "per_ack", "reported"),
    [(531, 4.0, True), (0, 4.0, False), (531, 2.0, False), (50_000, 4.0, False)],
)
def test_ack_loss_on_return_path_is_reported(
    missing: float, per_ack: float, reported: bool
) -> None:
    columns = {"missing_acks": missing, "packets_per_ack": per_ack, "acks": 377}
    text = sentence("congestion_window", **columns, data_packets=1658, duplicate_acks=0)
    assert ("531 acks were lost before" in text) is reported
