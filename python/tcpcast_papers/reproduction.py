"""Results of a reproduction: published values and tcpcast's side by side, with a verdict per row.

The verdict states whether the two values agree within a :class:`Tolerance`. A row has no tolerance
and no verdict if the paper prints no value, or if the value is not meant to be reproduced. A
simulated value without an interval may be inside the tolerance by chance, so it is unsettled
instead of agreeing; the value of a formula needs no interval.

A value that does not agree may have a :class:`Cause`: tcpcast's value after one change. The cause
explains the difference if that value agrees with the published one. If only the range from the
value to the changed one contains the published value, the published value "lies between" them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tcpcast.answer import Metric

    from tcpcast_papers.drawing import Plot


Z95 = 1.959963984540054
"""Half-width of a normal 95 % interval, in standard deviations."""


class Verdict(Enum):
    """Outcome of the comparison in a row."""

    AGREES = "agrees"
    UNSETTLED = "unsettled"
    EXPLAINED = "explained"
    BETWEEN = "lies between"
    DIFFERS = "differs"
    INCONSISTENT = "paper inconsistent"
    UNKNOWN = "cannot be settled"
    SHOWN = ""


@dataclass(frozen=True, slots=True)
class Printed:
    """A value with its digits as printed.

    ``source`` is the heading of its column, such as "published". ``unrounded`` is the value before
    rounding if it is known; comparisons then use ``unrounded``.
    """

    text: str
    source: str = "published"
    unrounded: float | None = None

    @property
    def value(self) -> float:
        """The number to compare with."""
        return float(self.text) if self.unrounded is None else self.unrounded

    @property
    def decimals(self) -> int:
        """The number of digits after the decimal point."""
        return len(self.text.partition(".")[2])

    def agreeing_range(self, tolerance: Tolerance) -> tuple[float, float]:
        """Return the lowest and the highest value that agree with this one."""
        return tolerance.agreeing_range(self)

    @property
    def half_digit(self) -> float:
        """Half a unit of the last printed digit: the maximum rounding error."""
        return 0.5 * 10.0**-self.decimals


@dataclass(frozen=True, slots=True)
class Range:
    """Values for which a statement of a paper holds; an infinite limit means no limit."""

    low: float
    high: float

    source = "claimed"
    value = math.nan

    @property
    def text(self) -> str:
        """The range as a table shows it."""
        if self.low == self.high:
            return f"{self.low:g}"
        if math.isinf(self.high):
            return f"≥ {self.low:g}"
        return f"≤ {self.high:g}" if math.isinf(self.low) else f"{self.low:g} to {self.high:g}"

    def agreeing_range(self, _: Tolerance) -> tuple[float, float]:
        """Return the limits."""
        return self.low, self.high


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Conditions of agreement; a value agrees if it meets any of them.

    Parameters
    ----------
    relative
        Share of the published value.
    absolute
        In the unit of the row.
    printed_digits
        Values agree if rounding alone explains the difference.
    between
        Two published values of the same quantity: any value between them agrees.
    """

    relative: float = 0.0
    absolute: float = 0.0
    printed_digits: bool = False
    between: tuple[float, float] | None = None

    def agreeing_range(self, published: Printed) -> tuple[float, float]:
        """Return the lowest and the highest value that agree with the published one."""
        allowed = max(self.relative * abs(published.value), self.absolute)
        if self.printed_digits:
            allowed = max(allowed, published.half_digit)
        ends = [published.value - allowed, published.value + allowed, *(self.between or ())]
        # A value at the edge of rounding must not fail because of a float's last bit.
        slack = 1e-9 * max(abs(e) for e in ends)
        return min(ends) - slack, max(ends) + slack

    def admits(self, own: float, published: Printed) -> bool:
        """Return whether a value agrees with the published one."""
        lowest, highest = self.agreeing_range(published)
        return lowest <= own <= highest


PRINTED_DIGITS = Tolerance(printed_digits=True)
"""Tolerance of formulas: the same value to the last printed digit."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A possible reason for a difference, shown by a second value of tcpcast.

    Parameters
    ----------
    reason
        The change in a few words, such as ``TOend also after a fast retransmit``.
    own
        tcpcast's value after the change, in the unit of the row.
    """

    reason: str
    own: float

    def verdict(self, own: float, reach: tuple[float, float]) -> Verdict:
        """Return whether the changed value explains the difference of ``own``.

        ``reach`` is the range of values that agree with the published value. ``EXPLAINED`` if the
        changed value is inside, ``BETWEEN`` if ``reach`` overlaps the range from ``own`` to the
        changed value, otherwise ``DIFFERS``.
        """
        lowest, highest = reach
        if lowest <= self.own <= highest:
            return Verdict.EXPLAINED
        finite = math.isfinite(own) and math.isfinite(self.own)
        if finite and lowest <= max(own, self.own) and min(own, self.own) <= highest:
            return Verdict.BETWEEN
        return Verdict.DIFFERS


def choose_cause(causes: Iterable[Cause], own: float, reach: tuple[float, float]) -> Cause | None:
    """Return the first cause that explains a difference, or else the one with the nearest end."""
    by_verdict: dict[Verdict, list[Cause]] = {}
    for cause in causes:
        by_verdict.setdefault(cause.verdict(own, reach), []).append(cause)
    if Verdict.EXPLAINED in by_verdict:
        return by_verdict[Verdict.EXPLAINED][0]
    between = by_verdict.get(Verdict.BETWEEN, [])
    return min(between, key=lambda cause: abs(cause.own - own), default=None)


def scale_metric(metric: Metric, scale: float) -> Metric:
    """Return a metric without unit, with value and interval times ``scale`` (above 0)."""
    low, high = (None if end is None else scale * end for end in (metric.low, metric.high))
    return replace(metric, value=scale * metric.value, low=low, high=high, unit="")


@dataclass(frozen=True, slots=True)
class Row:
    """A published value, and tcpcast's value of the same quantity.

    Parameters
    ----------
    label
        Subject of the row: one cell for each of the section's ``columns``.
    unit
        Unit of ``published`` and ``own``.
    published
        Value as printed, or the range of a statement, or None if the paper prints none.
    own
        tcpcast's value, with ``low`` and ``high`` if it has a 95 % interval.
    missing_interval
        Reason why a simulated value has no interval. The value then cannot agree.
    tolerance
        Tolerance; None if the row is only shown.
    may_be_unsettled
        Whether a value outside the tolerance by less than its own interval is unsettled instead
        of different; set by the paper (:attr:`~tcpcast_papers.runner.Paper.unsettled`).
    note
        Comment on this row.
    explained_by
        Possible cause of a difference, or None if none is known.
    others
        Further values of tcpcast, one for each of the section's ``others``; None for a gap.
    withheld
        Whether to show each of ``others`` in brackets, because it failed its own tests.
    fixed_verdict
        Verdict of a statement that no value can settle; ``note`` has the reason.
    """

    label: tuple[str, ...]
    unit: str
    published: Printed | Range | None
    own: float | None
    low: float | None = None
    high: float | None = None
    tolerance: Tolerance | None = None
    may_be_unsettled: bool = False
    note: str = ""
    explained_by: Cause | None = None
    missing_interval: str | None = None
    others: tuple[float | None, ...] = ()
    withheld: tuple[bool, ...] = ()
    fixed_verdict: Verdict | None = None

    @classmethod
    def from_metric(
        cls,
        label: tuple[str, ...],
        unit: str,
        published: Printed | Range | None,
        metric: Metric | None,
        scale: float = 1.0,
        **more: Any,
    ) -> Self:
        """Return the row of a metric and its interval, ``scale`` times its values.

        ``more`` are further attributes of the row.
        """
        if metric is None:
            return cls(label, unit, published, None, **more)
        own = scale_metric(metric, scale)
        more.setdefault("missing_interval", own.missing_interval)
        return cls(label, unit, published, own.value, own.low, own.high, **more)

    @property
    def difference(self) -> float | None:
        """Difference from the published value: percentage points for unit %, else relative.

        If all values of a range agree (``Tolerance.between``), the difference is from the range.
        """
        if self.published is None or self.own is None:
            return None
        gap = self.own - self._nearest_published
        if not math.isfinite(gap):
            return None
        if self.unit == "%":
            return gap
        return gap / self.published.value if self.published.value else None

    @property
    def _nearest_published(self) -> float:
        """The value nearest to tcpcast's in the published range, or else the published value."""
        assert self.published is not None
        if self.own is None or self.tolerance is None or self.tolerance.between is None:
            return self.published.value
        lowest, highest = self.tolerance.between
        return min(max(self.own, lowest), highest)

    @property
    def verdict(self) -> Verdict:
        """Whether the values agree within the tolerance; if not, whether the cause is shown."""
        return self.fixed_verdict or self._verdict_by_tolerance

    @property
    def _verdict_by_tolerance(self) -> Verdict:
        if self.tolerance is None or self.published is None:
            return Verdict.SHOWN
        if self.own is None or not math.isfinite(self.own):
            return Verdict.DIFFERS
        lowest, highest = self.published.agreeing_range(self.tolerance)
        if lowest <= self.own <= highest:
            return Verdict.UNSETTLED if self.missing_interval else Verdict.AGREES
        known = self.low is not None and self.high is not None
        if self.may_be_unsettled and known and self.low <= highest and self.high >= lowest:  # type: ignore[operator]
            return Verdict.UNSETTLED
        if self.explained_by is not None:
            return self.explained_by.verdict(self.own, (lowest, highest))
        return Verdict.DIFFERS

    @property
    def cause(self) -> Cause | None:
        """The cause of the difference; None if the row agrees or the cause is unknown."""
        has_cause = self.verdict in {Verdict.EXPLAINED, Verdict.BETWEEN}
        return self.explained_by if has_cause else None


@dataclass(slots=True)
class Section:
    """A table or figure of the paper: rows, figures by tcpcast, and remarks.

    ``others`` names columns of further values of tcpcast, which have no verdict.
    """

    title: str
    columns: tuple[str, ...] = ()
    rows: list[Row] = field(default_factory=list)
    figures: list[Plot] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    others: tuple[str, ...] = ()


def section_name(title: str) -> str:
    """Return a section's title up to the first full stop, such as ``Table 9``."""
    return title.partition(".")[0]


class Unfinished(Exception):  # noqa: N818 - a state of a simulation, not an error
    """The simulation has not run: the user interrupted it, or no selected row reads it."""


class NotSelected(Exception):  # noqa: N818 - a state of a section, not an error
    """The section has no row in these runs, or no selected one."""
