"""``tcpcast query``: SQL queries on the results of a sweep."""

from __future__ import annotations

from tcpcast.cli.options import check_one_format, read_positive_duration
from tcpcast.report.sweep import rows_csv, rows_json, sweep_rows_parts
from tcpcast.report.text import print_parts
from tcpcast.sweeps.query import query_results as ask


def query(*, folder: str, sql: str, max_wall: str | None, as_csv: bool, as_json: bool) -> None:
    """Print the rows that a query selects."""
    check_one_format(as_csv=as_csv, as_json=as_json)
    limit_s = None if max_wall is None else read_positive_duration("--max-wall", max_wall, "60s")
    table = ask(folder, sql, max_wall_s=limit_s)
    if as_csv:
        print(rows_csv(table), end="")
        return
    if as_json:
        print(rows_json(table))
        return

    print_parts(sweep_rows_parts(table, None))
