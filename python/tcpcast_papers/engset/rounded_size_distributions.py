"""Exact file-size distributions: shares and mean sizes per interval after rounding.

A size is drawn from a continuous distribution and rounded to the nearest packet (section 3.2), so
a file has at least n packets if the variable exceeds n - 1/2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import zeta
from tcpcast.process.errors import DomainError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from tcpcast_papers.engset.settings import Setting


@dataclass(frozen=True, slots=True)
class SizeDistribution:
    """E, EP or EE of section 3.2: an exponential body from ``minimum`` to k and a tail beyond k.

    Attributes
    ----------
    minimum
        f, in packets.
    theta
        Mean of the body minus f, without the cut at k.
    k
        Start of the tail, ``inf`` for E.
    tail
        q, the share of files beyond k; 0 for E.
    alpha
        Exponent of a Pareto tail, or None.
    theta_tail
        Mean of an exponential tail minus k, or None.
    """

    minimum: float
    theta: float
    k: float = math.inf
    tail: float = 0.0
    alpha: float | None = None
    theta_tail: float | None = None

    @classmethod
    def from_setting(cls, setting: Setting) -> SizeDistribution:
        """Return the distribution of a setting, with the parameters that the simulator draws from.

        Raises
        ------
        DomainError
            The setting has files of one size.
        """
        numbers = setting.size_distribution().parameters()
        if numbers["distribution"] == "exponential":
            return cls(numbers["minimum"], numbers["scale"])
        if numbers["distribution"] == "ep":
            body = (numbers["minimum"], numbers["theta"], numbers["k"], numbers["tail"])
            return cls(*body, alpha=numbers["alpha"])
        if numbers["distribution"] == "ee":
            body = (numbers["minimum"], numbers["theta1"], numbers["k"], numbers["tail"])
            return cls(*body, theta_tail=numbers["theta2"])
        raise DomainError(f"{setting.name}: '{numbers['distribution']}' is not E, EP or EE")

    def exceedance(self, size_pkts: ArrayLike) -> NDArray[np.float64]:
        """Return P(X > x) of the continuous variable; x in packets, any shape."""
        x = np.asarray(size_pkts, dtype=np.float64)
        body = np.exp(-np.maximum(x - self.minimum, 0) / self.theta)
        if self.tail == 0:
            return np.asarray(body)
        beyond = np.maximum(x, self.k)
        if self.alpha is not None:
            tail = self.tail * (self.k / beyond) ** self.alpha
        else:
            assert self.theta_tail is not None
            tail = self.tail * np.exp(-(beyond - self.k) / self.theta_tail)
        return np.where(x < self.k, body, tail)

    def share(self, low_pkts: int, high_pkts: int | None) -> float:
        """Return the share of files with ``low_pkts`` to ``high_pkts`` packets (None: no end)."""
        beyond = 0.0 if high_pkts is None else self._share_at_least(high_pkts + 1)
        return self._share_at_least(low_pkts) - beyond

    def mean(self, low_pkts: int = 1, high_pkts: int | None = None) -> float:
        """Return the mean size in packets of the files within an interval, both ends included."""
        # E[N; N >= low] = low P(N >= low) + sum over n > low of P(N >= n).
        total = low_pkts * self._share_at_least(low_pkts) + self._sum_at_least(low_pkts + 1)
        if high_pkts is not None:
            end = high_pkts + 1
            total -= end * self._share_at_least(end) + self._sum_at_least(end + 1)
        return total / self.share(low_pkts, high_pkts)

    def mean_above_k(self) -> float:
        """Return the mean of the continuous variable beyond its 10 % point."""
        if self.alpha is not None:
            return self.k * self.alpha / (self.alpha - 1)
        if self.theta_tail is not None:
            return self.k + self.theta_tail
        return self.minimum + self.theta * math.log(10) + self.theta

    def _share_at_least(self, packets: int) -> float:
        return float(self.exceedance(packets - 0.5))

    def _sum_at_least(self, packets: int) -> float:
        """Return the sum of P(N >= n) over all n >= ``packets``, in closed form for the tail."""
        start = packets if self.k == math.inf else max(packets, math.ceil(self.k + 0.5))
        body = float(self.exceedance(np.arange(packets, start) - 0.5).sum())
        if self.alpha is not None:
            scale = self.tail * self.k**self.alpha
            return body + float(scale * zeta(self.alpha, start - 0.5))
        decay = self.theta if self.theta_tail is None else self.theta_tail
        # Below the minimum every term is 1; beyond it the series is geometric.
        first = max(start, math.ceil(self.minimum + 0.5))
        flat = float(self.exceedance(np.arange(start, first) - 0.5).sum())
        return body + flat + self._share_at_least(first) / -math.expm1(-1 / decay)
