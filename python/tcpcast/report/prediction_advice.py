"""Advice on a prediction: which answer to trust, and why formula and simulation differ."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.answer import unit_of_metric
from tcpcast.engines.formula.path_formulas import CUBIC_RANDOM_LOSS_FACTOR, CUBIC_REGIME
from tcpcast.engines.formula.path_requirements import bytes_text
from tcpcast.report.prediction import (
    BOTTLENECK,
    BUFFER_METRICS,
    SIMULATION,
    UPPER_BOUND_FORMULA,
    WINDOW,
    answers_with_rate,
    is_trusted,
    leading_formula,
)
from tcpcast.report.quantity import three_digit_text
from tcpcast.scenario.loss import Bernoulli
from tcpcast.verdict import limit_of_answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcpcast.answer import Answer
    from tcpcast.report.prediction import Prediction

FORMULAS_WITHOUT_TIMEOUTS = ("mathis", "td-only")
PARALLEL_FORMULAS = ("parallel", "parallel-cumulative")

MIN_DIFFERENCE = 0.2
"""Minimum relative difference between models for the advice which model to trust."""

MAX_REMAINING_ERROR = 0.5
"""Simulated inputs explain a difference between models if they reduce it to this share."""

MIN_INPUT_CHANGE = 0.05
"""Minimum relative difference between a simulated and a specified input to be named."""

BUFFER_RANGE_OPTION = "--buffer 0.25bdp..4bdp"
"""Option with a range of buffers that shows their effect on a simulation."""


def model_advice(prediction: Prediction) -> list[str]:
    """Return which model to trust and why, if trusted models differ."""
    trusted = {a.engine: a for a in answers_with_rate(prediction.steady) if is_trusted(a)}
    name = leading_formula(prediction.scenario)
    formula, simulation = trusted.get(name), trusted.get(SIMULATION)
    if formula is None:
        return []
    given = {name: answer["send_rate_pps"] for name, answer in trusted.items()}
    best = name if simulation is None else "the simulation"
    texts = [
        _rate_too_high_advice(given, formula, best),
        _rate_too_low_advice(given, formula, best),
    ]
    if simulation is not None:
        texts.append(formula_error_text(prediction, formula, simulation))
    return [text for text in texts if text]


def buffer_advice(prediction: Prediction) -> str:
    """Return the effect of an assumed buffer on a simulation, or "" without such a simulation."""
    answers = prediction.transfer if prediction.has_simulated_transfer else prediction.steady
    simulated = [a for a in answers or [] if a.engine == SIMULATION and a.metrics]
    scenario = prediction.scenario
    if not prediction.is_buffer_assumed:
        is_ignored = not simulated and leading_formula(scenario) != UPPER_BOUND_FORMULA
        is_finite = math.isfinite(scenario.buffer_pkts)
        return (
            "The formulas ignore --buffer; --packet simulates it."
            if is_ignored and is_finite
            else ""
        )
    if not simulated:
        return ""
    size = f" ({bytes_text(scenario.buffer_pkts * scenario.network.packet_bytes)})"
    assumed = f"The buffer is assumed to be 1 BDP{'' if prediction.varied_options else size}"
    rate, time = BUFFER_METRICS
    metric = time if prediction.has_simulated_transfer else rate
    others = {b: a for b, a in prediction.other_buffers.items() if metric in a.metrics}
    if not others or any(answer.incomplete_reason for answer in others.values()):
        return f"{assumed}; a smaller buffer may give a lower rate: try {BUFFER_RANGE_OPTION}."
    values = [
        three_digit_text(a[metric], unit_of_metric(metric)) for a in (*others.values(), *simulated)
    ]
    if len(set(values)) == 1:
        return f"{assumed}; {' and '.join(others)} give the same result."
    results = ", ".join(f"{v} with {b}" for v, b in zip(values, others, strict=False))
    return f"{assumed}; with other values of --buffer: {results}."


def _rate_too_high_advice(given: Mapping[str, float], formula: Answer, best: str) -> str:
    """Return a sentence on the models that overestimate the rate because they omit timeouts."""
    bound = (1 + MIN_DIFFERENCE) * given[formula.engine]
    high = [n for n in FORMULAS_WITHOUT_TIMEOUTS if given.get(n, 0.0) > bound]
    if not high or formula.regime in {WINDOW, BOTTLENECK}:
        return ""
    ignore = "ignore" if len(high) > 1 else "ignores"
    share = _input_of_symbol(formula, "in timeouts")
    names = " and ".join(high)
    return f"{names} {ignore} timeouts, which take {share:.0%} of the time here; trust {best}."


def _rate_too_low_advice(given: Mapping[str, float], formula: Answer, best: str) -> str:
    """Return a sentence on the models that underestimate the rate of parallel flows."""
    bound = (1 - 2 * MIN_DIFFERENCE) * given[formula.engine]
    low = [n for n in PARALLEL_FORMULAS if given.get(n, math.inf) < bound]
    if not low:
        return ""
    predict = "predict" if len(low) > 1 else "predicts"
    timer = _input_of_symbol(formula, "T0") / _input_of_symbol(formula, "RTT")
    return (
        f"{' and '.join(low)} {predict} many more timeouts than a simulation if loss is high and "
        f"T0 is long (here, {timer:.3g} RTT); trust {best}."
    )


def formula_error_text(prediction: Prediction, formula: Answer, simulation: Answer) -> str:
    """Return the relative error of the formula, and the cause of the error if it is known."""
    error = _relative_error(formula, simulation)
    cause = _cause_of_difference(prediction, formula, simulation)
    suffix = f": {cause}" if cause else ""
    return f"{formula.engine} has a relative error of {error:+.0%} against the simulation{suffix}."


def _cause_of_difference(prediction: Prediction, formula: Answer, simulation: Answer) -> str:
    """Return the first cause that the simulation confirms for the difference, or ""."""
    seen = simulation.metrics["send_rate_pps"]
    low, high = seen.low, seen.high
    if low is not None and high is not None and low <= formula["send_rate_pps"] <= high:
        return "this difference is within the 95 % interval of the simulation"
    from tcpcast.statistics import MIN_EVENTS  # noqa: PLC0415 - slow import

    losses = _count_loss_indications(simulation)
    if losses < MIN_EVENTS:
        if formula.regime in {WINDOW, BOTTLENECK}:
            return ""  # the formula does not depend on losses
        plural = "" if losses == 1 else "s"
        return f"the simulation has too few losses ({losses:.0f} loss indication{plural})"
    full = limit_of_answer(simulation, prediction.scenario) == BOTTLENECK
    if full and formula.regime != BOTTLENECK:
        return f"the simulated link is full ({simulation['utilisation']:.0%} utilisation)"
    return _input_differences(prediction, formula, simulation) or _random_loss_cause(
        prediction, formula, simulation
    )


def _random_loss_cause(prediction: Prediction, formula: Answer, simulation: Answer) -> str:
    """Return the effect of random losses on CUBIC, if it explains the difference."""
    fed = prediction.formula_with_simulated_inputs
    loss = prediction.scenario.network.bottleneck.loss
    if fed is None or fed.regime != CUBIC_REGIME or not isinstance(loss, Bernoulli):
        return ""
    remaining = (1 + _relative_error(fed, simulation)) * CUBIC_RANDOM_LOSS_FACTOR - 1
    if abs(remaining) > MAX_REMAINING_ERROR * abs(_relative_error(formula, simulation)):
        return ""
    return (
        "the formula assumes periodic losses, but with random losses, CUBIC sends "
        f"{CUBIC_RANDOM_LOSS_FACTOR - 1:.0%} more. With this correction and the simulated p, the "
        f"error is {remaining:+.0%}"
    )


def _count_loss_indications(simulation: Answer) -> float:
    """Return the number of loss indications in all replications."""
    counts = [simulation.metrics.get(name) for name in ("td_indications", "to_indications")]
    mean = sum(metric.value for metric in counts if metric is not None)
    return float(mean * simulation.replications)


def _input_differences(prediction: Prediction, formula: Answer, simulation: Answer) -> str:
    """Return the inputs whose specified and simulated values differ, if this is the cause."""
    fed = prediction.formula_with_simulated_inputs
    remaining = math.inf if fed is None else _relative_error(fed, simulation)
    if fed is None or abs(remaining) > MAX_REMAINING_ERROR * abs(
        _relative_error(formula, simulation)
    ):
        return ""
    changed = [
        f"{symbol} {_value_text(_input_of_symbol(fed, symbol), symbol)} instead of "
        f"{_value_text(given, symbol)}"
        for symbol in ("p", "RTT", "T0")
        if abs(_input_of_symbol(fed, symbol) / (given := _input_of_symbol(formula, symbol)) - 1)
        > MIN_INPUT_CHANGE
    ]
    if not changed:
        return ""
    return f"with inputs from the simulation ({', '.join(changed)}), the error is {remaining:+.0%}"


def _value_text(value: float, symbol: str) -> str:
    return f"{100 * value:.3g} %" if symbol == "p" else f"{1e3 * value:.4g} ms"


def _relative_error(formula: Answer, simulation: Answer) -> float:
    return formula["send_rate_pps"] / simulation["send_rate_pps"] - 1


def _input_of_symbol(answer: Answer, symbol: str) -> float:
    """Return a quantity of a model by its symbol, or NaN if the model has no such quantity."""
    steps = answer.steps
    return next((float(s["value"]) for s in steps if s["symbol"] == symbol), math.nan)
