"""Error of the formula ``short`` against the engine ``packet`` for ``linux-cubic``.

``python -m benches.short_transfers [--count TRANSFERS]`` takes about a minute. Each cell is the
relative error of the mean completion time, and the half-width of the simulation's 95 % interval.
"""

from __future__ import annotations

import argparse

import tcpcast

ROWS: tuple[tuple[str, str, str, tuple[int, ...]], ...] = (
    ("100ms", "1%", "100mbit", (5, 20, 70, 200)),
    ("20ms", "1%", "100mbit", (5, 20, 70, 200)),
    ("100ms", "0.1%", "1gbit", (20, 100, 700)),
    ("200ms", "3%", "50mbit", (3, 10, 30, 60)),
    ("50ms", "5%", "100mbit", (1, 10, 30)),
    ("60ms", "0.01%", "1gbit", (1000, 7000)),
)
"""Round-trip time, loss, rate of the link, and sizes of transfers in packets."""


def row(rtt: str, loss: str, rate: str, sizes: tuple[int, ...], count: int) -> str:
    """Return a row of the table."""
    link = {"rate": rate, "buffer": "unlimited", "loss": loss}
    changes = {
        "network": {"rtt": rtt, "packet": "1500B", "bottleneck": link},
        "traffic.size": [f"{size}pkt" for size in sizes],
        "traffic.count": count,
        "tcp": {"stack": "linux-cubic"},
    }
    scenario = tcpcast.load("short-transfers").with_changes(changes)
    formula, packet = (
        each.tables["by_size"] for each in tcpcast.run(scenario, ["short", "packet"])
    )
    times = zip(
        formula["completion_time_s"],
        packet["completion_time_s"],
        packet["low"],
        packet["high"],
        strict=True,
    )
    errors = [
        f"{t / mean - 1:+.0%} ± {(high - low) / 2 / mean:.0%}" for t, mean, low, high in times
    ]
    return f"| {rtt} | {loss} | {rate} | {', '.join(map(str, sizes))} | {', '.join(errors)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000, help="transfers of each size")
    count = parser.parse_args().count
    print("| RTT | loss | link | packets | error of the formula |")
    print("| --- | --- | --- | --- | --- |")
    for each in ROWS:
        print(row(*each, count), flush=True)


if __name__ == "__main__":
    main()
