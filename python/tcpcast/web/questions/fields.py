"""Fields of the page: how a value is typed, how it is read, and which values a slider has."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcpcast import units
from tcpcast.errors import TcpcastError, UnitError
from tcpcast.ranges import Quantity, values
from tcpcast.scenario.tcp import STACKS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

STEPS = 61
"""Values of a slider."""

LONGEST = 100
"""Characters of a value."""

FIRST_STACKS = (
    *("linux-cubic", "linux-reno", "linux-bbr", "bbr3"),
    *("rfc-newreno", "rfc-reno", "rfc-sack"),
)
"""The stacks that most people mean, before those of papers."""

Values = dict[str, str]
"""A value as typed for each field; one that was left out is not there."""


class FieldError(TcpcastError):
    """A value that cannot be taken; ``field`` is where it was typed."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One input of a question.

    Attributes
    ----------
    name, label, hint
        Its name in the state of the page, what stands beside it, and what it means.
    default
        Its value at the beginning; "" for one that may be left out.
    read, write
        How a value is read to a number, and written; None for a choice.
    low, high
        The ends of its slider, as typed; "" for none.
    whole, zero
        Whether only whole numbers are taken, and whether the slider begins at zero.
    choices
        What is offered where it is no quantity.
    keys
        What messages call it: an option or a key of the scenario.
    more
        Whether it stands among those that are seldom needed.
    """

    name: str
    label: str
    hint: str = ""
    default: str = ""
    read: Callable[[str], float] | None = None
    write: Callable[[float], str] | None = None
    low: str = ""
    high: str = ""
    whole: bool = False
    zero: bool = False
    choices: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    more: bool = False

    @property
    def steps(self) -> list[str]:
        """The values of the slider, as typed; none without one."""
        return list(_steps(self))

    def number(self, text: str) -> float:
        """Return a value as a number, in the unit that its axis has.

        Raises
        ------
        FieldError
            The text cannot be read.
        """
        if self.read is None:
            raise FieldError(self.name, f"{self.label}: has no numbers")
        try:
            return self.read(text)
        except UnitError as fault:
            raise FieldError(self.name, f"{self.label}: {fault}") from None

    def position(self, text: str) -> int | None:
        """Return the step of the slider that is nearest to a value; None without a slider."""
        steps = self.steps
        if not steps:
            return None
        try:
            value = self.number(text)
        except FieldError:
            return None
        numbers = [self.number(step) for step in steps]
        return min(range(len(steps)), key=lambda at: abs(_ratio(numbers[at], value)))

    def check(self, text: str) -> None:
        """Raise FieldError unless a value can be taken."""
        if ".." in text:
            raise FieldError(self.name, f"{self.label}: one value, not a range")
        if self.choices and text not in self.choices:
            offered = ", ".join(self.choices)
            raise FieldError(self.name, f"{self.label}: {units.show(text)} is none of {offered}")
        if self.read is not None:
            self.number(text)

    def describe(self) -> dict[str, Any]:
        """Return what the page needs to show it."""
        return {
            "name": self.name,
            "label": self.label,
            "hint": self.hint,
            "default": self.default,
            "steps": self.steps,
            "choices": list(self.choices),
            "more": self.more,
        }


def _ratio(step: float, value: float) -> float:
    """Compare two values as a slider of equal ratios does; a zero is nearest to a zero."""
    if step <= 0 or value <= 0:
        return 0.0 if step == value else 1e9 + abs(step - value)
    return step / value - 1 if step > value else value / step - 1


@functools.cache
def _steps(field: Field) -> tuple[str, ...]:
    if field.read is None or field.write is None or not field.low:
        return ()
    ends = f"{field.low}..{field.high}"
    quantity = Quantity(field.label, field.read, field.write, ends, whole=field.whole)
    found = values(quantity, ends, STEPS)
    return tuple(["0%", *found] if field.zero else found)


def checked(fields: tuple[Field, ...], given: Mapping[str, Any]) -> Values:
    """Return the values of a question's fields, with the defaults of those that were left out.

    Parameters
    ----------
    fields
        The question's.
    given
        What the page sent: texts by name; an empty text leaves a field out.

    Raises
    ------
    FieldError
        A value that is no text or cannot be read, or a field that the question has not.
    """
    known = {field.name: field for field in fields}
    for name, text in given.items():
        if name not in known:
            raise FieldError("", f"{units.show(name)} is no field of this question")
        if not isinstance(text, str) or len(text) > LONGEST:
            raise FieldError(name, f"{known[name].label}: write a text of at most {LONGEST} signs")
    found = {}
    for field in fields:
        text = str(given.get(field.name, field.default)).strip()
        if not text and field.default:
            raise FieldError(field.name, f"{field.label}: missing; write {field.default}, say")
        if text:
            field.check(text)
            found[field.name] = text
    return found


def whole(least: int, most: int) -> Callable[[str], float]:
    """Return what reads a whole number within bounds."""

    def read(text: str) -> float:
        if re.fullmatch(r"[0-9]{1,18}", text.strip()) is None:
            raise UnitError(f"{units.show(text)} is not a whole number; write {max(least, 4)}")
        return float(units.parse_count(int(text), minimum=least, maximum=most))

    return read


def write_whole(number: float) -> str:
    """Write a whole number."""
    return f"{number:.0f}"


def stack_field(name: str = "stack", label: str = "TCP stack", default: str = "") -> Field:
    """Return the choice of a stack, today's first."""
    first = [stack for stack in FIRST_STACKS if stack in STACKS]
    offered = (*first, *(stack for stack in STACKS if stack not in first))
    return Field(
        name=name,
        label=label,
        hint="The sender's TCP: congestion control and timers.",
        default=default or offered[0],
        choices=offered,
        keys=("--stack", "tcp.stack"),
    )
