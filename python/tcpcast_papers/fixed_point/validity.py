"""Validity of the fixed point: each of its schemes compared with a simulation of every flow."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast_papers.fixed_point.measures import WORDS, failed, measure, missing, value
from tcpcast_papers.fixed_point.published import POPULATIONS
from tcpcast_papers.fixed_point.runs import fixed_point, fixed_points
from tcpcast_papers.fixed_point.tables import loop_job
from tcpcast_papers.reproduction import Row, Section

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast.answer import Answer

    from tcpcast_papers.fixed_point.runs import Runs

WITHIN = {"loss": 0.1, "timeouts": 0.1, "rtt": 0.1, "goodput": 0.05, "g_95": 0.1, "g_50": 0.1}
"""Maximum error that the remarks call agreement, for each quantity."""


def request(runs: Runs) -> None:
    """Request each scheme for each population of Table 3."""
    for sources in POPULATIONS:
        job = loop_job(1, sources, runs.sample_sizes)
        runs.request(job)
        for scheme in runs.sample_sizes.schemes:
            runs.request(fixed_point(job, runs.sample_sizes, scheme))


def sections(runs: Runs, _: Path) -> list[Section]:
    """Return the results of each scheme and of every flow."""
    names = [f"scheme {scheme}" for scheme in runs.sample_sizes.schemes]
    result = Section("Validity of the fixed point", ("quantity", "N"), others=tuple(names))
    answers = {
        sources: list(
            fixed_points(
                runs, loop_job(1, sources, runs.sample_sizes), runs.sample_sizes.schemes
            ).values()
        )
        for sources in POPULATIONS
    }
    for quantity in WITHIN:
        for sources in POPULATIONS:
            exact = runs[loop_job(1, sources, runs.sample_sizes)]
            result.rows.append(_row(quantity, sources, exact, answers[sources]))
    result.remarks = [
        "Own is every flow of Table 3; the further columns are results of the reference flows of "
        "each scheme of section 5.3 in the same scenario. They agree if the error is at most 5 % "
        "in goodput and 10 % in other quantities.",
        *(line for index, name in enumerate(names) for line in _scores(name, index, result.rows)),
        *_untested(names, answers),
        *missing(*(each for schemes in answers.values() for each in schemes)),
    ]
    result.rows += [_failures(sources, each) for sources, each in answers.items()]
    return [result]


def _row(quantity: str, sources: int, exact: Answer, schemes: list[Answer]) -> Row:
    return Row.of(
        (WORDS[quantity][0], str(sources)),
        WORDS[quantity][1],
        None,
        measure(quantity, exact, sources),
        others=tuple(value(measure(quantity, each, sources)) for each in schemes),
        withheld=tuple(each.incomplete_reason is not None for each in schemes),
    )


def _failures(sources: int, schemes: list[Answer]) -> Row:
    """Return the number of failed tests of section 5.4 per scheme."""
    tables = (each.tables.get("convergence") for each in schemes)
    counts = tuple(None if table is None else float((~table["passed"]).sum()) for table in tables)
    return Row(
        ("failed tests of the fixed point", str(sources)), "tests", None, None, others=counts
    )


def _untested(names: list[str], answers: dict[int, list[Answer]]) -> list[str]:
    return failed(
        {
            name.capitalize(): {
                f"N = {sources}": result[index] for sources, result in answers.items()
            }
            for index, name in enumerate(names)
        }
    )


def _scores(name: str, index: int, rows: list[Row]) -> list[str]:
    """Return in how many cells a scheme agrees with every flow's simulation, and other errors."""
    limits = {WORDS[quantity][0]: limit for quantity, limit in WITHIN.items()}
    near, far = 0, []
    for row in rows:
        error = relative_error(row.own, row.others[index])
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

    If the exact value is 0 (no loss), the error is 0 for a value of 0 and infinite for any other
    value.
    """
    if exact is None or other is None or not math.isfinite(other):
        return None
    if exact == 0:
        return 0.0 if other == 0 else math.inf
    return other / exact - 1
