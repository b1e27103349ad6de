"""The curve of a plan: points around its answer and over the simulated range."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from tcpcast.plan.inverse_question import InverseQuestion
    from tcpcast.plan.result import Plan

CURVE_POINTS = 60
"""Approximate number of points of a curve."""

CURVE_FACTOR = 2.5
"""Factor by which the curve extends below and above the answer."""


def make_float_column(values: Iterable[float | None]) -> NDArray[np.float64]:
    """Return a column of numbers; None becomes NaN."""
    return np.array(list(values), dtype=np.float64)


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
    question: InverseQuestion,
    at: Callable[[float], float | None],
    *,
    centre: float = 0.0,
    is_whole: bool = False,
    minimum: float = 0.0,
    maximum: float = math.inf,
) -> None:
    """Add the table of a question's metric over values around the answer.

    The metric is NaN where ``at`` returns None. Without an answer, the values are around
    ``centre``, or around the simulated values.
    """
    simulated = plan.tables.get("simulated", {}).get(question.column, np.empty(0))
    if not plan.has_model:
        centre = plan.simulated or centre or float(np.median(simulated) if len(simulated) else 1)
    around = plan.value if plan.has_model else centre
    values: NDArray[Any] = values_around_answer(around, simulated, minimum=minimum, maximum=maximum)
    if is_whole:
        values = np.unique(np.maximum(np.round(values).astype(np.int64), 1))
    metrics = make_float_column(map(at, values.tolist()))
    plan.headings["curve"] = ""
    plan.tables["curve"] = {question.column: values, question.metric: metrics}
