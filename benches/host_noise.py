"""Lateness of timers and of UDP receivers on a quiet machine.

``python -m benches.host_noise``: the default of ``tcp.host_noise`` is such a mean. In contrast,
``lateness_packets`` of engine ``kernel`` (``--json``) is the lateness of the emulated link alone.
"""

from __future__ import annotations

import argparse
import os
import socket
import time

import numpy as np

INTERVAL_S = 0.001
"""Interval between timers, or packets; an idle host sleeps meanwhile."""


def main() -> None:
    """Measure and print one line per kind of lateness."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=5000, help="timers and packets")
    count = max(2, parser.parse_args().count)
    print(f"{'lateness in us':28} {'mean':>8} {'p50':>8} {'p99':>8}")
    for name, late_ns in (("timer", timers(count)), ("receiver of a packet", packets(count))):
        p50, p99 = np.percentile(late_ns, (50, 99)) * 1e-3
        print(f"{name:28} {np.mean(late_ns) * 1e-3:8.1f} {p50:8.1f} {p99:8.1f}")


def timers(count: int) -> list[int]:
    """Return the delays of the ends of sleeps, in ns."""
    late = []
    for _ in range(count):
        due = time.monotonic_ns() + round(INTERVAL_S * 1e9)
        time.sleep(INTERVAL_S)
        late.append(time.monotonic_ns() - due)
    return late


def packets(count: int) -> list[int]:
    """Return the times from sending to receiving of packets over the loopback device, in ns."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", 0))
    receiver.settimeout(10)
    child = os.fork()
    if child == 0:
        _send(receiver.getsockname(), count)
        os._exit(0)
    late = []
    for _ in range(count):
        sent = int.from_bytes(receiver.recv(8), "big")
        late.append(time.monotonic_ns() - sent)
    os.waitpid(child, 0)
    return late


def _send(address: tuple[str, int], count: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(count):
            time.sleep(INTERVAL_S)
            sender.sendto(time.monotonic_ns().to_bytes(8, "big"), address)


if __name__ == "__main__":
    main()
