"""Options of ``tcpcast plan``, and the arguments that they give to the solver."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tcpcast.cli.options import (
    CHANGES,
    FIGURE_FORMAT,
    FILE,
    FORCE,
    JSON,
    OUT,
    SEED,
    THREADS,
)
from tcpcast.options.command_option import Option
from tcpcast.plan.questions import argument_name
from tcpcast.process.errors import DomainError, OptionError, UnitError, name_of
from tcpcast.quantity.units import parse_duration, parse_rate, parse_ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tcpcast.plan.questions import Question

_PARSERS: dict[str, Callable[[str], Any]] = {
    "RATE": parse_rate,
    "RATIO": parse_ratio,
    "TIME": parse_duration,
}
"""Conversion of an option's value by its placeholder."""

_PATH_FILE = replace(
    FILE, help="Scenario, instead of options that describe the path.", default=None
)
COMMON = (
    CHANGES,
    SEED,
    THREADS,
    Option("plot", "DIR", "Write a figure of the metric into this folder."),
    FIGURE_FORMAT,
    OUT,
    FORCE,
    JSON,
)
"""Options of all plans."""


def list_plan_options(question: Question) -> tuple[Option, ...]:
    """Return the options of a plan, without the common ones."""
    return (_PATH_FILE if question.required_path_options else FILE, *question.options)


def select_given(values: Mapping[str, Any], rows: Iterable[Option]) -> dict[str, Any]:
    """Return the values of those options that were given."""
    return {row.name: value for row in rows if (value := values[row.name]) not in {None, False}}


def read_target(question: Question, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the solver's arguments for the options of a target; an error names the option."""
    rows = dict.fromkeys(row for each in question.targets for row in each.options)
    given = select_given(values, rows)
    try:
        question.choose_target(given, lambda row: name_of(row.flag))
    except DomainError as error:
        if given:
            raise
        raise OptionError(next(iter(rows)).flag, str(error)) from None
    arguments = {name: values[name] for name in ("engine", "class_name") if values.get(name)}
    for row in rows:
        try:
            if row.name in given:
                arguments[argument_name(row)] = _PARSERS[row.metavar](given[row.name])
        except UnitError as error:
            raise OptionError(row.flag, str(error)) from None
    return arguments
