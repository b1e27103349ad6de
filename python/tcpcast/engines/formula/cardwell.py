"""Engine ``cardwell``: latency of transfers: slow start, one recovery, the rest at PFTK's rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast.answer import Answer, Metric, texts_to_notes
from tcpcast.engines.formula.collect_inputs import (
    MIN_LOSS,
    added_latency_to_one_rtt_s,
    collect_transfer_inputs,
    require_listed_sizes,
    transfer_domain_values,
    warn_about_omitted_transfer_features,
)
from tcpcast.engines.formula.input_types import make_step
from tcpcast.models.cardwell import cardwell_latency
from tcpcast.process.errors import NotApplicable, Suggestion

if TYPE_CHECKING:
    from tcpcast.scenario import Scenario

MODEL_NAME = "the model of Cardwell, Savage and Anderson"


def cardwell(scenario: Scenario, measured: Answer | None) -> Answer:
    """Predict by the latency model of Cardwell, Savage and Anderson (2000), without the handshake.

    Metric: ``completion_time_s``, the mean over the sizes, for isolated transfers on the idle path.
    Table ``by_size`` (size_pkts, completion_time_s). The first ACK takes half of
    ``tcp.ack_timeout`` on average if ACKs are delayed and the initial window is one packet.

    Raises
    ------
    NotApplicable
        Several classes, traffic that is not transfers, no loss.
    """
    sizes = np.asarray(require_listed_sizes(MODEL_NAME, scenario), dtype=np.float64)
    inputs = collect_transfer_inputs(scenario, measured)
    loss, rtt = inputs["p"]["value"], inputs["RTT"]["value"]
    tcp = scenario.populations[0].tcp
    if loss < MIN_LOSS:
        raise NotApplicable(
            f"{MODEL_NAME} requires a loss ratio above 0",
            Suggestion({"network.bottleneck.loss": "1%"}),
        )
    b = tcp.packets_per_growth
    result = cardwell_latency(
        size_pkts=sizes,
        rtt_s=rtt,
        t0_s=inputs["T0"]["value"],
        loss_ratio=loss,
        initial_window_pkts=tcp.initial_window,
        packets_per_ack=b,
        receiver_window_pkts=tcp.receiver_window,
        delayed_ack_s=tcp.ack_timeout_s / 2 if tcp.delayed_acks else 0.0,
        connection=False,
    )
    missing = added_latency_to_one_rtt_s(result.slow_start_s + result.congestion_avoidance_s, rtt)
    latency = result.latency_s + missing
    parts = {
        "slow start": (result.slow_start_s + missing, "E[T_ss] (15), at least RTT"),
        "first loss": (result.first_loss_s, "E[T_loss] (20)"),
        "congestion avoidance": (result.congestion_avoidance_s, "E[T_ca] (24)"),
        "delayed ack": (result.delayed_ack_s, "E[T_delack]"),
    }
    steps = [
        *inputs.values(),
        make_step("b", b, "packet", "tcp.delayed_acks: 2, otherwise 1"),
        make_step("w_1", tcp.initial_window, "packet", "tcp.initial_window"),
        make_step("W_max", tcp.receiver_window, "packet", "tcp.receiver_window"),
        make_step("E[d_ss]", result.slow_start_pkts.mean(), "packet", "(5), mean over the sizes"),
        make_step("E[W_ss]", result.slow_start_window_pkts.mean(), "packet", "(11), mean"),
        *(
            make_step(name, part.mean(), "s", f"{source}, mean")
            for name, (part, source) in parts.items()
        ),
        make_step("E[L]", latency.mean(), "s", "(25), mean over the sizes"),
    ]
    return Answer(
        engine="cardwell",
        metrics={"completion_time_s": Metric(float(latency.mean()))},
        tables={"by_size": {"size_pkts": sizes, "completion_time_s": latency}},
        notes=texts_to_notes(warn_about_omitted_transfer_features(scenario)),
        regime=max(parts, key=lambda name: parts[name][0].sum()),
        steps=steps,
        domain=transfer_domain_values(scenario, inputs, sizes),
    )
