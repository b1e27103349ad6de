"""The option tables of the commands agree with the functions that implement the commands."""

import importlib
import inspect
from typing import Literal, get_args, get_origin

import pytest
import typer
from tcpcast.cli.commands import COMMANDS, CONTEXT_OPTION
from tcpcast.command_option import Argument


def value_type(annotation: object) -> object:
    """Return the annotated type, with ``str`` for a choice of texts."""
    if get_origin(annotation) is Literal:
        return str
    if get_args(annotation) and type(None) in get_args(annotation):
        (single,) = (member for member in get_args(annotation) if member is not type(None))
        return (value_type(single), None)
    return annotation


@pytest.mark.parametrize("name", [name for name, row in COMMANDS.items() if name != "plan"])
def test_command_functions_accept_their_options(name: str) -> None:
    function = getattr(importlib.import_module(f"tcpcast.cli.{name}"), name)
    taken = inspect.signature(function, eval_str=True, locals={"typer": typer}).parameters
    rows = {row.name: row for row in COMMANDS[name].options}
    many = [p.name for p in taken.values() if p.kind is p.VAR_KEYWORD]
    assert set(taken) - {*many} <= rows.keys()
    for row in rows.values():
        if row is CONTEXT_OPTION:
            assert taken[row.name].annotation is typer.Context
        elif row.name in taken:
            assert value_type(row.value_type) == value_type(taken[row.name].annotation), row.name
        else:
            assert many, row.name


def test_flags_are_off_by_default() -> None:
    rows = [
        row for command in COMMANDS.values() for row in command.options if row is not CONTEXT_OPTION
    ]
    assert len(rows) > 80
    for row in rows:
        if not row.metavar:
            assert not isinstance(row, Argument)
            assert not row.default
