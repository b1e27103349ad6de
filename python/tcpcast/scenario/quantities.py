"""Types of scenario values; each reads and formats values as users type them."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import (
    BeforeValidator,
    PlainSerializer,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
)

from tcpcast.process.errors import UnitError
from tcpcast.quantity import units
from tcpcast.scenario.byte_sizes import SizeInBytes, is_in_bytes, write_size
from tcpcast.scenario.table import get_validation_context

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_WINDOW = 10**9

_UNSIGNED_NUMBER = rf"^\s*\+?{units.NUMBER}\s*"

_RUN_TIME_EXAMPLE = "60s"
"""Example of the duration of a run."""


def _quantity_schema(pattern: str, example: str, *words: str) -> dict[str, Any]:
    """Return the JSON Schema of a quantity with a unit; ``words`` are permitted alternatives."""
    text = {"type": "string", "pattern": pattern, "examples": [example]}
    return {"anyOf": [text, {"enum": list(words)}]} if words else text


def _quantity_or_number_schema(
    text: dict[str, Any], maximum: float | None = None
) -> dict[str, Any]:
    number: dict[str, Any] = {"type": "number", "minimum": 0}
    if maximum is not None:
        number["maximum"] = maximum
    return {"anyOf": [text, number]}


TIME_SCHEMA = _quantity_schema(rf"{_UNSIGNED_NUMBER}(ns|us|µs|μs|ms|s|min|h)\s*$", "50ms")
PACKETS_SCHEMA = _quantity_schema(
    rf"{_UNSIGNED_NUMBER}(pkt|B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)?\s*$", "12pkt"
)
RATIO_SCHEMA = _quantity_or_number_schema(_quantity_schema(rf"{_UNSIGNED_NUMBER}%?\s*$", "1%"), 1)
RATE_SCHEMA = _quantity_schema(
    rf"{_UNSIGNED_NUMBER}[kKmMgG]?([bB][iI][tT](/[sS])?|b/s)\s*$", "10mbit", "unlimited"
)
BYTES_SCHEMA = _quantity_schema(
    rf"{_UNSIGNED_NUMBER}(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)\s*$", "1500B"
)

WINDOW_SCHEMA: dict[str, Any] = {
    "anyOf": [{"type": "integer", "minimum": 1}, PACKETS_SCHEMA, {"const": "unlimited"}]
}


def read_positive_rate(value: object) -> float:
    """Read a rate above 0 that limits, in bit/s."""
    rate = units.parse_rate(value)
    if math.isinf(rate):
        raise UnitError(f'{units.quote(value)} is not a limit; use "50mbit", for example')
    return rate


def _read_positive_time(value: object, example: str = "50ms") -> float:
    seconds = units.parse_duration(value, example=example)
    if seconds == 0:
        raise UnitError(f'{units.quote(value)} must be above 0; use "1s", for example')
    return seconds


def _read_size(value: object, info: ValidationInfo) -> float:
    packets = units.parse_packets(value, payload_bytes=get_validation_context(info).payload_bytes)
    return SizeInBytes(packets, units.parse_bytes(value)) if is_in_bytes(value) else packets


def _read_packet_size(value: object, info: ValidationInfo) -> int:
    size = units.parse_bytes(value)
    if not 41 <= size <= 65535:
        headers = get_validation_context(info).header_bytes
        raise UnitError(
            f"{units.quote(value)} is not the size of an IP packet with {headers} B of headers and "
            f'at least 1 B of payload; use "{headers + 1}B" to "65535B"'
        )
    return size


def _read_ack_size(value: object) -> int:
    size = units.parse_bytes(value)
    if not 1 <= size <= 65535:
        raise UnitError(f'{units.quote(value)} is not the size of an ack; use "40B", for example')
    return size


def read_window(value: object, info: ValidationInfo) -> float:
    """Read a window: whole packets, bytes of payload (rounded down), or ``"unlimited"``."""
    if value == "unlimited":
        return math.inf
    packets = units.parse_packets(value, payload_bytes=get_validation_context(info).payload_bytes)
    in_bytes = isinstance(value, str) and value.strip().endswith("B")
    if packets != int(packets) and not in_bytes:
        raise UnitError(
            f"{units.quote(value)} is not a whole number of packets; use {max(1, int(packets))}"
        )
    if packets < 1:
        raise UnitError(f'{units.quote(value)} is less than one packet; use at least "1pkt"')
    if packets > MAX_WINDOW:
        raise UnitError(f'{units.quote(value)} is too large; use "unlimited"')
    return int(packets)


def write_window(packets: float) -> int | str:
    """Format a window for ``read_window``."""
    return "unlimited" if math.isinf(packets) else int(packets)


def integer_annotation(minimum: int, maximum: int) -> tuple[BeforeValidator, WithJsonSchema]:
    """Return the parts of an annotation for a whole number from ``minimum`` to ``maximum``."""
    schema = {"type": "integer", "minimum": minimum, "maximum": maximum}
    read = BeforeValidator(lambda value: units.parse_count(value, minimum=minimum, maximum=maximum))
    return read, WithJsonSchema(schema)


def number_annotation(
    what: str, low: float, high: float, *, example: float, above_low: bool = False
) -> tuple[BeforeValidator, WithJsonSchema]:
    """Return the parts of an annotation for a plain number from ``low`` to ``high``.

    ``what`` and ``example`` are for messages. With ``above_low``, ``low`` itself is refused.
    """

    def read(value: object) -> float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not low <= float(str(value)) <= high or (above_low and value == low):
            start = f"above {low:g}, at most" if above_low else f"from {low:g} to"
            raise UnitError(
                f"{units.quote(value)} is not a {what}; use a number {start} {high:g}, such as "
                f"{example:g}"
            )
        return float(str(value))

    minimum = "exclusiveMinimum" if above_low else "minimum"
    return BeforeValidator(read), WithJsonSchema({"type": "number", minimum: low, "maximum": high})


def words_annotation(
    read: Callable[[Any], Any], write: Callable[[Any], Any], schema: dict[str, Any], *words: str
) -> tuple[PlainValidator, PlainSerializer, WithJsonSchema]:
    """Return the parts of an annotation for a quantity, or one of ``words`` instead."""

    def read_quantity_or_word(value: object) -> Any:
        if value in list(words):
            return value
        try:
            return read(value)
        except ValueError as error:
            raise ValueError(f"{error}, or {' or '.join(map(units.quote, words))}") from None

    return (
        PlainValidator(read_quantity_or_word),
        PlainSerializer(lambda value: value if value in list(words) else write(value)),
        WithJsonSchema({"anyOf": [schema, {"enum": list(words)}]}),
    )


def quantity_annotation(
    read: Callable[[Any], float], write: Callable[[Any], str], schema: dict[str, Any]
) -> tuple[BeforeValidator, PlainSerializer, WithJsonSchema]:
    """Return the parts of an annotation for a number that is written as a text with a unit."""
    return BeforeValidator(read), PlainSerializer(write, return_type=str), WithJsonSchema(schema)


Rate = Annotated[float, *quantity_annotation(units.parse_rate, units.format_rate, RATE_SCHEMA)]
"""Rate in bit/s; inf for an unlimited link."""

PositiveRate = Annotated[
    float, *quantity_annotation(read_positive_rate, units.format_rate, RATE_SCHEMA)
]
"""Rate in bit/s, neither 0 nor unlimited."""

Duration = Annotated[
    float,
    *quantity_annotation(
        units.parse_duration, units.format_duration, {"anyOf": [TIME_SCHEMA, {"const": 0}]}
    ),
]
"""A time in seconds, 0 or more."""

PositiveDuration = Annotated[
    float, *quantity_annotation(_read_positive_time, units.format_duration, TIME_SCHEMA)
]
"""A time in seconds, above 0."""

HostDelay = Annotated[
    float,
    *quantity_annotation(
        partial(units.parse_duration, example="0.1ms"),
        units.format_duration,
        {"anyOf": [TIME_SCHEMA, {"const": 0}]},
    ),
]
"""A time in seconds, 0 or more; examples in messages are host delays of about 0.1 ms."""

RunTime = Annotated[
    float,
    *quantity_annotation(
        partial(_read_positive_time, example=_RUN_TIME_EXAMPLE), units.format_duration, TIME_SCHEMA
    ),
]
"""A time in seconds, above 0; examples in messages are durations of runs."""

TimeLimit = Annotated[
    float,
    *quantity_annotation(
        lambda value: (
            math.inf if value == "unlimited" else _read_positive_time(value, _RUN_TIME_EXAMPLE)
        ),
        lambda seconds: "unlimited" if math.isinf(seconds) else units.format_duration(seconds),
        {"anyOf": [TIME_SCHEMA, {"const": "unlimited"}]},
    ),
]
"""A time in seconds, above 0; inf for no limit."""

Size = Annotated[
    float,
    PlainValidator(_read_size),
    PlainSerializer(write_size, return_type=str),
    WithJsonSchema(_quantity_or_number_schema(PACKETS_SCHEMA)),
]
"""A size in packets, not rounded. A size typed in bytes also keeps the number of bytes."""

Ratio = Annotated[float, *quantity_annotation(units.parse_ratio, units.format_ratio, RATIO_SCHEMA)]
"""Ratio from 0 to 1."""

Bytes = Annotated[int, *quantity_annotation(units.parse_bytes, units.format_bytes, BYTES_SCHEMA)]
"""Bytes on the wire."""

PacketSize = Annotated[
    int, *quantity_annotation(_read_packet_size, units.format_bytes, BYTES_SCHEMA)
]
"""Bytes of a data packet on the wire, IP and TCP headers included."""

AckSize = Annotated[int, *quantity_annotation(_read_ack_size, units.format_bytes, BYTES_SCHEMA)]
"""Bytes of an ack on the wire."""

Window = Annotated[
    float,
    PlainValidator(read_window),
    PlainSerializer(write_window),
    WithJsonSchema(WINDOW_SCHEMA),
]
"""Whole packets (an int), or inf."""
