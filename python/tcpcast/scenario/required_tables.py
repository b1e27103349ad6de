"""Rules for required tables, which depend on the traffic, also as JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def add_required_tables_to_schema(schema: dict[str, Any]) -> None:
    """Add the required tables to the JSON Schema."""
    own = {"required": ["traffic"], "properties": {"traffic": {"required": ["kind"]}}}
    each = {"required": ["class"], "properties": {"class": {"minItems": 1, "items": own}}}
    apart = {"traffic", "run"}
    alone = {"required": ["kind"], "properties": {"kind": {"const": "transfers"}}}
    schema["required"] = [name for name in schema["required"] if name not in apart]
    schema["allOf"] = [{"anyOf": [{"required": ["traffic"]}, each]}]
    # Isolated transfers determine the length of the run.
    schema["if"] = {
        "properties": {"traffic": alone | {"not": {"required": ["arrivals"]}}},
        "required": ["traffic"],
        "not": {"required": ["class"]},
    }
    schema["else"] = {"required": ["run"]}


def ends_by_itself(source: Mapping[str, Any]) -> bool:
    """Return True if the traffic determines the length of the run, so ``[run]`` is optional."""
    traffic = source.get("traffic")
    if not isinstance(traffic, Mapping) or source.get("class"):
        return False
    return traffic.get("kind") == "transfers" and "arrivals" not in traffic
