"""Counts of goodputs that are given individually, as the simulator counts them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from tcpcast.engines.packet.file_goodputs import BUCKET_COUNT, GoodputCounts, bucket_edges_bps


def count_goodputs(units: Sequence[ArrayLike], *, replications: int = 1) -> GoodputCounts:
    """Count goodputs given individually.

    Parameters
    ----------
    units
        The goodputs of each unit, bit/s, above 0. Values outside the range of
        :func:`bucket_edges_bps` count in the first or last bucket.
    replications
        Number of replications of the units, each with the same number of units.
    """
    edges = bucket_edges_bps()
    buckets = [
        np.clip(np.searchsorted(edges, values, side="right") - 1, 0, BUCKET_COUNT - 1)
        for values in units
    ]
    first = min((int(bucket.min()) for bucket in buckets if bucket.size), default=0)
    last = max((int(bucket.max()) for bucket in buckets if bucket.size), default=0)
    rows = [np.bincount(bucket - first, minlength=last - first + 1) for bucket in buckets]
    return GoodputCounts(first, np.array(rows, dtype=np.float64), replications)
