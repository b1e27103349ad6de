"""Tables of file goodput: percentiles, and the probability of exceeding each goodput.

All engines with files count goodputs in the same buckets, so that their tables are comparable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tcpcast import _native, quantiles
from tcpcast.engines.table_columns import concatenate_tables, estimate_part_column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

    from tcpcast.array_types import Floats, Table
    from tcpcast.statistics import Estimate


_OCTAVES, _BUCKETS_PER_OCTAVE = _native.GOODPUT_BUCKETS

BUCKET_COUNT = _OCTAVES * _BUCKETS_PER_OCTAVE
"""Number of goodput buckets."""

BUCKETS_PER_TAIL_ROW = 2
"""Number of buckets per row of the tail table; the goodputs of neighbouring rows differ by 0.8 to
1.6 %."""


def bucket_edges_bps() -> Floats:
    """Return the ends of the buckets in bit/s, ``[BUCKET_COUNT + 1]``: 1 bit/s to 1.1 Tbit/s."""
    octave, part = np.divmod(np.arange(BUCKET_COUNT + 1), _BUCKETS_PER_OCTAVE)
    edges: Floats = np.ldexp(1.0 + part / _BUCKETS_PER_OCTAVE, octave)
    return edges


@dataclass(frozen=True, slots=True)
class GoodputCounts:
    """Counts of goodputs in consecutive buckets.

    ``counts`` is ``[units, buckets]``, with units as in :func:`tcpcast.statistics.estimate_ratio`,
    and ``first`` is the index of the first bucket.
    """

    first: int
    counts: Floats
    replications: int = 1

    @property
    def edges(self) -> Floats:
        """Ends of these buckets in bit/s, ``[buckets + 1]``."""
        return bucket_edges_bps()[self.first : self.first + self.counts.shape[1] + 1]

    @property
    def total(self) -> float:
        """Number of counted goodputs."""
        return float(self.counts.sum())

    def sum_over_units(self) -> Floats:
        """Return the counts over all units in all buckets, ``[BUCKET_COUNT]``."""
        whole = np.zeros(BUCKET_COUNT)
        whole[self.first : self.first + self.counts.shape[1]] = self.counts.sum(axis=0)
        return whole


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


def estimate_exceeded_goodputs(
    counts: GoodputCounts, shares: Sequence[float]
) -> dict[float, Estimate]:
    """Estimate the goodput that each share of the files exceeds; empty without files."""
    quantile_estimates = (
        quantiles.estimate_exceeded_value(
            counts.counts, counts.edges, share, replications=counts.replications
        )
        for share in shares
    )
    return {share: e for share, e in zip(shares, quantile_estimates, strict=True) if e is not None}


def exceeded_goodput_table(by_share: Mapping[float, Estimate]) -> Table:
    """Return table ``file_goodput``: the goodput that each share of files exceeds, with interval.

    Empty without files; ``low`` and ``high`` are nan if there is no interval.
    """
    if not by_share:
        return {}
    return {
        "share": np.array(list(by_share)),
        "goodput_bps": estimate_part_column(by_share.values(), "value"),
        "low": estimate_part_column(by_share.values(), "low"),
        "high": estimate_part_column(by_share.values(), "high"),
    }


def exceeded_goodput_table_by_class(
    classes: Sequence[tuple[str, GoodputCounts]], shares: Sequence[float]
) -> Table:
    """Return table ``file_goodput_by_class``: the rows of each class, with its name."""
    tables = []
    for name, counts in classes:
        table = exceeded_goodput_table(estimate_exceeded_goodputs(counts, shares))
        if table:
            tables.append({"name": np.repeat(name, len(table["share"]))} | table)
    return concatenate_tables(tables)


def goodput_tail_table(pieces: dict[str, GoodputCounts]) -> Table:
    """Return table ``file_goodput_tail``: the probability of exceeding each goodput of the grid.

    Parameters
    ----------
    pieces
        The counts by column (``by_packets``, ``by_file``, ``by_large_file``); columns without
        counts are left out.

    Returns
    -------
    dict
        ``goodput_bps`` covers the range of the counts and is a part of a fixed grid, the same in
        every answer. Each value is the end of a bucket, so the probabilities are exact counts.
    """
    known = {name: c.sum_over_units() for name, c in pieces.items() if c.total > 0}
    if not known:
        return {}
    occupied = np.flatnonzero(np.sum(list(known.values()), axis=0))
    first = occupied[0] // BUCKETS_PER_TAIL_ROW * BUCKETS_PER_TAIL_ROW
    last = min(-(-(occupied[-1] + 1) // BUCKETS_PER_TAIL_ROW) * BUCKETS_PER_TAIL_ROW, BUCKET_COUNT)
    buckets = np.arange(first, last + 1, BUCKETS_PER_TAIL_ROW)
    return {"goodput_bps": bucket_edges_bps()[buckets]} | {
        name: np.append(quantiles.tail_shares(whole), 0.0)[buckets] for name, whole in known.items()
    }
