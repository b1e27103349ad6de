"""Runs the flows of a scenario over an emulated link, and collects counters."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tcpcast.emulation.launch import start_link
from tcpcast.process.errors import MachineError, WorkerDied

FLOW_COUNTERS = (
    *("arrived", "queue_drops", "random_drops", "passed", "waited_ns", "marked"),
    *("sent", "dropped_elsewhere", "received_bytes", "rtt_sum_ns", "rtt_samples", "retransmitted"),
    *("recoveries", "timeouts", "timeout_sequences", "busy_us", "limited_us"),
    *("messages", "received", "delay_ns", "requests", "latency_ns"),
    *("startups", "startup_ns", "stalls", "stalled_play_ns", "played_ns"),
)
"""Counters of each flow in a snapshot, in this order, since the start of the run. The first six
count data packets at the headline link."""

TRANSFER_COLUMNS = (
    *("flow", "number", "bytes", "opened_ns", "first_ns", "delivered_ns", "acked_ns"),
    *("arrived", "drops", "retransmitted"),
)
"""Columns of a row for one file: the number of the flow, the number of the file within the flow,
and times on the clock of the link."""

LATENESS_BINS_S = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3)
"""Upper limits of the bins of the lateness histogram in seconds; the last bin is unlimited."""

TIME_STEP_S = 2e-5
"""Step in seconds of the times in a snapshot since the previous one: ``waits`` and ``times`` hold
triples of a group, a number of steps and a number of packets. The groups of ``waits`` are the
links, and the data packets of the headline link; those of ``times`` the kinds of times of each
class."""


@dataclass(slots=True)
class TrafficOutcome:
    """Results of a run of flows.

    ``snapshots`` are in chronological order, ``transfers`` are rows with the columns of
    :data:`TRANSFER_COLUMNS`. ``punctuality`` is the last report of the link: ``elapsed_ns``,
    ``away_ns`` (time with a paused clock), ``late_ns`` (sum over all packets) and ``lateness``
    (packets per bin of :data:`LATENESS_BINS_S`). ``final_report`` is None, and ``stop_reason`` is
    set, if the run was stopped early. ``distortion`` is the reason not to trust the counters, or
    None.
    """

    snapshots: list[dict[str, Any]] = field(default_factory=list)
    transfers: list[list[int]] = field(default_factory=list)
    punctuality: dict[str, Any] = field(default_factory=dict)
    final_report: dict[str, int] | None = None
    device: str | None = None
    distortion: str | None = None
    capture_fault: str | None = None
    stop_reason: str | None = None

    @property
    def lateness(self) -> list[int]:
        """Number of packets in each bin of :data:`LATENESS_BINS_S`."""
        return list(self.punctuality.get("lateness", [0] * (len(LATENESS_BINS_S) + 1)))


def run_traffic(
    traffic: Mapping[str, Any], on_progress: Callable[[TrafficOutcome], str | None]
) -> TrafficOutcome:
    """Run flows over a link until they end.

    Parameters
    ----------
    traffic
        Argument of ``_native.run_traffic``.
    on_progress
        Function called with the current results after each snapshot or transfer, and twice per
        second. If it returns a text, the run stops, and ``stop_reason`` contains the text.

    Raises
    ------
    MachineError
        The system is not Linux, namespaces are not available, or a system call failed.
    WorkerDied
        The link's process ended without a result.
    """
    if sys.platform != "linux":
        raise MachineError("an emulated link requires Linux; use the packet engine on this system")
    outcome = TrafficOutcome()
    try:
        with start_link(pickle.dumps(dict(traffic))) as (lines, _):
            for word, value in lines:
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
                        outcome.final_report = json.loads(value)
                    case "device" | "distortion" | "capture_fault":
                        setattr(outcome, word, value)
                if word in ("snapshot", "transfer", "punctuality"):
                    outcome.stop_reason = on_progress(outcome)
                if outcome.stop_reason is not None:
                    return outcome
    except KeyboardInterrupt:
        outcome.stop_reason = "interrupted"
        return outcome
    if outcome.final_report is None:
        raise WorkerDied("the link's process ended without a result")
    return outcome
