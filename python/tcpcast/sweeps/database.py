"""The database of a sweep: one SQLite file that stores the answer to each run by key.

The key is a digest of everything on which the answer depends. A sweep therefore reuses all
answers in the file: those of an interrupted sweep, of fewer values, or of other engines.
The rows of a batch are written in one transaction. ``results.parquet`` is written when a sweep
ends, also after an interruption.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tcpcast.process import output
from tcpcast.process.errors import MachineError, ScenarioError, TcpcastError
from tcpcast.sweeps.prepared import PreparedSweep
from tcpcast.sweeps.results import SweepResults
from tcpcast.sweeps.table import import_sweep_packages, make_line, make_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tcpcast.sweeps.worker import CellRun, StoredAnswer

DATABASE_FILE, RESULTS_FILE = "_sweep.sqlite", "results.parquet"
"""Readers of Parquet folders such as pandas ignore names that start with an underscore."""

_FORMER_FILES = ("_sweep.parquet", "_sweep.json")
"""Definition of a sweep in former versions, beside ``part-*.parquet``."""

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS sweep (definition TEXT)",
    "CREATE TABLE IF NOT EXISTS answers (key BLOB, position INTEGER, answer TEXT, wall_s REAL, "
    "host TEXT, date TEXT, PRIMARY KEY (key, position))",
)
_LOCK_TIMEOUT_MS = 60_000
"""Maximum time for which a transaction waits for programs that read the database."""


class SweepDatabase:
    """The open database of a sweep."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._execute = connection.execute
        self._execute_many = connection.executemany

    def select_missing(self, run: CellRun) -> CellRun:
        """Return a run with the keys of the answers that do not exist."""
        keys = {name: key for name, key in run.keys.items() if not self._answers(key)}
        return replace(run, keys=keys)

    def _answers(self, key: bytes) -> list[tuple[str]]:
        text = "SELECT answer FROM answers WHERE key = ? ORDER BY position"
        return self._execute(text, (key,)).fetchall()

    def write(self, answers: Sequence[StoredAnswer]) -> None:
        """Write answers in one transaction."""
        self._execute_many("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)", answers)
        self._execute("COMMIT")
        self._execute("BEGIN IMMEDIATE")

    def read_results(self, sweep: PreparedSweep, folder: Path | None) -> SweepResults:
        """Return all existing rows of a sweep."""
        kinds, done = sweep.kinds, 0

        def iter_lines() -> Iterator[str]:
            nonlocal done
            for run in map(sweep.run, range(sweep.runs)):
                answers = [self._answers(key) for key in run.keys.values()]
                done += all(answers)
                yield from (make_line(run, kinds, text) for each in answers for (text,) in each)

        try:
            table = make_table(iter_lines(), kinds, sweep.classes)
        except ValueError as error:
            raise sqlite3.DatabaseError(f"an answer cannot be read: {error}") from error
        return SweepResults(sweep, table, done, folder)


@contextmanager
def open_database(sweep: PreparedSweep, folder: Path | None) -> Iterator[SweepDatabase]:
    """Create or open the database of a folder for one sweep; None for a database in memory.

    Raises
    ------
    TcpcastError
        The folder contains other files, or another sweep is writing into it.
    MachineError
        The folder cannot be written, or the database is damaged.
    """
    if folder is not None:
        output.check_folder_is_writable(folder)
        output.check_file_is_writable(folder / RESULTS_FILE, kind=output.PARQUET_KIND)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise MachineError(f"cannot create {folder}: {error.strerror or error}") from error
        names = sorted(path.name for path in folder.iterdir())
        # A sweep that starts at the same time tries whether it can write here.
        others = [name for name in names if not name.startswith(output.TEMPORARY_PREFIX)]
        if others and DATABASE_FILE not in others:
            former = (
                "a sweep of an earlier version of tcpcast"
                if contains_sweep(folder)
                else "other files"
            )
            raise TcpcastError(
                f"{folder} contains {former} ({others[0]}); use a new or empty directory for --out"
            )
    with _connected(folder) as connection:
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("BEGIN IMMEDIATE")  # other sweeps cannot write, but programs can read
        connection.execute(f"PRAGMA busy_timeout = {_LOCK_TIMEOUT_MS}")
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.execute("DELETE FROM sweep")
        definition = json.dumps(sweep.definition(), sort_keys=True, default=str)
        connection.execute("INSERT INTO sweep VALUES (?)", (definition,))
        database = SweepDatabase(connection)
        database.write([])
        if folder is not None:
            for left in (folder / RESULTS_FILE, *folder.glob(f"{output.TEMPORARY_PREFIX}*")):
                left.unlink(missing_ok=True)
        yield database


def write_results(results: SweepResults, folder: Path) -> None:
    """Write ``results.parquet``."""
    (parquet,) = import_sweep_packages("pyarrow.parquet")
    definition = json.dumps(results.sweep.definition(), sort_keys=True, default=str)
    marks = {output.PARQUET_KIND.mark: "sweep", "tcpcast.definition": definition}
    with output.atomic_file(folder / RESULTS_FILE, kind=output.PARQUET_KIND) as temporary:
        table = results.table.replace_schema_metadata(marks)
        parquet.write_table(table, temporary, compression="zstd")


def contains_sweep(folder: Path) -> bool:
    """Return True if a folder contains a sweep, possibly of a former version."""
    return any((folder / name).is_file() for name in (DATABASE_FILE, *_FORMER_FILES))


def read_sweep(folder: Path) -> SweepResults:
    """Return the results of the sweep in a folder, complete or not.

    Raises
    ------
    TcpcastError
        The folder contains no sweep, or one of a former version.
    MachineError
        The database is damaged, or pyarrow is not installed.
    """
    if not (folder / DATABASE_FILE).is_file():
        what = "a sweep of an earlier version of tcpcast" if contains_sweep(folder) else "no sweep"
        raise TcpcastError(f"{folder} contains {what}; use the directory of `tcpcast sweep --out`")
    with _connected(folder) as connection:
        try:
            (definition,) = connection.execute("SELECT definition FROM sweep").fetchone()
            sweep = PreparedSweep.from_definition(json.loads(definition))
        except (KeyError, TypeError, AttributeError, ValueError, ScenarioError) as error:
            raise sqlite3.DatabaseError(f"its definition cannot be read: {error}") from error
        return SweepDatabase(connection).read_results(sweep, folder)


@contextmanager
def _connected(folder: Path | None) -> Iterator[sqlite3.Connection]:
    """Connect to the database of a folder, and explain errors of SQLite."""
    path = ":memory:" if folder is None else folder / DATABASE_FILE
    how: dict[str, Any] = {"timeout": _LOCK_TIMEOUT_MS / 1e3, "isolation_level": None}
    try:
        with closing(sqlite3.connect(path, **how)) as connection:
            (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if state != "ok":
                raise sqlite3.DatabaseError(state)
            yield connection
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith("SQLITE_BUSY"):
            raise TcpcastError(
                f"another sweep is writing into {folder}; wait until it ends, or use another --out"
            ) from None
        if name.startswith(("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY")):
            raise MachineError(f"cannot write {path}: {error}") from error
        raise MachineError(
            f"{path} is damaged ({error}); remove it to compute the sweep again, or use another "
            "--out"
        ) from error
