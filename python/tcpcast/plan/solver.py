"""One solver for all plans: the value at which an engine's metric meets its target."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer import Metric, Note
from tcpcast.comparison.compare import time_per_file_metric
from tcpcast.engines import REGISTRY, check_engine_names
from tcpcast.engines.formula.path_requirements import (
    bytes_text,
    compute_path_requirements,
    path_requirement_texts,
)
from tcpcast.engines.registry import Formula, check_packet_sizes_are_equal
from tcpcast.plan.probes import Probes, SimulationStopped
from tcpcast.plan.questions import FILE_GOODPUT, QUESTIONS, TIME_PER_FILE, argument_name
from tcpcast.plan.result import Plan
from tcpcast.plan.search import SearchGoal, find_bracket, search_from_start
from tcpcast.plan.varied import bdp_pkts, vary
from tcpcast.process.errors import DomainError, NotApplicable, assignment_of, name_of
from tcpcast.quantity import units
from tcpcast.quantity.readable_units import rate_text, time_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from tcpcast.answer import Answer, NoteKind
    from tcpcast.engines import RunOptions
    from tcpcast.plan.questions import Question, Target
    from tcpcast.plan.result import Table
    from tcpcast.plan.search import SearchResult
    from tcpcast.scenario import Scenario

STAGE_PACKETS, STAGE_FACTOR = 1e6, 4
"""Approximate number of packets of a run in the first stage of a search, and the factor by which
runs are longer in each further stage, up to the length of the scenario's run."""

SUFFICIENT_WIDTH = 0.15
"""Relative width of the answer's interval at which the search ends before its last stage."""

NEAREST_RUNS = 4
"""Number of runs near an answer, of which more than half must have an interval."""

MAX_EXCESS_SCATTER = 1.5
"""Ratio of the runs' scatter to their own intervals above which a note reports it."""

MAX_LENGTH_FACTOR = 10
"""Maximum factor in the advice to simulate longer."""

FURTHER_METRICS = (
    "connection_rate_bps",
    "goodput_bps",
    "loss_ratio",
    "utilisation",
    "rtt_mean_s",
    "queue_delay_mean_s",
    "delay_p95_s",
)
"""Further metrics in the table of the computed values."""

INTERVAL_NOTES = ("run", "check", "withheld")
"""Kinds of notes about the intervals of a single run."""

QUEUEING_DELAY_S, BDP_RTT_S = 0.6, 0.3
"""Queueing delay of the 600 ms rule, and usual RTT of the bandwidth-delay rule."""


def solve(
    question: str,
    scenario: Scenario,
    *,
    engine: str = "packet",
    class_name: str | None = None,
    options: RunOptions | None = None,
    **target: float,
) -> Plan:
    """Return the value at which an engine's metric meets its target.

    Parameters
    ----------
    question
        ``"buffer"``, ``"users"``, ``"rate"``, ``"streams"``, ``"max-loss"``, ``"shaper"`` or
        ``"aqm"``.
    scenario
        The scenario; its value of the varied key is ignored. ``run.max_wall`` limits the total time
        of all simulations.
    engine
        The engine. The packet engine simulates one value after another, each with another seed:
        first short runs, then, near the answer, runs up to the length of the scenario's run. A
        formula is bisected.
    class_name
        ``users`` and ``streams``: the class that is varied; None for all, in proportion. ``rate``:
        the class that must reach the target; None for the slowest one, also in ``shaper`` and
        ``aqm``.
    options
        Threads and progress of the simulations; they do not change the result.
    **target
        One target of the question in SI units. ``buffer``: ``loss`` (default 1 %) or
        ``utilisation``. ``users`` and ``rate``: ``rate_bps`` (mean rate of a user),
        ``share`` and ``above_bps`` (share of files above a goodput) or ``time_s`` (mean time per
        file). ``streams``: ``utilisation`` (default 95 %). ``max-loss``: ``goodput_bps`` (of all
        flows) or ``time_s``. ``shaper`` and ``aqm``: ``delay_s`` (95th percentile).

    Returns
    -------
    Plan
        The answer, or its bracket if the search was stopped or is undecided.

    Raises
    ------
    DomainError
        There is no such question, a target is outside its domain, or no value reaches it.
    NotApplicable
        The engine does not cover the scenario, or the scenario has nothing to vary.
    UnknownEngine
        There is no such engine.

    Examples
    --------
    >>> import tcpcast
    >>> from tcpcast.plan import solve
    >>> web = tcpcast.load("web-10mbit")
    >>> solve("users", web, rate_bps=300e3, engine="engset")
    <Plan largest population with a mean rate of 300 kbit/s: 102 sources>
    """
    if question not in QUESTIONS:
        raise DomainError(f"question: {question!r} is unknown; use {', '.join(QUESTIONS)}")
    asked = QUESTIONS[question]
    check_engine_names([engine])
    chosen, values = _choose_target(asked, target)
    check_packet_sizes_are_equal(f"plan {question}", scenario)
    if scenario.probes.flows or scenario.probes.pcap:
        scenario = scenario.with_changes({"probes.flows": [], "probes.pcap": []})
    varied = vary(asked, scenario, engine, class_name)
    metric = _metric_of_target(chosen, scenario)
    _check_target(scenario, chosen.metric, values[-1])
    goal = SearchGoal(
        metric=metric,
        target=values[-1],
        rises=chosen.rises,
        smallest=asked.smallest,
        integer=varied.integer,
        minimum=varied.minimum,
        maximum=varied.maximum,
        power=asked.power,
        limit=1.0 if metric == "utilisation" else math.inf,
    )
    of_class = class_name if question in {"rate", "shaper", "aqm"} else None
    read: Callable[[Answer], Metric | None] = partial(
        read_metric,
        metric=metric,
        name=of_class,
        worst=np.nanargmin if goal.is_minimum else np.nanargmax,
        link_pps=scenario.bottleneck.rate_bps / (8 * scenario.network.packet_bytes),
    )
    changes: dict[str, Any] = {}
    if chosen.metric == FILE_GOODPUT:
        read = partial(read_file_goodput, share=values[0], name=of_class)
        changes = {"probes.goodput_shares": [values[0]]}
    runs = Probes(
        varied=varied,
        engine=engine,
        goal=goal,
        read=read,
        options=options,
        fixed_changes=changes,
        is_exact=isinstance(REGISTRY[engine], Formula),
    )
    written = [_value_text(o.metavar, v) for o, v in zip(chosen.options, values, strict=True)]
    plan = Plan(
        f"{varied.text} {chosen.text.format(*written)}{_class_text(asked, scenario, class_name)}",
        None,
        varied.unit,
        engine=engine,
        metric=metric,
        target=goal.target,
        quantity=_quantity_text(chosen, written),
        column=varied.column,
        axis=varied.axis,
        notes=[*varied.notes],
    )
    _search(plan, runs)
    if question == "buffer" and varied.column == asked.column:
        plan.tables["rules"] = _buffer_rules_table(scenario)
    return plan


def _choose_target(
    question: Question, given: Mapping[str, float]
) -> tuple[Target, tuple[float, ...]]:
    """Return the target whose arguments were given, and its values; the last one is compared."""
    rows = {argument_name(row): row for each in question.targets for row in each.options}
    for name in given:
        if name not in rows:
            raise DomainError(
                f"{name} is not a target of plan {question.name}; use {' or '.join(rows)}"
            )
    target = question.choose_target([rows[name].name for name in given], argument_name)
    values = tuple(float(given.get(argument_name(row), target.default)) for row in target.options)
    return target, values


def _value_text(metavar: str, value: float) -> str:
    texts = {"RATE": rate_text, "TIME": time_text}
    return texts[metavar](value) if metavar in texts else f"{100 * value:.4g} %"


def _metric_of_target(target: Target, scenario: Scenario) -> str:
    """Return the metric of a target; the time per file depends on traffic and handshake."""
    kinds = {each.traffic.kind for each in scenario.populations}
    of_files = target.metric in {FILE_GOODPUT, TIME_PER_FILE, "connection_rate_bps"}
    if of_files and kinds <= {"bulk"}:
        raise NotApplicable(
            'this target requires files, but the flows never end; use traffic.kind "on-off" or '
            '"transfers"'
        )
    if target.metric != TIME_PER_FILE and scenario.isolated_transfers is not None:
        raise NotApplicable(
            "for transfers on an idle path, the time per file is the only possible target; use "
            f"{name_of('--time')}, or add traffic.arrivals"
        )
    if target.metric == FILE_GOODPUT:
        return "goodput_bps"
    if target.metric != TIME_PER_FILE:
        return target.metric
    return time_per_file_metric(scenario.populations)


def _check_target(scenario: Scenario, metric: str, target: float) -> None:
    if metric in {"loss_ratio", "utilisation"}:
        written = f"{100 * target:.4g} %"
        if not 0 < target < 1:
            raise DomainError(f"the target must be above 0 % and below 100 %, not {written}")
        loss = scenario.bottleneck.loss
        if metric == "loss_ratio" and loss is not None and target <= loss.mean_ratio():
            raise DomainError(
                f"a loss of {written} includes network.bottleneck.loss "
                f"({units.format_ratio(loss.mean_ratio())}), which no buffer reduces; use a "
                "larger target, or omit network.bottleneck.loss"
            )
    link_bps = scenario.bottleneck.rate_bps
    payload_bps = link_bps * scenario.payload_bytes / scenario.network.packet_bytes
    if metric == "goodput_bps" and target >= payload_bps:
        raise DomainError(
            f"a goodput of {rate_text(target)} cannot be reached: a link of {rate_text(link_bps)} "
            f"carries at most {rate_text(payload_bps)} of payload; use a lower goodput, or a "
            "faster link"
        )
    if not 0 < target < math.inf:
        raise DomainError(f"the target must be above 0 and finite, not {target!r}")


def _class_text(question: Question, scenario: Scenario, class_name: str | None) -> str:
    """Return the class to which an answer applies, "" if there is only one."""
    if class_name is not None:
        varies_class = question.name in {"users", "streams"}
        return f", class {class_name}" if varies_class else f" in class {class_name}"
    several = len(scenario.populations) > 1 and question.name in {"users", "rate"}
    return " in each class" if several else ""


def _quantity_text(target: Target, written: list[str]) -> str:
    """Return the compared quantity in words, "" for the name of its metric."""
    if target.metric == FILE_GOODPUT:
        return f"goodput that {written[0]} of the files reach"
    return ""


def read_metric(
    answer: Answer, *, metric: str, name: str | None, worst: Callable[[Any], Any], link_pps: float
) -> Metric | None:
    """Return a metric of a class or, for the metrics of single files, of the worst class."""
    table = answer.tables.get("by_class")
    overall = answer.metrics.get(metric)
    if overall is None and metric == "utilisation" and "send_rate_pps" in answer.metrics:
        sent = answer.metrics["send_rate_pps"]
        return replace(sent, value=min(sent.value / link_pps, 1.0))
    if table is None or metric not in table or metric in {"loss_ratio", "goodput_bps"}:
        return overall
    values = table[metric]
    if name is not None:
        values = np.where(table["name"] == name, values, math.nan)
    if not np.isfinite(values).any() or (len(values) == 1 and overall is not None):
        return overall
    index = int(worst(values))
    low, high = (float(table[f"{metric}_{end}"][index]) for end in ("low", "high"))
    found = Metric(float(values[index]), trusted=overall is None or overall.trusted)
    return replace(found, low=low, high=high) if math.isfinite(low + high) else found


def read_file_goodput(answer: Answer, *, share: float, name: str | None) -> Metric | None:
    """Return the goodput that a share of the files of a class, or of the slowest one, exceeds."""
    table = answer.tables.get("file_goodput_by_class", answer.tables.get("file_goodput"))
    if table is None:
        return None
    is_row = np.isclose(table["share"], share)
    if name is not None and "name" in table:
        is_row &= table["name"] == name
    (rows,) = np.nonzero(is_row)
    if not rows.size:
        return None
    row = rows[np.argmin(table["goodput_bps"][rows])]
    value, low, high = (float(table[column][row]) for column in ("goodput_bps", "low", "high"))
    if not value > 0:
        return None
    return Metric(value, low, high) if math.isfinite(low + high) else Metric(value)


def _search(plan: Plan, runs: Probes) -> None:
    """Search in stages of growing length, and insert the answer into the plan."""
    stages: list[Probes] = [runs]
    result: SearchResult | None = None
    try:
        if not runs.is_exact:
            runs = stages[0] = runs.with_share(_first_share(runs))
            _check_easiest_value(runs)
        result = search_from_start(runs, runs.varied.start)
        while not runs.is_exact and not (
            _is_precise(result) and _have_intervals_near(runs, result)
        ):
            # Runs longer than the scenario's are only for answers that are undecided otherwise.
            longer = runs.with_share(runs.share * STAGE_FACTOR)
            if runs.share >= 1 and not _have_intervals_near(runs, result):
                # The runs may drift, so that the start of a run counts for less than its end.
                longer = runs.with_share(longer.share, runs.varied.scenario.run.duration_s)
            is_long = longer.share > STAGE_FACTOR and not result.undecided
            if is_long or not longer.is_longer_than(runs, result.value):
                break
            runs = longer
            stages.append(runs)
            result = search_from_start(runs, result.value)
        _set_answer(plan, runs, result)
    except SimulationStopped as stop:
        plan.interrupted, plan.incomplete = stop.interrupted, not stop.interrupted
        why = "the search was interrupted" if stop.interrupted else "run.max_wall was reached"
        plan.warnings.append(f"{why} before the search finished")
    plan.bracket = find_bracket(runs)
    if plan.value is None and None in plan.bracket:
        # The runs of an earlier stage may know more than those of a stopped one.
        runs = next((each for each in reversed(stages) if None not in find_bracket(each)), runs)
        plan.bracket = find_bracket(runs)
    values = sorted(runs.answers)
    plan.runs = [runs.answers[value] for value in values]
    metrics = [runs.without_exact_interval(runs.metrics[value]) for value in values]
    integer = runs.goal.integer
    table: Table = {
        plan.column: np.array(values, dtype=np.int64 if integer else np.float64),
        plan.metric: _float_column(metric.value for metric in metrics),
        "low": _float_column(metric.low for metric in metrics),
        "high": _float_column(metric.high for metric in metrics),
    }
    for name in FURTHER_METRICS:
        others = [runs.answers[value].metrics.get(name) for value in values]
        if name not in table and any(others):
            table[name] = _float_column(None if each is None else each.value for each in others)
    plan.tables["values"] = table
    shown = plan.runs
    if runs.is_exact:  # a formula is judged at its answer, not where the search passed
        shown = [each for value, each in runs.answers.items() if value == plan.value]
    found = merge_run_warnings(shown, {plan.metric, "file_goodput"})
    # The interval of a found answer is from the scatter of the runs, not from their own intervals,
    # unless these are withheld: the scatter does not show that all runs drift.
    kept = result is None or plan.value is None or not _have_intervals_near(runs, result)
    plan.warnings += [note for note in found if kept or note.kind not in INTERVAL_NOTES]


def _first_share(runs: Probes) -> float:
    """Return the length of the runs in the first stage, relative to the full length."""
    scenario = runs.varied.scenario
    if any(each.traffic.kind == "bulk" for each in scenario.populations):
        # Without random loss, flows need the time to reach a steady state.
        return 1 / STAGE_FACTOR if scenario.has_random_loss else 1.0
    packets = runs.estimate_packets()
    return min(1.0, STAGE_PACKETS / packets) if packets > 0 else 1.0


def _have_intervals_near(runs: Probes, result: SearchResult) -> bool:
    """Return True if more than half of the runs nearest to an answer have an interval.

    A run of one size of file, or at a limit of the search, needs none.
    """
    if runs.is_exact or result.at_limit:
        return True
    near = sorted(runs.metrics, key=lambda value: abs(value - result.value))[:NEAREST_RUNS]
    with_interval = sum(runs.metrics[value].low is not None for value in near)
    return 2 * with_interval > len(near)


def _is_precise(result: SearchResult) -> bool:
    if result.at_limit or result.undecided or result.low is None or result.high is None:
        return result.at_limit
    return result.high - result.low <= max(2.0 * result.integer, SUFFICIENT_WIDTH * result.value)


def _check_easiest_value(runs: Probes) -> None:
    """Raise early if the value at which the target is easiest to meet misses it."""
    if runs.varied.easiest is None:
        return
    value, where = runs.varied.easiest
    easiest = runs if value == runs.goal.minimum else runs.with_share(runs.share)
    try:
        easiest.measure(value)
    except NotApplicable:  # the run is too short for a metric, or the engine needs a larger value
        return
    metric = easiest.metrics[value]
    ends = metric.high if runs.goal.is_minimum else metric.low
    # Few sources transfer few files. A metric without an interval does not exclude the target.
    if ends is not None and not runs.goal.is_met(ends):
        raise _unreachable_error(runs, metric, where)


def _unreachable_error(runs: Probes, metric: Metric, where: str) -> DomainError:
    goal, quantity = runs.goal, {"bps": "RATE", "s": "TIME"}
    kind = quantity.get(goal.metric.rpartition("_")[2], "")
    if metric.value == goal.worst_metric:
        reached = "the link is overloaded"
    else:
        reached = f"the result is {_value_text(kind, metric.value)}"
    return DomainError(
        f"the target of {_value_text(kind, goal.target)} cannot be reached: {where}, {reached}; "
        "use another target"
    )


def _set_answer(plan: Plan, runs: Probes, result: SearchResult) -> None:
    """Insert the result of a finished search into a plan."""
    goal, varied = runs.goal, runs.varied
    if result.at_limit and not result.is_met:
        assert result.metric is not None
        limit = f"with {varied.name} = {result.value:,.6g}"
        raise _unreachable_error(runs, result.metric, limit)
    plan.at_limit, plan.undecided = result.at_limit, result.undecided
    if not runs.is_exact:
        plan.low, plan.high = result.low, result.high
    if result.undecided:
        plan.warnings.append(f"undecided: {_undecided_reason(runs, result)}")
        return
    metric = result.metric
    plan.metric_at_value = metric and runs.without_exact_interval(metric)
    plan.fit_runs = result.fit_runs
    if metric is not None and not metric.trusted:
        plan.untrusted = (
            f"at {varied.name} = {result.value:,.6g}, the model of {runs.engine} does not apply"
        )
        return
    plan.value = int(result.value) if goal.integer else result.value
    plan.scenario = runs.scenario_at(result.value)
    plan.notes += _note_excess_scatter(result)
    if plan.column == "buffer_pkts":
        bits = 8 * plan.scenario.network.packet_bytes
        delay_s = plan.value * bits / plan.scenario.bottleneck.rate_bps
        bdp, senders = bdp_pkts(plan.scenario), plan.scenario.senders
        root = (
            f", and BDP/sqrt(senders) is {units.digits(bdp / math.sqrt(senders))} packets"
            if senders
            else ""
        )
        plan.recommendation = (
            f"A full buffer of {bytes_text(plan.value * bits / 8)} adds {time_text(delay_s)} of "
            f"queueing delay. The bandwidth-delay product (BDP) is {units.digits(bdp)} "
            f"packets{root}."
        )
    else:
        plan.recommendation = varied.split_text(plan.value)
    if plan.column == "loss_ratio":
        plan.recommendation = f"This is one packet in {float(f'{1 / plan.value:.3g}'):,.0f}."
    if plan.column in {"flows", "loss_ratio"} and len(plan.scenario.populations) == 1:
        sizing = compute_path_requirements(plan.scenario)
        plan.notes += [] if sizing is None else path_requirement_texts(sizing)


def _float_column(values: Any) -> Any:
    """Return a column of numbers; None becomes NaN."""
    return np.array(list(values), dtype=np.float64)


def merge_run_warnings(answers: Collection[Answer], shown: Collection[str]) -> list[Note]:
    """Return one warning per kind that affects the displayed values, with the number of runs."""
    found: dict[NoteKind, list[Note]] = {}
    for each in answers:
        kinds: dict[NoteKind, Note] = {}
        for warning in filter(None, (note.limited_to(shown) for note in each.notes)):
            kinds.setdefault(warning.kind, warning)
        for kind, warning in kinds.items():
            found.setdefault(kind, []).append(warning)
    merged = []
    for kind, notes in found.items():
        where = "" if len(notes) == len(answers) else f"in {len(notes)} of {len(answers)} runs: "
        merged.append(Note(f"{where}{notes[0]}", notes[0].metrics, kind=kind))
    return merged


def _note_excess_scatter(result: SearchResult) -> list[str]:
    """Return a note if the runs' own intervals are much narrower than their scatter."""
    if result.excess_scatter < MAX_EXCESS_SCATTER:
        return []
    return [
        f"The results of the {result.fit_runs} runs near the answer scatter "
        f"{result.excess_scatter:.2g} times as widely as their 95 % intervals suggest. The range "
        "of the answer is therefore computed from the scatter, and some intervals may exclude "
        "the target."
    ]


def _undecided_reason(runs: Probes, result: SearchResult) -> str:
    """Return the reason why an answer is undecided, and advice."""
    run = runs.varied.scenario.run
    times, why = 4, f"the runs are too short for an interval of {runs.goal.metric}"
    if result.low is not None and result.high is not None:
        why = f"the results of the runs scatter too much to determine {runs.varied.name}"
        wide = (result.high - result.low) / max(result.max_width, 1e-300)
        times = min(max(2, math.ceil(wide**2)), MAX_LENGTH_FACTOR)
    longer: tuple[str, Any] = ("run.transfers", times * (run.transfers or 0))
    if run.duration_s is not None:
        longer = ("run.duration", units.format_duration(times * run.duration_s))
    if runs.varied.scenario.isolated_transfers is not None:
        longer = ("traffic.count", 10_000)
    return f"{why}; simulate longer, for example {assignment_of(*longer)}"


def _buffer_rules_table(scenario: Scenario) -> Table:
    """Return the buffer and the maximum queueing delay of rules of thumb."""
    bits, senders = 8 * scenario.network.packet_bytes, scenario.senders
    link_pps, bdp = scenario.bottleneck.rate_bps / bits, bdp_pkts(scenario)
    rules = {
        "bandwidth x 600 ms": QUEUEING_DELAY_S * link_pps,
        "bandwidth x 300 ms": BDP_RTT_S * link_pps,
        "bandwidth x RTT (BDP)": bdp,
        **({"BDP / sqrt(senders)": bdp / math.sqrt(senders)} if senders else {}),
    }
    buffers = np.ceil(np.array(list(rules.values())) - 1e-9)
    return {
        "rule": np.array(list(rules)),
        "buffer_pkts": buffers,
        "size_bytes": buffers * bits / 8,
        "delay_s": buffers / link_pps,
    }
