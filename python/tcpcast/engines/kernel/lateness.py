"""Mark results of a link that this machine could not keep on time, with the size of the error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.answer import Note, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.answer import Answer
    from tcpcast.emulation.traffic import TrafficOutcome
    from tcpcast.scenario import Scenario

LATE_LINK_LABEL = "late link"
"""Text instead of an interval."""


def mean_added_delay_s(rtt_s: float, outcomes: Sequence[TrafficOutcome]) -> float:
    """Return the mean delay per RTT that this machine added, in seconds.

    The link's clock is paused while its process does not run, and packets due at that time are
    delayed by the pause, so RTTs increase by this share of time. Other packets are forwarded late,
    in both directions.
    """
    reports = [outcome.punctuality for outcome in outcomes if outcome.punctuality]
    elapsed, away, late = (
        sum(report[key] for report in reports) for key in ("elapsed_ns", "away_ns", "late_ns")
    )
    packets = sum(sum(outcome.lateness) for outcome in outcomes)
    return float(rtt_s * away / max(elapsed - away, 1) + 2e-9 * late / max(packets, 1))


def mark_late_results(
    answer: Answer, scenario: Scenario, outcomes: Sequence[TrafficOutcome], *, accepted: bool
) -> None:
    """Mark all results as untrusted, without intervals, and add a note with the size of the error.

    Parameters
    ----------
    answer
        The results of all outcomes.
    scenario, outcomes
        At least one of the outcomes has a distortion.
    accepted
        False if the run ended because of it: the answer is then incomplete.
    """
    reason = next(outcome.distortion for outcome in outcomes if outcome.distortion is not None)
    rtt_s = min(group.rtt_s for group in scenario.populations)
    held = mean_added_delay_s(rtt_s, outcomes)
    size = (
        f"this machine delayed packets by a mean of {held * 1000:.2g} ms per RTT. Rates, times and "
        f"delays may be wrong by {held / rtt_s:.1%}, the ratio of this added delay to the RTT"
    )
    answer.mark_untrusted(f"{LATE_LINK_LABEL}: {reason}")
    # Other notes concern intervals, which are left out.
    answer.notes = [Note(f"{reason}: {size}", kind="run")]
    if not accepted and not answer.interrupted:
        answer.status = Status.MACHINE_BUSY
        answer.reason = (
            "this machine was too busy for the timing of the link; repeat the run, lower "
            "network.bottleneck.rate, or use --accept-late"
        )
