"""``tcpcast engines``: the engines by family, their applicability, and their domains."""

from __future__ import annotations

from tcpcast.cli.streams import print_message
from tcpcast.engines import REGISTRY, register_plugins
from tcpcast.engines.registry import FAMILIES
from tcpcast.engines.stack_support import get_stack_support
from tcpcast.report.document import BLANK_LINE, Column, Table
from tcpcast.report.json import encode
from tcpcast.report.text import print_parts
from tcpcast.scenario.tcp import STACKS

MIN_COLUMN_WIDTH = 17
"""Minimum number of characters of a wrapped column."""


def engines(*, as_json: bool) -> None:
    """Print one table per family."""
    for error in register_plugins():
        print_message(error)
    if as_json:
        listed = [
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
        print(encode({"engines": listed}))
        return
    for family in FAMILIES:
        rows = [(name, entry) for name, entry in REGISTRY.items() if entry.family == family]
        if rows:
            columns = {
                "what it is": [entry.summary for _, entry in rows],
                "applies to": [entry.applies for _, entry in rows],
                "trust": [entry.trust_conditions(name) for name, entry in rows],
            }
            texts = [
                Column(title, cells, False, min_width=MIN_COLUMN_WIDTH)
                for title, cells in columns.items()
            ]
            first = Column("engine", [name for name, _ in rows], False)
            print_parts([Table([first, *texts], title=family), BLANK_LINE])


def _support_of_stack(engine: str, stack: str) -> dict[str, str | None]:
    """Return the machine-readable support of an engine for a stack."""
    support = get_stack_support(engine, stack)
    return {"verdict": support.level.value, "why": support.text or None}
