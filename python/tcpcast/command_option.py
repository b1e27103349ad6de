"""Options as rows, from which the command line, the page and messages derive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

REQUIRED: Any = ...
"""Default of a required option."""


@dataclass(frozen=True, slots=True)
class FormField:
    """Facts about an option that only its field on the page needs.

    Attributes
    ----------
    label, hint
        Name of the field, and its meaning.
    default
        Its first value; "" if the field may be empty.
    low, high
        Ends of the slider, as typed; "" without a slider.
    zero
        True if the slider begins at zero.
    """

    label: str
    hint: str
    default: str = ""
    low: str = ""
    high: str = ""
    zero: bool = False


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a command.

    Attributes
    ----------
    name
        Parameter of the function that runs the command.
    metavar
        Placeholder of the value; "" for an option without a value.
    help
        Line of ``--help``.
    spelled
        Option as typed, if it does not follow from the name.
    former
        Former spelling; its error suggests the present one.
    type
        Type of the value: text, or True and False for an option without a value, unless set.
    default
        Value without the option.
    least
        Minimum of a number.
    completion
        Function from the beginning of a value to complete values.
    keys
        Keys of the scenario that the option sets.
    example
        Range of values, for messages.
    page
        Facts about the field of the page, if it has one.
    """

    name: str
    metavar: str
    help: str
    spelled: str = ""
    type: Any = None
    default: Any = None
    least: int | None = None
    completion: Callable[[str], list[str]] | None = None
    keys: tuple[str, ...] = ()
    example: str = ""
    page: FormField | None = None
    former: str = ""

    @property
    def flag(self) -> str:
        """The option as typed."""
        return self.spelled or f"--{self.name.replace('_', '-')}"

    @property
    def value_type(self) -> Any:
        """Type of the value, including None if the option may be omitted."""
        if not self.metavar:
            return bool
        single = str if self.type is None else self.type
        return single | None if self.default is None else single


@dataclass(frozen=True, slots=True)
class Argument(Option):
    """A value that is typed without the name of an option."""

    default: Any = REQUIRED


def option_names(rows: Iterable[Option]) -> dict[str, str]:
    """Return the option of each scenario key, for messages."""
    return {key: row.flag for row in rows for key in row.keys}
