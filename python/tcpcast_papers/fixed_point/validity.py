"""Validity of the fixed point: each of its schemes compared with every flow."""

from __future__ import annotations

import math
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

from tcpcast_papers.fixed_point.measures import (
    QUANTITY_LABELS,
    failed_test_remarks,
    measure_quantity,
)
from tcpcast_papers.fixed_point.published import POPULATIONS
from tcpcast_papers.fixed_point.runs import fixed_point_answers, fixed_point_job
from tcpcast_papers.fixed_point.tables import loop_job
from tcpcast_papers.reproduction import Row, Section

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast.answer import Answer

    from tcpcast_papers.fixed_point.runs import Runs

MAX_ERRORS = {"loss": 0.1, "timeouts": 0.1, "rtt": 0.1, "goodput": 0.05, "g_95": 0.1, "g_50": 0.1}
"""Maximum error that the remarks call agreement, for each quantity."""
EVERY_FLOW = "every flow"


def request(runs: Runs) -> None:
    """Request each scheme for each population of Table 3."""
    for sources in POPULATIONS:
        job = loop_job(1, sources, runs.sample_sizes)
        runs.request(job)
        for scheme in runs.sample_sizes.schemes:
            runs.request(fixed_point_job(job, runs.sample_sizes, scheme))


def _section(runs: Runs, _: Path) -> Section:
    result = runs.section("Validity of the fixed point", ("quantity", "N", "of"))
    schemes = {f"scheme {scheme}": scheme for scheme in runs.sample_sizes.schemes}
    for quantity, sources, name in product(MAX_ERRORS, POPULATIONS, (EVERY_FLOW, *schemes)):
        label = (QUANTITY_LABELS[quantity][0], str(sources), name)
        compute = partial(_quantity_row, runs, quantity, label, schemes.get(name))
        result.rows += runs.row(label, compute)
    values = list(result.rows)
    for sources, name in product(POPULATIONS, schemes):
        label = ("failed tests of the fixed point", str(sources), name)
        result.rows += runs.value(label, "tests", _failed_tests, runs, sources, schemes[name])
    answers = {n: {name: _answer(runs, n, of) for name, of in schemes.items()} for n in POPULATIONS}
    result.remarks = [
        "Rows of a *scheme* are results of its reference flows (section 5.3), for the scenario of "
        "Table 3. They agree with the simulation of every flow if the error is at most 5 % for "
        "goodput and 10 % for other quantities.",
        *(line for name in schemes for line in _agreement_remarks(name, values)),
        *failed_test_remarks(
            {
                name.capitalize(): {f"N = {n}": each[name] for n, each in answers.items()}
                for name in schemes
            }
        ),
    ]
    return result


def _answer(runs: Runs, sources: int, scheme: str | None) -> Answer:
    """Return the fixed point of a scheme, or the simulation of every flow for None."""
    job = loop_job(1, sources, runs.sample_sizes)
    if scheme is None:
        return runs[job]
    (answer,) = fixed_point_answers(runs, job, [scheme]).values()
    return answer


def _quantity_row(runs: Runs, quantity: str, label: tuple[str, ...], scheme: str | None) -> Row:
    sources = int(label[1])
    answer = _answer(runs, sources, scheme)
    metric = measure_quantity(quantity, answer, sources)
    note = "failed its tests" * (answer.incomplete_reason is not None)
    return Row.from_metric(label, QUANTITY_LABELS[quantity][1], None, metric, note=note)


def _failed_tests(runs: Runs, sources: int, scheme: str) -> float | None:
    """Return the number of failed tests of section 5.4."""
    table = _answer(runs, sources, scheme).tables.get("convergence")
    return None if table is None else float((~table["passed"]).sum())


def _agreement_remarks(name: str, rows: list[Row]) -> list[str]:
    """Return the number of values in which a scheme agrees with every flow, and other errors."""
    limits = {QUANTITY_LABELS[quantity][0]: limit for quantity, limit in MAX_ERRORS.items()}
    exact = {row.label[:2]: row.own for row in rows if row.label[2] == EVERY_FLOW}
    near, far = 0, []
    for row in rows:
        error = relative_error(exact[row.label[:2]], row.own) if row.label[2] == name else None
        if error is None:
            continue
        if abs(error) <= limits[row.label[0]]:
            near += 1
        else:
            far.append(f"{row.label[0]} at {row.label[1]} ({100 * error:+.0f} %)")
    if not near and not far:
        return []
    off = f"; not {', '.join(far)}" if far else ""
    return [f"{name.capitalize()}: {near} of {near + len(far)} values agree{off}."]


def relative_error(exact: float | None, other: float | None) -> float | None:
    """Return a relative error, or None if a value is missing or undefined.

    If the exact value is 0 (no loss), the error is 0 for 0 and infinite for other values.
    """
    if exact is None or other is None or not math.isfinite(other):
        return None
    if exact == 0:
        return 0.0 if other == 0 else math.inf
    return other / exact - 1


SECTIONS = (_section,)
