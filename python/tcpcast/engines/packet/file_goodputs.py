"""Convert the simulator's goodput counts to the tables of file goodput."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tcpcast import _native, statistics
from tcpcast.engines import file_goodput
from tcpcast.engines.file_goodput import GoodputCounts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tcpcast.array_types import Counts, Floats, Table
    from tcpcast.engines.packet.metric_estimates import Snapshot
    from tcpcast.scenario import Scenario
    from tcpcast.statistics import Estimate

    Column = Counts
    Replication = tuple[int, Column, Column, Column, Column | Floats]
    """Number of slots, and four columns: slot; index of the class and of :data:`PIECE_INDEX`,
    combined to one number; goodput bucket; count."""

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
        by_class = file_goodput.exceeded_goodput_table_by_class(each, shares)
    return {
        "file_goodput": file_goodput.exceeded_goodput_table(by_share),
        "file_goodput_by_class": by_class,
        "file_goodput_by_size": _median_goodput_by_size(snapshot.totals, sizes),
        "file_goodput_tail": file_goodput.goodput_tail_table(
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
    return file_goodput.estimate_exceeded_goodputs(files, scenario.probes.goodput_shares)


def sum_goodput_counts(
    replications: Sequence[Replication], classes: Sequence[int], pieces: Sequence[str]
) -> GoodputCounts:
    """Return the goodput counts of some classes, split into statistical units.

    ``pieces`` names the counted items: small files, large files, or blocks of packets.
    """
    wanted = np.array(
        [index * len(PIECE_INDEX) + PIECE_INDEX[piece] for index in classes for piece in pieces]
    )
    chosen = [np.isin(groups, wanted) for _, _, groups, _, _ in replications]
    buckets = [r[3][which].astype(np.intp) for r, which in zip(replications, chosen, strict=True)]
    occupied = np.concatenate(buckets)
    first = int(occupied.min(initial=file_goodput.BUCKET_COUNT))
    if not occupied.size:
        return GoodputCounts(0, np.zeros((1, 1)))
    width = int(occupied.max()) - first + 1
    rows = []
    for (slots, slot, _, _, count), which, bucket in zip(
        replications, chosen, buckets, strict=True
    ):
        positions = (slot[which].astype(np.intp) + 1) * width + bucket - first
        added = np.bincount(positions, weights=count[which], minlength=(slots + 1) * width)
        rows.append(np.cumsum(added.reshape(slots + 1, width), axis=0))
    counts = statistics.split_units([row[:-1] for row in rows], totals=[row[-1] for row in rows])
    return GoodputCounts(first, counts, len(replications))


def _median_goodput_by_size(totals: dict[str, Any], sizes: Table) -> Table:
    """Return the median of each size interval that had a file."""
    medians = totals["goodput_medians"]
    if not medians:
        return {}
    shown = [row for row, _ in medians]
    return {name: column[shown] for name, column in sizes.items()} | {
        "goodput_median_bps": np.array([median for _, median in medians])
    }
