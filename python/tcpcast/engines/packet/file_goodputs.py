"""Convert the simulator's goodput counts to the tables of file goodput."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tcpcast import _native
from tcpcast.engines.packet.counters import split_slot_counts
from tcpcast.engines.table_columns import concatenate_tables, estimate_part_column
from tcpcast.statistics import quantiles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcpcast.array_types import Floats, Table
    from tcpcast.engines.packet.counters import SlotCounts, Snapshot
    from tcpcast.scenario import Scenario
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


def estimate_goodput_quantiles(
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
        ``goodput_bps`` covers the range of the counts. Its values are edges of buckets, so the
        probabilities are exact, and all answers use the same grid.
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


PIECE_INDEX = {name: index for index, name in enumerate(_native.GOODPUT_KINDS)}
FILE_PIECES = ("small_file", "large_file")


def file_goodput_tables(
    scenario: Scenario, snapshot: Snapshot, sizes: Table, by_share: Mapping[float, Estimate]
) -> dict[str, Table]:
    """Return the tables of file goodput.

    Parameters
    ----------
    scenario
        The scenario.
    seen
        Counters of the run.
    sizes
        Columns that identify the size intervals, one row per interval, in order.
    by_share
        The estimates of :func:`estimate_exceeded_goodputs`.
    """
    replications = snapshot.goodputs
    shares = scenario.probes.goodput_shares
    names = [group.name for group in scenario.populations]
    classes = range(len(names))
    files = sum_goodput_counts(replications, classes, FILE_PIECES)
    by_class: Table = {}
    if len(names) > 1:
        each = [
            (name, sum_goodput_counts(replications, (index,), FILE_PIECES))
            for index, name in enumerate(names)
        ]
        tables = []
        for name, counts in each:
            table = exceeded_goodput_table(estimate_goodput_quantiles(counts, shares))
            if table:
                tables.append({"name": np.repeat(name, len(table["share"]))} | table)
        by_class = concatenate_tables(tables)
    medians = snapshot.totals["goodput_medians"]
    if not medians:
        median_goodput_by_size: Table = {}
    else:
        shown = [row for row, _ in medians]
        median_goodput_by_size = {name: column[shown] for name, column in sizes.items()} | {
            "goodput_median_bps": np.array([median for _, median in medians])
        }
    return {
        "file_goodput": exceeded_goodput_table(by_share),
        "file_goodput_by_class": by_class,
        "file_goodput_by_size": median_goodput_by_size,
        "file_goodput_tail": goodput_tail_table(
            {
                "by_packets": sum_goodput_counts(replications, classes, ("block",)),
                "by_file": files,
                "by_large_file": sum_goodput_counts(replications, classes, ("large_file",)),
            }
        ),
    }


def estimate_exceeded_goodputs(scenario: Scenario, snapshot: Snapshot) -> dict[float, Estimate]:
    """Estimate the goodput that each of ``probes.goodput_shares`` of all files exceeds."""
    files = sum_goodput_counts(snapshot.goodputs, range(len(scenario.populations)), FILE_PIECES)
    return estimate_goodput_quantiles(files, scenario.probes.goodput_shares)


def sum_goodput_counts(
    replications: Sequence[SlotCounts], classes: Sequence[int], pieces: Sequence[str]
) -> GoodputCounts:
    """Return the goodput counts of some classes, split into statistical units.

    ``pieces`` names the counted items: small files, large files, or blocks of packets.
    """
    wanted = [
        index * len(PIECE_INDEX) + PIECE_INDEX[piece] for index in classes for piece in pieces
    ]
    return GoodputCounts(*split_slot_counts(replications, wanted), max(1, len(replications)))
