"""Read only the tables of a changed scenario that differ: a sweep of ``pftk`` gains 35 %.

A sweep makes thousands of scenarios that differ in a value or two; to read a whole one takes longer
than most formulas.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from tcpcast.scenario.classes import TRAFFIC
from tcpcast.scenario.traffic import CAPTURE

if TYPE_CHECKING:
    from tcpcast.scenario.model import Scenario
    from tcpcast.scenario.network import Network
    from tcpcast.scenario.table import Reading

_APART = ("network", "traffic", "tcp", "run", "probes", "mean_field", "fixed_point")
"""Tables that are read each by itself, given what :class:`Reading` has of the others."""

LINKS = {"ingress": "ingress", "bottleneck": "bottleneck_link", "egress": "egress"}
"""Tables in ``network`` of which the same holds, and what they are called there in Python."""


def plain(tables: Mapping[str, Any], before: Any = None) -> dict[str, Any]:
    """Copy what was handed in as plain tables and lists, so that nothing is shared with it.

    None, which TOML has not, stands for a key left out. A table that is one of those ``before`` in
    the same place, which are plain, is no copy.
    """
    known = before if isinstance(before, dict) else {}
    return {
        name: _plain_value(value, known.get(name))
        for name, value in tables.items()
        if value is not None
    }


def _plain_value(value: Any, before: Any) -> Any:
    if value is before:
        return value
    if isinstance(value, BaseModel):
        return value.model_dump(by_alias=True, exclude_none=True)
    if isinstance(value, Mapping):
        return plain(value, before)
    if isinstance(value, list | tuple):
        return [_plain_value(entry, None) for entry in value]
    return value


def is_captured(tables: Mapping[str, Any]) -> bool:
    """Say whether the traffic of these tables is what a capture shows."""
    traffic = tables.get("traffic")
    return isinstance(traffic, Mapping) and traffic.get("kind") == CAPTURE


def reread(
    before: Scenario, own: Mapping[str, Any], source: Mapping[str, Any], context: Reading
) -> dict[str, Any] | None:
    """Return the tables of a changed scenario, of which only the changed ones are read.

    Parameters
    ----------
    before, own
        The scenario before, and its tables as typed.
    source
        The changed tables as typed; one that is the very same object is not changed.
    context
        What tables need of each other, the same for both scenarios.

    Returns
    -------
    dict or None
        Every table by its name in Python; None where the scenario has to be read as a whole.

    Raises
    ------
    ValidationError
        A table that cannot be read. Its faults are as seen from that table.
    """
    changed = [name for name in {**own, **source} if source.get(name) is not own.get(name)]
    if is_captured(own) or before.classes or not set(changed) <= set(_APART):
        return None  # what a table becomes depends on others
    tables = {name: getattr(before, name) for name in type(before).model_fields}
    for name in changed:
        if name not in source or tables[name] is None:
            return None
        tables[name] = _read(tables[name], name, own.get(name), source[name], context)
    return tables


def _read(was: Any, name: str, own: Any, typed: Any, context: Reading) -> Any:
    if name == "traffic":
        return TRAFFIC.validate_python(typed, context=context)
    if name == "network" and isinstance(own, dict) and isinstance(typed, dict):
        typed = _with_links(was, own, typed)
    return type(was).model_validate(typed, context=context)


def _with_links(was: Network, own: Mapping[str, Any], typed: Mapping[str, Any]) -> dict[str, Any]:
    """Put links that were read into the place of what is typed, where that is the same."""
    same = {
        key: getattr(was, name)
        for key, name in LINKS.items()
        if isinstance(typed.get(key), dict) and typed[key] is own.get(key)
    }
    return {**typed, **same}
