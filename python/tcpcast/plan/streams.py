"""How many parallel flows are worth it: each adds its own until the link is full."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.engines.formula.feed import one_class, specified_loss
from tcpcast.engines.formula.parallel import MAX_WAITING_SHARE
from tcpcast.engines.formula.sizing import AMOUNT_BYTES, path_sizing, sizing_texts, time_text
from tcpcast.engines.stacks import omitted_models_text
from tcpcast.errors import DomainError
from tcpcast.models.bbr import TOLERATED_LOSS_RATIO
from tcpcast.models.parallel import flows_to_fill
from tcpcast.plan.monotone_fit import ANOTHER_ANSWER
from tcpcast.plan.path import (
    BEYOND_VALIDATED,
    VALIDATED_LOSS,
    check_of_path,
    many_waiting,
    percent,
    planned_path,
    rate_text,
    waiting_share,
)
from tcpcast.plan.path_models import BBR, CUBIC, PARALLEL, PFTK
from tcpcast.plan.question import Question
from tcpcast.plan.search import Found
from tcpcast.plan.trust import untrusted_reason
from tcpcast.plan.verification import Simulations, verify_by_simulation
from tcpcast.scenario.traffic import MOST_SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tcpcast.answer import Metric
    from tcpcast.engines import RunOptions
    from tcpcast.plan.path import PlannedPath
    from tcpcast.plan.path_models import PathModel
    from tcpcast.plan.result import Plan, Table
    from tcpcast.scenario import Population, Scenario

MODEL = "plan streams"
MODELS = {"reno": [PARALLEL, PFTK], "cubic": [CUBIC], "bbr": [BBR]}
"""The models of each congestion control, the one that answers first."""
CURVE_POINTS = 300
FREE = 0.8
"""Up to this share of a busy link flows send what loss or their windows leave them."""

FAST_RETRANSMIT_PKTS = 4
"""A lost packet and three duplicate acks: with fewer in flight every loss waits for a timer."""

_SEND_RATE = "send rate of all flows together, in bits of IP packets, by"
_COLUMNS = {
    "reno": f"parallel, pftk: {_SEND_RATE} algorithm 1 of Damjanovic et al. (2008) and by n times "
    "PFTK",
    "cubic": f"cubic: {_SEND_RATE} n times CUBIC's response function (RFC 9438)",
    "bbr": f"bbr: {_SEND_RATE} the bound of BBR, version 1",
}
_NOTE_ON_COLUMNS = (
    "goodput: delivered payload; gain: goodput added by one more flow; competing: goodput left "
    "for one other flow with the same RTT and loss."
)
_NOTE_ON_LOSS = (
    "p is constant: that of a path with random loss, or with the cross traffic of many. Where "
    "the flows themselves fill a queue, each adds less goodput and more loss."
)


def plan_streams(
    scenario: Scenario,
    *,
    verify: bool = False,
    least_s: float = 0.0,
    options: RunOptions | None = None,
) -> Plan:
    """Return the fewest parallel flows that fill the bottleneck: beyond, they only take.

    Parameters
    ----------
    scenario
        One class of bulk flows over random loss and a bottleneck with a rate; how many flows it
        has, and its run, play no part. The models are those of its stack's congestion control.
    verify
        Also simulate that many flows, twice and half as many: fewer than half where these fill the
        link. The simulation's own answer is the link's rate by what each of the fewest sends, and
        is simulated itself.
    least_s
        As in :func:`plan_max_loss`.
    options
        Threads and progress of the simulations.

    Returns
    -------
    Plan
        The fewest flows whose rate reaches the link's. Of Reno's window by algorithm 1 of the model
        of parallel flows, at most n windows an RTT; by n times PFTK where algorithm 1 would have
        many flows in RTO, with a warning. Else by CUBIC's response function, or the bound of BBR.
        Tables: ``streams`` (flows; parallel_bps and pftk_bps, cubic_bps or bbr_bps by each, at
        most the link's rate; by the one that answers goodput_bps, gain_bps, competing_bps, limit)
        and ``curve``, the same in many more points; ``simulated`` (flows, utilisation, model_bps,
        goodput_bps, low, high).

    Raises
    ------
    NotApplicable
        Several classes, traffic that is not bulk, a congestion control without a formula.
    DomainError
        No rate, no loss, or a link that no number of flows fills.
    """
    people = _check(scenario)
    path = planned_path(MODEL, scenario)
    models = MODELS[path.control]
    counts = [_fewest(path, model) for model in models]
    share = 0.0
    if path.control == "reno":
        share = waiting_share(path, flows=counts[0], loss_ratio=path.loss_ratio)
    crowded = share > MAX_WAITING_SHARE
    model, value = models[crowded], counts[crowded]
    asked = Question(
        words="parallel flows that are worth it",
        key=f"class.{people.name}.flows" if scenario.classes else "traffic.flows",
        column="flows",
        unit="flows",
        metric="goodput_bps",
    )
    # More flows than a scenario may have need no window worth telling.
    there = None if value > MOST_SOURCES else scenario.with_changes(asked.changes(value))
    plan = replace(
        asked.plan(),
        value=value,
        tables={
            "streams": _table(path, models, model, _shown(value)),
            "curve": _table(path, models, model, _curve(value)),
        },
        recommendation=_recommendation(path, model, value),
        notes=[
            path.note(with_loss=True),
            f"{_COLUMNS[path.control]}; {_NOTE_ON_COLUMNS}",
            _fills(path, counts),
            *filter(None, [omitted_models_text(scenario)]),
            _NOTE_ON_LOSS,
            *([] if there is None else _sizing(path, there, model, value)),
        ],
        warnings=[*path.warnings, *_warnings(path, value)],
        scenario=there,
    )
    if crowded:
        plan.warnings.append(many_waiting(path, share))
    if path.control == "reno" and path.loss_ratio > VALIDATED_LOSS:
        plan.untrusted = BEYOND_VALIDATED
    else:
        plan.untrusted = untrusted_reason(model.engine, scenario, asked.changes(value))
    if verify:
        _verify(plan, asked, path, model, scenario, least_s, options)
    return plan


def _fewest(path: PlannedPath, model: PathModel) -> int:
    """Return the fewest flows that fill the link by a model."""
    if model is not PARALLEL:
        return _whole(path.link_pps / float(model.rate(path, 1, path.loss_ratio)))
    return int(
        flows_to_fill(
            bottleneck_rate_pps=path.link_pps,
            loss_event_ratio=path.loss_ratio,
            receiver_window_pkts=path.window_pkts,
            **path.model_inputs(),
        )
    )


def _rate_pps(path: PlannedPath, model: PathModel, flows: Any) -> Any:
    """Return the rate of n flows in packets/s, at most the link's rate."""
    return np.minimum(model.rate(path, flows, path.loss_ratio), path.link_pps)


def _whole(flows: float) -> int:
    return max(1, math.ceil(flows - 1e-9))


def _check(scenario: Scenario) -> Population:
    """Return the class of flows; raises if no number of flows, or any number, fills the link."""
    people = one_class(MODEL, scenario, "bulk")
    network = scenario.network
    rate = network.bottleneck.rate_bps
    if math.isinf(rate):
        raise DomainError(
            "the bottleneck has no rate: every flow adds the same, without end; write a rate of "
            "1gbit, say"
        )
    loss = specified_loss(scenario, people)[0]
    if people.tcp.control == "bbr" and loss > TOLERATED_LOSS_RATIO:
        raise DomainError(
            "BBR keeps no rate above a loss of 20 %, where probing no longer renews its estimate: "
            "no number of flows fills the link; write a loss of 10%, say"
        )
    if loss > 0:
        return people
    needed = math.ceil(rate / (8 * network.packet_bytes) * people.rtt_s - 1e-9)
    window = scenario.populations[0].tcp.receiver_window
    flows = f"{math.ceil(needed / window):,} of {window:,.0f} packets" if window < needed else "one"
    raise DomainError(
        f"the loss is 0: without loss a flow grows to its window, and windows of {needed:,} "
        f"packets in all fill the link, so {flows} will do; write a loss of 0.01%, say"
    )


def _shown(value: int) -> list[int]:
    """Return the numbers of flows to print: one, shares of the answer, the answer, and beyond."""
    below = (max(1, round(share * value)) for share in (0.1, 0.25, 0.5, 0.75))
    return sorted({1, *below, value, value + 1, 2 * value, 4 * value})


def _curve(value: int) -> list[int]:
    most = max(3 * value, 10)
    return sorted({round(n) for n in np.linspace(1, most, min(most, CURVE_POINTS))})


def _table(
    path: PlannedPath, models: Sequence[PathModel], model: PathModel, flows: Iterable[int]
) -> Table:
    """Return the rates by each model, and by the one that answers what they mean."""
    n = np.array(list(flows))
    rate, one_more = (_rate_pps(path, model, m) for m in (n, n + 1))
    own = np.where(model.is_held(path, n), "window", "loss")
    return {
        "flows": n,
        **{f"{each.column}_bps": path.link_bps(_rate_pps(path, each, n)) for each in models},
        "goodput_bps": path.goodput_bps(rate, path.loss_ratio),
        "gain_bps": path.goodput_bps(one_more - rate, path.loss_ratio),
        "competing_bps": path.goodput_bps(one_more / (n + 1), path.loss_ratio),
        "limit": np.where(rate >= path.link_pps, "capacity", own),
    }


def _recommendation(path: PlannedPath, model: PathModel, value: int) -> str:
    """Return what to do and why, in one sentence."""

    def of_each(flows: int) -> str:
        sent = float(_rate_pps(path, model, flows)) / flows
        return rate_text(float(path.goodput_bps(sent, path.loss_ratio)))

    left = (
        f"each further flow only takes from others: with {value:,} the goodput of a competing flow "
        f"is {of_each(value + 1)}, with {2 * value:,} it is {of_each(2 * value + 1)}."
    )
    if value == 1:
        return f"One flow fills the link; {left}"
    holder = f"loss of {percent(path.loss_ratio)}"
    if model.is_held(path, 1):
        holder = path.window_name
    return (
        f"{value:,} flows fill the link, because {holder} limits the goodput of one to "
        f"{of_each(1)}; beyond {value:,} {left}"
    )


def _fills(path: PlannedPath, counts: Sequence[int]) -> str:
    """Say how many flows each model wants."""
    by_cubic = _counted(_fewest(path, CUBIC))
    bbr = "BBR, by its bound, with 1 flow"
    if path.loss_ratio > TOLERATED_LOSS_RATIO:
        bbr = "BBR keeps no rate above a loss of 20 %"
    if path.control != "reno":
        return f"CUBIC, by its response function (RFC 9438), fills the link with {by_cubic}; {bbr}."
    by_parallel, by_pftk = map(_counted, counts)
    return (
        f"Algorithm 1 fills the link with {by_parallel}, n times PFTK with {by_pftk}; CUBIC, by "
        f"its response function (RFC 9438), with {by_cubic}; {bbr}."
    )


def _sizing(path: PlannedPath, scenario: Scenario, model: PathModel, value: int) -> list[str]:
    """Say what the flows take of their ends, and how long 1 GB takes them."""
    sizing = path_sizing(scenario)
    rate = float(_rate_pps(path, model, value))
    took = time_text(scenario, AMOUNT_BYTES, float(path.goodput_bps(rate, path.loss_ratio)))
    return [] if sizing is None else [*sizing_texts(sizing), took]


def _counted(flows: int) -> str:
    return f"{flows:,} flow{'' if flows == 1 else 's'}"


def _warnings(path: PlannedPath, value: int) -> list[str]:
    found = []
    if path.control == "reno" and path.loss_ratio > VALIDATED_LOSS:
        found.append(
            f"a loss of {percent(path.loss_ratio)} is beyond the 10 % up to which algorithm 1 is "
            "validated by its authors"
        )
    share = path.link_pps * path.rtt_s / value
    if share < FAST_RETRANSMIT_PKTS:
        found.append(
            f"in a round trip the link takes {share:.3g} packets of each of {_counted(value)}: "
            "fewer than fast retransmit needs, so a full queue means timeouts"
        )
    return found


def _verify(  # noqa: PLR0913, PLR0917 - what is asked, and how
    plan: Plan,
    asked: Question,
    path: PlannedPath,
    model: PathModel,
    scenario: Scenario,
    least_s: float,
    options: RunOptions | None,
) -> None:
    """Simulate the answer, half and twice of it, if that is not too much."""
    value = int(plan.value)
    half = max(1, value // 2)
    tried = sorted({half, value, 2 * value})
    rates = _rate_pps(path, model, np.array(tried))
    # With the half of them the link is not full: the flows lose as rarely as the model says.
    check = check_of_path(
        plan,
        path,
        flows=half,
        rate_pps=float(rates[0]),
        total_pps=float(rates.sum()),
        least_s=least_s,
        instead="check a slower link, which fewer flows fill in proportion: write a tenth of its "
        "rate",
    )
    if check is None:
        return
    runs = Simulations(scenario.with_changes(check[0]), asked, options)

    def search() -> Found | None:
        for flows in tried:
            runs.measure(flows)
        return _filling(runs, path, half)

    verify_by_simulation(plan, runs, search)
    plan.tables["simulated"] = _beside_the_model(plan, path, model)
    plan.notes.append(
        f"{check[1]} Its own answer: the link's rate over the mean rate of each of the fewest "
        "flows. model, goodput: delivered payload."
    )
    if plan.leads_by_simulation and plan.simulated is not None:
        busy = runs.answers[plan.simulated]["utilisation"]
        plan.recommendation = (
            f"Simulated, {_counted(round(plan.simulated))} send at the link's rate, which is then "
            f"busy {percent(busy)} of the time. The values of the models are not trusted here."
        )


def _filling(runs: Simulations, path: PlannedPath, fewest: int) -> Found | None:
    """Return how many flows fill the link by what each sends where the link does not limit it."""
    while runs.measure(fewest) > 0 and runs.answers[fewest]["utilisation"] > FREE:
        if fewest == 1:
            break
        fewest = max(1, fewest // 2)
    sent = runs.answers[fewest].metrics["send_rate_pps"]
    if not sent.value > 0:
        return None
    value, low, high = (
        None if rate is None else min(_whole(fewest * path.link_pps / rate), MOST_SOURCES)
        for rate in (sent.value, *_of_other_seeds(sent))
    )
    assert value is not None
    runs.measure(value)
    return Found(value, low, high, there=runs.at(value))


def _of_other_seeds(sent: Metric) -> tuple[float | None, float | None]:
    """Return between which the rates of other seeds lie at 95 %, the highest first."""
    if sent.low is None or sent.high is None or not sent.low > 0:
        return None, None
    wider = math.sqrt(ANOTHER_ANSWER)
    first, last = (sent.value * (end / sent.value) ** wider for end in (sent.high, sent.low))
    return first, last


def _beside_the_model(plan: Plan, path: PlannedPath, model: PathModel) -> Table:
    measured = plan.tables["simulated"]
    flows = measured.pop("flows")
    return {
        "flows": flows,
        "utilisation": np.array([each["utilisation"] for each in plan.verified]),
        "model_bps": path.goodput_bps(_rate_pps(path, model, flows), path.loss_ratio),
        **measured,
    }
