"""Compares the headline of ``tcpcast predict`` with a long simulation on a battery of paths.

``python tests/agreement/predict_battery.py [MAX_PACKETS]`` prints one row per path whose long
simulation has at most this many packets. A headline should be within 25 % of the simulation, or
``predict`` should state that no engine is reliable.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import tcpcast
from tcpcast import path_scenario
from tcpcast.compare import compare_all
from tcpcast.verdict import run_findings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcpcast.finding import Finding
    from tcpcast.path_scenario import PathQuestion
    from tcpcast.scenario import Scenario

TOLERANCE = 0.25

# rtt, rate, loss, buffer, stack, size
PATHS = """
20ms    10mbit   0%     1bdp    linux-cubic -
20ms    10mbit   0%     0.1bdp  linux-cubic -
50ms    100mbit  0%     1bdp    linux-cubic 10MB
50ms    100mbit  0%     20pkt   linux-cubic 10MB
50ms    100mbit  0%     0.25bdp linux-cubic 100MB
100ms   100mbit  0.01%  1bdp    linux-cubic -
100ms   100mbit  0.1%   0.1bdp  linux-cubic -
100ms   100mbit  1%     1bdp    linux-cubic -
100ms   100mbit  10%    1bdp    linux-cubic -
10ms    1gbit    0.01%  1bdp    linux-cubic -
10ms    1gbit    0.01%  0.1bdp  linux-cubic -
10ms    1gbit    0.001% 0.1bdp  linux-cubic -
20ms    1gbit    0%     0.1bdp  linux-cubic -
20ms    1gbit    0%     10bdp   linux-cubic 1GB
150ms   10gbit   0%     16MB    linux-cubic 10GB
150ms   10gbit   0%     1bdp    linux-cubic 10GB
150ms   10gbit   0.001% 1bdp    linux-cubic -
300ms   40gbit   0%     1bdp    linux-cubic -
300ms   40gbit   0%     0.1bdp  linux-cubic -
1ms     40gbit   0%     1bdp    linux-cubic 1GB
1ms     10gbit   0.01%  1bdp    linux-cubic 100MB
300ms   10mbit   0.1%   1bdp    linux-cubic 1MB
300ms   10mbit   1%     10bdp   linux-cubic 10KB
30ms    50mbit   3%     1bdp    linux-cubic 1MB
30ms    50mbit   10%    1bdp    linux-cubic 100KB
30ms    50mbit   0.1%   0.5bdp  linux-cubic 100MB
20ms    10mbit   0%     1bdp    linux-reno  -
20ms    10mbit   0%     0.1bdp  linux-reno  -
50ms    100mbit  0%     0.5bdp  linux-reno  10MB
50ms    100mbit  0%     0.1bdp  linux-reno  10MB
100ms   100mbit  0.01%  1bdp    linux-reno  -
100ms   100mbit  0.01%  0.1bdp  linux-reno  -
100ms   100mbit  1%     1bdp    linux-reno  -
100ms   100mbit  5%     1bdp    linux-reno  -
100ms   100mbit  10%    1bdp    linux-reno  -
10ms    1gbit    0.001% 0.25bdp linux-reno  -
20ms    1gbit    0%     0.1bdp  linux-reno  1GB
150ms   1gbit    0.01%  1bdp    linux-reno  100MB
300ms   10gbit   0%     1bdp    linux-reno  -
1ms     1gbit    0.1%   1bdp    linux-reno  10MB
30ms    50mbit   0.3%   1bdp    linux-reno  1MB
30ms    50mbit   3%     2bdp    linux-reno  10KB
60ms    20mbit   0%     10bdp   linux-reno  100MB
20ms    10mbit   0%     1bdp    linux-bbr   -
20ms    10mbit   0%     0.1bdp  linux-bbr   -
50ms    100mbit  0%     1bdp    linux-bbr   10MB
50ms    100mbit  1%     1bdp    linux-bbr   10MB
50ms    100mbit  1%     0.1bdp  linux-bbr   -
100ms   100mbit  10%    1bdp    linux-bbr   -
20ms    1gbit    0%     0.1bdp  linux-bbr   1GB
20ms    1gbit    0.1%   1bdp    linux-bbr   -
150ms   10gbit   0%     1bdp    linux-bbr   10GB
300ms   40gbit   0.01%  1bdp    linux-bbr   -
300ms   10mbit   3%     1bdp    linux-bbr   1MB
1ms     1gbit    1%     10bdp   linux-bbr   10KB
30ms    50mbit   5%     1bdp    linux-bbr   100KB
100ms   1mbit    0%     0.5bdp  linux-cubic 100KB
100ms   1mbit    2%     5bdp    linux-reno  -
5ms     100mbit  0%     0.3bdp  linux-cubic 1MB
5ms     100mbit  0.5%   0.3bdp  linux-cubic -
100ms   1gbit    3%     1bdp    linux-cubic -
"""


def main() -> None:
    """Print the battery."""
    most = float(sys.argv[1]) if len(sys.argv) > 1 else 2e7
    wrong = unknown = count = 0
    for values in read_paths():
        found = read_headline(path_scenario.ask_path(values))
        row = f"{' '.join(values.values()):50} "
        row += f"{found.basis:15} {found.value.value:11.4g}" if found else "cannot know"
        unknown += found is None
        long = long_simulation(values, most)
        if found is not None and long is not None:
            count += 1
            truth = tcpcast.run(long, ["packet"])["packet"][found.metric]
            ratio = found.value.value / truth
            is_wrong = not abs(ratio - 1) <= TOLERANCE
            wrong += is_wrong
            row += f" {truth:11.4g} {ratio:6.2f} {'WRONG' if is_wrong else ''}"
        print(row.rstrip(), flush=True)
    print(f"{count} checked, {wrong} wrong, {unknown} unknown")


def long_simulation(values: dict[str, str], most: float) -> Scenario | None:
    """Return the scenario of a simulation with at most ``most`` packets; None if it has more."""
    scenario = path_scenario.ask_path(values, packet=True).scenario
    changes = {"run.seed": 7, "run.max_wall": "unlimited"}
    transfers = scenario.isolated_transfers
    if transfers is not None:
        count = min(transfers.count or 1, int(most / max(transfers.sizes or [1])))
        return scenario.with_changes({**changes, "traffic.count": count}) if count else None
    packets = (scenario.run.duration_s or 0) * path_scenario.estimate_send_rate_pps(scenario)
    return scenario.with_changes(changes) if packets <= most else None


def read_paths() -> Iterator[dict[str, str]]:
    """Yield the options of each path."""
    names = ("rtt", "rate", "loss", "buffer", "stack", "size")
    for line in PATHS.strip().splitlines():
        yield {n: text for n, text in zip(names, line.split(), strict=True) if text != "-"}


def read_headline(question: PathQuestion) -> Finding | None:
    """Return the value that leads the verdict of ``predict``; None if no value is trusted."""
    answers = [*tcpcast.run(question.scenario, question.engines), *question.refused]
    findings = run_findings(compare_all(answers), question.scenario)
    return findings[0] if findings and findings[0].value.trusted and findings[0].metric else None


if __name__ == "__main__":
    main()
