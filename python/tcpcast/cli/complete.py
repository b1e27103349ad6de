"""What a shell is offered for the word that is being typed."""

# ruff: noqa: PLC0415 - heavy modules are imported when a shell asks
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

VARIABLE = "_TCPCAST_COMPLETE"
"""Set by a shell that asks what could follow, to how it wants to be told."""


def answer(command: Any, asked: str) -> int:
    """Tell a shell what could follow, and return an exit code."""
    from typer import completion

    completion.completion_init()  # type: ignore[attr-defined]
    return completion.shell_complete(command, {}, "tcpcast", VARIABLE, asked)


def scenario_files(incomplete: str) -> list[str]:
    """Return the packaged scenarios, files of scenarios and folders that begin so."""
    from tcpcast.scenario import packaged_names

    names = [name for name in packaged_names() if name.startswith(incomplete)]
    folder, _, beginning = incomplete.rpartition("/")
    within = Path(f"{folder}/" if "/" in incomplete else ".")
    found = sorted(within.glob(f"{_literal(beginning)}*")) if within.is_dir() else []
    return names + [
        f"{path}/" if path.is_dir() else str(path)
        for path in found
        if path.is_dir() or path.suffix == ".toml"
    ]


def _literal(text: str) -> str:
    """Return a pattern that stands for a text itself."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in text)


def engine_lists(incomplete: str) -> list[str]:
    """Return lists of engines with one more than is typed, those of other packages included."""
    from tcpcast.engines import REGISTRY
    from tcpcast.engines.plugins import entry_points

    typed, comma, beginning = incomplete.rpartition(",")
    named = set(typed.split(","))
    names = dict.fromkeys([*REGISTRY, *entry_points()])
    return [
        f"{typed}{comma}{name}"
        for name in names
        if name.startswith(beginning) and name not in named
    ]


def keys(incomplete: str) -> list[str]:
    """Return the keys of a scenario that begin so, each with ``=``."""
    from tcpcast.scenario import scenario_schema

    schema = scenario_schema()
    found = dict.fromkeys(_keys(schema, schema.get("$defs", {}), ""))
    return [f"{key}=" for key in found if key.startswith(incomplete)]


def _keys(part: Mapping[str, Any], tables: Mapping[str, Any], above: str) -> Iterator[str]:
    """Walk the tables of a schema, that of each kind of traffic or queue included."""
    for name in (part["$ref"],) if "$ref" in part else ():
        table = name.rpartition("/")[2]
        yield from _keys(tables.get(table, {}), tables, above)
    for other in (*part.get("anyOf", ()), *part.get("oneOf", ()), *part.get("allOf", ())):
        yield from _keys(other, tables, above)
    for key, inner in part.get("properties", {}).items():
        yield f"{above}{key}"
        yield from _keys(inner, tables, f"{above}{key}.")
