"""Jitter of a link: a distribution of random delays."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    ConfigDict,
    PlainSerializer,
    PlainValidator,
    TypeAdapter,
    ValidationInfo,
    WithJsonSchema,
)

from tcpcast.quantity import units
from tcpcast.scenario.distributions import Distribution
from tcpcast.scenario.quantities import RATIO_SCHEMA, TIME_SCHEMA
from tcpcast.scenario.table import make_key_error
from tcpcast.scenario.traffic import DISTRIBUTIONS, TimeDistribution

_DISTRIBUTION_ADAPTER: TypeAdapter[Distribution[float]] = TypeAdapter(
    TimeDistribution, config=ConfigDict(defer_build=True)
)


_NUMBER_SCHEMA: dict[str, Any] = {"type": "number", "minimum": 0}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "distribution": {"enum": list(DISTRIBUTIONS)},
        "reorder": {"type": "boolean"},
        **dict.fromkeys(("mean", "sd", "minimum", "low", "high", "value"), TIME_SCHEMA),
        **dict.fromkeys(("alpha", "c"), _NUMBER_SCHEMA),
        "tail": RATIO_SCHEMA,
        "file": {"type": "string"},
        "values": {"type": "array", "items": TIME_SCHEMA},
        "weights": {"type": "array", "items": _NUMBER_SCHEMA},
    },
    "required": ["distribution"],
    "additionalProperties": False,
}
"""JSON Schema of jitter, with the keys of all distributions of times."""


@dataclass(frozen=True, slots=True)
class Jitter:
    """Distribution of the delay in seconds; ``reorder`` lets packets overtake each other."""

    distribution: Distribution[float]
    reorder: bool


def _read_jitter(value: object, info: ValidationInfo) -> Jitter:
    if isinstance(value, Jitter):
        return value
    if not isinstance(value, Mapping):  # a time alone would suggest a constant delay
        message = f"{units.quote(value)} is not a table; use "
        raise make_key_error(
            message + '{ distribution = "exponential", mean = "5ms" }', value=value
        )
    table = dict(value)
    reorder = table.pop("reorder", False)
    if not isinstance(reorder, bool):
        raise make_key_error(f"{units.quote(reorder)} is not true or false; use true", "reorder")
    return Jitter(_DISTRIBUTION_ADAPTER.validate_python(table, context=info.context), reorder)


def _write_jitter(jitter: Jitter) -> dict[str, Any]:
    return {
        **jitter.distribution.model_dump(by_alias=True, exclude_none=True),
        "reorder": jitter.reorder,
    }


JitterRule = Annotated[
    Jitter,
    PlainValidator(_read_jitter),
    PlainSerializer(_write_jitter),
    WithJsonSchema(_SCHEMA),
]
"""Table of jitter: a distribution of times, and ``reorder``."""
