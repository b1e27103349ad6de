"""Useful number of parallel flows: each flow adds its rate until the link is full."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.engines.formula.collect_inputs import (
    get_specified_loss,
    require_one_class,
)
from tcpcast.engines.formula.path_requirements import (
    DEFAULT_AMOUNT_BYTES,
    ROUNDING_TOLERANCE,
    compute_path_requirements,
    path_requirement_texts,
    time_for_amount_text,
)
from tcpcast.engines.stack_support import omitted_formulas_text
from tcpcast.errors import DomainError
from tcpcast.models.bbr import TOLERATED_LOSS_RATIO
from tcpcast.models.parallel import flows_to_fill
from tcpcast.plan.inverse_question import InverseQuestion
from tcpcast.plan.monotone_fit import DIFFERENCE_VARIANCE_RATIO
from tcpcast.plan.path_models import BBR, CUBIC, LOSSLESS, PARALLEL, PFTK
from tcpcast.plan.planned_path import (
    make_planned_path,
    percent_text,
    verify_path_by_simulation,
    warn_if_pftk_replaces_algorithm_1,
)
from tcpcast.plan.search import SearchResult
from tcpcast.readable_units import count_text, rate_text
from tcpcast.scenario.traffic import MAX_SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tcpcast.answer import Metric
    from tcpcast.engines import RunOptions
    from tcpcast.plan.path_models import PathModel
    from tcpcast.plan.planned_path import PlannedPath
    from tcpcast.plan.result import Plan, Table
    from tcpcast.plan.verification import PlanSimulations
    from tcpcast.scenario import Population, Scenario

PLAN_NAME = "plan streams"
MODELS_BY_CONTROL = {"reno": [PARALLEL, PFTK], "cubic": [CUBIC], "bbr": [BBR]}
"""Models per congestion control; the first model gives the answer."""
CURVE_POINTS = 300
MAX_FREE_UTILISATION = 0.8
"""Maximum utilisation at which only loss or windows, not the link, limit the flows."""

FAST_RETRANSMIT_PKTS = 4
"""Minimum packets in flight for fast retransmit: the lost packet, and three that cause duplicate
ACKs."""

_SEND_RATE = "total send rate of all flows, in bits of IP packets, by"
_SEND_RATE_COLUMNS = {
    "reno": f"parallel, pftk: {_SEND_RATE} algorithm 1 of Damjanovic et al. (2008) and by n times "
    "PFTK",
    "cubic": f"cubic: {_SEND_RATE} n times CUBIC's response function (RFC 9438)",
    "bbr": f"bbr: {_SEND_RATE} the bound of BBR, version 1",
}
_LOSSLESS_COLUMN = f"window: {_SEND_RATE} one full window per RTT each"
_NOTE_ON_COLUMNS = (
    "goodput: payload that is delivered; gain: goodput that one more flow adds; competing: "
    "goodput of one other flow with the same RTT and loss."
)
_NOTE_ON_LOSS = (
    "The models assume that the loss ratio p is constant, as on a path with random loss or "
    "with the cross traffic of many users. If the flows themselves fill a queue, each further "
    "flow increases the loss and adds less goodput."
)


_NOTE_WITHOUT_LOSS = (
    "The path has no random loss, so each flow sends a full window per RTT with any congestion "
    "control, at most at the rate of its own links. The buffers of these links are assumed to be "
    "large enough to keep them busy."
)


def plan_streams(
    scenario: Scenario,
    *,
    verify: bool = False,
    least_s: float = 0.0,
    options: RunOptions | None = None,
) -> Plan:
    """Return the minimum number of parallel flows that fill the bottleneck.

    Parameters
    ----------
    scenario
        One class of bulk flows over a bottleneck with a rate. The number of flows and the run are
        ignored. The stack's congestion control determines the models, unless the path has no random
        loss: each flow then sends a full window per RTT.
    verify
        Also simulate this number of flows, twice and half this number, or fewer than half if half
        of the flows fill the link. The simulation's answer is the link's rate divided by the rate
        per flow in the run with the fewest flows. This answer is also simulated.
    least_s
        As in :func:`plan_max_loss`.
    options
        Threads and progress of the simulations.

    Returns
    -------
    Plan
        The minimum number of flows whose total rate reaches the link's rate. The model for Reno is
        algorithm 1 of the parallel flows model, limited to n windows per RTT. If algorithm 1 has
        many flows in RTO, the model is n times PFTK, with a warning. The models for CUBIC and BBR
        are CUBIC's response function and the bound of BBR. Tables: ``streams`` (flows; the rate by
        each model, parallel_bps and pftk_bps, cubic_bps, bbr_bps or, without loss, window_bps, at
        most the link's rate; by the model that answers: goodput_bps, gain_bps, competing_bps,
        limit) and ``curve``, the same columns at more points; ``simulated`` (flows, utilisation,
        model_bps, goodput_bps, low, high).

    Raises
    ------
    NotApplicable
        The scenario has several classes, traffic other than bulk, or a congestion control without
        a formula.
    DomainError
        There is no rate, or no number of flows fills the link.
    """
    people = _check_link_can_be_filled(scenario)
    path = make_planned_path(PLAN_NAME, scenario, accepts_no_loss=True)
    has_loss = path.loss_ratio > 0
    models = MODELS_BY_CONTROL[path.control] if has_loss else [LOSSLESS]
    counts = [_min_flows_of_model(path, model) for model in models]
    replaced = []
    if path.control == "reno" and has_loss:
        replaced = warn_if_pftk_replaces_algorithm_1(
            path, flows=counts[0], loss_ratio=path.loss_ratio
        )
    chosen = 1 if replaced else 0
    model, value = models[chosen], counts[chosen]
    question = InverseQuestion(
        text="useful number of parallel flows",
        key=f"class.{people.name}.flows" if scenario.classes else "traffic.flows",
        column="flows",
        unit="flows",
        metric="goodput_bps",
        headings={"streams": "Rates by the number of flows", "curve": ""},
    )
    # A scenario cannot have more flows than this maximum.
    there = None if value > MAX_SOURCES else scenario.with_changes(question.changes(value))
    plan = replace(
        question.plan(),
        value=value,
        tables={
            "streams": _rate_table(path, models, model, _flow_counts_to_print(value)),
            "curve": _rate_table(path, models, model, _flow_counts_of_curve(value)),
        },
        recommendation=_recommendation_text(path, model, value),
        notes=[
            path.note(with_loss=True),
            f"{_SEND_RATE_COLUMNS[path.control] if has_loss else _LOSSLESS_COLUMN}; "
            f"{_NOTE_ON_COLUMNS}",
            *(
                [
                    _note_flows_by_model(path, counts),
                    *filter(None, [omitted_formulas_text(scenario)]),
                    _NOTE_ON_LOSS,
                ]
                if has_loss
                else [_NOTE_WITHOUT_LOSS]
            ),
            *([] if there is None else _note_memory_and_time(path, there, model, value)),
        ],
        warnings=[*path.warnings, *_warn_about_few_packets(path, value), *replaced],
        scenario=there,
    )
    plan.untrusted = model.untrusted_reason(scenario, question, value, path.loss_ratio)
    if verify:
        _verify_by_simulation(plan, question, path, model, scenario, least_s, options)
    return plan


def _min_flows_of_model(path: PlannedPath, model: PathModel) -> int:
    """Return the minimum number of flows that fill the link according to a model."""
    if model is not PARALLEL:
        return _round_up_flows(path.link_pps / float(model.rate(path, 1, path.loss_ratio)))
    return int(
        flows_to_fill(
            bottleneck_rate_pps=path.link_pps,
            loss_event_ratio=path.loss_ratio,
            receiver_window_pkts=path.window_pkts,
            **path.model_inputs(),
        )
    )


def _limited_rate_pps(path: PlannedPath, model: PathModel, flows: Any) -> Any:
    """Return the rate of n flows in packets/s, at most the link's rate."""
    rate = model.rate(path, flows, path.loss_ratio)
    is_full = np.greater_equal(rate, path.link_pps * (1 - ROUNDING_TOLERANCE))
    return np.where(is_full, path.link_pps, rate)


def _round_up_flows(flows: float) -> int:
    return max(1, math.ceil(flows - ROUNDING_TOLERANCE))


def _check_link_can_be_filled(scenario: Scenario) -> Population:
    """Return the class of flows; raise if no number of flows fills the link.

    This is the case without a link rate, and with too much loss for BBR.
    """
    people = require_one_class(PLAN_NAME, scenario, "bulk")
    if math.isinf(scenario.network.bottleneck.rate_bps):
        raise DomainError(
            "the bottleneck has no rate, so each further flow adds the same rate; write, for "
            "example, a rate of 1gbit"
        )
    loss = get_specified_loss(scenario, people)[0]
    if people.tcp.control == "bbr" and loss > TOLERATED_LOSS_RATIO:
        raise DomainError(
            "no number of BBR flows fills the link, because at a loss above 20 %, probing no "
            "longer renews the rate estimate of BBR; write, for example, "
            "a loss of 10%"
        )
    return people


def _flow_counts_to_print(value: int) -> list[int]:
    """Return the numbers of flows to print: from one flow to 4 times the answer."""
    below = (max(1, round(share * value)) for share in (0.1, 0.25, 0.5, 0.75))
    return sorted({1, *below, value, value + 1, 2 * value, 4 * value})


def _flow_counts_of_curve(value: int) -> list[int]:
    maximum = max(3 * value, 10)
    return sorted({round(n) for n in np.linspace(1, maximum, min(maximum, CURVE_POINTS))})


def _rate_table(
    path: PlannedPath, models: Sequence[PathModel], model: PathModel, flows: Iterable[int]
) -> Table:
    """Return the rates of each model, and the goodput and limit according to the first one."""
    n = np.array(list(flows))
    rate, one_more = (_limited_rate_pps(path, model, m) for m in (n, n + 1))
    own = np.where(model.is_window_limited(path, n), "window", "loss")
    return {
        "flows": n,
        **{
            f"{each.column}_bps": path.link_bps(_limited_rate_pps(path, each, n)) for each in models
        },
        "goodput_bps": path.goodput_bps(rate, path.loss_ratio),
        "gain_bps": path.goodput_bps(one_more - rate, path.loss_ratio),
        "competing_bps": path.goodput_bps(one_more / (n + 1), path.loss_ratio),
        "limit": np.where(rate >= path.link_pps, "capacity", own),
    }


def _recommendation_text(path: PlannedPath, model: PathModel, value: int) -> str:
    """Return the advice with its reason as one sentence."""

    def of_each(flows: int) -> str:
        sent = float(_limited_rate_pps(path, model, flows)) / flows
        return rate_text(float(path.goodput_bps(sent, path.loss_ratio)))

    left = (
        "each further flow only takes rate from others. A competing flow gets "
        f"{of_each(value + 1)} next to {count_text(value, 'flow')}, and {of_each(2 * value + 1)} "
        f"next to {count_text(2 * value, 'flow')}."
    )
    if value == 1:
        return f"One flow fills the link; {left}"
    holder = f"a loss of {percent_text(path.loss_ratio)}"
    if model.is_window_limited(path, 1):
        holder = path.window_name
    return (
        f"{value:,} flows fill the link, because {holder} limits the goodput of one flow to "
        f"{of_each(1)}. Beyond {value:,} flows, {left}"
    )


def _note_flows_by_model(path: PlannedPath, counts: Sequence[int]) -> str:
    """Return a note with the number of flows according to each model."""
    by_cubic = count_text(_min_flows_of_model(path, CUBIC), "flow")
    bbr = "for BBR, 1 flow (bound of its rate)"
    if path.loss_ratio > TOLERATED_LOSS_RATIO:
        bbr = "BBR does not fill the link at a loss above 20 %"
    if path.control != "reno":
        return (
            f"Number of flows that fill the link: for CUBIC, {by_cubic} (response function of "
            f"RFC 9438); {bbr}."
        )
    by_parallel, by_pftk = (count_text(flows, "flow") for flows in counts)
    return (
        f"Number of flows that fill the link: for Reno, {by_parallel} (algorithm 1) or {by_pftk} "
        f"(n times PFTK); for CUBIC, {by_cubic} (response function of RFC 9438); {bbr}."
    )


def _note_memory_and_time(
    path: PlannedPath, scenario: Scenario, model: PathModel, value: int
) -> list[str]:
    """Return notes about the memory of the hosts and the time for 1 GB."""
    sizing = compute_path_requirements(scenario)
    rate = float(_limited_rate_pps(path, model, value))
    took = time_for_amount_text(
        scenario, DEFAULT_AMOUNT_BYTES, float(path.goodput_bps(rate, path.loss_ratio))
    )
    return [] if sizing is None else [*path_requirement_texts(sizing), took]


def _warn_about_few_packets(path: PlannedPath, value: int) -> list[str]:
    share = path.link_pps * path.rtt_s / value
    if share >= FAST_RETRANSMIT_PKTS:
        return []
    return [
        f"per RTT, the link carries only {share:.3g} packets of each of "
        f"{count_text(value, 'flow')}. These are too few for fast retransmit, so a full queue "
        "causes timeouts"
    ]


def _verify_by_simulation(  # noqa: PLR0913, PLR0917 - the question and the options
    plan: Plan,
    question: InverseQuestion,
    path: PlannedPath,
    model: PathModel,
    scenario: Scenario,
    least_s: float,
    options: RunOptions | None,
) -> None:
    """Simulate the answer, half of it and twice as much, unless that takes too long."""
    value = int(plan.value)
    half = max(1, value // 2)
    tried = sorted({half, value, 2 * value})
    rates = _limited_rate_pps(path, model, np.array(tried))

    def search(runs: PlanSimulations) -> SearchResult | None:
        for flows in tried:
            runs.measure(flows)
        return _flows_from_rates(runs, path, half)

    # With half of the flows, the link is not full: losses are as rare as in the model.
    runs = verify_path_by_simulation(
        plan,
        question,
        scenario,
        path,
        search,
        flows=half,
        rate_pps=float(rates[0]),
        total_pps=float(rates.sum()),
        least_s=least_s,
        options=options,
        instead="to check with fewer flows, write a lower rate of the bottleneck, for example a "
        "tenth",
        note=" The simulation's answer is the link's rate divided by the mean rate per flow in the "
        "run with the fewest flows. The columns `model` and `goodput` contain "
        "delivered payload.",
    )
    if runs is None:
        return
    plan.tables["simulated"] = _compare_with_models(plan, path, model)
    if plan.is_simulation_reported_first and plan.simulated is not None:
        busy = runs.answers[plan.simulated]["utilisation"]
        flows = round(plan.simulated)
        send = "together send" if flows > 1 else "sends"
        plan.recommendation = (
            f"According to the simulation, {count_text(flows, 'flow')} {send} at the link's rate, "
            f"and the link is busy {percent_text(busy)} of the time. Do not trust the values of "
            "the models here."
        )


def _flows_from_rates(
    runs: PlanSimulations, path: PlannedPath, min_flows: int
) -> SearchResult | None:
    """Return the number of flows that fill the link, from the rate per flow on a non-full link."""
    while (
        runs.measure(min_flows) > 0
        and runs.answers[min_flows]["utilisation"] > MAX_FREE_UTILISATION
    ):
        if min_flows == 1:
            break
        min_flows = max(1, min_flows // 2)
    sent = runs.answers[min_flows].metrics["send_rate_pps"]
    if not sent.value > 0:
        return None
    value, low, high = (
        None
        if rate is None
        else min(_round_up_flows(min_flows * path.link_pps / rate), MAX_SOURCES)
        for rate in (sent.value, *_interval_over_seeds(sent))
    )
    assert value is not None
    runs.measure(value)
    return SearchResult(value, low, high, metric=runs.metric_at(value))


def _interval_over_seeds(sent: Metric) -> tuple[float | None, float | None]:
    """Return the interval that contains 95 % of the rates with other seeds, upper limit first."""
    if sent.low is None or sent.high is None or not sent.low > 0:
        return None, None
    wider = math.sqrt(DIFFERENCE_VARIANCE_RATIO)
    first, last = (sent.value * (end / sent.value) ** wider for end in (sent.high, sent.low))
    return first, last


def _compare_with_models(plan: Plan, path: PlannedPath, model: PathModel) -> Table:
    measured = plan.tables["simulated"]
    flows = measured.pop("flows")
    return {
        "flows": flows,
        "utilisation": np.array([each["utilisation"] for each in plan.verified]),
        "model_bps": path.goodput_bps(_limited_rate_pps(path, model, flows), path.loss_ratio),
        **measured,
    }
