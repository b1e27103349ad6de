"""Processes with known means, recorded in slots like in the packet engine.

Run as a program, this file prints the coverages of docs/background/statistics.md.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

import numpy as np
from goodput_counts import count_goodputs
from numpy.typing import NDArray
from scipy.special import ndtri
from tcpcast.engines.packet.file_goodputs import GoodputCounts
from tcpcast.statistics import Estimate, estimate_ratio, required_run_length, split_units
from tcpcast.statistics.quantiles import estimate_exceeded_value

SEED = 20_090_517
RUNS = 1000


class Process(Protocol):
    """A stationary process with a numerator, a denominator and the true ratio of their means."""

    truth: float

    def advance(self, slots: int) -> None:
        """Advance until the given number of slots is complete."""

    def snapshots(self) -> NDArray[np.float64]:
        """Return cumulative counters at the ends of the slots, after a row of zeros."""


class MM1Waiting:
    """M/M/1 at rho = 0.8, mean service 1: sum of waiting times, number of customers.

    The mean wait is rho / (1 - rho) = 4 services. A slot lasts as long as 100 customers take to
    arrive on average; the relaxation time is 1 / (1 - sqrt(rho))**2 = 90 services, 72 customers.
    Starts in the steady state: the wait is zero with probability 1 - rho, otherwise exponential
    with mean 5.
    """

    truth = 4.0
    chunk = 10_000

    def __init__(self, random: np.random.Generator, slot: float = 125.0) -> None:
        self.random, self.slot = random, slot
        self.wait = 0.0 if random.random() > 0.8 else random.exponential(5.0)
        self.now, self.waits, self.customers = 0.0, 0.0, 0
        self.rows = [np.zeros((1, 2))]
        self.whole = 0

    def advance(self, slots: int) -> None:
        while self.whole < slots:
            gaps = self.random.standard_exponential(self.chunk)
            gaps *= 1.25
            steps = self.random.standard_exponential(self.chunk)
            steps -= gaps
            # Lindley: the wait is the random walk minus its minimum so far.
            walk = np.cumsum(steps, out=steps)
            wait_times = walk - np.minimum(np.minimum.accumulate(walk), -self.wait)
            arrivals = np.cumsum(gaps, out=gaps)
            arrivals += self.now
            self._snapshot(arrivals, np.cumsum(wait_times))
            self.now, self.wait = float(arrivals[-1]), float(wait_times[-1])
            self.waits += float(wait_times.sum())
            self.customers += self.chunk

    def _snapshot(self, arrivals: NDArray[np.float64], summed: NDArray[np.float64]) -> None:
        whole = int(arrivals[-1] // self.slot)
        index = np.searchsorted(arrivals, np.arange(self.whole + 1, whole + 1) * self.slot)
        summed = np.concatenate(([0.0], summed))
        self.rows.append(np.column_stack((self.waits + summed[index], self.customers + index)))
        self.whole = whole

    def snapshots(self) -> NDArray[np.float64]:
        return np.concatenate(self.rows)


class AR1:
    """AR(1) with phi = 0.9 about a mean of 10, unit innovations; a slot is 10 observations."""

    truth = 10.0
    per_slot = 10

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random
        self.last = random.standard_normal() / math.sqrt(1.0 - 0.9**2)
        self.sums = np.zeros(1)

    def advance(self, slots: int) -> None:
        missing = slots + 1 - len(self.sums)
        if missing <= 0:
            return
        innovations = self.random.standard_normal((missing, self.per_slot))
        # Computes one slot at a time: the last value contributes 0.9**10 of itself, plus a linear
        # term of the ten innovations for the last value and for the sum.
        powers = 0.9 ** np.arange(self.per_slot, -1, -1)
        ends = innovations @ powers[1:]
        totals = innovations @ ((1.0 - 0.9 * powers[1:]) / 0.1)
        carried = 0.9 * (1.0 - powers[0]) / 0.1
        for slot in range(missing):
            totals[slot] += carried * self.last
            self.last = powers[0] * self.last + ends[slot]
        cumulative = self.sums[-1] + np.cumsum(totals + self.truth * self.per_slot)
        self.sums = np.concatenate((self.sums, cumulative))

    def snapshots(self) -> NDArray[np.float64]:
        count = np.arange(len(self.sums), dtype=np.float64) * self.per_slot
        return np.column_stack((self.sums, count))


class BurstyLoss:
    """Gilbert-Elliott loss of 1 % in bursts of 5 packets on average; a slot is 100 packets."""

    truth = 0.01
    per_slot = 100

    def __init__(self, random: np.random.Generator) -> None:
        self.random = random
        self.rows = np.zeros((1, 2))

    def advance(self, slots: int) -> None:
        missing = slots + 1 - len(self.rows)
        if missing <= 0:
            return
        packets = missing * self.per_slot
        cycles = packets // 400 + 200
        # Alternating runs without and with loss; the rest of a geometric run is also geometric.
        good = self.random.geometric(0.2 * 0.01 / 0.99, cycles)
        bad = self.random.geometric(0.2, cycles)
        if self.random.random() < self.truth:
            good[0] = 0
        ends = np.cumsum(np.column_stack((good, bad)).ravel())
        assert ends[-1] >= packets
        at = np.arange(1, missing + 1) * self.per_slot
        lost = np.interp(at, np.concatenate(([0], ends)), _lost_by(bad))
        cumulative = self.rows[-1] + np.column_stack((lost, at))
        self.rows = np.concatenate((self.rows, cumulative))

    def snapshots(self) -> NDArray[np.float64]:
        return self.rows


def _lost_by(bad: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the packets lost by the end of each run, good and bad in turn, after a zero."""
    lost = np.zeros(2 * len(bad) + 1)
    lost[2::2] = np.cumsum(bad)
    lost[3::2] = lost[2:-1:2]
    return lost


def as_the_engine(
    snapshots: NDArray[np.float64], length: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Merge slots pairwise until there are fewer than 128; the totals include the remainder."""
    merged = 1
    while length // merged >= 128:
        merged *= 2
    return snapshots[: length + 1 : merged], snapshots[length]


def estimate(process: Process, length: int, *, events: bool = False) -> Estimate:
    """Run one replication of the given number of slots and estimate the ratio."""
    process.advance(length)
    counters, totals = as_the_engine(process.snapshots(), length)
    units = split_units([counters], totals=[totals])
    result = estimate_ratio(units[:, 0], units[:, 1], events=events)
    assert result is not None
    return result


def over_replications(replications: int, length: int, run: int) -> Estimate:
    """Estimate the M/M/1 wait from replications of the given number of slots."""
    counters, totals = [], []
    for replication in range(replications):
        process = MM1Waiting(np.random.default_rng([SEED, run, replication]))
        process.chunk = 4_000
        process.advance(length)
        merged, total = as_the_engine(process.snapshots(), length)
        counters.append(merged)
        totals.append(total)
    units = split_units(counters, totals=totals)
    result = estimate_ratio(units[:, 0], units[:, 1], replications=replications)
    assert result is not None
    return result


def ratio_of_correlated_terms(run: int, pairs: int = 400) -> Estimate:
    """Estimate E[X**2] / E[X] = 2 of exponential X from 32 units of independent pairs."""
    x = np.random.default_rng([SEED, run]).standard_exponential((32, pairs))
    result = estimate_ratio((x * x).sum(axis=1), x.sum(axis=1))
    assert result is not None
    return result


def covers(result: Estimate, truth: float) -> bool:
    assert result.low is not None
    assert result.high is not None
    return result.low <= truth <= result.high


def to_precision(process: Process, target: float, first: int = 64) -> tuple[Estimate, int]:
    """Run one replication until the relative half-width is reached."""
    length = first
    while True:
        result = estimate(process, length)
        longer = required_run_length(length, {"mean": result}, {"mean": target})
        if longer is None:
            return result, length
        length = math.ceil(longer)


@dataclass(frozen=True)
class Coverage:
    """Share of runs whose interval contains the truth, and statistics of the runs."""

    share: float
    length: float
    relative_half_width: float
    correlated: float


def measure(
    make: Callable[[np.random.Generator], Process],
    *,
    length: int | None = None,
    target: float | None = None,
    runs: int = RUNS,
) -> Coverage:
    """Measure coverage over independent runs, of a length in slots or to a precision."""
    covered, lengths, widths, flagged = 0, [], [], 0
    for run in range(runs):
        process = make(np.random.default_rng([SEED, run]))
        if target is not None:
            result, slots = to_precision(process, target)
        else:
            assert length is not None
            result, slots = estimate(process, length), length
        covered += covers(result, process.truth)
        lengths.append(slots)
        widths.append(result.half_width / process.truth)
        flagged += result.is_correlated
    return Coverage(covered / runs, float(np.mean(lengths)), float(np.mean(widths)), flagged / runs)


SHARES = (0.95, 0.9, 0.8, 0.5)


def coverage_of_files(
    shares: Sequence[float], *, correlated_files: bool, runs: int = RUNS
) -> dict[float, float]:
    """Measure the coverage of goodput quantiles of lognormal files, sigma 0.8.

    The files are independent, about 60 in each of 32 units, or correlated: ten per slot in 765
    slots, with a logarithm that is AR(1) with 0.9.
    """
    truths = {share: 1e6 * math.exp(0.8 * ndtri(1.0 - share)) for share in shares}
    covered = dict.fromkeys(shares, 0)
    for run in range(runs):
        random = np.random.default_rng([SEED, run, int(correlated_files)])
        counts = _files_in_slots(random) if correlated_files else _files_in_units(random)
        for share, truth in truths.items():
            result = estimate_exceeded_value(counts.counts, counts.edges, share)
            assert result is not None
            covered[share] += covers(result, truth)
    return {share: count / runs for share, count in covered.items()}


def _files_in_units(random: np.random.Generator) -> GoodputCounts:
    files = (np.exp(0.8 * random.standard_normal(random.poisson(60))) for _ in range(32))
    return count_goodputs([1e6 * goodputs for goodputs in files])


def _files_in_slots(random: np.random.Generator) -> GoodputCounts:
    steps = random.standard_normal(7650) * math.sqrt(1.0 - 0.9**2)
    steps[0] = random.standard_normal()
    series = np.fromiter(accumulate(steps.tolist(), lambda last, step: 0.9 * last + step), float)
    goodputs = 1e6 * np.exp(0.8 * series)
    slots = count_goodputs(list(goodputs.reshape(765, 10)))
    snapshots = np.vstack((np.zeros_like(slots.counts[:1]), np.cumsum(slots.counts, axis=0)))
    counters, totals = as_the_engine(snapshots, 765)
    return GoodputCounts(slots.first, split_units([counters], totals=[totals]))


def main() -> None:
    processes: dict[str, Callable[[np.random.Generator], Process]] = {
        "M/M/1 waiting, 0.8 (100 customers)": MM1Waiting,
        "AR(1), 0.9 (10 observations)": AR1,
        "bursty loss, 1 % (100 packets)": BurstyLoss,
    }
    print(f"{RUNS} runs each, seed {SEED}")
    print("process (one slot)                   asked      covered  slots  half-width  warned   s")
    for name, make in processes.items():
        targets_asked: list[tuple[str, int | None, float | None]] = [
            (f"{slots} slots", slots, None) for slots in (64, 128, 255, 510, 765, 1530)
        ]
        targets = (0.05, 0.02, 0.01) if make is AR1 else (0.2, 0.1, 0.05)
        targets_asked += [(f"within {t:.0%}", None, t) for t in targets]
        for label, length, target in targets_asked:
            began = time.perf_counter()
            result = measure(make, length=length, target=target)
            print(
                f"{name:36s} {label:10s} {result.share:7.3f} {result.length:7.0f}"
                f" {result.relative_half_width:10.1%} {result.correlated:8.1%}"
                f" {time.perf_counter() - began:5.1f}",
                flush=True,
            )
    for replications in (4, 20, 40):
        found_all = [over_replications(replications, 1200 // replications, r) for r in range(RUNS)]
        share = sum(covers(result, MM1Waiting.truth) for result in found_all) / RUNS
        print(f"M/M/1, {replications} replications, 1,200 slots in all: covered {share:.3f}")
    for correlated_files in (False, True):
        kind = "each like those before" if correlated_files else "independent"
        found_of = coverage_of_files(SHARES, correlated_files=correlated_files)
        shares = ", ".join(f"{share:.0%}: {covered:.3f}" for share, covered in found_of.items())
        print(f"what shares of lognormal goodputs exceed, {kind}: {shares}", flush=True)
    share = sum(covers(ratio_of_correlated_terms(run), 2.0) for run in range(RUNS)) / RUNS
    print(f"E[X**2] / E[X], X exponential, 32 units of 400: covered {share:.3f}")


if __name__ == "__main__":
    main()
