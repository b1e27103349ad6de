"""``tcpcast engines``: the ways to answer, and when each applies."""

# ruff: noqa: PLC0415, TC001 - heavy modules are imported when the command runs; typer reads types
from __future__ import annotations

from tcpcast.cli.options import Json

EXAMPLE = "tcpcast engines"


def engines(
    as_json: Json = False,
) -> None:
    """List the engines and when each applies."""
    from tcpcast.engines import REGISTRY

    if as_json:
        from tcpcast.report.json import encode

        rows = [
            {"engine": n, "summary": e.summary, "applies": e.applies, "quick": e.quick}
            for n, e in REGISTRY.items()
        ]
        print(encode({"engines": rows}))
        return
    from rich import box
    from rich.table import Table

    from tcpcast.report.terminal import show

    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    table.add_column("engine", no_wrap=True)
    table.add_column("what it is")
    table.add_column("applies to")
    for name, entry in REGISTRY.items():
        table.add_row(name, entry.summary, entry.applies)
    show(table)
