"""Fixed points compared with the paper's tables, which contain results of fixed-point schemes.

Each scheme runs once per seed. A row has the mean of its reference flows over the seeds, with an
interval over the seeds, next to the simulation of every flow.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from tcpcast import statistics
from tcpcast.answer import Metric

from tcpcast_papers.fixed_point.ftp import COLUMNS, RELATIVE_TOLERANCE, ftp_job
from tcpcast_papers.fixed_point.measures import (
    QUANTITY_LABELS,
    WITHOUT_OWN_LINK,
    measure_quantity,
    queueing_rtt_s,
    tolerance_of_value,
    value_or_none,
)
from tcpcast_papers.fixed_point.published import POPULATIONS, TABLE_OF_CASE, published_table
from tcpcast_papers.fixed_point.runs import fixed_point_job, reference_flows
from tcpcast_papers.fixed_point.settings import LocalLoop
from tcpcast_papers.fixed_point.tables import (
    SPREADS,
    VARIANCE_TOLERANCE,
    loop_job,
    size_and_off_time_job,
)
from tcpcast_papers.fixed_point.tables import TOLERANCE as LOOP_TOLERANCE
from tcpcast_papers.reproduction import Cause, NotSelected, Row, Section

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast.answer import Answer

    from tcpcast_papers.fixed_point.runs import Job, Runs, SampleSizes
    from tcpcast_papers.reproduction import Printed

TOLERANCES = {1: RELATIVE_TOLERANCE, 2: RELATIVE_TOLERANCE, 6: VARIANCE_TOLERANCE}
"""Relative tolerances per table, as for every flow; other tables have that of Tables 3 to 5."""


BACKBONE_TABLES = (4, 5)
"""Tables with a backbone router, whose losses a fixed point does not report."""


def _jobs_of_table(number: int, sample_sizes: SampleSizes) -> dict[str, Job]:
    """Return the simulation of every flow for each column of a table."""
    if number in COLUMNS:
        return {
            column.name: ftp_job(column.setting, sample_sizes)
            for column in COLUMNS[number]
            if column.checked
        }
    if number == 6:
        return {column: size_and_off_time_job(column, sample_sizes) for column in SPREADS}
    (case,) = (case for case, of in TABLE_OF_CASE.items() if of == number)
    return {str(sources): loop_job(case, sources, sample_sizes) for sources in POPULATIONS}


def _jobs_of_seeds(runs: Runs, job: Job, scheme: str) -> list[Job]:
    one = fixed_point_job(job, runs.sample_sizes, scheme)
    return [replace(one, seed=seed) for seed in runs.sample_sizes.seeds]


def request(runs: Runs) -> None:
    """Request every scheme of every column, once per seed."""
    for number, schemes in runs.sample_sizes.scheme_tables.items():
        for job in _jobs_of_table(number, runs.sample_sizes).values():
            runs.request(job)
            for scheme in schemes:
                for each in _jobs_of_seeds(runs, job, scheme):
                    runs.request(each)


_BACKBONE_REMARK = [
    (
        "The fixed point reports losses of the shared router only, so this table omits loss and "
        "send rate."
    )
]


def _section(runs: Runs, _: Path, *, number: int) -> Section:
    if number not in runs.sample_sizes.scheme_tables:
        raise NotSelected
    section = runs.section(
        f"Schemes of Table {number}",
        ("quantity", "column", "scheme"),
        others=("every flow", "failed tests"),
    )
    jobs = _jobs_of_table(number, runs.sample_sizes)
    for line in published_table(number):
        if number in BACKBONE_TABLES and line["quantity"] in {"loss", "send_rate"}:
            continue
        for column, job in jobs.items():
            if (printed := line.printed(column)) is None:
                continue
            relative = TOLERANCES.get(number, LOOP_TOLERANCE)
            tolerance = tolerance_of_value(line["quantity"], printed, relative)
            for scheme in runs.sample_sizes.scheme_tables[number]:
                label = (QUANTITY_LABELS[line["quantity"]][0], column, scheme)
                compute = partial(_scheme_row, runs, line["quantity"], label, job, printed)
                section.rows += [
                    replace(row, tolerance=tolerance) for row in runs.row(label, compute)
                ]
    section.remarks = [
        "The column *own* contains means of the reference flows over runs with different seeds, "
        "with 95 % intervals over the seeds. *Failed tests* is the mean number of failed tests of "
        "section 5.4.",
        *_BACKBONE_REMARK * (number in BACKBONE_TABLES),
    ]
    return section


def _scheme_row(
    runs: Runs, quantity: str, label: tuple[str, ...], job: Job, printed: Printed | None
) -> Row | None:
    """Return the row of a scheme without its tolerance; None if it has no such quantity."""
    answers = [runs[each] for each in _jobs_of_seeds(runs, job, label[-1])]
    metric = mean_over_seeds(quantity, answers, job.setting.flows)
    if metric is None:
        return None
    exact = measure_quantity(quantity, runs[job], job.setting.flows)
    row = Row.from_metric(label, QUANTITY_LABELS[quantity][1], printed, metric)
    without = queueing_rtt_s(runs[job]) if quantity == "rtt" and is_one_queue(job) else None
    if without is not None and exact is not None:
        own_link = metric.value - (exact.value - without)
        row = replace(row, explained_by=Cause(WITHOUT_OWN_LINK, own_link))
    tests = [each.tables.get("convergence") for each in answers]
    return replace(
        row,
        others=(
            value_or_none(exact),
            float(np.mean([(~each["passed"]).sum() for each in tests if each is not None])),
        ),
    )


def is_one_queue(job: Job) -> bool:
    """Return whether a path has no queue except the shared router's and the source's own."""
    return isinstance(job.setting, LocalLoop) and job.setting.noise is None


def mean_over_seeds(quantity: str, answers: list[Answer], flows: int) -> Metric | None:
    """Return the mean of a quantity over answers with different seeds, and its interval."""
    metrics = [measure_quantity(quantity, reference_flows(each), flows) for each in answers]
    values = np.array([metric.value for metric in metrics if metric is not None])
    if not values.size:
        return None
    estimate = (
        statistics.estimate_mean(values, replications=values.size) if values.size > 1 else None
    )
    mean = float(values.mean())
    if estimate is None:
        return Metric(mean, interval_warning="one seed")
    return Metric(mean, mean - estimate.half_width, mean + estimate.half_width)


SECTIONS = tuple(partial(_section, number=number) for number in range(1, 7))
