"""Interruptions: periods in which data were outstanding and one end or the path was silent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.quantity_text import format_time
from tcpcast.captures.table import endpoint_text, select_rows, text_column, to_datetimes
from tcpcast.quantity.readable_units import count_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcpcast.array_types import Table

PATH, SERVER, CLIENT = "path", "server", "client"
MAX_SENTENCES = 5
"""Maximum number of interruptions with a separate line; the table contains all."""
MIN_NAMED_SHARE = 0.2
"""Minimum share of the time of a transfer for an interruption to be named in the verdict."""
MAX_SHIFT_SHARE = 0.5
"""Maximum distance of the start of two interruptions, relative to the longer one, for them to be
the same interruption, seen in several connections or directions."""


def interruption_table(found: Mapping[str, Any], requests: Table, first_ns: int) -> Table:
    """Return the table of interruptions in the order of their start.

    Parameters
    ----------
    found
        Interruptions seen in the packets: transmissions without an answer, and closed windows.
    requests
        Table of requests; a server that was silent for much longer than usual adds a row.
    first_ns
        Time of the first segment of the capture.
    """
    table: Table = {"connection": found["connection"]}
    for end in ("client", "server"):
        table[end] = text_column(endpoint_text(*given) for given in found[end])
    table |= {
        "time": to_datetimes(found["start_ns"]),
        "start_s": (found["start_ns"] - first_ns) / 1e9,
        "duration_s": found["duration_ns"] / 1e9,
        "by": text_column(found["by"]),
        "data_from": text_column(found["data_from"]),
        "copies": found["copies"],
        "ended": found["ended"],
    }
    rows = np.flatnonzero((requests["interrupted_s"] > 0) & (requests["copies"] == 0))
    silent = select_rows(requests, rows)
    before = silent["request_s"] + silent["response_s"] + silent["server_s"]
    before = np.nan_to_num(before)
    added: Table = {name: silent[name] for name in ("connection", "client", "server")}
    added |= {
        "time": silent["time"] + (before * 1e9).astype("timedelta64[ns]"),
        "start_s": silent["start_s"] + before,
        "duration_s": silent["interrupted_s"],
        "by": np.full(rows.size, SERVER),
        "data_from": np.full(rows.size, SERVER),
        "copies": np.zeros(rows.size, dtype=np.int64),
        "ended": silent["outcome"] == "answered",
    }
    both = {name: np.concatenate([column, added[name]]) for name, column in table.items()}
    return select_rows(both, np.argsort(both["start_s"], kind="stable"))


def merged_interruptions(table: Table) -> Table:
    """Return one row per period: connections and directions that are silent together share a row.

    Columns: ``start_s``, ``duration_s``, ``by``, ``copies``, ``connections`` and ``row`` (of the
    longest interruption of the period in ``table``), in the order of their start.
    """
    order = np.argsort(-table["duration_s"], kind="stable").tolist()
    periods: list[dict[str, Any]] = []
    for row in order:
        start, length, by = (table[name][row] for name in ("start_s", "duration_s", "by"))
        for period in periods:
            shift = abs(start - period["start_s"])
            end_shift = abs(start + length - period["start_s"] - period["duration_s"])
            if (
                by == period["by"]
                and max(shift, end_shift) <= MAX_SHIFT_SHARE * period["duration_s"]
            ):
                period["numbers"].add(int(table["connection"][row]))
                break
        else:
            periods.append(
                {
                    "start_s": float(start),
                    "duration_s": float(length),
                    "by": str(by),
                    "copies": int(table["copies"][row]),
                    "numbers": {int(table["connection"][row])},
                    "row": row,
                }
            )
    periods.sort(key=lambda period: period["start_s"])
    types = {"start_s": float, "duration_s": float, "by": np.str_, "copies": int, "row": int}
    merged: Table = {
        name: np.array([period[name] for period in periods], dtype=kind)
        for name, kind in types.items()
    }
    merged["connections"] = np.array([len(period["numbers"]) for period in periods], dtype=int)
    return merged


def interruption_sentences(table: Table) -> list[str]:
    """Return one sentence per interrupted period of the capture, the longest periods first."""
    merged = merged_interruptions(table)
    order = np.argsort(-merged["duration_s"], kind="stable").tolist()
    sentences = [_sentence(table, select_rows(merged, row)) for row in order[:MAX_SENTENCES]]
    left = len(order) - MAX_SENTENCES
    if left > 0:
        sentences.append(f"… and {count_text(left, 'shorter interruption')}")
    return sentences


def interruption_clause(table: Table, connections: Sequence[int], lasted_s: float) -> str:
    """Return the longest silence of the path or of an end in some connections, or "".

    A closed window is not included, and neither is a silence that is short compared to
    ``lasted_s``, the time of the transfers.
    """
    if not table:
        return ""
    silent = np.isin(table["connection"], connections)
    silent &= (table["by"] == PATH) | (table["copies"] == 0)
    part = select_rows(table, silent)
    found = merged_interruptions(part)
    if not found["start_s"].size:
        return ""
    period = select_rows(found, int(np.argmax(found["duration_s"])))
    return _sentence(part, period) if period["duration_s"] >= MIN_NAMED_SHARE * lasted_s else ""


def _sentence(table: Table, period: Mapping[str, Any]) -> str:
    row = select_rows(table, int(period["row"]))
    by, length = str(period["by"]), format_time(float(period["duration_s"]))
    when = f"for {length}, from {format_time(float(period['start_s']))} after the start"
    if not row["ended"]:
        when += " until the end of the connection"
    ends = f"{row['client']} > {row['server']}"
    count = int(period["connections"])
    where = f"{ends} and {count_text(count - 1, 'other connection')}" if count > 1 else ends
    copies = int(period["copies"])
    if by == PATH:
        sent = count_text(copies, "copy", "copies")
        return (
            f"the path was silent {when} ({where}): the {row['data_from']} sent {sent} of its data"
        )
    if copies:
        probes = count_text(copies, "window probe")
        return f"the {by} kept its receive window closed {when} ({where}; {probes})"
    return f"the {by} was silent {when} ({where})"
