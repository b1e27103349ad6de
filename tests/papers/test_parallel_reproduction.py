"""Reproduction of parallel flows: points, measures and fits."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tcpcast.answer import Answer, Metric
from tcpcast.engines import RunOptions, answer
from tcpcast_papers.parallel import loss_events
from tcpcast_papers.parallel.loss_events import (
    MeasuredTwoWays,
    count_loss_events,
    is_traced,
    measured_by_lost_packets,
    measured_two_ways,
)
from tcpcast_papers.parallel.model_errors import fitted_t0_s
from tcpcast_papers.parallel.points import Point
from tcpcast_papers.parallel.predictions import (
    ALGORITHM_1,
    ALGORITHM_2,
    PFTK,
    mean_absolute_error,
    relative_rate_errors,
)
from tcpcast_papers.parallel.runs import QUICK, WHOLE, Measured, Runs, make_measured_point

SMALL = replace(QUICK, loss_events=400, packets=2000, min_measured_s=5.0)


def test_random_loss_uses_a_shared_red_link() -> None:
    scenario = Point(10, loss=0.01).scenario(duration_s=20, warmup_s=10)
    (people,) = scenario.populations
    link = scenario.network.bottleneck
    assert people.count == 10
    assert people.rtt_s == pytest.approx(0.064, abs=1e-4)
    assert people.ingress.rate_bps == people.egress.rate_bps == 10e9
    assert link.rate_bps == 1e9
    assert link.loss is not None
    assert link.loss.mean_ratio() == 0.01
    assert scenario.network.red_parameters() is not None
    assert Point(1, loss=0.01, delay_s=0.1).rtt_s == pytest.approx(0.204)


@pytest.mark.parametrize(("rate_mbit", "packets"), [(1, 10), (8, 66), (200, 1602)])
def test_drop_tail_queue_holds_one_bdp(rate_mbit: int, packets: int) -> None:
    scenario = Point(1, rate_mbit=rate_mbit).scenario(duration_s=20, warmup_s=10)
    assert scenario.network.bottleneck.loss is None
    assert scenario.network.red_parameters() is None
    # The idle RTT: 64 ms plus the transmission of a packet and its ack on the links.
    assert scenario.buffer_pkts == packets


@pytest.fixture(scope="module")
def runs() -> Runs:
    """Return two points at random loss and one at a queue, simulated and traced."""
    runs = Runs(SMALL)
    some = [Point(10, loss=0.02), Point(2, loss=0.1), Point(10, rate_mbit=1)]
    runs.request(some)
    runs.request(some[:2], traced=loss_events.measured_trace_two_ways)
    runs.simulate()
    return runs


@pytest.mark.parametrize("point", [Point(10, loss=0.02), Point(10, rate_mbit=1)], ids=str)
def test_model_inputs_equal_inputs_of_feed_measured(runs: Runs, point: Point) -> None:
    warmup, length = runs.lengths_s(point)
    scenario = point.scenario(
        duration_s=warmup + length, warmup_s=warmup, replications=SMALL.replications
    )
    one, two, pftk, packet = answer(
        scenario,
        ["parallel", "parallel-cumulative", "pftk", "packet"],
        RunOptions(),
        feed="measured",
    )
    own = make_measured_point(point, packet)
    assert own == runs[point]
    for model, engine in ((ALGORITHM_1, one), (ALGORITHM_2, two), (PFTK, pftk)):
        assert model.rate_pps(own) == pytest.approx(engine["send_rate_pps"])


@given(st.lists(st.integers(0, 200), max_size=40), st.integers(1, 50))
def test_loss_event_lasts_one_rtt_from_its_first_loss(times: list[int], rtt: int) -> None:
    count, began = 0, -1000
    for time in sorted(times):
        if time >= began + rtt:
            count, began = count + 1, time
    assert count_loss_events(np.sort(np.array(times, dtype=float)), rtt) == count


def test_losses_are_counted_per_flow_and_combined() -> None:
    marks = [
        (0.5, 0, "dropped"),  # in the warm-up
        (1.0, 0, "sent"),
        (1.0, 0, "dropped"),
        (1.05, 1, "dropped"),  # another flow, within the RTT
        (1.09, 0, "dropped"),  # the same, within the RTT
        (1.12, 1, "dropped"),  # second flow: within its RTT; combined: a new event
        (1.2, 1, "retransmitted"),
        (1.21, 0, "dropped"),  # first flow: a new event; combined: within the RTT of 1.12
        *((2.0 + index, 0, "sent") for index in range(18)),
        (30.0, 0, "timeout"),
    ]
    table = {
        name: np.array([mark[index] for mark in marks])
        for index, name in enumerate(("time_s", "flow", "event"))
    }
    values = {"send_rate_pps": 10.0, "loss_ratio": 0.3, "rtt_mean_s": 0.1}
    result = measured_by_lost_packets(
        Point(2, loss=0.1),
        Answer(
            "packet",
            metrics={name: Metric(value) for name, value in values.items()},
            tables={"sequences": table},
            warmup_s=0.8,
        ),
    )
    assert result.p == 3 / 20
    assert result.p_e == 2 / 20
    assert result.t0_s == 0.2  # without a timeout, the minimum


@pytest.mark.parametrize("point", [Point(10, loss=0.02), Point(2, loss=0.1)], ids=str)
def test_frequent_losses_give_more_events_than_indications(runs: Runs, point: Point) -> None:
    ((lost, own),) = runs.traces(point)
    assert own.p < lost.p < own.p_r
    assert lost.p_e <= lost.p
    assert own.p_e <= own.p
    assert lost.p_r == pytest.approx(own.p_r, rel=0.02)
    assert replace(lost, p=own.p, p_e=own.p_e, p_r=own.p_r) == own


def test_traces_give_the_events_per_lost_packet(runs: Runs) -> None:
    point = Point(10, loss=0.02)
    ((trace, _),) = runs.traces(point)
    (pair,) = measured_two_ways(runs, [point])
    assert pair.by_indications == runs[point]
    assert pair.by_losses.p / pair.by_losses.p_r == pytest.approx(trace.p / trace.p_r)
    assert pair.by_losses.p_e / pair.by_losses.p_r == pytest.approx(trace.p_e / trace.p_r)
    assert (
        replace(pair.by_losses, p=pair.by_indications.p, p_e=pair.by_indications.p_e)
        == pair.by_indications
    )


def test_points_without_a_trace_use_indications() -> None:
    point = Point(1, rate_mbit=200)
    assert not is_traced(point, WHOLE)
    runs = Runs(WHOLE)
    runs._results[point, False] = MADE_UP
    assert measured_two_ways(runs, [point]) == [MeasuredTwoWays(MADE_UP, MADE_UP)]


MADE_UP = Measured(
    point=Point(10, loss=0.05),
    send_rate_pps=700.0,
    half_width=0.01,
    p=0.04,
    p_e=0.015,
    p_r=0.05,
    rtt_s=0.064,
    t0_s=0.22,
    timeout_share=0.1,
)


def test_fitted_t0_gives_the_simulated_rate() -> None:
    fitted = fitted_t0_s(MADE_UP)
    result = ALGORITHM_1.rate_pps(replace(MADE_UP, t0_s=fitted))
    assert result == pytest.approx(MADE_UP.send_rate_pps)
    assert np.isnan(fitted_t0_s(replace(MADE_UP, send_rate_pps=1e9)))
    assert np.isnan(fitted_t0_s(replace(MADE_UP, send_rate_pps=1e-9)))


def test_errors_are_relative_to_the_simulation() -> None:
    half = replace(MADE_UP, send_rate_pps=2 * ALGORITHM_1.rate_pps(MADE_UP))
    assert relative_rate_errors(ALGORITHM_1, [half]).tolist() == pytest.approx([-0.5])
    double = replace(MADE_UP, send_rate_pps=ALGORITHM_1.rate_pps(MADE_UP) / 2)
    lossless = replace(MADE_UP, p=0.0, p_e=0.0, p_r=0.0)
    assert mean_absolute_error(ALGORITHM_1, [half, double, lossless]) == pytest.approx(0.75)
    assert np.isnan(mean_absolute_error(PFTK, [lossless]))
