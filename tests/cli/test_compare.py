"""Comparison of answers: the reference, the differences, and values that are not compared."""

import itertools

import numpy as np
import pytest
from tcpcast.answer import Answer, Metric, Status
from tcpcast.comparison.compare import (
    Comparison,
    ComparisonRow,
    compare_classes,
    compare_goodput_percentiles,
    compare_metrics,
)

from cli.made_up import calculated, simulated, with_classes


def row(comparison: Comparison, metric: str) -> ComparisonRow:
    return next(r for r in comparison.rows if r.metric == metric)


def test_simulated_answer_is_reference_at_any_position() -> None:
    for answers in ([calculated(), simulated()], [simulated(), calculated()]):
        comparison = compare_metrics(answers)
        assert comparison.reference is not None
        assert comparison.engines[comparison.reference] == "packet"


def test_exact_simulation_is_reference_for_other_simulations() -> None:
    other = simulated()
    other.engine = "mean-field"
    assert compare_metrics([simulated(), other, calculated()]).reference == 0
    assert compare_metrics([other, calculated()]).reference == 0


def test_stopped_engine_is_left_out_of_file_and_class_tables() -> None:
    complete, withheld = with_classes(simulated()), with_classes(simulated())
    shares = {"share": [0.95], "goodput_bps": [2e5], "low": [1e5], "high": [3e5]}
    for answer in (complete, withheld):
        answer.tables["file_goodput"] = {name: np.array(v) for name, v in shares.items()}
    withheld.engine, withheld.metrics = "fixed-point", {}
    assert compare_goodput_percentiles([complete, withheld]).engines == ("packet", "fixed-point")
    assert compare_classes([complete, withheld])["near"].engines == ("packet", "fixed-point")
    withheld.mark_incomplete("no fixed point was reached")
    assert compare_goodput_percentiles([complete, withheld]).engines == ("packet",)
    assert compare_classes([complete, withheld])["near"].engines == ("packet",)


def test_most_trusted_formula_is_reference_in_any_order() -> None:
    formulas = [
        Answer("pftk", metrics={"goodput_bps": Metric(1.0)}),
        Answer("parallel", metrics={"goodput_bps": Metric(2.0)}),
        Answer("bbr-bound", metrics={"goodput_bps": Metric(3.0)}),
        Answer("td-only", metrics={"goodput_bps": Metric(4.0, trusted=False)}),
    ]
    for answers in itertools.permutations(formulas):
        comparison = compare_metrics(answers)
        assert comparison.reference is not None
        order = [comparison.engines[index] for index in comparison.order]
        assert order == ["pftk", "parallel", "bbr-bound", "td-only"]
        (row,) = comparison.rows
        amounts = {d.amount for d in row.differences if d is not None}
        assert amounts == {1.0, 2.0}


def test_difference_is_relative_or_in_points_for_ratios() -> None:
    comparison = compare_metrics([calculated(), simulated()])
    rate = row(comparison, "connection_rate_bps").differences
    assert rate[1] is None
    assert rate[0] is not None
    assert not rate[0].in_percentage_points
    assert rate[0].amount == pytest.approx((154890.63 - 158213.1) / 158213.1)
    busy = row(comparison, "utilisation").differences[0]
    assert busy is not None
    assert busy.in_percentage_points
    assert busy.amount == pytest.approx(0.9999 - 0.9912)
    fairness = row(comparison, "jain_index").differences[0]
    assert fairness is not None
    assert not fairness.in_percentage_points


def test_untrusted_values_are_not_compared() -> None:
    comparison = compare_metrics([calculated(), simulated()])
    assert row(comparison, "loss_ratio").differences == (None, None)
    assert row(comparison, "queue_mean_pkts").differences == (None, None)


def test_single_answer_has_no_reference() -> None:
    comparison = compare_metrics([simulated()])
    assert comparison.reference is None
    assert comparison.compared_columns == ()
    assert all(r.differences == (None,) for r in comparison.rows)


@pytest.mark.parametrize("reference_value", [0.0, float("nan"), float("inf")])
def test_difference_to_zero_or_nan_is_none(reference_value: float) -> None:
    answers = [
        Answer("a", metrics={"on_time_s": Metric(2.0)}),
        Answer("b", kind="simulation", metrics={"on_time_s": Metric(reference_value)}),
    ]
    assert compare_metrics(answers).rows[0].differences == (None, None)


def test_inapplicable_engines_have_no_column() -> None:
    refused = Answer("pftk", status=Status.NOT_APPLICABLE, reason="it needs bulk flows")
    assert compare_metrics([calculated(), refused]).engines == ("engset",)


def test_classes_are_compared_for_engines_with_class_table() -> None:
    by_class = compare_classes([calculated(), with_classes(simulated())])
    assert list(by_class) == ["near", "far"]
    assert by_class["near"].engines == ("packet",)
    metric = row(by_class["far"], "connection_rate_bps").metrics[0]
    assert metric == Metric(1.0e5)


def test_class_without_files_has_no_completion_time() -> None:
    answer = with_classes(simulated())
    nothing = np.array([2.0, np.nan])
    answer.tables["by_class"] |= {"completion_time_s": nothing, "mean_size_pkts": nothing}
    near, far = compare_classes([answer]).values()
    assert row(near, "completion_time_s").metrics[0] == Metric(2.0)
    assert "completion_time_s" not in [r.metric for r in far.rows]


def test_class_has_intervals_and_trust_of_its_engine() -> None:
    answer = with_classes(simulated())
    answer.tables["by_class"]["loss_ratio_low"] = np.array([0.03, 0.04])
    answer.tables["by_class"]["loss_ratio_high"] = np.array([0.05, 0.06])
    answer.metrics["loss_ratio"] = Metric(0.047, 0.046, 0.048, trusted=False)
    metric = row(compare_classes([answer])["near"], "loss_ratio").metrics[0]
    assert metric == Metric(0.04, 0.03, 0.05, trusted=False)


@pytest.mark.parametrize(("files", "lacking"), [(True, "too few files"), (False, "too few values")])
def test_class_without_interval_gives_reason(files: bool, lacking: str) -> None:
    answer = with_classes(simulated())
    table = answer.tables["by_class"]
    if not files:
        del table["connection_rate_bps"]
    table["loss_ratio_low"] = table["loss_ratio_high"] = np.full(2, np.nan)
    metric = row(compare_classes([answer])["far"], "loss_ratio").metrics[0]
    assert metric is not None
    assert metric.missing_interval == lacking


def test_class_interval_warning_is_used_as_reason() -> None:
    answer = with_classes(simulated())
    table = answer.tables["by_class"]
    table["loss_ratio_low"] = table["loss_ratio_high"] = np.full(2, np.nan)
    table["loss_ratio_interval_warning"] = np.array(["", "too few losses: 3, 10 are needed"])
    near, far = compare_classes([answer]).values()
    assert row(near, "loss_ratio").metrics[0] == Metric(0.04)  # no warning
    assert row(far, "loss_ratio").metrics[0] == Metric(
        0.05, interval_warning=str(table["loss_ratio_interval_warning"][1])
    )


def test_single_class_has_no_class_table() -> None:
    answer = simulated()
    answer.tables["by_class"] = {"name": np.array(["all"]), "loss_ratio": np.array([0.1])}
    assert compare_classes([answer]) == {}
