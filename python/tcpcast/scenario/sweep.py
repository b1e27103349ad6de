"""The table of a sweep: which keys vary, over which values, and how often each cell is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from tcpcast.scenario.changes import leaves
from tcpcast.scenario.quantities import counted
from tcpcast.scenario.table import Table, choice, fault, faults
from tcpcast.units import show

MOST_REPLICATIONS = 100_000
MOST_DRAWN = 1_000_000
_EXAMPLE = '"network.rtt" = "10ms..200ms log 8"'
_TEXTS = {"type": "array", "items": {"type": "string"}}
_FEEDS = ("scenario", "measured")


def _read_engines(value: object) -> object:
    return [name.strip() for name in value.split(",")] if isinstance(value, str) else value


def _read_groups(value: object) -> object:
    """Turn one list of keys into a list of one group."""
    if isinstance(value, list) and value and all(isinstance(key, str) for key in value):
        return [value]
    return value


def _any_key(schema: dict[str, Any]) -> None:
    """Tell the JSON Schema of the keys that vary, typed with or without quotes."""
    schema["additionalProperties"] = {
        "description": "a dotted key of the scenario, with a range or a list of values",
        "anyOf": [
            {"type": "string", "examples": ["10ms..200ms log 8"]},
            {"type": "array", "minItems": 1},
            {"type": "object"},
        ],
    }


class Sweep(Table):
    """What ``tcpcast sweep`` varies: each other key is a dotted key of the scenario.

    Its value is a range, ``"10ms..200ms log 8"``, or a list of values. All of them are combined
    with each other, but for those that ``zip`` or ``latin`` bring together.
    """

    model_config = ConfigDict(extra="allow", json_schema_extra=_any_key)

    engines: Annotated[
        list[str],
        BeforeValidator(_read_engines),
        WithJsonSchema({"anyOf": [{"type": "string"}, _TEXTS]}),
    ] = Field(
        default=[],
        examples=[["pftk", "packet"]],
        description="engines; default: every quick engine that applies",
    )
    replications: Annotated[int, *counted(1, MOST_REPLICATIONS)] = Field(
        default=1,
        examples=[5],
        description="simulations per cell, with seeds `run.seed`, `run.seed` + 1, ...",
    )
    feed: Annotated[Literal["scenario", "measured"], BeforeValidator(choice("feed", _FEEDS))] = (
        Field(default="scenario", description="inputs of formulas, as for run")
    )
    zip: Annotated[
        list[list[str]],
        BeforeValidator(_read_groups),
        WithJsonSchema({"anyOf": [_TEXTS, {"type": "array", "items": _TEXTS}]}),
    ] = Field(
        default=[],
        examples=[["network.rtt", "network.bottleneck.rate"]],
        description="keys whose lists vary in parallel",
    )
    latin: Annotated[int, *counted(2, MOST_DRAWN)] | None = Field(
        default=None,
        examples=[50],
        description="number of points of a Latin hypercube, instead of all combinations",
    )

    @property
    def vary(self) -> dict[str, str | list[Any]]:
        """The keys that vary, in the order typed, each with its range or its values."""
        return dict(self.model_extra or {})

    @model_validator(mode="before")
    @classmethod
    def _flatten(cls, data: Any) -> Any:
        """Take ``network.rtt = ...`` for ``"network.rtt" = ...``."""
        return dict(leaves(data, whole=Sweep.model_fields)) if isinstance(data, Mapping) else data

    @model_validator(mode="after")
    def _check(self) -> Self:
        found = [
            fault(f"{show(value)} is no range or list; write {_example(key)}", key)
            for key, value in self.vary.items()
            if not isinstance(value, str | list)
        ]
        if not self.vary:
            found = [fault(f"nothing varies; write {_EXAMPLE}, say")]
        if found:
            raise faults(found)
        return self


def _example(key: str) -> str:
    return f'"{key}" = [...], or "10ms..200ms log 8"'
