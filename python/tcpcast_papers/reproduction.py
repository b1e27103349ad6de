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
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from tcpcast.answer import Metric

    from tcpcast_papers.drawing import Plot


class Verdict(Enum):
    """What the comparison of a row came to."""

    AGREES = "agrees"
    UNSETTLED = "unsettled"
    EXPLAINED = "explained"
    DIFFERS = "differs"
    SHOWN = ""


@dataclass(frozen=True, slots=True)
class Printed:
    """A figure as a paper prints it: the digits matter.

    ``source`` is the word for where it comes from; ``unrounded`` the figure behind the text, where
    that is known: it is what is compared.
    """

    text: str
    source: str = "published"
    unrounded: float | None = None

    @property
    def value(self) -> float:
        """The figure as a number."""
        return float(self.text) if self.unrounded is None else self.unrounded

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
        rather than different; set by the paper (:attr:`~tcpcast_papers.runner.Paper.unsettled`).
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
    others: tuple[float | None, ...] = ()
    withheld: tuple[bool, ...] = ()

    @classmethod
    def of(
        cls,
        label: tuple[str, ...],
        unit: str,
        published: Printed | None,
        metric: Metric | None,
        scale: float = 1.0,
        **more: Any,
    ) -> Self:
        """Return the row of a metric and its interval, ``scale`` times its values.

        ``more`` are further attributes of the row.
        """
        ends = (None,) * 3 if metric is None else (metric.value, metric.low, metric.high)
        own, low, high = (None if end is None else scale * end for end in ends)
        return cls(label, unit, published, own, low, high, **more)

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
    figures: list[Plot] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    others: tuple[str, ...] = ()


def name(title: str) -> str:
    """Return a section's title to its first point: ``Table 9``."""
    return title.partition(".")[0]


class Unfinished(Exception):  # noqa: N818 - what a simulation is, not an error
    """What is looked up was not simulated: the reader gave up before."""
