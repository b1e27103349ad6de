"""Which tables a scenario needs, by its traffic: for its reader and for its JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcpcast.scenario.traffic import CAPTURE

ASKED = ("network", "tcp", "run", "probes", "mean_field", "fixed_point", "class", "cross")
"""What a scenario asks for, and a capture has measured."""


def needed_of_all(schema: dict[str, Any]) -> None:
    """Tell the JSON Schema which tables are needed: with a capture none but itself."""
    kind = {"required": ["kind"], "properties": {"kind": {"const": CAPTURE}}}
    schema["if"] = {"properties": {"traffic": kind}, "required": ["traffic"]}
    schema["then"] = {"properties": dict.fromkeys(ASKED, False)}
    own = {"required": ["traffic"], "properties": {"traffic": {"required": ["kind"]}}}
    each = {"required": ["class"], "properties": {"class": {"minItems": 1, "items": own}}}
    apart = {"traffic", "run"}
    alone = {"required": ["kind"], "properties": {"kind": {"const": "transfers"}}}
    schema["else"] = {
        "required": [name for name in schema.pop("required") if name not in apart],
        "anyOf": [{"required": ["traffic"]}, each],
        # Transfers that run each alone say themselves how long the run is.
        "if": {
            "properties": {"traffic": alone | {"not": {"required": ["arrivals"]}}},
            "required": ["traffic"],
            "not": {"required": ["class"]},
        },
        "else": {"required": ["run"]},
    }


def ends_by_itself(source: Mapping[str, Any]) -> bool:
    """Say whether the traffic says how long the run is: it needs no table for that."""
    traffic = source.get("traffic")
    if not isinstance(traffic, Mapping) or source.get("class"):
        return False
    return traffic.get("kind") == "transfers" and "arrivals" not in traffic
