"""``tcpcast new``: a ready-made scenario to start from."""

from __future__ import annotations

import sys
from pathlib import Path

from tcpcast import output
from tcpcast.scenario import get_packaged_names, read_packaged_text


def new(*, name: str | None, force: bool) -> None:
    """Copy a scenario into the working folder, or print all names."""
    if name is None:
        _list()
        return
    text = read_packaged_text(name)
    target = Path(f"{name}.toml")
    output.check_file(target, force=force)
    output.write_text(target, text, force=force)
    print(f"tcpcast: wrote {target}; try: tcpcast run {target}", file=sys.stderr)


def _list() -> None:
    for name in get_packaged_names():
        first = read_packaged_text(name).splitlines()[0]
        print(f"{name:<24}{first.removeprefix('#').strip()}".rstrip())
