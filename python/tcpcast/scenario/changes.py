"""Changes by dotted key, such as ``--set network.bottleneck.buffer=300pkt``."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from tcpcast.process.errors import InputError, ScenarioError, did_you_mean_text
from tcpcast.quantity.units import quote

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

_EXCLUSIVE_KEYS = {("run", "transfers"): "duration", ("run", "duration"): "transfers"}
"""Mutually exclusive keys: setting the first key of an item removes the second."""

ALL = "*"
"""Part of a key that selects all entries and all named tables."""

_MAX_KEY_PARTS = 32
"""Maximum number of parts of a dotted key; no key has this many."""

_TABLE_LISTS = {
    "class": "the scenario has no classes",
    "cross": "the scenario has no cross traffic",
    "network.hop": "the scenario has no hops",
}
"""Lists of tables, with the message for an empty list."""


def copy_as_plain_tables(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return a deep copy as dicts and lists.

    The copy omits keys whose value is None, which TOML cannot represent.
    """
    return {name: _copy_value(value) for name, value in tables.items() if value is not None}


def _copy_value(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(by_alias=True, exclude_none=True)
    if isinstance(value, Mapping):
        return copy_as_plain_tables(value)
    return [_copy_value(entry) for entry in value] if isinstance(value, list | tuple) else value


def iter_values_by_dotted_key(
    table: Mapping[str, Any], whole: Container[str] = (), above: str = ""
) -> Iterator[tuple[str, Any]]:
    """Yield all values of nested tables by dotted key; lists and keys in ``whole`` stay whole."""
    for key, value in table.items():
        name = f"{above}{key}"
        if isinstance(value, Mapping) and name not in whole:
            yield from iter_values_by_dotted_key(value, whole, f"{name}.")
        else:
            yield name, value


def parse_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """Read ``dotted.key=value`` arguments.

    Parameters
    ----------
    assignments
        Each argument has a dotted key, ``=``, and a value. A value that cannot be parsed as TOML
        (``44``, ``true``, ``{ distribution = "constant", value = "12pkt" }``) is a text
        (``300pkt``, ``1%``).

    Returns
    -------
    dict
        The values by dotted key, as in ``with_changes``; the last value of a repeated key counts.

    Raises
    ------
    ScenarioError
        An argument has no ``=`` or no key.
    """
    changes = {}
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key.strip():
            raise ScenarioError(
                f"{quote(assignment)} is not an assignment; use KEY=VALUE, such as "
                "network.bottleneck.buffer=300pkt"
            )
        changes[key.strip()] = parse_value(text.strip())
    return changes


def check_changes(changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the changes unmodified.

    Raises
    ------
    ScenarioError
        The changes are not a mapping, or a key is not a text.
    """
    if not isinstance(changes, Mapping):
        raise ScenarioError(
            f"changes: {changes!r} is not a table; use {{'run.seed': 2}}, for example"
        )
    for dotted in changes:
        if not isinstance(dotted, str):
            raise ScenarioError(
                f"{dotted!r} is not a dotted key; use {{'run.seed': 2}}, for example"
            )
    return changes


def apply_changes(tables: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario's tables with changed values; unchanged tables are the same objects.

    Parameters
    ----------
    tables
        The scenario as typed.
    changes
        New values by dotted key. Entries of ``[[class]]``, ``[[cross]]`` and ``[[network.hop]]``
        are selected by name or index: ``class.far.rtt``, ``network.hop.0.rate``. ``*`` selects all
        entries and all named tables: ``link.*.queue``.
        ``run.transfers`` replaces ``run.duration`` and vice versa.

    Raises
    ------
    ScenarioError
        A key leads through a value that is not a table, or to a missing entry. Unknown keys are
        rejected when the scenario is read.
    """
    changed = dict(tables)
    for dotted, value in check_changes(changes).items():
        path = tuple(dotted.split("."))
        if not all(path) or len(path) > _MAX_KEY_PARTS:
            raise ScenarioError(f"{quote(dotted)} is not a dotted key; use run.seed, for example")
        if ALL in path[:-1]:
            above = path[: path.index(ALL)]
            for name in _names_in(changed, above, dotted):
                one = ".".join((*above, name, *path[len(above) + 1 :]))
                changed = apply_changes(changed, {one: value})
            continue
        table: Any = changed
        # Copy or create the tables on the path.
        for depth, part in enumerate(path[:-1]):
            at: Any = part
            if isinstance(table, list):
                at = _find_entry_index(table, part, path[:depth], dotted)
            elif (listed := ".".join(path[: depth + 1])) in _TABLE_LISTS and not table.get(part):
                raise ScenarioError(
                    InputError(dotted, f"{_TABLE_LISTS[listed]}; add [[{listed}]] tables")
                )
            below = table[at] if isinstance(table, list) else table.get(at, {})
            if not isinstance(below, dict | list):
                here = ".".join(path[: depth + 1])
                message = f"{here} is {quote(below)}, not a table; set {here} itself"
                raise ScenarioError(InputError(dotted, message))
            table[at] = copy.copy(below)
            table = table[at]
        key = path[-1]
        if isinstance(table, list):
            table[_find_entry_index(table, key, path[:-1], dotted)] = value
        else:
            table[key] = value
        other = _EXCLUSIVE_KEYS.get(path) if len(path) == 2 else None
        if other and f"{path[0]}.{other}" not in changes and isinstance(table, dict):
            table.pop(other, None)
    return changed


def _names_in(tables: Mapping[str, Any], path: tuple[str, ...], dotted: str) -> list[str]:
    """Return the names of all tables in a table, or the indices of all entries of a list."""
    table: Any = tables
    for part in path:
        table = table.get(part) if isinstance(table, Mapping) else None
    if isinstance(table, list):
        return [str(index) for index in range(len(table))]
    names = [n for n, each in table.items() if isinstance(each, Mapping)] if table else []
    if not names:
        message = f"the scenario has no tables {'.'.join((*path, ALL))}; use a name instead of *"
        raise ScenarioError(InputError(dotted, message))
    return names


def parse_value(text: str) -> Any:
    """Return the value of an assignment: a TOML value, or else a text."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return parsed["value"] if parsed.keys() == {"value"} else text


def _find_entry_index(entries: list[Any], part: str, above: tuple[str, ...], dotted: str) -> int:
    """Return the index of an entry of a list, given by name or index."""
    names = [str(e["name"]) for e in entries if isinstance(e, dict) and "name" in e]
    for index, entry in enumerate(entries):
        if isinstance(entry, dict) and entry.get("name") == part:
            return index
    if part.isdecimal() and part.isascii() and int(part[:9]) < len(entries):
        return int(part)
    listed = ", ".join(names) or f"0 to {len(entries) - 1}"
    here = ".".join(above)
    message = (
        f"{here} contains no entry {quote(part)}{did_you_mean_text(part, names)}; use {listed}"
    )
    raise ScenarioError(InputError(dotted, message))
