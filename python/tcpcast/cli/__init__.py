"""The command line: one file a command, data on stdout, words on stderr.

Exit codes: 0 done; 1 a requested check failed or the answer is partial; 2 usage or scenario;
3 environment; 130 interrupted. A reader that leaves early (a broken pipe) is no fault: 0.
"""

# Commands import what they need when they run: `tcpcast --help` loads nothing heavy.
from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from typer.main import get_command

import tcpcast
from tcpcast import extras, inputs
from tcpcast.cli import complete
from tcpcast.cli.build import TopCommands
from tcpcast.cli.commands import COMMANDS
from tcpcast.cli.streams import Stream, abandon, own_streams
from tcpcast.errors import MachineError, TcpcastError
from tcpcast.interrupts import INTERRUPTED, TOO_EARLY, Interrupts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

app = typer.Typer(
    cls=TopCommands,
    help="What will TCP do here? One scenario, many ways to answer it, one kind of answer.",
    epilog="Example: tcpcast run web-10mbit --engine engset,packet",
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"tcpcast {tcpcast.__version__}")
        raise typer.Exit


@app.callback()
def _tcpcast(
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", callback=_print_version, is_eager=True, help="Print version."
        ),
    ] = False,
) -> None:
    """Hold the options of tcpcast itself; the help stands above."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code.

    Parameters
    ----------
    arguments
        What follows the program's name; None takes it from ``sys.argv``.
    """
    extras.is_own_process = True
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["help"]:
        given = [*given[1:], "--help"]
    # numpy's BLAS starts a thread a core when it is loaded. Nothing here has large matrices, and
    # without it an answer is there 50 ms earlier.
    # Nor has anything here plugins of pydantic, which would be looked for in all that is installed.
    # What `link` runs has the environment as it is.
    if given[:1] != ["link"]:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    with Interrupts() as seen, own_streams() as out, inputs.protected():
        code = _told(lambda: _dispatch(given), seen, out)
        flushed = _told(lambda: _flush(out), seen, out)
    return flushed or code


def _told(act: Callable[[], int], seen: Interrupts, out: Stream) -> int:
    """Return the exit code of an act, and say what went wrong."""
    try:
        return act()
    except TcpcastError as fault:
        text = str(fault).replace("\n", "\n  ")  # a scenario says all its faults, one a line
        print(f"tcpcast: {text}", file=sys.stderr)
        return fault.exit_code
    except MemoryError:
        print("tcpcast: out of memory; raise the limit (ulimit -v)", file=sys.stderr)
        return MachineError.exit_code
    except (KeyboardInterrupt, Exception) as fault:
        if isinstance(fault, BrokenPipeError) or (fault is out.fault):
            return 0  # standard output: told when it is flushed
        if isinstance(fault, KeyboardInterrupt) or seen.seen:
            print(TOO_EARLY, file=sys.stderr)
            return INTERRUPTED
        if not isinstance(fault, OSError | MemoryError):
            raise
        what = "out of memory: " if isinstance(fault, MemoryError) else ""
        print(f"tcpcast: {what}{fault}", file=sys.stderr)  # the machine's fault, not the user's
        return MachineError.exit_code


def _flush(out: Stream) -> int:
    """Print what waits; a fault of standard output ends the command, whatever else went well."""
    out.goes_on = True
    out.flush()
    if out.fault is None:
        return 0
    abandon(out)
    if isinstance(out.fault, BrokenPipeError):
        return 0
    raise MachineError(f"cannot write to standard output: {out.fault.strerror or out.fault}")


def _renamed(command: str, usage: typer.TyperException) -> str | None:
    """Return the message about an option with a former name, None for other errors."""
    typed = getattr(usage, "option_name", None)
    rows = COMMANDS[command].options if typed and command in COMMANDS else ()
    named = (f"no such option: {typed}; write {row.flag}" for row in rows if row.former == typed)
    return next(named, None)


def _dispatch(arguments: list[str]) -> int:
    command = get_command(app)
    if (asked := os.environ.get(complete.VARIABLE)) is not None:
        return complete.answer(command, asked)
    try:
        with command.make_context("tcpcast", list(arguments)) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort:
        return INTERRUPTED
    except typer.TyperException as usage:
        named = f"tcpcast {arguments[0]}" if arguments[0] in COMMANDS else "tcpcast"
        place = getattr(getattr(usage, "ctx", None), "command_path", named)
        said = _renamed(arguments[0], usage) or usage.format_message()
        said = said.replace(": Value error, ", ": ")
        print(f"{place}: {said}", file=sys.stderr)
        print(f"Try '{place} --help'.", file=sys.stderr)
        return 2
    return 0
