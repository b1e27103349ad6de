"""Text of a reproduction: tables of its rows, a summary sentence, and a Markdown page."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tcpcast.answer import Metric
from tcpcast.comparison.compare import Difference
from tcpcast.process import output
from tcpcast.process.errors import MachineError
from tcpcast.report import quantity
from tcpcast.report.document import Column
from tcpcast.report.markdown import markdown_table
from tcpcast.report.quantity import ABSENT_MARK, Scale

from tcpcast_papers.claims import TITLE
from tcpcast_papers.reproduction import PRINTED_DIGITS, Printed, Verdict, section_name

if TYPE_CHECKING:
    from pathlib import Path

    from tcpcast_papers.drawing import Plot
    from tcpcast_papers.report import Report
    from tcpcast_papers.reproduction import Row, Section

PAGE_NAME = "index.md"


def check_folder(folder: Path, *, force: bool = False) -> None:
    """Check before the simulations that the page can be written to a folder.

    Raises
    ------
    TcpcastError
        The folder contains another ``index.md``, and ``force`` is not set.
    MachineError
        The folder cannot be written.
    """
    output.check_folder_is_writable(folder)
    output.check_file_is_writable(folder / PAGE_NAME, kind=output.PAGE_KIND, force=force)


def write(report: Report, folder: Path, *, force: bool = False) -> None:
    """Write the figures, and ``index.md`` that shows them, into a folder.

    Overwrite the figures and pages of an earlier reproduction, or any file with ``force``.
    ``report.write_errors`` receives a message for each file that cannot be written. An interrupted
    reproduction writes nothing, because it could overwrite a complete one.
    """
    if report.interrupted:
        for section in report.sections:
            section.figures = []
        return
    for section in report.sections:
        section.figures = [each for each in section.figures if _write_plot(report, each, force)]
    page = folder / PAGE_NAME
    try:
        text = f"{report_markdown(report, folder)}\n{output.PAGE_KIND.mark.decode()}\n"
        output.write_text(page, text, kind=output.PAGE_KIND, force=force)
        report.page = page
    except MachineError as error:
        report.write_errors.append(str(error))


def _write_plot(report: Report, plot: Plot, force: bool) -> bool:
    try:
        plot.write(force=force)
    except MachineError as error:
        report.write_errors.append(str(error))
        return False
    return True


def published_text(row: Row) -> str:
    """Return the printed value, or a dash."""
    return ABSENT_MARK if row.published is None else row.published.text


def own_value_text(row: Row) -> str:
    """Return tcpcast's value with as many digits as the printed one, or with three."""
    return _value_text(row, row.own)


def further_value_texts(row: Row) -> tuple[str, ...]:
    """Return further values of tcpcast with the digits of the row, withheld ones in brackets."""
    texts = [_value_text(row, figure) for figure in row.others]
    for index, (figure, withheld) in enumerate(zip(row.others, row.withheld, strict=False)):
        if withheld and figure is not None:
            texts[index] = f"({texts[index]})"
    return tuple(texts)


def _value_text(row: Row, figure: float | None) -> str:
    if figure is None or not math.isfinite(figure):
        return ABSENT_MARK
    return f"{figure:.{_decimals(row)}f}"


def _decimals(row: Row) -> int:
    if isinstance(row.published, Printed):
        return row.published.decimals
    if not row.own or not math.isfinite(row.own):
        return 0
    most = 2 if row.unit == "%" else 3
    return min(most, max(0, 2 - math.floor(math.log10(abs(row.own)))))


def interval_text(row: Row) -> str:
    """Return the 95 % interval as in a report, or "" if there is none."""
    if row.own is None or not math.isfinite(row.own):
        return ""
    return quantity.interval_text(Metric(row.own, row.low, row.high), Scale(1.0, row.unit))


def difference_text(row: Row) -> str:
    """Return the difference, as "+0.4 %" of the published value or as "+0.12 pp" for percentages.

    Return "" for a formula that gives every printed digit: the rest is rounding in print.
    """
    if row.difference is None or _agrees_in_all_digits(row):
        return ""
    points = row.unit == "%"
    return quantity.difference_text(Difference(row.difference / (100 if points else 1), points))


def _agrees_in_all_digits(row: Row) -> bool:
    exact = row.tolerance is not None and row.tolerance.printed_digits
    if not exact or not isinstance(row.published, Printed) or row.own is None:
        return False
    return row.verdict is Verdict.AGREES and PRINTED_DIGITS.admits(row.own, row.published)


def cause_text(row: Row) -> str:
    """Return tcpcast's value after the change that explains a difference, or ""."""
    return "" if row.cause is None else _value_text(row, row.cause.own)


def note_text(row: Row) -> str:
    """Return the note, the cause of an explained difference, and why there is no interval."""
    cause = f"{row.cause.reason}: {cause_text(row)}" if row.cause else ""
    missing = f"no interval: {row.missing_interval}" if row.missing_interval else ""
    return "; ".join(filter(None, (row.note, cause, missing * (row.tolerance is not None))))


def section_columns(section: Section) -> list[Column]:
    """Return the rows of a section as the columns of a table, without empty ones."""
    rows = section.rows
    labels = zip(*(row.label for row in rows), strict=True)
    intervals, notes = list(map(interval_text, rows)), list(map(note_text, rows))
    others = zip(
        *(further_value_texts(row) or ("",) * len(section.others) for row in rows), strict=True
    )
    printed = list(map(published_text, rows))
    result = [
        *(Column(head, cells, False) for head, cells in zip(section.columns, labels, strict=True)),
        Column("unit", [row.unit for row in rows], right=False),
        Column(
            _source_of_values(rows), printed if any(text != ABSENT_MARK for text in printed) else []
        ),
        Column("own", list(map(own_value_text, rows))),
        Column("95 %", intervals),
        Column("difference", list(map(difference_text, rows))),
        Column("verdict", [row.verdict.value for row in rows], right=False),
        *(Column(head, cells) for head, cells in zip(section.others, others, strict=True)),
        Column("note", notes, right=False),
    ]
    return [column for column in result if any(column.cells)]


def _source_of_values(rows: list[Row]) -> str:
    """Return the word for the source of the published values."""
    known = (row.published.source for row in rows if row.published is not None)
    return next(known, "published")


def summary_text(report: Report) -> str:
    """Return one sentence: the numbers of values checked, of agreements and of new differences."""
    counts = {verdict: report.count(verdict) for verdict in Verdict}
    agree, explained = counts[Verdict.AGREES], counts[Verdict.EXPLAINED]
    differ, unsettled = counts[Verdict.DIFFERS], counts[Verdict.UNSETTLED]
    between = counts[Verdict.BETWEEN]
    checked = agree + explained + between + differ + unsettled
    parts = [f"{agree} of {checked} values checked agree" if checked else "no value has a verdict"]
    for verdict, text in (
        (Verdict.EXPLAINED, "agree after one change"),
        (Verdict.BETWEEN, "lie between tcpcast's value and the one after one change"),
    ):
        if counts[verdict]:
            reasons = "; ".join(
                dict.fromkeys(
                    row.cause.reason
                    for title, row in report.explained_rows
                    if row.cause is not None and row.verdict is verdict and title != TITLE
                )
            )
            parts.append(f"{counts[verdict]} {text} ({reasons})")
    if unsettled:
        reason = "without a confidence interval, or outside the tolerance by less than it"
        parts.append(f"{unsettled} unsettled ({reason})")
    if wrong := counts[Verdict.INCONSISTENT]:
        parts.append(f"{wrong} inconsistent in the paper")
    if unknown := counts[Verdict.UNKNOWN]:
        parts.append(f"{unknown} cannot be settled")
    new = sum(title != TITLE for title, _ in report.new)
    gone = len(report.gone)
    if differ > new:
        parts.append(_count_text(differ - new, "known difference"))
    parts.append(_count_text(new, "new difference"))
    if gone:
        parts.append(f"{_count_text(gone, 'known difference')} gone")
    return ", ".join(parts) + "." + _claims_text(report)


def _claims_text(report: Report) -> str:
    """Return a sentence that counts the paper's claims by verdict."""
    counts = {verdict: report.count(verdict, claims=True) for verdict in Verdict}
    parts = [f"{verdict.value} {count}" for verdict, count in counts.items() if count]
    return f" Claims of the paper by verdict: {', '.join(parts)}." if parts else ""


def _count_text(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"


def explained_difference_lines(report: Report) -> dict[str, list[str]]:
    """Return the differences with known reasons: lines under a heading for each reason."""
    lines: dict[str, list[str]] = {}
    for title, row in report.explained_rows:
        if row.cause is not None:
            reason = row.cause.reason
            heading = (
                f"Explained by {reason}, with the value before and after that change:"
                if row.verdict is Verdict.EXPLAINED
                else f"Between the values before and after a change, {reason}:"
            )
            both = f"own {own_value_text(row)} to {cause_text(row)} {row.unit}"
            line = f"{_row_and_published(title, row)}, {both}"
            lines.setdefault(heading, []).append(line)
    for title, row in report.differing:
        if (known := report.reason(title, row)) is not None:
            lines.setdefault(f"Known differences, {known}:", []).append(
                _row_with_values(title, row)
            )
    return lines


def new_difference_lines(report: Report) -> list[str]:
    """Return lines for the new differences and for the known ones that are gone."""
    return [
        *(_row_with_values(title, row) for title, row in report.new),
        *(
            f"{', '.join((each.section, *each.label))}: known difference is gone ({each.reason})"
            for each in report.gone
        ),
    ]


def _row_with_values(title: str, row: Row) -> str:
    difference = difference_text(row)
    own = f"own {own_value_text(row)} {row.unit}".rstrip()
    return f"{_row_and_published(title, row)}, {own}" + (f" ({difference})" if difference else "")


def _row_and_published(title: str, row: Row) -> str:
    place = ", ".join((section_name(title), *row.label))
    return f"{place}: {_source_of_values([row])} {published_text(row)}"


def report_markdown(report: Report, folder: Path) -> str:
    """Return the report as Markdown, with links to the figures relative to ``folder``."""
    lines = [f"# {report.title}", "", *(line for p in report.preface for line in (p, ""))]
    lines += [summary_text(report), ""]
    lines += [line for each in new_difference_lines(report) for line in (f"**{each}**", "")]
    for heading, rows in explained_difference_lines(report).items():
        lines += [heading, "", *(f"- {row}" for row in rows), ""]
    lines += [
        f"- [{s.title}](#{_anchor_of_title(s.title)}){_verdict_counts(s)}" for s in report.sections
    ] + [""]
    for section in report.sections:
        lines += _section_lines(section, folder)
    return "\n".join(lines).rstrip() + "\n"


def _verdict_counts(section: Section) -> str:
    verdicts = [r.verdict for r in section.rows if r.verdict is not Verdict.SHOWN]
    if not verdicts:
        return ""
    explained = verdicts.count(Verdict.EXPLAINED)
    why = f", {explained} explained" if explained else ""
    return f": {verdicts.count(Verdict.AGREES)} of {len(verdicts)} agree{why}"


def _section_lines(section: Section, folder: Path) -> list[str]:
    lines = [f"## {section.title}", ""]
    for figure in section.figures:
        lines += [f"![{section.title}]({figure.path.relative_to(folder).as_posix()})", ""]
    if section.rows:
        lines += [*markdown_table(section_columns(section)), ""]
    return lines + [line for remark in section.remarks for line in (remark, "")]


def _anchor_of_title(title: str) -> str:
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")
