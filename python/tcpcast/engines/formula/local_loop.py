"""Engines of section 10 of INRIA report 4154: mean values of many users on one link.

Their inputs come from the scenario or from its simulation (``--feed measured``), see
:func:`collect_local_loop_inputs`. The formulas predict ``connection_rate_bps``: the rate of a
user's connection while on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpcast.answer import Answer, Metric, Note, texts_to_notes
from tcpcast.engines.formula.collect_inputs import (
    IDLE_RTT_SOURCE,
    require_one_class,
)
from tcpcast.engines.formula.input_types import get_positive_metric, make_step
from tcpcast.engines.registry import SUGGEST_MEASURED_FEED
from tcpcast.models import local_loop as model
from tcpcast.process.errors import DomainError, NotApplicable, Suggestion
from tcpcast.quantity.units import digits
from tcpcast.scenario.distributions import Constant
from tcpcast.scenario.empirical import Empirical
from tcpcast.scenario.traffic import OnOff

if TYPE_CHECKING:
    from tcpcast.answer import Step
    from tcpcast.scenario import Scenario

LOSS_REGIME, IDLE_REGIME = "losses and timeouts", "restarts after idleness"
"""Regimes of equation (1): the more frequent cause of window reductions."""

OVERLOAD_REGIME = "link full"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalLoopInputs:
    """Inputs of the formulas; ``steps`` contains the derivation of each input by symbol."""

    sources: int
    packet_bits: float
    mean_off_s: float
    mean_size_pkts: float
    link_pps: float
    loss: float
    steps: dict[str, Step]

    @property
    def model_arguments(self) -> dict[str, float]:
        """Arguments of the formulas for a full link, without the loss, by name."""
        return {
            "sources": self.sources,
            "link_pps": self.link_pps,
            "mean_off_s": self.mean_off_s,
            "mean_size_pkts": self.mean_size_pkts,
        }

    def select_steps(self, *symbols: str) -> list[Step]:
        """Return the derivation steps of some inputs, in the given order."""
        return [self.steps[symbol] for symbol in symbols]


def collect_local_loop_inputs(
    model_name: str, scenario: Scenario, measured: Answer | None
) -> LocalLoopInputs:
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
    group = require_one_class(model_name, scenario, "on-off")
    traffic = group.traffic
    assert isinstance(traffic, OnOff)  # checked by require_one_class
    bits = 8.0 * scenario.network.packet_bytes
    size, whole = _mean_size_in_full_packets(traffic)
    # p_idle, the share of packets before which an idle time reset the window.
    if traffic.connection == "new":
        source = "1/B: each file begins with a new window (traffic.connection)"
        idle = make_step("p_idle", 1 / size, "1", source)
    elif (rule := group.tcp.idle_restart) == "never":
        idle = make_step("p_idle", 0.0, "1", 'tcp.idle_restart = "never"')
    else:
        threshold, name = max(group.tcp.min_rto_s, group.rtt_s), "max(tcp.min_rto, RTT)"
        if isinstance(rule, float):
            threshold, name = rule, "tcp.idle_restart"
        share = traffic.off.share_above(threshold)
        idle = make_step("p_idle", share / size, "1", f"P(OFF > {name}) / B = {share:.4g} / B")
    steps = [
        make_step("N", group.count, "1", "traffic.sources"),
        make_step("MSS", bits, "bit", "network.packet: IP bytes"),
        make_step("I", traffic.off.mean_value(), "s", "traffic.off"),
        make_step("B", size, "packet", whole),
        make_step("C", scenario.bottleneck.rate_bps / bits, "packet/s", "bottleneck rate"),
    ]
    if measured is None:
        path = scenario.path(group)
        steps += [
            make_step("p_loss", path.loss, "1", path.loss_keys or "no random loss specified"),
            make_step("p_to", 0.0, "1", "none specified"),
            idle,
            make_step("RTT", group.rtt_s, "s", IDLE_RTT_SOURCE),
        ]
    else:
        restarts, rtt = (
            get_positive_metric(measured, name) for name in ("idle_restart_ratio", "rtt_mean_s")
        )
        if restarts:
            idle = make_step("p_idle", restarts, "1", "packet: idle_restart_ratio")
        for symbol, metric in (("p_loss", "loss_ratio"), ("p_to", "timeout_ratio")):
            value = get_positive_metric(measured, metric) or 0.0
            steps.append(make_step(symbol, value, "1", f"packet: {metric}"))
        source = "packet: rtt_mean_s" if rtt else IDLE_RTT_SOURCE
        steps += [idle, make_step("RTT", rtt or group.rtt_s, "s", source)]
    by_symbol = {entry["symbol"]: entry for entry in steps}
    return LocalLoopInputs(
        sources=group.count,
        packet_bits=bits,
        mean_off_s=traffic.off.mean_value(),
        mean_size_pkts=size,
        link_pps=scenario.bottleneck.rate_bps / bits,
        loss=by_symbol["p_loss"]["value"],
        steps=by_symbol,
    )


def restart_sqrt(scenario: Scenario, measured: Answer | None) -> Answer:
    """Predict by equation (1), (MSS/RTT) sqrt(3/(2 max(p_loss + p_to, p_idle))).

    Metric: ``connection_rate_bps``, the rate of a user while on.

    Raises
    ------
    NotApplicable
        As for :func:`collect_local_loop_inputs`; also without any cause of window reductions.
    """
    inputs = collect_local_loop_inputs("the square-root law with restarts", scenario, measured)
    used = inputs.select_steps("p_loss", "p_to", "p_idle", "RTT", "MSS")
    lost, timeouts, idle, rtt = (entry["value"] for entry in used[:4])
    try:
        rate = float(
            model.restarting_goodput_pps(
                rtt_s=rtt, loss_ratio=lost, timeout_ratio=timeouts, idle_restart_ratio=idle
            )
        )
    except DomainError:
        raise NotApplicable(
            "the model requires loss or restarts after idle times; the scenario specifies neither",
            Suggestion(feed="measured"),
            Suggestion({"tcp.idle_restart": "10s"}),
        ) from None
    steps = [
        *used,
        make_step("p", max(lost + timeouts, idle), "1", "max(p_loss + p_to, p_idle)"),
        make_step("g", rate * inputs.packet_bits, "bit/s", "(MSS/RTT) sqrt(3/(2p)), (1)"),
    ]
    notes = []
    if measured is None and not math.isinf(bound_pps := _overload_bound_pps(inputs, 0.0)):
        # The users overload the link, so that it loses packets and has a queue.
        why = (
            f"{inputs.sources:,} sources fill the link, but the equation uses the loss and RTT of "
            "an idle path; according to fair-share, a user achieves "
            f"{digits(inputs.packet_bits * bound_pps / 1e3)} kbit/s"
        )
        notes.append(Note(why, kind="model", suggestions=(SUGGEST_MEASURED_FEED,)))
    window = scenario.populations[0].tcp.receiver_window
    if rate > window / rtt:
        notes += texts_to_notes(
            [
                f"the formula ignores the receiver window: it predicts {digits(rate)} packets/s "
                f"for an active user, but a window of {window:,.0f} packets allows only "
                f"{digits(window / rtt)} packets/s"
            ]
        )
    return Answer(
        engine="restart-sqrt",
        metrics={"connection_rate_bps": Metric(rate * inputs.packet_bits)},
        notes=notes,
        regime=LOSS_REGIME if lost + timeouts > idle else IDLE_REGIME,
        steps=steps,
    )


def fair_share(scenario: Scenario, measured: Answer | None) -> Answer:
    """Predict by equation (2), N a = C, solved for the send rate A of a user while on.

    Metrics: ``connection_rate_bps`` A (1 - p), ``on_time_s`` B/(A (1 - p)), ``send_rate_pps`` N a
    and ``offered_load`` N B/(C I).

    Raises
    ------
    NotApplicable
        As for :func:`collect_local_loop_inputs`; also if the link has no rate, or N users do not
        fill the link.
    """
    inputs, threshold = _require_overload("the fair-share formula", scenario, measured)
    rate = float(model.fair_send_rate_pps(**inputs.model_arguments, loss_ratio=inputs.loss))
    mean_rate = float(
        model.mean_user_rate_pps(
            send_rate_pps=rate,
            loss_ratio=inputs.loss,
            mean_off_s=inputs.mean_off_s,
            mean_size_pkts=inputs.mean_size_pkts,
        )
    )
    goodput = rate * (1 - inputs.loss)
    on_s = inputs.mean_size_pkts / goodput
    answer = _make_overload_answer("fair-share", inputs, threshold, goodput)
    answer.steps += [
        make_step("A", rate, "packet/s", "N a = C, (2)"),
        make_step("a", mean_rate, "packet/s", "A T/(I + T), T = B/(A (1 - p_loss))"),
        make_step("T", on_s, "s", "B/(A (1 - p_loss))"),
        make_step("g", goodput * inputs.packet_bits, "bit/s", "A (1 - p_loss)"),
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
        As for :func:`collect_local_loop_inputs`; also if the link has no rate, or N users do not
        fill the link.
    """
    inputs, threshold = _require_overload("the overload bound", scenario, measured)
    goodput = float(_overload_bound_pps(inputs, inputs.loss))
    answer = _make_overload_answer("overload-bound", inputs, threshold, goodput)
    answer.steps += [
        make_step("g", goodput * inputs.packet_bits, "bit/s", "B/(N B/(C (1 - p_loss)) - I), (3)")
    ]
    return answer


def _require_overload(
    name: str, scenario: Scenario, measured: Answer | None
) -> tuple[LocalLoopInputs, float]:
    """Return the inputs and N*, or raise NotApplicable if the link is not full."""
    inputs = collect_local_loop_inputs(name, scenario, measured)
    if math.isinf(inputs.link_pps):
        raise NotApplicable(
            f"{name} requires a bottleneck with a rate, but the scenario's bottleneck is unlimited",
            Suggestion({"network.bottleneck.rate": "10mbit"}),
        )
    threshold = float(
        model.threshold_sources(
            link_pps=inputs.link_pps,
            mean_off_s=inputs.mean_off_s,
            mean_size_pkts=inputs.mean_size_pkts,
        )
    )
    if math.isinf(_overload_bound_pps(inputs, inputs.loss)):
        min_sources = threshold * (1 - inputs.loss)
        short = "1 source does" if inputs.sources == 1 else f"{inputs.sources:,} sources do"
        raise NotApplicable(
            f"{name} requires a full link, but {short} not fill it; "
            f"use more than {digits(min_sources, 5)} sources (link rate x mean "
            "OFF time x (1 - loss) / mean file size)",
            Suggestion({"traffic.sources": math.floor(min_sources) + 1}),
        )
    return inputs, threshold


def _overload_bound_pps(inputs: LocalLoopInputs, loss: float) -> float:
    return float(model.overload_goodput_pps(**inputs.model_arguments, loss_ratio=loss))


def _make_overload_answer(
    engine: str, inputs: LocalLoopInputs, threshold: float, goodput: float
) -> Answer:
    """Return the common part of the answers of (2) and (3)."""
    lossless = inputs.packet_bits * _overload_bound_pps(inputs, 0.0)
    steps = [
        *inputs.select_steps("N", "B", "I", "C", "p_loss"),
        make_step("N*", threshold, "1", "C I/B, the threshold"),
        make_step("load", inputs.sources / threshold, "1", "N B/(C I)"),
        make_step("g at p = 0", lossless, "bit/s", "B/(N B/C - I): lost packets use no capacity"),
    ]
    warnings = []
    if inputs.loss > 0:
        warnings.append(
            "the equation assumes that lost packets use capacity of the link. If packets are lost "
            "before the "
            f"link, for example at a full buffer, the goodput can reach {digits(lossless / 1e3)} "
            "kbit/s"
        )
    return Answer(
        engine=engine,
        metrics={
            "connection_rate_bps": Metric(goodput * inputs.packet_bits),
            "offered_load": Metric(inputs.sources / threshold),
        },
        notes=texts_to_notes(warnings),
        regime=OVERLOAD_REGIME,
        steps=steps,
    )


def _mean_size_in_full_packets(traffic: OnOff) -> tuple[float, str]:
    """Return the mean of the sizes in full packets, and its source."""
    size = traffic.size
    if traffic.size_rounding == "nearest":
        return max(1.0, size.mean_value()), "traffic.size"
    source = "traffic.size, each size rounded down to full packets"
    if isinstance(size, Constant):
        return max(1.0, float(math.floor(size.value))), source
    if isinstance(size, Empirical):
        pairs = zip(size.values, size.weights, strict=True)
        cut = math.fsum(max(1, math.floor(v)) * w for v, w in pairs)
        return cut / math.fsum(size.weights), source
    # Rounding down loses half a packet on average if the density is smooth.
    source = "traffic.size minus half a packet: sizes are rounded down"
    return max(1.0, size.mean_value() - 0.5), source
