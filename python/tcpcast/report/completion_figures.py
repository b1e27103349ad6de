"""What a figure of completion times against sizes shows: percentiles and means, gaps left open."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.compare import completion_times
from tcpcast.report.losses import by_size_and_losses

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from tcpcast.answer import Answer

    Floats = NDArray[np.float64]

PERCENTILES = ("p50", "p95", "p99")
MOST_LOSSES = 3
FEWEST = 10
"""A mean over fewer transfers would be all chance: it is left out."""

WIDE = 50.0
"""From this ratio of the longest to the shortest time on, the axis of times is logarithmic."""


def sizes(answers: Sequence[Answer], asked: Iterable[int]) -> NDArray[np.int64]:
    """Return all sizes asked or told of in rising order: where a curve has none, it has a gap."""
    told = {int(s) for answer in answers for s in answer.tables["by_size"]["size_pkts"]}
    return np.array(sorted(told | set(asked)), dtype=np.int64)


def means(answer: Answer, places: NDArray[np.int64]) -> Floats:
    """Return the mean times over all transfers at each size, NaN where there is none."""
    table = answer.tables["by_size"]
    values = [time.value for time in completion_times(table)]
    return _placed(dict(zip(table["size_pkts"].tolist(), values, strict=True)), places)


def intervals(answer: Answer, places: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return both ends of the 95 % intervals of :func:`means`, NaN where there is none."""
    table = answer.tables["by_size"]
    known, times = table["size_pkts"].tolist(), completion_times(table)
    low, high = (
        {size: end for size, end in zip(known, ends, strict=True) if end is not None}
        for ends in ([time.low for time in times], [time.high for time in times])
    )
    return _placed(low, places), _placed(high, places)


def percentiles(answer: Answer, places: NDArray[np.int64]) -> list[Floats]:
    """Return p50, p95 and p99 at each size; empty for an answer that knows means alone."""
    table = answer.tables["by_size"]
    if not set(PERCENTILES) <= table.keys():
        return []
    known = table["size_pkts"].tolist()
    return [
        _placed(dict(zip(known, table[name].tolist(), strict=True)), places) for name in PERCENTILES
    ]


def by_losses(answer: Answer, places: NDArray[np.int64]) -> dict[int, Floats]:
    """Return the mean times by the number of losses, up to :data:`MOST_LOSSES`."""
    table = answer.tables.get("by_losses", {})
    enough = table["transfers"] >= FEWEST if "transfers" in table else None
    found: dict[int, dict[int, float]] = {}
    for at, ((size, losses), time) in enumerate(by_size_and_losses(answer).items()):
        if losses <= MOST_LOSSES and (enough is None or enough[at]):
            found.setdefault(losses, {})[size] = time.value
    return {losses: _placed(found[losses], places) for losses in sorted(found)}


def alone(values: Floats) -> NDArray[np.bool_]:
    """Return which values have a gap on either side: no band shows them."""
    there = np.pad(np.isfinite(values), 1)
    lone: NDArray[np.bool_] = there[1:-1] & ~there[:-2] & ~there[2:]
    return lone


def is_wide(curves: Iterable[Floats]) -> bool:
    """Say whether times are so far apart that the short ones need a logarithmic axis."""
    all_times = np.concatenate([np.ravel(curve) for curve in curves])
    shown = all_times[np.isfinite(all_times) & (all_times > 0)]
    return bool(shown.size and shown.max() > WIDE * shown.min())


def _placed(values: Mapping[Any, float], places: NDArray[np.int64]) -> Floats:
    return np.array([values.get(size, math.nan) for size in places.tolist()])
