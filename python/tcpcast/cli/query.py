"""``tcpcast query``: SQL queries on the results of a sweep."""

from __future__ import annotations

from tcpcast.cli.options import check_one_format
from tcpcast.errors import TcpcastError
from tcpcast.report.sweep import rows_csv, rows_json, rows_parts
from tcpcast.report.text import print_parts
from tcpcast.sweeps.query import query_results as ask
from tcpcast.units import parse_duration


def query(*, folder: str, sql: str, max_wall: str | None, as_csv: bool, as_json: bool) -> None:
    """Print the rows that a query selects."""
    check_one_format(as_csv=as_csv, as_json=as_json)
    table = ask(folder, sql, max_wall_s=None if max_wall is None else _parse_time_limit(max_wall))
    if as_csv:
        print(rows_csv(table), end="")
        return
    if as_json:
        print(rows_json(table))
        return

    print_parts(rows_parts(table, None))


def _parse_time_limit(typed: str) -> float:
    try:
        seconds = parse_duration(typed)
    except TcpcastError as error:
        raise TcpcastError(f"--max-wall: {error}") from None
    if seconds == 0:
        raise TcpcastError("--max-wall: must be above 0 s; write 60s, or omit the option")
    return seconds
