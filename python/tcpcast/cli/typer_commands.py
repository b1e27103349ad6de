"""Builds typer commands from the declarations in :mod:`tcpcast.cli.commands`."""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand
from typer.main import get_group

from tcpcast.cli.commands import COMMANDS, CONTEXT_OPTION
from tcpcast.cli.complete import complete_stack
from tcpcast.cli.group import Commands
from tcpcast.options.command_option import REQUIRED, Argument, changes_with_options

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tcpcast.cli.commands import Command
    from tcpcast.options.command_option import Option


class TopCommands(Commands):
    """The commands of tcpcast; each is built only when it is requested."""

    def list_commands(self, _: Any) -> list[str]:
        """Return the names in the order of the help."""
        return list(COMMANDS)

    def get_command(self, _: Any, name: str) -> Any:
        """Return a command with all its options, or None if it does not exist."""
        return build_command(name) if name in COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the summaries of the commands, without building their options."""
        listed = [TyperCommand(name, help=row.summary) for name, row in COMMANDS.items()]
        Commands(commands=listed).format_commands(ctx, formatter)


class CommandWithProgram(TyperCommand):
    """A command that stores the words after ``--`` in ``args`` of its context."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words before ``--``, and store the words after it."""
        end = args.index("--") if "--" in args else len(args)
        super().parse_args(ctx, args[:end])
        ctx.args = tail = args[end + 1 :]
        return tail

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the pieces of the usage line."""
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]


@functools.cache
def build_command(name: str) -> Any:
    """Build a command from its declaration."""
    row = COMMANDS[name]
    alone = typer.Typer(rich_markup_mode=None)
    epilog = f"Example: {row.example}"
    if name == "plan":
        app = importlib.import_module("tcpcast.cli.plan").app
        alone.add_typer(app, name=name, help=row.summary, epilog=epilog)
    else:
        kind = CommandWithProgram if row.has_program else None
        alone.command(name, help=row.help, cls=kind, epilog=epilog)(_command_function(row))
    return get_group(alone).commands[name]


def _command_function(row: Command) -> Any:
    """Return the function of a command, with a signature of its options."""

    def act(**values: Any) -> None:
        module = importlib.import_module(f"tcpcast.cli.{row.name}")
        getattr(module, row.name)(**changes_with_options(row.options, values))

    set_signature(act, row.options)
    return act


def set_signature(act: Any, rows: Iterable[Option]) -> None:
    """Set the signature that typer reads, with one parameter per option."""
    parameters = [_typer_parameter(row) for row in rows]
    act.__signature__ = inspect.Signature(parameters)
    act.__annotations__ = {each.name: each.annotation for each in parameters}


def _typer_parameter(row: Option) -> inspect.Parameter:
    """Return the function parameter from which typer builds an option."""
    if row is CONTEXT_OPTION:
        return inspect.Parameter(row.name, inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    text = row.help_text
    if row.metavar and row.default not in (None, REQUIRED, ""):
        text = f"{text.removesuffix('.')}; default: {row.default}."
    facts: dict[str, Any] = {"help": text, "metavar": row.metavar or None, "show_default": False}
    completion = row.completion or (complete_stack if "tcp.stack" in row.keys else None)
    facts |= {"autocompletion": completion, "min": row.minimum}
    if isinstance(row, Argument):
        info = typer.Argument(row.default, **facts)
    else:
        info = typer.Option(row.default if row.metavar else False, row.flag, **facts)
    return inspect.Parameter(
        row.name, inspect.Parameter.KEYWORD_ONLY, default=info, annotation=row.value_type
    )
