"""Reproduction of PFTK: simulated traces in pieces like the paper's."""

from dataclasses import replace

import numpy as np
import pytest
from tcpcast import _native
from tcpcast.engines.packet.configuration import make_configuration
from tcpcast.engines.packet.counters import CLASS_COUNTER, LINK_COUNTER
from tcpcast_papers.pftk.bottlenecks import PLOTTED_MODEM_PATH, SHARED_QUEUE_PATH
from tcpcast_papers.pftk.paths import (
    INDEPENDENT,
    LOSS_KINDS,
    REST_OF_ROUND,
    TWO_STATES,
    Path,
    path_of_printed_trace,
    simulated_windows,
)
from tcpcast_papers.pftk.published import trace
from tcpcast_papers.pftk.published import traces as traces_of
from tcpcast_papers.pftk.runs import simulate_rounds
from tcpcast_papers.pftk.simulated_traces import DEPTH_COUNTERS, calibrate_loss, simulate_pieces

LOSSY = Path("lossy", 0.2, 1.0, 8.0, INDEPENDENT, 0.02)


def uncut(path: Path, seconds: float) -> np.ndarray:
    """Return the cells of the observed flow in a run without pauses."""
    run = _native.Simulation(make_configuration(path.scenario(), 0.0), 1)
    run.advance(transfers=None, until_ns=round(seconds * 1e9), threads=1)
    return run.counters()[0][-1, len(LINK_COUNTER) : len(LINK_COUNTER) + len(CLASS_COUNTER)].astype(
        np.int64
    )


def test_pausing_a_trace_changes_nothing() -> None:
    pieces, uncut_run = simulate_pieces(LOSSY, pieces=36, piece_s=100), uncut(LOSSY, 3600)
    assert pieces.sent.shape == (1, 36)
    for result, name in (
        (pieces.sent, "sent"),
        (pieces.triple_duplicates, "fast_retransmits"),
        (pieces.sequences, "timeout_sequences"),
        (pieces.timeouts, "timeouts"),
        (pieces.rtt_sums[1], "rtt_samples"),
    ):
        assert result.sum() == uncut_run[CLASS_COUNTER[name]]
    rtt_s = 1e-9 * uncut_run[CLASS_COUNTER["rtt_sum_ns"]] / uncut_run[CLASS_COUNTER["rtt_samples"]]
    assert float(pieces.trace_rtt_s[0, 0]) == pytest.approx(rtt_s)


def test_deepest_timeout_is_the_length_of_its_sequence() -> None:
    pieces = simulate_pieces(replace(LOSSY, rate=0.2), pieces=36, piece_s=100, replications=4)
    assert max(DEPTH_COUNTERS) == 6
    assert pieces.deepest.max() >= 3
    assert np.all(pieces.deepest[pieces.timeouts == 0] == 0)
    assert np.all(pieces.deepest[pieces.timeouts > pieces.sequences] >= 2)
    single = (pieces.sequences > 0) & (pieces.timeouts == pieces.sequences)
    assert np.any(pieces.deepest[single] == 1)


def test_t0_is_the_minimum_timeout_if_backoff_is_rare() -> None:
    pieces = simulate_pieces(replace(LOSSY, t0_s=3.0, rate=0.003), pieces=4, piece_s=9000)
    assert float(pieces.trace_t0_s[0, 0]) == pytest.approx(3.0, rel=0.02)


@pytest.mark.parametrize("loss", LOSS_KINDS)
def test_calibrated_loss_gives_p(loss: str) -> None:
    row = trace(2, "pif to imagine")
    path = calibrate_loss(path_of_printed_trace(row, loss, 8.0), row.loss_indication_ratio, hours=8)
    pieces = simulate_pieces(path, pieces=1, piece_s=3600, replications=16)
    # Two states have few long periods, so that p varies more between hours.
    relative = 0.1 if loss == TWO_STATES else 0.05
    assert pieces.trace_p == pytest.approx(row.loss_indication_ratio, rel=relative)


def test_two_state_loss_varies_more_between_intervals() -> None:
    spread = {
        loss: float(np.std(simulate_pieces(path, pieces=36, piece_s=100).loss_indication_ratio))
        for loss, path in ((kind, replace(LOSSY, loss=kind)) for kind in (INDEPENDENT, TWO_STATES))
    }
    assert spread[TWO_STATES] > 2 * spread[INDEPENDENT]


def test_paths_follow_the_rules_of_their_senders() -> None:
    rules = {
        row.line["sender"]: (path.duplicate_threshold, path.longest_backoff)
        for row in traces_of(2)
        for path in [path_of_printed_trace(row, INDEPENDENT, 8.0)]
    }
    assert rules == {"manic": (3, 32), "void": (2, 64), "babel": (3, 64), "pif": (3, 64)}
    tcp = replace(LOSSY, duplicate_threshold=2, longest_backoff=32).scenario().tcp
    assert (tcp.duplicate_threshold, tcp.max_rto_s) == (2, 32 * LOSSY.t0_s)


def test_two_duplicates_avoid_timeouts() -> None:
    share = []
    for duplicates in (2, 3):
        pieces = simulate_pieces(
            replace(LOSSY, duplicate_threshold=duplicates), pieces=1, piece_s=3600
        )
        share.append(pieces.sequences.sum() / pieces.loss_indications.sum())
    assert share[0] < 0.8 * share[1]


def test_rest_of_round_loss_causes_timeouts() -> None:
    share = {}
    for loss in (INDEPENDENT, REST_OF_ROUND):
        pieces = simulate_pieces(replace(LOSSY, loss=loss), pieces=1, piece_s=3600)
        share[loss] = pieces.sequences.sum() / pieces.loss_indications.sum()
    assert share[REST_OF_ROUND] > 2 * share[INDEPENDENT]


def test_simulated_windows_are_clipped_to_4_to_32() -> None:
    assert simulated_windows([2.0, 5.0, np.inf]) == [4.0, 5.0, 32.0]


def test_individual_queue_correlates_rtt_and_window() -> None:
    assert simulate_rounds(PLOTTED_MODEM_PATH, seconds=3600).correlation > 0.9
    assert abs(simulate_rounds(replace(LOSSY, window_pkts=32.0), seconds=3600).correlation) < 0.1


def test_cross_flows_cause_losses_of_the_observed_flow() -> None:
    scenario = SHARED_QUEUE_PATH.scenario()
    assert [group.name for group in scenario.populations] == ["observed", "near", "far"]
    pieces = simulate_pieces(SHARED_QUEUE_PATH, pieces=2, piece_s=100)
    assert 0.003 < pieces.trace_p < 0.05
