"""How often comparisons find a difference where only a coincidence of the line differs.

Run as a program, this file prints the numbers of docs/background/statistics.md.
"""

from collections import Counter

import numpy as np
import pytest
from tcpcast.comparison.ab_test import run_ab_test
from tcpcast.scenario import load

COMPARISONS, PAIRS = 200, 10
METRICS = ("page_time_mean_s", "page_time_p50_s", "page_time_p95_s")


def count_differences(rtt_spread: float) -> Counter[str]:
    """Return the number of comparisons of equal lines with a difference of each metric.

    Each comparison has an RTT and a rate of its own. B has an RTT that differs by 0.2 to 0.6 ms,
    which changes a page of 2 to 4 s by some milliseconds, but decides which packet meets a full
    queue.
    """
    random = np.random.default_rng(1)
    base = load("page-lte").with_changes(
        {
            "run.duration": "60s",
            "run.warmup": "5s",
            "run.rtt_spread": rtt_spread,
        }
    )
    found = Counter[str]()
    for number in range(COMPARISONS):
        rtt_ms, rate_mbit = random.uniform(50, 100), random.uniform(8, 16)
        change_ms = random.choice([-1, 1]) * random.uniform(0.2, 0.6)
        changes = {"run.seed": number + 1, "link.down.rate": f"{rate_mbit:.3f}mbit"}
        first, second = (
            base.with_changes({**changes, "class.web.rtt": f"{each:.3f}ms"})
            for each in (rtt_ms, rtt_ms + change_ms)
        )
        test = run_ab_test((first, second), replications=PAIRS)
        found.update(
            each.name for each in test.metrics if each.name in METRICS and each.is_significant
        )
    return found


@pytest.mark.long
def test_coincidences_of_a_line_are_no_difference() -> None:
    found = count_differences(0.1)
    # 10 are expected; 18 or more of 200 have a probability of 1 %.
    assert all(1 <= found[name] < 18 for name in METRICS), found


if __name__ == "__main__":
    for spread in (0.0, 0.1):
        print(f"rtt_spread {spread:.0%}: {dict(count_differences(spread))} of {COMPARISONS}")
