"""The option tables of the commands agree with the functions that implement the commands."""

import importlib
import inspect
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, get_args, get_origin

import pytest
import typer
from tcpcast.cli import main
from tcpcast.cli.commands import COMMANDS, CONTEXT_OPTION, RUN
from tcpcast.cli.typer_commands import build_command
from tcpcast.options.command_option import Argument, KeyOption


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
            assert many or isinstance(row, KeyOption), row.name


@pytest.fixture
def built_anew() -> Iterator[None]:
    build_command.cache_clear()
    yield
    build_command.cache_clear()


@pytest.mark.usefixtures("built_anew")
def test_an_option_that_sets_a_key_needs_one_row(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = KeyOption("noise", "TIME", "Noise of hosts.", keys=("tcp.host_noise",))
    monkeypatch.setitem(COMMANDS, "run", replace(RUN, inputs=(*RUN.inputs, row)))
    words = ["run", "one-path", "--print-scenario", "--set=run.duration=77s", "--seed=5"]
    assert main([*words, "--noise", "3ms"]) == 0
    shown = capsys.readouterr().out
    for line in ('host_noise = "3ms"', 'duration = "77s"', "seed = 5"):
        assert line in shown


def test_flags_are_off_by_default() -> None:
    rows = [
        row for command in COMMANDS.values() for row in command.options if row is not CONTEXT_OPTION
    ]
    assert len(rows) > 80
    for row in rows:
        if not row.metavar:
            assert not isinstance(row, Argument)
            assert not row.default
