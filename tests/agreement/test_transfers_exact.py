"""Single transfers given their losses, against all sets of lost transmissions.

The reference's sender and receiver run on a path of infinite rate, once per set of lost
transmissions; the mean is weighted by the probability of the set.
"""

import heapq
import math
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from reference_simulator import SECOND, Receiver, Sender
from tcpcast.engines import answer
from tcpcast.engines.packet.configuration import make_configuration
from tcpcast.scenario import Scenario
from tcpcast_papers.short.runs import BACKOFF_UNTIL_ACK, FRACTIONAL_WINDOWS, Rules
from tcpcast_papers.short.settings import ALL_SETTINGS, NEWRENO, Setting

LOSS = 0.1
HALF_ROUND_NS = SECOND // 20
SPURIOUS = 8
"""Limit of packets per transfer; more are never sent spuriously."""


def lone_transfer(tcp: Any, size: int, lost: frozenset[int]) -> tuple[int, int]:
    """Return the duration of a transfer in nanoseconds and the number of sent packets."""
    sender, receiver = Sender(tcp, size), Receiver(tcp)
    coming: list[tuple[int, int, str, int]] = []
    now = sent = 0

    def send(numbers: list[int]) -> None:
        nonlocal sent
        for number in numbers:
            if sent not in lost:
                heapq.heappush(coming, (now + HALF_ROUND_NS, sent, "packet", number))
            sent += 1

    def acknowledge(ack: int) -> None:
        # Among acks that arrive together, the ack of fewer packets was sent first.
        heapq.heappush(coming, (now + HALF_ROUND_NS, ack, "ack", ack))

    send(sender.start(0))
    while not sender.finished():
        first = coming[0][0] if coming else math.inf
        timers = (time for time in (sender.deadline, receiver.deadline) if time is not None)
        now = int(min(first, *timers))
        if first <= now:
            _, _, kind, number = heapq.heappop(coming)
            if kind == "ack":
                send(sender.on_ack(number, now))
            elif (ack := receiver.on_data(number, now)) is not None:
                acknowledge(ack)
        elif receiver.deadline is not None and receiver.deadline <= now:
            acknowledge(receiver.acknowledge())
        else:
            send(sender.on_timeout(now))
    return now, sent


@cache
def exact_s(setting: Setting, rules: Rules, size: int, losses: int) -> float:
    """Return the mean over all sets of ``losses`` lost transmissions."""
    (of_class,) = make_configuration(make_scenario(setting, (size,), 1, rules), 0.0)["classes"]
    tcp = of_class["tcp"]["packets"]
    total = weight = 0.0
    for lost in combinations(range(size + SPURIOUS + 2 * losses), losses):
        took, sent = lone_transfer(tcp, size, frozenset(lost))
        if losses and lost[-1] >= sent:
            continue  # one of them did not occur
        odds = (1 - LOSS) ** (sent - size)
        total, weight = total + odds * took, weight + odds
    return total / weight / SECOND


def make_scenario(
    setting: Setting, sizes: tuple[int, ...], transfers: int, rules: Rules
) -> Scenario:
    lossy = setting.scenario(sizes, transfers=transfers, seed=1, loss=LOSS, rules=rules)
    return lossy.with_changes({"network.bottleneck.rate": "100gbit"})


def compare(setting: Setting, rules: Rules, transfers: int) -> dict[tuple[int, int], np.ndarray]:
    """Return the simulated mean, half of its interval and the exact mean by size and losses."""
    sizes = (1, 2, 5, 8, 13)
    (result,) = answer(make_scenario(setting, sizes, transfers, rules), ["packet"])
    table = result.tables["by_losses"]
    rows = {}
    for size, losses, mean, high in zip(
        *(table[name].tolist() for name in ("size_pkts", "losses", "completion_time_s", "high")),
        strict=True,
    ):
        if losses <= (3 if size <= 8 else 2) and math.isfinite(high):
            expected = exact_s(setting, rules, size, losses)
            rows[size, losses] = np.array([mean, high - mean, expected])
    return rows


@pytest.mark.parametrize("setting", ALL_SETTINGS, ids=lambda setting: setting.name)
def test_times_agree_with_all_sets_of_losses(setting: Setting) -> None:
    rows = compare(setting, (), 20_000)
    assert len(rows) == 4 * 4 + 3
    for key, (mean, half, exact) in rows.items():
        # 1.7 half-widths: one value in a thousand is farther away.
        assert abs(mean - exact) < 1.7 * half + 1e-4 * exact, key


@pytest.mark.parametrize(
    "rules", [BACKOFF_UNTIL_ACK, FRACTIONAL_WINDOWS], ids=["doubling", "fractions"]
)
def test_times_with_other_rules_agree(rules: Rules) -> None:
    for key, (mean, half, exact) in compare(NEWRENO, rules, 20_000).items():
        assert abs(mean - exact) < 1.7 * half + 1e-4 * exact, key
    assert exact_s(NEWRENO, rules, 5, 3) < 0.9 * exact_s(NEWRENO, (), 5, 3)


@pytest.mark.parametrize(
    ("size", "published"),
    [
        (2, (0.100, 1.150, 2.500, 4.925)),
        (5, (0.200, 1.280, 2.252, 3.527)),
        (8, (0.300, 1.000, 1.863, 2.961)),
    ],
)
def test_enumeration_with_ack_backoff_reset_equals_paper(
    size: int, published: tuple[float, ...]
) -> None:
    for losses, expected in enumerate(published):
        # For 8 packets and two losses, the other sender differs in details.
        assert exact_s(NEWRENO, BACKOFF_UNTIL_ACK, size, losses) == pytest.approx(
            expected, rel=5e-3
        )


@pytest.mark.long
@pytest.mark.parametrize("setting", ALL_SETTINGS, ids=lambda setting: setting.name)
def test_model_error_is_below_one_percent(setting: Setting) -> None:
    rows = compare(setting, (), 3_000_000)
    for key, (mean, half, exact) in rows.items():
        assert half < 0.01 * exact, key
        assert mean == pytest.approx(exact, rel=0.01), key
