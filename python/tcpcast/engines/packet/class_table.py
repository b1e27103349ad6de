"""Table ``by_class``: the metrics of each class, with intervals and warnings."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tcpcast.engines.packet.metric_estimates import Estimates
    from tcpcast.scenario.classes import Population
    from tcpcast.statistics import Estimate

    Table = dict[str, NDArray[Any]]


def make_class_table(
    groups: Sequence[Population], each: Sequence[Estimates], metrics: Iterable[str]
) -> Table:
    """Return one row per class: its name, its number of senders, its metrics.

    Parameters
    ----------
    groups
        The classes.
    each
        The estimates of each class, by metric.
    metrics
        Metrics to include if any class has an estimate.

    Returns
    -------
    dict
        ``name``, ``sources`` and, per metric, its value, ``_low`` and ``_high``, nan if missing.
        With several classes also ``_interval_warning`` if any class has one: the reason why an
        interval is withheld or needs a check, "" if it can be trusted.
    """
    table: Table = {
        "name": np.array([group.name for group in groups]),
        "sources": np.array([group.count for group in groups]),
    }
    for metric in metrics:
        values = [estimates[metric] for estimates in each]
        if all(value is None for value in values):
            continue
        for suffix, part in (("", "value"), ("_low", "low"), ("_high", "high")):
            table[metric + suffix] = np.array(
                [get_estimate_part(v, part) for v in values], dtype=np.float64
            )
        bounds = np.array([get_estimate_part(v, "at_least") for v in values], dtype=np.float64)
        if not np.isnan(bounds).all():
            table[f"{metric}_at_least"] = bounds
        warnings = ["" if value is None else value.interval_warning or "" for value in values]
        if len(groups) > 1 and any(warnings):  # the metrics of a single class already have them
            table[f"{metric}_interval_warning"] = np.array(warnings)
    return table


def get_estimate_part(estimate: Estimate | None, part: str) -> float:
    """Return ``value``, ``low`` or ``high`` of an estimate, nan if it has none."""
    value = getattr(estimate, part, None)
    return math.nan if value is None else float(value)
