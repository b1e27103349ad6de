"""The verdict: findings as one sentence, for terminal, page, HTML, Markdown, JSON and figures."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from tcpcast.answer import Metric
from tcpcast.answer.finding import NO_INTERVAL
from tcpcast.answer.limit_names import limit_name_with_article
from tcpcast.comparison.compare import Difference, is_percentage
from tcpcast.quantity.readable_units import count_text
from tcpcast.quantity.units import digits
from tcpcast.report.key_labels import key_label
from tcpcast.report.quantity import (
    amount_text,
    difference_text,
    is_count,
    metric_label,
    scale_for_unit,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.answer.finding import Finding

MAX_DIGITS, FORMULA_DIGITS = 4, 3
"""Maximum number of significant digits of a value, and their number without an interval."""

MIN_STATED_DIFFERENCE = 0.01
"""Smallest relative difference of a formula from the basis that a verdict states as a number."""

MAX_STATED_DIFFERENCE = 1.0
"""Largest excess of a formula over the basis that a verdict states as a difference."""

_PREDICATES = {
    "connection_rate_bps": "gets {} while a file is loading",
    "goodput_bps": "gets {}",
    "link_share_ratio": "gets {} of the link",
    "completion_time_s": "takes {} on average",
    "total_time_s": "takes {} on average from the SYN",
    "queue_delay_mean_s": "adds {} on average",
    "latency_p95_s": "takes at most {} in 95 % of cases",
    "page_time_p95_s": "takes at most {} in 95 % of cases",
    "delay_p95_s": "takes at most {} in 95 % of cases",
    "stall_ratio": "stalls {} of the time",
    "throughput_bps": "at {}",
    "send_rate_bps": "at {} (including retransmissions)",
}
"""Predicates of metrics; the value of any other quantity follows "is"."""

_CONJUNCTIONS = {"largest": ", but ", "smallest": ", and "}


def verdict_text(findings: Sequence[Finding], *, intervals: bool = True) -> str:
    """Return findings as one sentence; "" without findings.

    Parameters
    ----------
    findings
        In the order of the sentence.
    intervals
        Include the intervals of values; figures draw them instead.
    """
    sentence = ""
    # "Any other metric" of a class would deny the metrics of the classes that follow.
    findings = [
        finding
        for index, finding in enumerate(findings)
        if not (
            _is_any_other(finding)
            and any(later.claim in {"alike", "largest"} for later in findings[index + 1 :])
        )
    ]
    for before, finding in zip([None, *findings], findings, strict=False):
        # The formula of several values is named once.
        named = replace(finding, basis="") if before and before.basis == finding.basis else finding
        joint = "; " if sentence else ""
        if before and before.claim in {"alike", "largest"}:
            joint = ", nor " if _is_any_other(finding) else _CONJUNCTIONS.get(finding.claim, joint)
        sentence += joint + _clause(named, intervals=intervals)
    return sentence and f"{sentence[0].upper()}{sentence[1:]}."


def _is_any_other(finding: Finding) -> bool:
    return finding.claim == "alike" and not finding.metric


def _clause(finding: Finding, *, intervals: bool) -> str:
    value = value_text(finding, intervals=intervals)
    subject = finding.subject
    if finding.place or finding.claim == "alike":
        subject = f"the {metric_label(finding.metric)}" + (f" of {subject}" if subject else "")
    place = _place_text(finding)
    match finding.claim:
        case "largest":
            text = f"{subject} is largest{place}: {value}".removesuffix(": unknown")
        case "smallest":
            text = f"smallest{place}: {value}"
        case "difference":
            text = _difference_text(finding, intervals=intervals)
        case "alike" if finding.metric:
            sign = f"{finding.evidence}: " if finding.evidence else ""
            return f"{subject} does not differ significantly ({sign}{value})"
        case "alike":
            text = "does any other metric"
        case "untested":
            text = "without reliable intervals, the difference cannot be tested"
        case "error":
            text = _error_text(finding)
        case "text":
            text = subject
        case _:
            text = f"{subject}{place} {_predicate(finding).format(value)}"
    limit = f", limited by {limit_name_with_article(finding.limit)}" if finding.limit else ""
    action = f"; {finding.action}" if finding.action else ""
    return f"{text}{limit}{finding.evidence}{action}"


def _difference_text(finding: Finding, *, intervals: bool) -> str:
    """Return ``with B instead of A, the page time p95 is 0.31 s (0.25 to 0.35) shorter``."""
    value, low, high = (finding.value.value, finding.value.low or 0.0, finding.value.high or 0.0)
    larger, smaller = ("longer", "shorter") if finding.unit == "s" else ("larger", "smaller")
    near, far = sorted((abs(low), abs(high)))
    size = replace(finding, value=Metric(abs(value), near, far))
    shown = value_text(size, intervals=intervals)
    word = larger if value > 0 else smaller
    return f"{finding.subject}, the {metric_label(finding.metric)} is {shown} {word}"


def _place_text(finding: Finding) -> str:
    """Return `` with loss 1 %, TCP stack linux-bbr``, or "".

    In a tie, it is one of several places: `` with loss 1 % (not significantly different from 2
    other values)``.
    """
    keys = [key for key, *_ in finding.place]
    labels = [key_label(key) for key in keys]
    texts = [
        amount_text(value, unit) if isinstance(value, float) or unit else str(value)
        for _, value, unit in finding.place
    ]
    names = labels if len(set(labels)) == len(labels) else keys
    pairs = ", ".join(f"{name} {text}" for name, text in zip(names, texts, strict=True))
    if pairs and finding.tied > 1:
        noun = "other value" if len(keys) == 1 else "other combination"
        others = count_text(finding.tied - 1, noun)
        return f" with {pairs} (not significantly different from {others})"
    return pairs and f" with {pairs}"


def _predicate(finding: Finding) -> str:
    value = finding.value
    if finding.metric not in _PREDICATES or finding.place:
        is_bracketed = math.isnan(value.value) and value.low is not None is not value.high
        return "lies {}" if is_bracketed else "is {}"
    verb, _, rest = _PREDICATES[finding.metric].partition(" ")
    return f"{verb.removesuffix('s') if finding.count > 1 else verb} {rest}"


def _error_text(finding: Finding) -> str:
    error = finding.value.value
    if error > MAX_STATED_DIFFERENCE and not is_percentage(finding.metric):
        times = f"{digits(1 + error, 2)} times as large"
        return f"no formula applies: the value of the closest, {finding.subject}, is {times}"
    difference = Difference(error, is_percentage(finding.metric))
    if abs(error) < MIN_STATED_DIFFERENCE and not difference.in_percentage_points:
        return f"the formula {finding.subject} agrees within {100 * MIN_STATED_DIFFERENCE:g} %"
    return f"the formula {finding.subject} differs by {difference_text(difference)}"


def value_text(finding: Finding, *, intervals: bool = True) -> str:
    """Return the value of a finding with its unit, interval and basis.

    The interval determines the digits: "78 Mbit/s (75 to 81)".
    """
    metric = finding.value
    ends = [end for end in (metric.low, metric.high) if end is not None and math.isfinite(end)]
    ends = ends if len(ends) == 2 else []
    known = [v for v in (metric.value, metric.at_least) if v is not None and math.isfinite(v)]
    numbers, unit = _number_texts([*known[:1], *ends], finding, *(ends if known else ()))
    span = " to ".join(dict.fromkeys(numbers[-2:])) if ends else ""
    remarks = []
    if known:
        shown = f"{numbers[0]} {unit}".rstrip()
        if metric.value == 0 and not metric.high and finding.unit == "bit/s":
            shown = "nothing"
        if not math.isfinite(metric.value):
            shown = f"at least {shown}"
        if intervals and metric.trusted:
            remarks += [span if len(set(numbers)) > 1 else _missing_interval_text(metric)]
    elif ends:
        joined = f"{span} {unit}".rstrip()
        shown = joined if finding.claim == "alike" else f"between {joined.replace(' to ', ' and ')}"
    else:
        shown = "unknown"
        remarks += [metric.missing_interval or ""]
    is_named = finding.kind == "formula" and finding.basis
    remarks += [f"by the formula {finding.basis}" if is_named else ""]
    remarks += ["" if metric.trusted else "not to be trusted"]
    shown, remark = f"{finding.bound} {shown}".lstrip(), ", ".join(filter(None, remarks))
    return f"{shown} ({remark})" if remark else shown


def _missing_interval_text(metric: Metric) -> str:
    """Return ``no interval: too few samples``; "" if the value needs no interval."""
    reason = metric.missing_interval or ""
    return f"no interval: {reason}" if reason not in ("", NO_INTERVAL) else reason


def _number_texts(
    values: Sequence[float], finding: Finding, low: float = 0.0, high: float = 0.0
) -> tuple[list[str], str]:
    """Return values in one readable unit, and this unit; the interval determines the digits."""
    largest = max(map(abs, values), default=0.0)
    unit = "ratio" if is_percentage(finding.metric) else finding.unit
    scale = scale_for_unit(unit, abs(values[0]) if high > low else largest)
    if is_count(unit) and all(value == int(value) for value in values):
        noun = count_text(largest, finding.unit.removesuffix("s")).partition(" ")[2]
        return [f"{value:,.0f}" for value in values], noun
    if not high > low:
        return [digits(float(f"{v:.{FORMULA_DIGITS}g}") / scale.factor) for v in values], scale.unit
    most = MAX_DIGITS - 1 - math.floor(math.log10(largest / scale.factor))
    half = (high - low) / 2 / scale.factor
    decimals = max(0, min(-math.floor(math.log10(half)), most))
    return [f"{value / scale.factor:,.{decimals}f}" for value in values], scale.unit
