"""The folder of a sweep: which sweep it holds, which of its parts are whole, and what they took.

``part-000042.parquet`` is a batch; ``_sweep.json`` says which sweep it is, and ``_wall.jsonl`` how
long each row took, where and when. While a sweep that has grown is not whole, ``_earlier.parquet``
has the rows that were there before. Readers of Parquet folders pass over names that begin with an
underscore. A file is written aside, under a name that begins with ``.tcpcast-``.
"""

from __future__ import annotations

import json
import os
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from tcpcast import output, units
from tcpcast.errors import EnvironmentFault, TcpcastError
from tcpcast.output import PARQUET
from tcpcast.scenario.changes import leaves
from tcpcast.sweeps.earlier import moved_notes, moves, put_aside
from tcpcast.sweeps.table import intact_marks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tcpcast.sweeps.earlier import Moves
    from tcpcast.sweeps.worker import Part

DEFINITION, WALL, EARLIER = "_sweep.json", "_wall.jsonl", "_earlier.parquet"
_ASIDE = ".tcpcast-*"
HASH = "sweep"
"""The key of a sweep's digest in its definition."""
_SWEEP = "tcpcast.sweep"
"""What a Parquet file has the digest under."""

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
    def held(self, definition: Mapping[str, Any], batches: int) -> Iterator[None]:
        """Keep the folder for one sweep; what an interrupted run left aside is removed.

        Parameters
        ----------
        definition
            Which sweep it is. One that has the same cells as that in the folder, and more, takes it
            over: the rows that are there are put aside for :meth:`earlier`.
        batches
            How many parts it has.

        Raises
        ------
        TcpcastError
            It holds another sweep, files that are none, or a sweep that is running now.
        EnvironmentFault
            It cannot be written.
        """
        output.check_folder(self.path)
        there = read_definition(self.path)
        moved = self._checked(there, definition)
        name = self.path / DEFINITION
        with ExitStack() as stack:
            if there is not None and moved is not None:
                self._lock(stack, name)
                self._take_over(there, definition, moved)
            if not name.exists():
                self._define(definition)
            self._lock(stack, name)
            for left in self.path.glob(_ASIDE):
                left.unlink(missing_ok=True)
            for part in self.parts():
                if int(part.stem.rpartition("-")[2]) >= batches:  # of the sweep before it has grown
                    part.unlink()
            yield

    def _lock(self, stack: ExitStack, name: Path) -> None:
        _lock(stack.enter_context(name.open(encoding="utf-8")), self.path)

    def _define(self, definition: Mapping[str, Any], *, force: bool = False) -> None:
        text = json.dumps(definition, indent=1, sort_keys=True, default=str) + "\n"
        output.write_text(self.path / DEFINITION, text, force=force)

    def _checked(
        self, there: Mapping[str, Any] | None, definition: Mapping[str, Any]
    ) -> Moves | None:
        """Refuse what is not this sweep; return how cells move in one that has grown."""
        if there is not None:
            return None if there.get(HASH) == definition[HASH] else self._grown(there, definition)
        names = [path.name for path in self.path.glob("*")] if self.path.is_dir() else []
        others = sorted(name for name in names if not name.startswith(_ASIDE[:-1]))
        if others:
            raise TcpcastError(
                f"{self.path} is not empty and holds no sweep ({others[0]} is there); write "
                "another --out"
            )
        return None

    def _grown(self, there: Mapping[str, Any], definition: Mapping[str, Any]) -> Moves:
        differs = next((key for key in _TOLD if there.get(key) != definition[key]), "axes")
        moved = moves(there.get("axes", ()), definition["axes"]) if differs == "axes" else None
        if moved is not None:
            return moved
        told = _TOLD[differs].format(there=there.get(differs), here=definition[differs])
        told += _first_difference(differs, there, definition)
        raise TcpcastError(f"{self.path} holds another sweep: {told}; write another --out")

    def _take_over(
        self, there: Mapping[str, Any], definition: Mapping[str, Any], moved: Moves
    ) -> None:
        """Put the rows of a smaller sweep aside, and make the folder that of the larger one.

        After each step it holds one sweep or the other, with all rows.
        """
        old, new = str(there[HASH]), str(definition[HASH])
        aside, before = self.path / EARLIER, _sweep_of(self.path / EARLIER)
        if before != new:
            parts = [part for part in self.parts() if _sweep_of(part) == old]
            own = aside if before == old else None
            if parts or own is not None:
                with output.atomic_file(aside, kind=PARQUET) as temporary:
                    put_aside(parts, own, moved, temporary, {_SWEEP: new})
            self._move_notes(definition, moved)
        self._define(definition, force=True)
        for part in self.parts():
            part.unlink()

    def _move_notes(self, definition: Mapping[str, Any], moved: Moves) -> None:
        path = self.path / WALL
        if path.is_file():
            lines = path.read_text(encoding="utf-8").splitlines()
            told = moved_notes(lines, moved, definition["replications"], definition["batch"])
            output.write_text(path, "".join(f"{line}\n" for line in told), force=True)

    def earlier(self, digest: str) -> Path | None:
        """Return the file with the rows that were there before the sweep has grown, if any."""
        path = self.path / EARLIER
        return path if _sweep_of(path) == digest else None

    def finish(self) -> None:
        """Remove what is not needed once all parts are there."""
        (self.path / EARLIER).unlink(missing_ok=True)

    def is_whole(self, number: int, digest: str) -> bool:
        """Say whether a part is there, belongs to this sweep and is not damaged."""
        path = self.part(number)
        if not path.is_file():
            return False
        if _sweep_of(path) == digest:
            return True
        path.unlink()  # a power failure may cut a file, and a disk may change a bit
        return False

    def write(self, number: int, part: Part) -> None:
        """Write a part, whole or not at all, and beside it what it took.

        Raises
        ------
        EnvironmentFault
            It cannot be written, for want of room, say.
        """
        with output.atomic_file(self.part(number), kind=PARQUET) as temporary:
            temporary.write_bytes(part.data)
        if part.wall:
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


def _sweep_of(path: Path) -> str | None:
    """Return the digest of the sweep to which a file belongs, None if it is missing or damaged."""
    try:
        return intact_marks(path.read_bytes()).get(_SWEEP)
    except OSError:
        return None


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
