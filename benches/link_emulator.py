"""Packets per second of the link's processor time: small UDP packets through TAP and veth.

``python benches/link_emulator.py [PACKETS]``. The senders and receivers are Python programs,
which limit the end-to-end rate. Values are lower on loaded machines.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from emulation.ends import SINK, TRAINS, python

OFFERED = 500_000
"""Packets sent per second: more than a link forwards with one processor."""
TARGETS = {"tun": 400_000, "veth": 350_000}
"""Target: packets per second of the link's processor time."""


def measured(device: str, count: int) -> tuple[float, float, dict[str, object]]:
    """Return packets per second of processor time, the end-to-end rate, and all numbers."""
    with tempfile.TemporaryDirectory() as folder:
        numbers = Path(folder) / "numbers.json"
        sink = shlex.join(python(SINK))
        options = ["--rtt", "2ms", "--server-command", sink, "--out", str(numbers)]
        flood = python(TRAINS, count, 18, OFFERED)
        command = [sys.executable, "-m", "tcpcast", "link", *options, "--device", device]
        subprocess.run([*command, "--", *flood], check=False, stderr=subprocess.DEVNULL)
        title = json.loads(numbers.read_text())
    delivered = title["near_to_far"]["delivered"]
    return delivered / title["cpu_ns"] * 1e9, delivered / title["elapsed_ns"] * 1e9, title


def main() -> None:
    """Measure both devices and print them with their targets."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300_000
    print("device  packets/s of its CPU  target   packets/s end to end  late p99  lost by machine")
    for device, target in TARGETS.items():
        own, all_of_it, title = measured(device, count)
        forward = title["near_to_far"]
        assert isinstance(forward, dict)
        late, lost = forward["late_p99_ns"] / 1e3, title["missed"]
        print(f"{device:6}  {own:20,.0f}  {target:,}  {all_of_it:20,.0f}  {late:5.0f} us  {lost}")


if __name__ == "__main__":
    main()
