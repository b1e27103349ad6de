"""The values of a varied key: a range or a list, with conversion to numbers."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tcpcast.process.errors import ScenarioError, UnitError
from tcpcast.quantity import units
from tcpcast.quantity.ranges import (
    DEFAULT_POINTS,
    Quantity,
    expand_range,
    is_range,
    read_range_ends,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MAX_VALUES = 100_000
RANGE_EXAMPLE = '"10ms..200ms log 8"'

_UNKNOWN_SPACING = re.compile(r"\.\.\s*[0-9]\S*\s+([a-z]+)\s*$")
"""An unknown word after the ends of a range, where ``log`` or ``lin`` is expected."""
_SPACING_AND_COUNT = re.compile(r"\s(log|lin)$|\s(?:(log|lin)\s+)?([0-9]{1,18})$")


@dataclass(frozen=True, slots=True)
class QuantityKind:
    """A kind of quantity: its unit in a numeric column, and functions to read and write it."""

    unit: str
    read: Callable[[Any], float]
    write: Callable[[float], str]


def _read_suffixed(suffix: str, value: object) -> float:
    text = value.strip() if isinstance(value, str) else ""
    if not text.endswith(suffix):
        raise UnitError(f"{units.quote(value)} does not have the unit {suffix}")
    return _read_number(text.removesuffix(suffix))


def _read_number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UnitError(f"{units.quote(value)} is not a number")
    if isinstance(value, str) and re.fullmatch(rf"\s*{units.NUMBER}\s*", value) is None:
        raise UnitError(f"{units.quote(value)} is not a number")
    return float(value)


def _write_suffixed(suffix: str, value: float) -> str:
    return f"{units.decimal_text(units.exact_decimal(value))}{suffix}"


QUANTITY_KINDS = {
    "number": QuantityKind("1", _read_number, partial(_write_suffixed, "")),
    "ratio": QuantityKind("ratio", units.parse_ratio, units.format_ratio),
    "time": QuantityKind("s", units.parse_duration, units.format_duration),
    "rate": QuantityKind("bit/s", units.parse_rate, units.format_rate),
    "frequency": QuantityKind("1/s", units.parse_per_second, units.format_per_second),
    "packets": QuantityKind("packet", units.parse_packets, units.format_packets),
    "bytes": QuantityKind("byte", units.parse_bytes, lambda size: units.format_bytes(round(size))),
    "bdp": QuantityKind("bdp", partial(_read_suffixed, "bdp"), partial(_write_suffixed, "bdp")),
}
"""Quantities of ranges and numeric columns."""

_COUNT_KINDS = {"number", "packets", "bytes"}
"""Kinds whose ranges contain only whole values if both ends are whole."""


def common_quantity_kind(typed: Sequence[Any]) -> str | None:
    """Return the common kind of quantity of the values, or None."""
    return next((name for name in QUANTITY_KINDS if is_quantity_of_kind(name, typed)), None)


def is_quantity_of_kind(name: str, typed: Sequence[Any]) -> bool:
    """Return True if all values are quantities of a kind in :data:`QUANTITY_KINDS`."""
    try:
        return all(math.isfinite(QUANTITY_KINDS[name].read(value)) for value in typed)
    except (ValueError, TypeError):
        return False


@dataclass(frozen=True, slots=True)
class SweepAxis:
    """A varied key with its values in the format of scenarios."""

    key: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class SweepRange:
    """A range as typed: the ends, equal ratios or equal steps, and the number of values."""

    key: str
    text: str
    quantity: Quantity
    linear: bool
    points: int | None
    has_bare_numbers: bool

    def to_axis(self) -> SweepAxis:
        """Return the values of the range; both ends are as typed."""
        count = DEFAULT_POINTS if self.points is None else self.points
        numbers = expand_range(self.quantity, self.text, count, linear=self.linear, exact=True)
        return SweepAxis(self.key, tuple(map(self._convert_bare_number, numbers)))

    def values_at_positions(self, shares: Sequence[float]) -> SweepAxis:
        """Return the values at relative positions between the ends, each in [0, 1)."""
        (_, low), (_, high) = read_range_ends(self.quantity, self.text, linear=self.linear)
        if self.quantity.whole:
            # Each whole number has a part of the range; linear parts have equal lengths.
            low, high = (low, high + 1) if self.linear else (low - 0.5, high + 0.5)
        if self.linear:
            numbers = (low + (high - low) * share for share in shares)
        else:
            numbers = (low * (high / low) ** share for share in shares)
        if self.quantity.whole:
            exact = (float(math.floor(v)) if self.linear else float(round(v)) for v in numbers)
        else:
            exact = (float(f"{value:.6g}") for value in numbers)
        return SweepAxis(
            self.key,
            tuple(self._convert_bare_number(self.quantity.write(value)) for value in exact),
        )

    def _convert_bare_number(self, text: str) -> Any:
        """Convert a bare number, because scenarios require counts without quotes."""
        if not self.has_bare_numbers:
            return text
        return int(text) if self.quantity.whole else float(text)


def read_range_axis(key: str, text: str, name: str = "") -> SweepRange:
    """Read ``LOW..HIGH [log|lin] [COUNT]``: ``"10ms..200ms log 8"``.

    ``name`` is the name of the range in messages, by default the key in the table ``[sweep]``.

    Raises
    ------
    ScenarioError
        The text is not a range, the ends are not quantities of one kind, or the count is out of
        range; the message has the key and the correction.
    """
    name = name or f"sweep.{key}"
    if not is_range(text):
        listed = ", ".join(units.quote(value.strip()) for value in text.split(","))
        what = "one value" if "," not in text else "one text"
        raise ScenarioError(
            f"{name}: {units.quote(text)} is {what}; use a range such as {RANGE_EXAMPLE}, "
            f"or a list: [{listed}]"
        )
    how = _SPACING_AND_COUNT.search(text.rstrip())
    ends_text = text.rstrip()[: how.start()] if how else text
    spacing = (how[1] or how[2] or "log") if how else "log"
    points = int(how[3]) if how and how[3] else None
    if points is not None and not 2 <= points <= MAX_VALUES:
        raise ScenarioError(
            f"{name}: {points} must be a number of values from 2 to {MAX_VALUES}, as in "
            f"{units.quote(ends_text + f' {spacing} 8')}"
        )
    typed = [part.strip() for part in ends_text.split("..")]
    kind_name = common_quantity_kind([part for part in typed if part])
    if kind_name is None:
        other = _UNKNOWN_SPACING.search(ends_text)
        if other:
            ends_only = ends_text[: other.start(1)].strip()
            raise ScenarioError(
                f"{name}: {units.quote(other[1])} is not a spacing; use log or lin, as in "
                f"{units.quote(f'{ends_only} log 8')}"
            )
        _check_range_ends([part for part in typed if part], name)
        raise ScenarioError(
            f"{name}: {units.quote(text)} has ends of different kinds (times, rates, sizes, "
            f"ratios, frequencies or numbers); use a unit at each end, such as {RANGE_EXAMPLE}, or "
            "a list"
        )
    kind = QUANTITY_KINDS[kind_name]
    whole = kind_name in _COUNT_KINDS and all("." not in end for end in typed if end)
    quantity = Quantity(name, kind.read, kind.write, "10ms..200ms", whole, True)
    try:
        read_range_ends(quantity, ends_text, linear=spacing == "lin")
    except UnitError as error:
        raise ScenarioError(str(error)) from None
    return SweepRange(key, ends_text, quantity, spacing == "lin", points, kind_name == "number")


def _check_range_ends(typed: Sequence[str], prefix: str) -> None:
    """Check the ends of a range that have different kinds.

    Raises
    ------
    ScenarioError
        An end is not a quantity, or has no unit although the other end has one. For ambiguous
        units such as ``mbps``, the message lists the possible meanings.
    """
    for name, kind in QUANTITY_KINDS.items():
        if name == "number":
            continue
        wrong = [end for end in typed if not is_quantity_of_kind(name, [end])]
        as_rates = name == "rate" and all(end.endswith("ps") for end in wrong)
        if not as_rates and (
            len(wrong) == len(typed) or common_quantity_kind(wrong) not in {None, "number"}
        ):
            continue
        for end in wrong:
            try:
                kind.read(end)
            except ValueError as error:
                raise ScenarioError(f"{prefix}: {error}") from None


def read_list_axis(key: str, listed: Sequence[Any]) -> SweepAxis:
    """Return a list of values as an axis.

    Raises
    ------
    ScenarioError
        There is no value, or there are more than :data:`MAX_VALUES`.
    """
    if not 1 <= len(listed) <= MAX_VALUES:
        raise ScenarioError(
            f"sweep.{key}: the list contains {len(listed)} values; use 1 to {MAX_VALUES}"
        )
    return SweepAxis(key, tuple(listed))


def check_that_values_differ(axes: Sequence[SweepAxis]) -> None:
    """Raise a ScenarioError if keys that vary together, or one key, have the same values twice."""
    seen: set[tuple[str, ...]] = set()
    for values in zip(*(axis.values for axis in axes), strict=True):
        shown = tuple(map(value_as_text, values))
        if shown in seen:
            raise ScenarioError(
                f"sweep.{axes[0].key}: {', '.join(shown)} is listed twice; remove one entry"
            )
        seen.add(shown)


def value_as_text(value: Any) -> str:
    """Return a value for a text column: a text unchanged, other values as JSON."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
