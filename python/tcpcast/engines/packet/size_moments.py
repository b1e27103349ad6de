"""What a distribution of file sizes says of the files of a run: their mean, and what none of them shows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcpcast.scenario.distributions import Distribution

LARGEST_PKTS = 2.0**32 - 1
"""No file has more packets."""

_SUMMED_ONE_BY_ONE = 4096
_STEPS = 500


def mean_of_whole_packets(distribution: Distribution[Any], *, rounded_down: bool = False) -> float:
    """Return the mean of the sizes that are drawn: whole packets, at least one.

    Parameters
    ----------
    distribution
        Of sizes in packets, before rounding.
    rounded_down
        Fractions of a packet are cut; otherwise sizes are rounded to the nearest.
    """
    shift = 0.0 if rounded_down else 0.5
    # The mean is the sum of P(size >= k), the first of which is 1.
    small = math.fsum(distribution.above(k - shift) for k in range(2, _SUMMED_ONE_BY_ONE + 1))
    # The rest as an integral from where the next term's step begins.
    times, beyond = _survival(distribution, _SUMMED_ONE_BY_ONE + 0.5 - shift)
    return 1.0 + small + float(np.trapezoid(beyond, times))


def unseen_share(distribution: Distribution[Any], files: float) -> float:
    """Return how much of the mean square size is in files larger than one in so many.

    So many files hardly ever have one of these sizes, so that their spread, and every interval made
    of it, lacks this share.

    Parameters
    ----------
    distribution
        Of sizes in packets.
    files
        How many are drawn, at least 1.

    Returns
    -------
    float
        0 to 1; 1 for a distribution without variance, whatever the number of files.
    """
    if not distribution.has_variance():
        return 1.0
    if distribution.is_constant():
        return 0.0
    return _square_beyond(distribution, _exceeded_once_in(distribution, files)) / _square_beyond(
        distribution, 0.0
    )


def _exceeded_once_in(distribution: Distribution[Any], files: float) -> float:
    low, high = math.log(1e-3), math.log(LARGEST_PKTS)
    for _ in range(60):
        middle = (low + high) / 2
        if distribution.above(math.exp(middle)) > 1.0 / files:
            low = middle
        else:
            high = middle
    return math.exp(low)


def _square_beyond(distribution: Distribution[Any], least: float) -> float:
    """Return E[X^2; X > least] up to the largest size."""
    times, beyond = _survival(distribution, least)
    inside = float(np.trapezoid(2.0 * times * beyond, times))
    return least**2 * distribution.above(least) + inside


def _survival(
    distribution: Distribution[Any], least: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return P(X > t) at sizes of equal ratios, the first of them ``least``."""
    times = np.geomspace(max(least, 1e-3), LARGEST_PKTS, _STEPS)
    times[0] = least
    return times, np.array([distribution.above(float(time)) for time in times])
