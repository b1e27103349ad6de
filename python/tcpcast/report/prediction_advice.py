"""Which answer about one path to trust, and how far the leading formula is from the simulation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.answer import unit_of
from tcpcast.engines.formula.path import CUBIC, CUBIC_AT_RANDOM
from tcpcast.engines.formula.sizing import bytes_text
from tcpcast.report.prediction import (
    BOTTLENECK,
    BOUND,
    BUFFER_METRICS,
    SIMULATION,
    WINDOW,
    is_trusted,
    leading,
    limit,
    rates,
)
from tcpcast.report.quantity import amount
from tcpcast.scenario.loss import Bernoulli

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcpcast.answer import Answer
    from tcpcast.report.prediction import Prediction

WITHOUT_TIMEOUTS = ("mathis", "td-only")
PARALLEL = ("parallel", "parallel-cumulative")

APART = 0.2
"""How far models must be from each other before the reader is told which to trust."""

EXPLAINED = 0.5
"""What was measured explains a difference if with it at most so much of it is left."""

DIFFERENT = 0.05
"""From so much on, relatively, a measured input is named as different from the one fed."""


TRY_BUFFER = "--buffer 0.25bdp..4bdp"
"""Range of buffers that shows how a simulation depends on them."""


def advice(prediction: Prediction) -> list[str]:
    """Return which model to trust where they differ, and why; none of a value not trusted."""
    trusted = {a.engine: a for a in rates(prediction.steady) if is_trusted(a)}
    name = leading(prediction.scenario)
    formula, simulation = trusted.get(name), trusted.get(SIMULATION)
    if formula is None:
        return []
    given = {name: answer["send_rate_pps"] for name, answer in trusted.items()}
    best = name if simulation is None else "the simulation"
    texts = [_too_high(given, formula, best), _too_low(given, formula, best)]
    if simulation is not None:
        texts.append(difference(prediction, formula, simulation))
    return [text for text in texts if text]


def buffer_advice(prediction: Prediction) -> str:
    """Return how a simulation depends on the buffer that is assumed, "" without either."""
    answers = prediction.transfer if prediction.simulated_transfer else prediction.steady
    simulated = [a for a in answers or [] if a.engine == SIMULATION and a.metrics]
    scenario = prediction.scenario
    if not prediction.is_buffer_assumed:
        is_ignored = not simulated and leading(scenario) != BOUND
        is_finite = math.isfinite(scenario.buffer_pkts)
        return "The formulas leave out --buffer: add --packet." if is_ignored and is_finite else ""
    if not simulated:
        return ""
    size = f" ({bytes_text(scenario.buffer_pkts * scenario.network.packet_bytes)})"
    assumed = f"The buffer is assumed to be 1 BDP{'' if prediction.point else size}"
    rate, time = BUFFER_METRICS
    metric = time if prediction.simulated_transfer else rate
    others = {b: a for b, a in prediction.other_buffers.items() if metric in a.metrics}
    if not others or any(answer.incomplete_reason for answer in others.values()):
        return f"{assumed}, and a smaller one may give a lower rate: try {TRY_BUFFER}."
    values = [
        amount(float(f"{a[metric]:.3g}"), unit_of(metric)) for a in (*others.values(), *simulated)
    ]
    if len(set(values)) == 1:
        return f"{assumed}; {' and '.join(others)} give the same."
    told = ", ".join(f"{v} with {b}" for v, b in zip(values, others, strict=False))
    return f"{assumed}: {told} (--buffer)."


def _too_high(given: Mapping[str, float], formula: Answer, best: str) -> str:
    """Name the models without timeouts that overestimate."""
    high = [n for n in WITHOUT_TIMEOUTS if given.get(n, 0.0) > (1 + APART) * given[formula.engine]]
    if not high or formula.regime in {WINDOW, BOTTLENECK}:
        return ""
    leave = "leave" if len(high) > 1 else "leaves"
    share = _step(formula, "in timeouts")
    return f"{' and '.join(high)} {leave} out timeouts, {share:.0%} of the time here: trust {best}."


def _too_low(given: Mapping[str, float], formula: Answer, best: str) -> str:
    """Say where the model of parallel flows expects more timeouts than there are."""
    low = [n for n in PARALLEL if given.get(n, math.inf) < (1 - 2 * APART) * given[formula.engine]]
    if not low:
        return ""
    expect = "expect" if len(low) > 1 else "expects"
    timer = _step(formula, "T0") / _step(formula, "RTT")
    return (
        f"{' and '.join(low)} {expect} many more timeouts than a simulation where loss is high "
        f"and T0 long ({timer:.3g} RTT here): trust {best}."
    )


def difference(prediction: Prediction, formula: Answer, simulation: Answer) -> str:
    """Return the relative error of the formula, with its cause where this run shows it."""
    apart = _apart(formula, simulation)
    why = _cause(prediction, formula, simulation)
    because = f": {why}" if why else ""
    return f"{formula.engine} has a relative error of {apart:+.0%} against the simulation{because}."


def _cause(prediction: Prediction, formula: Answer, simulation: Answer) -> str:
    """Return the first cause of a difference that the values of this run show, "" without one."""
    seen = simulation.metrics["send_rate_pps"]
    low, high = seen.low, seen.high
    if low is not None and high is not None and low <= formula["send_rate_pps"] <= high:
        return "within its 95 % interval"
    from tcpcast.statistics import MIN_EVENTS  # noqa: PLC0415 - imports scipy; simulations have

    losses = _loss_indications(simulation)
    if losses < MIN_EVENTS:
        return f"it has {losses:.0f} loss indication{'' if losses == 1 else 's'}, too few to tell"
    full = limit(simulation, prediction.scenario) == BOTTLENECK
    if full and formula.regime != BOTTLENECK:
        return f"its link is full ({simulation['utilisation']:.0%} utilised)"
    return _other_inputs(prediction, formula, simulation) or _random_losses(
        prediction, formula, simulation
    )


def _random_losses(prediction: Prediction, formula: Answer, simulation: Answer) -> str:
    """Return what losses at random make of CUBIC, if that explains the difference."""
    fed, loss = prediction.fed, prediction.scenario.network.bottleneck.loss
    if fed is None or fed.regime != CUBIC or not isinstance(loss, Bernoulli):
        return ""
    left = (1 + _apart(fed, simulation)) * CUBIC_AT_RANDOM - 1
    if abs(left) > EXPLAINED * abs(_apart(formula, simulation)):
        return ""
    return (
        "it has equal numbers of packets between losses; at random ones CUBIC sends "
        f"{CUBIC_AT_RANDOM - 1:.0%} more, and with that and the simulation's p it is {left:+.0%}"
    )


def _loss_indications(simulation: Answer) -> float:
    """Return how many loss indications all replications have together."""
    found = [simulation.metrics.get(name) for name in ("td_indications", "to_indications")]
    together = sum(metric.value for metric in found if metric is not None)
    return float(together * simulation.replications)


def _other_inputs(prediction: Prediction, formula: Answer, simulation: Answer) -> str:
    """Return the inputs measured differently, if they explain the difference."""
    fed = prediction.fed
    left = math.inf if fed is None else _apart(fed, simulation)
    if fed is None or abs(left) > EXPLAINED * abs(_apart(formula, simulation)):
        return ""
    changed = [
        f"{symbol} {_value(_step(fed, symbol), symbol)} instead of {_value(given, symbol)}"
        for symbol in ("p", "RTT", "T0")
        if abs(_step(fed, symbol) / (given := _step(formula, symbol)) - 1) > DIFFERENT
    ]
    if not changed:
        return ""
    return f"fed with the values of the simulation, {', '.join(changed)}, it is {left:+.0%}"


def _value(value: float, symbol: str) -> str:
    return f"{100 * value:.3g} %" if symbol == "p" else f"{1e3 * value:.4g} ms"


def _apart(formula: Answer, simulation: Answer) -> float:
    return formula["send_rate_pps"] / simulation["send_rate_pps"] - 1


def _step(answer: Answer, symbol: str) -> float:
    """Return a quantity of a model, nan where it has none of that name."""
    steps = answer.steps
    return next((float(s["value"]) for s in steps if s["symbol"] == symbol), math.nan)
