"""Results of a link that this machine did not keep punctual: marked, with the size of the error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.answer import Note, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.answer import Answer
    from tcpcast.emulation.traffic import TrafficOutcome
    from tcpcast.scenario import Scenario

DOUBT = "late link"
"""Printed in place of an interval."""


def held_s(rtt_s: float, outcomes: Sequence[TrafficOutcome]) -> float:
    """Return for how long a round trip was held by this machine, on average.

    The link's clock stands still while its process does not run, and packets that are due then are
    delayed by the pause: round trips take longer by the share of this time. Others are handed over
    late, in both directions.
    """
    reports = [outcome.punctuality for outcome in outcomes if outcome.punctuality]
    elapsed, away, late = (
        sum(report[key] for report in reports) for key in ("elapsed_ns", "away_ns", "late_ns")
    )
    packets = sum(sum(outcome.lateness) for outcome in outcomes)
    return float(rtt_s * away / max(elapsed - away, 1) + 2e-9 * late / max(packets, 1))


def put_lateness(
    answer: Answer, scenario: Scenario, outcomes: Sequence[TrafficOutcome], *, accepted: bool
) -> None:
    """Mark all results as not trusted, without intervals, and print the size of the error.

    Parameters
    ----------
    answer
        The results of all outcomes.
    scenario, outcomes
        One of the outcomes has a distortion.
    accepted
        False if the run ended because of it: the answer is then partial.
    """
    reason = next(outcome.distortion for outcome in outcomes if outcome.distortion is not None)
    rtt_s = min(group.rtt_s for group in scenario.populations)
    held = held_s(rtt_s, outcomes)
    size = (
        f"it held packets for {held * 1000:.2g} ms per round trip on average, {held / rtt_s:.1%} "
        "of the RTT, so rates, times and delays may be wrong by as much"
    )
    answer.mark_untrusted(f"{DOUBT}: {reason}")
    answer.tables = {name: _without_intervals(table) for name, table in answer.tables.items()}
    # Others are about intervals, which are left out.
    answer.notes = [Note(f"{reason}: {size}", kind="run")]
    if not accepted and not answer.interrupted:
        answer.status = Status.MACHINE
        answer.reason = (
            "this machine was too busy to hold the link's times; run it again, with a lower "
            "network.bottleneck.rate, or with --accept-late"
        )


def _without_intervals(table: dict[str, Any]) -> dict[str, Any]:
    return {
        name: np.full(len(values), np.nan) if name.endswith(("low", "high")) else values
        for name, values in table.items()
    }
