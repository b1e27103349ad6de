"""Table 1: the rules of the senders, and the effect of Linux's rules on the Linux host's traces."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tcpcast_papers.pftk.hours import hour_job
from tcpcast_papers.pftk.paths import (
    INDEPENDENT,
    REST_OF_ROUND,
    path_of_printed_trace,
    simulated_windows,
)
from tcpcast_papers.pftk.predictions import fitted_windows
from tcpcast_papers.pftk.published import table_of_hosts, traces

if TYPE_CHECKING:
    import pathlib
    from collections.abc import Iterator

    from tcpcast_papers.pftk.published import Trace
    from tcpcast_papers.pftk.runs import Runs, SimulatedTrace
    from tcpcast_papers.reproduction import Section
    from tcpcast_papers.simulations import Job

RENO_DUPLICATES = 3
"""Duplicate acks that indicate a loss to Reno."""
LOSS_KINDS = (INDEPENDENT, REST_OF_ROUND)


def request(runs: Runs) -> list[tuple[Trace, str, tuple[Job[SimulatedTrace], ...]]]:
    """Request and return simulations of traces whose sender has another threshold than Reno.

    Each trace and kind of loss has two simulations: with the sender's threshold, and with Reno's.
    """
    result: list[tuple[Trace, str, tuple[Job[SimulatedTrace], ...]]] = []
    windows = simulated_windows(fitted_windows(traces(2)))
    for loss in LOSS_KINDS:
        for row, window in zip(traces(2), windows, strict=True):
            path = path_of_printed_trace(row, loss, window)
            if path.duplicate_threshold != RENO_DUPLICATES:
                reno = replace(path, duplicate_threshold=RENO_DUPLICATES)
                jobs = tuple(runs.request(hour_job(runs, row, each)) for each in (path, reno))
                result.append((row, loss, jobs))
    return result


def _section(runs: Runs, _: pathlib.Path) -> Section:
    title = "Table 1. The rules of the senders"
    section = runs.section(title, ("trace", "loss", "share of timeouts with"))
    for row, loss, jobs in request(runs):
        note = f"{100 * row.timeout_share:.0f} % in Table 2"
        for rule, job in zip(("the sender's threshold", "three duplicates"), jobs, strict=True):
            label = (row.name, loss, rule)
            rows = runs.value(label, "%", _timeout_percent, runs, job)
            section.rows += [replace(each, note=note) for each in rows]
    section.remarks = [*_rule_remarks(), _REMARK]
    return section


def _timeout_percent(runs: Runs, job: Job[SimulatedTrace]) -> float:
    seen = runs[job].pieces
    return 100 * float(np.sum(seen.sequences) / np.sum(seen.loss_indications))


_REMARK = (
    "Traces from a Linux host are simulated with a threshold of two duplicate acks, and for "
    "comparison with three. The note contains the published share of timeouts, TO / (TD + TO). The "
    "paper does not describe the losses of its paths, so the share has no verdict."
)


def _rule_remarks() -> Iterator[str]:
    senders = {row.line["sender"] for number in (2, 3) for row in traces(number)}
    for sender in sorted(senders):
        line = table_of_hosts().line_with(host=sender)
        yield (
            f"{sender} ({line['system']}): {line['recovery']}, {line['duplicate_threshold']} "
            f"duplicate acks, timeouts up to {line['longest_backoff']} times the first."
        )
    tahoe = [line["host"] for line in table_of_hosts() if line["recovery"] == "tahoe"]
    yield (
        f"The hosts with Tahoe (SunOS 4), {', '.join(tahoe)}, only receive in Tables 2 and 3, so "
        "Tahoe has no effect there."
    )


SECTIONS = (_section,)
