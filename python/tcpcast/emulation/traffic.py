"""Running a scenario's flows over a link, and what was counted while they ran."""

from __future__ import annotations

import json
import pickle
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcpcast.emulation.launch import started
from tcpcast.errors import MachineError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FLOW = (
    *("arrived", "queue_drops", "random_drops", "passed", "waited_ns", "marked"),
    *("received_bytes", "rtt_sum_ns", "rtt_samples", "retransmitted"),
    *("recoveries", "timeouts", "timeout_sequences", "busy_us", "limited_us"),
)
"""What a snapshot has of each flow, in this order, since the beginning of the run."""

TRANSFER = (
    *("flow", "number", "bytes", "opened_ns", "first_ns", "delivered_ns", "acked_ns"),
    *("arrived", "drops", "retransmitted"),
)
"""What the row of a file has: the number of its flow, and that among the flow's files; times are
the link's."""

LATENESS_S = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3)
"""Ends of the classes of lateness; a last class has what was later."""

WAIT_STEP_S = 2e-5
"""Unit of ``waits`` in a snapshot, whose pairs are so many steps and how many packets."""


@dataclass(slots=True)
class TrafficOutcome:
    """What a run of flows told.

    ``snapshots`` are in order of time, ``transfers`` rows as :data:`TRANSFER`.
    ``punctuality`` is the link's last report of ``elapsed_ns``, ``away_ns`` (its clock stood
    still), ``late_ns`` of all packets together and ``lateness``, packets by :data:`LATENESS_S`.
    ``ended`` is what the link said at its end, None where the run was cut short; ``distortion``
    says why its numbers cannot be trusted, None where they can.
    """

    snapshots: list[dict[str, Any]] = field(default_factory=list)
    transfers: list[list[int]] = field(default_factory=list)
    punctuality: dict[str, Any] = field(default_factory=dict)
    ended: dict[str, int] | None = None
    device: str | None = None
    distortion: str | None = None
    capture_fault: str | None = None
    cut: str | None = None

    @property
    def lateness(self) -> list[int]:
        """Packets by how late they were handed over, in the classes of :data:`LATENESS_S`."""
        return list(self.punctuality.get("lateness", [0] * (len(LATENESS_S) + 1)))


def run_traffic(
    traffic: Mapping[str, Any], advanced: Callable[[TrafficOutcome], str | None]
) -> TrafficOutcome:
    """Run flows over a link until they are done.

    Parameters
    ----------
    traffic
        What ``_native.run_traffic`` takes.
    advanced
        Called with the results so far, after each snapshot or transfer and twice a second; a text
        that it returns cuts the run short, and is kept in ``cut``.

    Raises
    ------
    MachineError
        Not Linux, no namespaces, or the kernel refuses something; the message says what.
    """
    if sys.platform != "linux":
        raise MachineError("a link is made of Linux network namespaces; this is no Linux")
    outcome = TrafficOutcome()
    try:
        with started(pickle.dumps(dict(traffic))) as (lines, _):
            for word, value in lines:
                _take(outcome, word, value)
                if word in ("snapshot", "transfer", "punctuality"):
                    outcome.cut = advanced(outcome)
                if outcome.cut is not None:
                    return outcome
    except KeyboardInterrupt:
        outcome.cut = "interrupted"
        return outcome
    if outcome.ended is None:
        raise MachineError("the link's process ended without an answer")
    return outcome


def _take(outcome: TrafficOutcome, word: str, value: str) -> None:
    match word:
        case "fault":
            raise MachineError(value)
        case "snapshot":
            outcome.snapshots.append(json.loads(value))
        case "transfer":
            outcome.transfers.append(json.loads(value))
        case "punctuality":
            outcome.punctuality = json.loads(value)
            outcome.distortion = outcome.punctuality["distortion"]
        case "ended":
            outcome.ended = json.loads(value)
        case "device" | "distortion" | "capture_fault":
            setattr(outcome, word, value)
