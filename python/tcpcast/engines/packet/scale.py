"""The size at which a network is simulated: whole, or 1/k of it where a source stands for k.

Links that the sources share have 1/k of the rate and 1/k of the buffer, and every k-th packet
of the cross traffic there comes. What a source has to itself stays what it is.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """How many sources each simulated one stands for, at least 1; 1 is the network as it is."""

    each: float = 1.0

    def sources(self, count: int) -> int:
        """Return how many sources of a class are simulated, at least one of those there are."""
        return count if self.each == 1 else max(1, round(count / self.each))

    def rate(self, bps: int | None) -> int | None:
        """Return the rate of a link that sources share; None is endless."""
        return bps if bps is None or self.each == 1 else max(1, round(bps / self.each))

    def room(self, pkts: int | None, *, individual: bool) -> int | None:
        """Return the buffer of such a link; one that each flow has to itself stays as it is."""
        if pkts is None or individual or self.each == 1:
            return pkts
        return max(1, round(pkts / self.each))

    def longer_ns(self, bps: int | None) -> float:
        """Return how much longer a byte takes on such a link, in ns."""
        return 0.0 if bps is None else (self.each - 1) * 8e9 / bps


WHOLE = Scale()
"""Every source by itself."""


def shortened(forward_ns: int, return_ns: int, by: tuple[float, float]) -> tuple[int, int]:
    """Take time from the forward and the return path; what one lacks from the other."""
    there, back = forward_ns - round(by[0]), return_ns - round(by[1])
    return max(0, there + min(0, back)), max(0, back + min(0, there))
