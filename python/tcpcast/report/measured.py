"""A measurement of another program beside its simulation, as parts of a report."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tcpcast.comparison.compare import compare_by_class
from tcpcast.report.document import BLANK_LINE, Paragraph, SideBySide
from tcpcast.report.quantity import metric_label
from tcpcast.report.summary import caveats_of_scenario_and_answers, describe_scenario

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.answer import Answer
    from tcpcast.comparison.compare import Comparison
    from tcpcast.report.document import Part
    from tcpcast.scenario import Scenario


def measured_parts(
    measured: Answer, simulated: Answer, scenario: Scenario, notes: Sequence[str]
) -> list[Part]:
    """Return what ``tcpcast compare`` prints for a file of another program.

    Parameters
    ----------
    measured, simulated
        The answers, with the same classes.
    scenario
        The scenario of the test.
    notes
        What the file contains and the scenario does not, or the other way round.
    """
    parts: list[Part] = [Paragraph(describe_scenario(scenario), lead=f"{scenario.name}: ")]
    comparison = labelled(compare_by_class(measured, simulated))
    parts += [BLANK_LINE, SideBySide(comparison), BLANK_LINE]
    parts += [Paragraph(note, "aside", " ") for note in notes]
    shown = {row.metric for row in comparison.rows}
    parts += [
        Paragraph(str(note), "warning", " ! ")
        for _, each in caveats_of_scenario_and_answers([simulated], scenario)
        if (note := each.limited_to(shown)) is not None and note.metrics
    ]
    return parts


def labelled(comparison: Comparison) -> Comparison:
    """Return a comparison whose rows name the class and the metric."""
    rows = (
        replace(row, subject=f"{row.subject}, {metric_label(row.metric)}")
        for row in comparison.rows
    )
    return replace(comparison, rows=tuple(rows))
