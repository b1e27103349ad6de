"""The folder of a sweep: its definition, its complete parts, and their computing times.

``part-000042.parquet`` is a batch, ``_sweep.json`` the definition, and ``_wall.jsonl`` has the
duration, host and time of each row. While a grown sweep is incomplete, ``_earlier.parquet`` has
the rows of the smaller sweep. Readers of Parquet folders ignore names that start with an
underscore. Files are first written under a temporary name that starts with ``.tcpcast-``.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpcast import output, units
from tcpcast.errors import MachineError, TcpcastError
from tcpcast.output import PARQUET_KIND
from tcpcast.scenario.changes import iter_values_by_dotted_key
from tcpcast.sweeps.earlier_rows import compute_cell_moves, renumber_wall_times, store_earlier_rows
from tcpcast.sweeps.table import read_intact_metadata

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tcpcast.sweeps.earlier_rows import CellMoves
    from tcpcast.sweeps.worker import BatchResult

DEFINITION_FILE, WALL_TIMES_FILE, EARLIER_ROWS_FILE = (
    "_sweep.json",
    "_wall.jsonl",
    "_earlier.parquet",
)
_TEMPORARY_PATTERN = ".tcpcast-*"
DIGEST_KEY = "sweep"
"""Key of the digest in a sweep's definition."""
_DIGEST_METADATA_KEY = "tcpcast.sweep"
"""Key of the digest in the metadata of a Parquet file."""

_DIFFERENCES = {
    "version": "another version of tcpcast ({there}; this is {here})",
    "scenario": "another scenario",
    "tables": "another scenario",
    "axes": "other keys or values",
    "engines": "other engines",
    "replications": "another number of replications",
    "feed": "another feed",
}
"""Possible differences between two sweeps, in the order of checking."""


class SweepFolder:
    """A folder with a complete or incomplete sweep."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def part_file(self, number: int) -> Path:
        """Return the file of a batch."""
        return self.path / f"part-{number:06d}.parquet"

    @contextmanager
    def locked(self, definition: Mapping[str, Any], batches: int) -> Iterator[None]:
        """Lock the folder for one sweep; temporary files of an interrupted run are removed.

        Parameters
        ----------
        definition
            Definition of the sweep. If it contains all cells of the sweep in the folder, it
            replaces that sweep, and the existing rows are stored for :meth:`earlier_rows_file`.
        batches
            Number of parts.

        Raises
        ------
        TcpcastError
            The folder contains another sweep, a running sweep or other files.
        MachineError
            The folder cannot be written.
        """
        output.check_folder_is_writable(self.path)
        with _locked_folder(self.path):
            there = read_definition(self.path)
            moved = self._check_contents(there, definition)
            if there is None:
                self._write_definition(definition)
            elif moved is not None:
                self._reuse_smaller_sweep(there, definition, moved)
            for left in self.path.glob(_TEMPORARY_PATTERN):
                left.unlink(missing_ok=True)
            for part in self.existing_parts():
                if int(part.stem.rpartition("-")[2]) >= batches:  # part of the smaller sweep
                    part.unlink()
            yield

    def _write_definition(self, definition: Mapping[str, Any], *, force: bool = False) -> None:
        text = json.dumps(definition, indent=1, sort_keys=True, default=str) + "\n"
        output.write_text(self.path / DEFINITION_FILE, text, force=force)

    def _check_contents(
        self, there: Mapping[str, Any] | None, definition: Mapping[str, Any]
    ) -> CellMoves | None:
        """Return new cell numbers for a smaller sweep in the folder; raise for other contents."""
        if there is not None:
            return (
                None
                if there.get(DIGEST_KEY) == definition[DIGEST_KEY]
                else self._check_growth(there, definition)
            )
        names = [path.name for path in self.path.glob("*")] if self.path.is_dir() else []
        others = sorted(name for name in names if not name.startswith(_TEMPORARY_PATTERN[:-1]))
        if others:
            raise TcpcastError(
                f"{self.path} is not a sweep: it contains {others[0]}; write an empty or new "
                "folder after --out"
            )
        return None

    def _check_growth(self, there: Mapping[str, Any], definition: Mapping[str, Any]) -> CellMoves:
        differs = next((key for key in _DIFFERENCES if there.get(key) != definition[key]), "axes")
        moved = (
            compute_cell_moves(there.get("axes", ()), definition["axes"])
            if differs == "axes"
            else None
        )
        if moved is not None:
            return moved
        message = _DIFFERENCES[differs].format(there=there.get(differs), here=definition[differs])
        message += _first_difference_text(differs, there, definition)
        raise TcpcastError(f"{self.path} contains another sweep: {message}; write another --out")

    def _reuse_smaller_sweep(
        self, there: Mapping[str, Any], definition: Mapping[str, Any], moved: CellMoves
    ) -> None:
        """Store the rows of a smaller sweep, and replace it by the larger one.

        After each step, the folder contains one of the two sweeps with all rows.
        """
        old, new = str(there[DIGEST_KEY]), str(definition[DIGEST_KEY])
        aside, before = (
            self.path / EARLIER_ROWS_FILE,
            _read_sweep_digest(self.path / EARLIER_ROWS_FILE),
        )
        if before != new:
            parts = [part for part in self.existing_parts() if _read_sweep_digest(part) == old]
            earlier_rows = aside if before == old else None
            if parts or earlier_rows is not None:
                with output.atomic_file(aside, kind=PARQUET_KIND) as temporary:
                    store_earlier_rows(
                        parts, earlier_rows, moved, temporary, {_DIGEST_METADATA_KEY: new}
                    )
            self._renumber_wall_times(definition, moved)
        self._write_definition(definition, force=True)
        for part in self.existing_parts():
            part.unlink()

    def _renumber_wall_times(self, definition: Mapping[str, Any], moved: CellMoves) -> None:
        path = self.path / WALL_TIMES_FILE
        if path.is_file():
            lines = path.read_text(encoding="utf-8").splitlines()
            notes = renumber_wall_times(
                lines, moved, definition["replications"], definition["batch"]
            )
            output.write_text(path, "".join(f"{line}\n" for line in notes), force=True)

    def earlier_rows_file(self, digest: str) -> Path | None:
        """Return the file with the rows of the smaller sweep, or None."""
        path = self.path / EARLIER_ROWS_FILE
        return path if _read_sweep_digest(path) == digest else None

    def remove_unneeded_files(self) -> None:
        """Remove files that are not needed when all parts exist."""
        (self.path / EARLIER_ROWS_FILE).unlink(missing_ok=True)

    def is_complete(self, number: int, digest: str) -> bool:
        """Return True if a part exists, belongs to this sweep and is undamaged."""
        path = self.part_file(number)
        if not path.is_file():
            return False
        if _read_sweep_digest(path) == digest:
            return True
        path.unlink()  # damaged, for example by a power failure or a disk error
        return False

    def write(self, number: int, part: BatchResult) -> None:
        """Write a part atomically, and its computing times.

        Raises
        ------
        MachineError
            The part cannot be written, for example because the disk is full.
        """
        with output.atomic_file(self.part_file(number), kind=PARQUET_KIND) as temporary:
            temporary.write_bytes(part.data)
        if part.wall:
            self._append_wall_times(number, part)

    def _append_wall_times(self, number: int, part: BatchResult) -> None:
        """Append a line to ``_wall.jsonl``, after a line break if the last line was truncated."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        rows = [[cell, again, engine, round(s, 6)] for cell, again, engine, s in part.wall]
        line = json.dumps({"part": number, "host": part.host, "date": now, "wall_s": rows})
        path = self.path / WALL_TIMES_FILE
        try:
            with path.open("a+b") as file:
                end = file.seek(0, os.SEEK_END)
                file.seek(max(0, end - 1))
                torn = end > 0 and file.read(1) != b"\n"
                before = "\n" if torn else ""
                file.write(f"{before}{line}\n".encode())
        except OSError as error:
            raise MachineError(f"cannot write {path}: {error.strerror or error}") from error

    def existing_parts(self) -> list[Path]:
        """Return the existing parts in order."""
        return sorted(self.path.glob("part-*.parquet"))


def _read_sweep_digest(path: Path) -> str | None:
    """Return the digest of the sweep of a file, or None if the file is missing or damaged."""
    try:
        return read_intact_metadata(path.read_bytes()).get(_DIGEST_METADATA_KEY)
    except OSError:
        return None


def _first_difference_text(what: str, there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """Return the first different key of the axes or of the scenario as text, otherwise ""."""
    if what == "axes":
        old, new = (
            {key: values for group in of.get("axes", ()) for key, values in group.items()}
            for of in (there, here)
        )
        for key in {**new, **old}:
            if key not in old or key not in new:
                return f": {key} varies only {'in this sweep' if key in new else 'in the folder'}"
            if old[key] != new[key]:
                return (
                    f": {key} has {_values_text(new[key])}, but in the folder "
                    f"{_values_text(old[key])}"
                )
    if what == "scenario":
        old, new = (dict(iter_values_by_dotted_key(of.get("scenario", {}))) for of in (there, here))
        for key in {**new, **old}:
            if old.get(key) != new.get(key):
                new_text, old_text = _value_text(new.get(key)), _value_text(old.get(key))
                return f": {key} is {new_text}, but in the folder {old_text}"
    return ""


def _values_text(listed: Sequence[Any]) -> str:
    ends = dict.fromkeys(_value_text(value) for value in (listed[0], listed[-1]))
    return f"{len(listed):,} value{'' if len(listed) == 1 else 's'}, {' to '.join(ends)}"


def _value_text(value: Any) -> str:
    return "not set" if value is None else units.quote(value)


def read_definition(folder: Path) -> dict[str, Any] | None:
    """Return the contents of ``_sweep.json`` in a folder, or None if it cannot be read."""
    try:
        definition = json.loads((folder / DEFINITION_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return definition if isinstance(definition, dict) and DIGEST_KEY in definition else None


@contextmanager
def _locked_folder(folder: Path) -> Iterator[None]:
    """Create a folder if it is missing, and lock it until the block or the process ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MachineError(f"cannot create {folder}: {error.strerror or error}") from error
    try:
        import fcntl  # noqa: PLC0415 - not on Windows
    except ImportError:
        yield
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise MachineError(f"cannot read {folder}: {error.strerror or error}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise TcpcastError(
            f"another sweep is writing into {folder}; wait until it ends, or write another --out"
        ) from None
    except OSError:
        pass  # a file system without locks
    try:
        yield
    finally:
        os.close(descriptor)
