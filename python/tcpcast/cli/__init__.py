"""The command line: one file a command, data on stdout, words on stderr.

Exit codes: 0 done; 1 a requested check failed or the answer is partial; 2 usage or scenario;
3 environment; 130 interrupted. A reader that leaves early (a broken pipe) is no fault: 0.
"""

# Commands import what they need when they run: `tcpcast --help` loads nothing heavy.
from __future__ import annotations

import functools
import importlib
import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

import tcpcast
from tcpcast import extras, inputs
from tcpcast.cli import complete
from tcpcast.cli.commands import Commands
from tcpcast.cli.streams import Stream, abandon, own_streams
from tcpcast.errors import EnvironmentFault, TcpcastError
from tcpcast.interrupts import INTERRUPTED, TOO_EARLY, Interrupts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ORDER = (
    *("run", "predict", "plan", "sweep", "query", "trace", "report", "serve"),
    *("reproduce", "link", "new", "engines", "schema", "completion", "man"),
)


class TopCommands(Commands):
    """The commands themselves, each imported when it is named."""

    def list_commands(self, _: Any) -> list[str]:
        """Return the names in the order in which they are wanted."""
        return list(ORDER)

    def get_command(self, _: Any, name: str) -> Any:
        """Return a command with all its options, or None where there is none of that name."""
        return _built(name) if name in ORDER else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List what each command does, without its options: to build them all takes longer."""
        listed = [TyperCommand(name, help=_summary(name)) for name in ORDER]
        TyperGroup(commands=listed).format_commands(ctx, formatter)


@functools.cache
def _built(name: str) -> Any:
    """Build a command from the module of its name."""
    module = importlib.import_module(f"tcpcast.cli.{name}")
    alone = typer.Typer(rich_markup_mode=None)
    epilog = f"Example: {module.EXAMPLE}"
    if hasattr(module, "app"):
        alone.add_typer(module.app, name=name, epilog=epilog)
    else:
        class_ = getattr(module, "COMMAND_CLASS", None)
        alone.command(name, cls=class_, epilog=epilog)(getattr(module, name))
    return get_group(alone).commands[name]


def _summary(name: str) -> str:
    """Return the help of a command, of which the list shows the beginning."""
    module = importlib.import_module(f"tcpcast.cli.{name}")
    return str(module.app.info.help if hasattr(module, "app") else getattr(module, name).__doc__)


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
        return EnvironmentFault.exit_code
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
        return EnvironmentFault.exit_code


def _flush(out: Stream) -> int:
    """Print what waits; a fault of standard output ends the command, whatever else went well."""
    out.goes_on = True
    out.flush()
    if out.fault is None:
        return 0
    abandon(out)
    if isinstance(out.fault, BrokenPipeError):
        return 0
    raise EnvironmentFault(f"cannot write to standard output: {out.fault.strerror or out.fault}")


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
        named = f"tcpcast {arguments[0]}" if arguments[0] in ORDER else "tcpcast"
        place = getattr(getattr(usage, "ctx", None), "command_path", named)
        said = usage.format_message().replace(": Value error, ", ": ")
        print(f"{place}: {said}", file=sys.stderr)
        print(f"Try '{place} --help'.", file=sys.stderr)
        return 2
    return 0
