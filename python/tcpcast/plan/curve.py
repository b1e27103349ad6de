"""Where a plan's curve has points: around its answer, and as far as was simulated."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from tcpcast.plan.result import Table

POINTS = 60
"""Points of a curve, about."""

AROUND = 2.5
"""By this factor below and above the answer it has points."""


def between(
    value: float,
    simulated: Iterable[float] = (),
    around: float = AROUND,
    *,
    least: float = 0.0,
    most: float = math.inf,
) -> NDArray[np.float64]:
    """Return values around an answer, and around all that was simulated, in rising order.

    Parameters
    ----------
    value
        The answer, above 0, which is one of them.
    simulated
        What else they go round.
    around
        By which factor below and above the answer they begin and end.
    least, most
        The ends of what may be asked for.
    """
    values = list(simulated)
    low = max(min([value / around, *values]), least)
    high = min(max([value * around, *values]), most)
    return np.unique(np.append(np.geomspace(low, max(high, low), POINTS), value))


def whole(values: NDArray[np.float64], least: int = 1) -> NDArray[np.int64]:
    """Return the whole numbers next to values, each once, none below ``least``."""
    return np.unique(np.maximum(np.round(values).astype(np.int64), least))


def curve_of(
    column: str, values: NDArray[np.generic], metric: str, at: Callable[[float], float | None]
) -> Table:
    """Return a table of a metric over values, NaN where a model has none."""
    found = (at(value) for value in values.tolist())
    return {
        column: values,
        metric: np.array([math.nan if each is None else each for each in found]),
    }
