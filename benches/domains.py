"""Errors of formulas against packet simulation over a grid of paths, inside and outside
their domains (``DOMAINS`` of ``tcpcast.models.domain``).
``python -m benches.domains [--loss P ...] [--kind KIND] [--packets N] [--every]`` takes an hour, or
some minutes with ``--packets 50000``. Losses are independent per packet, the stack is rfc-newreno.
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tcpcast
from tcpcast.models.domain import DOMAINS
from tcpcast.scenario import Scenario

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LOSSES = (0.001, 0.003, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6)
ROUND_TRIPS = ("20ms", "50ms", "100ms", "300ms")
WINDOWS: tuple[int | str, ...] = ("unlimited", 12)
FLOWS = (1, 10)
SIZES = (2, 10, 20, 50, 100, 200, 1000)
INITIAL_WINDOWS = (2, 10)
ACKNOWLEDGED = (1, 2)

RATES = ("mathis", "td-only", "pftk-approx", "pftk", "parallel", "parallel-cumulative")
TIMES = ("cardwell", "short")

PACKETS = 500_000
"""Number of packets of each path at PFTK's rate; with 0.1 % loss, 500 losses."""

MOST_TRANSFERS = 4000


@dataclass(frozen=True, slots=True)
class Bulk:
    """A path with endless flows."""

    loss: float
    rtt: str
    window: int | str
    flows: int
    b: int

    formulas = RATES
    metric = "send_rate_pps"

    def scenario(self, packets: int) -> Scenario:
        """Build the path, with a run of this number of packets at PFTK's rate."""
        tcp = {"receiver_window": self.window, "initial_ssthresh": 16}
        traffic = {"kind": "bulk", "flows": self.flows}
        scenario = _path(self, tcp, traffic, {"duration": "100s", "warmup": "0s"})
        (answer,) = tcpcast.run(scenario, ["pftk"])
        seconds = packets / answer["send_rate_pps"]
        warmup = 0.1 * seconds + 20 * scenario.rtt_s
        return scenario.with_changes(
            {"run.duration": f"{seconds + warmup:.0f}s", "run.warmup": f"{warmup:.0f}s"}
        )


@dataclass(frozen=True, slots=True)
class Transfer:
    """A path with transfers of one size, one at a time."""

    loss: float
    rtt: str
    size: int
    window: int
    b: int

    formulas = TIMES
    metric = "completion_time_s"

    def scenario(self, packets: int) -> Scenario:
        """Build the path, with at most this number of packets."""
        count = min(MOST_TRANSFERS, packets // self.size)
        traffic = {"kind": "transfers", "size": f"{self.size}pkt", "count": count}
        return _path(self, {"initial_window": self.window}, traffic, {"seed": 1})


def _path(
    of: Bulk | Transfer, tcp: dict[str, Any], traffic: dict[str, Any], run: dict[str, Any]
) -> Scenario:
    bottleneck = {"rate": "unlimited", "loss": f"{100 * of.loss:g}%"}
    return Scenario.from_dict(
        {
            "name": "path",
            "network": {"rtt": of.rtt, "packet": "1500B", "bottleneck": bottleneck},
            "tcp": {"stack": "rfc-newreno", **tcp, "delayed_acks": of.b == 2},
            "traffic": traffic,
            "run": run,
        }
    )


@dataclass(frozen=True, slots=True)
class FormulaError:
    """Relative error of a formula for a path."""

    formula: str
    path: Bulk | Transfer
    error: float
    trusted: bool

    def __str__(self) -> str:
        """Return a line of the output."""
        dagger = " " if self.trusted else "†"
        return f"{self.formula:20} {100 * self.error:+8.1f} %{dagger} {self.path}"


def errors(path: Bulk | Transfer, packets: int = PACKETS) -> Iterator[FormulaError]:
    """Yield the error of each formula that applies to a path."""
    *given, simulated = tcpcast.run(path.scenario(packets), [*path.formulas, "packet"])
    for answer in given:
        value = answer.metrics.get(path.metric)
        if value is not None:
            apart = value.value / simulated[path.metric] - 1
            yield FormulaError(answer.engine, path, apart, value.trusted)


def bulk_paths(losses: Sequence[float]) -> Iterator[Bulk | Transfer]:
    """Yield the grid of endless flows."""
    for path in itertools.product(losses, ROUND_TRIPS, WINDOWS, FLOWS, ACKNOWLEDGED):
        yield Bulk(*path)


def transfer_paths(losses: Sequence[float]) -> Iterator[Bulk | Transfer]:
    """Yield the grid of transfers."""
    for path in itertools.product(losses, ROUND_TRIPS, SIZES, INITIAL_WINDOWS, ACKNOWLEDGED):
        yield Transfer(*path)


PATHS = {"bulk": bulk_paths, "transfers": transfer_paths}


def summary(result: list[FormulaError]) -> Iterator[str]:
    """Yield one row per formula: the largest error inside its domain, and errors outside."""
    yield "formula               paths  error    farthest"
    for name in dict.fromkeys(each.formula for each in result):
        inside = [each for each in result if each.formula == name and each.trusted]
        outside = [each for each in result if each.formula == name and not each.trusted]
        stated = DOMAINS[name].error or 0.0
        beyond = sum(abs(each.error) > stated for each in outside)
        worst = max(inside, key=lambda each: abs(each.error), default=None)
        farthest = "none" if worst is None else f"{100 * worst.error:+.1f} % at {worst.path}"
        yield f"{name:20} {len(inside):6} {100 * stated:5g} %   {farthest}"
        yield f"{'':20} {len(outside):6} outside, {beyond} of them beyond"


def main() -> None:
    """Print the errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loss", type=float, action="append")
    parser.add_argument("--kind", choices=PATHS, action="append", help="both by default")
    parser.add_argument("--packets", type=int, default=PACKETS)
    parser.add_argument("--every", action="store_true", help="print every path as well")
    options = parser.parse_args()
    result = []
    for kind in options.kind or PATHS:
        for path in PATHS[kind](options.loss or LOSSES):
            for each in errors(path, options.packets):
                result.append(each)
                if options.every:
                    print(each, flush=True)
    print("\n".join(summary(result)))


if __name__ == "__main__":
    main()
