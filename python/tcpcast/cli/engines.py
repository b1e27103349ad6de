"""``tcpcast engines``: the engines by family, their applicability, and their domains."""

from __future__ import annotations

import sys

from tcpcast.engines import REGISTRY, add_plugins
from tcpcast.engines.registry import FAMILIES
from tcpcast.engines.stack_support import get_stack_support
from tcpcast.report.json import encode
from tcpcast.report.terminal import show
from tcpcast.scenario.tcp import STACKS


def engines(*, as_json: bool) -> None:
    """Print one table per family."""
    for error in add_plugins():
        print(f"tcpcast: {error}", file=sys.stderr)
    if as_json:
        _print_json()
        return
    from rich import box  # noqa: PLC0415 - not for --json
    from rich.table import Table  # noqa: PLC0415

    for family in FAMILIES:
        if not any(entry.family == family for entry in REGISTRY.values()):
            continue
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, title=family, title_justify="left")
        table.add_column("engine", no_wrap=True, min_width=19)
        for column in ("what it is", "applies to", "trust"):
            table.add_column(column, ratio=1)
        for name, entry in REGISTRY.items():
            if entry.family == family:
                trust = entry.trust_text(name)
                table.add_row(name, entry.summary, entry.applies, trust)
        show(table)
        show("")


def _print_json() -> None:
    rows = [
        {
            "engine": name,
            "family": entry.family,
            "summary": entry.summary,
            "applies": entry.applies,
            "trust": entry.trust_text(name),
            "quick": entry.runs_by_default,
            "stacks": {stack: _fit(name, stack) for stack in STACKS},
        }
        for name, entry in REGISTRY.items()
    ]
    print(encode({"engines": rows}))


def _fit(engine: str, stack: str) -> dict[str, str | None]:
    """Return the machine-readable support of an engine for a stack."""
    support = get_stack_support(engine, stack)
    return {"verdict": support.verdict.value, "why": support.text or None}
