"""The smallest buffer for a target loss or utilisation, and rules of thumb (section 5.4.1)."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast import units
from tcpcast.engines.formula.path_requirements import bytes_text
from tcpcast.engines.registry import check_packet_sizes_are_equal
from tcpcast.errors import DomainError, NotApplicable
from tcpcast.models.engset import isolated_connection, simplified_buffer_for_loss
from tcpcast.plan.classic_equivalent import EngsetModel, make_engset_model
from tcpcast.plan.curve_table import add_curve_table
from tcpcast.plan.inverse_question import InverseQuestion
from tcpcast.plan.search import SearchGoal, SearchResult, search_from_start, simulated_points
from tcpcast.plan.verification import VERIFY_TRANSFERS, PlanSimulations, verify_by_simulation
from tcpcast.readable_units import count_text, time_text
from tcpcast.scenario.traffic import MAX_SOURCES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcpcast.engines import RunOptions
    from tcpcast.engines.formula.engset import EngsetInputs
    from tcpcast.plan.result import Plan, Table
    from tcpcast.scenario import Scenario

GRID_SIZES_PKTS = (5, 12, 22, 36, 80, 120, 500, 1000)
GRID_RTTS_S = (0.05, 0.3)
GRID_WINDOW_PKTS = 44
"""Receiver window for the grid of section 5.4.1, in packets, which the paper does not state. The
paper recommends the largest buffer of the grid."""

QUEUEING_DELAY_S = 0.6
"""Queueing delay of the 600 ms rule: a timeout of 1 s leaves 400 ms for the RTT."""

BDP_RTT_S = 0.3
"""Usual RTT of the bandwidth-delay rule."""

MAX_RULE_LOAD = 1.1
"""Open-loop load above which a warning is given; the paper applies the rule at 1."""

MAX_BUFFER_MULTIPLE = 64
"""Maximum buffer of the search, in bandwidth-delay products or packets per sender."""

DEFAULT_LOSS = 0.01
ROUNDING_TOLERANCE = 1e-9

_NOTE_ON_GRID = (
    "The table `grid` follows section 5.4.1 of the TCP-Engset report, with a single link, a "
    "receiver window of 44 packets, and N sources for an open-loop load of 100 %. The report does "
    "not "
    "state how it rounds N, so the table shows three roundings. The report's 202 "
    "packets for 10 Mbit/s follow from B = Q ln(U/L), with the mean queue Q, the utilisation "
    "U and the loss ratio L, for files of 500 packets, an RTT of 50 ms, and N = 3.04 rounded up "
    "to 4. For the same values, eq. 13 gives 229.5 packets. The report's 417 packets for 50 "
    "Mbit/s follow from "
    "eq. 13 with the second estimates of the ON time and the utilisation (ON2 and U2)."
)


_NOTE_ON_SQUARE_ROOT_RULE = (
    "BDP/sqrt(n) (Appenzeller, Keslassy and McKeown 2004) is for n long, unsynchronised flows. In "
    "the table, n is the number of senders."
)


@dataclass(frozen=True, slots=True)
class _BottleneckParameters:
    """Parameters of the bottleneck for the rules of thumb.

    ``rtt_s`` is the mean RTT of the senders. ``beta`` is the BDP for this RTT in packets.
    """

    packet_bits: int
    delta_s: float
    rtt_s: float
    has_several_rtts: bool
    senders: int

    @classmethod
    def from_scenario(cls, scenario: Scenario) -> _BottleneckParameters:
        """Return the bottleneck of a scenario.

        Raises
        ------
        NotApplicable
            The bottleneck is unlimited or a policer.
        """
        bottleneck = scenario.network.bottleneck
        if bottleneck.is_policer:
            raise NotApplicable("plan buffer needs a queue, but the bottleneck is a policer")
        if math.isinf(bottleneck.rate_bps):
            raise NotApplicable(
                'plan buffer needs a link with a rate; write network.bottleneck.rate = "10mbit"'
            )
        bits = 8 * scenario.network.packet_bytes
        groups = scenario.populations
        # Arriving transfers have no number of senders.
        weights = [group.count if scenario.senders else 1 for group in groups]
        several = len({group.rtt_s for group in groups}) > 1
        rtt_s = fmean((group.rtt_s for group in groups), weights) if several else groups[0].rtt_s
        return cls(bits, bits / bottleneck.rate_bps, rtt_s, several, scenario.senders)

    @property
    def beta(self) -> float:
        """Bandwidth-delay product in packets."""
        return self.rtt_s / self.delta_s

    @property
    def root_rule_pkts(self) -> float | None:
        """BDP/sqrt(senders) in packets, or None if there is no number of senders."""
        return self.beta / math.sqrt(self.senders) if self.senders else None

    @property
    def start_pkts(self) -> int:
        """First buffer of a search without a model."""
        return max(round(self.beta), 1)

    @property
    def max_pkts(self) -> int:
        """Maximum buffer of a search without a model."""
        return MAX_BUFFER_MULTIPLE * max(self.start_pkts, self.senders)


def plan_buffer(  # noqa: PLR0913 - the question, and how to answer it
    scenario: Scenario,
    *,
    loss: float | None = None,
    utilisation: float | None = None,
    verify: bool = False,
    transfers: int = VERIFY_TRANSFERS,
    options: RunOptions | None = None,
) -> Plan:
    """Return the smallest bottleneck buffer for a target loss or utilisation.

    Parameters
    ----------
    scenario
        The scenario; its bottleneck buffer is ignored. Scenarios that the ``engset`` engine does
        not cover, such as bulk flows or several classes, are only simulated.
    loss
        Maximum loss ratio, above 0 and below 1; by default 1 %, up to which the authors trust
        their rule.
    utilisation
        Instead of ``loss``: minimum utilisation of the bottleneck, above 0 and below 1, by
        simulation only.
    verify
        Also search the buffer by simulation, starting from the rule's buffer, and simulate the
        result. This is always done for modern TCP, which the rule does not model.
    transfers
        Maximum number of transfers per simulation.
    options
        Threads and progress of the simulations.

    Returns
    -------
    Plan
        Buffer in whole packets, including the packet in transmission: eq. 13 rounded up, at
        least 1. Tables: ``rules`` (rule, buffer_pkts, size_bytes, delay_s) with this rule, the
        600 ms and bandwidth-delay rules, and BDP/sqrt(n) of Appenzeller, Keslassy and McKeown
        (2004); ``grid``, the rule over the file sizes and RTTs of section 5.4.1, with one column
        per way to round the number of sources (only with the model); ``simulated`` (buffer_pkts,
        the metric, low, high); ``curve`` (buffer_pkts, the metric) of the model, for a figure.

    Raises
    ------
    NotApplicable
        The bottleneck has no rate or no queue, or the simulation does not cover the scenario.
    DomainError
        The target is not above 0 and below 1, or no buffer reaches it.
    """
    if loss is not None and utilisation is not None:
        raise DomainError("--loss and --utilisation are both given; omit one of them")
    check_packet_sizes_are_equal("plan buffer", scenario)
    metric, target = ("loss_ratio", loss) if utilisation is None else ("utilisation", utilisation)
    target = DEFAULT_LOSS if target is None else target
    _check_target(scenario, metric, target)
    link = _BottleneckParameters.from_scenario(scenario)
    question = InverseQuestion(
        text=f"smallest buffer for a {_metric_text(metric)} of {units.format_ratio(target)}",
        key="network.bottleneck.buffer",
        column="buffer_pkts",
        unit="packet",
        metric=metric,
        target=target,
        format_value="{:.0f}pkt".format,
        axis="buffer (packets)",
        headings={
            "rules": "Buffers by different rules",
            "simulated": "Simulated values",
            "grid": "Buffer rule by file size and RTT",
        },
    )
    model = _make_model(scenario, metric)
    plan = question.plan()
    plan.notes += [*model.notes, *([_NOTE_ON_SQUARE_ROOT_RULE] if link.senders else [])]
    if model.inputs is None:
        plan.tables["rules"] = _buffer_rules_table(link, {})
    else:
        _add_model_buffers(plan, question, scenario, model, link)
    if verify or model.simulation_reason:
        runs = PlanSimulations(scenario, question, options, transfers)
        verify_by_simulation(plan, runs, partial(_search_by_simulation, runs, plan, link))
        if plan.is_simulation_reported_first and plan.simulated is not None:
            plan.recommendation = _buffer_size_text(link, round(plan.simulated))
    losses = model.metric_curve("loss_ratio")
    add_curve_table(plan, question, losses, centre=link.start_pkts, is_whole=True)
    return plan


def _metric_text(metric: str) -> str:
    return "loss" if metric == "loss_ratio" else "utilisation"


def _check_target(scenario: Scenario, metric: str, target: float) -> None:
    written = f"{_metric_text(metric)}: {units.format_ratio(target)}"
    if not 0 < target < 1:
        raise DomainError(f"{written} is not a target; write a ratio above 0% and below 100%")
    loss = scenario.network.bottleneck.loss
    if metric == "loss_ratio" and loss is not None and target <= loss.mean_ratio():
        raise DomainError(
            f"{written} includes network.bottleneck.loss "
            f"({units.format_ratio(loss.mean_ratio())}), which no buffer reduces; write a "
            "larger target, or omit network.bottleneck.loss"
        )


def _make_model(scenario: Scenario, metric: str) -> EngsetModel:
    """Return the model as a function of the buffer; without inputs, only the simulation answers."""

    def vary(inputs: EngsetInputs, buffer_pkts: float) -> EngsetInputs:
        return replace(inputs, buffer_pkts=float(buffer_pkts))

    if metric == "loss_ratio":
        return make_engset_model(scenario, vary)
    return EngsetModel(scenario, None, "the TCP-Engset rule does not predict the utilisation", vary)


def _add_model_buffers(
    plan: Plan,
    question: InverseQuestion,
    scenario: Scenario,
    model: EngsetModel,
    link: _BottleneckParameters,
) -> None:
    """Add the buffers of TCP-Engset and of the other rules to a plan."""
    assert model.inputs is not None
    loss, result = question.target, model.inputs.solve()
    exact = result.buffer_for_loss(loss)
    value = max(_round_up_packets(exact), 1)
    grid = _evaluate_rule_grid(model.inputs, loss)
    of_model = {
        "TCP-Engset, this scenario (eq. 13)": exact,
        "TCP-Engset, maximum of table grid, N rounded up": _max_search_buffer_pkts(
            grid["buffer_ceil_pkts"]
        ),
        "TCP-Engset, maximum of table grid, B = Q ln(U/L)": _max_search_buffer_pkts(
            grid["plain_ceil_pkts"]
        ),
    }
    plan.tables |= {"rules": _buffer_rules_table(link, of_model), "grid": grid}
    plan.recommendation = _buffer_size_text(link, value)
    plan.notes.append(_NOTE_ON_GRID)
    overload = _warn_about_load(result.offered_load)
    untrusted = "the paper's rule is for an open-loop load of 100 %" if overload else ""
    model.set_answer(plan, question, scenario, value, untrusted)
    plan.warnings += model.warnings_as_notes(overload)


def _search_by_simulation(
    runs: PlanSimulations, plan: Plan, link: _BottleneckParameters
) -> SearchResult | None:
    """Return the buffer by simulation, or the minimum buffer if it meets the target.

    Raises
    ------
    DomainError
        No buffer meets the target, and there is no model's answer.
    """
    maximum = 1024 * int(plan.value) if plan.has_model else link.max_pkts
    goal = SearchGoal(target=runs.question.target, smallest=True, maximum=maximum)
    if runs.question.metric == "utilisation":
        goal = replace(goal, rises=True, limit=1.0)
    start = plan.value if plan.has_model else link.start_pkts
    result = search_from_start(runs, goal, start)
    if result is not None or plan.has_model:
        return result
    if maximum in runs.answers:
        raise _unreachable_target_error(runs, goal)
    smallest = runs.metric_at(1) if 1 in runs.answers else None
    return None if smallest is None else SearchResult(1, 1, 1, metric=smallest)


def _unreachable_target_error(runs: PlanSimulations, goal: SearchGoal) -> DomainError:
    """Return the error for a target that no buffer of the search meets."""
    best = min(simulated_points(runs, goal), key=lambda point: point.metric)
    given = units.format_ratio(float(f"{runs.measure(best.value):.3g}"))
    metric = _metric_text(runs.question.metric)
    return DomainError(
        f"{metric}: no buffer up to {goal.maximum:,} packets reaches "
        f"{units.format_ratio(goal.target)}; the nearest {metric} is {given}, with "
        f"{best.value:,.0f} packets; write another target"
    )


def _buffer_size_text(link: _BottleneckParameters, value: int) -> str:
    """Return the answer in bytes and milliseconds, compared with the BDP and BDP/sqrt(n)."""
    size, time = bytes_text(value * link.packet_bits / 8), 1e3 * value * link.delta_s
    bdp = "The BDP"
    if link.has_several_rtts:
        bdp = f"For the mean RTT of the senders, {time_text(link.rtt_s)}, the BDP"
    root = ""
    if link.root_rule_pkts is not None:
        root = f", and BDP/sqrt(senders) is {units.digits(link.root_rule_pkts)} packets"
    return (
        f"{count_text(value, 'packet')} are {size}, which take {units.digits(time)} ms at the "
        f"link's rate. {bdp} is {units.digits(link.beta)} packets{root}."
    )


def _warn_about_load(load: float) -> list[str]:
    if load <= MAX_RULE_LOAD:
        return []
    return [
        f"the open-loop load is {load:.0%}, but the paper's rule is for 100 %. Above 100 %, "
        "eq. 13 greatly overestimates the buffer. For a load of 164 % and a buffer of 300 "
        "packets, Table 10 of the paper has a loss of 23.7 % in the model and of 0.2 % in "
        "simulation"
    ]


def _buffer_rules_table(link: _BottleneckParameters, of_model: dict[str, float]) -> Table:
    """Return the buffer and the maximum queueing delay of each rule."""
    rules = {
        **of_model,
        "bandwidth x 600 ms": QUEUEING_DELAY_S / link.delta_s,
        "bandwidth x 300 ms": BDP_RTT_S / link.delta_s,
        "bandwidth x "
        + ("mean RTT of the senders" if link.has_several_rtts else "RTT of this path"): link.beta,
    }
    if link.root_rule_pkts is not None:
        rules["bandwidth x RTT / sqrt(senders)"] = link.root_rule_pkts
    buffers = np.array(
        [_round_up_packets(pkts) if math.isfinite(pkts) else math.nan for pkts in rules.values()]
    )
    return {
        "rule": np.array(list(rules)),
        "buffer_pkts": buffers,
        "size_bytes": buffers * (link.packet_bits / 8),
        "delay_s": buffers * link.delta_s,
    }


def _evaluate_rule_grid(inputs: EngsetInputs, loss: float) -> Table:
    """Evaluate the rule over the grid of section 5.4.1, N rounded in three ways."""
    rows = []
    for size, rtt in itertools.product(GRID_SIZES_PKTS, GRID_RTTS_S):
        if rtt < inputs.path.delta_s:
            continue  # the transmission time of one packet exceeds the RTT
        path = replace(inputs.path, rtt0_s=rtt, ingress_bps=math.inf, egress_bps=math.inf)
        alone = isolated_connection(
            path=path, size_pkts=size, receiver_window_pkts=GRID_WINDOW_PKTS
        )
        files_per_s = path.bottleneck_bps / (size * path.packet_bits)
        exact = (inputs.mean_off_s + alone.on_time_s) * files_per_s
        row = {"mean_size_pkts": float(size), "rtt_s": rtt, "sources_exact": exact}
        rounded = {"floor": math.floor(exact), "round": round(exact), "ceil": math.ceil(exact)}
        for how, sources in rounded.items():
            row[f"sources_{how}"] = sources
            row[f"buffer_{how}_pkts"], plain = _rule_buffers_at_grid_point(
                replace(
                    inputs,
                    path=path,
                    sources=sources,
                    mean_size_pkts=float(size),
                    receiver_window_pkts=GRID_WINDOW_PKTS,
                    initial_window_pkts=2,
                ),
                loss,
            )
        row["plain_ceil_pkts"] = plain
        rows.append(row)
    return {name: np.array([row[name] for row in rows]) for name in (rows[0] if rows else ())}


def _rule_buffers_at_grid_point(inputs: EngsetInputs, loss: float) -> tuple[float, float]:
    """Return the buffer by eq. 13 and as B = Q ln(U/L), or NaN for no or too many sources."""
    if not 1 <= inputs.sources <= MAX_SOURCES:
        return math.nan, math.nan
    result = inputs.solve()
    plain = simplified_buffer_for_loss(
        loss_ratio=loss, queue_mean_pkts=result.queue_mean_pkts, utilisation=result.utilisation
    )
    return result.buffer_for_loss(loss), float(plain)


def _round_up_packets(pkts: float) -> int:
    return math.ceil(pkts - ROUNDING_TOLERANCE)


def _max_search_buffer_pkts(column: NDArray[Any]) -> float:
    return float(np.max(column, initial=-math.inf, where=np.isfinite(column)))
