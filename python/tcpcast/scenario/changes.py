"""Changes by dotted key, as ``--set network.bottleneck.buffer=300pkt`` makes them."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tcpcast.errors import InputError, ScenarioError
from tcpcast.scenario.table import suggestion
from tcpcast.units import show

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

_INSTEAD = {("run", "transfers"): "duration", ("run", "duration"): "transfers"}
"""Keys of which exactly one is needed: setting one takes the other out."""

_DEEPEST = 32
"""No key of a scenario has so many parts."""

_LISTS = {
    "class": "the scenario has no classes",
    "cross": "the scenario has no cross traffic",
    "network.hop": "the scenario has no hops",
}
"""Lists of tables, and how to say that there is none."""


def leaves(
    table: Mapping[str, Any], whole: Container[str] = (), above: str = ""
) -> Iterator[tuple[str, Any]]:
    """Yield the values of a table and of those in it by dotted key; a list is one value.

    A key of ``whole`` is not looked into.
    """
    for key, value in table.items():
        name = f"{above}{key}"
        if isinstance(value, Mapping) and name not in whole:
            yield from leaves(value, whole, f"{name}.")
        else:
            yield name, value


def parse_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """Read ``dotted.key=value`` arguments.

    Parameters
    ----------
    assignments
        Each a dotted key, ``=``, and a value: a TOML value where it is one (``44``, ``true``,
        ``{ distribution = "constant", value = "12pkt" }``), otherwise a text (``300pkt``, ``1%``).

    Returns
    -------
    dict
        The values by dotted key, as ``with_changes`` takes them; the last of a key counts.

    Raises
    ------
    ScenarioError
        No ``=``, or nothing before it.
    """
    changes = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key.strip():
            raise ScenarioError(
                f"{show(assignment)} changes nothing; write dotted.key=value, "
                "such as network.bottleneck.buffer=300pkt"
            )
        changes[key.strip()] = _toml_value(text.strip())
    return changes


def checked(changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return changes as they are.

    Raises
    ------
    ScenarioError
        No mapping, or a key in it that is no text.
    """
    if not isinstance(changes, Mapping):
        raise ScenarioError(f"changes: {changes!r} is no table; write {{'run.seed': 2}}, say")
    for dotted in changes:
        if not isinstance(dotted, str):
            raise ScenarioError(f"{dotted!r}: not a dotted key; write {{'run.seed': 2}}, say")
    return changes


def apply_changes(tables: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario's tables with some values changed; those without a change are the same.

    Parameters
    ----------
    tables
        The scenario as typed.
    changes
        New values by dotted key. An entry of ``[[class]]``, ``[[cross]]`` or ``[[network.hop]]`` is
        named by its name or by its index: ``class.far.rtt``, ``network.hop.0.rate``.
        ``run.transfers`` takes the place of ``run.duration``, and the other way round.

    Raises
    ------
    ScenarioError
        A key that leads through a value, or to a class that is not there. Keys that no scenario
        has are refused when the scenario is read.
    """
    changed = dict(tables)
    for dotted, value in checked(changes).items():
        path = tuple(dotted.split("."))
        if not all(path) or len(path) > _DEEPEST:
            raise ScenarioError(f"{show(dotted)}: not a dotted key; write run.seed, say")
        table = _table_at(changed, path[:-1], dotted)
        _put(table, path[-1], value, dotted)
        other = _INSTEAD.get(path) if len(path) == 2 else None
        if other and f"{path[0]}.{other}" not in changes and isinstance(table, dict):
            table.pop(other, None)
    return changed


def _toml_value(text: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return parsed["value"] if parsed.keys() == {"value"} else text


def _table_at(tables: dict[str, Any], path: tuple[str, ...], dotted: str) -> Any:
    """Walk down, copying each table on the way and making those that are not there yet."""
    table: Any = tables
    for depth, part in enumerate(path):
        key: Any = part
        if isinstance(table, list):
            key = _index(table, part, path[:depth], dotted)
        elif (listed := ".".join(path[: depth + 1])) in _LISTS and not table.get(part):
            raise ScenarioError(InputError(dotted, f"{_LISTS[listed]}; write [[{listed}]] tables"))
        below = table[key] if isinstance(table, list) else table.get(key, {})
        if not isinstance(below, dict | list):
            here = ".".join(path[: depth + 1])
            message = f"{here} is {show(below)} and not a table; set it whole"
            raise ScenarioError(InputError(dotted, message))
        table[key] = copy.copy(below)
        table = table[key]
    return table


def _put(table: Any, key: str, value: Any, dotted: str) -> None:
    if isinstance(table, list):
        table[_index(table, key, tuple(dotted.split(".")[:-1]), dotted)] = value
    else:
        table[key] = value


def _index(entries: list[Any], part: str, above: tuple[str, ...], dotted: str) -> int:
    """Find an entry of a list by its name or its place."""
    names = [str(e["name"]) for e in entries if isinstance(e, dict) and "name" in e]
    for place, entry in enumerate(entries):
        if isinstance(entry, dict) and entry.get("name") == part:
            return place
    if part.isdecimal() and part.isascii() and int(part[:9]) < len(entries):
        return int(part)
    listed = ", ".join(names) or f"0 to {len(entries) - 1}"
    here = ".".join(above)
    message = f"{here} has no entry {show(part)}{suggestion(part, names)}; write {listed}"
    raise ScenarioError(InputError(dotted, message))
