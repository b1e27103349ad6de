"""Effect of the rules of ``max-plus-reno`` in overload, compared with an independent simulation.

``python -m benches.instant_loss [--seed SEED] [--replications COUNT]`` takes some minutes. The
network is described in section 7 of INRIA report 4154 (Baccelli, Hong and Liu); 600 s, with 120 s
of warm-up.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import tcpcast
from tcpcast_papers.fixed_point.settings import Length, LocalLoop

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcpcast.answer import Metric
    from tcpcast.scenario import Scenario

SOURCES = (7500, 10_000)
LENGTH_S, WARMUP_S = 480.0, 120.0

APART: dict[tuple[str, int], tuple[str, str, str]] = {
    ("B, longest queue", 7500): ("4.63", ".154", "1.29"),
    ("B, longest queue", 10_000): ("11.5", ".70", "1.28"),
    ("B, arriving packet", 7500): ("", ".027", ""),
    ("C, longest queue", 10_000): ("25.85", "0", ""),
}
"""Loss and timeouts in percent and RTT in seconds of the independent simulation."""

READINGS: dict[str, dict[str, Any]] = {
    "B, longest queue": {},
    "B, arriving packet": {"drop": "arriving"},
    "C, longest queue": {"rule": "C"},
    "C, arriving packet": {"rule": "C", "drop": "arriving"},
    "B, longest queue, ties: the latest": {"ties": "latest"},
    "B, longest queue, each loss halves": {"halve_once": False},
    "B, longest queue, both": {"ties": "latest", "halve_once": False},
    "B, longest queue, halves with fractions": {"whole_halves": False},
    "B, longest queue, growth with every ack": {"growth": "every-ack"},
    "B, longest queue, retransmission after a timeout": {"retransmit": True},
}
"""Readings of the rules: keys of :class:`LocalLoop` or of ``tcp.rules.max_plus``."""


def reading(sources: int, keys: Mapping[str, Any], length: Length, seed: int) -> Scenario:
    """Build the local loop with this number of sources and one reading of the rules."""
    title = {key: keys[key] for key in ("rule", "drop", "ties") if key in keys}
    # The independent simulation retransmits nothing.
    rules = {"retransmit": False} | {k: v for k, v in keys.items() if k not in title}
    loop = LocalLoop(sources, **title).scenario(length, {})
    changes = {f"tcp.rules.max_plus.{key}": value for key, value in rules.items()}
    return loop.with_changes({"run.seed": seed, **changes})


def _written(metric: Metric, scale: float, digits: int) -> str:
    low, high = (metric.low, metric.high) if metric.low is not None else (None, None)
    value = f"{scale * metric.value:.{digits}f}"
    if low is None or high is None:
        return value
    return f"{value} [{scale * low:.{digits}f}, {scale * high:.{digits}f}]"


def row(name: str, sources: int, length: Length, seed: int) -> str:
    """Return the row of a reading, each value followed by that of the independent simulation."""
    (answer,) = tcpcast.run(reading(sources, READINGS[name], length, seed), ["packet"])
    columns = (("loss_ratio", 100.0, 2), ("timeout_ratio", 100.0, 3), ("rtt_mean_s", 1.0, 3))
    cells = [name, f"{sources:,}"]
    for (metric, scale, digits), difference in zip(
        columns, APART.get((name, sources), ("", "", "")), strict=True
    ):
        cells += [_written(answer.metrics[metric], scale, digits), difference]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replications", type=int, default=4)
    options = parser.parse_args()
    length = Length(LENGTH_S, WARMUP_S, options.replications)
    print("| reading | sources | loss, % | other | timeouts, % | other | RTT, s | other |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in READINGS:
        for sources in SOURCES:
            print(row(name, sources, length, options.seed), flush=True)


if __name__ == "__main__":
    main()
