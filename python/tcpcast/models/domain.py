"""Checks that an argument lies in a model's domain; the message names it and what it may be."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tcpcast.errors import DomainError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def require_positive(name: str, value: float) -> None:
    """Raise DomainError unless ``value`` is above 0 and finite."""
    if not (value > 0 and math.isfinite(value)):
        raise DomainError(f"{name} must be above 0 and finite, not {value!r}")


def require_not_negative(name: str, value: float) -> None:
    """Raise DomainError unless ``value`` is at least 0 and finite."""
    if not (value >= 0 and math.isfinite(value)):
        raise DomainError(f"{name} must be at least 0 and finite, not {value!r}")


def require_size(name: str, value: float) -> None:
    """Raise DomainError unless ``value`` is a file size: at least 1 packet and finite."""
    if not (value >= 1 and math.isfinite(value)):
        raise DomainError(f"{name} must be at least 1 packet and finite, not {value!r}")


def require_window(name: str, value: float) -> None:
    """Raise DomainError unless ``value`` is a window: at least 1 packet, ``inf`` included."""
    if not value >= 1:
        raise DomainError(f"{name} must be at least 1 packet, not {value!r}")


def positive(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return ``values`` as an array; raise DomainError unless all are above 0 and finite."""
    array = np.asarray(values, dtype=np.float64)
    if array.size:  # nan comes through min and max, and is refused like the rest
        require_positive(name, float(array.min()))
        require_positive(name, float(array.max()))
    return array


def loss_ratios(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return ``values`` as an array; raise DomainError unless all are above 0 and below 1."""
    array = np.asarray(values, dtype=np.float64)
    if array.size:
        least, greatest = float(array.min()), float(array.max())
        if least == 0:
            raise DomainError(
                f"{name} must be above 0: without loss no model of loss applies, the window or "
                "the link limits the rate"
            )
        require_not_negative(name, least)
        if not greatest < 1:
            raise DomainError(f"{name} is a ratio and must be below 1, not {greatest!r}")
    return array


def ratios(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return ``values`` as an array; raise DomainError unless all are at least 0 and below 1."""
    array = np.asarray(values, dtype=np.float64)
    if array.size:
        require_not_negative(name, float(array.min()))
        if not float(array.max()) < 1:
            raise DomainError(f"{name} is a ratio and must be below 1, not {float(array.max())!r}")
    return array


def windows(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return ``values`` as an array; raise DomainError unless all are windows, >= 1 packet."""
    array = np.asarray(values, dtype=np.float64)
    if array.size:
        require_window(name, float(array.min()))
    return array


def acknowledged(values: ArrayLike) -> NDArray[np.float64]:
    """Return packets per ack, b, as an array; raise DomainError unless all are at least 1."""
    array = positive("packets_per_ack", values)
    if array.size and float(array.min()) < 1:
        raise DomainError(f"packets_per_ack must be at least 1, not {float(array.min())!r}")
    return array
