"""Compare classes with identical settings, whose long-term means are equal.

One run of a deterministic network may lock into a phase: the flow that happens to be ahead stays
ahead. Consecutive batches then agree with each other, and intervals that are based on them exclude
the mean over all phases. Identical classes show this, because they differ only by chance.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from tcpcast.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.engines.packet.metric_estimates import Estimates
    from tcpcast.scenario.classes import Population
    from tcpcast.statistics import Estimate

MAX_CHANCE_DISTANCE = 2.0
"""Distance from the common mean, in half-widths, up to which an interval excludes it by chance: the
probability of more is about 0.0001."""

EQUAL_SHARE = 1e-9
"""Relative difference below which values are equal, apart from rounding."""

LOCKED_TEXT = (
    "locked into a phase: identical classes differ by more than their intervals, depending on the "
    "start of the run; average over several starts (run.replications = 8)"
)


def compare_identical_classes(
    groups: Sequence[Population], each: Sequence[Estimates]
) -> list[Estimates]:
    """Return the estimates of each class, with intervals that agree with identical classes.

    An interval that excludes the mean of identical classes is widened to contain it. If it misses
    the mean by more than chance, the intervals of all these classes are withheld.

    Parameters
    ----------
    groups
        The classes.
    each
        The estimates of each class, by metric.
    """
    result = [dict(estimates) for estimates in each]
    for members in _find_identical_classes(groups):
        for name in result[members[0]]:
            estimates = {
                index: e
                for index in members
                if (e := result[index].get(name)) is not None and math.isfinite(e.value)
            }
            if len(estimates) < 2:
                continue
            scales = {
                index: float(max(groups[index].count, 1)) if METRICS[name].is_extensive else 1.0
                for index in estimates
            }
            mean = math.fsum(e.value / scales[index] for index, e in estimates.items())
            mean /= len(estimates)
            distances = {
                index: _distance_from(mean * scales[index], e) for index, e in estimates.items()
            }
            is_locked = max(distances.values()) > MAX_CHANCE_DISTANCE
            for index, e in estimates.items():
                if is_locked:
                    result[index][name] = e.with_warning(LOCKED_TEXT, withheld=True)
                elif distances[index] > 1.0:
                    result[index][name] = _include(mean * scales[index], e)
    return result


def _find_identical_classes(groups: Sequence[Population]) -> list[list[int]]:
    """Return the indices of classes with identical settings, except for the number of sources."""
    found: list[tuple[Population, list[int]]] = []
    for index, group in enumerate(groups):
        settings = replace(
            group, name="", count=0, traffic=group.traffic.model_copy(update={"declared": None})
        )
        for other, members in found:
            if other == settings:
                members.append(index)
                break
        else:
            found.append((settings, [index]))
    return [members for _, members in found if len(members) > 1]


def _distance_from(mean: float, estimate: Estimate) -> float:
    """Return the distance of an estimate from a value, in half-widths on the side of the value."""
    if estimate.low is None or estimate.high is None:
        return 0.0
    distance = abs(estimate.value - mean)
    if distance <= EQUAL_SHARE * abs(mean):
        return 0.0
    end = estimate.low if mean < estimate.value else estimate.high
    half_width = abs(end - estimate.value)
    return distance / half_width if half_width else math.inf


def _include(mean: float, estimate: Estimate) -> Estimate:
    """Return an estimate with an interval that contains ``mean``."""
    assert estimate.low is not None
    assert estimate.high is not None
    low, high = min(estimate.low, mean), max(estimate.high, mean)
    half_width = max(estimate.value - low, high - estimate.value)
    return replace(estimate, low=low, high=high, half_width=half_width)
