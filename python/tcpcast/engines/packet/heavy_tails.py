"""File sizes that vary so much that the sizes drawn in a run do not represent the distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.engines.packet.size_moments import mean_drawn_size_pkts, rare_size_share_of_square_mean
from tcpcast.scenario.distributions import Distribution

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcpcast.engines.packet.metric_estimates import BatchCounters
    from tcpcast.scenario import Scenario
    from tcpcast.scenario.classes import Population

MAX_UNSEEN_SHARE = 0.1
"""Maximum share of the mean square file size that is due to files too large to be expected in the
run. Above, intervals need a check."""


def warn_about_heavy_tails(
    scenario: Scenario, units: BatchCounters, numbers: Sequence[int], *, min_files: int
) -> Iterator[tuple[str, bool]]:
    """Yield a warning if the drawn files do not represent the distribution, with both means.

    Parameters
    ----------
    scenario, units
        The scenario and the counters of its run.
    numbers
        Indices of the classes.
    min_files
        Minimum number of files for this warning; fewer files cause another warning.

    Yields
    ------
    str, bool
        The warning, and True if no number of files is enough.
    """
    for index in numbers:
        group = scenario.populations[index]
        distribution = _size_distribution(group)
        files = units.total("transfers", (index,))
        if distribution is None or files < min_files:
            continue
        if rare_size_share_of_square_mean(distribution, files) > MAX_UNSEEN_SHARE:
            yield _drawn_sizes_message(
                group,
                distribution,
                files,
                units.total("transfer_packets", (index,)),
            )


def _drawn_sizes_message(
    group: Population, distribution: Distribution[float], files: float, packets: float
) -> tuple[str, bool]:
    down = group.traffic.kind == "on-off" and group.traffic.size_rounding == "down"
    expected = mean_drawn_size_pkts(distribution, rounded_down=down)
    drawn = packets / files
    enough = _files_needed(distribution)
    endless = math.isinf(enough)
    needed = "no number of files is enough" if endless else f"about {enough:,.0f} are needed"
    text = (
        f"file sizes vary too much for {files:,.0f} files ({needed}): the mean simulated size is "
        f"{drawn:.4g} packets ({drawn / expected - 1:+.1%}), but the mean of the distribution is "
        f"{expected:.4g} packets"
    )
    return text, endless


def _files_needed(distribution: Distribution[float]) -> float:
    """Return the sufficient number of files, rounded up to 100, 200, 500, 1000, ..., or inf."""
    if not distribution.has_finite_variance():
        return math.inf
    steps = (factor * 10.0**power for power in range(2, 12) for factor in (1, 2, 5))
    return next(
        (
            files
            for files in steps
            if rare_size_share_of_square_mean(distribution, files) <= MAX_UNSEEN_SHARE
        ),
        math.inf,
    )


def _size_distribution(group: Population) -> Distribution[float] | None:
    traffic = group.traffic
    if traffic.kind not in {"on-off", "transfers"}:
        return None
    return traffic.size if isinstance(traffic.size, Distribution) else None
