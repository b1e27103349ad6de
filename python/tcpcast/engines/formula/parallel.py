"""Engines ``parallel`` and ``parallel-cumulative``: total rate of n flows on one path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.answer import Note
from tcpcast.engines.formula import rate_answers
from tcpcast.engines.formula.collect_inputs import collect_path_inputs
from tcpcast.engines.formula.input_types import get_positive_metric, make_step
from tcpcast.engines.registry import SUGGEST_MEASURED_FEED
from tcpcast.models.domain import MAX_RTO_SHARE, RTO_FLOW_SHARE, WINDOW_SHARE
from tcpcast.models.parallel import cumulative_throughput, parallel_throughput
from tcpcast.models.pftk import TIMEOUTS_REGIME, TRIPLE_DUPLICATES_REGIME
from tcpcast.process.errors import NotApplicable
from tcpcast.scenario.loss import RestOfRound

if TYPE_CHECKING:
    from tcpcast.answer import Answer, Step
    from tcpcast.engines.formula.input_types import PathInputs
    from tcpcast.models.parallel import ParallelThroughput
    from tcpcast.scenario import Scenario

MAX_ITERATIONS = 10_000
"""Maximum iterations for p_e; about ten are enough."""


def parallel(scenario: Scenario, measured: Answer | None) -> Answer:
    """Predict by the model of parallel flows with per-flow loss events (algorithm 1).

    Metrics: ``send_rate_pps`` B_ext, ``timeout_share`` Q_TO (27) and ``w_at_loss_mean_pkts``
    E[W_f] (25).

    Raises
    ------
    NotApplicable
        As for :func:`tcpcast.engines.formula.collect_inputs.collect_path_inputs`.
    """
    inputs = collect_path_inputs("the model of parallel flows", scenario, measured)
    result = parallel_throughput(
        flows=inputs.flows,
        rtt_s=inputs.rtt_s,
        t0_s=inputs.t0_s,
        loss_event_ratio=inputs.loss,
        packets_per_ack=inputs.packets_per_ack,
    )
    steps = [
        *inputs.select_steps("p", "RTT", "T0", "b", "n"),
        make_step("E[X]", result.rounds, "round", "(17)"),
        make_step("E[W_f]", result.flow_window_pkts, "packet", "2 n E[X]/b, (25)"),
        make_step("Q_TO", result.timeouts_per_event, "1", "(27)"),
        make_step("E[nTO]", result.flows_in_timeout, "flow", "(24), at most n"),
        make_step("B_ext", result.rate_pps, "packet/s", "(28), algorithm 1"),
    ]
    answer = _make_answer("parallel", inputs, result, steps)
    return rate_answers.add_loss_metrics(
        answer,
        window_pkts=float(result.flow_window_pkts),
        timeout_share=float(result.timeouts_per_event),
    )


def parallel_from_aggregate_losses(scenario: Scenario, measured: Answer | None) -> Answer:
    """Predict by the model of parallel flows with loss events of the aggregate (algorithm 2).

    Metrics: ``send_rate_pps`` B_ext and ``w_at_loss_mean_pkts`` E[W_f] (37).

    p_r is the loss ratio of packets, p_e the number of loss events per packet. The paper measures
    both. With inputs from the scenario, p_r is the specified loss, and p_e follows from the paper's
    definition, applied to independent losses. After the first loss of an event, losses during one
    RTT (B RTT packets) belong to this event. The next loss occurs 1/p_r packets later on average,
    so 1/p_e = 1/p_r + B RTT.

    Raises
    ------
    NotApplicable
        As for :func:`tcpcast.engines.formula.collect_inputs.collect_path_inputs`.
    """
    inputs = collect_path_inputs("the model of parallel flows", scenario, measured)
    if measured is None:
        path = scenario.path()
        lost, events = path.loss, _solve_loss_event_ratio(inputs, path.loss)
        sources = ["1/p_e = 1/p_r + B_ext RTT, for independent losses", path.loss_keys]
    else:
        group = scenario.populations[0]
        elsewhere = [on.name for on in group.route if on.link.loss and not on.measured]
        if elsewhere:
            raise NotApplicable(
                "algorithm 2 requires the loss ratio (p_r) of the full path, but the simulation "
                "measures this ratio at the bottleneck; specify the loss at the bottleneck, not "
                "on the "
                f"{' or '.join(elsewhere)} link"
            )
        losses = []
        for name in ("loss_event_ratio_cumulative", "loss_ratio"):
            value = get_positive_metric(measured, name)
            if value is None:
                raise NotApplicable(
                    f"algorithm 2 requires {name}, but the simulation did not measure this metric"
                )
            losses.append(value)
        events, lost, *sources = (
            losses[0],
            losses[1],
            "packet: loss_event_ratio_cumulative",
            "packet: loss_ratio",
        )
    result = _solve_cumulative_model(inputs, events, lost)
    steps = [
        make_step("p_e", events, "1", sources[0]),
        make_step("p_r", lost, "1", sources[1]),
        *inputs.select_steps("RTT", "T0", "b", "n"),
        make_step("j", result.flows_hit, "flow", "min(n, p_r/p_e)"),
        make_step("E[X]", result.rounds, "round", "(43)"),
        make_step("E[W]", result.window_pkts, "packet", "all flows, (40)"),
        make_step("E[W_f]", result.flow_window_pkts, "packet", "(37)"),
        make_step("q1", result.timeouts_per_event, "flow", "flows in RTO per loss event, (47)"),
        make_step("E[nTO]", result.flows_in_timeout, "flow", "(47), at most n"),
        make_step("B_ext", result.rate_pps, "packet/s", "(48), algorithm 2"),
    ]
    answer = _make_answer("parallel-cumulative", inputs, result, steps)
    if measured is None and isinstance(scenario.bottleneck.loss, RestOfRound):
        why = (
            "p_r, the share of packets lost, is set to the specified loss; but with correlated "
            "loss within a round, the true share is larger"
        )
        answer.warn(Note(why, kind="model", suggestions=(SUGGEST_MEASURED_FEED,)))
    return rate_answers.add_loss_metrics(answer, window_pkts=float(result.flow_window_pkts))


def _make_answer(
    engine: str, inputs: PathInputs, result: ParallelThroughput, steps: list[Step]
) -> Answer:
    rate = float(result.rate_pps)
    waiting = float(result.flows_in_timeout) / inputs.flows
    regime = TIMEOUTS_REGIME if waiting > 0.5 else TRIPLE_DUPLICATES_REGIME
    used = min(rate, inputs.capacity_pps) / inputs.flows * inputs.rtt_s / inputs.window_pkts
    answer = rate_answers.make_answer_from_total_rate(
        engine, inputs, rate_pps=rate, regime=regime, steps=steps
    )
    answer.domain |= {RTO_FLOW_SHARE: waiting, WINDOW_SHARE: used}
    if waiting > MAX_RTO_SHARE:
        answer.warn(
            "the model assumes that few flows wait for an RTO at the same time. Here, it predicts "
            f"that {100 * waiting:.0f} % of the flows wait for an RTO, and underestimates the rate"
        )
    answer.warn(*rate_answers.warn_if_rate_exceeds_window(inputs, rate / inputs.flows))
    return answer


def _solve_cumulative_model(inputs: PathInputs, events: float, lost: float) -> ParallelThroughput:
    return cumulative_throughput(
        flows=inputs.flows,
        rtt_s=inputs.rtt_s,
        t0_s=inputs.t0_s,
        loss_event_ratio_cumulative=events,
        loss_ratio=lost,
        packets_per_ack=inputs.packets_per_ack,
    )


def _solve_loss_event_ratio(inputs: PathInputs, lost: float) -> float:
    """Return the p_e of independent losses that is consistent with its own rate.

    The iteration starts at p_e = p_r and decreases p_e. If many flows are in RTO, there may be
    several solutions; the largest is returned.
    """
    events = lost
    for _ in range(MAX_ITERATIONS):
        rate = float(_solve_cumulative_model(inputs, events, lost).rate_pps)
        follows = 1 / (1 / lost + rate * inputs.rtt_s)
        if abs(follows - events) <= 1e-12 * events:
            break
        events = follows
    return follows
