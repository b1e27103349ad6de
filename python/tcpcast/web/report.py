"""The content of the page as a report: one self-contained HTML file."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from tcpcast import output
from tcpcast.errors import MachineError
from tcpcast.report.document import Code, Column, Document, Heading, Paragraph, Table
from tcpcast.report.figures import figure_parts
from tcpcast.report.figures import iter_figures as drawn_figures
from tcpcast.report.html import html_page
from tcpcast.report.quantity import ABSENT_MARK, UNTRUSTED_MARK
from tcpcast.report.summary import MAX_WARNINGS
from tcpcast.units import digits
from tcpcast.web.drawing import curve_figure, curve_scale
from tcpcast.web.evaluation import evaluate, evaluate_curve
from tcpcast.web.questions import find_question
from tcpcast.web.simulation import run_over_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tcpcast.report.document import Part

    Points = Sequence[Mapping[str, Any]]

_RUN_FIGURES = {"over-time", "completion-distribution"}
"""Names of the figures of a simulated run in the report."""

_COPIED_TEXTS = (("Command", "command"), ("Python", "python"), ("Scenario", "scenario"))


def create_report_file(request: Mapping[str, Any]) -> dict[str, str]:
    """Return ``file``, a file name, and ``html``, the content of the page as a document.

    Parameters
    ----------
    request
        The keys of :func:`tcpcast.web.evaluation.evaluate` and
        :func:`tcpcast.web.evaluation.evaluate_curve`, and ``points``, the points simulated
        for the same values.

    Raises
    ------
    FieldError, TcpcastError
        As for these two functions.
    """
    simulated = request.get("points", [])
    points = sorted(simulated, key=lambda point: float(point["x"]))
    result = evaluate({**request, "simulated": bool(points)})
    for point in simulated[:1]:  # the first point is simulated with the current values
        result |= point["heading"]
    drawn = evaluate_curve(request)
    parts: list[Part] = [
        Paragraph(result["verdict"], "heading"),
        *(Paragraph(sentence) for sentence in result["sentences"]),
        Paragraph(f"{result['summary']}.", "aside"),
        *_warning_parts(result["warnings"][:MAX_WARNINGS]),
        *_answer_parts(result),
        *_simulated_parts(drawn, points),
        *_curve_parts(drawn, points),
        *(_over_time_parts(request) if points else ()),
        *_more_warning_parts(result["warnings"][MAX_WARNINGS:]),
        *_input_parts(result),
    ]
    html = html_page(Document(result["title"], parts), output.REPORT_KIND.mark.decode())
    return {"file": f"tcpcast-{result['question']}.html", "html": html}


def _warning_parts(texts: Sequence[str]) -> Iterator[Part]:
    yield from (Paragraph(text, "warning", "! ") for text in texts)


def _more_warning_parts(texts: Sequence[str]) -> Iterator[Part]:
    if texts:
        yield Heading("More warnings")
        yield from _warning_parts(texts)


def _answer_parts(result: Mapping[str, Any]) -> Iterator[Part]:
    given = [row for row in result["answers"] if row["value"] is not None]
    yield Heading("Models")
    if given:
        about = [row["what"] for row in given]
        values = [row["text"] + ("" if row["trusted"] else UNTRUSTED_MARK) for row in given]
        yield Table(
            [
                Column("model", [row["name"] for row in given], right=False),
                Column(result["metric"]["label"], values),
                Column("limited by", [row["regime"] for row in given], right=False),
                Column("notes", about, right=False),
            ]
        )
        if not all(row["trusted"] for row in given):
            yield Paragraph("outside the formula's domain", "aside", UNTRUSTED_MARK)
    for row in result["answers"]:
        if row["value"] is None:
            text = f"{row['name']} does not apply: {row['not_applicable']}"
            yield Paragraph(text, "aside", "- ")
    table = result["table"]
    if table is not None:
        cells = zip(*table["rows"], strict=True)
        columns = zip(table["columns"], cells, strict=True)
        yield Table([Column(name, column, False) for name, column in columns], table["caption"])


def _simulated_parts(curve_data: Mapping[str, Any], points: Points) -> Iterator[Part]:
    rows = [(point, value) for point in points for value in point["values"]]
    if not rows:
        return
    yield Heading("Simulated")
    yield Table(
        [
            Column(
                curve_data["across"]["label"], [point["text"] for point, _ in rows], right=False
            ),
            Column("simulated", [value["name"] for _, value in rows], right=False),
            Column(curve_data["metric"]["label"], [value["text"] for _, value in rows]),
            Column("95 %", [value["interval"] for _, value in rows], right=False),
            Column("warnings", ["; ".join(point["warnings"]) for point, _ in rows], right=False),
        ]
    )


def _curve_parts(curve_data: Mapping[str, Any], points: Points) -> Iterator[Part]:
    yield Heading(f"{curve_data['metric']['label']} by {curve_data['across']['label'].lower()}")
    try:
        yield curve_figure(curve_data, points)
    except MachineError as missing:
        yield Paragraph(str(missing), "aside")
    scale = curve_scale(curve_data, points)
    series = [
        Column(
            f"{each['name']}\n{scale.unit}",
            [
                _number_text(*cell, scale.factor)
                for cell in zip(each["values"], each["trusted"], strict=True)
            ],
        )
        for each in curve_data["series"]
    ]
    yield Table([Column(curve_data["across"]["label"], curve_data["texts"], right=False), *series])


def _over_time_parts(request: Mapping[str, Any]) -> Iterator[Part]:
    """Yield figures of the simulated run over time, or of its completion times."""
    try:
        scenario, found = run_over_time(request)
        figures = drawn_figures([found], scenario)
        yield from figure_parts("Simulated run", ((n, f) for n, f in figures if n in _RUN_FIGURES))
    except MachineError:
        return  # already reported for the curve


def _input_parts(result: Mapping[str, Any]) -> Iterator[Part]:
    fields = [f for f in find_question(result["question"]).fields if f.name in result["values"]]
    yield Heading("Inputs")
    yield Table(
        [
            Column("input", [field.label for field in fields], right=False),
            Column("value", [result["values"][field.name] for field in fields], right=False),
        ]
    )
    yield Heading("Reproduce this answer")
    for name, key in _COPIED_TEXTS:
        yield Paragraph(name, "heading")
        yield Code(result["copy"][key])
    yield Paragraph(f"tcpcast {version('tcpcast')}", "aside")


def _number_text(value: float | None, trusted: bool, factor: float) -> str:
    return (
        ABSENT_MARK
        if value is None
        else digits(value / factor) + ("" if trusted else UNTRUSTED_MARK)
    )
