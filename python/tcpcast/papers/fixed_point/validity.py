"""Where the fixed point holds: each of its schemes beside every flow."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.papers.fixed_point.measures import WORDS, measure, missing, value
from tcpcast.papers.fixed_point.published import POPULATIONS
from tcpcast.papers.fixed_point.runs import fixed_point
from tcpcast.papers.fixed_point.tables import loop_job
from tcpcast.papers.reproduction import Row, Section

if TYPE_CHECKING:
    from tcpcast.answer import Answer
    from tcpcast.papers.fixed_point.runs import Options, Runs

SCHEMES: dict[str, Options] = {
    f"{scheme}{words}": (("scheme", scheme), ("conditional", conditional))
    for conditional, words in ((False, ""), (True, ", conditional"))
    for scheme in (0, 1, 2)
}
"""The schemes of section 5.3, and their variants that go by the number of active flows."""

QUANTITIES = ("loss", "timeouts", "rtt", "goodput", "g_95", "g_50")
AGREES = 0.1
"""Errors up to so much are called agreement in the remarks."""


def wanted(runs: Runs) -> None:
    """Ask for each scheme of each population of Table 3."""
    for sources in POPULATIONS:
        job = loop_job(1, sources, runs.effort)
        runs.want(job)
        for options in SCHEMES.values():
            runs.want(fixed_point(job, runs.effort, options))


def section(runs: Runs) -> Section:
    """Return what each scheme says beside every flow."""
    names = tuple(f"scheme {name}" for name in SCHEMES)
    found = Section("Where the fixed point holds", ("quantity", "N"), beside=names)
    answers = {sources: _answers(runs, sources) for sources in POPULATIONS}
    for quantity in QUANTITIES:
        for sources, (exact, *schemes) in answers.items():
            own = measure(quantity, exact, sources)
            found.rows.append(
                Row(
                    (WORDS[quantity][0], str(sources)),
                    WORDS[quantity][1],
                    None,
                    value(own),
                    low=None if own is None else own.low,
                    high=None if own is None else own.high,
                    beside=tuple(value(measure(quantity, each, sources)) for each in schemes),
                )
            )
    found.remarks = [
        "Own is every flow of Table 3; beside it is what each scheme of section 5.3 makes of the "
        "same scenario. A dash: the scheme did not come to a fixed point, or does not tell it.",
        *(line for at, name in enumerate(names) for line in _told(name, at, found.rows)),
        *missing(*(each for found_ in answers.values() for each in found_)),
    ]
    return found


def _answers(runs: Runs, sources: int) -> list[Answer]:
    job = loop_job(1, sources, runs.effort)
    schemes = [runs[fixed_point(job, runs.effort, options)] for options in SCHEMES.values()]
    return [runs[job], *schemes]


def _told(name: str, at: int, rows: list[Row]) -> list[str]:
    """Say in which cells a scheme agrees with every flow, and how far off it is elsewhere."""
    near, far = [], []
    for row in rows:
        error = relative_error(row.own, row.beside[at])
        if error is None:
            continue
        cell = f"{row.label[0]} at {row.label[1]}"
        if abs(error) <= AGREES:
            near.append(cell)
        else:
            far.append(f"{cell} ({100 * error:+.0f} %)")
    if not near and not far:
        return []
    off = f"; not {', '.join(far)}" if far else ""
    within = f"within {100 * AGREES:.0f} % of every flow in {len(near)} of {len(near) + len(far)}"
    return [f"{name.capitalize()}: {within}{off}."]


def relative_error(exact: float | None, other: float | None) -> float | None:
    """Return how far a figure is off, as a share; None where there is none, or nothing to share.

    Where every flow has 0 (no loss), 0 is right, and anything else is off by more than any share.
    """
    if exact is None or other is None or not math.isfinite(other):
        return None
    if exact == 0:
        return 0.0 if other == 0 else math.inf
    return other / exact - 1
