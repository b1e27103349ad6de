"""Engine ``packet``: exact packet-level simulation.

Steps: convert the scenario to a configuration (:mod:`.configuration`), run the native simulator
(this module: warm-up, length, precision), and convert its counters to metrics
(:mod:`.metric_estimates`) and tables (:mod:`.tables`).
"""

from __future__ import annotations

import functools
import math
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import tcpcast
from tcpcast import _native, statistics
from tcpcast.answer import Answer, Note, Status
from tcpcast.engines.packet import (
    cross_traffic,
    file_goodputs,
    metric_estimates,
    notes,
    reliability,
    tables,
    time_series,
)
from tcpcast.engines.packet.capture_files import CaptureFiles, check_all_capture_files
from tcpcast.engines.packet.configuration import make_configuration
from tcpcast.engines.packet.counters import Estimates, Snapshot, read_snapshot
from tcpcast.engines.packet.memory import MemoryWatch, OutOfMemoryError, check_memory
from tcpcast.engines.packet.notes import noise_warnings
from tcpcast.engines.packet.reliability import no_steady_state_reason
from tcpcast.engines.registry import changes_to_set_stack
from tcpcast.process.errors import NotApplicable, Suggestion

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.engines.options import RunOptions
    from tcpcast.engines.packet.config_types import Config
    from tcpcast.scenario import Scenario

    Configure = Callable[[Scenario, float], Config]

    from tcpcast.scenario import Scenario

NS_PER_SECOND = 1_000_000_000
MAX_RUN_S = 2.0e9
"""Maximum simulated time of a run, whatever its stopping condition."""

MAX_FEEDBACK_LOSS = 0.5
"""Loss ratio above which a warning is given with instantaneous loss feedback: most losses are then
caused by immediate retransmissions into a full buffer."""

PILOT_SHARES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
"""Lengths of the pilot run that finds the end of the warm-up, as shares of the run."""

MIN_PILOT_SHARE, MIN_PILOT_SHARE_OF_CLASSES = 1 / 16, 1 / 4
"""Minimum length of the last pilot run, as a share of the run. With several classes the pilot run
is longer, because the classes' shares of the link drift slowly, and the start of a slow drift looks
like a steady state."""

MIN_MSER_SLOTS = 50
"""Minimum number of slots for MSER-5."""

RUN_DONE = "done"
RUN_OUT_OF_TIME = "out-of-time"
EndReason: TypeAlias = str | OutOfMemoryError
"""How a run ended: a word of the simulator, or the error of exhausted memory."""


@dataclass(slots=True)
class WallTimeLimit:
    """Wall time limit: ``deadline`` is a ``time.perf_counter`` value (None: unlimited)."""

    deadline: float | None

    def remaining_s(self) -> float | None:
        """Return the remaining seconds, None if unlimited."""
        return None if self.deadline is None else max(0.0, self.deadline - time.perf_counter())


@dataclass(frozen=True, slots=True)
class _WarmUpResult:
    seconds: float
    rule: str
    is_found: bool = True
    ended: EndReason = RUN_DONE


def packet(scenario: Scenario, options: RunOptions) -> Answer:
    """Simulate a scenario at packet level.

    Parameters
    ----------
    scenario
        Any scenario. The scenario reader has already rejected flows without any limit of their
        rate, and runs without an end.
    options
        Threads and progress; they do not change results.

    Returns
    -------
    Answer
        Every metric with a 95 % interval (see :mod:`tcpcast.statistics`), and tables.
        ``provenance`` has the length of the warm-up, the rule that determined it, and the number
        of statistical units (batches or replications) of the intervals.

    Raises
    ------
    MachineError
        A capture file cannot be written; raised before the simulation. If writing fails later,
        ``write_errors`` of the answer contains the error.
    TcpcastError
        A capture file exists, and ``options.force`` is not set.
    NotApplicable
        Sources or replications that do not fit into free memory.
    """
    check_packet_sizes(scenario)
    for group in scenario.populations:
        is_mutual = group.sends == "both" or group.traffic.kind in ("requests", "stream")
        if is_mutual and not group.tcp.is_modern:
            raise NotApplicable(
                f"{group.tcp.stack} sends data in one direction only, but "
                f"{group.name or 'the traffic'} sends data in both",
                Suggestion(changes_to_set_stack(scenario, "linux-reno")),
            )
    if not options.over_time:
        return simulate_with_configuration(scenario, options, make_configuration)
    return simulate_with_configuration(scenario, options, time_series.make_configuration_over_time)


def simulate_with_configuration(
    scenario: Scenario, options: RunOptions, configure: Configure
) -> Answer:
    """Simulate a scenario with a given configuration of the simulator.

    Parameters
    ----------
    scenario, options
        See :func:`packet`.
    configure
        Converts the scenario and the length of the warm-up in seconds to a configuration, as
        :func:`.configuration.make_configuration` does.

    Returns
    -------
    Answer
        See :func:`packet`.
    """
    check_all_capture_files(scenario, options)
    clock = WallTimeLimit(options.compute_deadline(scenario))
    check_memory(scenario, configure(scenario, 0.0))
    warmup = _find_warm_up(scenario, options, clock, configure)
    config = configure(scenario, warmup.seconds)
    run = _native.Simulation(config, scenario.run.replications)
    threads = options.threads or os.cpu_count() or 1
    watch = MemoryWatch(config, scenario.run.replications, options.progress)
    advance = functools.partial(_advance_run, run, threads=threads, progress=watch)
    with CaptureFiles(scenario, run, options) as captures:
        ended, snapshot, estimates = _run_to_precision(scenario, run, advance, warmup, clock)
        answer = Answer(
            "packet", kind="simulation", metrics=metric_estimates.convert_to_metrics(estimates)
        )
        by_share = file_goodputs.estimate_exceeded_goodputs(scenario, snapshot)
        answer.tables = tables.make_all_tables(scenario, snapshot, by_share)
        answer.notes = [] if warmup.is_found else [WARM_UP_NOT_FOUND_NOTE]
        answer.notes += [
            *notes.make_interval_notes(estimates, snapshot, answer.tables.get("by_class", {})),
            *reliability.warn_about_goodput_quantiles(scenario, snapshot.units, by_share),
        ]
        answer.notes += cross_traffic.warn_about_recordings_and_bins(scenario, run.clocks())
        # Counters instead of metrics, which a run in which hardly any file ends does not have.
        dropped, arrived = (snapshot.units.total(of) for of in ("queue_drops", "arrived"))
        if scenario.has_loss_feedback and dropped >= MAX_FEEDBACK_LOSS * max(arrived, 1.0):
            answer.warn(
                'stack "max-plus-reno" has instantaneous loss feedback and retransmits '
                f"immediately. Here, {dropped / arrived:.0%} of the packets are lost, because the "
                "buffer holds fewer packets than there are flows; set a larger buffer, or "
                'tcp.stack = "rfc-newreno", which waits for an RTO'
            )
        answer.notes += notes.make_model_notes(scenario, snapshot)
        missing = statistics.unmet_precision(estimates, scenario.run.precision or {})
        shortfall = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
        if ended == "interrupted":
            answer.mark_incomplete(
                "interrupted: the results cover only the finished part", Status.INTERRUPTED
            )
        elif ended == RUN_OUT_OF_TIME:
            before = f"run.precision ({shortfall})" if shortfall else "the end of the run"
            answer.mark_incomplete(f"run.max_wall was reached before {before}")
        elif ended == "crowded":
            answer.mark_incomplete(
                "stopped with a million active transfers, because more transfers arrive than "
                "finish; set a lower traffic.arrivals.rate, or a shorter run.duration"
            )
        elif isinstance(ended, OutOfMemoryError):
            answer.mark_incomplete(str(ended))
            answer.mark_untrusted()
        elif (
            scenario.run.transfers is not None or scenario.isolated_transfers is not None
        ) and _has_reached_maximum_time(run):
            answer.mark_incomplete("the transfers had not finished after 63 simulated years")
        elif shortfall and ended == RUN_DONE:
            answer.mark_incomplete(
                f"run.precision cannot be confirmed by a longer run ({shortfall})"
            )
        elif shortfall:
            reached = (
                "63 simulated years"
                if _has_reached_maximum_time(run)
                else ("1000 times the specified length")
            )
            answer.mark_incomplete(f"run.precision was not reached within {reached} ({shortfall})")
        clocks = run.clocks()
        if len(clocks) < scenario.run.replications:
            answer.mark_incomplete(
                f"only {len(clocks)} of {scenario.run.replications} replications were started"
            )
        if not all(measuring for _, measuring in clocks):
            answer.mark_incomplete("the run ended during the warm-up")
            answer.mark_untrusted()
        why = no_steady_state_reason(scenario, snapshot, run, answer)
        if why is not None:
            answer.mark_incomplete(why)
            answer.mark_untrusted()
        answer.warn(*noise_warnings(scenario))
        if scenario.probes.flows:
            traces = run.traces()
            answer.tables |= tables.traced_flow_tables(traces)
            answer.notes += tables.note_thinned_traces(traces)
        if options.by_replication:
            answer.tables |= tables.replication_tables(scenario, run)
        if options.over_time and config["probes"]["course"]:
            answer.tables |= time_series.time_series_tables(scenario, run)
        if scenario.run.report_at is not None:
            table = tables.delivered_table(scenario, run.delivered())
            answer.tables |= {"delivered": table} if table else {}
            answer.notes += tables.warn_about_unreached_times(scenario, table)
        captures.complete_and_rename(answer)
    answer.provenance = {
        "version": tcpcast.__version__,
        "scenario": scenario.digest(),
        "replications": scenario.run.replications,
        "simulated_s": [now / NS_PER_SECOND for now, _ in run.clocks()],
        "units": max((e.units for e in estimates.values() if e is not None), default=0),
        "interval": "95 %, batches of all replications, long-run variance by cosine weights"
        if scenario.isolated_transfers is None
        else "95 %; times are based on independent transfers, and other metrics on batches",
    }
    answer.seed, answer.replications = scenario.run.seed, scenario.run.replications
    # Each isolated transfer begins from the initial state and needs no warm-up.
    if scenario.isolated_transfers is None:
        answer.warmup_s, answer.warmup_rule = warmup.seconds, warmup.rule
    settling = answer.warmup_s or 0.0
    answer.measured_s = sum(now / NS_PER_SECOND - settling for now, _ in run.clocks())
    return answer


def _advance_run(run: _native.Simulation, **how: Any) -> EndReason:
    """Advance a run and return how it ended, including exhausted memory."""
    try:
        return run.advance(**how)
    except OutOfMemoryError as full:
        return full


def _run_to_precision(
    scenario: Scenario,
    run: _native.Simulation,
    advance: Callable[..., EndReason],
    warmup: _WarmUpResult,
    clock: WallTimeLimit,
) -> tuple[EndReason, Snapshot, Estimates]:
    """Run for the requested length, then continue until the precision is reached."""
    targets = scenario.run.precision or {}
    first = length = _requested_run_length(scenario, warmup.seconds)
    ended = warmup.ended
    while True:
        if ended == RUN_DONE:
            goal = _run_limit(scenario, warmup.seconds, length)
            ended = advance(**goal, max_wall_s=clock.remaining_s())
        snapshot = read_snapshot(scenario, run)
        estimates = reliability.add_interval_warnings(
            scenario, snapshot, metric_estimates.estimate_metrics(scenario, snapshot)
        )
        longer = statistics.required_run_length(length, estimates, targets) if targets else None
        if ended != RUN_DONE or longer is None:
            return ended, snapshot, estimates
        # Runs with few events end before the simulator checks its time limit.
        if clock.remaining_s() == 0:
            return RUN_OUT_OF_TIME, snapshot, estimates
        if _has_reached_maximum_time(run) or (clock.deadline is None and longer > 1000 * first):
            return "out-of-patience", snapshot, estimates
        length = longer


def _requested_run_length(scenario: Scenario, warmup_s: float) -> float:
    """Return the requested length: transfers, or seconds after the warm-up."""
    if scenario.isolated_transfers is not None:
        return scenario.isolated_transfers.total
    return scenario.run.transfers or (scenario.run.duration_s or MAX_RUN_S) - warmup_s


def _run_limit(scenario: Scenario, warmup_s: float, length: float) -> dict[str, Any]:
    if scenario.isolated_transfers is not None:
        sizes = len(scenario.isolated_transfers.sizes or [])
        transfers = sizes * math.ceil(length / sizes)
        return {"transfers": transfers, "until_ns": round(MAX_RUN_S * NS_PER_SECOND)}
    if scenario.run.transfers is not None:
        return {"transfers": math.ceil(length), "until_ns": round(MAX_RUN_S * NS_PER_SECOND)}
    until_s = min(warmup_s + length, MAX_RUN_S)
    return {"transfers": None, "until_ns": round(until_s * NS_PER_SECOND)}


def _find_warm_up(
    scenario: Scenario, options: RunOptions, clock: WallTimeLimit, configure: Configure
) -> _WarmUpResult:
    """Return the warm-up of the scenario, or determine it by MSER-5 on a pilot run.

    MSER-5 is first applied while the pilot run is short, to detect a short transient. It is applied
    again at each doubling of the run, until the end that it finds is in the first half of the run.
    The latest end of all checks is used. The pilot run uses the random streams of the first
    replication, so it has the same transient.
    """
    if scenario.run.warmup_s is not None:
        return _WarmUpResult(scenario.run.warmup_s, "given")
    run = _native.Simulation(configure(scenario, 0.0), 1)
    whole = _requested_run_length(scenario, 0.0)
    watch = MemoryWatch(configure(scenario, 0.0), 1, None)
    enough = MIN_PILOT_SHARE if len(scenario.populations) == 1 else MIN_PILOT_SHARE_OF_CLASSES
    latest, is_found = 0.0, False
    for share in PILOT_SHARES:
        goal = _run_limit(scenario, 0.0, share * whole)
        ended = _advance_run(run, **goal, threads=1, max_wall_s=clock.remaining_s(), progress=watch)
        if options.progress is not None:
            options.progress(0.0)
        slot_s, series = metric_estimates.warm_up_series(run, scenario)
        if not series or series[0].size < MIN_MSER_SLOTS:
            end = None
        else:
            ends = [statistics.mser5(each) for each in series]
            end = (
                slot_s * max(end.index for end in ends)
                if all(end.is_found for end in ends)
                else None
            )
        if end is not None:
            latest, is_found = max(latest, end), share >= enough
        if is_found or ended != RUN_DONE:
            break
    watched = (
        "the bottleneck queue and the classes"
        if len(scenario.populations) > 1
        else "the bottleneck queue"
    )
    return _WarmUpResult(round(latest, 9), f"MSER-5 on {watched}", is_found, ended)


WARM_UP_NOT_FOUND_NOTE = Note(
    "the run is too short to determine the end of its warm-up (MSER-5); make the run longer, "
    "or set run.warmup",
    kind="run",
)


def _has_reached_maximum_time(run: _native.Simulation) -> bool:
    return any(now >= MAX_RUN_S * NS_PER_SECOND for now, _ in run.clocks())


def check_packet_sizes(scenario: Scenario) -> None:
    """Raise NotApplicable if the simulator needs packets of one size for the scenario."""
    keys = [f"class.{name}.packet" for name in scenario.packet_size_classes]
    if keys and scenario.has_loss_feedback:
        raise NotApplicable(
            f"{keys[0]}: max-plus-reno supports only packets of one size",
            Suggestion(changes_to_set_stack(scenario, "rfc-newreno")),
            Suggestion(dict.fromkeys(keys)),
        )
