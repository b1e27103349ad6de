"""Text of values: units, digits, intervals and differences."""

import pytest
from tcpcast.answer import UNITS, Metric
from tcpcast.comparison.compare import Difference
from tcpcast.report.quantity import (
    Scale,
    amount_text,
    difference_text,
    interval_text,
    metric_label,
    scale_for_metric,
    scale_for_unit,
    value_text,
)
from tcpcast.report.summary import describe_scenario
from tcpcast.scenario import load


@pytest.mark.parametrize(
    ("metric", "size", "scale"),
    [
        ("connection_rate_bps", 999.0, Scale(1.0, "bit/s")),
        ("connection_rate_bps", 154.9e3, Scale(1e3, "kbit/s")),
        ("goodput_bps", 1e9, Scale(1e9, "Gbit/s")),
        ("goodput_bps", 4e12, Scale(1e9, "Gbit/s")),
        ("rtt_mean_s", 0.05, Scale(1e-3, "ms")),
        ("rtt_mean_s", 1e-3, Scale(1e-3, "ms")),
        ("rtt_mean_s", 1.5, Scale(1.0, "s")),
        ("rtt_mean_s", 0.0, Scale(1.0, "s")),
        ("loss_ratio", 1e-6, Scale(0.01, "%")),
        ("jain_index", 0.9, Scale(1.0, "")),
        ("queue_mean_pkts", 3e4, Scale(1.0, "pkt")),
        ("send_rate_pps", 3e4, Scale(1.0, "pkt/s")),
    ],
)
def test_unit_depends_on_magnitude(metric: str, size: float, scale: Scale) -> None:
    assert scale_for_metric(metric, size) == scale


@pytest.mark.parametrize(
    ("figure", "value", "interval"),
    [
        (Metric(158.2131, 156.9, 159.5), "158.2", "± 1.3"),
        (Metric(158.2131, 145.0, 171.4), "158", "± 13"),
        (Metric(158.2131, 158.2131 - 1e-7, 158.2131 + 1e-7), "158.213", "± <0.001"),
        (Metric(9.942, 9.942 - 1.8e-7, 9.942 + 1.8e-7), "9.94200", "± <0.00001"),
        (Metric(9.942, 9.942 - 1.8e-5, 9.942 + 1.8e-5), "9.94200", "± 0.00002"),
        (Metric(12034567.0, 12034566.9, 12034567.1), "12,034,567", "± <1"),
        (Metric(1.234e-5, 1.224e-5, 1.244e-5), "1.23e-05", "± 1e-07"),
        (Metric(1.234e-5, 1.234e-5 - 1e-12, 1.234e-5 + 1e-12), "1.23e-05", "± <1e-07"),
        (Metric(4.664, 4.590, 4.772), "4.664", "4.590–4.772"),
        (Metric(158.2131), "158.2", ""),
        (Metric(12034.4, 11900.0, 12168.8), "12,034", "± 134"),
        (Metric(150.0), "150", ""),
        (Metric(0.0), "0", ""),
        (Metric(0.0, 0.0, 0.00014), "0", "0–0.00014"),
        (Metric(0.5, 0.5, 0.5), "0.5000", "± 0"),
        (Metric(0.00001234), "1.23e-05", ""),
        (Metric(0.1, 0.0, 0.2), "0.10", "± 0.10"),
        (Metric(float("nan")), "–", ""),
        (Metric(1.0, float("nan"), float("nan")), "1", ""),
    ],
)
def test_digits_of_value_depend_on_interval(figure: Metric, value: str, interval: str) -> None:
    scale = Scale(1.0, "")
    assert (value_text(figure, scale), interval_text(figure, scale)) == (value, interval)


@pytest.mark.parametrize(
    ("difference", "text"),
    [
        (Difference(0.021, in_percentage_points=False), "+2.1 %"),
        (Difference(-0.021, in_percentage_points=False), "-2.1 %"),
        (Difference(0.0087, in_percentage_points=True), "+0.9 pp"),
        (Difference(0.0004, in_percentage_points=True), "+0.04 pp"),
        (Difference(0.0, in_percentage_points=False), "0 %"),
        (Difference(-1e-6, in_percentage_points=True), "0 pp"),
        (Difference(3.4567, in_percentage_points=False), "+346 %"),
        (None, ""),
    ],
)
def test_difference_text_has_percent_or_percentage_points(
    difference: Difference | None, text: str
) -> None:
    assert difference_text(difference) == text


def test_metrics_have_distinct_labels() -> None:
    labels = {name: metric_label(name) for name in UNITS}
    assert labels["rtt_mean_s"] == "mean RTT"
    assert labels["queue_max_pkts"] == "max queue"
    assert labels["on_time_s"] == "ON time"
    assert labels["w_at_loss_mean_pkts"] == "mean window at loss"
    assert labels["jain_index"] == "Jain index"
    # Goodput in packets and goodput in bits share a label; their units differ.
    assert len(set(labels.values())) == len(UNITS) - 1


def test_amounts_have_readable_units() -> None:
    assert scale_for_unit("bit/s", 1e6).text(1_234_567) == "1.235 Mbit/s"
    assert amount_text(10e6, "bit/s") == "10 Mbit/s"
    assert amount_text(0.05, "s") == "50 ms"
    assert amount_text(float("inf"), "bit/s") == "unlimited"


def test_large_amounts_have_no_exponent() -> None:
    assert amount_text(1e16, "bit/s") == "10,000,000 Gbit/s"
    assert amount_text(86400.0, "s") == "86,400 s"
    large = load("local-loop", changes={"network.bottleneck.buffer": "2000000pkt"})
    assert "buffer 2,000,000 packets" in describe_scenario(large)
