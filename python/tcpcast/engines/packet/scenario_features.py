"""Features of a scenario without which a metric, or the events that it counts, cannot exist."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.engines.packet.queue_config import may_mark_packets

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.answer.metric_definition import ScenarioFeature
    from tcpcast.scenario import Scenario


def has_queue(scenario: Scenario) -> bool:
    """Return True if packets can queue at the bottleneck: finite rate and not a policer."""
    link = scenario.bottleneck
    return not math.isinf(link.rate_bps) and not link.is_policer


_FEATURES: dict[ScenarioFeature, Callable[[Scenario], bool]] = {
    "link rate": lambda scenario: not math.isinf(scenario.bottleneck.rate_bps),
    "queue": has_queue,
    "queue drops": lambda scenario: (
        not math.isinf(scenario.buffer_pkts) or scenario.bottleneck.queue != "droptail"
    ),
    "random loss": lambda scenario: scenario.bottleneck.loss is not None,
    "ECN marks": lambda scenario: may_mark_packets(scenario, scenario.bottleneck),
    "several hops": lambda scenario: len(scenario.network.hops) > 1,
    "return link": lambda scenario: scenario.network.has_return,
    "return rate": lambda scenario: (
        scenario.network.has_return and not math.isinf(scenario.network.return_bps)
    ),
    "modern stack": lambda scenario: scenario.is_modern,
}


def has_feature(scenario: Scenario, feature: ScenarioFeature | None) -> bool:
    """Return True if a scenario has a feature that a metric needs, or if it needs none (None)."""
    return feature is None or _FEATURES[feature](scenario)


def find_late_class(scenario: Scenario) -> int | None:
    """Return the class of bulk flows that starts last, if others start before it."""
    starts_s = sorted(
        (group.start_s, place)
        for place, group in enumerate(scenario.populations)
        if group.traffic.kind == "bulk"
    )
    if len(starts_s) < 2 or starts_s[-1][0] == starts_s[-2][0]:
        return None
    return starts_s[-1][1]
