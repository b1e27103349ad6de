"""A command group for typer that suggests the nearest name for an unknown command."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from tcpcast.process.errors import TcpcastError, find_nearest_word

FORMER_COMMANDS = {
    "completion": "for bash, use _TCPCAST_COMPLETE=source_bash tcpcast (also _zsh, _fish)",
    "man": "use tcpcast --help",
}
"""What to write instead of commands of earlier versions."""

MAX_SUMMARY_LENGTH = 1000
"""Maximum number of characters of a summary in a list of commands."""


class Commands(TyperGroup):
    """A command group that suggests the nearest name for an unknown command."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse the arguments; without arguments, print the help and exit with status 2."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            raise typer.Exit(2)
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands with complete summaries, on several lines if necessary."""
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [
            (name, command.get_short_help_str(limit=MAX_SUMMARY_LENGTH))
            for name, command in commands
            if command is not None and not command.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that ``args`` begins with.

        Raises
        ------
        TcpcastError
            The command does not exist; the message contains the nearest name.
        """
        name = args[0]
        known = self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            raise TcpcastError(self._unknown_command_message(ctx.command_path, name, known))
        return super().resolve_command(ctx, args)

    def _unknown_command_message(self, path: str, name: str, known: list[str]) -> str:
        typed = f"{path} {name}".removeprefix("tcpcast ")
        if typed in FORMER_COMMANDS:
            return f"there is no command {typed}; {FORMER_COMMANDS[typed]}"
        near = find_nearest_word(name, known)
        hint = f"; did you mean '{near}'?" if near else "."
        return f"no command '{typed}'{hint} Commands: {', '.join(known)}"
