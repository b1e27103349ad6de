"""Engines of section 10 of INRIA report 4154: mean values of many users on one link.

:func:`loop_inputs` takes their inputs from the scenario or from its simulation (``--feed
measured``). They predict the rate of a user's connection while on, as ``connection_rate_bps`` does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpcast.answer import Answer, Metric, Note, to_notes
from tcpcast.engines.formula.feed import IDLE_PATH, one_class, specified_loss
from tcpcast.engines.formula.inputs import positive_metric, step
from tcpcast.engines.registry import FEED_MEASURED
from tcpcast.errors import DomainError, NotApplicable, Suggestion
from tcpcast.models import local_loop as model
from tcpcast.scenario.distributions import Constant
from tcpcast.scenario.empirical import Empirical
from tcpcast.scenario.traffic import OnOff
from tcpcast.units import digits

if TYPE_CHECKING:
    from tcpcast.answer import Step
    from tcpcast.scenario import Population, Scenario

SETBACKS, IDLENESS = "losses and timeouts", "restarts after idleness"
"""Regimes of equation (1): the more frequent cause of window reductions."""

OVERLOAD = "link full"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopInputs:
    """Inputs of the formulas; ``steps`` contains the derivation of each input by symbol."""

    sources: int
    packet_bits: float
    mean_off_s: float
    mean_size_pkts: float
    link_pps: float
    loss: float
    steps: dict[str, Step]

    def used(self, *symbols: str) -> list[Step]:
        """Return the derivation steps of some inputs, in the given order."""
        return [self.steps[symbol] for symbol in symbols]


def loop_inputs(model_name: str, scenario: Scenario, measured: Answer | None) -> LoopInputs:
    """Return the inputs of formulas for many users on one link.

    Parameters
    ----------
    model_name
        Name of the formula for error messages.
    scenario
        One class of on/off sources. p_loss is its specified random loss, or 0; p_to is 0; RTT is
        that of the idle path; p_idle is the probability that an OFF time exceeds
        ``tcp.idle_restart``, divided by the packets of a mean file.
    measured
        The ``packet`` answer that contains p_loss, p_to, p_idle and RTT; None uses the scenario.

    Raises
    ------
    NotApplicable
        Several classes, traffic that is not on/off.
    """
    group = one_class(model_name, scenario, "on-off")
    traffic = group.traffic
    assert isinstance(traffic, OnOff)  # checked by one_class
    bits = 8.0 * scenario.network.packet_bytes
    size, whole = _whole_size_pkts(traffic)
    idle = _specified_idleness(scenario, group, traffic, size)
    steps = [
        step("N", group.count, "1", "traffic.sources"),
        step("MSS", bits, "bit", "network.packet: IP bytes"),
        step("I", traffic.off.mean_value(), "s", "traffic.off"),
        step("B", size, "packet", whole),
        step("C", scenario.network.bottleneck.rate_bps / bits, "packet/s", "bottleneck rate"),
        *(
            _specified(scenario, group, idle)
            if measured is None
            else _measured(group, measured, idle)
        ),
    ]
    by_symbol = {entry["symbol"]: entry for entry in steps}
    return LoopInputs(
        sources=group.count,
        packet_bits=bits,
        mean_off_s=traffic.off.mean_value(),
        mean_size_pkts=size,
        link_pps=scenario.network.bottleneck.rate_bps / bits,
        loss=by_symbol["p_loss"]["value"],
        steps=by_symbol,
    )


def restart_sqrt(scenario: Scenario, measured: Answer | None) -> Answer:
    """Predict by equation (1), (MSS/RTT) sqrt(3/(2 max(p_loss + p_to, p_idle))).

    Metric: ``connection_rate_bps``, the rate of a user while on.

    Raises
    ------
    NotApplicable
        As for :func:`loop_inputs`; also without any cause of window reductions.
    """
    inputs = loop_inputs("the square root with restarts", scenario, measured)
    used = inputs.used("p_loss", "p_to", "p_idle", "RTT", "MSS")
    lost, timeouts, idle, rtt = (entry["value"] for entry in used[:4])
    try:
        rate = float(
            model.restarting_goodput_pps(
                rtt_s=rtt, loss_ratio=lost, timeout_ratio=timeouts, idle_restart_ratio=idle
            )
        )
    except DomainError:
        raise NotApplicable(
            "the square root with restarts needs a loss or a restart, but neither loss nor "
            "restarts after idle times are specified",
            Suggestion(feed="measured"),
            Suggestion({"tcp.idle_restart": "10s"}),
        ) from None
    steps = [
        *used,
        step("p", max(lost + timeouts, idle), "1", "max(p_loss + p_to, p_idle)"),
        step("g", rate * inputs.packet_bits, "bit/s", "(MSS/RTT) sqrt(3/(2p)), (1)"),
    ]
    return Answer(
        engine="restart-sqrt",
        metrics={"connection_rate_bps": Metric(rate * inputs.packet_bits)},
        notes=to_notes(
            [
                *([] if measured is not None else _full_link(inputs)),
                *_beyond_window(scenario, rate, rtt),
            ]
        ),
        regime=SETBACKS if lost + timeouts > idle else IDLENESS,
        steps=steps,
    )


def _counted(sources: int) -> str:
    return "1 source does" if sources == 1 else f"{sources:,} sources do"


def _full_link(inputs: LoopInputs) -> list[Note]:
    """Warn if the users overload the link, so that it loses packets and has a queue."""
    if math.isinf(_bound(inputs, 0.0)):
        return []
    share = inputs.packet_bits * _bound(inputs, 0.0) / 1e3
    why = (
        f"{inputs.sources:,} sources fill the link, but the equation uses the loss and RTT of an "
        f"idle path: a user's share is {digits(share)} kbit/s (fair-share)"
    )
    return [Note(why, kind="model", suggestions=(FEED_MEASURED,))]


def fair_share(scenario: Scenario, measured: Answer | None) -> Answer:
    """Predict by equation (2), N a = C, solved for the send rate A of a user while on.

    Metrics: ``connection_rate_bps`` A (1 - p), ``on_time_s`` B/(A (1 - p)), ``send_rate_pps`` N a
    and ``offered_load`` N B/(C I).

    Raises
    ------
    NotApplicable
        As for :func:`loop_inputs`; also for a link without a rate, or one that N users do not fill.
    """
    inputs, threshold = _overloaded("fair shares of a full link", scenario, measured)
    means = {"mean_off_s": inputs.mean_off_s, "mean_size_pkts": inputs.mean_size_pkts}
    rate = float(
        model.fair_send_rate_pps(
            sources=inputs.sources, link_pps=inputs.link_pps, loss_ratio=inputs.loss, **means
        )
    )
    mean_rate = float(model.accepted_rate_pps(send_rate_pps=rate, loss_ratio=inputs.loss, **means))
    goodput = rate * (1 - inputs.loss)
    on_s = inputs.mean_size_pkts / goodput
    answer = _of_overload("fair-share", inputs, threshold, goodput)
    answer.steps += [
        step("A", rate, "packet/s", "N a = C, (2)"),
        step("a", mean_rate, "packet/s", "A T/(I + T), T = B/(A (1 - p_loss))"),
        step("T", on_s, "s", "B/(A (1 - p_loss))"),
        step("g", goodput * inputs.packet_bits, "bit/s", "A (1 - p_loss)"),
    ]
    answer.metrics |= {
        "on_time_s": Metric(on_s),
        "send_rate_pps": Metric(inputs.sources * mean_rate),
    }
    return answer


def overload_bound(scenario: Scenario, measured: Answer | None) -> Answer:
    """Predict by equation (3), B/(N B/(C (1 - p)) - I), an upper bound of the overload goodput.

    Metrics: ``connection_rate_bps`` and ``offered_load`` N B/(C I).

    Raises
    ------
    NotApplicable
        As for :func:`loop_inputs`; also for a link without a rate, or one that N users do not fill.
    """
    inputs, threshold = _overloaded("the bound in overload", scenario, measured)
    goodput = float(_bound(inputs, inputs.loss))
    answer = _of_overload("overload-bound", inputs, threshold, goodput)
    answer.steps += [
        step("g", goodput * inputs.packet_bits, "bit/s", "B/(N B/(C (1 - p_loss)) - I), (3)")
    ]
    return answer


def _overloaded(name: str, scenario: Scenario, measured: Answer | None) -> tuple[LoopInputs, float]:
    """Return the inputs and N*, or raise NotApplicable if the link is not full."""
    inputs = loop_inputs(name, scenario, measured)
    if math.isinf(inputs.link_pps):
        raise NotApplicable(
            f"{name} needs a bottleneck with a rate, but the scenario has an unlimited one",
            Suggestion({"network.bottleneck.rate": "10mbit"}),
        )
    threshold = float(
        model.threshold_sources(
            link_pps=inputs.link_pps,
            mean_off_s=inputs.mean_off_s,
            mean_size_pkts=inputs.mean_size_pkts,
        )
    )
    if math.isinf(_bound(inputs, inputs.loss)):
        min_sources = threshold * (1 - inputs.loss)
        raise NotApplicable(
            f"{name} does not apply: {_counted(inputs.sources)} not fill the link at any file "
            f"rate; that needs more than C I (1 - p)/B = {digits(min_sources, 5)}",
            Suggestion({"traffic.sources": math.floor(min_sources) + 1}),
        )
    return inputs, threshold


def _bound(inputs: LoopInputs, loss: float) -> float:
    return float(
        model.overload_goodput_pps(
            sources=inputs.sources,
            link_pps=inputs.link_pps,
            mean_off_s=inputs.mean_off_s,
            mean_size_pkts=inputs.mean_size_pkts,
            loss_ratio=loss,
        )
    )


def _of_overload(engine: str, inputs: LoopInputs, threshold: float, goodput: float) -> Answer:
    """Return the common part of the answers of (2) and (3)."""
    lossless = inputs.packet_bits * _bound(inputs, 0.0)
    steps = [
        *inputs.used("N", "B", "I", "C", "p_loss"),
        step("N*", threshold, "1", "C I/B, the threshold"),
        step("load", inputs.sources / threshold, "1", "N B/(C I)"),
        step("g at p = 0", lossless, "bit/s", "B/(N B/C - I): lost packets use no capacity"),
    ]
    warnings = []
    if inputs.loss > 0:
        warnings.append(
            "the equation counts lost packets as used capacity; packets lost before the link, for "
            f"example at a full buffer, use none, and the goodput is up to {digits(lossless / 1e3)}"
            " kbit/s"
        )
    return Answer(
        engine=engine,
        metrics={
            "connection_rate_bps": Metric(goodput * inputs.packet_bits),
            "offered_load": Metric(inputs.sources / threshold),
        },
        notes=to_notes(warnings),
        regime=OVERLOAD,
        steps=steps,
    )


def _whole_size_pkts(traffic: OnOff) -> tuple[float, str]:
    """Return the mean of the sizes in full packets, and its source."""
    size = traffic.size
    if traffic.size_rounding == "nearest":
        return max(1.0, size.mean_value()), "traffic.size"
    source = "traffic.size, rounded down to full packets"
    if isinstance(size, Constant):
        return max(1.0, float(math.floor(size.value))), source
    if isinstance(size, Empirical):
        pairs = zip(size.values, size.weights, strict=True)
        cut = math.fsum(max(1, math.floor(v)) * w for v, w in pairs)
        return cut / math.fsum(size.weights), source
    # Rounding down loses half a packet on average if the density is smooth.
    return max(1.0, size.mean_value() - 0.5), f"{source}: half a packet less"


def _specified_idleness(
    scenario: Scenario, group: Population, traffic: OnOff, size_pkts: float
) -> Step:
    """Return p_idle, the share of packets before which an idle time reset the window."""
    if traffic.connection == "new":
        source = "1/B: each file begins with a new window (traffic.connection)"
        return step("p_idle", 1 / size_pkts, "1", source)
    rule = scenario.populations[0].tcp.idle_restart
    if rule == "never":
        return step("p_idle", 0.0, "1", 'tcp.idle_restart = "never"')
    threshold, name = (rule, "tcp.idle_restart") if isinstance(rule, float) else (0.0, "")
    if not name:
        threshold, name = max(group.tcp.min_rto_s, group.rtt_s), "max(tcp.min_rto, RTT)"
    share = traffic.off.above(threshold)
    return step("p_idle", share / size_pkts, "1", f"P(OFF > {name}) / B = {share:.4g} / B")


def _specified(scenario: Scenario, group: Population, idle: Step) -> list[Step]:
    loss, keys = specified_loss(scenario, group)
    return [
        step("p_loss", loss, "1", keys or "no random loss specified"),
        step("p_to", 0.0, "1", "none specified"),
        idle,
        step("RTT", group.rtt_s, "s", IDLE_PATH),
    ]


def _measured(group: Population, measured: Answer, idle: Step) -> list[Step]:
    restarts, rtt = (
        positive_metric(measured, "idle_restart_ratio"),
        positive_metric(measured, "rtt_mean_s"),
    )
    if restarts:
        idle = step("p_idle", restarts, "1", "packet: idle_restart_ratio")
    return [
        step("p_loss", positive_metric(measured, "loss_ratio") or 0.0, "1", "packet: loss_ratio"),
        step(
            "p_to", positive_metric(measured, "timeout_ratio") or 0.0, "1", "packet: timeout_ratio"
        ),
        idle,
        step("RTT", rtt or group.rtt_s, "s", "packet: rtt_mean_s" if rtt else IDLE_PATH),
    ]


def _beyond_window(scenario: Scenario, rate_pps: float, rtt_s: float) -> list[str]:
    window = scenario.populations[0].tcp.receiver_window
    max_rate = window / rtt_s
    if rate_pps <= max_rate:
        return []
    return [
        f"the formula has no receiver window: a user gets {digits(rate_pps)} packets/s while on, "
        f"but {window:,.0f} packets per RTT are only {digits(max_rate)}"
    ]
