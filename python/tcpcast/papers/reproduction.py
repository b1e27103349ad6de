"""A reproduction: published and own figures side by side, with a verdict a row.

A row says whether the two agree. What counts as agreement is a :class:`Tolerance`, named beside
each section; a figure that the paper does not print, or that nobody claims to reproduce, has no
tolerance and no verdict. A figure that does not agree may have a :class:`Cause`: our figure with
one thing changed, which shows in the same reproduction what the difference is due to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from tcpcast import output
from tcpcast.errors import EnvironmentFault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tcpcast.papers.drawing import Drawn


class Verdict(Enum):
    """What the comparison of a row came to."""

    AGREES = "agrees"
    UNSETTLED = "unsettled"
    EXPLAINED = "explained"
    DIFFERS = "differs"
    SHOWN = ""


@dataclass(frozen=True, slots=True)
class Printed:
    """A figure as a paper prints it: the digits matter."""

    text: str

    @property
    def value(self) -> float:
        """The figure as a number."""
        return float(self.text)

    @property
    def decimals(self) -> int:
        """How many digits stand after the point."""
        return len(self.text.partition(".")[2])

    @property
    def half_digit(self) -> float:
        """Half a unit of the last printed digit: how far rounding alone can take a figure."""
        return 0.5 * 10.0**-self.decimals


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What counts as agreement: any one of the conditions that are given.

    Parameters
    ----------
    relative
        Share of the published value.
    absolute
        In the unit of the row.
    printed_digits
        Rounding alone explains the difference.
    between
        Two published values of the same quantity: anything from one to the other agrees.
    """

    relative: float = 0.0
    absolute: float = 0.0
    printed_digits: bool = False
    between: tuple[float, float] | None = None

    def reach(self, published: Printed) -> tuple[float, float]:
        """Return the lowest and the highest figure that agree with the published one."""
        allowed = max(self.relative * abs(published.value), self.absolute)
        if self.printed_digits:
            allowed = max(allowed, published.half_digit)
        ends = [published.value - allowed, published.value + allowed, *(self.between or ())]
        # A figure that lies on the edge of rounding must not fail by the last bit of a float.
        slack = 1e-9 * max(abs(e) for e in ends)
        return min(ends) - slack, max(ends) + slack

    def admits(self, own: float, published: Printed) -> bool:
        """Return whether a figure agrees with the published one."""
        lowest, highest = self.reach(published)
        return lowest <= own <= highest


PRINTED_DIGITS = Tolerance(printed_digits=True)
"""For a formula: the same figure to the last digit printed."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a figure may differ from the published one, shown by a second figure of our own.

    Parameters
    ----------
    reason
        What is changed, in a few words: ``the phase of the loop``.
    own
        Our figure with that changed, in the unit of the row.
    """

    reason: str
    own: float

    def spans(self, own: float, reach: tuple[float, float]) -> bool:
        """Return whether figures from ``own`` to that of the cause meet those that agree.

        The cause moves our figure from one to the other, so it accounts for every published
        figure in between, and for one that the tolerance puts there. Anything beyond both it does
        not account for, however far they are apart.
        """
        if not (math.isfinite(own) and math.isfinite(self.own)):
            return False
        lowest, highest = reach
        return lowest <= max(own, self.own) and min(own, self.own) <= highest


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of the paper beside our own.

    Parameters
    ----------
    label
        What the row is about, a cell for each of the section's ``columns``.
    unit
        Of ``published`` and ``own``.
    published
        As printed, or None where the paper prints nothing.
    own
        Our figure, with ``low`` and ``high`` where it has a 95 % interval.
    tolerance
        None for a row that is only shown.
    settle
        Call a figure that is outside the tolerance by less than its own interval unsettled
        rather than different: for short runs.
    note
        A word on this row.
    explained_by
        What would account for a difference, None where nothing is known.
    beside
        Further figures of ours, one for each of the section's ``beside``; None for a gap.
    withheld
        Which of ``beside`` did not pass tests of their own: they are put in brackets.
    """

    label: tuple[str, ...]
    unit: str
    published: Printed | None
    own: float | None
    low: float | None = None
    high: float | None = None
    tolerance: Tolerance | None = None
    settle: bool = False
    note: str = ""
    explained_by: Cause | None = None
    beside: tuple[float | None, ...] = ()
    withheld: tuple[bool, ...] = ()

    @property
    def difference(self) -> float | None:
        """Own less published: percentage points where the unit is %, else a share of published."""
        if self.published is None or self.own is None or not math.isfinite(self.own):
            return None
        gap = self.own - self.published.value
        if self.unit == "%":
            return gap
        return gap / self.published.value if self.published.value else None

    @property
    def verdict(self) -> Verdict:
        """Whether the two agree within the tolerance, and if not, whether it is shown why."""
        if self.tolerance is None or self.published is None:
            return Verdict.SHOWN
        if self.own is None or not math.isfinite(self.own):
            return Verdict.DIFFERS
        lowest, highest = self.tolerance.reach(self.published)
        if lowest <= self.own <= highest:
            return Verdict.AGREES
        known = self.low is not None and self.high is not None
        if self.settle and known and self.low <= highest and self.high >= lowest:  # type: ignore[operator]
            return Verdict.UNSETTLED
        if self.explained_by is not None and self.explained_by.spans(self.own, (lowest, highest)):
            return Verdict.EXPLAINED
        return Verdict.DIFFERS

    @property
    def cause(self) -> Cause | None:
        """What accounts for the difference; None for a row that agrees, or differs without."""
        return self.explained_by if self.verdict is Verdict.EXPLAINED else None


@dataclass(slots=True)
class Section:
    """A table or figure of the paper: its rows, our figures, and what there is to say.

    ``beside`` names columns of further figures of ours, which stand beside without a verdict.
    """

    title: str
    columns: tuple[str, ...] = ()
    rows: list[Row] = field(default_factory=list)
    figures: list[Drawn] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    beside: tuple[str, ...] = ()

    @property
    def failed(self) -> list[Row]:
        """Rows that were to agree and do not, with nothing that shows why."""
        return [row for row in self.rows if row.verdict is Verdict.DIFFERS]


PAGE_NAME = "index.md"


class Unfinished(Exception):  # noqa: N818 - what a simulation is, not an error
    """What is looked up was not simulated: the reader gave up before."""


@dataclass(slots=True)
class Report:
    """A whole paper: sections in the paper's order, and the page they were written to.

    ``interrupted`` says that only what was finished is there, and that no page was written;
    ``unwritten`` says which files could not be written, and why.
    """

    title: str
    sections: list[Section]
    preface: list[str] = field(default_factory=list)
    page: Path | None = None
    interrupted: bool = False
    unwritten: list[str] = field(default_factory=list)

    @property
    def failed(self) -> list[tuple[str, Row]]:
        """Every row that differs unexplained, with the title of its section."""
        return [(section.title, row) for section in self.sections for row in section.failed]

    @property
    def explained(self) -> list[tuple[str, Row]]:
        """Every row that differs for a reason shown, with the title of its section."""
        return [(s.title, row) for s in self.sections for row in s.rows if row.cause is not None]

    def count(self, verdict: Verdict) -> int:
        """Return how many rows came to a verdict."""
        return sum(row.verdict is verdict for section in self.sections for row in section.rows)

    def write(self, folder: Path, *, force: bool = False) -> None:
        """Write the figures, and ``index.md`` that shows them, into a folder.

        Figures and pages of an earlier reproduction are replaced, with ``force`` any file. What
        cannot be written is told in ``unwritten``. Of an interrupted reproduction nothing is
        written: it would replace one that may be whole.
        """
        if self.interrupted:
            for section in self.sections:
                section.figures = []
            return
        for section in self.sections:
            section.figures = [drawn for drawn in section.figures if self._drawn(drawn, force)]
        page = folder / PAGE_NAME
        try:
            text = f"{markdown(self, folder)}\n{output.PAGE.mark.decode()}\n"
            output.write_text(page, text, kind=output.PAGE, force=force)
            self.page = page
        except EnvironmentFault as fault:
            self.unwritten.append(str(fault))

    def _drawn(self, drawn: Drawn, force: bool) -> bool:
        try:
            drawn.write(force=force)
        except EnvironmentFault as fault:
            self.unwritten.append(str(fault))
            return False
        return True


def check_folder(folder: Path, *, force: bool = False) -> None:
    """Refuse, before the simulations, a folder that no page can be written to.

    Raises
    ------
    TcpcastError
        It holds a page that is not of a reproduction, and not ``force``.
    EnvironmentFault
        It cannot be written.
    """
    output.check_folder(folder)
    output.check_file(folder / PAGE_NAME, kind=output.PAGE, force=force)


def finished(parts: Iterable[Callable[[], Iterable[Section]]]) -> list[Section]:
    """Return the sections of the parts of a paper, without those that an interrupt cut short.

    Raises
    ------
    KeyboardInterrupt
        It left none.
    """
    found: list[Section] = []
    for part in parts:
        try:
            found += part()
        except Unfinished:
            continue
    if not found:
        raise KeyboardInterrupt
    return found


def published_text(row: Row) -> str:
    """Return the printed figure, or a dash."""
    return "–" if row.published is None else row.published.text


def own_text(row: Row) -> str:
    """Return our figure with one digit more than is printed at most, as its interval bears."""
    return _figure_text(row, row.own)


def beside_texts(row: Row) -> tuple[str, ...]:
    """Return the figures beside ours, with as many digits; in brackets what is withheld."""
    texts = [_figure_text(row, figure) for figure in row.beside]
    for at, (figure, withheld) in enumerate(zip(row.beside, row.withheld, strict=False)):
        if withheld and figure is not None:
            texts[at] = f"({texts[at]})"
    return tuple(texts)


def _figure_text(row: Row, figure: float | None) -> str:
    if figure is None or not math.isfinite(figure):
        return "–"
    return f"{figure:.{_decimals(row)}f}"


def interval_text(row: Row) -> str:
    """Return the 95 % interval as "± half", or "" where there is none."""
    if row.low is None or row.high is None or not math.isfinite(row.high - row.low):
        return ""
    half = (row.high - row.low) / 2
    return f"± {half:.{max(_decimals(row), 1 - _magnitude(half)) if half else 0}f}"


def difference_text(row: Row) -> str:
    """Return "+0.4 %" of the published value, or "+0.12 pp" where the figure is a percentage.

    Nothing for a formula that gives every printed digit: what is left is the print's rounding.
    """
    if row.difference is None or _to_the_digit(row):
        return ""
    if row.unit == "%":
        return f"{row.difference:+.2f} pp"
    return f"{100 * row.difference:+.2f} %"


def cause_text(row: Row) -> str:
    """Return our figure with the cause of a difference changed, "" of a row that has none."""
    return "" if row.cause is None else f"{row.cause.own:.{_decimals(row)}f}"


def note_text(row: Row) -> str:
    """Return the note and, where a difference is explained, its cause."""
    cause = f"{row.cause.reason}: {cause_text(row)}" if row.cause else ""
    return "; ".join(filter(None, (row.note, cause)))


def _to_the_digit(row: Row) -> bool:
    exact = row.tolerance is not None and row.tolerance.printed_digits
    if not exact or row.published is None or row.own is None:
        return False
    return row.verdict is Verdict.AGREES and PRINTED_DIGITS.admits(row.own, row.published)


def _decimals(row: Row) -> int:
    if row.published is not None:
        return row.published.decimals
    if not row.own:
        return 0
    most = 2 if row.unit == "%" else 3
    return min(most, max(0, 2 - _magnitude(row.own)))


def _magnitude(value: float) -> int:
    return math.floor(math.log10(abs(value))) if value else 0


def markdown(report: Report, folder: Path) -> str:
    """Return the report as Markdown, figures linked relative to ``folder``."""
    lines = [f"# {report.title}", "", *(line for p in report.preface for line in (p, ""))]
    lines += [summary(report), ""]
    lines += [f"- [{s.title}](#{_anchor(s.title)}){_tally(s)}" for s in report.sections] + [""]
    for section in report.sections:
        lines += _section(section, folder)
    return "\n".join(lines).rstrip() + "\n"


def summary(report: Report) -> str:
    """Return one sentence: how many figures were checked and how many agree."""
    agree, explained, differ, open_ = (
        report.count(v)
        for v in (Verdict.AGREES, Verdict.EXPLAINED, Verdict.DIFFERS, Verdict.UNSETTLED)
    )
    checked = agree + explained + differ + open_
    parts = [f"{agree} of {checked} figures checked agree"]
    if explained:
        reasons = "; ".join(dict.fromkeys(r.cause.reason for _, r in report.explained if r.cause))
        parts.append(f"{explained} differ for a reason shown ({reasons})")
    if open_:
        parts.append(f"{open_} unsettled (outside the tolerance by less than the own interval)")
    else_ = " otherwise" if explained else ""
    parts.append(f"{differ} differ{else_}" if differ else f"none differs{else_}")
    return ", ".join(parts) + "."


def _tally(section: Section) -> str:
    checked = [r for r in section.rows if r.verdict is not Verdict.SHOWN]
    if not checked:
        return ""
    agree = sum(r.verdict is Verdict.AGREES for r in checked)
    explained = sum(r.verdict is Verdict.EXPLAINED for r in checked)
    why = f", {explained} explained" if explained else ""
    return f": {agree} of {len(checked)} agree{why}"


def _section(section: Section, folder: Path) -> list[str]:
    lines = [f"## {section.title}", ""]
    for figure in section.figures:
        lines += [f"![{section.title}]({figure.path.relative_to(folder).as_posix()})", ""]
    if section.rows:
        lines += [*_table(section), ""]
    lines += [line for remark in section.remarks for line in (remark, "")]
    return lines


def _table(section: Section) -> list[str]:
    intervals = any(r.low is not None for r in section.rows)
    notes = any(note_text(r) for r in section.rows)
    head = [*section.columns, "unit", "published", "own"]
    head += ["95 %"] if intervals else []
    head += ["difference", "verdict", *section.beside] + (["note"] if notes else [])
    right = {"published", "own", "difference", *section.beside}
    lines = [_cells(head), _cells("---:" if h in right else "---" for h in head)]
    for row in section.rows:
        cells = [*row.label, row.unit, published_text(row), own_text(row)]
        cells += [interval_text(row)] if intervals else []
        cells += [difference_text(row), _verdict_text(row), *beside_texts(row)]
        cells += [note_text(row)] if notes else []
        lines.append(_cells(cells))
    return lines


def _verdict_text(row: Row) -> str:
    text = row.verdict.value
    return f"**{text}**" if row.verdict is Verdict.DIFFERS else text


def _cells(cells: Iterable[str]) -> str:
    return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"


def _anchor(title: str) -> str:
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")
