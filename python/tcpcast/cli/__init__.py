"""The command line: one module per command, data on stdout, messages on stderr.

Exit codes: 0 success; 1 a requested check failed or the answer is partial; 2 error in usage or
scenario; 3 error of the environment; 130 interrupted. A broken pipe is not an error.
"""

# Commands import modules when they run, so that `tcpcast --help` loads nothing slow.
from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from typer.main import get_command

import tcpcast
from tcpcast.cli import complete
from tcpcast.cli.commands import COMMANDS
from tcpcast.cli.streams import (
    ErrorRecordingStream,
    Message,
    collect_message,
    print_error,
    print_message,
    redirect_to_null_device,
    replace_standard_streams,
)
from tcpcast.cli.typer_commands import TopCommands, build_command
from tcpcast.process import extras, protected_inputs
from tcpcast.process.errors import MachineError, TcpcastError, name_of
from tcpcast.process.interrupts import INTERRUPTED_EXIT_CODE, NO_ANSWER_TEXT, Interrupts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

app = typer.Typer(
    cls=TopCommands,
    help="Predict TCP performance with formulas, simulation, emulation and captures.",
    epilog="Example: tcpcast run web-10mbit --engine engset,packet",
    rich_markup_mode=None,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version(requested: bool) -> None:
    if requested:
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
    """Declare the options of tcpcast itself; ``app`` contains the help text."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code.

    Parameters
    ----------
    arguments
        Arguments after the program's name; None means ``sys.argv``.
    """
    extras.is_own_process = True
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["help"]:
        given = [*given[1:], "--help"]
    # When numpy is loaded, BLAS starts one thread per core. tcpcast has no large matrices, and
    # starts 50 ms faster without these threads. pydantic would search all installed packages for
    # plugins, which tcpcast does not use. `link` passes the environment to programs, so it must not
    # change.
    if given[:1] != ["link"]:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    with (
        Interrupts() as seen,
        replace_standard_streams() as out,
        protected_inputs.input_protection_scope(),
    ):
        code = _run_and_get_exit_code(lambda: _run_command_line(given), seen, out)
        flushed = _run_and_get_exit_code(lambda: _flush(out), seen, out)
    return flushed or code


def _run_and_get_exit_code(
    function: Callable[[], int], seen: Interrupts, out: ErrorRecordingStream
) -> int:
    """Return the exit code of a function, and print its errors."""
    try:
        return function()
    except TcpcastError as error:
        print_error(error)
        return error.exit_code
    except MemoryError:
        print_message("out of memory; raise the limit (ulimit -v)")
        return MachineError.exit_code
    except (KeyboardInterrupt, Exception) as error:
        if isinstance(error, BrokenPipeError) or (error is out.error):
            return 0  # `_flush` reports errors of standard output
        if isinstance(error, KeyboardInterrupt) or seen.seen:
            print(NO_ANSWER_TEXT, file=sys.stderr)
            return INTERRUPTED_EXIT_CODE
        if not isinstance(error, OSError | MemoryError):
            raise
        what = "out of memory: " if isinstance(error, MemoryError) else ""
        print_message(f"{what}{error}")  # an error of the machine, not the user
        return MachineError.exit_code


def _flush(out: ErrorRecordingStream) -> int:
    """Flush standard output; raise if it has failed, even if the command succeeded."""
    out.ignores_errors = True
    out.flush()
    if out.error is None:
        return 0
    redirect_to_null_device(out)
    if isinstance(out.error, BrokenPipeError):
        return 0
    raise MachineError(f"cannot write to standard output: {out.error.strerror or out.error}")


_FORMER_OPTIONS = {
    "--html": "--out FILE.html",
    "--markdown": "--out FILE.md",
    "--output": "--out DIR",
    "--statistics": "--out FILE",
    "--show": "--print-scenario",
    "--after": "--second-capture",
    "--by": "--group-by",
    "--far": "--server-command",
}
"""Options of earlier versions, and what to write instead."""

_KEYS_BY_WORD = {
    **dict.fromkeys(("loss", "plr", "drop"), "network.bottleneck.loss"),
    **dict.fromkeys(("rate", "bandwidth", "bw", "capacity"), "network.bottleneck.rate"),
    **dict.fromkeys(("rtt", "delay", "latency"), "network.rtt"),
    **dict.fromkeys(("users", "sources"), "traffic.sources"),
    **dict.fromkeys(("flows", "streams", "connections", "parallel"), "traffic.flows"),
    **dict.fromkeys(("cc", "congestion", "congestion-control", "stack"), "tcp.stack"),
    **dict.fromkeys(("duration", "time"), "run.duration"),
    "buffer": "network.bottleneck.buffer",
    "queue": "network.bottleneck.queue",
    "size": "traffic.size",
    "rwnd": "tcp.receiver_window",
}
"""Keys of a scenario by words that other programs use for options."""


def _unknown_option_message(arguments: Sequence[str], usage: typer.TyperException) -> str | None:
    """Return a message that states the right option, or None for other errors."""
    typed = getattr(usage, "option_name", None)
    if typed is None or (context := getattr(usage, "ctx", None)) is None:
        return None
    flags = {flag for parameter in context.command.params for flag in parameter.opts}
    if context.command_path.startswith("tcpcast plan") and typed == "--verify":
        return (
            f"there is no option {typed}; tcpcast simulates a plan, unless --engine names a formula"
        )
    instead = _FORMER_OPTIONS.get(typed, "")
    if instead.partition(" ")[0] in flags:
        return f"there is no option {typed}; use {instead}"
    from tcpcast.options.path_option_definitions import PATH_OPTIONS  # noqa: PLC0415 - only for an error
    from tcpcast.scenario.tcp import STACKS  # noqa: PLC0415 - slow

    key = _KEYS_BY_WORD.get(typed.removeprefix("--"), "")
    index = next(i for i, word in enumerate(arguments) if word.partition("=")[0] == typed)
    value = arguments[index].partition("=")[2] or next(iter(arguments[index + 1 :]), "VALUE")
    if key == "tcp.stack" and f"linux-{value}" in STACKS:
        value = f"linux-{value}"
    flag = next((row.flag for row in PATH_OPTIONS.values() if key in row.keys), "")
    if flag in flags:
        return f"there is no option {typed}; use {flag} {value}"
    if key and "--set" in flags:
        return f"there is no option {typed}; use --set {key}={value}"
    return None


def _command_path(arguments: list[str]) -> str:
    """Return the program with its command and subcommand."""
    name, *rest = arguments
    if name not in COMMANDS:
        return "tcpcast"
    subcommands = getattr(build_command(name), "commands", ())
    return " ".join(["tcpcast", name, *[word for word in rest[:1] if word in subcommands]])


def _run_command_line(arguments: list[str]) -> int:
    command = get_command(app)
    if (requested := os.environ.get(complete.COMPLETION_VARIABLE)) is not None:
        return complete.print_completions(command, requested)
    try:
        with command.make_context("tcpcast", list(arguments)) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort:
        return INTERRUPTED_EXIT_CODE
    except typer.TyperException as usage:
        path = getattr(getattr(usage, "ctx", None), "command_path", _command_path(arguments))
        message = _unknown_option_message(arguments, usage) or usage.format_message()
        message = message.replace(": Value error, ", ": ")
        parameter = getattr(usage, "param", None)
        key = "" if parameter is None else parameter.opts[0]
        text = f"{name_of(key)}: {usage.message or 'missing; add a value'}" if key else message
        collect_message(Message(key, text, is_error=True))
        print(f"{path}: {message}", file=sys.stderr)
        print(f"Try '{path} --help'.", file=sys.stderr)
        return 2
    return 0
