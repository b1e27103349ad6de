"""The curve of a plan: points around its answer and over the simulated range."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from tcpcast.plan.result import Plan

CURVE_POINTS = 60
"""Approximate number of points of a curve."""

CURVE_FACTOR = 2.5
"""Factor by which the curve extends below and above the answer."""


def values_around_answer(
    value: float,
    simulated: Iterable[float] = (),
    around: float = CURVE_FACTOR,
    *,
    minimum: float = 0.0,
    maximum: float = math.inf,
) -> NDArray[np.float64]:
    """Return values around an answer that cover all simulated values, in ascending order.

    Parameters
    ----------
    value
        The answer, above 0, which is one of the values.
    simulated
        Simulated values.
    around
        Factor by which the values extend below and above the answer.
    minimum, maximum
        Limits of the values.
    """
    values = list(simulated)
    low = max(min([value / around, *values]), minimum)
    high = min(max([value * around, *values]), maximum)
    return np.unique(np.append(np.geomspace(low, max(high, low), CURVE_POINTS), value))


def add_curve_table(  # noqa: PLR0913 - the curve, and its ends
    plan: Plan,
    column: str,
    metric: str,
    at: Callable[[float], float | None] | None,
    *,
    centre: float = 0.0,
    is_whole: bool = False,
    minimum: float = 0.0,
    maximum: float = math.inf,
) -> None:
    """Add the table of a metric over values around the answer; NaN if a model has no result.

    Without an answer, the values are around ``centre``, or around the simulated values.
    """
    simulated = plan.tables.get("simulated", {}).get(column, np.empty(0))
    if not plan.has_model:
        centre = plan.simulated or centre or float(np.median(simulated) if len(simulated) else 1)
    around = plan.value if plan.has_model else centre
    values: NDArray[Any] = values_around_answer(around, simulated, minimum=minimum, maximum=maximum)
    if is_whole:
        values = np.unique(np.maximum(np.round(values).astype(np.int64), 1))
    found = [None if at is None else at(value) for value in values.tolist()]
    metrics = np.array([math.nan if each is None else each for each in found])
    plan.headings["curve"] = ""
    plan.tables["curve"] = {column: values, metric: metrics}
