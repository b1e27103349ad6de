"""JSON output: keys, order and stability, which programs rely on."""

import json
from typing import Any, get_args

import jsonschema
import numpy as np
import pytest
import tcpcast
from tcpcast.answer import UNITS, Answer, Metric, NoteKind, Status
from tcpcast.answer.finding import Claim
from tcpcast.report.json import encode
from tcpcast.scenario import Scenario

from cli.made_up import calculated, simulated

NUMBER = {"type": ["number", "null"]}
METRIC = {
    "type": "object",
    "properties": {
        "value": NUMBER,
        "low": NUMBER,
        "high": NUMBER,
        "unit": {"enum": sorted(set(UNITS.values()))},
        "trusted": {"const": False},
        "interval_warning": {"type": "string"},
        "at_least": {"type": "number"},
    },
    "required": ["value", "low", "high", "unit"],
    "additionalProperties": False,
}
NOTE = {
    "type": "object",
    "properties": {
        "why": {"type": "string"},
        "metrics": {"type": "array", "items": {"type": "string"}},
        "kind": {"enum": list(get_args(NoteKind))},
        "named": {"type": "boolean"},
    },
    "required": ["why", "metrics", "kind", "named"],
    "additionalProperties": False,
}
TABLE = {
    "type": "object",
    "properties": {"columns": {"type": "object", "additionalProperties": {"type": "array"}}},
    "required": ["columns"],
    "additionalProperties": False,
}
APPLICABLE = {
    "type": "object",
    "properties": {
        "engine": {"type": "string"},
        "wall_s": {"type": "number", "minimum": 0},
        "warnings": {"type": "array", "items": {"type": "string"}},
        "metrics": {
            "type": "object",
            "properties": dict.fromkeys(UNITS, METRIC),
            "additionalProperties": False,
        },
        "tables": {"type": "object", "additionalProperties": TABLE},
        "provenance": {
            "type": "object",
            "properties": {
                "version": {"type": "string"},
                "scenario": {"type": "string", "pattern": "^sha256"},
            },
            "required": ["version", "scenario"],
        },
        "notes": {"type": "array", "items": NOTE},
        "incomplete_reason": {"type": "string"},
    },
    "required": ["engine", "wall_s", "warnings", "metrics", "tables", "provenance"],
    "additionalProperties": False,
}
INAPPLICABLE = {
    "type": "object",
    "properties": {"engine": {"type": "string"}, "not_applicable": {"type": "string"}},
    "required": ["engine", "not_applicable"],
    "additionalProperties": False,
}
FINDING = {
    "type": "object",
    "properties": {
        "claim": {"enum": list(get_args(Claim))},
        **{name: {"type": "string"} for name in ("subject", "metric", "basis", "unit", "action")},
        **{name: {"type": "string"} for name in ("bound", "limit", "evidence")},
        **{name: {"type": ["number", "null"]} for name in ("value", "low", "high")},
        "kind": {"enum": ["formula", "simulation", "measurement"]},
        "place": {"type": "object"},
        "tied": {"type": "integer", "minimum": 2},
        "trusted": {"type": "boolean"},
    },
    "required": ["claim"],
    "additionalProperties": False,
}
DOCUMENT = {
    "type": "object",
    "properties": {
        "scenario": {"type": "object", "required": ["name", "network", "traffic", "tcp", "run"]},
        "verdict": {"type": ["string", "null"]},
        "findings": {"type": "array", "items": FINDING},
        "answers": {"type": "array", "items": {"oneOf": [APPLICABLE, INAPPLICABLE]}},
    },
    "required": ["scenario", "verdict", "findings", "answers"],
    "additionalProperties": False,
}


def read(text: str) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    document: dict[str, Any] = json.loads(text, parse_constant=refuse)
    return document


def json_report(answers: list[Answer], scenario: Scenario) -> str:
    return encode(tcpcast.Answers(answers, scenario).to_json())


def test_document_matches_schema(scenario: Scenario, pair: list[Answer]) -> None:
    refused = Answer("pftk", status=Status.NOT_APPLICABLE, reason="it needs bulk flows")
    stopped = simulated()
    stopped.mark_incomplete("max_wall reached")
    document = read(json_report([*pair, refused, stopped], scenario))
    jsonschema.validate(document, DOCUMENT)
    assert document["answers"][2] == {"engine": "pftk", "not_applicable": "it needs bulk flows"}
    assert document["answers"][3]["incomplete_reason"] == "max_wall reached"
    loss = document["answers"][1]["metrics"]["loss_ratio"]
    assert loss == {"value": 0.04664, "low": 0.0459, "high": 0.04772, "unit": "1"}


def test_nan_and_infinity_become_null(scenario: Scenario) -> None:
    answer = simulated()
    answer.metrics["on_time_s"] = Metric(float("inf"), float("nan"), None)
    answer.tables["states"]["shared_rate_bps"] = np.array([np.nan, 1.5, np.inf])
    document = read(json_report([answer], scenario))["answers"][0]
    assert document["metrics"]["on_time_s"] == {
        "value": None,
        "low": None,
        "high": None,
        "unit": "s",
    }
    assert document["tables"]["states"]["columns"]["shared_rate_bps"] == [None, 1.5, None]


def test_provenance_contains_steps_regime_and_inputs() -> None:
    """In Python, these values are fields of the answer; in JSON, they are in the provenance."""
    steps = [{"symbol": "p", "value": 0.01, "unit": "1", "source": "network.loss"}]
    formula = Answer("pftk", regime="timeouts", steps=steps, domain={"loss": 0.01})
    formula.provenance = {"version": "0"}
    way = {"regime": "timeouts", "steps": steps, "domain": {"loss": 0.01}}
    assert formula.to_json()["provenance"] == {"version": "0", **way}
    assert formula.provenance == {"version": "0"}


def test_order_of_metrics_and_tables_is_fixed(scenario: Scenario) -> None:
    straight, reversed_ = simulated(), simulated()
    reversed_.metrics = dict(reversed(reversed_.metrics.items()))
    reversed_.tables = dict(reversed(reversed_.tables.items()))
    reversed_.provenance = dict(reversed(reversed_.provenance.items()))
    text = json_report([straight], scenario)
    assert json_report([reversed_], scenario) == text
    metrics = list(read(text)["answers"][0]["metrics"])
    assert metrics == sorted(metrics, key=list(UNITS).index)


def test_report_reads_back_as_the_same_document(scenario: Scenario, pair: list[Answer]) -> None:
    assert tcpcast.Answers(pair, scenario).to_json() == read(json_report(pair, scenario))


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        {"a": {}, "b": []},
        {"a": [1, 2.5, None, "x"], "b": {"value": 1.0, "unit": "s"}},
        {"value": {"c": [1]}},
        [{"a": 1}, {"b": [{"c": True}]}],
        "ü\n\"'",
        {"only": calculated().to_json()["metrics"]},
    ],
)
def test_encode_round_trips_through_json(value: Any) -> None:
    assert json.loads(encode(value)) == value


def test_encode_rejects_nan() -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode({"a": float("nan")})


def test_encode_keeps_list_of_numbers_on_one_line() -> None:
    assert encode({"a": {"columns": {"x": [1, 2, 3]}}}).splitlines()[3].strip() == '"x": [1, 2, 3]'
