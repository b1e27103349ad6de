"""The maximum loss for a target rate, by the inverse of the models of loss."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tcpcast import units
from tcpcast.engines.formula.collect_inputs import require_one_class
from tcpcast.engines.formula.path_requirements import bytes_text
from tcpcast.engines.stack_support import omitted_formulas_text
from tcpcast.errors import DomainError, NotApplicable
from tcpcast.plan.curve_table import values_around_answer
from tcpcast.plan.inverse_question import InverseQuestion, check_positive_rate
from tcpcast.plan.path_models import BBR, CUBIC, MATHIS, MIN_LOSS, PARALLEL, PFTK, PathModel
from tcpcast.plan.planned_path import (
    PlannedPath,
    make_planned_path,
    percent_text,
    verify_path_by_simulation,
    warn_if_pftk_replaces_algorithm_1,
)
from tcpcast.plan.search import SearchGoal, search_from_start
from tcpcast.readable_units import count_text, rate_text, time_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcpcast.engines import RunOptions
    from tcpcast.plan.result import Plan, Table
    from tcpcast.scenario import Scenario

    Floats = NDArray[np.float64]

PLAN_NAME = "plan max-loss"
_LOSS_KEY = "network.bottleneck.loss"
JUMBO_BYTES = 9000

GRID_POINTS = 1024
"""Number of points of the grid on which a loss is searched. The search is repeated on a new grid
between two neighbouring points."""

GRID_TOLERANCE = 1e-6
"""Relative distance of the two neighbouring points at which the search ends."""

MAX_LOSS = 1 - 1e-9
"""Maximum loss of the search: with a loss of 1, no packet arrives."""

CAPACITY_TOLERANCE = 1e-9
"""If the target is within this relative distance of the capacity of windows or link, no loss is
permitted."""

CURVE_FACTOR = 30
"""Factor by which the curve extends below and above the answer."""

MIN_ISOLINE_LOSS = 1e-9
"""Minimum loss of the isoline."""

ISOLINE_RTT_FACTORS = np.geomspace(0.1, 4, 33)
"""RTTs of the isoline as multiples of the path's RTT."""

MAX_LOSS_EXPONENT = 2.5
"""Upper limit of the exponent of the loss as a function of the goodput: the square-root formula
has 2."""

MAX_LOSS_AS_PACKETS = 0.1
"""Maximum loss that a sentence states as "one packet in n"."""

MIN_REPORTED_FACTOR = 1.005
"""The recommendation states a change that raises the maximum loss by at least this factor."""

VERIFICATION_RUNS = 8
"""Approximate number of loss ratios that a check simulates."""


def plan_max_loss(
    scenario: Scenario,
    *,
    goodput_bps: float,
    verify: bool = False,
    least_s: float = 0.0,
    options: RunOptions | None = None,
) -> Plan:
    """Return the largest loss at which the flows still reach a goodput.

    Parameters
    ----------
    scenario
        One class of bulk flows; its loss and its run are ignored.
    goodput_bps
        Total goodput (delivered application payload) of all flows, bit/s, above 0.
    verify
        Also search the loss by simulation, starting from the model's answer, and simulate the
        result.
    least_s
        Minimum duration of each simulation in seconds; rare losses need longer simulations.
    options
        Threads and progress of the simulations.

    Returns
    -------
    Plan
        The largest p for which (1 - p) B(p) is at least the goodput in packets/s: by the full
        PFTK model (31) for one flow, by algorithm 1 of the parallel model for more flows, or, if
        algorithm 1 has many flows in RTO, by n times PFTK with a warning. Tables: ``tolerated``
        (model, loss_ratio, packets_per_loss, rate_bps, regime); ``ways`` (change, loss_ratio,
        times), the result with one changed parameter and its ratio to the answer; ``simulated``
        (loss_ratio, goodput_bps, low, high); for figures ``curve``, the goodput over the loss with
        one column per model, and ``isoline`` (rtt_s, loss_ratio), the pairs for which the first
        model has the target goodput.

    Raises
    ------
    NotApplicable
        The scenario has several classes, traffic other than bulk, or loss at other links.
    DomainError
        The link or the windows do not permit the goodput even without loss.
    """
    check_positive_rate("goodput", goodput_bps, "50mbit")
    scenario = _insert_placeholder_loss(scenario)
    path = make_planned_path(PLAN_NAME, scenario)
    _check_target_without_loss(path, goodput_bps)
    models, replaced = _select_models(path, goodput_bps)
    losses = [_solve_max_loss(path, model, goodput_bps) for model in models]
    value = losses[0]
    ways = _table_of_single_changes(path, scenario, goodput_bps, value)
    question = InverseQuestion(
        text=f"largest loss for a goodput of {rate_text(goodput_bps)}",
        key=_LOSS_KEY,
        column="loss_ratio",
        unit="1",
        metric="goodput_bps",
        target=goodput_bps,
        format_value=units.format_ratio,
        axis="loss",
        headings={
            "tolerated": "Maximum loss by model",
            "ways": "Effect of a single change",
            "curve": "",
            "isoline": "",
        },
    )
    plan = replace(
        question.plan(),
        value=value,
        tables={"tolerated": _model_table(path, models, losses, goodput_bps), "ways": ways},
        recommendation=_recommendation_text(path, goodput_bps, value, ways),
        notes=[
            path.note(with_loss=False),
            *filter(None, [omitted_formulas_text(scenario)]),
            *_required_rate_notes(path, goodput_bps, value),
        ],
        warnings=[*path.warnings, *replaced],
        untrusted=models[0].untrusted_reason(scenario, question, value, value),
        scenario=scenario.with_changes(question.changes(value)),
    )
    if verify:
        _verify_by_simulation(plan, question, path, least_s, options)
    simulated = plan.tables.get("simulated", {}).get("loss_ratio", ())
    plan.tables["curve"] = _goodput_curve(
        path, models, values_around_answer(value, simulated, CURVE_FACTOR, maximum=MAX_LOSS)
    )
    plan.tables["isoline"] = _max_loss_by_rtt(path, scenario, models[0], goodput_bps)
    return plan


def _goodput_curve(path: PlannedPath, models: list[PathModel], losses: Floats) -> Table:
    """Return the goodput at each loss for each model."""
    return {
        "loss_ratio": losses,
        **{f"{model.column}_bps": _limited_goodput_bps(path, model, losses) for model in models},
    }


def _limited_goodput_bps(path: PlannedPath, model: PathModel, losses: Floats) -> Floats:
    """Return the goodput of a model, limited by the link and the windows; NaN if unlimited."""
    maximum = min(path.link_pps, path.flows * path.window_pkts / path.rtt_s)
    goodput = path.goodput_bps(np.minimum(model.rate(path, path.flows, losses), maximum), losses)
    return np.where(np.isfinite(goodput), goodput, np.nan)


def _find_crossing_loss(losses: Floats, goodput: Floats, target: float) -> float:
    """Return the largest loss at which a falling goodput meets the target, or NaN."""
    enough = int(np.count_nonzero(~(goodput < target)))
    if enough in {0, len(losses)}:
        return math.nan if not enough else float(losses[-1])
    ends = slice(enough - 1, enough + 1)
    above, below = np.log(np.maximum(goodput[ends], 1e-300) / target)
    share = above / (above - below) if math.isfinite(above) else 0.0
    return float(losses[enough - 1] * (losses[enough] / losses[enough - 1]) ** share)


def _max_loss_by_rtt(
    path: PlannedPath, scenario: Scenario, model: PathModel, goodput_bps: float
) -> Table:
    """Return the maximum loss at each round-trip time, or NaN if none is permitted."""
    losses = np.geomspace(MIN_ISOLINE_LOSS, 1, GRID_POINTS, endpoint=False)
    tcp, found = scenario.populations[0].tcp, []
    for rtt in path.rtt_s * ISOLINE_RTT_FACTORS:
        there = replace(path, rtt_s=rtt, t0_s=tcp.timeout_s(rtt))
        found.append(
            _find_crossing_loss(losses, _limited_goodput_bps(there, model, losses), goodput_bps)
        )
    return {"rtt_s": path.rtt_s * ISOLINE_RTT_FACTORS, "loss_ratio": np.array(found)}


def _insert_placeholder_loss(scenario: Scenario) -> Scenario:
    """Return the scenario with a placeholder loss at its bottleneck, and nowhere else."""
    people = require_one_class(PLAN_NAME, scenario, "bulk")
    elsewhere = [
        f"network.{on.key}.loss"
        for on in people.links(scenario.network)
        if on.link.loss is not None and not on.measured
    ]
    if elsewhere:
        raise NotApplicable(
            "the plan solves for the loss of the bottleneck, so no other link may have a loss; "
            f"omit {' and '.join(elsewhere)}"
        )
    return scenario.with_changes({_LOSS_KEY: "1%"})


def _check_target_without_loss(path: PlannedPath, goodput_bps: float) -> None:
    """Raise, with advice, if the path does not permit the goodput even without loss."""
    goal = f"a goodput of {rate_text(goodput_bps)}"
    link_bps = path.goodput_bps(path.link_pps, 0.0)
    if goodput_bps >= link_bps * (1 - CAPACITY_TOLERANCE):
        needed = rate_text(1.1 * goodput_bps * path.packet_bytes / path.payload_bytes)
        raise DomainError(
            f"{goal} cannot be reached: a link of {rate_text(path.link_bps(path.link_pps))} "
            f"carries at most {rate_text(link_bps)} of payload; write a lower goodput, or a link "
            f"rate of {needed}"
        )
    each_bps = path.goodput_bps(path.window_pkts / path.rtt_s, 0.0)
    if goodput_bps < path.flows * each_bps * (1 - CAPACITY_TOLERANCE):
        return
    total = f" for each of {path.flows} flows" if path.flows > 1 else ""
    limit = f"{path.window_name} gives"
    if path.is_window_below_own_link:
        limit = f"{path.window_name} and an RTT of {time_text(path.rtt_s)} give"
    raise DomainError(
        f"{goal} cannot be reached: {limit} {rate_text(each_bps)} of payload{total} without loss; "
        f"write a lower goodput, "
        f"{_alternatives_text(path, goodput_bps, each_bps)}"
    )


def _alternatives_text(path: PlannedPath, goodput_bps: float, each_bps: float) -> str:
    """Return alternatives: more flows; a larger window or a shorter RTT, or a faster own link."""
    flows_exact = goodput_bps / each_bps * (1 + CAPACITY_TOLERANCE)
    if not path.is_window_below_own_link:
        faster = goodput_bps / path.flows * path.packet_bytes / path.payload_bytes
        return (
            f"{math.floor(flows_exact) + 1} flows, or a rate of this link above {rate_text(faster)}"
        )
    window = math.floor(flows_exact * path.window_pkts / path.flows) + 1
    flows = math.floor(flows_exact) + 1
    rtt = path.flows * each_bps / goodput_bps * path.rtt_s
    size = f"{window:,} packets ({bytes_text(window * path.payload_bytes)})"
    return f"a window of at least {size}, {flows} flows, or an RTT below {time_text(rtt)}"


def _select_models(path: PlannedPath, goodput_bps: float) -> tuple[list[PathModel], list[str]]:
    """Return the models, starting with the one that answers, and warnings about algorithm 1."""
    if path.control != "reno":
        return [BBR, CUBIC] if path.control == "bbr" else [CUBIC, BBR], []
    replaced: list[str] = []
    if path.flows > 1:
        p = _solve_max_loss(path, PARALLEL, goodput_bps)
        replaced = warn_if_pftk_replaces_algorithm_1(path, flows=path.flows, loss_ratio=p)
        if not replaced:
            return [PARALLEL, PFTK, MATHIS, CUBIC], []
    return [PFTK, PARALLEL, MATHIS, CUBIC], replaced


def _solve_max_loss(path: PlannedPath, model: PathModel, goodput_bps: float) -> float:
    """Return the largest p for which (1 - p) times the limited rate B(p) meets the goodput.

    For a goodput g, the flows send g/(1 - p), so p is the fixed point of the model's inverse at
    g/(1 - p). The inverse falls with p, so there is exactly one fixed point.
    """
    target = goodput_bps / path.goodput_bps(1, 0.0)
    maximum = min(path.link_pps, path.flows * path.window_pkts / path.rtt_s)
    high = min(
        float(model.inverse(path, np.asarray(target))), (1 - target / maximum) * MAX_LOSS, MAX_LOSS
    )
    low = min(float(model.inverse(path, np.asarray(target / (1 - high)))), high)
    while high > low * (1 + GRID_TOLERANCE):
        grid = np.geomspace(low, high, GRID_POINTS)
        last = max(int(np.count_nonzero(model.inverse(path, target / (1 - grid)) >= grid)) - 1, 0)
        low, high = float(grid[last]), float(grid[min(last + 1, GRID_POINTS - 1)])
    return float(low)


def _limit_other_than_loss(path: PlannedPath, p: float, goodput_bps: float) -> str | None:
    """Return the limit other than loss: the link, the windows, or None."""
    sent = goodput_bps / path.goodput_bps(1, p)
    near = 1 - 1e-6
    if sent >= path.link_pps * near:
        return "bottleneck"
    return "window" if sent >= path.flows * path.window_pkts / path.rtt_s * near else None


def _model_table(
    path: PlannedPath, models: list[PathModel], losses: list[float], goodput_bps: float
) -> Table:
    sent = [path.link_bps(goodput_bps / path.goodput_bps(1, p)) for p in losses]
    regimes = [
        _limit_other_than_loss(path, p, goodput_bps) or model.regime(path, p)
        for model, p in zip(models, losses, strict=True)
    ]
    return {
        "model": np.array([model.title(path) for model in models]),
        "loss_ratio": np.array(losses),
        "packets_per_loss": np.round(1 / np.array(losses)),
        "rate_bps": np.array(sent),
        "regime": np.array(regimes),
    }


def _table_of_single_changes(
    path: PlannedPath, scenario: Scenario, goodput_bps: float, value: float
) -> Table:
    """Return the maximum loss for the same goodput with one changed parameter."""
    half = path.rtt_s / 2
    timer = scenario.populations[0].tcp.timeout_s(half)
    changed = {
        f"half the RTT ({time_text(half)})": replace(path, rtt_s=half, t0_s=timer),
        f"{2 * path.flows} flows": replace(path, flows=2 * path.flows),
    }
    if path.packet_bytes < JUMBO_BYTES:
        changed[f"packets of {JUMBO_BYTES} B"] = _replace_packet_size(path, JUMBO_BYTES)
    if path.packets_per_ack > 1:
        changed["an ack for every packet"] = replace(path, packets_per_ack=1)
    if math.isfinite(path.receiver_window_pkts):
        wider = 2 * path.receiver_window_pkts
        changed[f"twice the window ({wider:,.0f} packets)"] = replace(
            path, receiver_window_pkts=wider
        )
    losses = np.array(
        [
            _solve_max_loss(each, _select_models(each, goodput_bps)[0][0], goodput_bps)
            for each in changed.values()
        ]
    )
    return {"change": np.array(list(changed)), "loss_ratio": losses, "times": losses / value}


def _replace_packet_size(path: PlannedPath, packet_bytes: int) -> PlannedPath:
    """Return the path with another packet size and the same window and links in bytes."""
    payload = path.payload_bytes + packet_bytes - path.packet_bytes
    smaller = path.packet_bytes / packet_bytes
    return replace(
        path,
        packet_bytes=packet_bytes,
        payload_bytes=payload,
        link_pps=path.link_pps * smaller,
        own_link_pps=path.own_link_pps * smaller,
        receiver_window_pkts=max(1.0, path.receiver_window_pkts * path.payload_bytes / payload),
    )


def _recommendation_text(path: PlannedPath, goodput_bps: float, value: float, ways: Table) -> str:
    """Return the maximum loss, its reason, and the most effective change."""
    who = "one flow" if path.flows == 1 else f"{path.flows} flows"
    held = {
        "bottleneck": "the link has no more capacity for retransmissions",
        "window": "the windows have no more room for retransmissions",
        None: "BBR's bandwidth estimate would fall at each probe with more loss"
        if path.control == "bbr"
        else f"{who} with an RTT of {time_text(path.rtt_s)} would be too slow with more loss",
    }[_limit_other_than_loss(path, value, goodput_bps)]
    answer = f"Up to {_loss_ratio_text(value)} may be lost, because {held}."
    best = int(np.argmax(ways["loss_ratio"][:2]))
    if ways["times"][best] < MIN_REPORTED_FACTOR:
        return answer
    return (
        f"{answer} With {ways['change'][best]}, "
        f"the limit would be {_loss_ratio_text(float(ways['loss_ratio'][best]))}."
    )


def _loss_ratio_text(loss_ratio: float) -> str:
    if loss_ratio > MAX_LOSS_AS_PACKETS:
        return f"{percent_text(loss_ratio)} of the packets"
    return f"one packet in {1 / loss_ratio:,.0f}"


def _required_rate_notes(path: PlannedPath, goodput_bps: float, value: float) -> list[str]:
    sent = goodput_bps / path.goodput_bps(1, value)
    window = math.ceil(sent * path.rtt_s / path.flows)
    return [
        f"If each lost packet is retransmitted once, the flows must send {units.digits(sent)} "
        f"packets/s ({rate_text(path.link_bps(sent))} on the link) to deliver "
        f"{rate_text(goodput_bps)} of payload. This rate does not include spurious "
        "retransmissions after timeouts.",
        f"A flow has {count_text(window, 'packet')} ({bytes_text(window * path.payload_bytes)}) "
        "in flight on average. A window of exactly this size leaves no room to recover from "
        "losses.",
    ]


def _verify_by_simulation(
    plan: Plan,
    question: InverseQuestion,
    path: PlannedPath,
    least_s: float,
    options: RunOptions | None,
) -> None:
    """Simulate the model's answer, and start the search by simulation there."""
    assert plan.scenario is not None
    goodput_bps = question.target
    sent = goodput_bps / path.goodput_bps(1, plan.value)
    goal = SearchGoal(
        target=goodput_bps, integer=False, minimum=MIN_LOSS, maximum=1.0, power=MAX_LOSS_EXPONENT
    )
    verify_path_by_simulation(
        plan,
        question,
        plan.scenario,
        replace(path, loss_ratio=plan.value),
        lambda runs: search_from_start(runs, goal, plan.value),
        flows=path.flows,
        rate_pps=sent,
        total_pps=VERIFICATION_RUNS * sent,
        least_s=least_s,
        options=options,
        instead="write a lower goodput, or more flows: the loss is then larger, and the "
        "simulation shorter",
    )
    if plan.is_simulation_reported_first and plan.simulated is not None:
        plan.recommendation = (
            f"According to the simulation, up to {_loss_ratio_text(plan.simulated)} may be "
            "lost. Do not trust any value of the models."
        )
