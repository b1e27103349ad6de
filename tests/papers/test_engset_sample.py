"""Tolerances from the scatter of independent runs, and readings of traced timeouts."""

from dataclasses import replace

import numpy as np
import pytest
from tcpcast.answer import Answer, Metric
from tcpcast_papers.engset import interpretations
from tcpcast_papers.engset.runs import QUICK, Runs
from tcpcast_papers.engset.sample import Sample, interval_reader, metric_reader, recovery_reader
from tcpcast_papers.engset.settings import read_setting
from tcpcast_papers.reproduction import Printed, Verdict


def runs(values: list[float], *, share: float = 1.0, includes_mean_error: bool = True) -> Sample:
    answers = [Answer(engine="packet", metrics={"on_time_s": Metric(value)}) for value in values]
    return Sample(lambda: answers, share, includes_mean_error)


VALUES = [9.0, 10.0, 11.0, 10.0]
READ = metric_reader("on_time_s")


@pytest.mark.parametrize(
    ("share", "settled", "errors"), [(1.0, True, 1.25), (0.25, True, 0.5), (0.25, False, 0.25)]
)
def test_tolerance_is_error_of_one_run_of_the_paper(
    share: float, settled: bool, errors: float
) -> None:
    row = runs(VALUES, share=share, includes_mean_error=settled).row(
        ("x",), "s", Printed("10.0"), READ
    )
    scatter, quantile = np.std(VALUES, ddof=1), 5.8409  # Student's t, 3 degrees, 99 %
    assert row.tolerance is not None
    assert row.tolerance.absolute == pytest.approx(quantile * scatter * errors**0.5, rel=1e-4)
    assert row.verdict is Verdict.AGREES
    assert row.own == 10.0
    assert row.low == pytest.approx(10 - 3.1824 * scatter / 2, rel=1e-4)


def test_value_without_scatter_agrees_to_the_printed_digit() -> None:
    sample = runs([2.0, 2.0, 2.0])
    assert sample.row(("x",), "s", Printed("2.0"), READ).verdict is Verdict.AGREES
    assert sample.row(("x",), "s", Printed("2.1"), READ).verdict is Verdict.DIFFERS


def test_row_states_the_cause_that_gives_the_printed_value() -> None:
    causes = [
        ("too small", runs([2.5, 2.5, 2.5]), None),
        ("too large", runs([5.0, 5.0, 5.0]), None),
        ("phase", runs([4.0, 4.0, 4.0]), None),
        ("reading", runs([1.5, 1.5, 1.5]), metric_reader("on_time_s", 2)),
    ]
    own = runs([2.0, 2.0, 2.0])
    row = own.row(("x",), "s", Printed("3.0"), READ, causes=causes)
    assert row.verdict is Verdict.EXPLAINED
    assert row.cause is not None
    assert (row.cause.reason, row.cause.own) == ("reading", 3.0)
    row = own.row(("x",), "s", Printed("3.0"), READ, causes=causes[:3])
    assert row.verdict is Verdict.BETWEEN
    assert row.cause is not None
    assert row.cause.reason == "phase"
    row = own.row(("x",), "s", Printed("3.0"), READ, causes=causes[:1])
    assert (row.verdict, row.cause) == (Verdict.DIFFERS, None)


def test_too_few_runs_with_a_value_are_unsettled() -> None:
    row = runs([2.0, 2.0, np.nan]).row(("x",), "s", Printed("2.0"), READ)
    assert row.verdict is Verdict.UNSETTLED
    assert row.own is None
    assert row.note == "too few such files in these runs"


def test_paired_runs_give_changes() -> None:
    changes = runs([11.0, 24.0, 33.0]).paired(runs([10.0, 20.0, 30.0]))
    assert changes.values(READ) == pytest.approx([10, 20, 10])


def test_readers_read_cells() -> None:
    tables = {
        "by_size": {"low_pkts": np.array([3, 7]), "share": np.array([0.9, 0.1])},
        "loss_recovery": {"quantity": np.array(["a", "b"]), "value": np.array([1.0, 2.0])},
    }
    answer = Answer(engine="packet", metrics={}, tables=tables)
    assert interval_reader(7, "share", 100)(answer) == pytest.approx(10)
    assert np.isnan(interval_reader(15, "share")(answer))
    assert recovery_reader("b", 3)(answer) == 6


def traced(*events: tuple[float, int, str]) -> Answer:
    time_s, sequence, event = (np.array(column) for column in zip(*events, strict=True))
    flow = np.zeros(len(events), dtype=int)
    table = {"time_s": time_s, "flow": flow, "sequence": sequence, "event": event}
    return Answer(engine="packet", metrics={}, tables={"sequences": table})


LOST_SECOND = traced(
    (0.0, 1, "sent"),
    (0.0, 2, "sent"),
    (0.0, 2, "dropped"),
    (0.2, 3, "sent"),
    (1.2, 2, "timeout"),
    (1.2, 2, "retransmitted"),
    (1.2, 2, "dropped"),
    (3.2, 2, "timeout"),
    (3.2, 2, "retransmitted"),
    (9.0, 1, "sent"),
)
"""A file of three packets whose second is lost twice; a file of one packet follows."""


def test_timeouts_of_a_trace() -> None:
    first, second = interpretations.timeouts_of_trace(LOST_SECOND)
    assert (first.packet, first.size, first.all_sent, first.repeated) == (2, 3, True, False)
    assert first.waited_s == pytest.approx(1.0)
    assert first.packet_waited_s == pytest.approx(1.2)
    assert second.repeated
    assert second.packet_waited_s == pytest.approx(2.0)


def test_readings_classify_a_timeout_of_packet_2_of_3() -> None:
    answer = LOST_SECOND
    answer.tables |= interpretations.classify_traced_timeouts(answer)
    shares = {
        reading: [
            interpretations.class_share_reader(kind, reading)(answer) for kind in ("TObeg", "TOend")
        ]
        for reading in interpretations.TIMEOUT_CLASSIFIERS
    }
    assert shares.pop("TObeg before TOend") == [50, 0]
    assert set(map(tuple, shares.values())) == {(0, 50)}
    # 3.2 s in timeouts if they begin with the packet itself, instead of 3.0 s.
    longer = interpretations.count_since_last_transmission(lambda _: 3.0, low_pkts=3)
    assert longer(answer) == pytest.approx(3.2)


def test_timeout_behind_fast_retransmit_is_in_recovery() -> None:
    answer = traced(
        *((0.1 * number, number, "sent") for number in range(1, 9)),
        (0.9, 4, "retransmitted"),
        (1.9, 4, "timeout"),
        (1.9, 4, "retransmitted"),
        (2.0, 5, "retransmitted"),
        (3.0, 5, "timeout"),
    )
    first, second = interpretations.timeouts_of_trace(answer)
    assert first.in_recovery
    # Packet 5 was resent after the timeout, not in a recovery.
    assert not second.in_recovery
    assert second.after_recovery
    assert second.kind(end=False) == "TOother"


def test_sending_rate_ends_with_the_last_packet() -> None:
    answer = Answer(
        engine="packet",
        metrics={"connection_rate_bps": Metric(154_500.0), "on_time_s": Metric(0.9271)},
        tables={"by_size": {"share": np.array([1.0]), "queue_seen_mean_pkts": np.array([125.3])}},
    )
    # The numbers of Tables 7 and 8 give the printed 197.0 kbit/s.
    assert interpretations.sending_rate_reader(50, 1.2)(answer) == pytest.approx(197.0, abs=0.2)


def test_rows_of_a_sample_lead_to_its_runs() -> None:
    simulations = Runs(QUICK)
    each = read_setting("F12-N134-10M2M-R50-E-W44-B150")
    other = replace(each, buffer_pkts=50)
    simulations.request([each, other], checked=True, plotted=False)
    for key in simulations._jobs:
        assert isinstance(key, tuple)
        metrics = {"loss_ratio": Metric(0.01 * key[1])}
        simulations._results[key] = Answer("packet", metrics=metrics)
    read = metric_reader("loss_ratio")
    sample, changed = simulations.sample(each), simulations.sample(other)
    section = simulations.section("Table 1. Losses", ("what",))
    section.rows += sample.rows(("loss",), "1", None, read)
    section.rows += changed.paired(sample).rows(("change",), "%", None, read)
    simulations.assign_results_to_sections([section])
    for seed in range(2, 2 + QUICK.seeds):
        places = simulations._readers[each, seed].rows
        assert places == {("Table 1. Losses", ("loss",)), ("Table 1. Losses", ("change",))}
        assert simulations._readers[other, seed].rows == {("Table 1. Losses", ("change",))}
