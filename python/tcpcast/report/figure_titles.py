"""Titles of figures: the verdict, or a finding on the shown values, without its interval."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tcpcast.answer import Metric
from tcpcast.answer.finding import Finding
from tcpcast.comparison.compare import answer_kind, compare_all, order_by_trust
from tcpcast.comparison.verdict import main_findings
from tcpcast.report.side_by_side import KIND_LABELS
from tcpcast.report.verdict import verdict_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tcpcast.answer import Answer
    from tcpcast.scenario import Population, Scenario


def run_title(answers: Sequence[Answer], scenario: Scenario, plain: str) -> str:
    """Return the main result of a run, or ``plain`` without one."""
    findings = main_findings(compare_all(answers), scenario)
    return verdict_text(findings, intervals=False).rstrip(".") or plain


def answer_for_title(answers: Sequence[Answer]) -> Answer:
    """Return the most trusted answer."""
    return answers[order_by_trust(answers)[0]]


def finding_title(answer: Answer, subject: str, values: Iterable[float], unit: str) -> str:
    """Return a title with a value of an answer, or with the range of several values."""
    known = list(values)
    low, high = min(known), max(known)
    value = Metric(low, unit=unit) if low == high else Metric(math.nan, low, high, unit=unit)
    finding = Finding(subject, "", value, basis=answer.engine, kind=answer_kind(answer))
    return verdict_text([finding]).rstrip(".")


def engine_label(answer: Answer) -> str:
    """Return the name of an engine, and whether it simulates, measures or calculates."""
    return f"{answer.engine} ({KIND_LABELS[answer.kind]})"


def sender_noun(groups: Sequence[Population]) -> str:
    """Return what sends: users load files, transfers end, and flows may do neither."""
    kinds = {group.traffic.kind for group in groups}
    return {frozenset({"on-off"}): "user", frozenset({"transfers"}): "transfer"}.get(
        frozenset(kinds), "flow"
    )


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
