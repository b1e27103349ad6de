"""Reproduction of short transfers: simulated transfers by their losses."""

from dataclasses import replace

import numpy as np
import pytest
from tcpcast.engines.formula.short_transfers import short
from tcpcast.models.short import conditional_latency_s
from tcpcast_papers.short import published
from tcpcast_papers.short.expected import REDUCTION_INDEX, relative_reduction
from tcpcast_papers.short.runs import (
    BACKOFF_UNTIL_ACK,
    BulkJob,
    Job,
    Runs,
    SampleSizes,
    latency_curves,
)
from tcpcast_papers.short.settings import (
    ALL_SETTINGS,
    NEWRENO,
    PROPOSAL,
    SIZES,
    Setting,
)
from tcpcast_papers.short.timeouts import SIZE_PKTS, measured_packets, sender_of_line
from tcpcast_papers.simulations import SEED

SMALL = SampleSizes(
    figure_transfers=4_000, value_transfers=4_000, table_transfers=4_000, long_flow_s=500.0
)


def simulated(*jobs: Job | BulkJob, threads: int | None = None) -> Runs:
    runs = Runs(SMALL, threads)
    for job in jobs:
        runs.request(job)
    runs.simulate()
    return runs


@pytest.mark.parametrize("setting", ALL_SETTINGS, ids=lambda setting: setting.name)
def test_scenario_and_model_describe_the_same_sender(setting: Setting) -> None:
    sizes = (2, 8, 20)
    result = short(setting.scenario(sizes, transfers=10, seed=SEED), None).tables["by_losses"]
    transfer = setting.transfer
    if transfer.acked_packets > 1:
        # The engine has the ack timer of the scenario, the paper's model has none.
        steps = short(setting.scenario(sizes, transfers=10, seed=SEED), None).steps
        (timer,) = (step["value"] for step in steps if step["symbol"] == "ack timer")
        assert timer == setting.refined.delayed_ack_timer_s == 0.1
        return
    expected = conditional_latency_s(transfer, sizes, max_losses=1)
    for size, losses, latency_s in zip(
        result["size_pkts"], result["losses"], result["completion_time_s"], strict=True
    ):
        # The initial window still takes a round trip, which the paper leaves out.
        if losses <= 1 and size > transfer.initial_window_pkts:
            assert latency_s == pytest.approx(expected[losses, sizes.index(int(size))], rel=1e-9)


def test_means_by_losses_equal_the_tables() -> None:
    job = Job(NEWRENO, (2, 8), 20_000)
    runs = simulated(job)
    times, tables = runs.latency_curves(job), runs[job].tables
    rows = tables["by_losses"]
    for index, size in enumerate(job.sizes_pkts):
        mine = rows["size_pkts"] == size
        for losses in range(4):
            (row,) = np.flatnonzero(mine & (rows["losses"] == losses))
            assert times.given[losses, 0, index] == rows["completion_time_s"][row]
        lossy = mine & (rows["losses"] > 0)
        mean = np.average(rows["completion_time_s"][lossy], weights=rows["transfers"][lossy])
        assert times.given_loss[0, index] == pytest.approx(mean, rel=1e-9)
    np.testing.assert_array_equal(times.expected[0], tables["by_size"]["completion_time_s"])


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("index", [0, 5, 15])
def test_timed_out_packets_are_counted(number: int, index: int) -> None:
    line = published.published_table(number).lines[index]
    cell = sender_of_line(line)
    job = Job(cell, (SIZE_PKTS,), 200_000, 1e-3)
    result = measured_packets(simulated(job)[job], cell.transfer.unprotected_pkts)
    printed = line.value("timeout_packets")
    assert result.low is not None
    assert result.high is not None
    assert result.high > printed - 0.2
    if number == 1:  # with b = 2, a delayed ack keeps the window small
        assert result.low < printed + 0.2


def test_only_the_last_packet_times_out_with_the_proposal() -> None:
    job = Job(PROPOSAL, (SIZE_PKTS,), 200_000, 1e-3)
    result = measured_packets(simulated(job)[job], 0)
    assert result.low is not None
    assert result.high is not None
    assert result.low < 1.1
    assert result.high > 0.9


def test_reordering_causes_needless_retransmissions_of_the_proposal() -> None:
    jobs = [Job(replace(each, jitter_s=20e-6), (8,), 4_000, 0.0) for each in (NEWRENO, PROPOSAL)]
    runs = simulated(*jobs)
    reno, proposal = (runs[job].metrics["retransmit_ratio"].value for job in jobs)
    assert 0.003 < proposal < 0.05
    assert reno < 0.2 * proposal


def test_reduction_has_an_interval() -> None:
    base, changed = (np.outer(pair, np.ones(len(SIZES))) for pair in ((2.0, 0.02), (1.0, 0.01)))
    share, half = relative_reduction(base, changed)
    assert share[REDUCTION_INDEX] == pytest.approx(0.5)
    assert half[REDUCTION_INDEX] == pytest.approx(0.5 * np.hypot(0.01, 0.01))
    assert SIZES[REDUCTION_INDEX] == 8
    assert relative_reduction(base[:1], changed[:1]).shape == (1, len(SIZES))


def test_results_do_not_depend_on_threads() -> None:
    jobs = [
        Job(setting, (2, 9), 3_000, rules=rules)
        for setting in ALL_SETTINGS[:3]
        for rules in ((), BACKOFF_UNTIL_ACK)
    ]
    result = []
    for threads in (1, 2):
        runs = simulated(*jobs, threads=threads)
        assert len(runs) == len(jobs)
        assert runs.transfers == 6_000 * len(jobs)
        result.append([latency_curves(runs[job], job.sizes_pkts).given for job in jobs])
    np.testing.assert_array_equal(result[0], result[1])
