"""Transfers in progress at the end of a run, and the bias of means over finished transfers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from tcpcast.answer.metrics import METRICS
from tcpcast.engines.packet.counters import UnfinishedTransfers
from tcpcast.quantity.readable_units import time_text

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tcpcast.engines.packet.counters import Estimates, Snapshot
    from tcpcast.scenario import Scenario
    from tcpcast.statistics import Estimate

MAX_UNFINISHED_SHARE = 0.05
"""Largest share of unfinished transfers for which a mean has no warning."""

MAX_MEAN_RATIO = 1.1
"""Maximum factor by which the lower bound of the mean over all transfers may exceed the mean over
finished transfers; above, the lower bound replaces this mean."""

MAX_YOUNG_AGE_SHARE = 0.1
"""Mean age of the unfinished transfers, as a share of the run, below which the finished transfers
represent all transfers. Transfers that began during the warm-up also count when they finish."""

UNFINISHED_LABEL = "unfinished transfers"
"""Beginning of the warning of a mean over finished transfers."""


def get_unfinished(
    scenario: Scenario, snapshot: Snapshot, classes: Sequence[int], kinds: Collection[str]
) -> UnfinishedTransfers:
    """Return the unfinished transfers of the given classes whose traffic kind is in ``kinds``."""
    chosen = [
        snapshot.unfinished[index]
        for index in classes
        if snapshot.unfinished and scenario.populations[index].traffic.kind in kinds
    ]
    return UnfinishedTransfers(
        sum(each.count for each in chosen), sum(each.age_s for each in chosen)
    )


def replace_by_lower_bounds(
    scenario: Scenario, snapshot: Snapshot, estimates: Estimates, classes: Sequence[int]
) -> Estimates:
    """Return the estimates, with lower bounds instead of means over too few finished transfers.

    A mean is replaced if more than 5 % of the transfers are unfinished, their mean age exceeds 10 %
    of the run, and either at least half of the transfers are unfinished, or the mean increases by
    more than 10 % if it includes the unfinished transfers with their ages.
    """
    if not snapshot.unfinished or scenario.isolated_transfers is not None:
        return estimates
    return estimates | {
        name: _replace_by_lower_bound(name, estimate, scenario, snapshot, classes)
        for name, estimate in estimates.items()
        if METRICS[name].file_kinds and estimate is not None
    }


def _replace_by_lower_bound(
    name: str, estimate: Estimate, scenario: Scenario, snapshot: Snapshot, classes: Sequence[int]
) -> Estimate:
    unfinished = _unfinished_count_and_bound(scenario, snapshot, classes, METRICS[name].file_kinds)
    if unfinished is None:
        return estimate
    share, at_least = unfinished
    bound_s = at_least if METRICS[name].has_lower_bound else None
    bound = time_text(at_least)
    warning = (
        f"{UNFINISHED_LABEL}: {share} transfers had not finished at the end of the run, so the "
        f"mean time of all transfers is at least {bound}; make the run longer"
    )
    replaced = replace(estimate, value=math.nan, low=None, high=None, half_width=math.inf)
    return replace(replaced, interval_warning=warning, at_least=bound_s)


def has_many_unfinished(scenario: Scenario, snapshot: Snapshot, classes: Sequence[int]) -> bool:
    """Return True if too many transfers of these classes were unfinished for their percentiles."""
    return (
        _unfinished_count_and_bound(scenario, snapshot, classes, ("on-off", "transfers"))
        is not None
    )


def _unfinished_count_and_bound(
    scenario: Scenario, snapshot: Snapshot, classes: Sequence[int], kinds: Collection[str]
) -> tuple[str, float] | None:
    """Return the number of unfinished transfers as text, and the lower bound of the mean time.

    The result is None if the unfinished transfers are too few or too young to affect the mean.
    """
    of_kind = [index for index in classes if scenario.populations[index].traffic.kind in kinds]
    progress = get_unfinished(scenario, snapshot, of_kind, kinds)
    finished = snapshot.units.total("transfers", of_kind)
    total = finished + progress.count
    if not total or progress.count <= MAX_UNFINISHED_SHARE * total:
        return None
    if progress.age_s <= MAX_YOUNG_AGE_SHARE * snapshot.units.elapsed_s * progress.count:
        return None
    finished_s = snapshot.units.total("on_time_ns", of_kind) * 1e-9
    mean_s = finished_s / finished if finished else 0.0
    at_least = (finished_s + progress.age_s) / total
    if at_least <= MAX_MEAN_RATIO * mean_s and progress.count < finished:
        return None
    return f"{progress.count:,} of {total:,.0f}", at_least
