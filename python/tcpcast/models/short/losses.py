"""Number of lost transmissions of a short transfer: p(k|n)."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from tcpcast.array_types import Floats
from tcpcast.models.short.window_growth import file_sizes
from tcpcast.process.errors import DomainError

LossDistribution = Literal["generalised-poisson", "negative-binomial", "as-printed"]

NEGLIGIBLE_PROBABILITY = 1e-9
"""The sum over k of the expected latency ends when p(k) is below this value."""

MAX_LOSSES = 5000
"""Largest k of the recursion; each step takes about 10 to 30 ms."""

log_gamma = np.vectorize(math.lgamma, otypes=[np.float64])
"""log Gamma(x), which numpy does not have."""

DISTRIBUTIONS = ("generalised-poisson", "negative-binomial", "as-printed")


def require_loss_probability(loss: float) -> None:
    """Raise DomainError unless ``loss`` is a probability above 0 and below 1."""
    if not 0 < loss < 1:
        raise DomainError(f"loss must be a probability above 0 and below 1, not {loss!r}")


def loss_probability(
    losses: ArrayLike,
    *,
    size_pkts: ArrayLike,
    loss: float,
    distribution: LossDistribution = "generalised-poisson",
) -> Floats:
    """Return p(k|n), the probability that sending n packets takes k lost transmissions.

    Parameters
    ----------
    losses, size_pkts
        k at least 0 and n at least 1; both are broadcast.
    loss
        p, above 0 and below 1.
    distribution
        ``generalised-poisson``: the paper's distribution with its misprint corrected,
        theta (theta + k p)^(k-1) exp(-theta - k p)/k!, theta = p n. ``negative-binomial``: the
        distribution for independent losses, C(n+k-1, k) p^k (1-p)^n. Both have mean n p/(1-p).
        ``as-printed``: the paper's, (theta + (k-1) p)^k exp(-theta - k p)/k!, sums to
        exp(-p)/(1-p).

    Returns
    -------
    ndarray
        Probability, of the broadcast shape.

    Raises
    ------
    DomainError
        An argument outside the domain above.
    """
    require_loss_probability(loss)
    k, n = np.asarray(losses, dtype=np.float64), file_sizes(size_pkts)
    if not np.all((k >= 0) & np.isfinite(k)):
        raise DomainError("losses must be at least 0 and finite")
    if distribution == "negative-binomial":
        ways = log_gamma(n + k) - log_gamma(n) - log_gamma(k + 1)
        return np.asarray(np.exp(ways + k * math.log(loss) + n * math.log1p(-loss)))
    rest = -loss * (n + k) - log_gamma(k + 1) + k * math.log(loss)
    if distribution == "as-printed":
        with np.errstate(divide="ignore", invalid="ignore"):
            power = np.where(k == 0, 0.0, k * np.log(np.maximum(n + k - 1, 0)))
        return np.asarray(np.exp(rest + power))
    if distribution != "generalised-poisson":
        raise DomainError(
            f"distribution must be one of {', '.join(DISTRIBUTIONS)}, not {distribution!r}"
        )
    return np.asarray(np.exp(rest + np.log(n) + (k - 1) * np.log(n + k)))


def first_negligible_loss_count(
    *, size_pkts: float, loss: float, distribution: LossDistribution = "generalised-poisson"
) -> int:
    """Return the first k above the mean with p(k|n) below 1e-9, where the expectation stops.

    ``size_pkts``, ``loss`` and ``distribution`` as in :func:`loss_probability`.

    Raises
    ------
    DomainError
        An argument outside the domain of :func:`loss_probability`, or more than 5000 losses to
        consider: the transfer is then not short.
    """
    require_loss_probability(loss)
    file_sizes(size_pkts)
    mean = math.ceil(size_pkts * loss / (1 - loss))
    if mean < MAX_LOSSES:
        k = np.arange(mean, MAX_LOSSES + 1)
        small = (
            loss_probability(k, size_pkts=size_pkts, loss=loss, distribution=distribution)
            < NEGLIGIBLE_PROBABILITY
        )
        if small.any():
            return int(k[np.argmax(small)])
    raise DomainError(
        f"size_pkts {size_pkts:g} at loss {loss:g} may lose more than {MAX_LOSSES} packets, which "
        "the model does not support: use a smaller size or a smaller loss"
    )
