"""SQL queries of a sweep's parts with DuckDB, which can read only these files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpcast.errors import QueryStopped, TcpcastError
from tcpcast.sweeps.folder import SweepFolder, read_definition
from tcpcast.sweeps.results import read_parts
from tcpcast.sweeps.table import import_sweep_packages
from tcpcast.units import quote

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

TABLE_NAME = "sweep"
_SANDBOX_SETTINGS = (
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET python_enable_replacements = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
"""Settings that deny queries the access to files, the network and variables of this program."""


def query_results(folder: str | PathLike[str], sql: str, *, max_wall_s: float | None = None) -> Any:
    """Return the result of an SQL query of a sweep's results.

    Parameters
    ----------
    folder
        The folder of a sweep.
    sql
        One query; the table is named ``sweep``. Keys are quoted: ``"network.rtt"``.
    max_wall_s
        Maximum duration of the query in seconds; None for no limit.

    Returns
    -------
    pyarrow.Table

    Raises
    ------
    TcpcastError
        There is no sweep, the query has no result, or it failed with a message of DuckDB.
    QueryStopped
        The query took longer than ``max_wall_s``.
    MachineError
        DuckDB or pyarrow is not installed.
    """
    duckdb, _ = import_sweep_packages("duckdb", "pyarrow", what="queries of a sweep")
    path = Path(folder)
    if read_definition(path) is None:
        raise TcpcastError(f"{path} contains no sweep; write the folder of `tcpcast sweep --out`")
    table = read_parts(SweepFolder(path).existing_parts())
    with duckdb.connect(":memory:") as connection:
        connection.register(TABLE_NAME, table)
        for setting in _SANDBOX_SETTINGS:
            connection.execute(setting)

        def run() -> Any:
            result = connection.sql(sql)
            if result is None:  # no statement
                raise TcpcastError(
                    f"the query {quote(sql)} has no result; write, for example, "
                    f'"SELECT engine, max(goodput_bps) FROM {TABLE_NAME} GROUP BY engine"'
                )
            return result.to_arrow_table()

        try:
            return _run_interruptible(run, connection, max_wall_s)
        except duckdb.Error as error:
            raise TcpcastError(f"{error}{_quoting_hint(str(error))}") from None


def _run_interruptible(run: Callable[[], Any], connection: Any, max_wall_s: float | None) -> Any:
    """Run a query in a thread; interrupt it after ``max_wall_s`` or on Ctrl-C.

    DuckDB does not check signals while it computes.
    """
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(run)
        try:
            return future.result(max_wall_s)
        except TimeoutError:
            raise QueryStopped(
                f"the query took more than {max_wall_s:g} s; write a longer limit, or a query that "
                "reads fewer rows"
            ) from None
        finally:
            while not future.done():  # an interrupt before the query begins has no effect
                connection.interrupt()
                wait_for([future], 0.1)


def _quoting_hint(message: str) -> str:
    """Return a hint about quotes around keys for a query that may lack them."""
    if "Binder Error" in message or "Catalog Error" in message:
        return '\nThe table is sweep; keys are quoted: "network.rtt"'
    return ""
