"""Reproduction of PFTK: simulated traces in pieces like the paper's, and the whole report."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path as Folder

import numpy as np
import pytest
from report_parts import check_figure, own, section, without_layout
from tcpcast import _native
from tcpcast.engines.packet.configuration import make_configuration
from tcpcast.engines.packet.counters import CLASS_COUNTER, LINK_COUNTER
from tcpcast_papers import paper
from tcpcast_papers.pftk import simulated_traces
from tcpcast_papers.pftk.bottlenecks import PLOTTED_MODEM_PATH, SHARED_QUEUE_PATH
from tcpcast_papers.pftk.description import PAPER
from tcpcast_papers.pftk.paths import (
    INDEPENDENT,
    LOSS_KINDS,
    REST_OF_ROUND,
    TWO_STATES,
    Path,
    path_of_printed_trace,
    simulated_windows,
)
from tcpcast_papers.pftk.predictions import FULL, TD_ONLY
from tcpcast_papers.pftk.published import trace
from tcpcast_papers.pftk.published import traces as traces_of
from tcpcast_papers.pftk.runs import QUICK, simulate_rounds
from tcpcast_papers.pftk.simulated_traces import DEPTH_COUNTERS, calibrate_loss, simulate_pieces
from tcpcast_papers.pftk.summaries import NO_WINDOW
from tcpcast_papers.pftk.window_chain import WITH_RECOVERY
from tcpcast_papers.report import Report
from tcpcast_papers.reproduction import Section, Verdict

BRIEF = replace(QUICK, hours=1, calibration_hours=1, chain_piece_s=50.0)
LOSSY = Path("lossy", 0.2, 1.0, 8.0, INDEPENDENT, 0.02)
TITLES = [
    "Tables 2 and 3. The printed values",
    "Table 2. Summary data from 1hr traces: predicted",
    "Table 3. Summary data from 100s traces: predicted",
    "Tables 2 and 3. Average errors of all models",
    "Table 1. The rules of the senders",
    "Figures 7 to 12.",
    "Figure 19.",
    "Figures 13 to 18.",
    "Figure 20.",
    "Section 4 and Figure 21.",
    "Section 5. The closed form",
    "Section 5. NewReno",
]
FIGURES = [
    *(f"table{n}.png" for n in (2, 3)),
    *(f"figure{n}.png" for n in ("s07-12", "s13-18", "19", "20", "21")),
    "newreno.png",
]


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


@pytest.fixture(scope="module")
def shares() -> list[float]:
    return []


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory, shares: list[float]) -> Report:
    folder = tmp_path_factory.mktemp("pftk")
    with pytest.MonkeyPatch.context() as patch, without_layout():
        # These tests need no accurate p, so there is no calibration.
        patch.setattr(simulated_traces, "CALIBRATION_STEPS", 0)
        return replace(PAPER, quick=BRIEF).reproduce(folder, quick=True, progress=shares.append)


@pytest.mark.long
@pytest.mark.parametrize("title", TITLES)
def test_every_part_has_its_section(quick: Report, title: str) -> None:
    part = section(quick, title)
    assert part.rows
    assert part.remarks
    assert all(len(row.label) == len(part.columns) for row in part.rows)
    assert all(row.own is not None and np.isfinite(row.own) for row in part.rows)


@pytest.mark.long
@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_plotted_and_on_the_page(quick: Report, name: str) -> None:
    check_figure(quick, name)


@pytest.mark.long
def test_every_printed_trace_has_a_verdict(quick: Report) -> None:
    assert [*quick.new, *quick.gone] == []
    for title, count in zip(TITLES[1:3], (24, 13), strict=True):
        rows = [r for r in section(quick, title).rows if r.label[2:] == (NO_WINDOW, FULL)]
        assert len(rows) == count
        assert all(row.verdict is not Verdict.SHOWN for row in rows)
        explained = [row for row in rows if row.cause is not None]
        assert explained
        # No window limit increases a rate.
        for row in explained:
            assert row.own is not None
            assert row.published is not None
            assert row.own < row.published.value


@pytest.mark.long
def test_seven_rows_contradict_themselves(quick: Report) -> None:
    rows = [r for r in section(quick, TITLES[0]).rows if r.label[2].startswith("TD + TO")]
    assert len(rows) == 37
    wrong = [row for row in rows if row.verdict is not Verdict.AGREES]
    assert len(wrong) == 7
    for row in wrong:
        assert row.verdict is Verdict.INCONSISTENT
        assert row.published is not None
        assert row.own is not None
        assert int(row.note) == row.own - row.published.value


def of_kind(part: Section, loss: str) -> Iterator[tuple[str, float]]:
    for row in part.rows:
        if row.label[0] == loss and row.own is not None:
            yield row.label[2], row.own


@pytest.mark.long
@pytest.mark.parametrize(("title", "traces"), [("Figure 19.", 24), ("Figure 20.", 13)])
@pytest.mark.parametrize("loss", LOSS_KINDS)
def test_full_model_is_closer_than_td_only_in_most_traces(
    quick: Report, title: str, traces: int, loss: str
) -> None:
    result = dict(of_kind(section(quick, title), loss))
    assert result[FULL] < result[TD_ONLY]
    assert result[f"{FULL} nearer than {TD_ONLY}"] > 0.8 * traces


@pytest.mark.long
@pytest.mark.parametrize("title", ["Figure 19.", "Figure 20."])
def test_model_error_is_largest_with_rest_of_round_loss(quick: Report, title: str) -> None:
    part = section(quick, title)
    result = {loss: dict(of_kind(part, loss))[FULL] for loss in (INDEPENDENT, REST_OF_ROUND)}
    assert result[REST_OF_ROUND] > 1.5 * result[INDEPENDENT]


@pytest.mark.long
def test_rtt_grows_with_window_in_an_individual_queue(quick: Report) -> None:
    part = section(quick, "Section 4")
    name = "correlation of round and window"
    assert own(part, PLOTTED_MODEM_PATH.name, name) > 0.9
    for path in (SHARED_QUEUE_PATH.name, "independent loss"):
        assert abs(own(part, path, name)) < 0.15


@pytest.mark.long
def test_newreno_sends_less_than_either_formula(quick: Report) -> None:
    rows = section(quick, "Section 5. NewReno").rows
    rows = [row for row in rows if row.label[-1] != WITH_RECOVERY]
    assert len(rows) == 40
    assert all(0 < (row.own or 0) < 100 for row in rows)


@pytest.mark.long
def test_whole_paper_is_reproducible(tmp_path: Folder) -> None:
    pages = []
    for threads in (1, None):
        folder = tmp_path / f"{threads}"
        report = paper("pftk")(folder, threads=threads)
        assert [*report.new, *report.gone] == []
        pages.append({file.name: file.read_bytes() for file in folder.iterdir()})
    assert pages[0] == pages[1]
