"""From the rate of a model to an answer: times the flows, at most what the links let through.

An answer has ``regime``, what limits the rate, and ``steps``, every quantity from
the inputs on with its equation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.answer import Answer, Metric, noted
from tcpcast.engines.formula.inputs import step
from tcpcast.units import digits

if TYPE_CHECKING:
    from tcpcast.answer import Step
    from tcpcast.engines.formula.inputs import PathInputs
    from tcpcast.scenario import Scenario

BOTTLENECK, OWN_LINK = "bottleneck", "own link"
"""Regimes in which a link limits the rate: the shared one, or a flow's ingress or egress."""


def of_one(
    engine: str, fed: PathInputs, *, rate_pps: float, regime: str, steps: list[Step]
) -> Answer:
    """Return an answer from the rate of one flow; ``steps`` lead to it."""
    together = fed.flows * rate_pps
    if fed.flows > 1:
        steps = [*steps, step("n B", together, "packet/s", "n flows alike")]
    return of_all(engine, fed, rate_pps=together, regime=regime, steps=steps)


def of_all(
    engine: str, fed: PathInputs, *, rate_pps: float, regime: str, steps: list[Step]
) -> Answer:
    """Return an answer from the rate of all flows together; ``steps`` lead to it."""
    steps = list(steps)
    if fed.capacity is not None:
        steps.append(step("C_link", fed.capacity.pps, "packet/s", fed.capacity.key))
        if rate_pps >= fed.capacity.pps:
            rate_pps = fed.capacity.pps
            regime = BOTTLENECK if fed.capacity.on.shared else OWN_LINK
    steps.append(step("send rate", rate_pps, "packet/s", "all flows, retransmissions included"))
    metrics = {"send_rate_pps": Metric(rate_pps)}
    if fed.delivered_bits is not None:
        metrics["goodput_bps"] = Metric(rate_pps * fed.delivered_bits)
    return Answer(
        engine=engine,
        metrics=metrics,
        notes=noted(fed.warnings),
        regime=regime,
        steps=steps,
        domain=fed.domain_values(),
    )


def add_losses(answer: Answer, *, window_pkts: float, timeout_share: float | None = None) -> Answer:
    """Add what a model says of its loss indications, unless a link keeps it from that loss."""
    if answer.regime not in {BOTTLENECK, OWN_LINK}:
        if timeout_share is not None:
            answer.metrics["timeout_share"] = Metric(timeout_share)
        answer.metrics["w_at_loss_mean_pkts"] = Metric(window_pkts)
    return answer


def beyond_window(fed: PathInputs, one_pps: float) -> list[str]:
    """Warn of a rate above what the receiver window lets through, of a model that has none."""
    most = fed.window_pkts / fed.rtt_s
    if min(one_pps, fed.capacity_pps / fed.flows) <= most:
        return []
    return [
        f"the model has no receiver window: a flow gets {digits(one_pps)} packets/s, and "
        f"{digits(fed.window_pkts, 6)} packets in each RTT are {digits(most)}"
    ]


def of_another_stack(what: str, stack: str, scenario: Scenario) -> list[str]:
    """Warn that a formula is of TCP of another kind than the scenario's; a capture has any."""
    tcp = scenario.populations[0].tcp
    own = tcp.stack
    if tcp.control == stack or scenario.captured is not None:
        return []
    return [f"this is what {what} here; the scenario's stack is {own}"]
