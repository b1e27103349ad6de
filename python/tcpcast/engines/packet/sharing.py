"""How bulk flows share the network: the share of each class, and the time until a late one has it.

Metrics ``fair_share`` and ``convergence_time_s``, of simulations and of measurements.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tcpcast import statistics
from tcpcast.engines.packet.scenario_features import find_late_class
from tcpcast.engines.packet.time_series import slot_counters
from tcpcast.quantity.readable_units import time_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.array_types import Floats
    from tcpcast.engines.packet.counters import BatchCounters
    from tcpcast.scenario import Scenario
    from tcpcast.scenario.classes import Population
    from tcpcast.statistics import Estimate

CONVERGED_SHARE = 0.8
"""Share of an equal rate from which a flow has converged: RFC 5166, section 2.3, with a delta of
0.2."""

AVERAGED_RTTS = 100
"""Round trips over which the rate of a flow is averaged: some periods of its window."""


def estimate_fair_share(
    scenario: Scenario, units: BatchCounters, index: int | None
) -> Estimate | None:
    """Estimate the goodput of a flow of a class divided by the mean goodput of all bulk flows.

    Parameters
    ----------
    scenario, units
        The scenario, and its counters per unit. The rates of a class with a start or stop are
        those of its active time.
    index
        The class; None for the class whose flows get least.

    Returns
    -------
    Estimate or None
        None unless there are several classes of bulk flows, which all were active.
    """
    groups = scenario.populations
    bulk = [place for place, group in enumerate(groups) if group.traffic.kind == "bulk"]
    if len(bulk) < 2 or (index is not None and index not in bulk):
        return None
    rates = {place: _rate_parts(units, place, groups[place]) for place in bulk}
    if not all(np.isfinite(part).all() for part in rates.values()):
        return None
    flows = sum(groups[place].count for place in bulk)
    mean = np.sum(list(rates.values()), axis=0) / flows
    least = min(bulk, key=lambda place: float(rates[place].sum()) / groups[place].count)
    chosen = least if index is None else index
    count = groups[chosen].count
    maximum = 1.0 if index is None else flows / count
    return units.ratio(rates[chosen] / count, mean, maximum=maximum)


def _rate_parts(units: BatchCounters, index: int, group: Population) -> Floats:
    """Return the parts of each unit in the goodput of a class, ``[units]``; nan if never active."""
    payload = group.payload_bytes * units.class_counter("delivered", [index])
    bits = 8.0 * (payload - units.class_counter("lacking_bytes", [index]))
    active_s = float(units.on_seconds([group]).sum())
    parts: Floats = bits / active_s if active_s else np.full_like(bits, np.nan)
    return parts


def estimate_convergence_time(
    scenario: Scenario, replications: Sequence[Floats]
) -> Estimate | None:
    """Estimate the time from the start of the last class until its flows have an equal share.

    Parameters
    ----------
    scenario
        The scenario.
    replications
        Sums of each replication at the ends of slots, with the warm-up, ``[slots + 1, columns]``:
        time, queue integral, then ``TIME_SERIES_CELLS`` per class.

    Returns
    -------
    Estimate or None
        With one value per replication. If some did not converge, the value is nan, with a lower
        bound. None if no class starts last, or without a slot after its start.
    """
    late = find_late_class(scenario)
    if late is None or not replications:
        return None
    found = [_convergence_time_s(scenario, late, rows) for rows in replications]
    times_s = [time_s for time_s, _ in found]
    if not all(math.isfinite(time_s) for time_s in times_s):
        return None
    estimate = statistics.estimate_mean(times_s, replications=len(times_s))
    missing = sum(not converged for _, converged in found)
    if not missing or estimate is None:
        return estimate
    bound_s = math.fsum(times_s) / len(times_s)
    warning = (
        f"{missing} of {len(found)} runs did not converge, so the mean time is at least "
        f"{time_text(bound_s)}; make the run longer"
    )
    return replace(estimate.with_warning(warning, withheld=True), value=math.nan, at_least=bound_s)


def _convergence_time_s(scenario: Scenario, late: int, rows: Floats) -> tuple[float, bool]:
    """Return the time until a class converged in a run, and True; else the time without, and False.

    The time is nan if the run ended before the class started.
    """
    groups = scenario.populations
    ends_s = rows[:, 0] * 1e-9
    begins_s, ends_s = ends_s[:-1], ends_s[1:]
    after = ends_s > groups[late].start_s
    after &= ends_s <= min(groups[late].stop_s, ends_s[-1])
    if not after.any():
        return math.nan, False
    own, total, flows = np.zeros((3, int(after.sum())))
    for place, group in enumerate(groups):
        if group.traffic.kind == "bulk":
            counted = slot_counters(rows, place)
            goodput = group.payload_bytes * counted["delivered"] - counted["lacking_bytes"]
            total += goodput[after]
            flows += group.count * (begins_s[after] < group.stop_s)
            own += goodput[after] if place == late else 0.0
    missing = own / groups[late].count - CONVERGED_SHARE * total / flows
    start_s = groups[late].start_s
    begins_s, ends_s = np.maximum(begins_s[after] - start_s, 0.0), ends_s[after] - start_s
    length_s = AVERAGED_RTTS * groups[late].rtt_s
    sums = np.concatenate([[0.0], np.cumsum(missing)])
    # The first slot that ends the average which begins with each slot.
    lasts = np.searchsorted(ends_s, begins_s + length_s, side="left")
    whole = lasts < missing.size
    gains = sums[lasts[whole] + 1] - sums[:-1][whole]
    converged = np.flatnonzero(gains >= 0.0)
    if converged.size:
        return float(begins_s[converged[0]]), True
    return float(ends_s[-1]), False
