"""Properties of the answer to any scenario: violations show a fault of a counter or of a text."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import tcpcast
from tcpcast import Answer
from tcpcast.answer.metrics import METRICS
from tcpcast.comparison.compare import compare_all
from tcpcast.comparison.verdict import run_findings
from tcpcast.process.errors import NotApplicable
from tcpcast.report.full_report import run_document
from tcpcast.report.html import html_page
from tcpcast.report.json import answers_document, encode
from tcpcast.report.markdown import markdown_page
from tcpcast.report.run import run_parts
from tcpcast.report.text import plain_text
from tcpcast.report.verdict import verdict_text
from tcpcast.scenario import Scenario
from tcpcast.scenario.loss import Bernoulli
from verdict_numbers import wrong_numbers

NOT_SHARES = frozenset({"fair_share", "offered_load", "rpm"})
"""Metrics with unit 1 that may exceed 1."""

ROUNDING = 1e-9

WRONG_WORDS = re.compile(r"\b(nan|NaN|None|inf|Traceback|Estimate|Metric)\b")
"""Texts that no report contains: Python's values."""


def find_violations(scenario: Scenario, engines: list[str] | None = None) -> list[str]:
    """Run a scenario and return the violated properties of its answers and reports."""
    try:
        answers = tcpcast.run(scenario, engines, threads=1)
    except NotApplicable:
        return []
    found: list[str] = []
    for answer in answers:
        found += [f"{answer.engine}: {text}" for text in _answer_violations(scenario, answer)]
    return found + list(text_violations(scenario, answers))


def _answer_violations(scenario: Scenario, answer: Answer) -> Iterator[str]:
    for name, metric in answer.metrics.items():
        yield from _value_violations(name, metric.value, metric.low, metric.high)
        if metric.at_least is not None and not metric.at_least >= 0:
            yield f"{name}: at least {metric.at_least}"
    for table_name in ("by_class", "by_size", "by_link", "by_link_class"):
        table = answer.tables.get(table_name, {})
        for column in (name for name in table if name in METRICS):
            ends = [table.get(f"{column}_{end}") for end in ("low", "high")]
            for row, value in enumerate(table[column].tolist()):
                low, high = (
                    None if end is None or math.isnan(end[row]) else float(end[row]) for end in ends
                )
                for text in _value_violations(column, value, low, high):
                    yield f"{table_name} {row}: {text}"
    if answer.kind != "simulation":
        return
    yield from _sum_violations(scenario, answer)
    yield from _time_violations(scenario, answer)
    yield from _hop_violations(scenario, answer)
    yield from _distribution_violations(scenario, answer)
    yield from _identical_class_violations(scenario, answer)
    yield from _unfinished_violations(answer)
    reason = answer.incomplete_reason or ""
    simulated = max(answer.provenance.get("simulated_s", [0.0]))
    if "1000 times" in reason and simulated < 900 * (scenario.run.duration_s or 0.0):
        yield f"{reason}, but {simulated:g} s were simulated"


def _value_violations(
    name: str, value: float, low: float | None, high: float | None
) -> Iterator[str]:
    row = METRICS[name]
    values = [each for each in (value, low, high) if each is not None and not math.isnan(each)]
    if any(map(math.isinf, values)):
        yield f"{name}: {values} is infinite"
    if any(each < 0 for each in values):
        yield f"{name}: {values} is negative"
    if row.unit == "1" and name not in NOT_SHARES and any(each > 1 + ROUNDING for each in values):
        yield f"{name}: {values} is above 1"
    if low is not None and high is not None and not math.isnan(value):
        slack = ROUNDING * abs(value)
        if not low - slack <= value <= high + slack:
            yield f"{name}: {value} is outside {low} to {high}"


def _value(answer: Answer, name: str) -> float:
    metric = answer.metrics.get(name)
    return math.nan if metric is None else metric.value


def _sum_violations(scenario: Scenario, answer: Answer) -> Iterator[str]:
    """Check sums over classes, parts of losses, and the rate of the link."""
    table = answer.tables.get("by_class", {})
    groups = scenario.populations
    if not any(group.has_start_or_stop for group in groups):
        for name in ("goodput_bps", "goodput_pps", "send_rate_pps"):
            total, parts = _value(answer, name), table.get(name)
            if parts is None or math.isnan(total) or any(map(math.isnan, parts.tolist())):
                continue
            if not math.isclose(math.fsum(parts.tolist()), total, rel_tol=1e-6, abs_tol=1e-9):
                yield f"{name}: classes sum to {math.fsum(parts.tolist())}, not {total}"
    lost = _value(answer, "queue_loss_ratio") + _value(answer, "random_loss_ratio")
    total = _value(answer, "loss_ratio")
    if not math.isnan(total + lost) and not math.isclose(lost, total, rel_tol=1e-6, abs_tol=1e-12):
        yield f"loss_ratio: {total}, but its parts sum to {lost}"
    rate, queue = scenario.bottleneck.rate_bps, _value(answer, "queue_max_pkts")
    carried, seconds = _value(answer, "goodput_bps"), answer.measured_s or 0.0
    if (
        not scenario.links  # the data of other classes may take other links
        and math.isfinite(rate)
        and not math.isnan(carried + queue)
        and seconds > 0
    ):
        # The queue and the packets in flight at the end of the warm-up arrive in addition.
        largest = max(group.packet_bytes for group in groups)
        window = 8 * largest * (queue + rate * max(g.rtt_s for g in groups) / (8 * largest) + 20)
        burst = 8 * getattr(scenario.bottleneck.varying, "burst", 0)
        most = rate + (window + burst) * scenario.run.replications / seconds
        if carried > 1.02 * most and scenario.bottleneck.varying is None:
            yield f"goodput_bps: {carried} is above the rate of the link, {rate}"


def _time_violations(scenario: Scenario, answer: Answer) -> Iterator[str]:
    """Check that no mean time is shorter than the path or longer than the run."""
    simulated = max(answer.provenance.get("simulated_s", [math.inf]))
    least = min(group.forward_delay_s + group.return_delay_s for group in scenario.populations)
    rows = [("", {name: metric.value for name, metric in answer.metrics.items()})]
    table = answer.tables.get("by_class", {})
    for row, label in enumerate(table.get("name", [])):
        values = {n: float(table[n][row]) for n in table if n in METRICS}
        rows.append((f"class {label} ", values))
    for label, values in rows:
        for name in ("rtt_mean_s", "rtt_packet_mean_s"):
            value = values.get(name, math.nan)
            if value > simulated + 1 or value < 0.99 * least - 1e-6:
                span = f"the run of {simulated} s and the delays of {least} s"
                yield f"{label}{name}: {value} s contradicts {span}"
        for name in ("on_time_s", "completion_time_s", "delivery_time_s"):
            if values.get(name, math.nan) > simulated + 1:
                yield f"{label}{name}: {values[name]} s in a run of {simulated} s"


def _hop_violations(scenario: Scenario, answer: Answer) -> Iterator[str]:
    """Check losses of links against the specified losses and the metric of other links."""
    table, links = answer.tables.get("by_link", {}), scenario.topology.links
    for row, ratio in enumerate(table.get("loss_ratio", [])):
        name, arrived = table["link"][row], float(table["packets"][row])
        loss = links[name].loss
        if isinstance(loss, Bernoulli) and arrived > 0 and not math.isnan(ratio):
            p = loss.mean_ratio()
            if ratio < p - 6 * math.sqrt(p * (1 - p) / arrived) - 6 / arrived:
                yield f"by_link {name}: the loss is {ratio}, but {p} was specified"
    hops = scenario.network.hops
    if len(hops) == 2 and scenario.network.measured_index == 1 and "loss_ratio" in table:
        ends = (scenario.network.ingress, scenario.network.egress)
        lossy = any(end.loss is not None or math.isfinite(end.buffer.amount) for end in ends)
        at = int(np.flatnonzero(table["link"] == hops[0].name)[0])
        other, own = _value(answer, "other_loss_ratio"), float(table["loss_ratio"][at])
        # Packets in flight at the ends of the warm-up and of the run count on one side only.
        slack = 0.02 + 200 * scenario.run.replications / max(float(table["packets"][at]), 1.0)
        if not lossy and not math.isnan(other + own) and abs(other - own) > slack:
            yield f"other_loss_ratio: {other}, but the other hop lost {own}"


def _distribution_violations(scenario: Scenario, answer: Answer) -> Iterator[str]:
    """Check distributions, and the queue against the buffer."""
    table, sizes = answer.tables.get("queue", {}), answer.tables.get("by_size", {})
    for name in ("time_above", "arrivals_above"):
        above = table[name][np.isfinite(table[name])] if table else np.zeros(1)
        if np.any(np.diff(above) > 1e-12) or np.any((above < 0) | (above > 1)):
            yield f"queue: {name} is no distribution"
    for shares in (answer.tables.get("states", {}).get("probability"), sizes.get("share")):
        if shares is not None and not math.isclose(shares.sum(), 1, rel_tol=1e-6):
            yield f"shares sum to {shares.sum()}"
    if {"low_pkts", "mean_size_pkts"} <= sizes.keys():
        means = sizes["mean_size_pkts"]
        if np.any((means < sizes["low_pkts"]) | (means > sizes["high_pkts"])):
            yield f"by_size: {means} is outside its sizes"
    queue = scenario.bottleneck.queue
    buffers = (
        scenario.senders or math.inf if getattr(queue, "buffers", "shared") == "individual" else 1
    )
    mean, largest = _value(answer, "queue_mean_pkts"), _value(answer, "queue_max_pkts")
    # A buffer in bytes holds more packets without data.
    same_size = scenario.bottleneck.buffer.unit != "bytes"
    same_size &= len({group.packet_bytes for group in scenario.populations}) == 1
    if mean > largest or (same_size and largest > buffers * scenario.buffer_pkts):
        yield f"queue_max_pkts: {largest}, with a mean of {mean}"


def _identical_class_violations(scenario: Scenario, answer: Answer) -> Iterator[str]:
    """Check that intervals of classes with equal settings contain their common mean."""
    table, groups = answer.tables.get("by_class", {}), scenario.populations
    tables = scenario.resolved().get("class", [])
    if len(groups) < 2 or "goodput_bps" not in table:
        return
    settings = [{k: v for k, v in entry.items() if k != "name"} for entry in tables]
    if any(entry != settings[0] for entry in settings):
        return
    for name in ("goodput_bps", "loss_ratio", "rtt_mean_s", "send_rate_pps"):
        if name not in table or any(map(math.isnan, table[name].tolist())):
            continue
        mean = math.fsum(table[name].tolist()) / len(groups)
        for low, high in zip(table[f"{name}_low"], table[f"{name}_high"], strict=True):
            if low > mean * (1 + 1e-6) or high < mean * (1 - 1e-6):
                yield f"{name}: the mean of equal classes, {mean}, is outside {low} to {high}"


def _unfinished_violations(answer: Answer) -> Iterator[str]:
    """Check that means per size have no interval if most transfers had not finished."""
    metric = answer.metrics.get("completion_time_s")
    table = answer.tables.get("by_size", {})
    if metric is None or metric.at_least is None or "low" not in table:
        return
    if not all(map(math.isnan, table["low"].tolist())):
        yield "by_size: intervals of completion_time_s, although most transfers had not finished"


def text_violations(scenario: Scenario, answers: Any) -> Iterator[str]:
    """Check the reports: the same verdict in each, no empty table, no value of Python."""
    compared = compare_all(answers)
    findings = run_findings(compared, scenario)
    verdict = verdict_text(findings)
    document = json.loads(encode(answers_document(compared, scenario)))
    if wrong := wrong_numbers(verdict, findings):
        yield f"the verdict has other numbers than its findings: {', '.join(wrong)}"
    reported = json.dumps(document["answers"])
    for each in findings:
        number = each.value.value
        is_reported = (
            each.claim == "error"
            or each.metric == "link_share_ratio"
            or each.subject == "each flow"
        )
        if math.isfinite(number) and not is_reported and json.dumps(number) not in reported:
            yield f"no answer has the value of {each.subject}: {number}"
    if verdict_text(run_findings(compare_all(answers[::-1]), scenario)) != verdict:
        yield "the verdict depends on the order of the engines"
    if (document["verdict"] or "") != verdict:
        yield "the verdict in JSON differs"
    for show_all in (False, True):
        text = plain_text(run_parts(compared, scenario, show_all=show_all))
        if found := WRONG_WORDS.search(text):
            yield f"the report contains {found[0]!r}"
        if verdict and verdict.split()[0] not in text:
            yield "the text lacks the verdict"
        yield from _empty_tables(text)
    page = run_document(compared, scenario, "tcpcast run")
    for form, shown in (("HTML", html_page(page, "")), ("Markdown", markdown_page(page, ""))):
        words = re.sub(r"\W+", "", verdict)
        if words not in re.sub(r"\W+", "", re.sub(r"&[a-z#\d]+;|<[^>]*>", "", shown)):
            yield f"{form} lacks the verdict"
    if re.search(r"gets? 0 [kMG]?bit/s(?! \(0)|[+]\d,?\d{2,} %", verdict):
        yield f"the verdict has a rate of 0, or a difference by a factor: {verdict}"


def _empty_tables(text: str) -> Iterator[str]:
    lines = text.splitlines()
    for index, line in enumerate(lines[:-1]):
        if line and set(line) == {"─"} and not lines[index + 1].strip():
            yield f"the table {lines[index - 1].strip()!r} is empty"
