"""Finding a command by its name: what is not built yet, and what was probably meant."""

from __future__ import annotations

import difflib
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup

from tcpcast.errors import TcpcastError


class Commands(TyperGroup):
    """A group of commands that answers a wrong name with the right one."""

    later: ClassVar[frozenset[str]] = frozenset()
    """Commands that belong here and come with a later version."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse the arguments; without any, show the help and say that it was no question."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            raise typer.Exit(2)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that ``args`` begins with.

        Raises
        ------
        TcpcastError
            No such command; the message says whether it is yet to come, or the nearest name.
        """
        name = args[0]
        known = self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            raise TcpcastError(self._refusal(ctx.command_path, name, known))
        return super().resolve_command(ctx, args)

    def _refusal(self, path: str, name: str, known: list[str]) -> str:
        there_are = f"There are: {', '.join(known)}."
        asked = f"{path} {name}".removeprefix("tcpcast ")
        if name in self.later:
            return f"'{asked}' is not built yet; it comes with a later version. {there_are}"
        near = difflib.get_close_matches(name, [*known, *self.later], n=1)
        hint = f"; did you mean '{near[0]}'?" if near else "."
        return f"no command '{asked}'{hint} {there_are}"
