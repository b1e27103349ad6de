"""Titles of figures; each states the main result, computed from the shown values.

A difference is named only if the 95 % intervals are disjoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast.compare import class_metrics, is_observed
from tcpcast.readable_units import count_text
from tcpcast.report.headline import differ_beyond_intervals
from tcpcast.report.quantity import amount_text, three_digit_text
from tcpcast.report.side_by_side import KIND_LABELS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tcpcast.answer import Answer, Metric
    from tcpcast.scenario import Population, Scenario


def value_range_text(values: Iterable[float], unit: str) -> str:
    """Return the smallest and the largest value as text, or one of them if both texts are equal."""
    known = list(values)
    low, high = three_digit_text(min(known), unit), three_digit_text(max(known), unit)
    return high if low == high else f"{low} to {high}"


def engine_label(answer: Answer) -> str:
    """Return the name of an engine, and whether it simulates, measures or calculates."""
    return f"{answer.engine} ({KIND_LABELS[answer.kind]})"


def answer_for_title(answers: Sequence[Answer]) -> Answer:
    """Return the answer for the title: the first simulated or measured one, or else the first."""
    return next((answer for answer in answers if is_observed(answer)), answers[0])


def formula_clause(answer: Answer) -> str:
    """Return the name of the formula behind a title, or "" if its values are observed."""
    return "" if is_observed(answer) else f", by the formula {answer.engine}"


def sender_noun(groups: Sequence[Population]) -> str:
    """Return what sends: users load files, transfers end, and flows may do neither."""
    kinds = {group.traffic.kind for group in groups}
    return {frozenset({"on-off"}): "user", frozenset({"transfers"}): "transfer"}.get(
        frozenset(kinds), "flow"
    )


def senders_text(groups: Sequence[Population]) -> str:
    """Return the senders with their number, which arriving transfers do not have: ``2 flows``."""
    noun = sender_noun(groups)
    counts = [group.count for group in groups]
    return count_text(sum(counts), noun) if all(counts) else f"{noun}s"


def class_goodput_title(answer: Answer, scenario: Scenario) -> str:
    """Return the title that names the class with the largest goodput, if the intervals allow it.

    "" unless at least two classes have a trusted goodput.
    """
    if len(scenario.populations) < 2 or "by_class" not in answer.tables:
        return ""
    metrics = class_metrics(answer)
    given = [
        (group, metrics[group.name]["goodput_bps"])
        for group in scenario.populations
        if "goodput_bps" in metrics.get(group.name, {})
    ]
    known = [(group, value) for group, value in given if _is_trusted_and_finite(value)]
    if len(known) < 2 or len(known) < len(given):
        return ""
    known.sort(key=lambda each: -each[1].value)
    (top, most), (_, least) = known[0], known[-1]
    values = ", ".join(
        f"{three_digit_text(metric.value, 'bit/s')} ({group.name})"
        for group, metric in (known[0], known[-1])
    )
    separate = differ_beyond_intervals(most, least)
    if separate is None:
        return f"Goodput by class, without reliable intervals: {values}"
    if not separate:
        return f"No significant difference in goodput: {values}"
    total = sum(value.value for _, value in known)
    if differ_beyond_intervals(most, known[1][1]) and total > 0:
        share = f"{100 * most.value / total:.3g} %"
        who = top.name if top.count == 1 else f"The {senders_text([top])} of {top.name}"
        verb = "takes" if top.count == 1 else "take"
        return f"{who[0].upper() + who[1:]} {verb} {share} of the goodput"
    return f"Goodput differs by class: {values}"


def _is_trusted_and_finite(metric: Metric) -> bool:
    return metric.trusted and bool(np.isfinite(metric.value))


def goodput_title(answer: Answer, scenario: Scenario) -> str:
    """Return the title with the total goodput of all flows, or "" if it is not trusted."""
    metric = answer.metrics.get("goodput_bps")
    if metric is None or not _is_trusted_and_finite(metric):
        return ""
    rate = scenario.network.bottleneck.rate_bps
    groups = scenario.populations
    is_single = [group.count for group in groups] == [1]
    who = f"The {sender_noun(groups) if is_single else senders_text(groups)}"
    verb = "gets" if is_single else "together get"
    of_link = f" of {amount_text(rate, 'bit/s')}" if np.isfinite(rate) else ""
    return f"{who} {verb} {three_digit_text(metric.value, 'bit/s')}{of_link}"


def flow_names(scenario: Scenario, flows: Sequence[int]) -> list[tuple[Population, str]]:
    """Return the class and a readable name for each flow, numbered from 1 within its class."""
    groups = scenario.populations
    ends = np.cumsum([group.count for group in groups])
    named = []
    for flow in flows:
        index = min(int(np.searchsorted(ends, flow, "right")), len(groups) - 1)
        group = groups[index]
        number = flow - (int(ends[index]) - group.count) + 1
        noun = sender_noun([group])
        if len(groups) == 1:
            of_all = f" of {group.count:,}" if group.count else ""
            name = f"the {noun}" if group.count == 1 else f"{noun} {number:,}{of_all}"
        else:
            name = group.name if group.count == 1 else f"{group.name} {number:,}"
        named.append((group, name))
    return named
