"""Verdicts state only values of the answers, and differences that intervals support."""

import itertools
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tcpcast.answer import Answer, Metric, Status
from tcpcast.answer.finding import Finding
from tcpcast.comparison.compare import compare_all
from tcpcast.comparison.verdict import run_findings, sweep_findings
from tcpcast.report.verdict import value_text, verdict_text
from tcpcast.scenario import Scenario
from verdict_numbers import wrong_numbers

VALUES = st.floats(1e3, 1e10)
WIDTHS = st.floats(0.001, 0.5)
ALIKE = "does not differ significantly"
RATE = "goodput_bps"


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


def verdict_on(answers: list[Answer], asked: Scenario) -> str:
    """Return the verdict, after a check of its numbers and of other orders of the answers."""
    findings = run_findings(compare_all(answers), asked)
    sentence = verdict_text(findings)
    assert not wrong_numbers(sentence, findings), (sentence, findings)
    for other in itertools.permutations(answers):
        assert verdict_text(run_findings(compare_all(list(other)), asked)) == sentence
    return sentence


def of_classes(table: dict[str, list[Metric]]) -> list[Answer]:
    """Return a simulation of the classes a and b with these metrics."""
    columns: dict[str, Any] = {"name": np.array(["a", "b"])}
    for name, metrics in table.items():
        for part, end in (("value", ""), ("low", "_low"), ("high", "_high")):
            values = [getattr(metric, part) for metric in metrics]
            columns[name + end] = np.array([math.nan if v is None else v for v in values])
        warnings = [metric.interval_warning or "" for metric in metrics]
        columns[f"{name}_interval_warning"] = np.array(warnings)
    total = {RATE: Metric(sum(metric.value for metric in table[RATE]))}
    return [Answer("packet", kind="simulation", metrics=total, tables={"by_class": columns})]


@given(st.sampled_from(["bulk", "on-off"]), METRIC, DELAY, st.floats(0.5, 2.0))
def test_verdict_of_a_run_uses_values_of_its_answers(
    kind: str, value: Metric, delay: Metric, ratio: float
) -> None:
    name = RATE if kind == "bulk" else "connection_rate_bps"
    metrics = {name: value, "queue_delay_mean_s": delay}
    simulated = Answer("packet", kind="simulation", metrics=metrics)
    formula = Answer("pftk", metrics={name: Metric(value.value * ratio)})
    bound = Answer("bbr-bound", metrics={name: Metric(value.value * ratio)})
    other = Answer("mathis", metrics={name: Metric(value.value, trusted=False)})
    findings = run_findings(compare_all([formula, simulated]), scenario(kind))
    assert [each.value for each in findings[:2]] == [value, delay]
    assert verdict_on([formula, simulated, bound, other], scenario(kind)).count("pftk") == 1


RATES = st.builds(interval, st.floats(1e5, 4e6), WIDTHS, WIDTHS)


@given(RATES, RATES, st.integers(1, 5), st.integers(1, 5))
def test_classes_differ_only_if_their_intervals_per_flow_are_disjoint(
    a: Metric, b: Metric, flows_a: int, flows_b: int
) -> None:
    asked = scenario("bulk", "a", "b", counts=(flows_a, flows_b))
    sentence = verdict_on(of_classes({RATE: [a, b]}), asked)
    ends = [(m.low / n, m.high / n) for m, n in ((a, flows_a), (b, flows_b)) if m.low and m.high]
    disjoint = ends[0][0] > ends[1][1] or ends[1][0] > ends[0][1]
    assert (ALIKE in sentence) != disjoint
    group = asked.populations[0]
    share = group.packet_bytes / group.payload_bytes / 10e6
    findings = run_findings(compare_all(of_classes({RATE: [a, b]})), asked)
    shares = [each.value.value for each in findings if each.metric == "link_share_ratio"]
    assert sorted(shares) == pytest.approx(sorted([share * a.value, share * b.value]))


def test_an_insignificant_difference_is_followed_by_the_metric_that_differs() -> None:
    same = [interval(2e6, 0.1, 0.1), interval(2.1e6, 0.1, 0.1)]
    loss = [interval(0.01, 0.1, 0.1), interval(0.03, 0.1, 0.1)]
    asked = scenario("bulk", "a", "b")
    sentence = verdict_on(of_classes({RATE: same, "loss_ratio": loss}), asked)
    assert sentence.endswith(
        f"the goodput of each flow {ALIKE} (286 to 300 kbit/s), but the loss ratio is largest with "
        "class b: 3.0 % (2.7 to 3.3), and smallest with class a: 1.0 % (0.9 to 1.1)."
    )
    sentence = verdict_on(of_classes({RATE: same}), asked)
    assert sentence.count("differ") == 1
    assert sentence.endswith(", nor does any other metric.")


@pytest.mark.parametrize("value", [1e6, math.nan])
@pytest.mark.parametrize(
    "other", [interval(2e6, 0.01, 0.01), Metric(2e6, interval_warning="too few files")]
)
def test_classes_without_intervals_are_not_compared(value: float, other: Metric) -> None:
    withheld = Metric(value, interval_warning="the run is too short")
    for metrics in ([withheld, other], [other, withheld]):
        sentence = verdict_on(of_classes({RATE: metrics}), scenario("bulk", "a", "b"))
        assert sentence.endswith("; without reliable intervals, the difference cannot be tested.")


def test_untrusted_values_are_marked_and_bounds_come_last() -> None:
    doubtful = Answer("mathis", metrics={RATE: Metric(2e6, trusted=False)})
    why = "a simulation takes 20 s, so tcpcast runs it only with --packet"
    refused = Answer("packet", status=Status.NOT_APPLICABLE, reason=why)
    assert verdict_on([doubtful, refused], scenario("bulk")) == (
        f"No engine gives a trusted value; {why}; the 7 flows together get 2 Mbit/s (by the "
        "formula mathis, not to be trusted)."
    )
    bound = Answer("bbr-bound", metrics={RATE: Metric(4e6)})
    sentence = verdict_on([doubtful, bound], scenario("bulk"))
    assert sentence == "The 7 flows together get at most 4 Mbit/s (by the formula bbr-bound)."
    assert verdict_on([bound, refused], scenario("bulk")) == f"{sentence[:-1]}; {why}."
    trusted = Answer("pftk", metrics={RATE: Metric(1e6)})
    sentence = verdict_on([doubtful, trusted, bound], scenario("bulk"))
    assert sentence == "The 7 flows together get 1 Mbit/s (by the formula pftk)."
    diverged = Answer("packet", kind="simulation", metrics={RATE: Metric(3e6, trusted=False)})
    assert verdict_on([diverged, trusted], scenario("bulk")) == sentence
    bound.mark_untrusted()  # it is for another stack
    assert verdict_on([bound], scenario("bulk")) == "No engine gives a trusted value."


def test_a_formula_that_is_far_off_is_no_difference_in_per_cent() -> None:
    simulated = Answer("packet", kind="simulation", metrics={RATE: interval(1e6, 0.1, 0.1)})
    for ratio, text in ((1.009, "agrees within 1 %"), (1.011, "differs by +1.1 %")):
        near = Answer("pftk", metrics={RATE: Metric(ratio * 1e6)})
        assert verdict_on([simulated, near], scenario("bulk")).endswith(f"the formula pftk {text}.")
    far = Answer("mathis", metrics={RATE: Metric(1.2e8)})
    sentence = verdict_on([simulated, far], scenario("bulk"))
    assert sentence.endswith(
        "; no formula applies: the value of the closest, mathis, is 120 times as large."
    )


def columns_of(metrics: list[Metric], name: str = RATE) -> dict[str, Any]:
    return {
        "network.rtt": [0.01 * index for index in range(1, len(metrics) + 1)],
        "engine": ["packet"] * len(metrics),
        "untrusted": [[] if metric.trusted else [name] for metric in metrics],
        name: [metric.value for metric in metrics],
        f"{name}_low": [metric.low for metric in metrics],
        f"{name}_high": [metric.high for metric in metrics],
        f"{name}_interval_warning": [metric.interval_warning for metric in metrics],
    }


def verdict_on_sweep(columns: dict[str, Any]) -> str:
    findings = sweep_findings(columns, {"network.rtt": "s"})
    sentence = verdict_text(findings)
    assert not wrong_numbers(sentence, findings), (sentence, findings)
    return sentence


@given(st.lists(METRIC, min_size=2, max_size=6))
def test_ends_of_a_sweep_differ_only_if_their_intervals_are_disjoint(rows: list[Metric]) -> None:
    sentence = verdict_on_sweep(columns_of(rows))
    high, low = (choose(rows, key=lambda row: row.value) for choose in (max, min))
    assert high.low is not None
    assert low.high is not None
    assert (ALIKE in sentence) == (high.low <= low.high)
    if ALIKE not in sentence:
        tied = sum(row.high is not None and row.high >= high.low for row in rows)
        place = f"largest with round-trip time {10 * (rows.index(high) + 1)} ms"
        noun = f"other value{'s' * (tied > 2)}"
        others = f" (not significantly different from {tied - 1} {noun})" if tied > 1 else ""
        assert f"{place}{others}: " in sentence


def test_a_sweep_names_no_single_extreme_within_a_tie() -> None:
    """A full link was "largest with loss 0 %" although a small loss left it as full."""
    rows = [Metric(96.5e6, 96.4e6, 96.6e6), Metric(96.4e6, 96.3e6, 96.5e6)]
    rows += [Metric(40e6, 39e6, 41e6), Metric(96.3e6, interval_warning="drifting")]
    columns = columns_of(rows)
    assert verdict_on_sweep(columns) == (
        "The goodput is largest with round-trip time 10 ms (not significantly different from 1 "
        "other value): 96.5 Mbit/s (96.4 to 96.6), and smallest with round-trip time 30 ms: 40 "
        "Mbit/s (39 to 41)."
    )
    largest, smallest = sweep_findings(columns, {"network.rtt": "s"})
    assert largest.to_json()["tied"] == 2
    assert "tied" not in smallest.to_json()
    columns["engine"] = ["pftk"] * 4
    for end in ("low", "high", "interval_warning"):
        columns[f"{RATE}_{end}"] = [None] * 4
    columns[RATE] = [96.5e6, 40e6, 96.5e6, 96.5e6]  # formulas of a full link
    assert "ms (not significantly different from 2 other values): 96.5" in verdict_on_sweep(columns)


def test_sizes_with_a_handshake_are_judged_by_their_total_time() -> None:
    tables = {"size_pkts": np.array([1, 9]), "completion_time_s": np.array([0.1, 0.2])}
    tables |= {f"{at}": np.array([0.1, 0.2]) for at in ("low", "high")}
    timed = {"total_time_s": np.array([0.2, 0.3])}
    timed |= {f"total_time_s_{at}": np.array([0.2, 0.3]) for at in ("low", "high")}
    asked = Scenario.from_dict(
        {
            "network": {"rtt": "50ms", "bottleneck": {"rate": "10mbit", "buffer": "50pkt"}},
            "traffic": {"kind": "transfers", "size": ["1pkt", "9pkt"], "count": 2},
            "tcp": {"stack": "linux-cubic", "handshake": "tls13"},
        }
    )
    metrics = {"completion_time_s": Metric(0.15), "total_time_s": Metric(0.25)}
    simulated = Answer("packet", metrics, {"by_size": tables | timed}, kind="simulation")
    assert verdict_on([simulated], asked) == (
        "A transfer of 1 packet takes 200 ms on average from the SYN; a transfer of 9 packets takes"
        " 300 ms on average from the SYN."
    )
    formula = {"size_pkts": tables["size_pkts"], "completion_time_s": np.array([0.1, 0.2])}
    short = Answer("short", {"completion_time_s": Metric(0.15)}, {"by_size": formula})
    assert verdict_on([short], asked) == (
        "A transfer of 1 packet takes 100 ms (by the formula short) on average from the first data "
        "packet; a transfer of 9 packets takes 200 ms on average from the first data packet."
    )
    assert verdict_on([short, simulated], asked).startswith("A transfer of 1 packet takes 200 ms")


def test_any_other_metric_is_not_denied_before_a_class_that_differs() -> None:
    """A home stated "nor does any other metric, nor the stall ratio ..., but the goodput"."""
    alike = [Finding("class call", "delay_p95_s", Metric(0.01), "alike"), Finding(claim="alike")]
    film = Finding("class film", "stall_ratio", Metric(0.0), "alike")
    largest = Finding("download", "goodput_bps", Metric(2e6), "largest")
    call = f"The delay p95 of class call {ALIKE} (10 ms)"
    assert verdict_text(alike) == f"{call}, nor does any other metric."
    assert verdict_text([*alike, film, largest]) == (
        f"{call}; the stall ratio of class film {ALIKE} (0 %), but download is largest: 2 Mbit/s."
    )


def test_an_untrusted_row_of_a_sweep_is_named() -> None:
    """A sweep stated "482.7 Mbit/s for all values", and left out a row with 311.4 Mbit/s."""
    rows = [Metric(482.7e6, 482.6e6, 482.8e6)] * 3 + [Metric(311.4e6, trusted=False)]
    assert verdict_on_sweep(columns_of(rows)) == (
        f"The goodput {ALIKE} (483 Mbit/s), nor does any other metric; the goodput with round-trip "
        "time 40 ms is 311 Mbit/s (not to be trusted)."
    )
    text = "Fewer than two values of the sweep can be trusted."
    assert verdict_on_sweep(columns_of(rows[2:] + rows[3:])) == text
    sentence = verdict_on_sweep(columns_of(rows[:2] + rows[3:] * 5))
    assert sentence.count("311") == 3
    assert sentence.endswith("2 more values cannot be trusted.")


def test_transfers_with_a_handshake_are_judged_by_their_total_time() -> None:
    """TLS 1.2 and 1.3 take equal times from the first data packet, but not from the SYN."""
    rows = [Metric(1.2, 1.19, 1.21)] * 2
    columns = columns_of(rows, "completion_time_s")
    total = [Metric(1.676, 1.67, 1.68), Metric(1.540, 1.53, 1.55)]
    columns |= columns_of(total, "total_time_s")
    assert verdict_on_sweep(columns) == (
        "The total time is largest with round-trip time 10 ms: 1.676 s (1.670 to 1.680), and "
        "smallest with round-trip time 20 ms: 1.54 s (1.53 to 1.55)."
    )
    columns["total_time_s"][1] = None  # one run has no handshake
    assert verdict_on_sweep(columns).startswith(f"The completion time {ALIKE} (1.2 s), ")


def test_sweep_without_intervals_states_no_difference() -> None:
    rows = [Metric(1e6, interval_warning="still drifting"), Metric(2e6, 1.9e6, 2.1e6)]
    assert verdict_on_sweep(columns_of(rows)).endswith(
        "; without reliable intervals, the difference cannot be tested."
    )
    equal = verdict_on_sweep(columns_of([Metric(1e6, interval_warning="too few losses")] * 2))
    assert equal.startswith(f"The goodput {ALIKE} (1 Mbit/s)")
    assert "largest" not in equal
    # Values that are printed alike are equal for the reader.
    near = [Metric(x, interval_warning="too few losses") for x in (1.716e6, 1.718e6)]
    assert verdict_on_sweep(columns_of(near)).startswith(f"The goodput {ALIKE} (1.72 Mbit/s)")


def test_sweep_takes_the_most_trusted_engine_and_the_mean_of_replications() -> None:
    rows = columns_of([interval(1e6, 0.1, 0.1), interval(3e6, 0.1, 0.1)] * 2)
    rows["network.rtt"] = [0.01, 0.02] * 2
    rows[RATE] = [0.99e6, 2.99e6, 1.01e6, 3.01e6]
    formula = columns_of([Metric(5e6), Metric(7e6)]) | {"engine": ["pftk"] * 2}
    for parts in ((rows, formula), (formula, rows)):
        columns = {name: parts[0][name] + parts[1][name] for name in rows}
        findings = sweep_findings(columns, {"network.rtt": "s"})
        means = [each.value.value for each in findings if each.place]
        assert means[:2] == [3e6, 1e6]


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        (RATE, Metric(77.8103e6, 75.5075e6, 80.5292e6), "78 Mbit/s (76 to 81)"),
        (RATE, Metric(77.8103e6), "77.8 Mbit/s"),
        (RATE, Metric(0.0, 0.0, 0.0), "nothing"),
        (
            RATE,
            Metric(2e6, interval_warning="too few losses: 3"),
            "2 Mbit/s (no interval: too few losses)",
        ),
        (RATE, Metric(2e6, interval_warning="no interval"), "2 Mbit/s (no interval)"),
        ("on_time_s", Metric(math.nan, at_least=2.0), "at least 2 s"),
        ("on_time_s", Metric(math.nan, interval_warning="too few: 3"), "unknown (too few)"),
        ("on_time_s", Metric(2.0, trusted=False), "2 s (not to be trusted)"),
        ("loss_ratio", Metric(1.5e-5), "0.0015 %"),
        ("buffer", Metric(93, 88, 98, unit="packet"), "93 packets (88 to 98)"),
        ("buffer", Metric(math.nan, 80, 120, unit="packet"), "between 80 and 120 packets"),
        ("flows", Metric(1, unit="flows"), "1 flow"),
    ],
)
def test_digits_follow_the_interval(metric: str, value: Metric, text: str) -> None:
    finding = Finding("the value", metric, value)
    assert value_text(finding) == text
    assert not re.search(r"nan|inf|None", verdict_text([finding]))
