"""Checks that an argument lies in a model's domain; the message names it and what it may be."""

from __future__ import annotations

import math

from tcpcast.errors import DomainError


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
