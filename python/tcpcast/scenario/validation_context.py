"""Values that the validation of a scenario's table needs from other tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tcpcast import units
from tcpcast.metrics import METRICS
from tcpcast.scenario.modern_tcp import TIMESTAMP_BYTES, has_timestamps
from tcpcast.scenario.network import HEADER_BYTES
from tcpcast.scenario.table import ValidationContext, table_or_empty

if TYPE_CHECKING:
    from pathlib import Path


def make_context(source: Mapping[str, Any], folder: Path | None) -> ValidationContext:
    """Return the validation context of a scenario."""
    timestamps = has_timestamps(table_or_empty(source.get("tcp")))
    try:
        payload = units.parse_bytes(table_or_empty(source.get("network")).get("packet", "1500B"))
        payload -= HEADER_BYTES
        payload -= TIMESTAMP_BYTES if timestamps else 0
    except ValueError:
        payload = 0
    metrics = {row.precision_of: name for name, row in METRICS.items() if row.precision_of}
    metric = metrics.get(str(get_traffic_kind(source)), metrics["on-off"])
    # With a wrong packet size, which is an error elsewhere, use an arbitrary payload.
    payload = payload if payload > 0 else 1460
    return ValidationContext(
        payload, folder, metric, ends_by_itself(source), get_class_keys(source), timestamps
    )


def get_traffic_kind(data: Mapping[str, Any]) -> object:
    """Return the kind of traffic of the top-level table, or else of the first class."""
    tables = [data.get("traffic"), *(entry.get("traffic") for entry in _get_class_tables(data))]
    return next(
        (table_or_empty(table)["kind"] for table in tables if "kind" in table_or_empty(table)), None
    )


def get_class_keys(data: Mapping[str, Any]) -> frozenset[str]:
    """Return the keys that at least one class sets, such as ``rtt`` and ``egress.rate``."""
    keys: set[str] = set()
    for entry in _get_class_tables(data):
        keys |= entry.keys()
        keys |= {f"{name}.{key}" for name, value in entry.items() for key in table_or_empty(value)}
    return frozenset(keys)


def _get_class_tables(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    entries = data.get("class")
    return [table_or_empty(entry) for entry in entries] if isinstance(entries, list) else []


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
