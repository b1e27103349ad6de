"""Rules for required tables, which depend on the traffic, also as JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcpcast.scenario.captured_flows import CAPTURE

MEASURED_TABLES = ("network", "tcp", "run", "probes", "mean_field", "fixed_point", "class", "cross")
"""Tables that a scenario of a capture must not have: the capture determines their values."""


def add_required_tables_to_schema(schema: dict[str, Any]) -> None:
    """Add the required tables to the JSON Schema; for a capture, this is only ``traffic``."""
    kind = {"required": ["kind"], "properties": {"kind": {"const": CAPTURE}}}
    schema["if"] = {"properties": {"traffic": kind}, "required": ["traffic"]}
    schema["then"] = {"properties": dict.fromkeys(MEASURED_TABLES, False)}
    own = {"required": ["traffic"], "properties": {"traffic": {"required": ["kind"]}}}
    each = {"required": ["class"], "properties": {"class": {"minItems": 1, "items": own}}}
    apart = {"traffic", "run"}
    alone = {"required": ["kind"], "properties": {"kind": {"const": "transfers"}}}
    schema["else"] = {
        "required": [name for name in schema.pop("required") if name not in apart],
        "anyOf": [{"required": ["traffic"]}, each],
        # Isolated transfers determine the length of the run.
        "if": {
            "properties": {"traffic": alone | {"not": {"required": ["arrivals"]}}},
            "required": ["traffic"],
            "not": {"required": ["class"]},
        },
        "else": {"required": ["run"]},
    }


def ends_by_itself(source: Mapping[str, Any]) -> bool:
    """Return True if the traffic determines the length of the run, so ``[run]`` is optional."""
    traffic = source.get("traffic")
    if not isinstance(traffic, Mapping) or source.get("class"):
        return False
    return traffic.get("kind") == "transfers" and "arrivals" not in traffic
