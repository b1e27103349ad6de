"""Scale results of the simulated sources to the population."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.metrics import METRICS
from tcpcast.scenario.cross_checks import find_stream_hop

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from tcpcast.answer import Answer, Metric
    from tcpcast.array_types import Table
    from tcpcast.scenario import Scenario


EXTENSIVE_COLUMNS = {
    *(name for name, row in METRICS.items() if row.is_extensive),
    *("packets", "drops", "queue_seen_mean_pkts"),
}
"""Columns of tables that are sums over the sources."""

SCALED_STREAM_COLUMNS = ("offered_bps", "carried_bps", "rate_mean_bps", "rate_sd_bps")
"""Columns of the table of cross traffic that are counted, and hence scaled."""

UNSCALED_TABLES = ("file_goodput", "file_goodput_by_size", "file_goodput_tail")
"""Tables whose values are the same in the population."""


def scale_results(answer: Answer, scenario: Scenario, scale_factor: float) -> None:
    """Scale the results of the simulated sources to the population.

    Tables of single sources and of states are left out.
    """
    answer.metrics = {
        name: _scale_metric(metric, scale_factor) if METRICS[name].is_extensive else metric
        for name, metric in answer.metrics.items()
        if not METRICS[name].needs_all_flows
    }
    scale_table: dict[str, Callable[[Table], Table]] = {
        "by_class": lambda table: (
            _scale_columns(table, scale_factor)
            | {"sources": np.array([group.count for group in scenario.populations])}
        ),
        "by_hop": lambda table: _scale_hops(table, scenario, scale_factor),
        "cross": lambda table: _scale_streams(table, scenario, scale_factor),
        "queue": lambda table: table | {"queue_pkts": np.round(table["queue_pkts"] * scale_factor)},
        "by_size": lambda table: _scale_columns(table, scale_factor),
        "percentiles": lambda table: _scale_queue_percentiles(table, scale_factor),
        **dict.fromkeys(UNSCALED_TABLES, lambda table: table),
    }
    answer.tables = {
        name: scale_table[name](table)
        for name, table in answer.tables.items()
        if name in scale_table
    }


def _scale_metric(metric: Metric, scale_factor: float) -> Metric:
    ends = (metric.low, metric.high)
    low, high = (None if end is None else end * scale_factor for end in ends)
    return replace(metric, value=metric.value * scale_factor, low=low, high=high)


def _scale_columns(table: Mapping[str, NDArray[Any]], scale_factor: float) -> Table:
    """Scale the columns that are sums over sources, with their intervals."""

    def is_of_all(name: str) -> bool:
        return name.removesuffix("_low").removesuffix("_high") in EXTENSIVE_COLUMNS

    return {
        name: column * scale_factor if is_of_all(name) else column for name, column in table.items()
    }


def _scale_hops(
    table: Mapping[str, NDArray[Any]], scenario: Scenario, scale_factor: float
) -> Table:
    """Scale the table of hops; means over per-source hops also count the hops without a source."""
    shared = np.array([hop.shared for hop in scenario.network.hops])
    over_all = np.where(shared, 1.0, scale_factor)
    scaled = {name: table[name] for name in table}
    for name in ("arrived", "drops"):
        scaled[name] = np.round(table[name] * scale_factor).astype(np.int64)
    scaled["utilisation"] = table["utilisation"] * over_all
    scaled["queue_mean_pkts"] = table["queue_mean_pkts"] * scale_factor
    scaled["queue_max_pkts"] = np.where(
        shared, np.round(table["queue_max_pkts"] * scale_factor), table["queue_max_pkts"]
    ).astype(np.int64)
    return scaled


def _scale_streams(
    table: Mapping[str, NDArray[Any]], scenario: Scenario, scale_factor: float
) -> Table:
    """Scale the table of cross traffic; a hop of a single source keeps its values."""
    places = (find_stream_hop(scenario.network, stream) for stream in scenario.cross)
    times = np.array([scale_factor if place is None or place.shared else 1.0 for place in places])
    return {
        name: column * times if name in SCALED_STREAM_COLUMNS else column
        for name, column in table.items()
    }


def _scale_queue_percentiles(table: Mapping[str, NDArray[Any]], scale_factor: float) -> Table:
    """Scale the row of the queue, whose unit is packets."""
    times = np.where(table["quantity"] == "queue", scale_factor, 1.0)
    return {
        name: column * times if name.startswith("p") else column for name, column in table.items()
    }
