"""Options of ``tcpcast plan``, and the arguments that they give to a solver."""

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
from tcpcast.command_option import Option
from tcpcast.errors import TcpcastError, UnitError
from tcpcast.units import parse_duration, parse_rate, parse_ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tcpcast.plan.questions import Question, Target

_PARSERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "NAME": ("", str),
    "RATE": ("_bps", parse_rate),
    "RATIO": ("", parse_ratio),
    "TIME": ("_s", parse_duration),
}
"""By placeholder of an option: ending of the solver's parameter, and conversion."""
_PATH_FILE = replace(
    FILE, help="Scenario, instead of options that describe the path.", default=None
)
VERIFY = Option("verify", "", "Also solve by simulation, to check the model's answer.")
COMMON = (
    VERIFY,
    CHANGES,
    SEED,
    THREADS,
    Option("plot", "DIR", "Write a plot of the models into this folder."),
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


def choose_target(question: Question, values: Mapping[str, Any]) -> Target:
    """Return the target whose options were given.

    Raises
    ------
    TcpcastError
        An option of the target is missing, or an option of another target is given.
    """
    *others, target = question.targets
    target = next((each for each in others if select_given(values, each.required_options)), target)
    missing = [row.flag for row in target.required_options if values[row.name] is None]
    if missing:
        raise TcpcastError(f"{' and '.join(missing)}: missing; {target.missing_advice}")
    for other in question.targets:
        for row in other.options:
            if row not in target.options and values[row.name] is not None:
                raise TcpcastError(_other_target_text(row, target, other))
    return target


def _other_target_text(row: Option, target: Target, other: Target) -> str:
    """Return the message about an option of another target than the chosen one."""
    chosen, others = (
        " and ".join(option.flag for option in each.required_options) for each in (target, other)
    )
    if row in other.required_options:
        message = f"{chosen}: is a target by itself; omit {others}"
    else:
        message = f"{row.flag}: is only for a target with {others}; omit it"
    return f"{message}, or write {others} instead of {chosen}"


def read_target(target: Target, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the solver's arguments for the options of a target; an error names the option."""
    arguments = {}
    given = select_given(values, target.options)
    for row in target.options:
        ending, parse = _PARSERS[row.metavar]
        try:
            if row.name in given:
                arguments[row.name + ending] = parse(given[row.name])
        except UnitError as error:
            raise UnitError(f"{row.flag}: {error}") from None
    return arguments
