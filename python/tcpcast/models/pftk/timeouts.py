"""Timeouts of PFTK: their probability, (22) to (25), and their duration, (28)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tcpcast.array_types import Floats
from tcpcast.models.domain import (
    require_positive,
    to_checked_arrays,
    to_loss_ratio_array,
    to_window_array,
)

LINUX_MIN_RTO_MINUS_RTT_S = 0.2
"""Minimum in seconds that Linux adds to the RTT for its RTO: T0 of a path without a timeout."""


def timeout_probability(*, window_pkts: ArrayLike, loss_indication_ratio: ArrayLike) -> Floats:
    """Return the exact Q: the probability that a loss in a window of w ends in a timeout (23).

    Parameters
    ----------
    window_pkts
        w in packets, at least 1 and finite; a mean need not be an integer. For w up to 3,
        Q is 1.
    loss_indication_ratio
        p, above 0 and below 1. Both arguments are broadcast.

    Returns
    -------
    ndarray
        Probability, of the broadcast shape.

    Raises
    ------
    DomainError
        An argument outside its domain.
    """
    w = _finite_windows(window_pkts)
    p = to_loss_ratio_array("loss_indication_ratio", loss_indication_ratio)
    return np.asarray(unchecked_timeout_probability(w, p))


def timeout_probability_approximate(*, window_pkts: ArrayLike) -> Floats:
    """Return min(1, 3/w), the approximate Q of (24), which is the limit of (23) for p -> 0.

    ``window_pkts`` and errors as in :func:`timeout_probability`.
    """
    return np.asarray(np.minimum(1.0, 3 / _finite_windows(window_pkts)))


def timeout_sequence_s(*, t0_s: ArrayLike, loss_indication_ratio: ArrayLike) -> Floats:
    """Return E[Z^TO] = T0 f(p)/(1 - p), the mean duration of a timeout sequence (28).

    The timer doubles up to 64 T0. ``t0_s``, ``loss_indication_ratio`` and errors as in
    :func:`throughput`; seconds, of the broadcast shape.
    """
    t0, p = to_checked_arrays(t0_s=t0_s, loss_indication_ratio=loss_indication_ratio)
    return np.asarray(t0 * backoff_polynomial(p) / (1 - p))


def unchecked_timeout_probability(w: Floats, p: Floats) -> Floats:
    """Return (23) in a form that is precise for small p."""
    lost = -np.expm1(w * np.log1p(-p))  # 1 - (1-p)^w
    kept = 1 - p
    exact = p * (3 - p * (3 - p)) * (kept * kept * kept + lost) / lost
    return np.asarray(np.where(w <= 3, 1.0, np.minimum(1.0, exact)))


def backoff_polynomial(p: Floats) -> Floats:
    """Return f(p) of (28)."""
    return np.asarray(1 + p * (1 + p * (2 + p * (4 + p * (8 + p * (16 + p * 32))))))


def _finite_windows(values: ArrayLike) -> Floats:
    w = to_window_array("window_pkts", values)
    if w.size:
        require_positive("window_pkts", float(w.max()))
    return w
