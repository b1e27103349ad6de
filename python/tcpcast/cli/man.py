"""``tcpcast man``: the manual page, with the texts of ``--help``."""

# ruff: noqa: PLC0415 - slow modules are needed only for this page
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tcpcast

if TYPE_CHECKING:
    from collections.abc import Iterator

EXIT_STATUS = {
    "0": "done",
    "1": "a requested check failed, or the answer is partial",
    "2": "the command line or the scenario is wrong; the message says what to write instead",
    "3": "a file, program or permission that the command needs is missing, or the machine was "
    "too busy",
    "130": "interrupted",
}


def man() -> None:
    """Print the manual page."""
    print("\n".join(manual_page_lines()))


def manual_page_lines() -> Iterator[str]:
    """Return the lines of the page, in the macros of man(7)."""
    from typer.main import get_command

    from tcpcast.cli import app

    top: Any = get_command(app)
    context = top.make_context("tcpcast", ["--help"], resilient_parsing=True)
    yield f'.TH TCPCAST 1 "" "tcpcast {tcpcast.__version__}" "User commands"'
    yield from (".SH NAME", f"tcpcast \\- {_escape_roff('what will TCP do here?')}")
    yield from (".SH SYNOPSIS", ".B tcpcast", _escape_roff("COMMAND [ARGUMENT]..."))
    yield from (".SH DESCRIPTION", _escape_roff(str(top.help)))
    yield from _option_lines(top, context)
    yield ".SH COMMANDS"
    for name in top.list_commands(context):
        yield from _command_section(top.get_command(context, name), context, name)
    yield ".SH EXIT STATUS"
    for code, meaning in EXIT_STATUS.items():
        yield from (".TP", f".B {code}", _escape_roff(meaning))


def _command_section(command: Any, above: Any, name: str) -> Iterator[str]:
    """Return the section of a command, followed by those of its subcommands."""
    context = command.make_context(name, ["--help"], parent=above, resilient_parsing=True)
    inner = [
        (each, command.get_command(context, each)) for each in _subcommand_names(command, context)
    ]
    usage = "" if inner else f" {' '.join(command.collect_usage_pieces(context))}"
    yield f".SS {_escape_roff(context.command_path + usage)}"
    for paragraph in str(command.help or "").split("\n\n"):
        yield from (".PP", _escape_roff(paragraph))
    if not inner:
        yield from _option_lines(command, context)
    if command.epilog:
        yield from (".PP", _escape_roff(command.epilog))
    for each, below in inner:
        yield from _command_section(below, context, each)


def _subcommand_names(command: Any, context: Any) -> list[str]:
    return list(command.list_commands(context)) if hasattr(command, "commands") else []


def _option_lines(command: Any, context: Any) -> Iterator[str]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            name, meaning = record
            yield from (".TP", f".B {_escape_roff(name)}", _escape_roff(meaning))


def _escape_roff(text: str) -> str:
    """Return a text on one line, escaped for troff."""
    line = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{line}" if line.startswith((".", "'")) else line
