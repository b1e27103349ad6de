"""The command line: one file a command, data on stdout, words on stderr.

Exit codes: 0 done; 1 a requested check failed or the answer is partial; 2 usage or scenario;
3 environment; 130 interrupted. A reader that leaves early (a broken pipe) is no fault: 0.
"""

# Commands import what they need when they run: `tcpcast --help` loads nothing heavy.
from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.main import get_command

import tcpcast
from tcpcast.cli import (
    engines,
    link,
    migrate,
    new,
    plan,
    predict,
    query,
    report,
    reproduce,
    run,
    schema,
    serve,
    sweep,
    trace,
)
from tcpcast.cli.commands import Commands
from tcpcast.cli.streams import Stream, abandon, own_streams
from tcpcast.errors import EnvironmentFault, TcpcastError
from tcpcast.interrupts import INTERRUPTED, TOO_EARLY, Interrupts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ORDER = (
    *("run", "predict", "plan", "sweep", "query", "trace", "report", "serve"),
    *("reproduce", "link", "new", "migrate", "engines", "schema"),
)


class TopCommands(Commands):
    """The commands themselves."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order in which they are wanted; typer puts groups last."""
        return sorted(super().list_commands(ctx), key=ORDER.index)


app = typer.Typer(
    cls=TopCommands,
    help="What will TCP do here? One scenario, many ways to answer it, one kind of answer.",
    epilog="Example: tcpcast run web-10mbit --engine engset,packet",
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command("run", epilog=f"Example: {run.EXAMPLE}")(run.run)
app.command("predict", epilog=f"Example: {predict.EXAMPLE}")(predict.predict)
app.add_typer(plan.app, name="plan", epilog=f"Example: {plan.EXAMPLE}")
app.command("sweep", epilog=f"Example: {sweep.EXAMPLE}")(sweep.sweep)
app.command("query", epilog=f"Example: {query.EXAMPLE}")(query.query)
app.command("trace", epilog=f"Example: {trace.EXAMPLE}")(trace.trace)
app.command("report", epilog=f"Example: {report.EXAMPLE}")(report.report)
app.command("reproduce", epilog=f"Example: {reproduce.EXAMPLE}")(reproduce.reproduce)
app.command("link", cls=link.LinkCommand, epilog=f"Example: {link.EXAMPLE}")(link.link)
app.command("new", epilog=f"Example: {new.EXAMPLE}")(new.new)
app.command("migrate", epilog=f"Example: {migrate.EXAMPLE}")(migrate.migrate)
app.command("serve", epilog=f"Example: {serve.EXAMPLE}")(serve.serve)
app.command("engines", epilog=f"Example: {engines.EXAMPLE}")(engines.engines)
app.command("schema", epilog=f"Example: {schema.EXAMPLE}")(schema.schema)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"tcpcast {tcpcast.__version__}")
        raise typer.Exit


@app.callback()
def _tcpcast(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print version."),
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
    given = list(sys.argv[1:] if arguments is None else arguments)
    # numpy's BLAS starts a thread a core when it is loaded. Nothing here has large matrices, and
    # without it an answer is there 50 ms earlier.
    # What `link` runs has the environment as it is.
    if given[:1] != ["link"]:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with Interrupts() as seen, own_streams() as out:
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
    except (KeyboardInterrupt, Exception) as fault:
        if isinstance(fault, BrokenPipeError) or (fault is out.fault):
            return 0  # standard output: told when it is flushed
        if isinstance(fault, KeyboardInterrupt) or seen.seen:
            print(TOO_EARLY, file=sys.stderr)
            return INTERRUPTED
        if not isinstance(fault, OSError):
            raise
        print(f"tcpcast: {fault}", file=sys.stderr)  # the machine's fault, not the user's
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
    try:
        with command.make_context("tcpcast", arguments) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort:
        return INTERRUPTED
    except typer.TyperException as usage:
        place = getattr(getattr(usage, "ctx", None), "command_path", "tcpcast")
        said = usage.format_message().replace(": Value error, ", ": ")
        print(f"{place}: {said}", file=sys.stderr)
        print(f"Try '{place} --help'.", file=sys.stderr)
        return 2
    return 0
