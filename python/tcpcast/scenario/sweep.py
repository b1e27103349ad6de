"""Table ``[sweep]``: varied keys with their values, engines, and sampling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from tcpcast.scenario.changes import iter_values_by_dotted_key
from tcpcast.scenario.quantities import integer_annotation
from tcpcast.scenario.table import (
    Choice,
    Errors,
    Table,
    make_error_at,
)
from tcpcast.units import quote

MAX_REPLICATIONS = 100_000
MAX_LATIN_CELLS = 1_000_000
_VARY_EXAMPLE = '"network.rtt" = "10ms..200ms log 8"'
_TEXT_LIST_SCHEMA = {"type": "array", "items": {"type": "string"}}


def _read_engines(value: object) -> object:
    return [name.strip() for name in value.split(",")] if isinstance(value, str) else value


def _read_zip_groups(value: object) -> object:
    """Convert one list of keys to a list with one group."""
    if isinstance(value, list) and value and all(isinstance(key, str) for key in value):
        return [value]
    return value


def _add_varied_keys_to_schema(schema: dict[str, Any]) -> None:
    """Add the varied keys, with or without quotes, to the JSON Schema."""
    schema["additionalProperties"] = {
        "description": "a dotted key of the scenario, with a range or a list of values",
        "anyOf": [
            {"type": "string", "examples": ["10ms..200ms log 8"]},
            {"type": "array", "minItems": 1},
            {"type": "object"},
        ],
    }


class Sweep(Table):
    """Parameters of ``tcpcast sweep``: each additional key is a dotted key of the scenario.

    The value of a varied key is a range, ``"10ms..200ms log 8"``, or a list. All combinations of
    values are run, except for keys in ``zip`` (varied in parallel) or ``latin`` (Latin hypercube
    samples).
    """

    model_config = ConfigDict(extra="allow", json_schema_extra=_add_varied_keys_to_schema)

    engines: Annotated[
        list[str],
        BeforeValidator(_read_engines),
        WithJsonSchema({"anyOf": [{"type": "string"}, _TEXT_LIST_SCHEMA]}),
    ] = Field(
        default=[],
        examples=[["pftk", "packet"]],
        description="names of engines; default: every quick engine that applies",
    )
    replications: Annotated[int, *integer_annotation(1, MAX_REPLICATIONS)] = Field(
        default=1,
        examples=[5],
        description="simulations per combination of values, with seeds `run.seed`, `run.seed` + "
        "1, ...",
    )
    feed: Annotated[Literal["scenario", "measured"], Choice("feed")] = Field(
        default="scenario", description="inputs of formulas, as --feed of `tcpcast run`"
    )
    zip: Annotated[
        list[list[str]],
        BeforeValidator(_read_zip_groups),
        WithJsonSchema(
            {"anyOf": [_TEXT_LIST_SCHEMA, {"type": "array", "items": _TEXT_LIST_SCHEMA}]}
        ),
    ] = Field(
        default=[],
        examples=[["network.rtt", "network.bottleneck.rate"]],
        description="keys whose lists are varied together, value by value",
    )
    latin: Annotated[int, *integer_annotation(2, MAX_LATIN_CELLS)] | None = Field(
        default=None,
        examples=[50],
        description="number of points of a Latin hypercube, instead of all combinations",
    )

    @property
    def vary(self) -> dict[str, str | list[Any]]:
        """The varied keys in the order typed, each with its range or values."""
        return dict(self.model_extra or {})

    @model_validator(mode="before")
    @classmethod
    def _flatten_unquoted_keys(cls, data: Any) -> Any:
        """Accept ``network.rtt = ...`` without quotes around the key."""
        return (
            dict(iter_values_by_dotted_key(data, whole=Sweep.model_fields))
            if isinstance(data, Mapping)
            else data
        )

    def _find_errors(self) -> Errors:
        for key, value in self.vary.items():
            if not isinstance(value, str | list):
                example = f'"{key}" = [...], or "10ms..200ms log 8"'
                yield make_error_at(f"{quote(value)} is not a range or list; use {example}", key)
        if not self.vary:
            yield make_error_at(f"no key varies; use {_VARY_EXAMPLE}, for example")
