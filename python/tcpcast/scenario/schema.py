"""The JSON Schema of a scenario, for editors and other programs."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import TypeAdapter

from tcpcast.scenario.model import Scenario
from tcpcast.scenario.table import Table, get_all_subclasses

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_OVERRIDABLE_TABLES = ("ingress", "egress", "traffic")


def make_scenario_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a scenario as typed.

    The schema contains keys, types, units and defaults. Rules across several keys are checked only
    when a scenario is read, for example that a minimum is below the mean.
    """
    untitled = Scenario.model_json_schema(by_alias=True, mode="validation")
    text = json.dumps(untitled)
    for name, named in untitled["$defs"].items():
        shown = named["title"]
        text = text.replace(f'"#/$defs/{name}"', f'"#/$defs/{shown}"')
        text = text.replace(f'"{name}": {{', f'"{shown}": {{')
    schema: dict[str, Any] = json.loads(text)
    definitions = schema["$defs"]
    tables = {
        table.model_config.get("title") or table.__name__: table
        for table in get_all_subclasses(Table)
    }
    for name, definition in [*definitions.items(), ("Scenario", schema)]:
        _set_typed_defaults(definition, tables[name])
    entry = definitions["UserClass"]
    for name in _OVERRIDABLE_TABLES:
        entry["properties"][name] = _make_keys_optional(entry["properties"][name], definitions)
    entry["required"] = ["name"]
    traffic = schema["properties"]["traffic"]
    text = "traffic of all senders, or the keys that classes share"
    own = {"description": text, "examples": traffic["examples"]}
    schema["properties"]["traffic"] = entry["properties"]["traffic"] | own
    schema["anyOf"] = [
        {"required": ["class"], "properties": {"class": {"minItems": 1}}},
        {"properties": {"traffic": traffic}},
    ]
    for definition in [schema, *definitions.values()]:
        _describe_common_keys(definition)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def iter_key_descriptions(
    part: Mapping[str, Any],
    tables: Mapping[str, Any],
    names: Sequence[str],
    values: Mapping[str, Any],
    above: str = "",
) -> Iterator[str]:
    """Yield the descriptions of a key; a key of several kinds of a table may have several.

    Parameters
    ----------
    part, tables
        The schema in which the key is searched, and the definitions to which it refers.
    names
        Parts of the dotted key. The name of a table, such as ``far`` in ``class.far.tcp``, stands
        for its place in a list.
    values
        Values by dotted key. They exclude kinds of tables that the scenario does not use.
    above
        Dotted key of the table that ``part`` describes.
    """
    if not names and "description" in part:
        yield part["description"]
    if "$ref" in part:
        name = part["$ref"].rpartition("/")[2]
        yield from iter_key_descriptions(tables[name], tables, names, values, above)
    for union in ("anyOf", "oneOf", "allOf"):
        for other in part.get(union, ()):
            yield from iter_key_descriptions(other, tables, names, values, above)
    if not names:
        return
    key = f"{above}.{names[0]}".lstrip(".")
    keys = part.get("properties", {})
    kinds = {name: inner["const"] for name, inner in keys.items() if "const" in inner}
    if any(values.get(f"{above}.{name}", kind) != kind for name, kind in kinds.items()):
        return
    named = (*part.get("patternProperties", {}).values(), part.get("additionalProperties"))
    for inner in (keys.get(names[0]), part.get("items"), *named):
        if isinstance(inner, dict):
            yield from iter_key_descriptions(inner, tables, names[1:], values, key)


_COMMON_KEYS = {
    "alpha": "shape parameter of the tail; the mean is finite if this parameter is above 1",
    "bytes": "bytes at each time, instead of a file",
    "c": "ratio of the mean to the minimum of the long part",
    "class": "classes of senders; without them, all senders are equal",
    "distribution": "name of the distribution",
    "file": "file, relative to the folder of the scenario",
    "fixed_point": "settings of the fixed-point engine",
    "flows": "number of flows; optional if classes contain it",
    "high": "upper bound",
    "kind": "name of the kind",
    "link": "place on the path where packets are captured",
    "low": "lower bound",
    "mean": "mean of the distribution, including the minimum",
    "mean_field": "settings of the mean-field engine",
    "minimum": "smallest value",
    "model": "name of the model",
    "name": "name in reports",
    "network": "the path of all senders; optional with [link.NAME] tables",
    "packets": "largest number of packets in the file",
    "pcap": "captures of the first replication, one file each",
    "probes": "what a run records in addition to the metrics",
    "queue": "queue discipline",
    "rate": "probability that a packet is lost",
    "reorder": "packets with a shorter delay overtake other packets",
    "run": "length of the run, seed and precision",
    "sd": "standard deviation",
    "seed": "seed of the random numbers",
    "sources": "number of on/off sources; optional if classes contain it",
    "sweep": "varied keys, for tcpcast sweep",
    "tail": "probability of the long part",
    "tcp": "stack and settings of TCP",
    "times": "times in seconds, in ascending order, instead of a file",
    "value": "the constant value",
    "values": "list of values, instead of a file",
    "weights": "weight of each value; without weights, all are equal",
}
"""Descriptions of keys whose name has one meaning in all tables."""


def _describe_common_keys(definition: dict[str, Any]) -> None:
    """Describe each key of a table, and of the tables within it, that has no description."""
    for key, schema in definition.get("properties", {}).items():
        if "description" not in schema and key in _COMMON_KEYS:
            schema["description"] = _COMMON_KEYS[key]
        for inner in (schema, *schema.get("anyOf", [])):
            _describe_common_keys(inner)


def _set_typed_defaults(definition: dict[str, Any], table: type[Table]) -> None:
    """Write defaults as users type them, and omit null, which TOML does not have."""
    fields = table.fields_by_key()
    for key, schema in definition["properties"].items():
        alternatives = schema.get("anyOf", [])
        if {"type": "null"} in alternatives:
            alternatives.remove({"type": "null"})
        if len(alternatives) == 1:
            schema.update(schema.pop("anyOf")[0])
        default = schema.pop("default", None)
        if default is not None:
            field = fields[key]
            if field.is_required() or field.default is None:  # default computed from other keys
                schema["default"] = default
            else:
                # The annotation without the field's alias, which names only the field.
                kind: Any = (
                    Annotated[field.annotation, *field.metadata]
                    if field.metadata
                    else field.annotation
                )
                adapter: TypeAdapter[Any] = TypeAdapter(kind)
                schema["default"] = adapter.dump_python(
                    field.default, by_alias=True, exclude_none=True
                )


def _make_keys_optional(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Return a schema in which all keys are optional, because a class inherits omitted keys.

    Referenced tables are copied under a name that ends in Overlay.
    """
    partial = copy.deepcopy(schema)
    if "$ref" in partial:
        name = partial["$ref"].rsplit("/", 1)[1]
        overlay = f"{name}Overlay"
        if overlay not in definitions:
            definitions[overlay] = {}
            definitions[overlay].update(_make_keys_optional(definitions[name], definitions))
        return {**partial, "$ref": f"#/$defs/{overlay}"}
    for word in ("required", "discriminator", "default"):
        partial.pop(word, None)
    if "oneOf" in partial:
        # Without the selecting key, several alternatives may match.
        partial["anyOf"] = partial.pop("oneOf")
    for word in ("anyOf", "allOf"):
        if word in partial:
            partial[word] = [_make_keys_optional(part, definitions) for part in partial[word]]
    for key, value in partial.get("properties", {}).items():
        partial["properties"][key] = _make_keys_optional(value, definitions)
    return partial
