"""Engines of bulk flows on one path: rate as a function of loss ratio and RTT.

Each engine takes its inputs from :mod:`.collect_inputs` and computes the rate of one flow, which
:mod:`.rate_answers` converts to an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.engines.formula import rate_answers
from tcpcast.engines.formula.collect_inputs import collect_path_inputs
from tcpcast.engines.formula.input_types import make_step
from tcpcast.models import pftk as model
from tcpcast.models.cubic import cubic_response
from tcpcast.models.mathis import mathis_constant, mathis_rate_pps

if TYPE_CHECKING:
    from tcpcast.answer import Answer
    from tcpcast.scenario import Scenario

RENO_FRIENDLY_REGIME, CUBIC_REGIME = "Reno-friendly", "cubic"
"""Regimes of CUBIC: as fast as Reno, or its own function of time."""


def pftk(scenario: Scenario, measured: Answer | None) -> Answer:
    """Predict by the full PFTK model, (31).

    Metrics: ``send_rate_pps`` n B(p), ``timeout_share`` Q (23) and ``w_at_loss_mean_pkts`` E[W].

    Raises
    ------
    NotApplicable
        As for :func:`tcpcast.engines.formula.collect_inputs.collect_path_inputs`.
    """
    inputs = collect_path_inputs("PFTK", scenario, measured, accepts_no_loss=True)
    if inputs.loss == 0:
        return rate_answers.make_lossless_answer("pftk", inputs)
    result = model.throughput(**inputs.model_arguments)
    sequence = model.timeout_sequence_s(t0_s=inputs.t0_s, loss_indication_ratio=inputs.loss)
    limited = bool(result.window_limited)
    branch = "W_max, as E[W_u] >= W_max" if limited else "E[W_u], as E[W_u] < W_max"
    rounds = "b W_max/8 + (1-p)/(p W_max) + 1, section 2.3" if limited else "b E[W]/2, (15)"
    steps = [
        *inputs.select_steps("p", "RTT", "T0", "b", "W_max", "n"),
        make_step("E[W_u]", result.unlimited_window_pkts, "packet", "(30)"),
        make_step("E[W]", result.window_pkts, "packet", branch),
        make_step("E[X]", result.rounds, "round", rounds),
        make_step("Q", result.timeout_probability, "1", "(23) at E[W]"),
        make_step("E[Z^TO]", sequence, "s", "T0 f(p)/(1-p), (28)"),
        make_step("in timeouts", result.timeout_time_share, "1", "Q E[Z^TO]/(E[A] + Q E[Z^TO])"),
        make_step("B(p)", result.rate_pps, "packet/s", "(31)"),
    ]
    answer = rate_answers.make_answer_from_flow_rate(
        "pftk", inputs, rate_pps=float(result.rate_pps), regime=str(result.regime), steps=steps
    )
    return rate_answers.add_loss_metrics(
        answer,
        window_pkts=float(result.window_pkts),
        timeout_share=float(result.timeout_probability),
    )


def pftk_approximate(scenario: Scenario, measured: Answer | None) -> Answer:
    """Predict by the approximate PFTK model, (32).

    Metric: ``send_rate_pps`` n B(p).

    Raises
    ------
    NotApplicable
        As for :func:`tcpcast.engines.formula.collect_inputs.collect_path_inputs`.
    """
    inputs = collect_path_inputs("PFTK", scenario, measured)
    given = {"loss_indication_ratio": inputs.loss, "packets_per_ack": inputs.packets_per_ack}
    growing_s = 1 / float(model.td_only_leading_rate_pps(rtt_s=inputs.rtt_s, **given))
    free = float(model.approximate_rate_pps(rtt_s=inputs.rtt_s, t0_s=inputs.t0_s, **given))
    waiting = 1 - free * growing_s
    max_rate = inputs.window_pkts / inputs.rtt_s
    regime = model.TIMEOUTS_REGIME if waiting > 0.5 else model.TRIPLE_DUPLICATES_REGIME
    steps = [
        *inputs.select_steps("p", "RTT", "T0", "b", "W_max", "n"),
        make_step("RTT sqrt(2bp/3)", growing_s, "s", "growing, per packet: (20)"),
        make_step(
            "T0 min(1, 3 sqrt(3bp/8)) p (1+32p^2)",
            1 / free - growing_s,
            "s",
            "in timeouts, per packet: (29)",
        ),
        make_step("in timeouts", waiting, "1", "share of the time"),
        make_step("free rate", free, "packet/s", "(29)"),
        make_step("B(p)", min(max_rate, free), "packet/s", "min(W_max/RTT, free rate), (32)"),
    ]
    return rate_answers.make_answer_from_flow_rate(
        "pftk-approx",
        inputs,
        rate_pps=min(max_rate, free),
        regime=model.WINDOW_REGIME if max_rate < free else regime,
        steps=steps,
    )


def td_only(scenario: Scenario, measured: Answer | None) -> Answer:
    """Predict by PFTK with triple duplicates only, (18) and (19).

    Metrics: ``send_rate_pps`` n B(p) and ``w_at_loss_mean_pkts`` E[W] (13).

    Raises
    ------
    NotApplicable
        As for :func:`tcpcast.engines.formula.collect_inputs.collect_path_inputs`.
    """
    inputs = collect_path_inputs("TD-only", scenario, measured)
    given = {"loss_indication_ratio": inputs.loss, "packets_per_ack": inputs.packets_per_ack}
    window = float(model.unlimited_window_pkts(**given))
    rate = float(model.td_only_rate_pps(rtt_s=inputs.rtt_s, **given))
    steps = [
        *inputs.select_steps("p", "RTT", "b", "n"),
        make_step("E[W]", window, "packet", "(13)"),
        make_step("E[X]", model.unlimited_rounds(**given), "round", "b E[W]/2, (15)"),
        make_step("B(p)", rate, "packet/s", "(18), (19)"),
    ]
    answer = rate_answers.make_answer_from_flow_rate(
        "td-only", inputs, rate_pps=rate, regime=model.TRIPLE_DUPLICATES_REGIME, steps=steps
    )
    answer.warn(*rate_answers.warn_if_rate_exceeds_window(inputs, rate))
    return rate_answers.add_loss_metrics(answer, window_pkts=window)


def mathis(scenario: Scenario, measured: Answer | None) -> Answer:
    """Predict by the square-root law, C/(RTT sqrt(p)) with C = sqrt(3/(2b)), at most W_max/RTT.

    Metric: ``send_rate_pps``.

    Raises
    ------
    NotApplicable
        As for :func:`tcpcast.engines.formula.collect_inputs.collect_path_inputs`.
    """
    inputs = collect_path_inputs("the square-root law", scenario, measured)
    constant = mathis_constant(packets_per_ack=inputs.packets_per_ack)
    free = float(
        mathis_rate_pps(
            rtt_s=inputs.rtt_s,
            loss_indication_ratio=inputs.loss,
            packets_per_ack=inputs.packets_per_ack,
        )
    )
    max_rate = inputs.window_pkts / inputs.rtt_s
    steps = [
        *inputs.select_steps("p", "RTT", "b", "W_max", "n"),
        make_step("C", constant, "1", "sqrt(3/(2b)): periodic loss"),
        make_step("C/(RTT sqrt(p))", free, "packet/s", "Mathis et al. 1997; PFTK (20)"),
        make_step(
            "B", min(max_rate, free), "packet/s", "at most W_max/RTT, an addition to the model"
        ),
    ]
    return rate_answers.make_answer_from_flow_rate(
        "mathis",
        inputs,
        rate_pps=min(max_rate, free),
        regime=model.WINDOW_REGIME if max_rate < free else model.TRIPLE_DUPLICATES_REGIME,
        steps=steps,
    )


def cubic_response_function(scenario: Scenario, measured: Answer | None) -> Answer:
    """Predict by CUBIC's response function with its Reno-friendly region (RFC 9438).

    The rate is CUBIC's rate on the path, with a warning if the scenario has another stack. Metric:
    ``send_rate_pps``.

    Raises
    ------
    NotApplicable
        As for :func:`tcpcast.engines.formula.collect_inputs.collect_path_inputs`.
    """
    inputs = collect_path_inputs(
        "CUBIC's response function", scenario, measured, accepts_no_loss=True
    )
    if inputs.loss == 0:
        return rate_answers.make_lossless_answer("cubic-response", inputs)
    result = cubic_response(
        rtt_s=inputs.rtt_s, loss_ratio=inputs.loss, receiver_window_pkts=inputs.window_pkts
    )
    rate = float(result.rate_pps)
    regime = RENO_FRIENDLY_REGIME if result.reno_friendly else CUBIC_REGIME
    steps = [
        *inputs.select_steps("p", "RTT", "W_max", "n"),
        make_step(
            "W_cubic", result.cubic_window_pkts, "packet", "RFC 9438, section 5: beta 0.7, C 0.4"
        ),
        make_step(
            "W_reno", result.reno_window_pkts, "packet", "sqrt(3/(2p)); RFC 9438, section 4.3"
        ),
        make_step(
            "W", result.window_pkts, "packet", "the larger of W_cubic and W_reno, at most W_max"
        ),
        make_step("B", rate, "packet/s", "W/RTT"),
    ]
    return rate_answers.make_answer_from_flow_rate(
        "cubic-response",
        inputs,
        rate_pps=rate,
        regime=model.WINDOW_REGIME if result.window_limited else regime,
        steps=steps,
    )
