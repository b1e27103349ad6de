"""Results as HTML in notebooks: the parts of their reports, with few rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.captures import Capture
from tcpcast.plan import Plan
from tcpcast.report.html import html_elements
from tcpcast.report.plan import plan_answer_parts
from tcpcast.report.sweep import sweep_rows_parts, sweep_verdict_parts
from tcpcast.report.trace import capture_parts
from tcpcast.sweeps.results import SweepResults

if TYPE_CHECKING:
    from tcpcast.report.document import Part

MAX_ROWS = 20
"""Maximum number of rows of a table."""


def result_html(result: Capture | Plan | SweepResults) -> str:
    """Return a result as HTML elements, with markup in names escaped."""
    return html_elements(_parts_of(result))


def _parts_of(result: Capture | Plan | SweepResults) -> list[Part]:
    match result:
        case Capture():
            return capture_parts(result, max_rows=MAX_ROWS)
        case Plan():
            return plan_answer_parts(result)
        case SweepResults():
            table = result.to_arrow()
            return sweep_verdict_parts(
                table, result.keys, result.sweep.scenario
            ) + sweep_rows_parts(
                table,
                result.keys,
                max_rows=MAX_ROWS,
                how_to_get_rest=".to_pandas() has all rows",
            )
