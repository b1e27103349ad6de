"""The verdict: findings as one sentence, for terminal, page, HTML, Markdown, JSON and figures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.compare import Difference, is_percentage
from tcpcast.limit_names import limit_name_with_article
from tcpcast.readable_units import count_text
from tcpcast.report.quantity import difference_text, is_count, metric_label, scale_for_unit
from tcpcast.units import digits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tcpcast.finding import Finding

MAX_DIGITS, FORMULA_DIGITS = 4, 3
"""Maximum number of significant digits of a value, and their number without an interval."""

MAX_STATED_DIFFERENCE = 1.0
"""Largest excess of a formula over the basis that a verdict states as a difference."""

_PREDICATES = {
    "connection_rate_bps": "gets {} while a file is loading",
    "goodput_bps": "gets {}",
    "link_share": "gets {} of the link",
    "completion_time_s": "takes {} on average",
    "total_time_s": "takes {} on average from the SYN",
    "queue_delay_mean_s": "adds {} on average",
    "throughput_bps": "at {}",
}
"""Predicates of metrics; the value of any other quantity follows "is"."""


def verdict_text(findings: Iterable[Finding], *, intervals: bool = True) -> str:
    """Return findings as one sentence; "" without findings.

    Parameters
    ----------
    findings
        In the order of the sentence.
    intervals
        Include the intervals of values; figures draw them instead.
    """
    sentence = "; ".join(_clause(finding, intervals=intervals) for finding in findings)
    return sentence and f"{sentence[0].upper()}{sentence[1:]}."


def _clause(finding: Finding, *, intervals: bool) -> str:
    value = value_text(finding, intervals=intervals)
    place = ", ".join(f"{key} = {text}" for key, text in finding.place)
    match finding.claim:
        case "largest" | "smallest" if place:
            text = f"{finding.subject} is {finding.claim} at {place}: {value}"
        case "alike":
            text = (
                f"{finding.subject} does not differ significantly"
                if finding.metric
                else "nothing differs significantly"
            )
        case "untested":
            text = "without reliable intervals, the difference cannot be tested"
        case "differs":
            text = (
                f"but {metric_label(finding.metric)} differs: {value} ({place or finding.subject})"
            )
        case "error":
            text = _error_text(finding)
        case "met":
            text = f"{finding.subject} is met already: {metric_label(finding.metric)} is {value}"
        case "text":
            text = finding.subject
        case _:
            text = f"{finding.subject} {_predicate(finding).format(value)}"
            text += f" at {place}" if place else ""
    limit = f", limited by {limit_name_with_article(finding.limit)}" if finding.limit else ""
    action = f"; {finding.action}" if finding.action else ""
    return f"{text}{limit}{finding.evidence}{action}".strip()


def _predicate(finding: Finding) -> str:
    if finding.metric not in _PREDICATES or finding.place:
        return "lies {}" if math.isnan(finding.value.value) and _is_bracketed(finding) else "is {}"
    verb, space, rest = _PREDICATES[finding.metric].partition(" ")
    if finding.claim == "largest":
        verb = "takes"
    return f"{verb.removesuffix('s') if finding.count > 1 else verb}{space}{rest}"


def _is_bracketed(finding: Finding) -> bool:
    return finding.value.low is not None and finding.value.high is not None


def _error_text(finding: Finding) -> str:
    error = finding.value.value
    if error > MAX_STATED_DIFFERENCE and not is_percentage(finding.metric):
        times = f"{1 + error:,.2g} times as large"
        return f"no formula applies: the closest, {finding.subject}, is {times}"
    shown = difference_text(Difference(error, is_percentage(finding.metric)))
    return f"the formula {finding.subject} differs by {shown}"


def value_text(finding: Finding, *, intervals: bool = True) -> str:
    """Return the value of a finding with its unit, interval and basis.

    The interval determines the digits: "78 Mbit/s (75 to 81)".
    """
    metric = finding.value
    ends = [end for end in (metric.low, metric.high) if end is not None and math.isfinite(end)]
    known = [v for v in (metric.value, metric.at_least) if v is not None and math.isfinite(v)]
    remarks = []
    if len(ends) == 2 and not known:
        texts, unit = quantity_texts(ends, finding, ends[1] - ends[0])
        shown = f"between {texts[0]} and {texts[1]} {unit}".rstrip()
    elif not known:
        shown = f"unknown ({metric.missing_interval})" if metric.missing_interval else "unknown"
    else:
        width = ends[1] - ends[0] if len(ends) == 2 else None
        texts, unit = quantity_texts([*known[:1], *ends], finding, width)
        shown = f"{texts[0]} {unit}".rstrip()
        if metric.value == 0 and not metric.high and unit.endswith("bit/s"):
            shown = "nothing"
        if metric.at_least is not None and not math.isfinite(metric.value):
            shown = f"at least {shown}"
        if intervals and len(set(texts)) > 1:
            remarks.append(f"{texts[1]} to {texts[2]}")
        elif intervals and metric.missing_interval:
            remarks.append(metric.missing_interval)
    if finding.kind == "formula" and finding.basis and finding.claim != "error":
        remarks.append(f"by the formula {finding.basis}")
    if not metric.trusted:
        remarks.append("not to be trusted")
    shown = f"{finding.bound} {shown}".strip()
    return f"{shown} ({', '.join(remarks)})" if remarks else shown


def quantity_texts(
    values: list[float], finding: Finding, width: float | None
) -> tuple[list[str], str]:
    """Return values in one readable unit, and this unit; ``width`` of the interval gives digits."""
    unit = "ratio" if is_percentage(finding.metric) else finding.unit
    scale = scale_for_unit(unit, values[0])
    if is_count(finding.unit) and scale.factor == 1.0 and all(v == int(v) for v in values):
        noun = count_text(values[0], finding.unit.removesuffix("s")).partition(" ")[2]
        return [f"{value:,.0f}" for value in values], noun
    if not width:
        return [digits(float(f"{v:.{FORMULA_DIGITS}g}") / scale.factor) for v in values], scale.unit
    half = width / 2 / scale.factor
    largest = max(abs(value) for value in values) / scale.factor
    most = MAX_DIGITS - 1 - math.floor(math.log10(largest)) if largest else 0
    decimals = max(0, min(-math.floor(math.log10(half)), most))
    return [f"{value / scale.factor:,.{decimals}f}" for value in values], scale.unit
