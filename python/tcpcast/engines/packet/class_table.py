"""Table ``by_class``: the metrics of each class, with intervals and warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast.engines.table_columns import estimate_part_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tcpcast.array_types import Table
    from tcpcast.engines.packet.metric_estimates import Estimates
    from tcpcast.scenario.classes import Population


def make_class_table(
    groups: Sequence[Population], each: Sequence[Estimates], metrics: Iterable[str]
) -> Table:
    """Return the table of metrics, with one row per class.

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
        Columns ``name``, ``sources``, and per metric the value, ``_low`` and ``_high`` (nan if
        missing), and ``_at_least`` if any class has a lower bound. With several classes, a column
        ``_interval_warning`` is added to each metric whose interval is withheld or needs a check
        for any class. It contains the reason, "" for a trusted interval.
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
            table[metric + suffix] = estimate_part_column(values, part)
        bounds = estimate_part_column(values, "at_least")
        if not np.isnan(bounds).all():
            table[f"{metric}_at_least"] = bounds
        warnings = ["" if value is None else value.interval_warning or "" for value in values]
        if len(groups) > 1 and any(warnings):  # the metrics of a single class already have them
            table[f"{metric}_interval_warning"] = np.array(warnings)
    return table
