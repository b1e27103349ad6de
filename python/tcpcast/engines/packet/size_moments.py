"""Moments of file size distributions: the mean in full packets, and the unobserved tail."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tcpcast.array_types import Floats
    from tcpcast.scenario.distributions import Distribution

MAX_FILE_PKTS = 2.0**32 - 1
"""Largest file, in packets."""

_EXACT_TERMS = 4096
_INTEGRATION_STEPS = 500


@functools.lru_cache(maxsize=64)  # classes and replications share distributions
def mean_drawn_size_pkts(distribution: Distribution[Any], *, rounded_down: bool = False) -> float:
    """Return the mean of the drawn sizes: full packets, at least one.

    Parameters
    ----------
    distribution
        Distribution of sizes in packets, before rounding.
    rounded_down
        Round down; otherwise round to the nearest integer.
    """
    shift = 0.0 if rounded_down else 0.5
    # The mean is the sum of P(size >= k) over k = 1, 2, ...; the first term is 1.
    small = math.fsum(distribution.shares_above(k - shift for k in range(2, _EXACT_TERMS + 1)))
    # Approximate the sum of the remaining terms by an integral.
    times, beyond = _survival_function(distribution, _EXACT_TERMS + 0.5 - shift)
    return 1.0 + small + float(np.trapezoid(beyond, times))


@functools.lru_cache(maxsize=256)
def rare_size_share_of_square_mean(distribution: Distribution[Any], files: float) -> float:
    """Return the share of E[X^2] of sizes above x, which one of ``files`` files exceeds on average.

    Larger sizes are rarely drawn, so the variance of the drawn sizes, and every interval based on
    it, usually lacks this share.

    Parameters
    ----------
    distribution
        Distribution of sizes in packets.
    files
        Number of drawn files, at least 1.

    Returns
    -------
    float
        0 to 1; 1 for a distribution with infinite variance.
    """
    if not distribution.has_finite_variance():
        return 1.0
    if distribution.is_constant():
        return 0.0
    low, high = math.log(1e-3), math.log(MAX_FILE_PKTS)
    for _ in range(60):
        middle = (low + high) / 2
        if distribution.share_above(math.exp(middle)) > 1.0 / files:
            low = middle
        else:
            high = middle
    return _square_mean_above(distribution, math.exp(low)) / _square_mean_above(distribution, 0.0)


def _square_mean_above(distribution: Distribution[Any], minimum: float) -> float:
    """Return E[X^2; X > minimum], truncated at the largest size."""
    times, beyond = _survival_function(distribution, minimum)
    inside = float(np.trapezoid(2.0 * times * beyond, times))
    return minimum**2 * distribution.share_above(minimum) + inside


def _survival_function(distribution: Distribution[Any], minimum: float) -> tuple[Floats, Floats]:
    """Return geometrically spaced sizes t, the first one ``minimum``, and P(X > t)."""
    times = np.geomspace(max(minimum, 1e-3), MAX_FILE_PKTS, _INTEGRATION_STEPS)
    times[0] = minimum
    return times, np.array(distribution.shares_above(times.tolist()))
