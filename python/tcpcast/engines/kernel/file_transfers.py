"""Files over the kernel's TCP: of on/off sources, and of transfers with random arrivals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast import _native
from tcpcast.emulation.traffic import TRANSFER_COLUMNS
from tcpcast.engines.packet import transfers
from tcpcast.engines.packet.configuration import size_interval_bounds
from tcpcast.engines.packet.metric_estimates import CLASS_COUNTER, SIZE_COUNTER
from tcpcast.engines.packet.reliability import reliable_percentiles
from tcpcast.engines.packet.tables import (
    file_packet_bits,
    mean_completion_times,
    size_interval_columns,
    size_interval_table,
)
from tcpcast.engines.table_columns import percentile_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tcpcast.array_types import Floats, Table
    from tcpcast.emulation.traffic import TrafficOutcome
    from tcpcast.engines.packet.metric_estimates import BatchCounters
    from tcpcast.scenario import Scenario
    from tcpcast.scenario.classes import Population


def count_senders(group: Population) -> int:
    """Return the number of senders of a class: a single one sends all arriving transfers."""
    return 1 if group.traffic.kind == "transfers" else group.count


def has_files(scenario: Scenario) -> bool:
    """Return True if files share the network."""
    kinds = {group.traffic.kind for group in scenario.populations}
    return scenario.isolated_transfers is None and bool(kinds & {"on-off", "transfers"})


class FinishedFiles:
    """The files of one replication that ended after its warm-up."""

    def __init__(self, scenario: Scenario, outcome: TrafficOutcome, begin_ns: int) -> None:
        """Select the transfers whose last ACK arrived after ``begin_ns`` by the link's clock."""
        rows = np.array(outcome.transfers, dtype=np.int64).reshape(-1, len(TRANSFER_COLUMNS))
        of = {name: rows[:, index] for index, name in enumerate(TRANSFER_COLUMNS)}
        groups = scenario.populations
        counts = [count_senders(group) for group in groups]
        payloads = [group.payload_bytes for group in groups]
        late = of["acked_ns"] > begin_ns
        self.of = {name: column[late] for name, column in of.items()}
        self.group = np.repeat(np.arange(len(groups)), counts)[self.of["flow"]]
        payload = np.array(payloads)[self.group]
        self.packets = -(-self.of["bytes"] // payload)
        self.bits = 8.0 * np.array([g.packet_bytes for g in groups])[self.group] * self.packets
        self.on_ns = np.maximum(self.of["acked_ns"] - self.of["first_ns"], 1)
        self.delivery_ns = self.of["delivered_ns"] - self.of["first_ns"]
        self.total_ns = self.of["delivered_ns"] - self.of["opened_ns"]
        self.row = np.searchsorted(np.array(size_interval_bounds(scenario)), self.packets)
        opens = np.array([group.opens_connections for group in groups])
        self.opened = opens[self.group]

    def __len__(self) -> int:
        """Return the number of files."""
        return int(self.packets.size)

    def add_to_counters(self, rows: Floats, times_ns: Floats, first: int, classes: int) -> None:
        """Store the sums over files that had ended by each time in cumulative counters.

        Parameters
        ----------
        rows
            Counters of the link, classes and size intervals, ``[times, counters]``.
        times_ns
            Times by the link's clock, ``[times]``.
        first
            Index of the first counter of the first class.
        classes
            Number of classes; the counters of size intervals follow theirs.
        """
        of_class = {
            "transfers": np.ones_like(self.packets),
            "transfer_packets": self.packets,
            "on_time_ns": self.on_ns,
            "delivery_time_ns": self.delivery_ns,
            "total_time_ns": self.total_ns,
        }
        for index in range(classes):
            for name, values in of_class.items():
                column = first + index * len(CLASS_COUNTER) + CLASS_COUNTER[name]
                rows[:, column] = self._sums_of_ended_files(values, self.group == index, times_ns)
        rates = self.packets / (self.on_ns * 1e-9) * _native.RATE_UNITS
        of_size = {
            "transfers": of_class["transfers"],
            "packets": self.packets,
            "on_time_ns": self.on_ns,
            "rate_sum": rates.astype(np.int64),
            "arrived": self.of["arrived"],
            "drops": self.of["drops"],
        }
        sizes = first + classes * len(CLASS_COUNTER)
        for index in np.unique(self.row):
            for name, values in of_size.items():
                column = sizes + int(index) * len(SIZE_COUNTER) + SIZE_COUNTER[name]
                rows[:, column] = self._sums_of_ended_files(values, self.row == index, times_ns)

    def _sums_of_ended_files(
        self, values: NDArray[Any], chosen: NDArray[np.bool_], times_ns: Floats
    ) -> Floats:
        ends = self.of["acked_ns"][chosen]
        order = np.argsort(ends, kind="stable")
        sums = np.concatenate([[0.0], np.cumsum(values[chosen][order])])
        sums_at_times: Floats = sums[np.searchsorted(ends[order], times_ns, "right")]
        return sums_at_times


def file_tables(
    scenario: Scenario, units: BatchCounters, runs: Sequence[FinishedFiles]
) -> dict[str, Table]:
    """Return the packet engine's tables of files, over all replications.

    Parameters
    ----------
    scenario
        A scenario with files.
    units
        Units with the counters of :meth:`FinishedFiles.add_to_counters`.
    runs
        The files of each replication.
    """
    if not any(map(len, runs)):
        return {}
    kinds = {group.traffic.kind for group in scenario.populations}
    bits = file_packet_bits(scenario)
    tables: dict[str, Table] = {
        "percentiles": _on_time_and_rate_percentiles(runs, "on-off" in kinds)
    }
    if "on-off" in kinds:
        return tables if bits is None else tables | {"by_size": size_interval_table(units, bits)}
    sizes, totals = size_interval_columns(scenario), _make_simulator_totals(scenario, runs)
    return tables | {
        "by_size": transfers.times_by_size_table(sizes, totals, mean_completion_times(units), {}),
        "by_losses": transfers.times_by_losses_table(sizes, totals, independent=False),
        "transfer_times": transfers.time_percentile_table(sizes, totals),
    }


def _concatenate_column(runs: Sequence[FinishedFiles], name: str) -> NDArray[Any]:
    return np.concatenate([getattr(files, name) for files in runs])


def _on_time_and_rate_percentiles(runs: Sequence[FinishedFiles], is_on_off: bool) -> Table:
    """Return percentiles; nan if fewer than 10 files exceed the percentile."""
    on_s, bits = _concatenate_column(runs, "on_ns") * 1e-9, _concatenate_column(runs, "bits")
    quantiles = np.quantile([on_s, bits / on_s], (0.5, 0.95, 0.99), axis=1).T
    return {
        "quantity": np.array(["on_time" if is_on_off else "completion_time", "connection_rate"]),
        **percentile_columns(reliable_percentiles(quantiles, np.full(2, on_s.size))),
        "unit": np.array(["s", "bit/s"]),
    }


def _make_simulator_totals(scenario: Scenario, runs: Sequence[FinishedFiles]) -> dict[str, Any]:
    """Return the simulator's totals that its tables of transfers need."""
    rows, on_ns, delivery_ns = (
        _concatenate_column(runs, n) for n in ("row", "on_ns", "delivery_ns")
    )
    total_ns, opened = _concatenate_column(runs, "total_ns"), _concatenate_column(runs, "opened")
    losses = np.concatenate([files.of["drops"] for files in runs])
    count = len(size_interval_bounds(scenario)) + 1
    of_row = [rows == index for index in range(count)]
    times = {"completion": on_ns, "delivery": delivery_ns, "total": total_ns}
    cells = sorted(set(zip(rows.tolist(), losses.tolist(), strict=True)))
    chosen = {cell: (rows == cell[0]) & (losses == cell[1]) for cell in cells}
    return {
        "transfers": [
            (
                *cell,
                int(own.sum()),
                _sum_and_sum_of_squares(on_ns[own]),
                _sum_and_sum_of_squares(delivery_ns[own]),
            )
            for cell, own in chosen.items()
        ],
        "opened": [
            (int((own & opened).sum()), _sum_and_sum_of_squares(total_ns[own & opened]))
            for own in of_row
        ],
        "completion_percentiles": [
            _time_quantiles_s(on_ns[own], (0.5, 0.95, 0.99)) for own in of_row
        ],
        "time_percentiles": [
            [
                _time_quantiles_s(
                    values[own & (opened | (name != "total"))], (0.5, 0.9, 0.95, 0.99)
                )
                for name, values in times.items()
            ]
            for own in of_row
        ],
    }


def _sum_and_sum_of_squares(times_ns: NDArray[np.int64]) -> tuple[int, int]:
    values = times_ns.tolist()
    return sum(values), sum(value * value for value in values)


def _time_quantiles_s(times_ns: NDArray[np.int64], levels: tuple[float, ...]) -> list[float]:
    if not times_ns.size:
        return [math.nan] * len(levels)
    return [float(value) * 1e-9 for value in np.quantile(times_ns, levels)]
