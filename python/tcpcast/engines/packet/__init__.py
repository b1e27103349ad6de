"""Engine ``packet``: exact packet-level simulation.

The scenario becomes plain numbers (:mod:`.configuration`), the native simulator runs them
(this module: warm-up, length, precision), its sums become metrics (:mod:`.metric_estimates`) and tables
(:mod:`.tables`).
"""

from __future__ import annotations

import functools
import math
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tcpcast
from tcpcast import _native, statistics
from tcpcast.answer import Answer, Note, Status
from tcpcast.engines.packet import (
    cross,
    delivered,
    goodputs,
    interval_notes,
    metric_estimates,
    model_notes,
    own_packets,
    reliability,
    tables,
    time_series,
)
from tcpcast.engines.packet.captures import Captures, check_captures
from tcpcast.engines.packet.configuration import configuration
from tcpcast.engines.packet.memory import OutOfMemoryError, Watch, check_memory
from tcpcast.engines.packet.steady_state import unsettled
from tcpcast.errors import NotApplicable, Suggestion

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcpcast.engines import RunOptions
    from tcpcast.engines.packet.config_types import Config
    from tcpcast.scenario import Scenario

    Configure = Callable[[Scenario, float], Config]

SECOND = 1_000_000_000
LONGEST_RUN_S = 2.0e9
"""No run goes on for longer than this in virtual time, whatever it waits for."""

MOST_HEARD_AT_ONCE = 0.5
"""More losses than this, where they are heard of at once, are the sender's own doing."""

PILOT_SHARES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
"""Lengths of the pilot run that looks for the end of the warm-up, as shares of the run."""

PILOT_ENOUGH, PILOT_ENOUGH_OF_CLASSES = 1 / 16, 1 / 4
"""A pilot run that is shorter than this is not the last word. The shares of classes drift slowly,
and the start of a slow drift looks like a steady state."""

MSER_FEWEST = 50
"""MSER-5 wants at least so many slots."""

DONE = "done"
OUT_OF_TIME = "out-of-time"
STOPPED = "stopped "


@dataclass(slots=True)
class Clock:
    """What is left of the time that the user allows, until ``deadline`` (None: no end of it)."""

    deadline: float | None

    def left(self) -> float | None:
        """Return the seconds that are left, None where there is no end of them."""
        return None if self.deadline is None else max(0.0, self.deadline - time.perf_counter())


@dataclass(frozen=True, slots=True)
class _WarmUp:
    seconds: float
    rule: str
    found: bool = True
    ended: str = DONE


def check(scenario: Scenario) -> None:
    """Raise NotApplicable for a capture, and for more sources than memory is free for."""
    _refuse_capture(scenario)
    own_packets.check(scenario)
    check_memory(scenario, configuration(scenario, 0.0))


def _refuse_capture(scenario: Scenario) -> None:
    if scenario.captured is not None:
        raise NotApplicable(
            'traffic of kind "capture" is measured, not simulated; for a scenario of it, run '
            f"tcpcast trace {scenario.captured.file} --scenario NAME.toml",
            Suggestion(engine="trace"),
        )


def packet(scenario: Scenario, options: RunOptions) -> Answer:
    """Answer a scenario by packet-level simulation.

    Parameters
    ----------
    scenario
        Any scenario but a capture; one that nothing limits, or that has no end, is refused when it
        is read.
    options
        Threads and progress; neither changes a figure.

    Returns
    -------
    Answer
        Every metric with a 95 % interval (see ``statistics.py``), tables, and in ``provenance``
        the warm-up with the rule that gave it, and the number of units behind the intervals.

    Raises
    ------
    MachineError
        A capture file cannot be written; found before the simulation. After it, the answer says so
        in ``write_errors``.
    TcpcastError
        A capture file exists, and ``options.force`` is not set.
    NotApplicable
        Traffic of kind ``capture``; more sources or replications than memory is free for.
    """
    _refuse_capture(scenario)
    own_packets.check(scenario)
    if not options.over_time:
        return simulated(scenario, options, configuration)
    return simulated(scenario, options, time_series.configuration_over_time)


def simulated(scenario: Scenario, options: RunOptions, configure: Configure) -> Answer:
    """Answer a scenario with a configuration of the simulator.

    Parameters
    ----------
    scenario, options
        See :func:`packet`.
    configure
        Makes the simulator's configuration of the scenario and the length of the warm-up in
        seconds, as :func:`.configuration.configuration` does.

    Returns
    -------
    Answer
        See :func:`packet`.
    """
    check_captures(scenario, options)
    clock = Clock(options.ends_at(scenario))
    check_memory(scenario, configure(scenario, 0.0))
    warmup = _warm_up(scenario, options, clock, configure)
    config = configure(scenario, warmup.seconds)
    run = _native.Simulation(config, scenario.run.replications)
    threads = options.threads or os.cpu_count() or 1
    watch = Watch(config, scenario.run.replications, options.progress)
    advance = functools.partial(_advance, run, threads=threads, progress=watch)
    with Captures(scenario, run, options) as captures:
        ended, seen, estimates = _to_precision(scenario, run, advance, warmup, clock)
        answer = Answer("packet", kind="simulation", metrics=metric_estimates.metrics(estimates))
        answer.tables = tables.tables(scenario, seen) if options.tables else {}
        answer.notes = _warm_up_warnings(warmup)
        answer.notes += _interval_warnings(scenario, seen, estimates, answer.tables)
        answer.notes += cross.warnings(scenario, run.clocks())
        answer.warn(*_loss_warnings(scenario, seen))
        answer.notes += model_notes.notes(scenario, seen)
        _say_how_it_ended(answer, scenario, ended, estimates, run)
        _say_if_unsettled(answer, scenario, seen, run)
        _add_traces(answer, scenario, run)
        if config["probes"]["course"]:
            answer.tables |= time_series.tables(scenario, run)
        _add_delivered(answer, scenario, run)
        captures.put(answer)
    answer.provenance = _provenance(scenario, run, estimates)
    answer.seed, answer.replications = scenario.run.seed, scenario.run.replications
    # Each transfer that is alone is from fresh state, so there is nothing to warm up.
    if scenario.isolated_transfers is None:
        answer.warmup_s, answer.warmup_rule = warmup.seconds, warmup.rule
    settling = answer.warmup_s or 0.0
    answer.measured_s = sum(now / SECOND - settling for now, _ in run.clocks())
    return answer


def _advance(run: _native.Simulation, **how: Any) -> str:
    """Advance a run; how it ended, for want of memory too."""
    try:
        return run.advance(**how)
    except OutOfMemoryError as full:
        return str(full)


def _to_precision(
    scenario: Scenario,
    run: _native.Simulation,
    advance: Callable[..., str],
    warmup: _WarmUp,
    clock: Clock,
) -> tuple[str, metric_estimates.Snapshot, metric_estimates.Estimates]:
    """Run to the length asked for, then on until the precision is reached."""
    targets = scenario.run.precision or {}
    first = length = _first_length(scenario, warmup.seconds)
    ended = warmup.ended
    while True:
        if ended == DONE:
            goal = _goal(scenario, warmup.seconds, length)
            ended = advance(**goal, max_wall_s=clock.left())
        seen = metric_estimates.snapshot(scenario, run)
        estimates = reliability.judged(scenario, seen, metric_estimates.estimates(scenario, seen))
        longer = statistics.next_length(length, estimates, targets) if targets else None
        if ended != DONE or longer is None:
            return ended, seen, estimates
        # A run in which little happens is over before the simulator checks its time limit.
        if clock.left() == 0:
            return OUT_OF_TIME, seen, estimates
        if _is_longest(run) or (clock.deadline is None and longer > 1000 * first):
            return "out-of-patience", seen, estimates
        length = longer


def _first_length(scenario: Scenario, warmup_s: float) -> float:
    """Return what a run is asked to count: transfers, or seconds after the warm-up."""
    if scenario.isolated_transfers is not None:
        return scenario.isolated_transfers.total
    return scenario.run.transfers or (scenario.run.duration_s or LONGEST_RUN_S) - warmup_s


def _goal(scenario: Scenario, warmup_s: float, length: float) -> dict[str, Any]:
    if scenario.isolated_transfers is not None:
        sizes = len(scenario.isolated_transfers.sizes or [])
        transfers = sizes * math.ceil(length / sizes)
        return {"transfers": transfers, "until_ns": round(LONGEST_RUN_S * SECOND)}
    if scenario.run.transfers is not None:
        return {"transfers": math.ceil(length), "until_ns": round(LONGEST_RUN_S * SECOND)}
    until_s = min(warmup_s + length, LONGEST_RUN_S)
    return {"transfers": None, "until_ns": round(until_s * SECOND)}


def _warm_up(
    scenario: Scenario, options: RunOptions, clock: Clock, configure: Configure
) -> _WarmUp:
    """Take the warm-up from the scenario, or find it by MSER-5 on a pilot run.

    A pilot run is looked at when it is short, so that a short transient shows, and again and again
    as it doubles, until MSER-5 cuts it in its first half; of the ends found on the way the latest
    counts. It has the streams of the first replication, so that it sees that one's transient.
    """
    if scenario.run.warmup_s is not None:
        return _WarmUp(scenario.run.warmup_s, "given")
    run = _native.Simulation(configure(scenario, 0.0), 1)
    whole = _first_length(scenario, 0.0)
    watch = Watch(configure(scenario, 0.0), 1, None)
    enough = PILOT_ENOUGH if len(scenario.populations) == 1 else PILOT_ENOUGH_OF_CLASSES
    latest, found = 0.0, False
    for share in PILOT_SHARES:
        goal = _goal(scenario, 0.0, share * whole)
        ended = _advance(run, **goal, threads=1, max_wall_s=clock.left(), progress=watch)
        if options.progress is not None:
            options.progress(0.0)
        end = _end_of_transient(run, scenario)
        if end is not None:
            latest, found = max(latest, end), share >= enough
        if found or ended != DONE:
            break
    watched = (
        "the bottleneck queue and the classes"
        if len(scenario.populations) > 1
        else "the bottleneck queue"
    )
    return _WarmUp(round(latest, 9), f"MSER-5 on {watched}", found, ended)


def _end_of_transient(run: _native.Simulation, scenario: Scenario) -> float | None:
    """Return the last of the ends that MSER-5 finds, in seconds; None if one is not found."""
    slot_s, series = metric_estimates.warm_up_series(run, scenario)
    if not series or series[0].size < MSER_FEWEST:
        return None
    ends = [statistics.mser5(each) for each in series]
    return slot_s * max(end.index for end in ends) if all(end.found for end in ends) else None


NO_WARM_UP = Note(
    "the run is too short to tell where its warm-up ends (MSER-5): make it longer, or give "
    "run.warmup",
    kind="run",
)


def _warm_up_warnings(warmup: _WarmUp) -> list[Note]:
    return [] if warmup.found else [NO_WARM_UP]


def _say_how_it_ended(
    answer: Answer,
    scenario: Scenario,
    ended: str,
    estimates: metric_estimates.Estimates,
    run: _native.Simulation,
) -> None:
    missing = statistics.unmet_precision(estimates, scenario.run.precision or {})
    shortfall = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
    if ended == "interrupted":
        answer.stop(
            "interrupted: the results are of the part that was finished", Status.INTERRUPTED
        )
    elif ended == OUT_OF_TIME:
        before = f"run.precision ({shortfall})" if shortfall else "the run was over"
        answer.stop(f"run.max_wall was reached before {before}")
    elif ended == "crowded":
        answer.stop(
            "stopped with a million transfers active at once: more arrive than complete; write a "
            "lower traffic.arrivals.rate, or a shorter run.duration"
        )
    elif ended.startswith(STOPPED):
        answer.stop(ended)
        answer.mark_untrusted()
    elif _never_ended(scenario, run):
        answer.stop("63 years were simulated, and the transfers were not complete")
    elif shortfall:
        reached = "63 simulated years" if _is_longest(run) else "1000 times the run"
        answer.stop(f"run.precision was not reached in {reached} ({shortfall})")
    clocks = run.clocks()
    if len(clocks) < scenario.run.replications:
        answer.stop(f"{len(clocks)} of {scenario.run.replications} replications were begun")
    if not all(measuring for _, measuring in clocks):
        answer.stop("before the warm-up was over")
        answer.mark_untrusted()


def _say_if_unsettled(
    answer: Answer, scenario: Scenario, seen: metric_estimates.Snapshot, run: _native.Simulation
) -> None:
    """Mark the values of endless flows that have not left their beginning: they are no answer."""
    why = unsettled(scenario, seen, run, answer)
    if why is not None:
        answer.stop(why)
        answer.mark_untrusted()


def _never_ended(scenario: Scenario, run: _native.Simulation) -> bool:
    counted = scenario.run.transfers is not None or scenario.isolated_transfers is not None
    return counted and _is_longest(run)


def _is_longest(run: _native.Simulation) -> bool:
    return any(now >= LONGEST_RUN_S * SECOND for now, _ in run.clocks())


def _add_traces(answer: Answer, scenario: Scenario, run: _native.Simulation) -> None:
    if not scenario.probes.flows:
        return
    traces = run.traces()
    answer.tables |= tables.traced(traces)
    answer.notes += tables.thinned(traces)


def _add_delivered(answer: Answer, scenario: Scenario, run: _native.Simulation) -> None:
    if scenario.run.report_at is None:
        return
    table = delivered.table(scenario, run.delivered())
    answer.tables |= {"delivered": table} if table else {}
    answer.notes += delivered.warnings(scenario, table)


def _interval_warnings(
    scenario: Scenario,
    seen: metric_estimates.Snapshot,
    estimates: metric_estimates.Estimates,
    known: dict[str, tables.Table],
) -> list[Note]:
    """Say which intervals are withheld or to be checked."""
    found = goodputs.quantiles(scenario, seen)
    quantiles = reliability.quantile_warnings(scenario, seen.units, found)
    return [*interval_notes.warnings(estimates, seen, known.get("by_class", {})), *quantiles]


def _loss_warnings(scenario: Scenario, seen: metric_estimates.Snapshot) -> list[str]:
    """Warn where instantaneous loss feedback makes retransmissions without end."""
    # Of the counts: a run in which hardly a file ends has no metric.
    dropped, arrived = (float(seen.units.of_class(of).sum()) for of in ("queue_drops", "arrived"))
    if not scenario.has_loss_feedback or dropped < MOST_HEARD_AT_ONCE * max(arrived, 1.0):
        return []
    return [
        'stack "max-plus-reno" has instantaneous loss feedback and retransmits at once: here '
        f"{dropped / arrived:.0%} of its packets are lost, because there are more flows than "
        'places in the buffer; write a larger buffer, or tcp.stack = "rfc-newreno", which '
        "waits for an RTO"
    ]


def _provenance(
    scenario: Scenario,
    run: _native.Simulation,
    estimates: metric_estimates.Estimates,
) -> dict[str, Any]:
    found = {
        "version": tcpcast.__version__,
        "scenario": scenario.digest(),
        "replications": scenario.run.replications,
        "simulated_s": [now / SECOND for now, _ in run.clocks()],
        "units": max((e.units for e in estimates.values() if e is not None), default=0),
        "interval": "95 %, batches of all replications, their long-run variance by cosines",
    }
    if scenario.isolated_transfers is None:
        return found
    return found | {"interval": "95 %, times over independent transfers; the rest over batches"}
