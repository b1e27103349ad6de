"""Scale of a simulated network: full size, or 1/k if each source represents k sources.

Shared links have 1/k of the rate and 1/k of the buffer, and every k-th packet of their cross
traffic is sent. Links and hops of a single source keep their size.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NetworkScale:
    """Number of sources per simulated source, at least 1; 1 is the full network."""

    factor: float = 1.0

    def scale_source_count(self, count: int) -> int:
        """Return the number of simulated sources of a class, at least one."""
        return count if self.factor == 1 else max(1, round(count / self.factor))

    def scale_rate_bps(self, bps: int | None) -> int | None:
        """Return the scaled rate of a shared link; None is unlimited."""
        return bps if bps is None or self.factor == 1 else max(1, round(bps / self.factor))

    def scale_buffer_pkts(self, pkts: int | None, *, individual: bool) -> int | None:
        """Return the scaled buffer of a shared link; per-flow buffers keep their size."""
        if pkts is None or individual or self.factor == 1:
            return pkts
        return max(1, round(pkts / self.factor))

    def extra_byte_ns(self, bps: int | None) -> float:
        """Return the extra transmission time of a byte on a shared link, in ns."""
        return 0.0 if bps is None else (self.factor - 1) * 8e9 / bps


FULL_SCALE = NetworkScale()
"""Full size: each source is simulated."""


def subtract_delays(forward_ns: int, return_ns: int, by: tuple[float, float]) -> tuple[int, int]:
    """Subtract delays from the delays of both directions; no result is negative.

    If one direction has a shorter delay than is subtracted, the rest is subtracted from the other.
    """
    there, back = forward_ns - round(by[0]), return_ns - round(by[1])
    return max(0, there + min(0, back)), max(0, back + min(0, there))
