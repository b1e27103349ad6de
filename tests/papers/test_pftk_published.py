"""PFTK's Tables 2 and 3 as data, and results of the models."""

import numpy as np
import pytest
from tcpcast.models.pftk import throughput
from tcpcast_papers.pftk import published
from tcpcast_papers.pftk.predictions import (
    APPROXIMATE,
    FULL,
    MATHIS,
    MODELS,
    TD_ONLY,
    TD_ONLY_EQUATION_19,
    Inputs,
    fitted_windows,
    full_model_packets,
    inputs_of_traces,
    relative_errors,
)
from tcpcast_papers.pftk.published import trace, traces
from tcpcast_papers.pftk.summaries import (
    COMMON_WINDOW,
    FITTED_TO_FULL_MODEL,
    FITTED_WINDOW,
    NO_WINDOW,
    average_error,
)

UNEVEN = {
    "void to ganef": -2,
    "void to tove": -8,
    "babel to alps": -5,
    "babel to tove": -1,
    "pif to alps": -2,
    "pif to imagine": -2,
    "pif to manic": -2,
}
"""Difference of TD + TO from the loss indications, for rows of Table 2."""


def test_tables_have_24_and_13_traces_of_18_hosts() -> None:
    both = [*traces(2), *traces(3)]
    assert (len(traces(2)), len(traces(3))) == (24, 13)
    assert len({row.line[end] for row in both for end in ("sender", "receiver")}) == 18


def test_loss_indications_equal_td_plus_to_except_in_seven_rows() -> None:
    gaps = {row.name: row.td_plus_to - row.loss_indications for row in (*traces(2), *traces(3))}
    assert {name: gap for name, gap in gaps.items() if gap} == UNEVEN
    # None of them is a name in both tables.
    assert all(trace(2, name).td_plus_to - trace(2, name).loss_indications for name in UNEVEN)


@pytest.mark.parametrize("name", UNEVEN)
def test_inconsistent_rows_have_a_note_and_are_unchanged(name: str) -> None:
    row = trace(2, name)
    assert str(row.td_plus_to) in row.line.note
    assert row.loss_indication_ratio == row.loss_indications / row.packets


@pytest.mark.parametrize(
    ("model", "percent"), [(FULL, 54), (TD_ONLY, 117), (TD_ONLY_EQUATION_19, 109), (MATHIS, 117)]
)
def test_average_errors_of_hour_traces_without_window_limit(model: str, percent: int) -> None:
    assert round(100 * average_error(2, model, NO_WINDOW)) == percent


@pytest.mark.parametrize(("number", "percent"), [(2, 34.0), (3, 19.5)])
def test_printed_share_of_timeouts_lowers_the_average_error(number: int, percent: float) -> None:
    rows = traces(number)
    predicted = [full_model_packets(row, timeout_share=row.timeout_share) for row in rows]
    errors = relative_errors(predicted, [row.packets for row in rows])
    assert round(100 * float(errors.mean()), 1) == percent


def test_manic_to_alps_equals_hand_computed_rate_and_error() -> None:
    row = trace(2, "manic to alps")
    result = throughput(rtt_s=0.207, t0_s=2.505, loss_indication_ratio=722 / 54402)
    index = [row.name for row in traces(2)].index(row.name)
    assert MODELS[FULL](inputs_of_traces(traces(2)))[index] == pytest.approx(float(result.rate_pps))
    assert relative_errors(float(result.rate_pps) * 3600, 54402) == pytest.approx(0.7403, abs=1e-4)


@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize("model", [FULL, APPROXIMATE])
def test_fitted_window_minimizes_the_error(number: int, model: str) -> None:
    rows = traces(number)
    sent = np.array([row.packets for row in rows])
    seconds = np.array([row.duration_s for row in rows])

    def error(windows: object) -> np.ndarray:
        return relative_errors(MODELS[model](inputs_of_traces(rows, windows)) * seconds, sent)  # type: ignore[arg-type]

    best = error(fitted_windows(rows, model))
    for window in (2, 5, 9, 33, 64, np.inf):
        assert np.all(best <= error(window))
        assert average_error(number, model, COMMON_WINDOW) <= error(window).mean()
    # A limit can only reduce rates: if the model underestimates, none is fitted.
    short = MODELS[model](inputs_of_traces(rows)) * seconds < sent
    assert np.array_equal(np.isinf(fitted_windows(rows, model))[short], short[short])


def test_each_formula_has_its_own_fit() -> None:
    own, other = (
        average_error(2, APPROXIMATE, window) for window in (FITTED_WINDOW, FITTED_TO_FULL_MODEL)
    )
    assert (own, other) == pytest.approx((0.191, 0.351), abs=5e-4)


def test_table_1_has_the_hosts_of_the_other_tables() -> None:
    names = [line["host"] for line in published.table_of_hosts()]
    used = {row.line[end] for row in (*traces(2), *traces(3)) for end in ("sender", "receiver")}
    assert sorted(names) == sorted(used)
    for line in published.table_of_hosts():
        assert (line["duplicate_threshold"] == "2") == line["system"].startswith("Linux")
        assert (line["longest_backoff"] == "32") == line["system"].startswith("Irix")
        assert (line["recovery"] == "tahoe") == line["system"].startswith("SunOS 4")
    assert all(row.sender["recovery"] == "reno" for row in (*traces(2), *traces(3)))


def test_models_broadcast_and_respect_the_window() -> None:
    given = Inputs(
        rtt_s=[0.1, 0.2], t0_s=1.0, loss_indication_ratio=[[0.001], [0.01]], window_pkts=6.0
    )
    for name, model in MODELS.items():
        rates = model(given)
        assert rates.shape == (2, 2)
        if name not in {TD_ONLY, TD_ONLY_EQUATION_19}:
            assert np.all(rates <= 6.0 / np.array([0.1, 0.2]) * (1 + 1e-12))


def test_average_error_is_relative_to_sent_packets() -> None:
    assert relative_errors([90, 130], [100, 100]) == pytest.approx([0.1, 0.3])
