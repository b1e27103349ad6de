"""Engine ``bbr-bound``: upper bound of the goodput of BBR on one path."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.answer import Answer, Metric
from tcpcast.engines.formula.collect_inputs import (
    IDLE_RTT_SOURCE,
    largest_window_and_source,
    require_one_class,
)
from tcpcast.engines.formula.input_types import make_step
from tcpcast.engines.formula.rate_answers import OWN_LINK_REGIME
from tcpcast.models.bbr import BOTTLENECK_REGIME, bbr_bound
from tcpcast.models.domain import LOSS_RATIO
from tcpcast.models.pftk import WINDOW_REGIME
from tcpcast.process.errors import NotApplicable, Suggestion

if TYPE_CHECKING:
    from tcpcast.scenario import Scenario


def bbr(scenario: Scenario) -> Answer:
    """Predict by the bound of BBR, version 1: the link's rate times the delivered share.

    The loss is always the path's own loss, not the loss of a simulation with another TCP,
    because BBR causes other losses and queues. Metrics: ``send_rate_pps``, ``goodput_pps`` and
    ``goodput_bps``, totals over all flows. The rate of each flow is at most W_max/RTT.

    Raises
    ------
    NotApplicable
        Several classes, traffic that is not bulk, no link with a rate.
    """
    group = require_one_class("BBR's bound", scenario, "bulk")
    path = scenario.path(group)
    if not path.has_rate:
        raise NotApplicable(
            "the bound for BBR requires a link with a rate, but the scenario has none",
            Suggestion({"network.bottleneck.rate": "10mbit"}),
        )
    flows, loss = group.count, path.loss
    window, of_window = largest_window_and_source(group, path)
    # On its own link, each flow is independent of the others.
    is_alone, capacity = not path.link.shared, path.capacity_pps
    bound = bbr_bound(
        bottleneck_pps=capacity / flows if is_alone else capacity,
        rtt_s=group.rtt_s,
        loss_ratio=loss,
        # A policer has no buffer, which is as bad as the smallest buffer.
        buffer_pkts=max(1.0, path.buffer_pkts),
        flows=1 if is_alone else flows,
    )
    free = flows * float(bound.rate_pps)
    max_rate = flows * window / group.rtt_s * (1 - loss)
    goodput = min(free, max_rate)
    regime = (
        OWN_LINK_REGIME if is_alone and bound.regime == BOTTLENECK_REGIME else str(bound.regime)
    )
    steps = [
        make_step("p", loss, "1", path.loss_keys or "no random loss specified"),
        make_step("RTT", group.rtt_s, "s", IDLE_RTT_SOURCE),
        make_step("W_max", window, "packet", of_window),
        make_step("n", flows, "1", "traffic.flows"),
        make_step("C_link", capacity, "packet/s", path.rate_key),
        make_step(
            "gain",
            bound.probe_factor,
            "1",
            "1.25 (1-p); if it is below 1, BBR's rate estimate shrinks",
        ),
        make_step(
            "standing queue", bound.standing_queue_pkts, "packet", "up to 1 BDP; 0 for one flow"
        ),
        make_step("n B", free, "packet/s", "C_link (1-p)"),
        make_step("goodput", goodput, "packet/s", "at most n W_max/RTT (1-p)"),
        make_step("send rate", goodput / (1 - loss), "packet/s", "goodput/(1-p)"),
    ]
    return Answer(
        engine="bbr-bound",
        metrics={
            "send_rate_pps": Metric(goodput / (1 - loss)),
            "goodput_pps": Metric(goodput),
            "goodput_bps": Metric(goodput * 8 * scenario.payload_bytes),
        },
        provenance={"feed": "scenario"},
        regime=WINDOW_REGIME if math.isfinite(max_rate) and max_rate < free else regime,
        steps=steps,
        domain={LOSS_RATIO: loss},
    )
