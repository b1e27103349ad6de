"""Completions for shells."""

# ruff: noqa: PLC0415 - slow modules are imported only for a completion
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

COMPLETION_VARIABLE = "_TCPCAST_COMPLETE"
"""Environment variable that a shell sets to request completions; its value is the output format."""


def print_completions(command: Any, instruction: str) -> int:
    """Print completions for a shell, and return an exit code."""
    from typer import completion

    completion.completion_init()  # type: ignore[attr-defined]
    return completion.shell_complete(command, {}, "tcpcast", COMPLETION_VARIABLE, instruction)


def scenario_files(incomplete: str) -> list[str]:
    """Return the matching packaged scenarios, scenario files and folders."""
    from tcpcast.scenario import get_packaged_names

    names = [name for name in get_packaged_names() if name.startswith(incomplete)]
    folder, _, beginning = incomplete.rpartition("/")
    within = Path(f"{folder}/" if "/" in incomplete else ".")
    paths = sorted(within.glob(f"{_escape_glob(beginning)}*")) if within.is_dir() else []
    return names + [
        f"{path}/" if path.is_dir() else str(path)
        for path in paths
        if path.is_dir() or path.suffix == ".toml"
    ]


def _escape_glob(text: str) -> str:
    """Return a glob pattern that matches a text literally."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in text)


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
    """Return the matching keys of a scenario, each with ``=``, or the values of a complete key."""
    key, equals, beginning = incomplete.partition("=")
    if equals:
        return [f"{key}={name}" for name in _names_permitted_for(key) if name.startswith(beginning)]
    return [f"{key}=" for key in _values_by_key() if key.startswith(incomplete)]


def make_value_completion(keys: Sequence[str]) -> Callable[[str], list[str]] | None:
    """Return the function that completes an option of a key with names as values, such as a stack.

    Options of other keys have no completion.
    """
    if "tcp.stack" not in keys:
        return None
    return lambda incomplete: [
        name for key in keys for name in _names_permitted_for(key) if name.startswith(incomplete)
    ]


def complete_paper(incomplete: str) -> list[str]:
    """Return the matching papers of all installed packages."""
    from tcpcast.papers import find_paper_packages

    return [name for name in find_paper_packages() if name.startswith(incomplete)]


def _names_permitted_for(key: str) -> list[str]:
    values = dict.fromkeys(_values_by_key().get(key, ()))
    return [value for value in values if isinstance(value, str)]


def _values_by_key() -> dict[str, list[Any]]:
    """Return the values of each key of a scenario that the schema lists, otherwise none."""
    from tcpcast.scenario import make_scenario_schema

    schema = make_scenario_schema()
    found: dict[str, list[Any]] = {}
    for key, values in _iter_keys(schema, schema.get("$defs", {}), ""):
        found.setdefault(key, []).extend(values)
    return found


def _iter_keys(
    part: Mapping[str, Any], tables: Mapping[str, Any], key: str
) -> Iterator[tuple[str, list[Any]]]:
    """Yield keys of a schema with some of their values, for all kinds of traffic and queues."""
    if key:
        yield key, [*part.get("enum", ()), *([part["const"]] if "const" in part else ())]
    for name in (part["$ref"],) if "$ref" in part else ():
        table = name.rpartition("/")[2]
        yield from _iter_keys(tables.get(table, {}), tables, key)
    for other in (*part.get("anyOf", ()), *part.get("oneOf", ()), *part.get("allOf", ())):
        yield from _iter_keys(other, tables, key)
    for name, inner in part.get("properties", {}).items():
        yield from _iter_keys(inner, tables, f"{key}.{name}" if key else name)
