"""The values that one key goes through: a range or a list, and what they are as numbers."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tcpcast import units
from tcpcast.errors import ScenarioError, UnitError
from tcpcast.ranges import DEFAULT_POINTS, Quantity, ends, is_range, values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST_VALUES = 100_000
EXAMPLE = '"10ms..200ms log 8"'

_SPACING = re.compile(r"\.\.\s*[0-9]\S*\s+([a-z]+)\s*$")
"""A word behind the ends of a range: it is none of the two that there are."""
_HOW = re.compile(r"\s(log|lin)$|\s(?:(log|lin)\s+)?([0-9]{1,9})$")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of quantity: its unit in a column of numbers, how it is read and written."""

    unit: str
    read: Callable[[Any], float]
    write: Callable[[float], str]


def _read_suffixed(suffix: str, value: object) -> float:
    text = value.strip() if isinstance(value, str) else ""
    if not text.endswith(suffix):
        raise UnitError(f"{units.show(value)} has no unit {suffix}")
    return _read_number(text.removesuffix(suffix))


def _read_number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UnitError(f"{units.show(value)} is no number")
    if isinstance(value, str) and re.fullmatch(rf"\s*{units.NUMBER}\s*", value) is None:
        raise UnitError(f"{units.show(value)} is no number")
    return float(value)


def _write_suffixed(suffix: str, value: float) -> str:
    return f"{units.plain(units.exact(value))}{suffix}"


KINDS = {
    "number": Kind("1", _read_number, partial(_write_suffixed, "")),
    "ratio": Kind("1", units.parse_ratio, units.format_ratio),
    "time": Kind("s", units.parse_duration, units.format_duration),
    "rate": Kind("bit/s", units.parse_rate, units.format_rate),
    "frequency": Kind("1/s", units.parse_per_second, units.format_per_second),
    "packets": Kind("packet", units.parse_packets, units.format_packets),
    "bytes": Kind("byte", units.parse_bytes, lambda size: units.format_bytes(round(size))),
    "bdp": Kind("bdp", partial(_read_suffixed, "bdp"), partial(_write_suffixed, "bdp")),
}
"""Quantities that a range may be of, and that a column of numbers is made of."""

_COUNTED = {"number", "packets", "bytes"}
"""Kinds of which a range between whole ends has whole values only."""


def kind_of(typed: Sequence[Any]) -> str | None:
    """Return the kind that all of these values are of, None where they are no quantities."""
    return next((name for name, kind in KINDS.items() if _all_read(kind, typed)), None)


def _all_read(kind: Kind, typed: Sequence[Any]) -> bool:
    try:
        return all(math.isfinite(kind.read(value)) for value in typed)
    except (ValueError, TypeError):
        return False


@dataclass(frozen=True, slots=True)
class Axis:
    """A key and the values that it goes through, as a scenario takes them."""

    key: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """A range as typed: between which ends, by equal ratios or steps, and how many values."""

    key: str
    text: str
    quantity: Quantity
    linear: bool
    points: int | None
    bare: bool

    def spread(self) -> Axis:
        """Return the values of the range, both ends as typed."""
        count = DEFAULT_POINTS if self.points is None else self.points
        found = values(self.quantity, self.text, count, linear=self.linear, exact=True)
        return Axis(self.key, tuple(map(self._typed, found)))

    def at(self, shares: Sequence[float]) -> Axis:
        """Return the values at some shares of the way from one end to the other, each in [0, 1)."""
        (_, low), (_, high) = ends(self.quantity, self.text, linear=self.linear)
        if self.quantity.whole:
            # Each whole number has its own part of the way, of the same length if linear.
            low, high = (low, high + 1) if self.linear else (low - 0.5, high + 0.5)
        if self.linear:
            found = (low + (high - low) * share for share in shares)
        else:
            found = (low * (high / low) ** share for share in shares)
        if self.quantity.whole:
            exact = (float(math.floor(v)) if self.linear else float(round(v)) for v in found)
        else:
            exact = (float(f"{value:.6g}") for value in found)
        return Axis(self.key, tuple(self._typed(self.quantity.write(value)) for value in exact))

    def _typed(self, text: str) -> Any:
        """Return a bare number as one: a scenario takes counts without quotes."""
        if not self.bare:
            return text
        return int(text) if self.quantity.whole else float(text)


def read_range(key: str, text: str) -> Range:
    """Read ``LOW..HIGH [log|lin] [COUNT]``: ``"10ms..200ms log 8"``.

    Raises
    ------
    ScenarioError
        No range, ends that are no quantities of one kind, a count out of range; the message names
        the key and says what to write instead.
    """
    if not is_range(text):
        listed = ", ".join(units.show(value.strip()) for value in text.split(","))
        what = "one value" if "," not in text else "one text"
        raise ScenarioError(
            f"sweep.{key}: {units.show(text)} is {what}; write a range such as {EXAMPLE}, or a "
            f"list: [{listed}]"
        )
    how = _HOW.search(text.rstrip())
    ends_text = text.rstrip()[: how.start()] if how else text
    spacing = (how[1] or how[2] or "log") if how else "log"
    points = int(how[3]) if how and how[3] else None
    if points is not None and not 2 <= points <= MOST_VALUES:
        raise ScenarioError(
            f"sweep.{key}: {points} is no number of values; write from 2 to {MOST_VALUES}, as in "
            f"{units.show(ends_text + f' {spacing} 8')}"
        )
    typed = [part.strip() for part in ends_text.split("..")]
    name = kind_of([part for part in typed if part])
    if name is None:
        other = _SPACING.search(ends_text)
        if other:
            ends_only = ends_text[: other.start(1)].strip()
            raise ScenarioError(
                f"sweep.{key}: {units.show(other[1])} is no spacing; write log or lin, as in "
                f"{units.show(f'{ends_only} log 8')}"
            )
        _check_ends([part for part in typed if part], f"sweep.{key}")
        raise ScenarioError(
            f"sweep.{key}: {units.show(text)} has ends that are not of one kind (times, rates, "
            "sizes, ratios, frequencies or numbers); write a unit at each end, such as "
            f"{EXAMPLE}, or a list"
        )
    kind = KINDS[name]
    whole = name in _COUNTED and all("." not in end for end in typed if end)
    quantity = Quantity(f"sweep.{key}", kind.read, kind.write, "10ms..200ms", whole=whole)
    try:
        ends(quantity, ends_text, linear=spacing == "lin")
    except UnitError as fault:
        raise ScenarioError(_with_lin(str(fault))) from None
    return Range(key, ends_text, quantity, spacing == "lin", points, name == "number")


def _check_ends(typed: Sequence[str], place: str) -> None:
    """Say what is wrong with an end that is no quantity, or has no unit, where the other has one.

    Of ends in ``mbps``, which neither is, what they may mean.

    Raises
    ------
    ScenarioError
        There is one.
    """
    for kind in (kind for name, kind in KINDS.items() if name != "number"):
        wrong = [end for end in typed if not _all_read(kind, [end])]
        as_rates = kind is KINDS["rate"] and all(end.endswith("ps") for end in wrong)
        if not as_rates and (len(wrong) == len(typed) or kind_of(wrong) not in {None, "number"}):
            continue
        for end in wrong:
            try:
                kind.read(end)
            except ValueError as fault:
                raise ScenarioError(f"{place}: {fault}") from None


def _with_lin(message: str) -> str:
    """Say how a range begins at 0."""
    begins = "begins at 0, but steps are equal ratios"
    if begins not in message:
        return message
    head = message.partition(begins)[0]
    return f'{head}begins at 0, but steps are equal ratios; write "0..10 lin 11" for equal steps'


def read_list(key: str, listed: Sequence[Any]) -> Axis:
    """Return a list of values as an axis.

    Raises
    ------
    ScenarioError
        No value, one twice, or more than :data:`MOST_VALUES`.
    """
    if not 1 <= len(listed) <= MOST_VALUES:
        raise ScenarioError(
            f"sweep.{key}: a list of {len(listed)} values; write from 1 to {MOST_VALUES}"
        )
    seen: set[str] = set()
    for value in listed:
        shown = as_text(value)
        if shown in seen:
            raise ScenarioError(f"sweep.{key}: {shown} is listed twice; write each value once")
        seen.add(shown)
    return Axis(key, tuple(listed))


def as_text(value: Any) -> str:
    """Return a value as a column of texts holds it: a text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
