"""The verdict of a run states only values of its tables and differences that intervals support."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tcpcast.answer import Answer, Metric
from tcpcast.compare import compare_all
from tcpcast.report.headline import MIN_RATE_RATIO, run_verdict, sweep_verdict
from tcpcast.report.quantity import scale_for_metric
from tcpcast.report.run import answer_tables
from tcpcast.report.text import plain_text
from tcpcast.scenario import Scenario

NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*\d|(?<![\w.])\d")
VALUES = st.floats(1e3, 1e10)
WIDTHS = st.floats(0.001, 0.5)


def scenario(kind: str, *names: str, counts: tuple[int, ...] = (7, 7)) -> Scenario:
    tables: dict[str, Any] = {
        "network": {"rtt": "50ms", "bottleneck": {"rate": "10mbit", "buffer": "50pkt"}},
        "run": {"duration": "60s"},
    }
    if kind == "bulk":
        traffic: dict[str, Any] = {"kind": "bulk", "flows": 7}
    else:
        size, off = ({"distribution": "exponential", "mean": m} for m in ("12pkt", "1s"))
        traffic = {"kind": "on-off", "sources": 7, "off": off, "size": size}
    count = traffic.pop("flows" if kind == "bulk" else "sources")
    key = "flows" if kind == "bulk" else "sources"
    classes = [{"name": n, "traffic": {key: c}} for n, c in zip(names, counts, strict=False)]
    tables["traffic"] = traffic if names else traffic | {key: count}
    return Scenario.from_dict(tables | ({"class": classes} if names else {}))


def interval(value: float, below: float, above: float) -> Metric:
    return Metric(value, value * (1 - below), value * (1 + above))


METRIC = st.builds(interval, VALUES, WIDTHS, WIDTHS)
DELAY = st.builds(interval, st.floats(1e-5, 1.0), WIDTHS, WIDTHS)


def numbers_of(sentence: str) -> set[str]:
    return {number.rstrip(".,") for number in NUMBER.findall(sentence)} - {"7"}


@given(st.sampled_from(["bulk", "on-off"]), METRIC, DELAY, st.floats(0.5, 2.0))
def test_verdict_of_a_run_uses_values_of_its_table(
    kind: str, value: Metric, delay: Metric, ratio: float
) -> None:
    run_scenario = scenario(kind)
    name = "goodput_bps" if kind == "bulk" else "connection_rate_bps"
    simulated = Answer(
        "packet", kind="simulation", metrics={name: value, "queue_delay_mean_s": delay}
    )
    formula = Answer("pftk", metrics={name: Metric(value.value * ratio)})
    compared = compare_all([formula, simulated])
    sentence = run_verdict(compared, run_scenario)
    shown = plain_text([*answer_tables(compared, run_scenario)])
    cells = {number.rstrip(".,") for number in NUMBER.findall(shown.replace("–", " "))}
    assert sentence.count("pftk") == 1
    assert numbers_of(sentence) <= cells, (sentence, shown)


@given(METRIC, METRIC)
def test_classes_differ_only_if_their_intervals_are_disjoint(a: Metric, b: Metric) -> None:
    run_scenario = scenario("bulk", "a", "b")
    columns = {
        "name": np.array(["a", "b"]),
        "goodput_bps": np.array([a.value, b.value]),
        "goodput_bps_low": np.array([a.low, b.low]),
        "goodput_bps_high": np.array([a.high, b.high]),
    }
    total = Metric(a.value + b.value)
    answer = Answer(
        "packet", kind="simulation", metrics={"goodput_bps": total}, tables={"by_class": columns}
    )
    compared = compare_all([answer])
    sentence = run_verdict(compared, run_scenario)
    assert None not in (a.low, a.high, b.low, b.high)
    disjoint = a.low > b.high or b.low > a.high  # type: ignore[operator]
    assert ("the difference is not significant" in sentence) != disjoint
    if " of the link" in sentence:
        return  # the shares are checked below
    shown = plain_text([*answer_tables(compared, run_scenario)])
    cells = {number.rstrip(".,") for number in NUMBER.findall(shown.replace("–", " "))}
    assert numbers_of(sentence) <= cells, (sentence, shown)


SHARE = re.compile(r"class (\w)(?:,[^%]*?)? (?:takes|gets) ([\d.,]+) % \((.*?)\)", re.IGNORECASE)
LOW_RATES = st.builds(interval, st.floats(1e5, 4e6), WIDTHS, WIDTHS)


def assert_rounded(shown: str, exact: float) -> None:
    decimals = len(shown.partition(".")[2])
    assert abs(float(shown) - exact) <= 0.5001 * 10.0**-decimals, (shown, exact)


@given(LOW_RATES, LOW_RATES, st.integers(1, 5), st.integers(1, 5))
def test_shares_of_the_link_follow_from_the_goodput_of_the_table(
    a: Metric, b: Metric, flows_a: int, flows_b: int
) -> None:
    """Shares are stated exactly if the intervals of the goodput per flow are disjoint."""
    asked = scenario("bulk", "a", "b", counts=(flows_a, flows_b))
    named = {"a": (a, flows_a), "b": (b, flows_b)}
    columns = {"name": np.array(["a", "b"])} | {
        f"goodput_bps{end}": np.array([getattr(m, name) for m, _ in named.values()])
        for end, name in (("", "value"), ("_low", "low"), ("_high", "high"))
    }
    total = {"goodput_bps": Metric(a.value + b.value)}
    answer = Answer("packet", kind="simulation", metrics=total, tables={"by_class": columns})
    sentence = run_verdict(compare_all([answer]), asked)
    lows, highs = (
        {n: getattr(m, end) / count for n, (m, count) in named.items()} for end in ("low", "high")
    )
    winner = next(
        (n for n, o in (("a", "b"), ("b", "a")) if lows[n] > highs[o]),
        None,
    )
    assert (" of the link" in sentence) == (winner is not None), sentence
    if winner is None:
        return
    (other,) = named.keys() - {winner}
    verb = "takes" if lows[winner] > MIN_RATE_RATIO * highs[other] else "gets"
    assert sentence.startswith(f"Class {winner} {verb} "), sentence
    assert ("of the link (buffer 50 packets) with" in sentence) == (flows_a != flows_b), sentence
    group = asked.populations[0]
    percent = 100 * group.packet_bytes / group.payload_bytes / 10e6
    stated = SHARE.findall(sentence)
    assert len(stated) == 2, sentence
    for name, value, ends in stated:
        metric, _ = named[name]
        assert metric.low is not None
        assert metric.high is not None
        assert_rounded(value, percent * metric.value)
        half = (metric.high - metric.low) / 2
        if "±" in ends:
            assert_rounded(ends.removeprefix("± "), percent * half)
        else:
            low, high = ends.split(" to ")
            assert_rounded(low, percent * metric.low)
            assert_rounded(high, percent * metric.high)


@given(st.lists(METRIC, min_size=2, max_size=6))
def test_ends_of_a_sweep_differ_only_if_their_intervals_are_disjoint(rows: list[Metric]) -> None:
    table: dict[str, Any] = {
        "network.rtt": [0.01 * index for index in range(1, len(rows) + 1)],
        "engine": ["packet"] * len(rows),
        "goodput_bps": [row.value for row in rows],
        "goodput_bps_low": [row.low for row in rows],
        "goodput_bps_high": [row.high for row in rows],
    }
    sentence = sweep_verdict(table, {"network.rtt": "s"})
    high = max(rows, key=lambda row: row.value)
    low = min(rows, key=lambda row: row.value)
    if " for all values of rtt." in sentence:
        scale = scale_for_metric("goodput_bps", high.value)
        assert scale.text(high.value) == scale.text(low.value)
        return
    assert f"(rtt = {10 * (rows.index(high) + 1)} ms)." in sentence
    assert high.low is not None
    assert low.high is not None
    assert ("does not differ" in sentence) == (high.low <= low.high)


def two_classes(first: Metric, second: Metric) -> str:
    """Return the verdict on a simulation of two classes."""
    both = [first, second]
    columns = {"name": np.array(["a", "b"])} | {
        f"goodput_bps{end}": np.array([np.nan if v is None else v for v in values])
        for end, values in (
            ("", [m.value for m in both]),
            ("_low", [m.low for m in both]),
            ("_high", [m.high for m in both]),
        )
    }
    columns["goodput_bps_interval_warning"] = np.array([m.interval_warning or "" for m in both])
    total = {"goodput_bps": Metric(6e6)}
    answer = Answer("packet", kind="simulation", metrics=total, tables={"by_class": columns})
    return run_verdict(compare_all([answer]), scenario("bulk", "a", "b"))


@pytest.mark.parametrize("value", [1e6, math.nan])
@pytest.mark.parametrize(
    "other", [interval(2e6, 0.01, 0.01), Metric(2e6, interval_warning="too few files")]
)
def test_classes_without_intervals_are_not_compared(value: float, other: Metric) -> None:
    withheld = Metric(value, interval_warning="the run is too short")
    for sentence in (two_classes(withheld, other), two_classes(other, withheld)):
        assert "not significant" not in sentence
        assert sentence.endswith("; without reliable intervals, the difference cannot be tested.")


def test_sweep_without_intervals_states_no_difference() -> None:
    table: dict[str, Any] = {
        "network.rtt": [0.01, 0.02],
        "engine": ["packet"] * 2,
        "goodput_bps": [1e6, 2e6],
        "goodput_bps_low": [None, 1.9e6],
        "goodput_bps_high": [None, 2.1e6],
        "goodput_bps_interval_warning": ["still drifting: make the run longer", None],
    }
    assert sweep_verdict(table, {"network.rtt": "s"}) == (
        "The goodput lies between 1 Mbit/s (rtt = 10 ms) and 2 Mbit/s (rtt = 20 ms), without "
        "reliable intervals."
    )


def test_shares_need_intervals() -> None:
    columns = {"name": np.array(["a", "b"]), "goodput_bps": np.array([1e6, 5e6])}
    total = {"goodput_bps": Metric(6e6)}
    answer = Answer("packet", kind="simulation", metrics=total, tables={"by_class": columns})
    assert "of the link" not in run_verdict(compare_all([answer]), scenario("bulk", "a", "b"))


def test_untrusted_values_are_marked() -> None:
    answer = Answer("pftk", metrics={"goodput_bps": Metric(1e6, trusted=False)})
    assert "not to be trusted" in run_verdict(compare_all([answer]), scenario("bulk"))


def test_values_of_formulas_are_marked_and_trusted_ones_preferred() -> None:
    doubtful = Answer("mathis", metrics={"goodput_bps": Metric(2e6, trusted=False)})
    trusted = Answer("pftk", metrics={"goodput_bps": Metric(1e6)})
    sentence = run_verdict(compare_all([doubtful, trusted]), scenario("bulk"))
    assert sentence.startswith("The 7 flows together get 1.000 Mbit/s (by the formula pftk)")
    bound = Answer("bbr-bound", metrics={"goodput_bps": Metric(1e6)})
    sentence = run_verdict(compare_all([bound]), scenario("bulk"))
    assert sentence == "The 7 flows together get at most 1.000 Mbit/s (by the formula bbr-bound)."
