"""Convert the rate of a model to an answer: multiply by the flows, limit by the links.

An answer has a ``regime``, which names the limit of the rate, and ``steps``, all quantities from
the inputs to the rate with their equations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.answer import Answer, Metric, texts_to_notes
from tcpcast.engines.formula.input_types import make_step
from tcpcast.models.pftk import WINDOW_REGIME
from tcpcast.quantity.units import digits

if TYPE_CHECKING:
    from tcpcast.answer import Step
    from tcpcast.engines.formula.input_types import PathInputs

BOTTLENECK_REGIME, OWN_LINK_REGIME = "bottleneck", "own link"
"""Regimes in which a link limits the rate: the shared link, or a flow's ingress or egress."""


def make_answer_from_flow_rate(
    engine: str, inputs: PathInputs, *, rate_pps: float, regime: str, steps: list[Step]
) -> Answer:
    """Return an answer from the rate of one flow; ``steps`` is its derivation."""
    total = inputs.flows * rate_pps
    if inputs.flows > 1:
        steps = [*steps, make_step("n B", total, "packet/s", "n equal flows")]
    return make_answer_from_total_rate(engine, inputs, rate_pps=total, regime=regime, steps=steps)


def make_lossless_answer(engine: str, inputs: PathInputs) -> Answer:
    """Return an answer without random loss: the window limits the rate, or the link."""
    return make_answer_from_flow_rate(
        engine,
        inputs,
        rate_pps=inputs.window_pkts / inputs.rtt_s,
        regime=WINDOW_REGIME,
        steps=inputs.select_steps("p", "RTT", "W_max", "n"),
    )


def make_answer_from_total_rate(
    engine: str, inputs: PathInputs, *, rate_pps: float, regime: str, steps: list[Step]
) -> Answer:
    """Return an answer from the total rate of all flows; ``steps`` is its derivation."""
    steps, domain = list(steps), inputs.domain_values(rate_pps)
    if inputs.capacity is not None:
        steps.append(make_step("C_link", inputs.capacity_pps, "packet/s", inputs.capacity.rate_key))
        if rate_pps >= inputs.capacity_pps:
            rate_pps = inputs.capacity_pps
            regime = BOTTLENECK_REGIME if inputs.capacity.link.shared else OWN_LINK_REGIME
    steps.append(
        make_step("send rate", rate_pps, "packet/s", "all flows, including retransmissions")
    )
    metrics = {"send_rate_pps": Metric(rate_pps)}
    if inputs.delivered_bits is not None:
        metrics["goodput_bps"] = Metric(rate_pps * inputs.delivered_bits)
    return Answer(
        engine=engine,
        metrics=metrics,
        notes=texts_to_notes(inputs.warnings),
        regime=regime,
        steps=steps,
        domain=domain,
    )


def add_loss_metrics(
    answer: Answer, *, window_pkts: float, timeout_share: float | None = None
) -> Answer:
    """Add the model's loss metrics, unless a link limits the rate below that loss."""
    if answer.regime not in {BOTTLENECK_REGIME, OWN_LINK_REGIME}:
        if timeout_share is not None:
            answer.metrics["timeout_share"] = Metric(timeout_share)
        answer.metrics["w_at_loss_mean_pkts"] = Metric(window_pkts)
    return answer


def warn_if_rate_exceeds_window(inputs: PathInputs, one_pps: float) -> list[str]:
    """Warn if the rate exceeds the receiver window, for a model without receiver window."""
    max_rate = inputs.window_pkts / inputs.rtt_s
    if min(one_pps, inputs.capacity_pps / inputs.flows) <= max_rate:
        return []
    return [
        f"the model ignores the receiver window: it predicts {digits(one_pps)} packets/s per "
        f"flow, but a window of {digits(inputs.window_pkts, 6)} packets allows only "
        f"{digits(max_rate)} packets/s"
    ]
