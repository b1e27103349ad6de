"""``tcpcast engines``: the engines by family, their applicability, and their domains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcpcast.cli.streams import print_message
from tcpcast.engines import REGISTRY, register_plugins
from tcpcast.engines.registry import FAMILIES
from tcpcast.engines.stack_support import get_stack_support
from tcpcast.report.document import BLANK_LINE, Column, Table
from tcpcast.report.json import encode
from tcpcast.report.text import print_parts
from tcpcast.scenario.tcp import STACKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcpcast.engines.registry import EngineEntry

MIN_COLUMN_WIDTH = 17
"""Minimum number of characters of a wrapped column."""


def engines(*, as_json: bool) -> None:
    """Print one table per family."""
    for error in register_plugins():
        print_message(error)
    if as_json:
        _print_json()
        return
    for family in FAMILIES:
        rows = [(name, entry) for name, entry in REGISTRY.items() if entry.family == family]
        if rows:
            print_parts([_engine_family_table(family, rows), BLANK_LINE])


def _engine_family_table(family: str, rows: Sequence[tuple[str, EngineEntry]]) -> Table:
    columns = {
        "what it is": [entry.summary for _, entry in rows],
        "applies to": [entry.applies for _, entry in rows],
        "trust": [entry.trust_conditions(name) for name, entry in rows],
    }
    texts = [
        Column(title, cells, False, min_width=MIN_COLUMN_WIDTH) for title, cells in columns.items()
    ]
    return Table([Column("engine", [name for name, _ in rows], False), *texts], title=family)


def _print_json() -> None:
    rows = [
        {
            "engine": name,
            "family": entry.family,
            "summary": entry.summary,
            "applies": entry.applies,
            "trust": entry.trust_conditions(name),
            "quick": entry.runs_by_default,
            "stacks": {stack: _support_of_stack(name, stack) for stack in STACKS},
        }
        for name, entry in REGISTRY.items()
    ]
    print(encode({"engines": rows}))


def _support_of_stack(engine: str, stack: str) -> dict[str, str | None]:
    """Return the machine-readable support of an engine for a stack."""
    support = get_stack_support(engine, stack)
    return {"verdict": support.level.value, "why": support.text or None}
