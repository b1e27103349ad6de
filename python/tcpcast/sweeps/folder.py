"""The folder of a sweep: which sweep it holds, which of its parts are whole, and what they took.

``part-000042.parquet`` is a batch; ``_sweep.json`` says which sweep it is, and ``_wall.jsonl`` how
long each row took, where and when. Readers of Parquet folders pass over names that begin with an
underscore. A file is written aside, under a name that begins with ``.tcpcast-``.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from tcpcast import output, units
from tcpcast.errors import EnvironmentFault, TcpcastError
from tcpcast.output import PARQUET
from tcpcast.scenario.changes import leaves
from tcpcast.sweeps.table import modules

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tcpcast.sweeps.work import Part

DEFINITION, WALL = "_sweep.json", "_wall.jsonl"
_ASIDE = ".tcpcast-*"
HASH = "sweep"
"""The key of a sweep's digest in its definition."""

_TOLD = {
    "version": "another version of tcpcast ({there}; here it is {here})",
    "scenario": "another scenario",
    "tables": "another scenario",
    "axes": "other keys or values",
    "engines": "other engines",
    "replications": "another number of replications",
    "feed": "another feed",
}
"""What may differ between two sweeps, in the order in which it is looked for."""


class Folder:
    """A folder with a sweep, begun or whole."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def part(self, number: int) -> Path:
        """Return where a batch is."""
        return self.path / f"part-{number:06d}.parquet"

    @contextmanager
    def held(self, definition: Mapping[str, Any]) -> Iterator[None]:
        """Keep the folder for one sweep; what an interrupted run left aside is removed.

        Raises
        ------
        TcpcastError
            It holds another sweep, files that are none, or a sweep that is running now.
        EnvironmentFault
            It cannot be written.
        """
        output.check_folder(self.path)
        self._check(definition)
        name = self.path / DEFINITION
        if not name.exists():
            text = json.dumps(definition, indent=1, sort_keys=True, default=str) + "\n"
            output.write_text(name, text)
        with name.open(encoding="utf-8") as file:
            _lock(file, self.path)
            for left in self.path.glob(_ASIDE):
                left.unlink(missing_ok=True)
            yield

    def _check(self, definition: Mapping[str, Any]) -> None:
        there = read_definition(self.path)
        if there is not None and there.get(HASH) == definition[HASH]:
            return
        if there is not None:
            differs = next((key for key in _TOLD if there.get(key) != definition[key]), "axes")
            here = definition[differs]
            told = _TOLD[differs].format(there=there.get(differs), here=here)
            told += _first_difference(differs, there, definition)
            raise TcpcastError(f"{self.path} holds another sweep: {told}; write another --out")
        names = [path.name for path in self.path.glob("*")] if self.path.is_dir() else []
        others = sorted(name for name in names if not name.startswith(_ASIDE[:-1]))
        if others:
            raise TcpcastError(
                f"{self.path} is not empty and holds no sweep ({others[0]} is there); write "
                "another --out"
            )

    def is_whole(self, number: int, digest: str) -> bool:
        """Say whether a part is there and is one of this sweep, to its end."""
        path = self.part(number)
        if not path.is_file():
            return False
        arrow, parquet = modules("pyarrow", "pyarrow.parquet")
        try:
            marks = parquet.read_metadata(path).metadata or {}
        except (OSError, arrow.ArrowException):
            marks = {}
        if marks.get(b"tcpcast.sweep") == digest.encode():
            return True
        path.unlink()  # a power failure may leave a file without its end
        return False

    def write(self, number: int, part: Part) -> None:
        """Write a part, whole or not at all, and beside it what it took.

        Raises
        ------
        EnvironmentFault
            It cannot be written, for want of room, say.
        """
        with output.aside(self.part(number), kind=PARQUET) as temporary:
            temporary.write_bytes(part.data)
        self._note(number, part)

    def _note(self, number: int, part: Part) -> None:
        """Add a line to the side file; one that was cut short before stays a line of its own."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        rows = [[cell, again, engine, round(s, 6)] for cell, again, engine, s in part.wall]
        line = json.dumps({"part": number, "host": part.host, "date": now, "wall_s": rows})
        path = self.path / WALL
        try:
            with path.open("a+b") as file:
                end = file.seek(0, os.SEEK_END)
                file.seek(max(0, end - 1))
                torn = end > 0 and file.read(1) != b"\n"
                before = "\n" if torn else ""
                file.write(f"{before}{line}\n".encode())
        except OSError as fault:
            raise EnvironmentFault(f"cannot write {path}: {fault.strerror or fault}") from fault

    def parts(self) -> list[Path]:
        """Return the parts that are there, in order."""
        return sorted(self.path.glob("part-*.parquet"))


def _first_difference(what: str, there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """Say which key of the axes or of the scenario is the first to differ, "" for all else."""
    if what == "axes":
        old, new = (
            {key: values for group in of.get("axes", ()) for key, values in group.items()}
            for of in (there, here)
        )
        for key in {**new, **old}:
            if key not in old or key not in new:
                return f": {key} varies {'here' if key in new else 'there'} alone"
            if old[key] != new[key]:
                return f": {key} has {_values(new[key])}, there {_values(old[key])}"
    if what == "scenario":
        old, new = (dict(leaves(of.get("scenario", {}))) for of in (there, here))
        for key in {**new, **old}:
            if old.get(key) != new.get(key):
                return f": {key} is {_shown(new.get(key))}, there {_shown(old.get(key))}"
    return ""


def _values(listed: Sequence[Any]) -> str:
    ends = dict.fromkeys(_shown(value) for value in (listed[0], listed[-1]))
    return f"{len(listed):,} value{'' if len(listed) == 1 else 's'}, {' to '.join(ends)}"


def _shown(value: Any) -> str:
    return "not set" if value is None else units.show(value)


def read_definition(folder: Path) -> dict[str, Any] | None:
    """Return what ``_sweep.json`` of a folder says, None where there is none to be read."""
    try:
        found = json.loads((folder / DEFINITION).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and HASH in found else None


def _lock(file: TextIO, folder: Path) -> None:
    """Hold a file until it is closed, or the process ends."""
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise TcpcastError(
            f"another sweep is running into {folder}; wait for it, or write another --out"
        ) from None
    except OSError:  # a file system without locks
        return
