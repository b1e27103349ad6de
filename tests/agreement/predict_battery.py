"""Compares the headline of ``tcpcast predict`` with a long simulation on a battery of paths.

``python tests/agreement/predict_battery.py [MAX_PACKETS]`` prints one row per path whose long
simulation has at most this many packets. A headline should be within 25 % of the simulation, or
``predict`` should state that no engine is reliable.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import tcpcast
from tcpcast import path_scenario
from tcpcast.engines import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcpcast.answer import Answer, Metric
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
"""


@dataclass(frozen=True, slots=True)
class Headline:
    """What a user reads first: the engine that the verdict quotes, and its value."""

    engine: str
    value: float


def main() -> None:
    """Print the battery."""
    most = float(sys.argv[1]) if len(sys.argv) > 1 else 2e7
    wrong = unknown = count = 0
    for values in read_paths():
        path = " ".join(str(text) for text in values.values())
        question = path_scenario.ask_path(values)
        headline = read_headline(question)
        long = long_simulation(values, most)
        if long is None:
            print(f"{path:55} {headline.engine:16} {headline.value:12.4g} too long to check")
            continue
        (check,) = tcpcast.run(long, ["packet"])
        truth = main_metric(check)
        count += 1
        ratio = headline.value / truth.value if truth is not None else math.nan
        note = ""
        if not headline.engine:
            unknown, note = unknown + 1, "cannot know"
        elif not abs(ratio - 1) <= TOLERANCE:
            wrong, note = wrong + 1, "WRONG"
        value = math.nan if truth is None else truth.value
        row = f"{path:55} {headline.engine:16} {headline.value:12.4g} {value:12.4g}"
        print(f"{row} {ratio:6.2f} {note}", flush=True)
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


def main_metric(answer: Answer) -> Metric | None:
    """Return the metric of the verdict."""
    names = ("completion_time_s", "goodput_bps")
    return next((answer.metrics[name] for name in names if name in answer.metrics), None)


def read_headline(question: PathQuestion) -> Headline:
    """Return the value that the verdict of ``predict`` quotes; engine "" if it quotes none."""
    answers = tcpcast.run(question.scenario, question.engines)
    first = ("packet", "pftk", "cubic-response", "short", "bbr-bound")
    for answer in sorted(answers, key=lambda a: (*first, a.engine).index(a.engine)):
        value = main_metric(answer)
        if (
            value is not None
            and value.trusted
            and REGISTRY[answer.engine].is_default_for(question.scenario)
        ):
            return Headline(answer.engine, value.value)
    return Headline("", math.nan)


if __name__ == "__main__":
    main()
