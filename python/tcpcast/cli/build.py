"""Commands of typer, built from rows."""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand
from typer.main import get_group

from tcpcast.cli.commands import COMMANDS, CONTEXT
from tcpcast.cli.group import Commands
from tcpcast.option import Argument

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tcpcast.cli.commands import Command
    from tcpcast.option import Option


class TopCommands(Commands):
    """The commands of tcpcast; a row becomes a command when it is named."""

    def list_commands(self, _: Any) -> list[str]:
        """Return the names in the order of the help."""
        return list(COMMANDS)

    def get_command(self, _: Any, name: str) -> Any:
        """Return a command with all its options, or None if there is none of that name."""
        return built(name) if name in COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the summaries of the commands, without building their options."""
        listed = [TyperCommand(name, help=row.summary) for name, row in COMMANDS.items()]
        Commands(commands=listed).format_commands(ctx, formatter)


class WithTail(TyperCommand):
    """A command that leaves the words after ``--`` in the ``args`` of its context."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the words after ``--``, and parse the others."""
        at = args.index("--") if "--" in args else len(args)
        super().parse_args(ctx, args[:at])
        ctx.args = kept = args[at + 1 :]
        return kept

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the pieces of the usage line."""
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]


@functools.cache
def built(name: str) -> Any:
    """Build a command from its row."""
    row = COMMANDS[name]
    alone = typer.Typer(rich_markup_mode=None)
    epilog = f"Example: {row.example}"
    if name == "plan":
        app = importlib.import_module("tcpcast.cli.plan").app
        alone.add_typer(app, name=name, help=row.summary, epilog=epilog)
    else:
        kind = WithTail if row.has_tail else None
        alone.command(name, help=row.help, cls=kind, epilog=epilog)(_action(row))
    return get_group(alone).commands[name]


def _action(row: Command) -> Any:
    """Return the function of a command, with a signature made of its rows."""

    def act(**values: Any) -> None:
        module = importlib.import_module(f"tcpcast.cli.{row.name}")
        getattr(module, row.name)(**values)

    signed(act, row.options)
    return act


def signed(act: Any, rows: Iterable[Option]) -> None:
    """Give a function the signature that typer reads, a parameter for each row."""
    parameters = [_parameter(row) for row in rows]
    act.__signature__ = inspect.Signature(parameters)
    act.__annotations__ = {each.name: each.annotation for each in parameters}


def _parameter(row: Option) -> inspect.Parameter:
    """Return an option as a parameter that typer reads."""
    if row is CONTEXT:
        return inspect.Parameter(row.name, inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    facts: dict[str, Any] = {"help": row.help, "autocompletion": row.completion, "min": row.least}
    facts["metavar"] = row.metavar or None
    if isinstance(row, Argument):
        info = typer.Argument(row.default, **facts)
    else:
        info = typer.Option(row.default if row.metavar else False, row.flag, **facts)
    return inspect.Parameter(
        row.name, inspect.Parameter.KEYWORD_ONLY, default=info, annotation=row.value_type
    )
