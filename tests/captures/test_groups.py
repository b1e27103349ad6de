"""Groups of flows: membership, activity at the same time, and losses."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tcpcast.array_types import Table
from tcpcast.captures.groups import group_directions, have_many_flows_in_rto, host_address
from tcpcast.models.parallel import (
    cumulative_throughput,
    multiplied_pftk_rate_pps,
    parallel_throughput,
)
from tcpcast.process.errors import DomainError
from tcpcast.report.text import print_parts
from tcpcast.report.trace import group_parts

MS = 1_000_000


def flows(count: int, **columns: Any) -> Table:
    """Return flows of 1000 packets in 10 s with ten losses each; ``columns`` override values."""
    plain: dict[str, Any] = {
        "src": [f"10.0.0.1:{1000 + index}" for index in range(count)],
        "dst": ["10.0.0.2:80"] * count,
        "start_s": [0.0] * count,
        "duration_s": [10.0] * count,
        "data_packets": [1000] * count,
        "segment_bytes": [1000] * count,
        "super_segments": [0] * count,
        "bytes": [1_000_000] * count,
        "unique_bytes": [990_000] * count,
        "retransmissions": [10] * count,
        "td": [8] * count,
        "to": [2] * count,
        "timeouts": [2] * count,
        "rtt_mean_s": [0.1] * count,
        "t0_s": [0.4] * count,
        "packets_per_ack": [2.0] * count,
        "window_grows_by": ["unknown"] * count,
        "acks": [500] * count,
        "w_max_pkts": [40.0] * count,
    }
    table = {name: np.array(column) for name, column in (plain | columns).items()}
    table["start"] = (table.pop("start_s") * 1e9).astype(np.int64).view("datetime64[ns]")
    return table


def indications(directions: Sequence[int], at_ms: Sequence[float]) -> Table:
    times = np.array([round(time_ms * MS) for time_ms in at_ms], dtype=np.int64)
    return {"direction": np.array(directions, dtype=np.int64), "time": times.view("datetime64[ns]")}


NONE = indications([], [])


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("all", {("*", "*"): 4}),
        ("pair", {("a", "x"): 2, ("a", "y"): 1, ("fd00::1", "x"): 1}),
        ("source", {("a", "*"): 3, ("fd00::1", "*"): 1}),
        ("destination", {("*", "x"): 3, ("*", "y"): 1}),
    ],
)
def test_flows_are_grouped_by_host(by: str, expected: dict[tuple[str, str], int]) -> None:
    table = flows(4, src=["a:1", "a:2", "a:3", "[fd00::1]:4"], dst=["x:80", "x:81", "y:80", "x:80"])
    table = group_directions(table, NONE, by=by)
    ends = zip(table["src"].tolist(), table["dst"].tolist(), strict=True)
    assert dict(zip(ends, table["flows"].tolist(), strict=True)) == expected
    assert table["packets_sent"].sum() == 4000


def test_host_is_the_address_without_port() -> None:
    assert host_address("10.0.0.1:80") == "10.0.0.1"
    assert host_address("[fd00::1]:80") == "fd00::1"


@pytest.mark.parametrize(
    ("starts", "lasting", "active", "mean_parallel", "max_parallel"),
    [
        ([0, 0], [10, 10], 10, 2.0, 2),
        ([0, 10], [10, 10], 20, 1.0, 1),  # consecutive: not parallel
        ([0, 30], [10, 10], 20, 1.0, 1),  # the gap does not count
        ([0, 5], [10, 10], 15, 4 / 3, 2),
        ([0, 2], [10, 1], 10, 1.1, 2),
        ([2, 0, 4], [1, 10, 20], 24, 31 / 24, 2),
    ],
)
def test_only_simultaneous_flows_are_parallel(
    starts: list[float],
    lasting: list[float],
    active: float,
    mean_parallel: float,
    max_parallel: int,
) -> None:
    count = len(starts)
    table = flows(count, start_s=np.array(starts, float), duration_s=np.array(lasting, float))
    (row,) = [{name: column[0] for name, column in group_directions(table, NONE, by="all").items()}]
    assert row["active_s"] == pytest.approx(active)
    assert row["parallel_flows"] == pytest.approx(mean_parallel)
    assert row["parallel_flows_max"] == max_parallel
    assert row["send_rate_pps"] == pytest.approx(1000 * count / active)
    assert row["goodput_bps"] == pytest.approx(8 * 990_000 * count / active)


def test_losses_of_all_flows_within_one_rtt_are_one_event() -> None:
    table = flows(3, td=[2, 1, 1], to=[0, 0, 1])
    # 104 and 109 are within 10 ms of 100; 110 and 119.9 form a second event.
    lost = indications([0, 1, 2, 0, 2], [100, 104, 109, 110, 119.9])
    result = group_directions(table, lost, by="all", rtt_s=0.010)
    assert result["loss_events"].tolist() == [2]
    assert result["loss_event_ratio_cumulative"].tolist() == [2 / 3000]
    assert result["loss_indication_ratio"].tolist() == [5 / 3000]
    assert group_directions(table, lost, by="all")["loss_events"].tolist() == [1], "RTT of 100 ms"


def test_groups_count_loss_events_separately() -> None:
    table = flows(2, src=["a:1", "b:1"], td=[1, 1], to=[0, 0])
    lost = indications([0, 1], [100, 101])
    assert group_directions(table, lost, by="pair", rtt_s=1.0)["loss_events"].tolist() == [1, 1]
    assert group_directions(table, lost, by="all", rtt_s=1.0)["loss_events"].tolist() == [1]


def test_loss_events_are_unknown_if_losses_were_not_all_kept() -> None:
    table = flows(2, src=["a:1", "b:1"], td=[2, 1], to=[0, 0])
    result = group_directions(table, indications([0, 1], [100, 101]), by="pair")
    assert np.isnan(result["loss_event_ratio_cumulative"]).tolist() == [True, False]
    assert np.isnan(result["parallel_cumulative_pps"]).tolist() == [True, False]


def test_lost_packets_are_counted_or_estimated() -> None:
    table = flows(2)
    estimated = group_directions(table, NONE, by="all")
    assert np.isnan(estimated["loss_ratio"]).all()
    assert estimated["loss_ratio_estimate"].tolist() == [0.01]
    taps = {
        "packets_seen_before": np.array([1004, 1000]),
        "packets_seen_after": np.array([990, 980]),
        "lost_between": np.array([14, 16]),
        "under_way": np.array([0, 4]),
        "seen_at_both": np.array([990, 980]),
        "passes": np.array(["before-after", "before-after"]),
    }
    counted = group_directions(table | taps, NONE, by="all")
    assert counted["loss_ratio"].tolist() == [0.015]
    unknown = group_directions(
        table | taps | {"lost_between": np.array([14, np.nan])}, NONE, by="all"
    )
    assert unknown["loss_ratio"].tolist() == [14 / 1004], "the loss of one flow is known"
    neither = {"lost_between": np.full(2, np.nan)}
    assert np.isnan(group_directions(table | taps | neither, NONE, by="all")["loss_ratio"]).all()


def test_group_models_use_measured_inputs() -> None:
    table = flows(4)
    lost = indications(np.repeat(range(4), 10).tolist(), np.arange(0, 8000, 200).tolist())
    (row,) = [{name: column[0] for name, column in group_directions(table, lost, by="all").items()}]
    path: dict[str, Any] = {"flows": 4, "rtt_s": 0.1, "t0_s": 0.4, "packets_per_ack": 2.0}
    assert row["parallel_pps"] == parallel_throughput(loss_event_ratio=0.01, **path).rate_pps
    assert row["multiplied_pftk_pps"] == multiplied_pftk_rate_pps(
        loss_indication_ratio=0.01, receiver_window_pkts=40.0, **path
    )
    second = cumulative_throughput(loss_event_ratio_cumulative=0.01, loss_ratio=0.01, **path)
    assert row["parallel_cumulative_pps"] == pytest.approx(second.rate_pps)
    small = group_directions(table | {"w_max_pkts": np.full(4, 2.0)}, lost, by="all")
    assert small["parallel_pps"].tolist() == [80.0], "4 windows of 2 packets in each 0.1 s"
    # T0 is weighted by timeout sequences.
    weights = {"to": np.array([1, 3, 0, 0]), "t0_s": np.array([0.2, 0.6, np.nan, np.nan])}
    assert group_directions(table | weights, lost, by="all")["t0_s"] == pytest.approx([0.5])


def test_loss_models_are_absent_without_loss() -> None:
    result = group_directions(flows(2, td=[0, 0], to=[0, 0]), NONE, by="all")
    for name in ("parallel_pps", "parallel_cumulative_pps", "multiplied_pftk_pps"):
        assert np.isnan(result[name]).all(), name
    assert result["loss_event_ratio_cumulative"].tolist() == [0.0]


def test_capture_without_data_has_no_groups() -> None:
    empty = {name: column[:0] for name, column in flows(1).items()}
    for by in ("all", "pair"):
        assert group_directions(empty, NONE, by=by)["flows"].size == 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [({"by": "port"}, "all, pair"), ({"rtt_s": 0.0}, "rtt_s"), ({"rtt_s": np.nan}, "rtt_s")],
)
def test_invalid_arguments_are_rejected(arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(DomainError, match=why):
        group_directions(flows(1), NONE, **arguments)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2000)), min_size=1, max_size=60),
    st.integers(1, 500),
)
def test_loss_events_equal_the_simulator_rule(losses: list[tuple[int, int]], rtt_ms: int) -> None:
    of_flow = np.array([flow for flow, _ in losses])
    table = flows(4, td=np.bincount(of_flow, minlength=4).tolist(), to=[0] * 4)
    lost = indications([flow for flow, _ in losses], [time_ms for _, time_ms in losses])
    events, following = 0, 0
    for time_ms in sorted(time_ms for _, time_ms in losses):
        if time_ms >= following:
            events, following = events + 1, time_ms + rtt_ms
    result = group_directions(table, lost, by="all", rtt_s=rtt_ms / 1000)
    assert result["loss_events"].tolist() == [events]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), min_size=1, max_size=20))
def test_active_time_equals_a_count_per_second(lives: list[tuple[int, int]]) -> None:
    starts, lasting = (np.array(column, dtype=float) for column in zip(*lives, strict=True))
    table = flows(len(lives), start_s=starts, duration_s=lasting)
    result = group_directions(table, NONE, by="all")
    seconds = {second for start, length in lives for second in range(start, start + length)}
    assert result["active_s"].tolist() == [len(seconds)]
    alive = [sum(a <= second < a + b for a, b in lives) for second in seconds]
    assert result["parallel_flows_max"][0] >= max(alive, default=1)
    if seconds:
        assert result["parallel_flows"][0] == pytest.approx(sum(alive) / len(seconds))


def test_warning_names_groups_with_many_flows_in_rto(capsys: pytest.CaptureFixture[str]) -> None:
    sources = [f"10.0.0.{host}:1000" for host in range(1, 6)]
    table = flows(5, src=sources, td=[60, 55, 50, 45, 2], to=[0] * 5, t0_s=[3.0] * 4 + [0.4])
    groups = group_directions(table, NONE, by="pair")
    most = 100 * groups["waiting_share"].max()
    assert have_many_flows_in_rto(groups).tolist() == [True] * 4 + [False]
    print_parts(group_parts(groups))
    output = " ".join(capsys.readouterr().out.split())
    assert (
        "check: algorithm 1 underestimates the rate of 10.0.0.1 > 10.0.0.2, 10.0.0.2 > 10.0.0.2, "
        f"10.0.0.3 > 10.0.0.2 and 1 more group: it predicts that up to {most:.0f} % of the flows "
        "are in RTO at the same time, but assumes few flows in RTO"
    ) in output
