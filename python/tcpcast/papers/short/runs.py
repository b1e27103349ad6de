"""The simulations of the reproduction, and what they measure given the losses of a transfer."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tcpcast.engines import RunOptions, answer
from tcpcast.papers.short.published import LOSS

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tcpcast.answer import Answer
    from tcpcast.papers.short.settings import Setting

    Floats = NDArray[np.float64]

SEED = 1

Rules = tuple[tuple[str, str], ...]

DEFAULT: Rules = ()
"""TCP as it is by default: a doubled timeout lasts until a round-trip sample, whole packets."""
BACKOFF: Rules = (("backoff_until", "ack"),)
"""A doubled timeout lasts until the next ack of new data."""
FRACTIONS: Rules = (*BACKOFF, ("window_unit", "bytes"))
"""The same, and windows keep fractions of packets."""

Z95 = 1.959963984540054
"""Half of a normal 95 % interval, in standard deviations."""

FEWEST = 10
"""Transfers with so many losses whose mean is told."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much to simulate.

    Attributes
    ----------
    drawn
        Transfers of each size of a figure.
    valued
        Of each size whose value is checked.
    counted
        Of each cell of Tables 1 and 2.
    """

    drawn: int
    valued: int
    counted: int


WHOLE = Effort(drawn=200_000, valued=2_000_000, counted=1_000_000)
QUICK = Effort(drawn=10_000, valued=100_000, counted=100_000)


@dataclass(frozen=True, slots=True)
class Job:
    """Transfers to simulate; equal ones are the same."""

    setting: Setting
    sizes_pkts: tuple[int, ...]
    transfers: int
    loss: float = LOSS
    rules: Rules = DEFAULT

    @property
    def weight(self) -> float:
        """Packets of all files."""
        return float(self.transfers * sum(self.sizes_pkts))


@dataclass(frozen=True, slots=True)
class Latency:
    """Mean times by size and by lost transmissions, retransmissions included.

    Attributes
    ----------
    mean_s, half_s
        Shape (most losses + 1, sizes): the mean given exactly so many losses, and half of its 95 %
        interval; nan where fewer than :data:`FEWEST` transfers had them.
    given_loss_s, given_loss_half_s
        Shape (sizes,): of all that lost something.
    expected_s, expected_half_s
        Shape (sizes,): of all.
    """

    mean_s: Floats
    half_s: Floats
    given_loss_s: Floats
    given_loss_half_s: Floats
    expected_s: Floats
    expected_half_s: Floats


def latency(found: Answer, sizes_pkts: tuple[int, ...], *, most_losses: int = 3) -> Latency:
    """Read the times of an answer's tables ``by_size`` and ``by_losses``."""
    table, means = found.tables["by_losses"], found.tables["by_size"]
    place = {size: at for at, size in enumerate(sizes_pkts)}
    at = np.array([place[size] for size in table["size_pkts"].tolist()])
    losses, count = table["losses"], table["transfers"]
    half = (table["high"] - table["low"]) / 2
    shape = (most_losses + 1, len(sizes_pkts))
    mean_s, half_s = np.full(shape, np.nan), np.full(shape, np.nan)
    told = (losses <= most_losses) & (count >= FEWEST)
    mean_s[losses[told], at[told]] = table["completion_time_s"][told]
    half_s[losses[told], at[told]] = half[told]
    expected, expected_half = means["completion_time_s"], (means["high"] - means["low"]) / 2
    lossless = np.zeros(shape[1])
    lossless[at[losses == 0]] = count[losses == 0]
    given, spread = _given_loss(mean_s[0], lossless, expected, expected_half, means["transfers"])
    return Latency(mean_s, half_s, given, spread, expected, expected_half)


def _given_loss(
    lossless_s: Floats, lossless: Floats, mean_s: Floats, half_s: Floats, transfers: Floats
) -> tuple[Floats, Floats]:
    """Return the mean time of transfers with a loss and half of its interval.

    Transfers without a loss all take the same time, so that the rest of the mean and of the
    variance are of those with one.
    """
    lossy = transfers - lossless
    fast = np.where(lossless > 0, lossless_s, 0.0)
    mean = (transfers * mean_s - lossless * fast) / lossy
    squares = transfers * ((half_s / Z95) ** 2 * transfers + mean_s**2) - lossless * fast**2
    return mean, Z95 * np.sqrt(np.maximum(squares / lossy - mean**2, 0.0) / lossy)


@dataclass(slots=True)
class Runs:
    """Simulations by what was asked: :meth:`want` them all, :meth:`simulate`, then look them up.

    Parameters
    ----------
    effort
        How much is simulated.
    threads
        How many run at once (None: one a core).
    progress
        Called with the share of all packets simulated, 0 to 1.
    """

    effort: Effort
    threads: int | None = None
    progress: Callable[[float], None] | None = None
    _wanted: dict[Job, None] = field(default_factory=dict)
    _done: dict[Job, Answer] = field(default_factory=dict)
    _shares: dict[Job, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def want(self, job: Job) -> Job:
        """Ask for a simulation, and return what to look it up by."""
        self._wanted[job] = None
        return job

    def simulate(self) -> None:
        """Run what was asked for and is not yet there.

        Raises
        ------
        KeyboardInterrupt
            The reader gave up; simulations under way end first.
        """
        # The longest first, so that no thread is left with one at the end.
        todo = sorted(self._wanted.keys() - self._done.keys(), key=_order)
        with ThreadPoolExecutor(self.threads or os.cpu_count() or 1) as pool:
            pending = {pool.submit(self._run, job): job for job in todo}
            try:
                for future in as_completed(pending):
                    self._done[pending[future]] = future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def __getitem__(self, job: Job) -> Answer:
        """Return the simulator's answer."""
        return self._done[job]

    def latency(self, job: Job) -> Latency:
        """Return the times by size and losses."""
        return latency(self[job], job.sizes_pkts)

    def __len__(self) -> int:
        """Return the number of simulations asked for."""
        return len(self._wanted)

    @property
    def transfers(self) -> int:
        """How many transfers all of them have."""
        return sum(job.transfers * len(job.sizes_pkts) for job in self._wanted)

    def _run(self, job: Job) -> Answer:
        scenario = job.setting.scenario(
            job.sizes_pkts, transfers=job.transfers, seed=SEED, loss=job.loss, rules=job.rules
        )
        options = RunOptions(threads=1, progress=lambda share: self._report(job, share))
        (given,) = answer(scenario, ["packet"], options)
        if given.interrupted:
            raise KeyboardInterrupt
        self._report(job, 1.0)
        return given

    def _report(self, job: Job, share: float) -> None:
        if self.progress is None:
            return
        with self._lock:
            self._shares[job] = share
            done = sum(each.weight * part for each, part in self._shares.items())
            self.progress(min(1.0, done / sum(each.weight for each in self._wanted)))


def _order(job: Job) -> tuple[float, str]:
    return -job.weight, repr(job)
