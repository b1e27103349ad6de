"""Input fields of the page: syntax, parsing, and slider values."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpcast import units
from tcpcast.errors import TcpcastError, UnitError
from tcpcast.ranges import Quantity, expand_range
from tcpcast.scenario.stack_descriptions import describe_stack
from tcpcast.scenario.tcp import STACKS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SLIDER_STEPS = 61
"""Number of values of a slider."""

MAX_LENGTH = 100
"""Maximum length of a value in characters."""

COMMON_STACKS = (
    *("linux-cubic", "linux-reno", "linux-bbr", "bbr3"),
    *("rfc-newreno", "rfc-reno", "rfc-sack"),
)
"""The most common stacks, listed before the stacks of papers."""

Values = dict[str, str]
"""Values as typed, by field name; empty fields are absent."""


class FieldError(TcpcastError):
    """An invalid value in ``field``."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One input of a question.

    Attributes
    ----------
    name, label, hint
        Name in the URL state of the page, label, and explanation.
    default
        Initial value; "" for an optional field.
    read, write
        Functions that parse and format a value; None for a choice.
    low, high
        Ends of the slider, as typed; "" for no slider.
    integer_only, starts_at_zero
        ``integer_only`` is True if only integers are valid, ``starts_at_zero`` if the slider begins
        at zero.
    choices
        Valid texts of a choice, each with a description, which may be "".
    keys
        Options and scenario keys that identify the field in messages.
    is_rarely_needed
        True if the field is in the section of rarely needed fields.
    """

    name: str
    label: str
    hint: str = ""
    default: str = ""
    read: Callable[[str], float] | None = None
    write: Callable[[float], str] | None = None
    low: str = ""
    high: str = ""
    integer_only: bool = False
    starts_at_zero: bool = False
    choices: tuple[tuple[str, str], ...] = ()
    keys: tuple[str, ...] = ()
    is_rarely_needed: bool = False

    @property
    def slider_values(self) -> list[str]:
        """Values of the slider, as typed; empty without a slider."""
        return list(_slider_values(self))

    def number(self, text: str) -> float:
        """Return a value as a number in the unit of its axis.

        Raises
        ------
        FieldError
            The text is invalid.
        """
        if self.read is None:
            raise FieldError(self.name, f"{self.label}: not a numeric field")
        try:
            return self.read(text)
        except UnitError as error:
            raise FieldError(self.name, f"{self.label}: {error}") from None

    def slider_position(self, text: str) -> int | None:
        """Return the index of the slider step nearest to a value; None if it has no slider."""
        slider_values = self.slider_values
        if not slider_values:
            return None
        try:
            value = self.number(text)
        except FieldError:
            return None
        numbers = [self.number(step) for step in slider_values]
        return min(
            range(len(slider_values)), key=lambda i: abs(_relative_distance(numbers[i], value))
        )

    def check(self, text: str) -> None:
        """Raise FieldError if a value is invalid."""
        if ".." in text:
            raise FieldError(self.name, f"{self.label}: must be a single value, not a range")
        choices = dict(self.choices)
        if choices and text not in choices:
            offered = ", ".join(choices)
            raise FieldError(
                self.name, f"{self.label}: {units.quote(text)} must be one of {offered}"
            )
        if self.read is not None:
            self.number(text)

    def describe(self) -> dict[str, Any]:
        """Return the JSON form of the field for the page."""
        return {
            "name": self.name,
            "label": self.label,
            "hint": self.hint,
            "default": self.default,
            "steps": self.slider_values,
            "choices": dict(self.choices),
            "more": self.is_rarely_needed,
        }


def _relative_distance(step: float, value: float) -> float:
    """Return the distance of a slider step from a value on a logarithmic scale."""
    if step <= 0 or value <= 0:
        return 0.0 if step == value else 1e9 + abs(step - value)
    return step / value - 1 if step > value else value / step - 1


@functools.cache
def _slider_values(field: Field) -> tuple[str, ...]:
    if field.read is None or field.write is None or not field.low:
        return ()
    ends = f"{field.low}..{field.high}"
    quantity = Quantity(field.label, field.read, field.write, ends, whole=field.integer_only)
    steps = expand_range(quantity, ends, SLIDER_STEPS)
    return tuple(["0%", *steps] if field.starts_at_zero else steps)


def validate_values(fields: tuple[Field, ...], given: Mapping[str, Any]) -> Values:
    """Return the validated values of a question's fields, with defaults for missing ones.

    Parameters
    ----------
    fields
        Fields of the question.
    given
        Texts by field name as sent by the page; an empty text omits an optional field.

    Raises
    ------
    FieldError
        A value is not a text or is invalid, or the question has no field with a given name.
    """
    known = {field.name: field for field in fields}
    for name, text in given.items():
        if name not in known:
            raise FieldError("", f"{units.quote(name)} is not a field of this question")
        if not isinstance(text, str) or len(text) > MAX_LENGTH:
            label = known[name].label
            raise FieldError(name, f"{label}: must be a text of at most {MAX_LENGTH} characters")
    result = {}
    for field in fields:
        text = str(given.get(field.name, field.default)).strip()
        if not text and field.default:
            raise FieldError(field.name, f"{field.label}: missing; for example {field.default}")
        if text:
            field.check(text)
            result[field.name] = text
    return result


def integer_parser(minimum: int, maximum: int) -> Callable[[str], float]:
    """Return a parser of integers within bounds."""

    def read(text: str) -> float:
        if re.fullmatch(r"[0-9]{1,18}", text.strip()) is None:
            example = max(minimum, 4)
            raise UnitError(f"{units.quote(text)} is not an integer; write, for example, {example}")
        return float(units.parse_count(int(text), minimum=minimum, maximum=maximum))

    return read


def write_integer(number: float) -> str:
    """Format an integer."""
    return f"{number:.0f}"


def stack_field(name: str = "stack", label: str = "TCP stack", default: str = "") -> Field:
    """Return a field to choose a stack, common stacks first."""
    first = [stack for stack in COMMON_STACKS if stack in STACKS]
    offered = (*first, *(stack for stack in STACKS if stack not in first))
    return Field(
        name=name,
        label=label,
        default=default or offered[0],
        choices=tuple((stack, describe_stack(stack)) for stack in offered),
        keys=("--stack", "tcp.stack"),
    )
