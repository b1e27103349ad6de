"""Engine ``kernel``: measure a scenario with this machine's own TCP over an emulated link.

It uses real sockets in network namespaces, in real time. :mod:`.config` configures the process of
the link, and :mod:`.counters` converts the counters of the kernel and the link to the metrics of
the packet engine.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import tcpcast
from tcpcast import statistics
from tcpcast.answer import Answer, Note, Status
from tcpcast.emulation.traffic import LATENESS_BINS_S, TrafficOutcome, run_traffic
from tcpcast.engines.kernel.config import (
    estimate_replication_s,
    raise_if_unsupported,
    run_arguments,
)
from tcpcast.engines.kernel.counters import (
    MAX_LIMITED_SHARE,
    FinishedFiles,
    MeasuredCounters,
    MeasuredNetwork,
    isolated_transfer_results,
)
from tcpcast.engines.packet import (
    WARM_UP_NOT_FOUND_NOTE,
    metric_estimates,
    notes,
    time_series,
)
from tcpcast.engines.packet.capture_files import check_capture_file, resolve_capture_path
from tcpcast.engines.packet.configuration import is_without_tcp, make_configuration
from tcpcast.process import output
from tcpcast.process.errors import MachineError, NotApplicable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tcpcast.emulation.traffic import TrafficOutcome
    from tcpcast.engines.options import RunOptions
    from tcpcast.scenario import Scenario

MAX_LATE_RUN_S = 3.0
"""Time after which a late run ends, unless lateness is accepted."""

LATE_PACKET_S, MAX_LATE_SHARE = 2e-4, 1e-3
"""Lateness of a packet in seconds, and the maximum share of packets with more than this lateness.
With a larger share, the rate samples of BBR are too high."""

MAX_PAUSED_SHARE = 2e-3
"""If the link's clock was paused for a larger share of the time, BBR's queue is too long."""

MIN_SNAPSHOTS = 3
"""Minimum number of snapshots of an incomplete run for results."""


def estimate_duration_s(scenario: Scenario) -> float:
    """Return the approximate duration of a run, in seconds."""
    return scenario.run.replications * estimate_replication_s(scenario)


def kernel(scenario: Scenario, options: RunOptions) -> Answer:
    """Measure a scenario with the TCP of this machine's kernel.

    Parameters
    ----------
    scenario
        Any traffic over one bottleneck, hops, or links with routes.
    options
        Progress, deadline.

    Returns
    -------
    Answer
        The measurable metrics of ``packet``, with the same names. If the machine was too busy to
        keep the link's timing, they are untrusted and have no intervals, and a warning contains the
        size of the error; the run ends early with ``machine_fault``, unless
        ``options.accept_late``. A measurement is not reproducible: the same seed gives the same
        random losses, but another answer.

    Raises
    ------
    NotApplicable
        Keys that the kernel or the link does not support; a machine that cannot emulate links.
    """
    raise_if_unsupported(scenario)
    runs = _ReplicationRunner(scenario, options)
    with _temporary_capture_path(scenario, options) as place:
        outcomes = runs.run_all(place)
    answer = Answer("kernel", kind="measurement", replications=scenario.run.replications)
    answer.seed = scenario.run.seed
    counts = [outcome.lateness for outcome in outcomes]
    answer.provenance = {
        "version": tcpcast.__version__,
        "scenario": scenario.digest(),
        "kernel": " ".join((os.uname().sysname, os.uname().release)),
        "device": next((o.device for o in outcomes if o.device), None),
        "lateness_up_to_s": list(LATENESS_BINS_S),
        "lateness_packets": [sum(column) for column in zip(*counts, strict=True)],
        "link": [o.final_report for o in outcomes],
        "interval": "95 %, batches of all replications, long-run variance by cosine weights",
    }
    stop_reason = outcomes[-1].stop_reason
    if stop_reason == "interrupted":
        finished = "interrupted: the results cover only the finished part"
        answer.mark_incomplete(finished, Status.INTERRUPTED)
    elif stop_reason is not None:
        answer.mark_incomplete(stop_reason)
    if scenario.isolated_transfers is not None:
        files = [FinishedFiles(scenario, outcome, -1) for outcome in outcomes]
        times, answer.tables = isolated_transfer_results(scenario, files)
        answer.metrics = metric_estimates.convert_to_metrics(times)
    else:
        complete = [o for o in outcomes if len(o.snapshots) >= MIN_SNAPSHOTS]
        if complete:
            network = MeasuredNetwork.of(make_configuration(scenario, 0.0))
            counted = MeasuredCounters(scenario, network, complete)
            estimates = counted.estimates()
            answer.metrics = metric_estimates.convert_to_metrics(estimates)
            answer.tables = counted.tables()
            if options.over_time:
                rows = counted.snapshot.time_series
                answer.tables |= time_series.series_tables(scenario, rows)
            answer.measured_s = counted.measured_s
            is_given = scenario.run.warmup_s is not None
            answer.warmup_s = round(max(counted.warm_ups_s), 3)
            answer.warmup_rule = "given" if is_given else "MSER-5 on the bottleneck queue"
            if not counted.found_warm_up:
                answer.notes.append(WARM_UP_NOT_FOUND_NOTE)
            answer.notes += notes.make_interval_notes(
                estimates, counted.snapshot, answer.tables.get("by_class", {})
            )
            limited = counted.time_share_limited_by_hosts()
            if limited > MAX_LIMITED_SHARE:
                answer.warn(
                    "a socket buffer, not the network, limited the flows for "
                    f"{limited:.1%} of the time",
                    kind="model",
                )
            missing = statistics.unmet_precision(estimates, scenario.run.precision or {})
            if missing and answer.status is Status.DONE:
                shortfall = "; ".join(f"{name}: {why}" for name, why in missing.items())
                answer.mark_incomplete(f"run.precision was not reached ({shortfall})")
    if any(outcome.distortion is not None for outcome in outcomes):
        reason = next(outcome.distortion for outcome in outcomes if outcome.distortion is not None)
        rtt_s = min(group.rtt_s for group in scenario.populations)
        reports = [outcome.punctuality for outcome in outcomes if outcome.punctuality]
        elapsed, away, late = (
            sum(report[key] for report in reports) for key in ("elapsed_ns", "away_ns", "late_ns")
        )
        packets = sum(sum(outcome.lateness) for outcome in outcomes)
        held = float(rtt_s * away / max(elapsed - away, 1) + 2e-9 * late / max(packets, 1))
        size = (
            f"this machine delayed packets by a mean of {held * 1000:.2g} ms per RTT. Rates, "
            f"times and delays may be wrong by {held / rtt_s:.1%}, the ratio of this added delay "
            "to the RTT"
        )
        answer.mark_untrusted(f"{LATE_LINK_LABEL}: {reason}")
        # Other notes concern intervals, which are left out.
        answer.notes = [Note(f"{reason}: {size}", kind="run")]
        if not options.accept_late and not answer.interrupted:
            answer.status = Status.MACHINE_BUSY
            answer.reason = (
                "this machine was too busy for the timing of the link; repeat the run, lower "
                f"{scenario.measured.key}.rate, or use --accept-late"
            )
    if scenario.isolated_transfers is None:
        answer.notes = [*warn_about_bbr(scenario, answer.provenance), *answer.notes]
    answer.notes += [
        Note(f"the capture is incomplete: {outcome.capture_fault}", kind="remark")
        for outcome in outcomes
        if outcome.capture_fault
    ]
    return answer


@contextmanager
def _temporary_capture_path(scenario: Scenario, options: RunOptions) -> Iterator[str | None]:
    """Yield the temporary path for the capture of the first replication, None if not requested.

    The file name ends in ``-kernel``, so that it does not overwrite the packet engine's capture.
    """
    if not scenario.probes.pcap:
        yield None
        return
    file = resolve_capture_path(scenario, scenario.probes.pcap[0].file)
    file = file.with_stem(f"{file.stem}-kernel")
    check_capture_file(scenario, file, force=options.force)
    with output.atomic_file(file, force=options.force) as new:
        yield str(new)


class _ReplicationRunner:
    """Runs the replications sequentially, with progress and a deadline."""

    def __init__(self, scenario: Scenario, options: RunOptions) -> None:
        self._scenario, self._options = scenario, options
        self._deadline = options.compute_deadline(scenario)
        self._done = 0

    def run_all(self, capture: str | None) -> list[TrafficOutcome]:
        """Run all replications, until one is incomplete or distorted."""
        outcomes: list[TrafficOutcome] = []
        for number in range(self._scenario.run.replications):
            self._done = number
            arguments = run_arguments(self._scenario, number)
            if capture is not None and number == 0:
                side = {"sender": "near", "receiver": "far"}
                arguments["capture"] = (side[self._scenario.probes.pcap[0].link], capture)
            try:
                outcomes.append(run_traffic(arguments, self._report_progress))
            except MachineError as error:
                raise NotApplicable(f"this machine cannot emulate the link: {error}") from error
            if outcomes[-1].stop_reason is not None or self._is_too_late(outcomes[-1]):
                break
        return outcomes

    def _is_too_late(self, outcome: TrafficOutcome) -> bool:
        return outcome.distortion is not None and not self._options.accept_late

    def _report_progress(self, outcome: TrafficOutcome) -> str | None:
        """Report the progress; return the reason to end the run early, if any."""
        scenario, isolated = self._scenario, self._scenario.isolated_transfers
        if isolated is not None:
            part = len(outcome.transfers) / isolated.total
        else:
            times = [
                snapshot["now_ns"]
                for snapshot in outcome.snapshots[:: len(outcome.snapshots) - 1 or 1]
            ]
            part = (
                (times[-1] - times[0]) * 1e-9 / estimate_replication_s(scenario) if times else 0.0
            )
        if self._options.progress is not None:
            self._options.progress((self._done + min(part, 1.0)) / scenario.run.replications)
        if self._deadline is not None and time.perf_counter() > self._deadline:
            return "run.max_wall was reached before the end of the run"
        if outcome.punctuality.get("elapsed_ns", 0) > MAX_LATE_RUN_S * 1e9:
            return outcome.distortion if self._is_too_late(outcome) else None
        return None


def warn_about_bbr(scenario: Scenario, provenance: Mapping[str, Any]) -> list[Note]:
    """Warn about BBR's queue if the link was late, but too little to distort other stacks.

    BBR's bandwidth is the largest delivery rate in ten RTTs, each measured over about one RTT.
    Late ACKs that arrive together shorten the measurement by their lateness. While the link's
    clock is paused, ACKs and queued packets wait, but pacing continues.
    """
    rtts = [
        group.rtt_s
        for group in scenario.populations
        if group.tcp.control == "bbr" and not is_without_tcp(group)
    ]
    if not rtts:
        return []
    causes = [
        *_warn_about_raised_rate_samples(min(rtts), provenance["lateness_packets"]),
        *_warn_about_pacing_in_pauses(provenance["link"]),
    ]
    ends = (
        "the queueing delays, RTT and losses of BBR are therefore too large; repeat the run on an "
        "idle machine"
    )
    return [Note(f"bbr: {'; '.join(causes)}; {ends}", kind="check")] if causes else []


def _warn_about_raised_rate_samples(rtt_s: float, lateness: Sequence[int]) -> Iterator[str]:
    """Yield a message if late ACKs increase a rate sample of BBR, with the amount."""
    total = sum(lateness)
    beyond = [sum(lateness[at + 1 :]) for at in range(len(LATENESS_BINS_S))]
    bursts = beyond[LATENESS_BINS_S.index(LATE_PACKET_S)]
    if bursts <= MAX_LATE_SHARE * total:
        return
    rare = (
        end for end, n in zip(LATENESS_BINS_S, beyond, strict=True) if n <= MAX_LATE_SHARE * total
    )
    late_s = next(rare, LATENESS_BINS_S[-1])
    yield (
        f"{bursts / total:.1%} of the packets were more than {LATE_PACKET_S * 1000:g} ms late. "
        f"ACKs that are {late_s * 1000:g} ms late increase BBR's bandwidth estimate (the largest "
        f"rate sample) by up to {late_s / max(rtt_s - late_s, late_s):.1%}"
    )


def _warn_about_pacing_in_pauses(links: Sequence[Mapping[str, int] | None]) -> Iterator[str]:
    """Yield a message with the time in which BBR's pacing continued while the link was paused."""
    reports = [link for link in links if link is not None]
    away, elapsed, pauses = (
        sum(link[key] for link in reports) for key in ("away_ns", "elapsed_ns", "pauses")
    )
    if away > MAX_PAUSED_SHARE * elapsed:
        yield (
            f"the link was paused for {away / elapsed:.1%} of the time "
            f"({away / pauses * 1e-6:.1f} ms per pause on average), but BBR's pacing continued. "
            "Each pause increased the queueing delay by the duration of the pause"
        )


LATE_LINK_LABEL = "late link"
"""Text instead of an interval."""
