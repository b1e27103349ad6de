"""``tcpcast query``: SQL queries on the results of a sweep, with DuckDB."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tcpcast.cli.options import check_one_format
from tcpcast.process.errors import TcpcastError
from tcpcast.report.sweep import rows_csv, rows_json, sweep_rows_parts
from tcpcast.report.text import print_parts
from tcpcast.sweeps.database import read_sweep
from tcpcast.sweeps.table import import_sweep_packages


def query(*, folder: str, sql: str, as_csv: bool, as_json: bool) -> None:
    """Print the rows that a query selects; it can read only the table ``sweep``."""
    check_one_format(as_csv=as_csv, as_json=as_json)
    (duckdb,) = import_sweep_packages("duckdb", what="queries of a sweep")
    config = {"enable_external_access": False, "lock_configuration": True}
    with duckdb.connect(config=config) as connection, ThreadPoolExecutor(1) as pool:
        connection.register("sweep", read_sweep(Path(folder)).table)
        try:
            selected = connection.sql(sql)
            if selected is None:
                raise duckdb.Error("the query has no result")
            # DuckDB does not check signals, so that Ctrl-C needs another thread.
            table = pool.submit(selected.to_arrow_table).result()
        except duckdb.Error as error:
            example = 'SELECT engine, goodput_bps FROM sweep WHERE "network.rtt" > 0.01'
            raise TcpcastError(f"{error}\nUse a query such as {example}") from None
        finally:
            connection.interrupt()
    if as_csv:
        print(rows_csv(table), end="")
    elif as_json:
        print(rows_json(table))
    else:
        print_parts(sweep_rows_parts(table, None))
