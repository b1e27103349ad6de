"""``tcpcast new``: a ready-made scenario to start from."""

# ruff: noqa: PLC0415 - heavy modules are imported when the command runs, not for its help
from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tcpcast.errors import EnvironmentFault, TcpcastError

EXAMPLE = "tcpcast new web-10mbit"


def new(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Which one; without it, all are listed.")
    ] = None,
) -> None:
    """Copy a packaged scenario, or list them.

    The copy is ./NAME.toml; a file of that name is not overwritten.
    """
    from tcpcast.scenario import packaged_text

    if name is None:
        _list()
        return
    text = packaged_text(name)
    target = Path(f"{name}.toml")
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise TcpcastError(
            f"{target} is already here and is not overwritten; move it away first."
        ) from None
    except OSError as fault:
        raise EnvironmentFault(f"cannot write {target}: {fault.strerror}") from fault
    print(f"tcpcast: wrote {target}; try: tcpcast run {target}", file=sys.stderr)


def _list() -> None:
    from tcpcast.scenario import packaged_names, packaged_text

    for name in packaged_names():
        first = packaged_text(name).splitlines()[0]
        print(f"{name:<24}{first.removeprefix('#').strip()}".rstrip())
