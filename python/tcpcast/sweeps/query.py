"""SQL about the parts of a sweep, by DuckDB: it reads them, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcpcast.errors import TcpcastError
from tcpcast.sweeps.folder import Folder, read_definition
from tcpcast.sweeps.results import read_parts
from tcpcast.sweeps.table import modules

if TYPE_CHECKING:
    from os import PathLike

TABLE = "sweep"
_CLOSED = (
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET python_enable_replacements = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
"""No file, no network, no variable of this program, and no way to change that."""


def query(folder: str | PathLike[str], sql: str) -> Any:
    """Return what SQL says of a sweep's results.

    Parameters
    ----------
    folder
        The folder of a sweep.
    sql
        One query; its table is named ``sweep``. Keys are quoted: ``"network.rtt"``.

    Returns
    -------
    pyarrow.Table

    Raises
    ------
    TcpcastError
        No sweep is there, or the query cannot be answered; the message is DuckDB's.
    EnvironmentFault
        DuckDB or pyarrow is not installed.
    """
    duckdb, arrow = modules("duckdb", "pyarrow", what="queries of a sweep")
    path = Path(folder)
    if read_definition(path) is None:
        raise TcpcastError(f"{path} holds no sweep; write the folder of `tcpcast sweep --out`")
    table = read_parts(Folder(path).parts())
    with duckdb.connect(":memory:") as connection:
        connection.register(TABLE, table)
        for setting in _CLOSED:
            connection.execute(setting)
        try:
            found = connection.sql(sql)
            return arrow.table({}) if found is None else found.to_arrow_table()
        except duckdb.Error as fault:
            raise TcpcastError(f"{fault}{_hint(str(fault))}") from None


def _hint(message: str) -> str:
    """Say how keys are written, where a query may have lacked the quotes."""
    if "Binder Error" in message or "Catalog Error" in message:
        return '\nThe table is sweep; keys are quoted: "network.rtt"'
    return ""
