"""Definitions of options, from which the command line, the web page and messages derive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from tcpcast.process.errors import with_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

REQUIRED: Any = ...
"""Default of a required option."""


@dataclass(frozen=True, slots=True)
class FormField:
    """Properties of an option that only its field on the web page needs.

    Attributes
    ----------
    label, hint
        Label of the field, and explanation; by default the help of the option.
    default
        Initial value; "" if the field may be empty.
    low, high
        Ends of the slider, as typed; "" without a slider.
    starts_at_zero
        True if the slider begins at zero.
    """

    label: str
    hint: str = ""
    default: str = ""
    low: str = ""
    high: str = ""
    starts_at_zero: bool = False


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
        Line of ``--help``, in which other options are in braces (``{--rtt}``); or a function that
        returns the line, for a text that is slow to compute.
    custom_flag
        Spelling of the option on the command line, if it does not follow from the name.
    type
        Type of the value; by default text or, for an option without a value, bool.
    default
        Value without the option.
    minimum
        Minimum of a number.
    completion
        Function from the beginning of a value to its completions.
    keys
        Keys of the scenario that the option sets.
    example
        Range of values, or a value, for messages.
    form_field
        Properties of the field on the web page, if the option has a field.
    """

    name: str
    metavar: str
    help: str | Callable[[], str]
    custom_flag: str = ""
    type: Any = None
    default: Any = None
    minimum: int | None = None
    completion: Callable[[str], list[str]] | None = None
    keys: tuple[str, ...] = ()
    example: str = ""
    form_field: FormField | None = None

    @property
    def flag(self) -> str:
        """The option as typed."""
        return self.custom_flag or f"--{self.name.replace('_', '-')}"

    @property
    def help_text(self) -> str:
        """Line of ``--help``, with the front end's words for other options."""
        return with_names(self.help) if isinstance(self.help, str) else self.help()

    @property
    def choices(self) -> tuple[str, ...]:
        """Words that the option accepts; empty if it accepts other values."""
        return () if self.type == list[str] else get_args(self.type)

    @property
    def value_type(self) -> Any:
        """Type of the value, including None if the option may be omitted."""
        if not self.metavar:
            return bool
        single = str if self.type is None else self.type
        return single | None if self.default is None else single


@dataclass(frozen=True, slots=True)
class Argument(Option):
    """A positional argument."""

    default: Any = REQUIRED


@dataclass(frozen=True, slots=True)
class KeyOption(Option):
    """An option that only sets its key of the scenario.

    It becomes a change before the command runs, as ``--set``, so it needs no code in the command.
    """


def changes_with_options(rows: Iterable[Option], values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of options, in which those of key options are further ``changes``."""
    keyed = [row for row in rows if isinstance(row, KeyOption)]
    typed = [f"{row.keys[0]}={values[row.name]}" for row in keyed if values[row.name] is not None]
    others = {name: value for name, value in values.items() if name not in {r.name for r in keyed}}
    if typed:
        others["changes"] = [*(values["changes"] or ()), *typed]
    return others


def options_by_key(options: Iterable[Option]) -> dict[str, str]:
    """Return the option of each scenario key, for messages."""
    return {key: row.flag for row in options for key in row.keys}
