"""Simulations of the reproduction, and latencies by number of losses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tcpcast_papers import simulations
from tcpcast_papers.reproduction import Z95
from tcpcast_papers.short.published import LOSS
from tcpcast_papers.short.settings import SIZES
from tcpcast_papers.simulations import SEED

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from tcpcast.answer import Answer

    from tcpcast_papers.short.settings import Setting

    Floats = NDArray[np.float64]

Rules = tuple[tuple[str, str], ...]

DEFAULT_RULES: Rules = ()
"""Default TCP: a doubled RTO is kept until the next RTT sample; windows are in whole packets."""
BACKOFF_UNTIL_ACK: Rules = (("backoff_until", "ack"),)
"""A doubled RTO is kept until the next ack of new data."""
FRACTIONAL_WINDOWS: Rules = (*BACKOFF_UNTIL_ACK, ("window_unit", "bytes"))
"""Like :data:`BACKOFF_UNTIL_ACK`, with fractional windows."""

MIN_TRANSFERS = 10
"""Minimum number of transfers with the same number of losses, to report their mean."""


@dataclass(frozen=True, slots=True)
class SampleSizes:
    """Sample sizes of the simulations.

    Attributes
    ----------
    figure_transfers
        Transfers of each size of a figure.
    value_transfers
        Transfers of each size with a checked value.
    table_transfers
        Transfers of each cell of Tables 1 and 2.
    long_flow_s
        Time of a long flow in seconds.
    """

    figure_transfers: int
    value_transfers: int
    table_transfers: int
    long_flow_s: float


WHOLE = SampleSizes(
    figure_transfers=200_000,
    value_transfers=2_000_000,
    table_transfers=1_000_000,
    long_flow_s=20_000.0,
)
QUICK = SampleSizes(
    figure_transfers=10_000, value_transfers=100_000, table_transfers=100_000, long_flow_s=2_000.0
)


@dataclass(frozen=True, slots=True)
class Job:
    """Transfers to simulate; equal jobs run once."""

    setting: Setting
    sizes_pkts: tuple[int, ...]
    transfers: int
    loss: float = LOSS
    rules: Rules = DEFAULT_RULES

    @property
    def weight(self) -> float:
        """Packets of all files."""
        return float(self.transfers * sum(self.sizes_pkts))

    def run(self, progress: Callable[[float], None]) -> Answer:
        """Run the simulation."""
        scenario = self.setting.scenario(
            self.sizes_pkts,
            transfers=self.transfers,
            seed=SEED,
            loss=self.loss,
            rules=self.rules,
        )
        return simulations.simulate_scenario(scenario, progress)


@dataclass(frozen=True, slots=True)
class BulkJob:
    """A flow without end, in replications; equal jobs run once."""

    setting: Setting
    loss: float
    seconds: float
    replications: int = 4

    @property
    def weight(self) -> float:
        """Approximate number of packets, by the square-root formula."""
        rate = math.sqrt(1.5 / self.loss) / self.setting.transfer.rtt_s
        return rate * self.seconds * self.replications

    def run(self, progress: Callable[[float], None]) -> Answer:
        """Run the simulation."""
        scenario = self.setting.long_flow(
            seconds=self.seconds, replications=self.replications, seed=SEED, loss=self.loss
        )
        return simulations.simulate_scenario(scenario, progress)


@dataclass(frozen=True, slots=True)
class SharedJob:
    """Users of a shared link; equal jobs run once."""

    setting: Setting
    users: int
    transfers: int

    @property
    def weight(self) -> float:
        """Packets of all files."""
        return 11.0 * self.transfers

    def run(self, progress: Callable[[float], None]) -> Answer:
        """Run the simulation."""
        scenario = self.setting.shared_network(self.users, transfers=self.transfers, seed=SEED)
        return simulations.simulate_scenario(scenario, progress)


@dataclass(frozen=True, slots=True)
class LatencyCurves:
    """Mean latency over the sizes, seconds.

    A curve has the shape (2, sizes): means, and half-widths of their 95 % intervals.

    Attributes
    ----------
    given
        A curve for each number of lost transmissions, including retransmissions; nan if fewer
        than :data:`MIN_TRANSFERS` transfers had this number.
    given_loss
        Latency of transfers with at least one loss.
    expected
        Latency of all transfers.
    """

    given: Floats
    given_loss: Floats
    expected: Floats


def latency_curves(
    result: Answer, sizes_pkts: tuple[int, ...], *, max_losses: int = 3
) -> LatencyCurves:
    """Return the latencies in an answer's tables ``by_size`` and ``by_losses``."""
    table, means = result.tables["by_losses"], result.tables["by_size"]
    place = {size: index for index, size in enumerate(sizes_pkts)}
    index = np.array([place[size] for size in table["size_pkts"].tolist()])
    losses, count = table["losses"], table["transfers"]
    given = np.full((max_losses + 1, 2, len(sizes_pkts)), np.nan)
    shown = (losses <= max_losses) & (count >= MIN_TRANSFERS)
    given[losses[shown], :, index[shown]] = _mean_and_half_width_curve(table).T[shown]
    expected = _mean_and_half_width_curve(means)
    lossless = np.zeros(len(sizes_pkts))
    lossless[index[losses == 0]] = count[losses == 0]
    # The curve of transfers with at least one loss. Transfers without a loss all take the same
    # time, so their part can be subtracted from the mean and the variance of all transfers.
    lossless_s = given[0, 0]
    transfers = means["transfers"]
    (mean_s, half_s), lossy = expected, transfers - lossless
    fast = np.where(lossless > 0, lossless_s, 0.0)
    mean = (transfers * mean_s - lossless * fast) / lossy
    squares = transfers * ((half_s / Z95) ** 2 * transfers + mean_s**2) - lossless * fast**2
    given_loss = np.stack([mean, Z95 * np.sqrt(np.maximum(squares / lossy - mean**2, 0.0) / lossy)])
    return LatencyCurves(given, given_loss, expected)


def _mean_and_half_width_curve(table: dict[str, Floats]) -> Floats:
    return np.stack([table["completion_time_s"], (table["high"] - table["low"]) / 2])


class Runs(simulations.Runs[SampleSizes]):
    """The simulations of this paper."""

    def figure_job(self, setting: Setting, rules: Rules = DEFAULT_RULES) -> Job:
        """Return the job with all sizes of a setting."""
        return Job(setting, SIZES, self.sample_sizes.figure_transfers, rules=rules)

    def long_flow_job(self, setting: Setting, loss: float) -> BulkJob:
        """Return the job of a long flow."""
        return BulkJob(setting, loss, self.sample_sizes.long_flow_s)

    def latency_curves(self, job: Job) -> LatencyCurves:
        """Return the latencies by size and losses."""
        return latency_curves(self[job], job.sizes_pkts)

    @property
    def transfers(self) -> int:
        """Total number of transfers."""
        jobs = [job for job in self.jobs if isinstance(job, Job)]
        return sum(job.transfers * len(job.sizes_pkts) for job in jobs)
