"""Engine ``short``: latency of short transfers from round trips and losses, per size."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer import Answer, Metric, texts_to_notes
from tcpcast.engines.formula.collect_inputs import (
    added_latency_to_one_rtt_s,
    collect_transfer_inputs,
    packets_per_ack_source_text,
    require_listed_sizes,
    transfer_domain_values,
    warn_about_omitted_transfer_features,
)
from tcpcast.engines.formula.input_types import make_step
from tcpcast.engines.formula.rate_answers import BOTTLENECK_REGIME
from tcpcast.models.cardwell import MAX_HANDSHAKE_LOSS, connection_latency_s
from tcpcast.models.domain import EXPECTED_LOSSES, SACK_LOSSES, WINDOW_BDPS
from tcpcast.models.short import (
    ShortTransfer,
    conditional_latency_s,
    expected_latency_s,
    loss_probability,
    lossless_latency_s,
    min_recoverable_pkts,
    timeout_packets,
)
from tcpcast.process.errors import DomainError, NotApplicable, Suggestion

if TYPE_CHECKING:
    from tcpcast.answer import Step
    from tcpcast.array_types import Floats, Table
    from tcpcast.scenario import Scenario


MODEL_NAME = "the model of short transfers"

ROUND_TRIPS_REGIME, LOSS_RECOVERY_REGIME = "round trips", "loss recovery"
"""Regimes: the cause of more than half of the expected latency."""

LIMITED_TRANSMIT_DUPLICATES = {"each": 1, "second": 2}
"""dup_LT, the duplicate ACK that first triggers limited transmit, by
``tcp.rules.limited_transmit_on``. RFC 3042 corresponds to 1.
"""

MAX_LIMITED_TRANSMIT_PKTS = 2
"""Maximum number of packets that limited transmit sends."""

MAX_TABLE_LOSSES = 10
"""Largest number of losses in table ``by_losses``, unless a smaller number is rarer than
:data:`MIN_TABLE_PROBABILITY`."""

MIN_TABLE_PROBABILITY = 1e-3

MAX_MEAN_LOSSES = 30
"""Maximum mean number of losses of the largest transfer, well beyond the model's domain.

Each loss is one step of the recursion, and a transfer with so many losses is a bulk flow.
"""

MAX_LOSS = 0.5
"""Maximum loss ratio, well beyond the model's domain.

The number of losses of a transfer has a variance of n p/(1 - p)^3: with a loss of 90 %, even one
packet needs 1,600 steps of the recursion.
"""

CUBIC_DECREASE = 0.7
"""Window of CUBIC after a reduction, relative to before (RFC 9438, section 4.6)."""

TAIL_LOSS_PROBE_RTTS = 2
"""Round trips before a tail loss probe (RFC 8985, section 7.2)."""


def short(scenario: Scenario, measured: Answer | None) -> Answer:
    """Predict by Ayesta and Avrachenkov's model of short transfers.

    Delayed ACKs wait for ``tcp.ack_timeout``, which the paper omits. As in the paper, each loss
    costs one recovery and the timer is constant. Metric: ``completion_time_s``, the mean over the
    sizes, for isolated transfers on the idle path. Tables ``by_size`` (size_pkts,
    completion_time_s) and ``by_losses`` (size_pkts, losses, probability,
    completion_time_s given exactly that many lost transmissions).

    With measured inputs, p is the ``packet`` answer's ``loss_ratio`` and RTT its ``rtt_mean_s``.

    Raises
    ------
    NotApplicable
        Several classes, traffic that is not transfers, a rule for the last packets that the model
        lacks, a loss above :data:`MAX_LOSS`, sizes with a mean of more than
        :data:`MAX_MEAN_LOSSES` lost packets.
    """
    sizes = np.asarray(require_listed_sizes(MODEL_NAME, scenario), dtype=np.float64)
    inputs = collect_transfer_inputs(scenario, measured)
    loss, rtt = inputs["p"], inputs["RTT"]
    size_pkts = float(sizes.max())
    loss_ratio = loss["value"]
    if loss_ratio > MAX_LOSS:
        raise NotApplicable(
            f"the loss is {100 * loss_ratio:.3g} %, but the model of short transfers supports at "
            f"most {100 * MAX_LOSS:.0f} %",
            Suggestion(engine="packet"),
        )
    mean_losses = size_pkts * loss_ratio  # as in the model's domain
    if mean_losses > MAX_MEAN_LOSSES:
        raise NotApplicable(
            f"a transfer of {size_pkts:,.0f} packets loses {mean_losses:,.1f} packets on average, "
            f"but the model of short transfers supports at most {MAX_MEAN_LOSSES} losses; use a "
            "smaller size, or estimate the time as the size divided by the rate of a bulk flow"
        )
    try:
        transfer = _make_model_transfer(scenario, rtt["value"])
        lossless = lossless_latency_s(transfer, sizes)
        missing = added_latency_to_one_rtt_s(lossless, rtt["value"])
        lossless = lossless + missing
        expected = lossless
        by_losses: Table = {
            "size_pkts": sizes,
            "losses": np.zeros(len(sizes), dtype=np.int64),
            "probability": np.ones(len(sizes)),
            "completion_time_s": lossless,
        }
        if loss["value"] > 0:
            expected = missing + expected_latency_s(transfer, sizes, loss=loss["value"])
            losses = np.arange(MAX_TABLE_LOSSES + 1)
            probability = loss_probability(losses[:, None], size_pkts=sizes, loss=loss["value"])
            shown = (probability >= MIN_TABLE_PROBABILITY) | (losses[:, None] == 0)
            max_count = int(losses[shown.any(axis=1)][-1])
            latency = missing + conditional_latency_s(transfer, sizes, max_losses=max_count)
            size, count = np.nonzero(shown[: max_count + 1].T)
            by_losses = {
                "size_pkts": sizes[size],
                "losses": count,
                "probability": probability[count, size],
                "completion_time_s": latency[count, size],
            }
        tcp = scenario.populations[0].tcp
        limited = transfer.limited_transmit
        growth, rto = "tcp.delayed_acks: 2, otherwise 1", "max(tcp.min_rto, 4 RTT)"
        todays: list[Step] = []
        if tcp.is_modern:
            growth, rto = packets_per_ack_source_text(tcp), "RTT + tcp.min_rto"
            if not tcp.adds_min_rto:
                rto = "max(tcp.min_rto, RTT)"
            if tcp.has_tail_loss_probes:
                rto = f"a tail loss probe after 2 RTT, at most {rto}"
            todays = [
                make_step(
                    "beta",
                    transfer.decrease,
                    "1",
                    f"{tcp.stack}: window after a loss / window before it",
                ),
                make_step("C_link", transfer.link_pps, "packet/s", "the slowest link"),
            ]
        steps = [
            loss,
            rtt,
            make_step("b", transfer.acked_packets, "packet", growth),
            *todays,
            make_step(
                "ack timer",
                transfer.delayed_ack_timer_s or 0.0,
                "s",
                "tcp.ack_timeout, if b is 2",
            ),
            make_step("W_0", transfer.initial_window_pkts, "packet", "tcp.initial_window"),
            make_step("W_SS", transfer.initial_ssthresh_pkts, "packet", "tcp.initial_ssthresh"),
            make_step("M", transfer.receiver_window_pkts, "packet", "tcp.receiver_window"),
            make_step("dup_t", transfer.duplicate_threshold, "1", "tcp.duplicate_threshold"),
            make_step("dup_LT", limited or math.nan, "1", "tcp.limited_transmit: none, 1 or 2"),
            make_step(
                "e",
                transfer.unprotected_pkts,
                "packet",
                "number of last packets whose loss causes a timeout",
            ),
            make_step("RTO", transfer.rto_s, "s", rto),
            make_step(
                "y_to",
                timeout_packets(transfer),
                "packet",
                "number of first packets whose loss causes a timeout, Tables 1 and 2",
            ),
            make_step("FileSize_min", min_recoverable_pkts(transfer), "packet", "y_to + e"),
        ]
    except DomainError as error:
        raise NotApplicable(f"the model of short transfers: {error}") from error
    steps += [
        make_step(
            "L_0",
            lossless.mean(),
            "s",
            "latency without loss, at least one RTT; mean over the sizes",
        ),
        make_step(
            "E[L]", expected.mean(), "s", "sum over k of p(k|n) L_k, (1), mean over the sizes"
        ),
    ]
    # The largest component of the time: losses, link transmission, or round trips.
    transmission_s = sizes.sum() / transfer.link_pps
    lossless_s = lossless.sum()
    regime = BOTTLENECK_REGIME if 2 * transmission_s > lossless_s else ROUND_TRIPS_REGIME
    if 2 * lossless_s <= expected.sum():
        regime = LOSS_RECOVERY_REGIME
    domain = transfer_domain_values(scenario, inputs, sizes)
    if tcp.is_modern:  # the model includes the link
        domain |= {WINDOW_BDPS: 0.0, SACK_LOSSES: domain[EXPECTED_LOSSES]}
    warnings = warn_about_omitted_transfer_features(scenario)
    if transfer.limited_transmit and transfer.duplicate_threshold > MAX_LIMITED_TRANSMIT_PKTS + 1:
        warnings.append(
            f"tcp.limited_transmit sends {MAX_LIMITED_TRANSMIT_PKTS} packets on duplicate acks "
            "before the fast retransmit. The model sends "
            f"{transfer.duplicate_threshold - 1} packets, so it underestimates the time"
        )
    times = {"completion_time_s": expected, **_times_from_syn(scenario, expected, rtt["value"])}
    return Answer(
        engine="short",
        metrics={name: Metric(float(values.mean())) for name, values in times.items()},
        tables={"by_size": {"size_pkts": sizes, **times}, "by_losses": by_losses},
        notes=texts_to_notes(warnings),
        regime=regime,
        steps=steps,
        domain=domain,
    )


def _times_from_syn(scenario: Scenario, expected: Floats, rtt_s: float) -> dict[str, Floats]:
    """Return the times from the SYN, for connections with a TCP handshake.

    The server's SYN-ACK is lost as often as its data. The client retransmits its SYN after
    ``tcp.initial_rto``. If at least half of the packets are lost, the expected time is infinite.
    With TCP Fast Open, the data follows the first SYN, a round trip earlier. If the SYN-ACK is
    lost, the client discards this data, and a timeout repeats it after the handshake.
    """
    group = scenario.populations[0]
    loss = scenario.path(group).loss
    if group.tcp.handshake != "tcp" or loss >= MAX_HANDSHAKE_LOSS:
        return {}
    connection = connection_latency_s(
        rtt_s=rtt_s,
        forward_loss_ratio=loss,
        syn_timeout_s=group.tcp.initial_rto_s,
    )
    saved = 0.0
    if group.tcp.fast_open:
        saved = (1 - loss) * rtt_s - loss * group.tcp.timeout_s(rtt_s)
    return {"total_time_s": expected + connection - saved}


def _make_model_transfer(scenario: Scenario, rtt_s: float) -> ShortTransfer:
    """Return the sender and path in the model's terms."""
    tcp = scenario.populations[0].tcp
    threshold, last = tcp.duplicate_threshold, tcp.last_packets_threshold
    if last not in {1, threshold}:
        raise NotApplicable(
            "the model of short transfers does not support tcp.rules.last_packets_threshold "
            f"= {last}",
            Suggestion({"tcp.rules.last_packets_threshold": 1}),
        )
    on = tcp.rules.limited_transmit_on
    limited = LIMITED_TRANSMIT_DUPLICATES[on] if tcp.limited_transmit else None
    if limited is not None and limited > threshold:
        # No duplicate ack below the threshold triggers limited transmit.
        limited = None
    transfer = ShortTransfer(
        rtt_s=rtt_s,
        initial_window_pkts=tcp.initial_window,
        initial_ssthresh_pkts=tcp.initial_ssthresh,
        receiver_window_pkts=tcp.receiver_window,
        acked_packets=tcp.packets_per_growth,
        duplicate_threshold=threshold,
        limited_transmit=limited,
        protects_last_packets=last < threshold,
        min_rto_s=tcp.min_rto_s,
        delayed_ack_timer_s=tcp.ack_timeout_s if tcp.delayed_acks else None,
    )
    return (
        replace(transfer, **_modern_tcp_parameters(scenario, rtt_s)) if tcp.is_modern else transfer
    )


def _modern_tcp_parameters(scenario: Scenario, rtt_s: float) -> dict[str, Any]:
    """Return the parameters of modern TCP that replace the paper's.

    If the window grows by the number of acknowledged packets, b is 1, and delayed ACKs do not slow
    the growth. RACK detects each loss that is followed by a delivered packet. A tail loss probe
    detects losses of the last packets after two RTTs.
    """
    group = scenario.populations[0]
    tcp = group.tcp
    parameters: dict[str, Any] = {
        "sack": tcp.has_sack,
        "decrease": CUBIC_DECREASE if tcp.control == "cubic" else 0.5,
        "timeout_s": tcp.timeout_s(rtt_s),
        "link_pps": scenario.path(group).capacity_pps,
    }
    if tcp.packets_per_growth == 1 and tcp.has_sack:
        parameters |= {"whole_rounds": True, "delayed_ack_timer_s": None}
    if tcp.has_tail_loss_probes:
        parameters |= {"limited_transmit": 1, "protects_last_packets": True}
        parameters["timeout_s"] = min(TAIL_LOSS_PROBE_RTTS * rtt_s, parameters["timeout_s"])
    return parameters
