"""Times of single transfers over the kernel's TCP, by size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast.emulation.traffic import TRANSFER_COLUMNS
from tcpcast.engines.packet.metric_estimates import point_estimate
from tcpcast.engines.packet.reliability import reliable_percentiles
from tcpcast.engines.packet.transfers import TimeSums, estimate_mean_time
from tcpcast.engines.table_columns import estimate_part_column, percentile_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcpcast.array_types import Table
    from tcpcast.emulation.traffic import TrafficOutcome
    from tcpcast.scenario import Scenario
    from tcpcast.statistics import Estimate


TIME_EVENTS = {
    "completion_time_s": ("first_ns", "acked_ns"),
    "delivery_time_s": ("first_ns", "delivered_ns"),
    "total_time_s": ("opened_ns", "delivered_ns"),
}
"""Times of a transfer: the names of their start and end events."""


class IsolatedTransfers:
    """Times of all transfers of all replications."""

    def __init__(self, scenario: Scenario, outcomes: Sequence[TrafficOutcome]) -> None:
        """Group the transfers by size."""
        isolated = scenario.isolated_transfers
        self._sizes = [] if isolated is None else list(isolated.sizes or [])
        rows = [row for outcome in outcomes for row in outcome.transfers]
        table = np.array(rows, dtype=np.int64).reshape(-1, len(TRANSFER_COLUMNS))
        self._of = {name: table[:, index] for index, name in enumerate(TRANSFER_COLUMNS)}
        self._size = self._of["number"] % max(1, len(self._sizes))
        payload = scenario.payload_bytes
        self._pkts = [
            size.packets(payload) if hasattr(size, "packets") else int(size) for size in self._sizes
        ]

    @property
    def count(self) -> int:
        """Number of transfers."""
        return int(self._size.size)

    def _time_sums_by_drops(self, metric: str, index: int) -> list[TimeSums]:
        """Return the sums of a time over transfers of one size, per number of drops."""
        begin, end = TIME_EVENTS[metric]
        times = self._of[end] - self._of[begin]
        sums = []
        for drops in np.unique(self._of["drops"][self._size == index]):
            own = times[(self._size == index) & (self._of["drops"] == drops)].tolist()
            sums.append(TimeSums(len(own), sum(own), sum(time * time for time in own)))
        return sums

    def estimates(self) -> Mapping[str, Estimate | None]:
        """Return every metric; None if there was no transfer."""
        sizes = range(len(self._sizes))
        estimates = {
            m: estimate_mean_time([self._time_sums_by_drops(m, index) for index in sizes])
            for m in TIME_EVENTS
        }
        if not self.count:
            return estimates
        sent, drops = self._of["arrived"].sum(), self._of["drops"].sum()
        again = self._of["retransmitted"].sum()
        return estimates | {
            "loss_ratio": point_estimate(float(drops / max(sent, 1))),
            "retransmit_ratio": point_estimate(float(again / max(sent, 1))),
            "mean_size_pkts": point_estimate(
                float(np.mean([self._pkts[index] for index in self._size]))
            ),
            "transfers": point_estimate(float(self.count)),
        }

    def tables(self) -> dict[str, Table]:
        """Return the table ``by_size``, with the interval of the completion time."""
        rows = [index for index in range(len(self._sizes)) if (self._size == index).any()]
        means = {
            m: [estimate_mean_time([self._time_sums_by_drops(m, index)]) for index in rows]
            for m in TIME_EVENTS
        }
        done = means["completion_time_s"]
        if not rows:
            return {}
        return {
            "by_size": {
                "size_pkts": np.array([self._pkts[index] for index in rows]),
                "transfers": np.array([int((self._size == index).sum()) for index in rows]),
                **{metric: estimate_part_column(mean, "value") for metric, mean in means.items()},
                "low": estimate_part_column(done, "low"),
                "high": estimate_part_column(done, "high"),
                **self._completion_time_percentiles(rows),
            }
        }

    def _completion_time_percentiles(self, rows: list[int]) -> Table:
        """Return p50, p95 and p99 of the completion time; nan if fewer than 10 times are longer."""
        times = self._of["acked_ns"] - self._of["first_ns"]
        own = [times[self._size == index] for index in rows]
        percentiles = np.array([np.quantile(each, (0.5, 0.95, 0.99)) * 1e-9 for each in own])
        reliable = reliable_percentiles(percentiles, np.array([each.size for each in own]))
        return percentile_columns(reliable)
