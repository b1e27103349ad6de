"""The folder of a sweep: its definition, its complete parts, and their computing times.

``part-000042.parquet`` is a batch. ``_sweep.parquet`` has the definition, and ``_wall.parquet`` the
duration, host and time of each row: as metadata of tables with the columns of the parts and without
rows, because some readers of Parquet folders read every file (polars), and others ignore names that
start with an underscore. While a grown sweep is incomplete, ``_earlier.parquet`` has the rows of
the smaller sweep. Files are first written under a temporary name that starts with ``.tcpcast-``.

Folders of former versions have the definition in ``_sweep.json`` and the times in ``_wall.jsonl``;
these files are replaced when the sweep is resumed.
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
from tcpcast.scenario import Scenario
from tcpcast.scenario.changes import iter_values_by_dotted_key
from tcpcast.sweeps.axes import SweepAxis
from tcpcast.sweeps.check_swept_keys import get_column_kinds
from tcpcast.sweeps.earlier_rows import compute_cell_moves, renumber_wall_times, store_earlier_rows
from tcpcast.sweeps.table import (
    encode_as_parquet_file,
    make_record_batch,
    read_intact_metadata,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tcpcast.sweeps.earlier_rows import CellMoves
    from tcpcast.sweeps.worker import BatchResult

DEFINITION_FILE, WALL_TIMES_FILE, EARLIER_ROWS_FILE = (
    "_sweep.parquet",
    "_wall.parquet",
    "_earlier.parquet",
)
_FORMER_DEFINITION_FILE, _FORMER_WALL_TIMES_FILE = "_sweep.json", "_wall.jsonl"
_DEFINITION_METADATA_KEY = "tcpcast.definition"
_WALL_TIMES_METADATA_KEY = "tcpcast.wall"
"""Keys of the definition as JSON, and of the computing times as lines of JSON."""
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
        self._wall_times: list[str] = []

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
            self._replace_former_files(definition)
            for left in self.path.glob(_TEMPORARY_PATTERN):
                left.unlink(missing_ok=True)
            for part in self.existing_parts():
                if int(part.stem.rpartition("-")[2]) >= batches:  # part of the smaller sweep
                    part.unlink()
            try:
                yield
            finally:
                if self._wall_times:
                    lines = [*_read_wall_time_lines(self.path), *self._wall_times]
                    self._write_wall_times(definition, lines)
                    self._wall_times = []

    def _write_definition(self, definition: Mapping[str, Any], *, force: bool = False) -> None:
        text = json.dumps(definition, sort_keys=True, default=str)
        self._write_metadata(
            DEFINITION_FILE, definition, {_DEFINITION_METADATA_KEY: text}, force=force
        )

    def _write_wall_times(self, definition: Mapping[str, Any], lines: Sequence[str]) -> None:
        marks = {_WALL_TIMES_METADATA_KEY: "\n".join(lines)}
        self._write_metadata(WALL_TIMES_FILE, definition, marks, force=True)

    def _write_metadata(
        self, name: str, definition: Mapping[str, Any], marks: Mapping[str, str], *, force: bool
    ) -> None:
        """Write a table with the columns of the parts, without rows."""
        path = self.path / name
        with output.atomic_file(path, kind=PARQUET_KIND, force=force) as temporary:
            temporary.write_bytes(encode_as_parquet_file(_batch_without_rows(definition), marks))

    def _replace_former_files(self, definition: Mapping[str, Any]) -> None:
        """Replace the files of a former version, which not every reader of Parquet ignores."""
        former = self.path / _FORMER_DEFINITION_FILE
        if former.is_file():
            if not (self.path / DEFINITION_FILE).is_file():
                self._write_definition(definition)
            former.unlink()
        times = self.path / _FORMER_WALL_TIMES_FILE
        if times.is_file():
            self._write_wall_times(definition, _read_wall_time_lines(self.path))
            times.unlink()

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
        if lines := _read_wall_time_lines(self.path):
            notes = renumber_wall_times(
                lines, moved, definition["replications"], definition["batch"]
            )
            self._write_wall_times(definition, list(notes))
            (self.path / _FORMER_WALL_TIMES_FILE).unlink(missing_ok=True)

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
        """Write a part atomically; its computing times are written when the sweep ends.

        Raises
        ------
        MachineError
            The part cannot be written, for example because the disk is full.
        """
        with output.atomic_file(self.part_file(number), kind=PARQUET_KIND) as temporary:
            temporary.write_bytes(part.data)
        if part.wall:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            rows = [[cell, again, engine, round(s, 6)] for cell, again, engine, s in part.wall]
            record = {"part": number, "host": part.host, "date": now, "wall_s": rows}
            self._wall_times.append(json.dumps(record))

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
    """Return the definition of the sweep in a folder, or None if it cannot be read."""
    try:
        if (folder / DEFINITION_FILE).is_file():
            marks = read_intact_metadata((folder / DEFINITION_FILE).read_bytes())
            text = marks.get(_DEFINITION_METADATA_KEY, "")
        else:
            text = (folder / _FORMER_DEFINITION_FILE).read_text(encoding="utf-8")
        definition = json.loads(text)
    except (OSError, ValueError):
        return None
    return definition if isinstance(definition, dict) and DIGEST_KEY in definition else None


def read_wall_times(folder: Path) -> list[dict[str, Any]]:
    """Return the computing times of a sweep, one record per part and run."""
    return [json.loads(line) for line in _read_wall_time_lines(folder)]


def _read_wall_time_lines(folder: Path) -> list[str]:
    lines: list[str] = []
    if (folder / WALL_TIMES_FILE).is_file():
        marks = read_intact_metadata((folder / WALL_TIMES_FILE).read_bytes())
        lines += marks.get(_WALL_TIMES_METADATA_KEY, "").splitlines()
    former = folder / _FORMER_WALL_TIMES_FILE
    if former.is_file():
        lines += former.read_text(encoding="utf-8").splitlines()
    return lines


def _batch_without_rows(definition: Mapping[str, Any]) -> Any:
    """Return a table with the columns of the parts, without rows."""
    scenario = Scenario.from_dict(definition["scenario"])
    axes = [
        SweepAxis(key, tuple(values))
        for group in definition["axes"]
        for key, values in group.items()
    ]
    classes = tuple(group.name for group in scenario.populations)
    return make_record_batch(
        [], get_column_kinds(scenario, axes), classes if len(classes) > 1 else ()
    )


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
