"""``tcpcast migrate``: a scenario file of an earlier version, with the keys of this one."""

# ruff: noqa: PLC0415 - heavy modules are imported when the command runs
from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tcpcast import output
from tcpcast.errors import TcpcastError

EXAMPLE = "tcpcast migrate office.toml"


def migrate(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A scenario file.")],
    check: Annotated[
        bool,
        typer.Option("--check", help="Tell what is to change, write nothing; exit code 1 if any."),
    ] = False,
) -> None:
    """Rewrite a scenario file of an earlier version with the keys of this one.

    Comments and order stay. A file that needs nothing is left as it is.
    """
    from tcpcast.scenario import read_text
    from tcpcast.scenario.migration import migrated

    path = _checked(file)
    text = read_text(path)
    written, changes = migrated(text, file)
    for line in changes:
        print(line)
    if not changes:
        print(f"tcpcast: {file} needs nothing: its keys are those of this version", file=sys.stderr)
    elif check:
        raise typer.Exit(1)
    else:
        _write(path, written)
        print(f"tcpcast: wrote {file}; try: tcpcast run {file} --show", file=sys.stderr)


def _checked(file: str) -> Path:
    """Refuse what is no file of the user's own: a link, a folder, a packaged scenario."""
    path = Path(file)
    if path.is_symlink():
        raise TcpcastError(
            f"{file} is a symbolic link, which is not followed; write {path.resolve()}"
        )
    if not path.is_file():
        raise TcpcastError(f"{file}: no such file; write the name of a scenario file")
    return path


def _write(path: Path, text: str) -> None:
    """Write a file in place of itself, with its permissions."""
    mode = path.stat().st_mode
    with output.aside(path, force=True) as temporary:
        # Line ends stay as they are.
        temporary.write_bytes(text.encode())
        temporary.chmod(mode & 0o7777)
