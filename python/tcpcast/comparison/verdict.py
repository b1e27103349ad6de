"""The findings of a run and of a sweep: what their verdicts and the titles of figures state.

The basis of a finding is the reference of the tables: the most trusted answer that has the value
(:func:`tcpcast.comparison.compare.order_by_trust`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tcpcast.answer import Metric
from tcpcast.answer.finding import NO_INTERVAL, Finding
from tcpcast.answer.metrics import HEADLINE_METRICS, METRICS
from tcpcast.comparison.compare import (
    differ_significantly,
    engine_rank,
    is_formula,
    is_upper_bound,
    main_metric,
    packets_text,
)
from tcpcast.quantity.readable_units import count_text
from tcpcast.scenario.file_sizes import transfer_size_text, typed_byte_sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tcpcast.answer import Answer
    from tcpcast.comparison.compare import ComparedAnswers, Comparison, ComparisonRow
    from tcpcast.scenario import Scenario
    from tcpcast.scenario.classes import Population

    Columns = Mapping[str, Sequence[Any]]
    Cells = Callable[[str], list[Finding]]

SWEEP_COLUMNS = (
    *("engine", "untrusted"),
    *(f"{m}{end}" for m in HEADLINE_METRICS for end in ("", "_low", "_high", "_interval_warning")),
)
"""Columns of a sweep that :func:`sweep_findings` reads, in addition to those of the keys."""

MAX_NAMED = 3
"""Number of classes above which a verdict names only those with the largest and smallest value,
and of untrusted rows above which it counts them."""

MIN_LIMITED_SHARE = 0.95
"""Share of the link rate or window limit from which a simulated flow counts as limited by it."""


def run_findings(compared: ComparedAnswers, scenario: Scenario | None) -> list[Finding]:
    """Return the findings of a run: its main result, the queueing delay, and a formula's error.

    A verdict does not begin with a value that is not trusted. Without a trusted value, or with a
    bound only, it contains the reason why there is no simulation, if one was refused.
    Values are those of the tables. If classes of endless flows compete and the intervals of their
    goodput per flow are disjoint, the findings are their shares of the link.

    Parameters
    ----------
    compared
        The answers side by side.
    scenario
        The scenario; without one, there are no findings.
    """
    if scenario is None or not (main := main_findings(compared, scenario)):
        return []
    refusals = [a.reason for a in compared.answers if not a.applies and not is_formula(a.engine)]
    action = next(iter(refusals), "")
    if not any(finding.value.trusted for finding in main):
        # The bound of another stack is no result, even with a mark.
        marked = [finding for finding in main if not finding.bound]
        main = [Finding("no engine gives a trusted value", claim="text", action=action), *marked]
    elif main[-1].bound:
        main[-1] = replace(main[-1], action=action)
    # Whose queue adds a delay: among several links, the reader cannot know it.
    paths = ((*group.route, *group.back) for group in scenario.populations)
    limited = {on.name for path in paths for on in path if math.isfinite(on.link.rate)}
    measured = scenario.measured
    is_named = len(limited) > 1 and measured.key != "network.bottleneck"
    delay = _findings(
        compared.overall,
        "queue_delay_mean_s",
        subject=f'the queue of link "{measured.name}"' if is_named else "the queue",
    )
    has_delay = delay and delay[0].value.trusted and 0 < delay[0].value.value < math.inf
    errors = _formula_errors(compared.overall, {finding.metric for finding in main})
    return [*main, *(delay if has_delay else []), *errors]


def main_findings(compared: ComparedAnswers, scenario: Scenario) -> list[Finding]:
    """Return the main result of a run: of all senders, or of each class."""
    if len(compared.classes) > 1:
        return _class_findings(compared, scenario)
    groups = scenario.populations
    sizes, overall = compared.times_by_size, compared.overall
    metric, kind = _main_metric(groups, overall), groups[0].traffic.kind
    after = "" if metric == main_metric(groups) else " from the first data packet"
    if len(sizes.rows) > 1 and sizes.rows[0].metric == metric:
        typed = {packets_text(n): text for n, text in typed_byte_sizes(scenario).items()}
        return [
            finding
            for row in (sizes.rows[0], sizes.rows[-1])
            for finding in _row_findings(
                sizes,
                row,
                subject=f"a transfer of {typed.get(row.subject, row.subject)}",
                evidence=after,
            )
        ]
    count = sum(group.count for group in groups)
    main = _findings(overall, metric, subject=_subject(groups), count=count)
    if kind == "bulk":
        return [replace(each, limit=_limit(each, compared.answers, scenario)) for each in main]
    if kind == "on-off" and main and not _has_number(main[0].value):
        who = f"the {count_text(count, 'user')} together"
        total = _findings(overall, "goodput_bps", subject=who, count=count)
        return [*total, replace(main[0], subject="the rate while a file is loading", metric="")]
    return [replace(each, count=1, evidence=after) for each in main]


def _main_metric(groups: Sequence[Population], table: Comparison) -> str:
    """Return the metric that judges the senders, or the completion time if no engine has it."""
    metric = main_metric(groups)
    is_given = metric != "total_time_s" or any(row.metric == metric for row in table.rows)
    return metric if is_given else "completion_time_s"


def _subject(groups: Sequence[Population], of_class: str = "") -> str:
    traffic, count = groups[0].traffic, sum(group.count for group in groups)
    if traffic.kind == "on-off":
        return f"the user{of_class}" if count == 1 else f"each of the {count:,} users{of_class}"
    if traffic.kind == "bulk":
        who = "flow" if count == 1 else f"{count:,} flows"
        return f"the {who}{of_class}{'' if count == 1 else ' together'}"
    if traffic.kind in _NOUNS:
        return f"{_NOUNS[traffic.kind]}{of_class}"
    if len(groups) == 1 and traffic.kind == "transfers":
        return f"a transfer {transfer_size_text(traffic)}{of_class}"
    return "a transfer"


_NOUNS = {
    "requests": "a request",
    "messages": "a message",
    "ping": "a ping",
    "stream": "a stream",
    "page": "a page",
}
"""Subject of a verdict by kind of traffic."""


def _has_number(value: Metric) -> bool:
    return math.isfinite(value.value) or value.at_least is not None


def _findings(table: Comparison, metric: str, **fields: Any) -> list[Finding]:
    """Return the finding of a metric by the most trusted answer that has it, or nothing."""
    rows = [row for row in table.rows if row.metric == metric]
    return _row_findings(table, rows[0], **fields) if rows else []


def _row_findings(table: Comparison, row: ComparisonRow, **fields: Any) -> list[Finding]:
    given = [(at, row.metrics[at]) for at in table.order]
    known = [(at, each) for at, each in given if each is not None]
    trusted = [(at, each) for at, each in known if each.trusted]
    for at, value in [*trusted, *known][:1]:
        if _has_number(value) or value.missing_interval:
            engine = table.engines[at]
            return [
                Finding(metric=row.metric, value=value, **_basis(engine, table.kinds[at]), **fields)
            ]
    return []


def _basis(engine: str, kind: str) -> dict[str, Any]:
    return {"basis": engine, "kind": kind, "bound": "at most" if is_upper_bound(engine) else ""}


def _class_findings(compared: ComparedAnswers, scenario: Scenario) -> list[Finding]:
    """Return one finding per class, largest value first, and whether the values differ.

    Endless flows that compete for the whole run are compared by goodput per flow, and shown as
    shares of the link, unless its rate is unlimited or only a mean.
    """
    groups = [group for group in scenario.populations if group.name in compared.classes]
    kinds = {group.traffic.kind for group in groups}
    several_stacks = len({group.tcp.stack for group in groups}) > 1
    stated = []
    for group in groups:
        table = compared.classes[group.name]
        of_class = f" of class {group.name}" + f" ({group.tcp.stack})" * several_stacks
        subject = _subject([group], of_class)
        metric = _main_metric([group], table)
        for each in _findings(table, metric, subject=subject, count=_flows(group)):
            bits = group.packet_bytes / group.payload_bytes / scenario.bottleneck.rate_bps
            share = replace(each, metric="link_share_ratio", value=_scaled(each.value, bits))
            stated.append((_scaled(each.value, 1 / _flows(group)).value, each, share))
    if len(kinds) > 1 or len(stated) < 2:
        # The first class of each metric precedes further classes.
        firsts = list({each.metric: each for _, each, _ in reversed(stated)}.values())[::-1]
        others = [each for _, each, _ in stated if each not in firsts]
        return [*firsts, *others][: max(MAX_NAMED, len(firsts))]
    stated.sort(key=lambda row: (math.isnan(row[0]), -row[0]))
    is_shared = kinds == {"bulk"} and not any(group.has_start_or_stop for group in groups)
    is_shared &= not scenario.links or not scenario.links[scenario.headline].at
    is_shared &= all(any(on.measured for on in group.data_links) for group in groups)
    is_shared &= all(0 < share.value.value <= 1 for *_, share in stated)
    named = [row[1 + is_shared] for row in stated]

    def cells_of(metric: str) -> list[Finding]:
        is_total = metric in METRICS and METRICS[metric].is_extensive
        return [
            replace(each, value=_scaled(each.value, 1 / (_flows(group) if is_total else 1)))
            for group in groups
            for each in _findings(
                compared.classes[group.name],
                metric,
                subject="each flow" if is_total else "",
                place=(("class", group.name, ""),),
            )
        ]

    main = stated[0][1].metric
    differences = compare_cells(main, cells_of)
    return [
        *(named if len(named) <= MAX_NAMED else (named[0], named[-1])),
        *(each for each in differences if each.metric != main or not each.place),
    ]


def _flows(group: Population) -> int:
    return group.count if group.traffic.kind == "bulk" else 1


def _scaled(metric: Metric, factor: float) -> Metric:
    """Return a value and its interval times a factor."""
    low, high = (None if end is None else end * factor for end in (metric.low, metric.high))
    return replace(metric, value=metric.value * factor, low=low, high=high)


def compare_cells(main: str, cells_of: Cells) -> list[Finding]:
    """Return the extremes of a metric, or what differs instead.

    Parameters
    ----------
    main
        The metric.
    cells_of
        Function that returns the findings of a metric at several places.
    """
    extremes = largest, smallest = _extremes(cells_of(main))
    separate = differ_significantly(largest.value, smallest.value)
    span = Metric(math.nan, smallest.value.value, largest.value.value)
    alike = replace(largest, claim="alike", value=span, place=())
    if separate is None:
        # Sentences print values without intervals with three digits.
        texts = {f"{each.value.value:.3g}" for each in extremes}
        is_equal = len(texts) == 1 and texts != {"nan"}
        return [alike] if is_equal else [*extremes, Finding(claim="untested")]
    if separate:
        return extremes
    for metric in HEADLINE_METRICS:
        cells = [each for each in cells_of(metric) if each.value.low is not None]
        if metric not in {main, *_MEDIANS.values()} and len(cells) > 1:
            others = _extremes(cells)
            if differ_significantly(others[0].value, others[1].value):
                return [alike, *others]
    return [alike, Finding(claim="alike")]


def _extremes(cells: Sequence[Finding]) -> list[Finding]:
    """Return the cells with the largest and the smallest value, with the number of cells in a tie.

    A value that does not differ significantly from an extreme ties with it. An unknown value is the
    smallest.
    """

    def rank(cell: Finding) -> tuple[bool, float]:
        return not math.isnan(cell.value.value), cell.value.value

    known = [each for each in cells if each.value.trusted] or cells
    largest, smallest = max(known, key=rank), min(known, key=rank)
    above = [differ_significantly(largest.value, each.value) for each in known]
    below = [differ_significantly(each.value, smallest.value) for each in known]
    return [
        replace(largest, claim="largest", tied=max(1, above.count(False))),
        replace(smallest, claim="smallest", tied=max(1, below.count(False))),
    ]


def _formula_errors(table: Comparison, metrics: set[str]) -> list[Finding]:
    """Return the difference between the closest formula and the basis."""
    wanted = metrics | ({"completion_time_s"} if "total_time_s" in metrics else set())
    rated = [
        Finding(table.engines[at], row.metric, Metric(difference.amount), "error")
        for row in table.rows
        if row.metric in wanted
        for at, difference in enumerate(row.differences)
        if difference is not None
        and table.kinds[at] == "formula"
        and not is_upper_bound(table.engines[at])
    ]
    return sorted(rated, key=lambda each: (abs(each.value.value), engine_rank(each.subject)))[:1]


def _limit(finding: Finding, answers: Sequence[Answer], scenario: Scenario) -> str:
    answer = next(each for each in answers if each.engine == finding.basis and each.applies)
    return limit_of_answer(answer, scenario) if len(scenario.populations) == 1 else ""


def limit_of_answer(answer: Answer, scenario: Scenario) -> str:
    """Return the limit of the rate according to an answer, or "" if the answer does not show it.

    For a formula, the limit is its regime. For a simulation, the limit is the link or the window
    if at least :data:`MIN_LIMITED_SHARE` of it is used; otherwise the limit is the buffer or the
    main kind of loss indication.
    """
    if answer.kind == "formula" or "send_rate_pps" not in answer.metrics:
        return answer.regime or ""
    if any(group.traffic.kind != "bulk" for group in scenario.populations):
        return ""  # the limit changes over time for sources with OFF times or short files
    values = {name: metric.value for name, metric in answer.metrics.items()}
    if values.get("utilisation", 0.0) >= MIN_LIMITED_SHARE:
        return "bottleneck"
    tcp = scenario.populations[0].tcp
    paced_pps = scenario.senders * tcp.max_rate_bps / (8 * scenario.payload_bytes)
    if values["send_rate_pps"] >= MIN_LIMITED_SHARE * paced_pps:
        return "pacing"
    group = scenario.populations[0]
    stepped_bps = scenario.senders * group.application_bps
    if values.get("goodput_bps", 0.0) >= MIN_LIMITED_SHARE * stepped_bps:
        return "reader" if group.stepped_key == "traffic.reads" else "application"
    send, receive = group.allowed_windows_pkts
    window = scenario.senders * min(send, receive)
    rtt = max(values.get("rtt_mean_s", 0.0), scenario.rtt_s)
    if values["send_rate_pps"] * rtt >= MIN_LIMITED_SHARE * window:
        return "send_buffer" if send < receive else "window"
    loss = scenario.bottleneck.loss
    if not (loss and loss.mean_ratio()) and values.get("queue_loss_ratio", 0.0) > 0:
        return "shallow buffer"
    timed_out = answer.tables.get("timeouts_by_kind", {}).get("time_s")
    flow_seconds = scenario.senders * answer.measured_s
    is_mostly_timed_out = timed_out is not None and timed_out.sum() > 0.5 * flow_seconds > 0
    return "timeouts" if is_mostly_timed_out else "triple duplicates"


def sweep_findings(
    columns: Columns, keys: Mapping[str, str], group: str = "", metric: str = ""
) -> list[Finding]:
    """Return the combinations with the largest and the smallest value of a metric.

    Parameters
    ----------
    columns
        Columns of the sweep, one row per combination, engine and replication.
    keys
        The varied keys, which are column names, with their units.
    group
        The class of the metrics; "" for the totals of all classes.
    metric
        The metric; by default the main metric.

    Returns
    -------
    list of Finding
        Empty unless at least two combinations have a trusted value by one engine.
    """
    main = metric or main_metric_of_sweep(columns, group)
    by_engine = {} if not main else swept_metrics(columns, main, list(keys))
    usable = [
        engine
        for engine, cells in by_engine.items()
        if sum(value.trusted for value in cells.values()) > 1
    ]
    if not usable:
        given = [value for cells in by_engine.values() for value in cells.values()]
        text = Finding("fewer than two values of the sweep can be trusted", claim="text")
        return [] if all(value.trusted for value in given) else [text]
    basis = min(usable, key=engine_rank)
    missing = None if is_formula(basis) else NO_INTERVAL

    def cells_of(name: str) -> list[Finding]:
        cells = swept_metrics(columns, name, list(keys)) if name in columns else {}
        return [
            Finding(
                subject=group and f"class {group}",
                metric=name,
                # A simulated value without an interval cannot be compared.
                value=replace(value, interval_warning=value.interval_warning or missing)
                if value.low is None
                else value,
                place=tuple(zip(keys, cell, keys.values(), strict=True)),
                **_basis(basis, "formula" if is_formula(basis) else "simulation"),
            )
            for cell, value in cells.get(basis, {}).items()
        ]

    doubtful = [cell for cell in cells_of(main) if not cell.value.trusted]
    if len(doubtful) > MAX_NAMED:
        left = count_text(len(doubtful) - MAX_NAMED, "more value")
        doubtful[MAX_NAMED:] = [Finding(f"{left} cannot be trusted", claim="text")]
    return [*compare_cells(main, cells_of), *doubtful]


WAITING_METRICS = (
    "page_time_p95_s",
    "stall_ratio",
    "delay_p95_s",
    "latency_p95_s",
    "latency_p50_s",
)
"""Metrics of classes that wait for single packets, requests, pages or the segments of a film."""


def main_metric_of_sweep(columns: Columns, group: str = "") -> str:
    """Return the first metric with a value.

    Times from the SYN qualify only if every simulation has one. For a class of a network, use times
    of messages and requests; for all flows, only if no rate exists. Use the median if there are too
    few requests for the 95th percentile.
    """
    waiting = WAITING_METRICS if group else ()
    names: tuple[str, ...] = ("connection_rate_bps", "total_time_s", "completion_time_s")
    names = (*names, *waiting, "goodput_bps", *WAITING_METRICS)
    for name in names:
        values = columns.get(name, ())
        times = columns.get("completion_time_s", ()) if name == "total_time_s" else ()
        rows = zip(columns["engine"], values, times, strict=False)
        lacks = any(v is None and o is not None and not is_formula(e) for e, v, o in rows)
        if not lacks and any(value is not None for value in values):
            return _MEDIANS[name] if _needs_median(columns, name) else name
    return ""


_MEDIANS = {"latency_p95_s": "latency_p50_s"}
"""Metrics that only stand for others."""


def _needs_median(columns: Columns, name: str) -> bool:
    """Return True if intervals of a percentile are withheld, but no interval of its median."""
    marks = (f"{each}_interval_warning" for each in (name, _MEDIANS.get(name, name)))
    doubtful, median = (any(columns.get(each, ())) for each in marks)
    return doubtful and not median


def swept_metrics(
    columns: Columns, metric: str, keys: Sequence[str]
) -> dict[str, dict[tuple[Any, ...], Metric]]:
    """Return the values of a metric by engine and by the values of the keys.

    Several replications give their mean and its interval.
    """
    rows: dict[str, dict[tuple[Any, ...], list[Metric]]] = {}
    nothing = [None] * len(columns[metric])
    parts = [columns.get(f"{metric}{end}", nothing) for end in ("", "_low", "_high")]
    more = [columns.get(name, nothing) for name in ("untrusted", f"{metric}_interval_warning")]
    for *cell, engine, value, low, high, untrusted, warning in zip(
        *(columns[key] for key in keys), columns["engine"], *parts, *more, strict=True
    ):
        if engine is not None and value is not None and math.isfinite(value):
            trusted = metric not in (untrusted or ())
            one = Metric(value, low, high, trusted, interval_warning=warning)
            rows.setdefault(engine, {}).setdefault(tuple(cell), []).append(one)
    return {
        engine: {cell: _mean_of_replications(values) for cell, values in cells.items()}
        for engine, cells in rows.items()
    }


def _mean_of_replications(values: Sequence[Metric]) -> Metric:
    if len(values) == 1:
        return values[0]
    from tcpcast.statistics import estimate_mean  # noqa: PLC0415 - slow import

    doubt = next((each.interval_warning for each in values if each.interval_warning), None)
    trusted = all(each.trusted for each in values)
    estimate = estimate_mean([each.value for each in values], replications=len(values))
    if estimate is None:
        return replace(values[0], trusted=trusted, interval_warning=doubt)
    return Metric(estimate.value, estimate.low, estimate.high, trusted, interval_warning=doubt)
