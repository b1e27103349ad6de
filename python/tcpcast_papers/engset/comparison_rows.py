"""Rows that compare a value of the paper with simulations of its setting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast_papers.engset.sample import interval_reader, metric_reader
from tcpcast_papers.engset.theory import solve_model
from tcpcast_papers.reproduction import PRINTED_DIGITS, Row

if TYPE_CHECKING:
    from tcpcast_papers.engset.runs import Runs
    from tcpcast_papers.engset.sample import Read
    from tcpcast_papers.engset.settings import Setting
    from tcpcast_papers.printed import Line

AVERAGES = {
    "rate": ("rate_kbps", "kbit/s", metric_reader("connection_rate_bps", 1e-3)),
    "ON time": ("on_time_ms", "ms", metric_reader("on_time_s", 1e3)),
    "loss": ("loss_percent", "%", metric_reader("loss_ratio", 100)),
}
"""Averages over all files: column of the tables, unit, and how to read them from an answer."""


def printed_average_rows(
    label: tuple[str, ...], line: Line, runs: Runs, each: Setting
) -> list[Row]:
    """Return a row for each average of :data:`AVERAGES` that the line prints."""
    return [
        row
        for name, (column, unit, read) in AVERAGES.items()
        if line.cells.get(column)
        for row in runs.sample(each).rows((*label, name), unit, line.printed(column), read)
    ]


def theory_rows(
    label: tuple[str, ...],
    line: Line,
    each: Setting,
    *,
    column_prefix: str = "",
    name_prefix: str = "",
) -> list[Row]:
    """Return a row for each value of the model that the line prints."""
    result = solve_model(each)
    assert result.loss_ratio is not None
    own = (
        ("load", "%", "load_percent", 100 * result.offered_load),
        ("rate", "kbit/s", "rate_kbps", 1e-3 * result.rate_bps),
        ("ON time", "ms", "on_time_ms", 1e3 * result.on_time_s),
        ("loss", "%", "loss_percent", 100 * result.loss_ratio),
    )
    return [
        Row(
            (*label, name_prefix + name),
            unit,
            line.printed(column_prefix + column),
            value,
            tolerance=PRINTED_DIGITS,
        )
        for name, unit, column, value in own
        if line.cells.get(column_prefix + column)
    ]


def interval_rate_reader(low_pkts: int) -> Read:
    """Return a function that reads the mean rate of the files of a size interval, in kbit/s.

    Tables 8 and 9 print the mean over connections of size/ON time. The rate cannot be packets per
    ON time: the rates of Table 8 would then give a mean ON time of 0.69 s, but Table 10 prints
    0.917 s for the same run.
    """
    return interval_reader(low_pkts, "transfer_rate_mean_bps", 1e-3)
