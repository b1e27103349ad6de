"""Converts the results of the Rust core to tables of numpy columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.array_types import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

INTERVAL_S = 100
"""Length of the intervals in seconds, as in the PFTK paper."""

FIRST_COLUMNS = (
    "src",
    "dst",
    "tap_side",
    "packets",
    "data_packets",
    "bytes",
    "retransmissions",
    "td",
    "to",
    "td_paper",
    "to_paper",
    "timeouts",
    "max_backoff",
    "t0_s",
    "rtt_mean_s",
    "w_max_pkts",
    "packets_per_ack",
    "throughput_bps",
    "limited_by",
    "connection",
    "start",
    "duration_s",
    "end",
)
"""First columns of the table of directions; the order of the other columns is unspecified."""


def select_rows(table: Mapping[str, Any], rows: Any) -> dict[str, Any]:
    """Return the columns at these row indices; an integer gives the values of one row."""
    return {name: column[rows] for name, column in table.items()}


def direction_table(native: Mapping[str, Any], limit_names: Sequence[str]) -> Table:
    """Return the table of directions; ``limit_names`` names the codes in ``limited_by``.

    ``rtt_mean_s`` is the mean over time of RTT samples measured at the tap. If the tap is not at
    the sender, ``rtt_mean_s`` also includes the minimum round-trip time between tap and sender,
    and the mean queueing delay between them (from timestamps). Without timestamps, this delay is
    unknown, and ``rtt_lower_bound`` is True, as it is if the position of the tap is unknown.
    """
    table: Table = {
        name: values if isinstance(values, np.ndarray) else text_column(values)
        for name, values in native.items()
        if name not in {"src", "dst", "start_ns"}
    }
    for end in ("src", "dst"):
        table[end] = text_column(endpoint_text(*given) for given in native[end])
    table["start"] = to_datetimes(native["start_ns"])
    table["limited_by"] = text_column(limit_names)[native["limited_by"]]
    away = is_tap_away(table)
    queued = table["queue_delay_s"]
    between = table["tap_to_sender_s"] + np.nan_to_num(queued)
    table["rtt_mean_s"] = rtts_to_sender(table, table["rtt_over_time_s"], between)
    # At an unknown tap, the path to the sender is not included.
    partial = np.where(away, np.isnan(queued), ~is_tap_at_sender(table))
    table["rtt_lower_bound"] = partial & np.isfinite(table["rtt_mean_s"])
    return {name: table[name] for name in dict.fromkeys((*FIRST_COLUMNS, *table))}


def interval_table(native: Mapping[str, Any]) -> Table:
    """Return the table of intervals; ``start_s`` is relative to the direction's first data."""
    rest = {name: native[name] for name in native if name not in {"direction", "index"}}
    return {"direction": native["direction"], "start_s": native["index"] * INTERVAL_S, **rest}


def event_table(native: Mapping[str, Any]) -> Table:
    """Return a table of events with times."""
    table: Table = {"direction": native["direction"], "time": to_datetimes(native["time_ns"])}
    for name, values in native.items():
        if name not in {"direction", "time_ns"}:
            table[name] = values if isinstance(values, np.ndarray) else text_column(values)
    return table


def round_table(native: Mapping[str, Any], limit_names: Sequence[str]) -> Table:
    """Return the table of rounds; ``limit_names`` names the codes in ``limited_by``."""
    return event_table({**native, "limited_by": text_column(limit_names)[native["limited_by"]]})


def is_tap_away(table: Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return a mask of directions with a tap that is known not to be at the sender."""
    return np.isin(table["tap_side"], ("middle", "receiver"))


def is_tap_at_sender(table: Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return a mask of directions with a tap that is known to be at the sender."""
    return np.asarray(table["tap_side"] == "sender")


def rtts_to_sender(
    table: Table, at_tap_s: np.ndarray[Any, Any], between_s: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Return round-trip times of the path from those at the tap, in seconds.

    For taps away from the sender, ``between_s`` is added, the round trip between tap and sender.
    Times at the tap that are too short to be measured (below 10 µs) then count as 0.
    """
    away = is_tap_away(table)
    measured = away & (table["rtt_samples"] > 0)
    return np.where(measured, np.nan_to_num(at_tap_s), at_tap_s) + np.where(away, between_s, 0.0)


def to_datetimes(since_1970_ns: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return nanoseconds since 1970 as times."""
    return since_1970_ns.view("datetime64[ns]")


def start_times_ns(table: Table) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the column ``start`` in nanoseconds since 1970; 0 if unknown (logs without times)."""
    start = table["start"]
    return np.where(np.isnat(start), 0, start.astype(np.int64))


def text_column(values: Iterable[str]) -> np.ndarray[Any, Any]:
    """Return texts as a column."""
    return np.array(list(values), dtype=np.str_)


def endpoint_text(address: str, port: int) -> str:
    """Return ``10.0.0.1:80`` or ``[fd00::1]:80``."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
