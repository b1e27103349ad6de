"""Complete reports on a scenario or on captures, with figures and the command to reproduce them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.captures.verdict import captures_findings
from tcpcast.comparison.verdict import run_findings
from tcpcast.report.document import (
    Code,
    Column,
    Document,
    Heading,
    Paragraph,
    SideBySide,
    Table,
    command_parts,
)
from tcpcast.report.main_metrics import select_main_rows
from tcpcast.report.path_advice import path_advice
from tcpcast.report.run import (
    answer_tables,
    provenance_texts,
    remarks_below_tables,
    select_warnings,
)
from tcpcast.report.side_by_side import KIND_LABELS
from tcpcast.report.summary import describe_scenario
from tcpcast.report.trace import capture_parts
from tcpcast.report.trace_models import capture_model_parts
from tcpcast.report.trace_verdict import captures_verdict_parts
from tcpcast.report.verdict import verdict_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcpcast.array_types import Table as Groups
    from tcpcast.captures import Capture
    from tcpcast.comparison.compare import ComparedAnswers
    from tcpcast.report.document import Part
    from tcpcast.scenario import Scenario

MAX_ROWS = 20
"""Maximum number of directions in a table of a report."""
MAX_CAPTURES = 40
"""Maximum number of captures with a separate section."""
MAX_DRAWN_DIRECTIONS = 4
"""Maximum number of directions in figures, over all captures; the worst come first."""


def run_document(
    compared: ComparedAnswers,
    scenario: Scenario,
    command: str,
    figures: bool = False,
    *,
    amount_bytes: float | None = None,
) -> Document:
    """Return the report on the answers to a scenario.

    Parameters
    ----------
    compared
        The answers, side by side.
    scenario
        The scenario of the answers.
    command
        The command that reproduces the report.
    figures
        Draw figures with matplotlib.
    amount_bytes
        Amount of data whose time at the rate of endless flows is shown.
    """
    parts: list[Part] = [Paragraph(f"{describe_scenario(scenario)}.")]
    verdict = verdict_text(run_findings(compared, scenario))
    parts += [Paragraph(verdict, "heading")] if verdict else []
    shown = answer_tables(compared, scenario, where_rest_is="below")
    advice = map(Paragraph, path_advice(compared, scenario, amount_bytes))
    parts += [Heading("Answers"), *shown, *advice, *_check_before_use_parts(compared, scenario)]
    if figures:
        parts += _inline_run_figures(compared, scenario)
    parts += [
        *_all_values_parts(compared, scenario),
        *_hidden_warnings(compared, scenario),
        Heading("The scenario"),
        Paragraph("All keys, including defaults."),
        Code(scenario.to_toml()),
        *_provenance_parts(compared),
        *command_parts(command),
    ]
    return Document(scenario.name, parts)


def captures_document(  # noqa: PLR0913 - what to show
    captures: Sequence[Capture],
    command: str,
    figures: bool = False,
    *,
    groups: Sequence[Groups] | None = None,
    models: bool = False,
    max_rows: int | None = MAX_ROWS,
) -> Document:
    """Return the report on captures: one verdict over all captures, then a section per capture.

    Parameters
    ----------
    captures
        At least one capture; sequence figures require captures that were read with
        ``trail_points``.
    command
        The command that reproduces the report.
    figures
        Draw figures with matplotlib.
    groups
        Groups of flows of each capture, to show instead of its directions.
    models
        Compare the models with the directions.
    max_rows
        Maximum number of rows of a table; None for all.
    """
    several = f"{len(captures):,} captures" if len(captures) > 1 else captures[0].file
    parts: list[Part] = [Paragraph(verdict_text(captures_findings(captures, groups)), "heading")]
    parts += captures_verdict_parts(captures, max_rows)
    if figures:
        parts += _inline_capture_figures(captures)
    parts.append(Heading("Each capture" if len(captures) > 1 else "Details"))
    for index, capture in enumerate(captures[:MAX_CAPTURES]):
        of_capture = None if groups is None else groups[index]
        parts += capture_parts(
            capture, max_rows=max_rows, groups=of_capture, verdict=len(captures) > 1
        )
        parts += capture_model_parts(capture, max_rows) if models else []
    left = len(captures) - MAX_CAPTURES
    if left > 0:
        parts.append(Paragraph(f"… and {left:,} more captures, included only in the verdict"))
    return Document(f"Why was it slow? {several}", [*parts, *command_parts(command)])


def _check_before_use_parts(compared: ComparedAnswers, scenario: Scenario) -> Iterator[Part]:
    notes = list(remarks_below_tables(compared, scenario, where_rest_is="below"))
    if any(part.role == "warning" for part in notes):
        yield Heading("Check before use")
    yield from notes


def _all_values_parts(compared: ComparedAnswers, scenario: Scenario) -> Iterator[Part]:
    """Yield a section with all values if the summary omits some."""
    if len(select_main_rows(compared.overall, scenario).rows) == len(compared.overall.rows):
        return
    yield Heading("All values")
    yield SideBySide(compared.overall)
    yield from (SideBySide(each, f"class {name}") for name, each in compared.classes.items())


def _hidden_warnings(compared: ComparedAnswers, scenario: Scenario) -> Iterator[Part]:
    _, rest = select_warnings(compared, scenario)
    if rest:
        yield Heading("More warnings")
        yield from rest


def _inline_run_figures(compared: ComparedAnswers, scenario: Scenario) -> Iterator[Part]:
    from tcpcast.report.figures import figure_parts, iter_figures  # noqa: PLC0415 - matplotlib is slow to import

    text = "In figures with lines and points, formulas are lines and simulations are points. Bands "
    text += "and bars are 95 % intervals."
    yield from figure_parts("Figures", iter_figures(compared.answers, scenario), text)


def _inline_capture_figures(captures: Sequence[Capture]) -> Iterator[Part]:
    from tcpcast.report.figures import figure_parts  # noqa: PLC0415 - matplotlib is slow to import
    from tcpcast.report.trace_figures import worst_figures  # noqa: PLC0415

    figures = worst_figures(captures, MAX_DRAWN_DIRECTIONS)
    yield from figure_parts("Figures of the worst transfers", figures)


def _provenance_parts(compared: ComparedAnswers) -> Iterator[Part]:
    answered = [answer for answer in compared.answers if answer.applies]
    if not answered:
        return
    yield Heading("Provenance")
    versions = [f"tcpcast {answer.provenance.get('version', '')}".strip() for answer in answered]
    yield Table(
        [
            Column("engine", [answer.engine for answer in answered], right=False),
            Column("kind", [KIND_LABELS[answer.kind] for answer in answered], right=False),
            Column("version", versions, right=False),
            Column(
                "run with",
                [", ".join(provenance_texts(answer)) for answer in answered],
                right=False,
            ),
        ]
    )
    digests = {answer.provenance.get("scenario") for answer in answered} - {None}
    for digest in sorted(map(str, digests)):
        yield Paragraph(f"Scenario {digest}", "aside")
