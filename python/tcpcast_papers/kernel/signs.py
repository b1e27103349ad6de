"""Sign test: whether the simulator is above or below the kernel in nearly all cells of a group.

Values may agree within wide intervals although the simulator is above the kernel in all of them. A
group consists of the values with the same quantity, kind of cells, stack, queue and buffer size
(below the bandwidth-delay product, or not).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpcast_papers.kernel.cells import DROP_TAIL, PAIRS
from tcpcast_papers.kernel.scenarios import PACKET_BITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tcpcast_papers.kernel.cells import Cell
    from tcpcast_papers.kernel.comparison import Comparison

SIGNIFICANCE = 0.05
"""Probability that any group is called one-sided by chance, shared equally among the groups."""

NEGLIGIBLE_SHARE = 0.1
"""Differences below this share of the tolerance count for neither side."""

MIN_DIFFERENCES = 5
"""Minimum number of differences for a test. With fewer, chance often puts all on one side."""


@dataclass(frozen=True, slots=True)
class SignTest:
    """Numbers of differences on both sides in a group.

    Attributes
    ----------
    group
        Kind of cells, quantity, stacks, queue and buffer.
    above, below
        Numbers of values with the simulator above the kernel, and below it.
    groups
        Total number of groups in the test.
    """

    group: tuple[str, ...]
    above: int
    below: int
    groups: int

    @property
    def differing(self) -> int:
        """Number of values on either side."""
        return self.above + self.below

    @property
    def share(self) -> float:
        """Share of the differing values with the simulator above the kernel."""
        return self.above / self.differing

    @property
    def probability(self) -> float:
        """Probability of an equally uneven split by chance: the two-sided sign test."""
        return _two_sided_probability(min(self.above, self.below), self.differing)

    @property
    def corrected_probability(self) -> float:
        """Probability that any group is equally uneven by chance: Bonferroni's bound."""
        return min(1.0, self.probability * self.groups)

    @property
    def max_deviation(self) -> float:
        """Maximum deviation of the share from a half by chance."""
        n = self.differing
        fewest = next(
            (
                few
                for few in range(n // 2 + 1)
                if _two_sided_probability(few, n) * self.groups >= SIGNIFICANCE
            ),
            n / 2,
        )
        return 0.5 - fewest / n


def _two_sided_probability(few: int, of: int) -> float:
    tail = sum(math.comb(of, index) for index in range(few + 1))
    return min(1.0, 2.0 * tail / 2.0**of)


def sign_tests(lines: Iterable[Comparison]) -> list[SignTest]:
    """Return the groups with enough differences for a test, the most one-sided first."""
    result: dict[tuple[str, ...], list[bool]] = {}
    for line in lines:
        if line.own is not None and abs(line.difference) >= NEGLIGIBLE_SHARE * line.tolerance:
            cell = line.cell
            result.setdefault(
                (cell.kind, line.quantity_group, cell.stacks, cell.queue, _buffer_class(cell)), []
            ).append(line.difference > 0)
    return sign_tests_of_groups(result)


def sign_tests_of_groups(sides: Mapping[tuple[str, ...], list[bool]]) -> list[SignTest]:
    """Return the groups with enough differences for a test, the most one-sided first.

    Parameters
    ----------
    sides
        For each difference of a group, whether the simulated value is the larger one.
    """
    tested = {group: each for group, each in sides.items() if len(each) >= MIN_DIFFERENCES}
    every = [
        SignTest(group, sum(each), len(each) - sum(each), len(tested))
        for group, each in tested.items()
    ]
    return sorted(every, key=lambda each: (each.probability, each.group))


def _buffer_class(cell: Cell) -> str:
    if cell.kind not in {DROP_TAIL, PAIRS}:
        return "any"
    bdp = cell.rate_bps * 1e-3 * min(group.rtt_ms for group in cell.groups) / PACKET_BITS
    return "below 1 BDP" if cell.waiting_pkts + 1 < bdp else "1 BDP or more"
