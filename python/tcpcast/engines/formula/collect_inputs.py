"""Inputs of a path formula: from the scenario, or from a simulation of it.

``--feed scenario``: p is the specified loss, RTT the RTT of the idle path, T0 the larger of
``tcp.min_rto`` and RTT, b is 2 with delayed ACKs, otherwise 1. ``--feed measured``: p, RTT and T0
are the ``packet`` answer's loss indication ratio, mean RTT and mean first timeout. No link then
limits the rate, because the measured values already include the effects of links.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.engines.formula.input_types import (
    PathInputs,
    delivered_bits_per_sent_packet,
    get_positive_metric,
    make_path_inputs,
    make_step,
)
from tcpcast.engines.registry import check_packet_sizes_are_equal
from tcpcast.models.cubic import CUBIC_BETA, cubic_response
from tcpcast.models.domain import EXPECTED_LOSSES, LOSS_RATIO, QUEUE_FILL, T0_RTTS, WINDOW_BDPS
from tcpcast.process.errors import NotApplicable, Suggestion, name_of
from tcpcast.scenario.loss import Bernoulli, GilbertElliott
from tcpcast.scenario.modern_stacks import TFRC
from tcpcast.scenario.modern_tcp import RATE_BASED

if TYPE_CHECKING:
    from tcpcast.answer import Answer, Step
    from tcpcast.array_types import Floats
    from tcpcast.scenario import Population, Scenario
    from tcpcast.scenario.path import PathView
    from tcpcast.scenario.tcp import Tcp

MIN_LOSS = 1e-15
"""Smaller losses are indistinguishable from no loss: 1 - p is 1."""

LARGEST_DELAY = 12
"""Largest delay of the hosts between two losses, in mean delays (``tcp.host_noise``), which are
exponential. Packets that waited for a late host leave as a burst."""

OFFLOAD_S, OFFLOAD_BYTES = 1e-3, 65_536
"""Time whose data segmentation offload sends as one burst, and the largest such burst."""

IDLE_RTT_SOURCE = "network.rtt: one packet and its ACK on the idle path"


def collect_path_inputs(
    model: str, scenario: Scenario, measured: Answer | None, *, accepts_no_loss: bool = False
) -> PathInputs:
    """Return the inputs of path formulas for a scenario.

    Parameters
    ----------
    model
        Name of the formula for error messages.
    scenario
        One class of bulk flows.
    measured
        The ``packet`` answer that contains p, RTT and T0, or None to use the scenario's values.
    accepts_no_loss
        True: p may be 0.

    Raises
    ------
    NotApplicable
        Several classes, traffic that is not bulk, no loss.
    """
    group = require_one_class(model, scenario, "bulk")
    path = scenario.path(group)
    warnings: list[str] = []
    if measured is None:
        lossless = accepts_no_loss and path.loss < MIN_LOSS
        steps = [
            make_step("p", 0.0, "1", "no random loss specified")
            if lossless
            else _require_specified_loss(model, scenario, group, warnings),
            *_derive_rtt_and_timeout(scenario, group),
        ]
        delivered: float | None = 8 * scenario.payload_bytes * (1 - path.loss)
    else:
        loss = get_positive_metric(measured, "loss_indication_ratio")
        if not loss:
            raise NotApplicable(
                f"{model} requires a loss ratio, but the simulation had no loss indication"
            )
        steps = [
            make_step("p", loss, "1", "packet: loss_indication_ratio"),
            *_measured_time_steps(scenario, group, measured),
        ]
        delivered = delivered_bits_per_sent_packet(measured)
    tcp = scenario.populations[0].tcp
    # Measured values already include the effects of links.
    limit = path if measured is None and path.has_rate else None
    window, of_window = largest_window_and_source(group, path if measured is None else None)
    of_window += ": unlimited" if math.isinf(window) else ""
    steps += [
        make_step("b", tcp.packets_per_growth, "packet", packets_per_ack_source_text(tcp)),
        make_step("W_max", window, "packet", of_window),
        make_step("n", group.count, "1", "traffic.flows"),
    ]
    return make_path_inputs(
        steps,
        burst_pkts=0.0 if limit is None else _burst_pkts(group, limit),
        decrease=CUBIC_BETA if tcp.control == "cubic" else 0.5,
        window_pkts=window,
        delivered_bits=delivered,
        capacity=limit,
        warnings=tuple(warnings),
    )


def largest_window_and_source(group: Population, path: PathView | None) -> tuple[float, str]:
    """Return the largest window of a flow in packets, and what sets it.

    The send buffer and TCP itself are named only if they are smaller than the flow's share of the
    BDP, because smaller windows fill almost all links. ``path`` is None if a simulation, which
    respects them, measured the loss.
    """
    window, allowed = float(group.tcp.receiver_window), min(group.allowed_windows_pkts)
    if path is None or allowed >= min(window, path.capacity_pps * group.rtt_s / group.count):
        return window, "tcp.receiver_window"
    return allowed, "largest window of TCP or of tcp.socket_buffers"


def _burst_pkts(group: Population, path: PathView) -> float:
    """Return the largest burst at a link in packets: after a host's delay, and by offload.

    Hosts are late at different times, so a shared link receives the burst of one flow.
    """
    offload, pps = 0.0, path.capacity_pps / (group.count if path.link.shared else 1)
    if group.tcp.is_modern:
        offload = min(OFFLOAD_S * pps, OFFLOAD_BYTES / group.packet_bytes)
    return LARGEST_DELAY * group.tcp.host_noise_s * pps + offload


def require_one_class(model: str, scenario: Scenario, kind: str) -> Population:
    """Return the single class of senders of a path formula.

    Raises
    ------
    NotApplicable
        Several classes, or traffic of another kind.
    """
    check_packet_sizes_are_equal(model, scenario)
    group, *more = scenario.populations
    if more:
        raise NotApplicable(
            f"{model} requires one class of senders, but the scenario has {len(more) + 1}: use one "
            "scenario per class"
        )
    if group.traffic.kind != kind:
        raise NotApplicable(
            f'{model} requires traffic of kind "{kind}", but the scenario has '
            f'"{group.traffic.kind}"'
        )
    return group


_SUGGEST_LOSS = Suggestion({"network.bottleneck.loss": "1%"})


def loss_limited_pps(group: Population, loss: float) -> float:
    """Return the approximate packets per second of one flow, limited by random loss.

    CUBIC's response function or, for Reno, sqrt(3/(2p)) per RTT; inf without loss and for senders
    whose rate does not depend on it.
    """
    if loss < MIN_LOSS or group.tcp.control in RATE_BASED:
        return math.inf
    if group.tcp.control == "cubic":
        return float(cubic_response(rtt_s=group.rtt_s, loss_ratio=loss).rate_pps)
    return math.sqrt(1.5 / loss) / group.rtt_s


def _require_specified_loss(
    model: str, scenario: Scenario, group: Population, warnings: list[str]
) -> Step:
    path = scenario.path(group)
    loss, keys = path.loss, path.loss_keys
    if not keys:
        network, tcp = scenario.network, group.tcp
        # Receiver windows exceed the BDP plus the buffer of a link.
        overflows = not tcp.ecn and any(
            tcp.receiver_window * (group.count if on.shared else 1)
            > on.link.rate_bps * group.rtt_s / (8 * network.packet_bytes)
            + network.buffer_pkts(on.link)
            for on in group.route
        )
        raise NotApplicable(
            f"{model} requires a loss ratio, but the scenario has no random loss",
            _SUGGEST_LOSS,
            *([Suggestion(feed="measured")] if overflows else []),
        )
    if loss < MIN_LOSS:
        raise NotApplicable(f"{keys}: {model} treats a loss of {loss:g} as 0", _SUGGEST_LOSS)
    if any(isinstance(on.link.loss, GilbertElliott) for on in group.route):
        warnings.append(
            "the formula requires the ratio of loss indications, which is smaller than the mean of "
            f"the specified correlated loss ({loss:.4g}); use {name_of('--feed')} measured"
        )
    return make_step("p", loss, "1", keys)


def _derive_rtt_and_timeout(scenario: Scenario, group: Population) -> list[Step]:
    rtt = group.rtt_s
    tcp = scenario.populations[0].tcp
    return [
        make_step("RTT", rtt, "s", IDLE_RTT_SOURCE),
        make_step("T0", tcp.timeout_s(rtt), "s", tcp.timeout_rule),
    ]


def packets_per_ack_source_text(tcp: Tcp) -> str:
    """Return the source of b as text."""
    if tcp.control == TFRC:
        return "RFC 5348, section 3.1"
    if tcp.delayed_acks and tcp.packets_per_growth == 1:
        return f"{tcp.stack}: the window grows with the packets acked"
    return "tcp.delayed_acks: " + ("on" if tcp.delayed_acks else "off")


def _measured_time_steps(scenario: Scenario, group: Population, measured: Answer) -> list[Step]:
    rtt, t0 = get_positive_metric(measured, "rtt_mean_s"), get_positive_metric(measured, "t0_s")
    asked_rtt, asked_t0 = _derive_rtt_and_timeout(scenario, group)
    steps = [make_step("RTT", rtt, "s", "packet: rtt_mean_s") if rtt else asked_rtt]
    tcp = scenario.populations[0].tcp
    # The equation of TFRC does not use the timeout of the retransmission timer.
    if t0 and tcp.control != TFRC:
        return [*steps, make_step("T0", t0, "s", "packet: t0_s")]
    # Without a timeout in the run, use the value of the timer.
    at_least = tcp.timeout_s(steps[0]["value"])
    return [
        *steps,
        make_step("T0", at_least, "s", f"{asked_t0['source']}: the simulation had no timeout"),
    ]


def require_listed_sizes(model: str, scenario: Scenario) -> list[int]:
    """Return the sizes of individually listed transfers, in packets.

    Raises
    ------
    NotApplicable
        Several classes, traffic that is not transfers, sizes given by a distribution.
    """
    traffic: Any = require_one_class(model, scenario, "transfers").traffic
    sizes: list[int] | None = traffic.sizes
    if sizes is None:
        raise NotApplicable(
            f"{model} requires a list of sizes, not a distribution",
            Suggestion({"traffic.size": ["1pkt", "8pkt"]}),
        )
    return sizes


def collect_transfer_inputs(scenario: Scenario, measured: Answer | None) -> dict[str, Step]:
    """Return the derivation steps of p, RTT and T0 of single transfers, by symbol; p may be 0.

    p is the loss per packet: specified, or ``loss_ratio`` of the ``packet`` answer.
    """
    group = scenario.populations[0]
    path = scenario.path(group)
    steps = [make_step("p", path.loss, "1", path.loss_keys or "no random loss specified")]
    steps += _derive_rtt_and_timeout(scenario, group)
    if measured is not None:
        steps[0] = make_step(
            "p", get_positive_metric(measured, "loss_ratio") or 0.0, "1", "packet: loss_ratio"
        )
        steps[1:] = _measured_time_steps(scenario, group, measured)
    return {entry["symbol"]: entry for entry in steps}


def transfer_domain_values(
    scenario: Scenario, inputs: dict[str, Step], sizes: Floats
) -> dict[str, float]:
    """Return the quantities that bound the domains of transfer formulas, by name.

    The window grows until the end of the largest transfer or the first loss. The formulas have no
    link that limits the window.
    """
    loss, rtt, timer = (float(inputs[symbol]["value"]) for symbol in ("p", "RTT", "T0"))
    group = scenario.populations[0]
    slowest_bps = min(on.link.rate_bps for on in group.route)
    in_flight = slowest_bps * rtt / (8 * scenario.network.packet_bytes)
    until = min(float(sizes.max()), 1 / loss if loss else math.inf)
    tcp = group.tcp
    grown = tcp.initial_window + until / tcp.packets_per_growth
    return {
        LOSS_RATIO: loss,
        T0_RTTS: timer / rtt,
        EXPECTED_LOSSES: loss * float(sizes.mean()),
        WINDOW_BDPS: min(float(tcp.receiver_window), grown) / in_flight,
        QUEUE_FILL: _slow_start_queue_fill(scenario, until),
    }


def _slow_start_queue_fill(scenario: Scenario, until_pkts: float) -> float:
    """Return the queue that slow start builds, relative to the buffer of the slowest link.

    ``until_pkts`` is the number of packets until the end or the first random loss. In each round,
    half of the window waits, because two packets leave per acknowledged packet. CUBIC's HyStart
    ends slow start before the window exceeds the bandwidth-delay product; Reno continues.
    """
    group = scenario.populations[0]
    path, tcp = scenario.path(group), group.tcp
    if not path.has_rate:
        return 0.0
    path_pkts, least = path.capacity_pps * path.rtt_s, min(tcp.initial_window, until_pkts)
    window = tcp.initial_window + until_pkts / 2 / tcp.packets_per_growth
    window = min(tcp.receiver_window, tcp.initial_ssthresh, window)
    queue = max(least, min(window, path_pkts) / 2)
    if tcp.control != "cubic":
        queue = max(queue, window - path_pkts)
    return queue / max(1.0, path.buffer_pkts)


def warn_about_omitted_transfer_features(scenario: Scenario) -> list[str]:
    """Return warnings about features of the scenario that transfer formulas omit."""
    group = scenario.populations[0]
    traffic: Any = group.traffic
    warnings = []
    rules = (on.link.loss for on in group.route)
    if any(loss is not None and not isinstance(loss, Bernoulli) for loss in rules):
        warnings.append(
            "the model assumes independent losses, but the specified loss is correlated; p is the "
            "mean of the specified loss"
        )
    if traffic.arrivals is not None:
        warnings.append(
            "the model assumes isolated transfers, but the scenario's transfers share the path"
        )
    return warnings


def added_latency_to_one_rtt_s(lossless_s: Floats, rtt_s: float) -> Floats:
    """Return the time to add to the latency of each size to reach one RTT, in seconds.

    The formulas count fractions of an RTT, so that a transfer below the initial window would take
    less than the RTT, which is impossible.
    """
    return np.maximum(rtt_s - lossless_s, 0.0)
