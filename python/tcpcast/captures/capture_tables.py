"""The tables of a capture by name, and the selection of directions."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tcpcast.captures.names import name_services
from tcpcast.captures.services import service_table
from tcpcast.captures.table import select_rows
from tcpcast.captures.tap_comparison import totals_by_tap_order
from tcpcast.captures.transfers import service_or_transfer

if TYPE_CHECKING:
    from tcpcast.array_types import Table

DIRECTION_COLUMN = "direction"
"""Column with row indices of ``connections``."""


TABLE_NAMES = (
    "connections",
    "requests",
    "services",
    "failed",
    "interruptions",
    "intervals",
    "rounds",
    "retransmissions",
    "loss_indications",
)
"""Names of the tables that every capture has."""


@dataclass(slots=True)
class CaptureTables:
    """The data of a capture, which :class:`tcpcast.Capture` describes."""

    file: str
    connections: Table
    intervals: Table
    retransmissions: Table
    loss_indications: Table
    rounds: Table
    frames: int
    segments: int
    connection_count: int
    warnings: list[str]
    damaged: bool = False
    interrupted: bool = False
    rest: dict[str, int] = field(default_factory=dict)
    between: Table = field(default_factory=dict)
    trail: Table = field(default_factory=dict)
    requests: Table = field(default_factory=dict)
    services: Table = field(default_factory=dict)
    failed: Table = field(default_factory=dict)
    interruptions: Table = field(default_factory=dict)
    is_restricted: bool = False
    program: str = ""


_CaptureTables = TypeVar("_CaptureTables", bound=CaptureTables)


def tables_by_name(capture: CaptureTables) -> dict[str, Table]:
    """Return all tables of a capture by name, except those that were not requested."""
    names = [field.name for field in dataclasses.fields(capture) if field.type == "Table"]
    found = {name: getattr(capture, name) for name in names}
    return {name: value for name, value in found.items() if value}


def restrict_to_directions(
    capture: _CaptureTables, rows: np.ndarray[Any, np.dtype[np.intp]]
) -> _CaptureTables:
    """Return a capture that is restricted to some directions.

    Parameters
    ----------
    capture
        The capture.
    rows
        Distinct rows of ``connections`` in ascending order. Tables with a column ``direction`` are
        restricted to these rows and renumbered; ``segments`` counts only these directions.
    """
    changed: dict[str, Any] = {
        name: _renumber_directions(table, rows)
        for name, table in tables_by_name(capture).items()
        if DIRECTION_COLUMN in table
    }
    connections = select_rows(capture.connections, rows)
    for name in ("requests", "failed", "interruptions"):
        table = getattr(capture, name)
        kept = np.isin(table["connection"], connections["connection"])
        changed[name] = select_rows(table, kept)
    changed["services"] = service_table(changed["requests"])
    connections["service"] = service_or_transfer(
        connections, changed["requests"], changed["services"]
    )
    changed["services"]["server_name"] = name_services(changed["services"], connections)
    # As in the counters of a whole capture, "reset_without_loss" is a part of "reset".
    failed = changed["failed"]
    harmless = np.count_nonzero(failed["harmless"] & (failed["failure"] == "reset"))
    kinds = np.append(failed["failure"], ["reset_without_loss"] * harmless)
    if capture.between:
        changed["between"] = totals_by_tap_order(connections)
    return dataclasses.replace(
        capture,
        connections=connections,
        segments=int(connections["packets"].sum()),
        connection_count=int(np.unique(connections["connection"]).size),
        rest=dict(Counter(kinds.tolist())),
        is_restricted=True,
        **changed,
    )


def rows_of_direction(table: Table, direction: int) -> Table:
    """Return the rows of a table for one direction, without the column ``direction``."""
    kept = table[DIRECTION_COLUMN] == direction
    return {name: column[kept] for name, column in table.items() if name != DIRECTION_COLUMN}


def _renumber_directions(table: Table, rows: np.ndarray[Any, np.dtype[np.intp]]) -> Table:
    kept = np.isin(table[DIRECTION_COLUMN], rows)
    part = select_rows(table, kept)
    return part | {DIRECTION_COLUMN: np.searchsorted(rows, part[DIRECTION_COLUMN])}
