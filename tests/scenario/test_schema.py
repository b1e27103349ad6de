"""The JSON Schema is valid and complete, and agrees with the reader."""

import json
import tomllib
from collections.abc import Mapping
from typing import Any

import jsonschema
import pytest
from tcpcast.process.errors import ScenarioError
from tcpcast.scenario import (
    Scenario,
    get_packaged_names,
    load,
    make_scenario_schema,
    read_packaged_text,
)
from tcpcast.scenario.table import get_union_member_names

SCHEMA = make_scenario_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_schema_is_valid() -> None:
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    json.dumps(SCHEMA, allow_nan=False)
    assert SCHEMA["required"] == []  # a network or links


def test_schema_requires_a_network_or_links() -> None:
    tables = load("parking-lot").resolved()
    VALIDATOR.validate(tables)
    without = {key: value for key, value in tables.items() if key not in {"network", "link"}}
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(without)


def test_schema_requires_run_except_for_isolated_transfers() -> None:
    tables = load("short-transfers").resolved()
    del tables["run"]
    VALIDATOR.validate(tables)
    shared = tables | {
        "traffic": tables["traffic"] | {"arrivals": {"distribution": "poisson", "rate": "2/s"}}
    }
    for needs in (shared, load("office-50mbit").resolved()):
        needs.pop("run", None)
        with pytest.raises(jsonschema.ValidationError, match="'run' is a required property"):
            VALIDATOR.validate(needs)


@pytest.mark.parametrize("name", get_packaged_names())
def test_packaged_scenarios_are_valid(name: str) -> None:
    VALIDATOR.validate(tomllib.loads(read_packaged_text(name)))
    VALIDATOR.validate(load(name).resolved())
    VALIDATOR.validate(tomllib.loads(load(name).to_toml()))


def tables_within(schema: Any) -> list[dict[str, Any]]:
    below = schema.values() if isinstance(schema, dict) else schema
    is_table = isinstance(schema, dict) and {"properties", "title"} <= schema.keys()
    tables = [schema] if is_table else []
    if isinstance(schema, dict | list):
        tables += [table for part in below for table in tables_within(part)]
    return tables


def test_every_table_is_closed_with_valid_defaults_and_examples() -> None:
    tables = tables_within(SCHEMA)
    assert len(tables) > 40
    checked = 0
    for table in tables:
        # The keys of a sweep are dotted keys of the scenario, and those of changes are times.
        is_open = table["title"] in {"Sweep", "At"}
        assert (table["additionalProperties"] is False) == (not is_open)
        for key, schema in table["properties"].items():
            values = list(schema.get("examples", []))
            values += [schema["default"]] if "default" in schema else []
            for value in values:
                whole = {**schema, "$defs": SCHEMA["$defs"]}
                assert jsonschema.Draft202012Validator(whole).is_valid(value), (key, value)
                checked += 1
    assert checked > 100


def test_schema_references_exist() -> None:
    text = json.dumps(SCHEMA)
    for name in SCHEMA["$defs"]:
        assert f'"#/$defs/{name}"' in text
        assert "__" not in name


@pytest.mark.parametrize(
    "changes",
    [
        {"network.rtt": 50},
        {"network.rtt": "50mbit"},
        {"network.botleneck": {}},
        {"network.bottleneck.rate": "10mbps"},
        {"network.bottleneck.rate": 10},
        {"network.bottleneck.buffer": 150},
        {"network.bottleneck.queue": "sfq"},
        {"network.bottleneck.queue": {"kind": "red", "min": "5pkt"}},
        {"network.bottleneck.queue": {"kind": "red", "min_threshold": 5}},
        {"network.bottleneck.queue": {"kind": "red", "weight": 2}},
        {"network.bottleneck.loss": 2},
        {"network.bottleneck.loss": {"model": "gilbert"}},
        {"network.bottleneck.loss": {"model": "rest-of-round"}},
        {"network.packet": 1500},
        {"traffic.sources": 0},
        {"traffic.sources": "134"},
        {"traffic.kind": "transfers"},
        {"traffic.size": {"mean": 12}},
        {"traffic.size": {"distribution": "normal", "mean": 12}},
        {"traffic.size": {"distribution": "ee", "mean": 12, "minimum": 3}},
        {"traffic.size.mean": "12ms"},
        {"traffic.size.mean": -1},
        {"tcp.stack": "rfc-cubic"},
        {"tcp.delayed_acks": "yes"},
        {"tcp.limited_transmit": "yes"},
        {"tcp.limited_transmit": "on-second"},
        {"tcp.rules.limited_transmit_on": "first"},
        {"tcp.timer_restart": "send"},
        {"tcp.duplicate_threshold": 0},
        {"tcp.duplicate_threshold": "3"},
        {"tcp.rules.last_packets_threshold": 0},
        {"tcp.rules.last_packets_threshold": "receiver-window"},
        {"tcp.rules.last_packets": 1},
        {"tcp.receiver_window": 0},
        {"run.seed": -1},
        {"run.precision": {"loss_rate": "1%"}},
        {"run.duration": "60s", "run.transfers": 5},
        {"class": [{"sources": 3}]},
        {"class": [{"name": "a", "traffic": {"size": {"men": 3}}}]},
        {"class": [{"name": "a", "ingress": {"rat": "3mbit"}}]},
        {"probes.flows": 3},
        {"probes": {"pcap": [{"link": "egress", "file": "x"}]}},
        {"cross": {}},
        {"cross": [{"distribution": "fgm"}]},
        {"cross": [{"distribution": "poisson", "mean": 0.8}]},
        {"cross": [{"model": "poisson", "mean": "3%", "sd": "3%"}]},
        {"cross": [{"model": "fgn", "mean": "3%", "sd": "3%"}]},
    ],
)
def test_schema_and_reader_reject_the_same(changes: dict[str, Any]) -> None:
    tables = changed(changes)
    assert not VALIDATOR.is_valid(tables)
    with pytest.raises(ScenarioError):
        Scenario.from_dict(tables)


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    tables = tomllib.loads(read_packaged_text("web-10mbit"))
    for dotted, value in changes.items():
        *path, key = dotted.split(".")
        table = tables
        for part in path:
            table = table.setdefault(part, {})
        table[key] = value
    return tables


def test_pydantic_path_names_equal_union_members() -> None:
    names: set[str] = set()

    def walk(part: object) -> None:
        if isinstance(part, Mapping):
            if part.get("type") == "tagged-union":
                names.update(str(name) for name in part["choices"])
            for inner in part.values():
                walk(inner)
        elif isinstance(part, list | tuple):
            for inner in part:
                walk(inner)

    walk(Scenario.__pydantic_core_schema__)
    assert names == get_union_member_names()


def test_every_key_is_described() -> None:
    """Editors show descriptions; parts that only state conditions need none."""

    def missing(definition: Mapping[str, Any], where: str) -> list[str]:
        found = []
        for key, schema in definition.get("properties", {}).items():
            found += [] if schema.get("description") else [f"{where}.{key}"]
            for inner in (schema, *schema.get("anyOf", [])):
                found += missing(inner, f"{where}.{key}")
        return found

    tables = {"": SCHEMA, **SCHEMA["$defs"]}
    assert [key for name, table in tables.items() for key in missing(table, name)] == []
