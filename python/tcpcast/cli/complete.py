"""Completions for shells."""

# ruff: noqa: PLC0415 - slow modules are imported only for a completion
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

COMPLETION_VARIABLE = "_TCPCAST_COMPLETE"
"""Environment variable that a shell sets to request completions; its value is the output format."""


def print_completions(command: Any, instruction: str) -> int:
    """Print completions for a shell, or its script, and return an exit code."""
    from typer import completion

    completion.completion_init()  # type: ignore[attr-defined]
    return completion.shell_complete(command, {}, "tcpcast", COMPLETION_VARIABLE, instruction)


def complete_scenario_name(incomplete: str) -> list[str]:
    """Return the matching packaged scenarios; without any, shells complete names of files."""
    from tcpcast.scenario import get_packaged_names

    return [name for name in get_packaged_names() if name.startswith(incomplete)]


def complete_engine_list(incomplete: str) -> list[str]:
    """Return the typed list, extended by each matching engine, including engines of plugins."""
    from tcpcast.engines import REGISTRY
    from tcpcast.engines.plugins import find_plugin_entry_points

    typed, comma, beginning = incomplete.rpartition(",")
    named = set(typed.split(","))
    names = dict.fromkeys([*REGISTRY, *find_plugin_entry_points()])
    return [
        f"{typed}{comma}{name}"
        for name in names
        if name.startswith(beginning) and name not in named
    ]


def complete_scenario_key(incomplete: str) -> list[str]:
    """Return the matching keys of a scenario with ``=``, or the names that a key permits."""
    from tcpcast.scenario import make_scenario_schema

    schema = make_scenario_schema()
    words: dict[str, None] = {}
    for key, values in _iter_keys(schema, schema["$defs"], ""):
        words |= dict.fromkeys([f"{key}=", *(f"{key}={value}" for value in values)])
    return [
        word
        for word in words
        if word.startswith(incomplete) and ("=" in incomplete or word.endswith("="))
    ]


def complete_stack(incomplete: str) -> list[str]:
    """Return the matching presets of TCP."""
    from tcpcast.scenario.tcp import STACKS

    return [name for name in STACKS if name.startswith(incomplete)]


def complete_paper(incomplete: str) -> list[str]:
    """Return the matching papers of all installed packages."""
    from tcpcast.papers import find_paper_packages

    return [name for name in find_paper_packages() if name.startswith(incomplete)]


def _iter_keys(
    part: Mapping[str, Any], tables: Mapping[str, Any], key: str
) -> Iterator[tuple[str, list[Any]]]:
    """Yield keys of a schema with some of their values, for all kinds of traffic and queues."""
    if key:
        yield key, [*part.get("enum", ()), *([part["const"]] if "const" in part else ())]
    for name in (part["$ref"],) if "$ref" in part else ():
        yield from _iter_keys(tables.get(name.rpartition("/")[2], {}), tables, key)
    for other in (*part.get("anyOf", ()), *part.get("oneOf", ()), *part.get("allOf", ())):
        yield from _iter_keys(other, tables, key)
    for name, inner in part.get("properties", {}).items():
        yield from _iter_keys(inner, tables, f"{key}.{name}" if key else name)
