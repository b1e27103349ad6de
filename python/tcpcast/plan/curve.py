"""Where a plan's curve has points: around its answer, and as far as was simulated."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from tcpcast.plan.result import Plan

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


def add_curve(  # noqa: PLR0913 - the curve, and its ends
    plan: Plan,
    column: str,
    metric: str,
    at: Callable[[float], float | None] | None,
    *,
    centre: float = 0.0,
    is_whole: bool = False,
    least: float = 0.0,
    most: float = math.inf,
) -> None:
    """Add the table of a metric over values, NaN if a model has none, around the answer.

    Without an answer it is around ``centre``, or else around the simulated values.
    """
    simulated = plan.tables.get("simulated", {}).get(column, np.empty(0))
    if not plan.has_model:
        centre = plan.simulated or centre or float(np.median(simulated) if len(simulated) else 1)
    around = plan.value if plan.has_model else centre
    values: NDArray[Any] = between(around, simulated, least=least, most=most)
    if is_whole:
        values = np.unique(np.maximum(np.round(values).astype(np.int64), 1))
    found = [None if at is None else at(value) for value in values.tolist()]
    metrics = np.array([math.nan if each is None else each for each in found])
    plan.tables["curve"] = {column: values, metric: metrics}
