"""``tcpcast trace``: what TCP did in packet captures."""

# ruff: noqa: PLC0415, TC001 - heavy modules are imported when the command runs; typer reads types
from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from tcpcast.cli.options import Json
from tcpcast.errors import CaptureError, TcpcastError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.captures import Capture

EXAMPLE = "tcpcast trace slow.pcap"
INTERRUPTED = 130

Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE", help="Captures in pcap or pcapng; - reads standard input."),
]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV for programs.")]


def trace(files: Files, as_csv: Csv = False, as_json: Json = False) -> None:
    """Say what TCP did in packet captures, the worst first.

    One line a direction that carries data. Captures may be compressed by gzip or zstd.
    """
    if as_csv and as_json:
        raise TcpcastError("--csv and --json: only one of them can be printed")
    if files.count("-") > 1:
        raise TcpcastError("standard input can be read once: give - once")
    code = 0
    captures: list[Capture] = []
    for file in files:
        capture, said = _read(file)
        code = max(code, said)
        if capture is None:
            continue
        captures.append(capture)
        if not (as_csv or as_json):
            _print_text(capture, first=len(captures) == 1)
        if capture.interrupted:
            code = INTERRUPTED
            break
    if captures and (as_csv or as_json):
        _print_data(captures, as_json=as_json)
    if code:
        raise typer.Exit(code)


def _read(file: str) -> tuple[Capture | None, int]:
    """Read one capture; a file that is none does not keep the others from being read."""
    from tcpcast.captures import trace as read

    try:
        capture = read(file)
    except CaptureError as fault:
        print(f"tcpcast: {fault}", file=sys.stderr)
        return None, fault.exit_code
    if capture.interrupted:
        print(f"tcpcast: {file}: interrupted; figures are of what came before", file=sys.stderr)
    elif capture.damaged:
        print(f"tcpcast: {file}: damaged; figures are of what came before", file=sys.stderr)
    return capture, int(capture.damaged)


def _print_text(capture: Capture, *, first: bool) -> None:
    from tcpcast.report.lines import Line, print_lines, stdout_width
    from tcpcast.report.trace import capture_lines

    lines = capture_lines(capture, stdout_width())
    print_lines(lines if first else [Line(), *lines])


def _print_data(captures: Sequence[Capture], *, as_json: bool) -> None:
    """Print JSON or CSV, and on stderr what to check before trusting it."""
    from tcpcast.report.trace import csv_lines, json_lines

    for line in json_lines(captures) if as_json else csv_lines(captures):
        print(line)
    for capture in captures:
        for warning in capture.warnings:
            print(f"tcpcast: {capture.file}: {warning}", file=sys.stderr)
