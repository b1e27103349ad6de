"""Keys of modern TCP: defaults of the presets, and checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpcast.scenario.modern_stacks import CLASSIC_ONLY, KEYS_OF_ONE_STACK, MODERN_STACKS
from tcpcast.scenario.network import HEADER_BYTES
from tcpcast.scenario.quic import (
    QUIC_HEADER_BYTES,
    QUIC_STACKS,
    UNUSED_BY_QUIC,
)
from tcpcast.scenario.table import make_error_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic_core import InitErrorDetails

MODERN_ONLY_OPTIONS = (
    *(
        "kernel",
        "timestamps",
        "ecn",
        "pacing",
        "socket_buffers",
        "nodelay",
        "fast_open",
        "notsent_lowat",
        "tso",
        "gro",
    ),
    "certificate",
)
"""Keys that only modern stacks have, except for the handshake."""

_MODERN_ONLY = {*MODERN_ONLY_OPTIONS, "handshake"}

_CLASSIC_VALUES = {*CLASSIC_ONLY, "ack_timeout", "idle_restart", "limited_transmit", "rules"}
"""Keys for which some or all values are supported only by classic stacks."""

MODERN_PRESETS = {name: stack.keys for name, stack in MODERN_STACKS.items()}
"""Default values of the modern presets."""

QUIC_PRESETS = {name: stack.keys for name, stack in QUIC_STACKS.items()}
"""Default values of the QUIC stacks."""

QUIC_ONLY = {
    "congestion_control": "the stack determines the congestion control; use "
    'stack = "linux-cubic", for example, or "quic"',
    "ack_packets": 'requires a QUIC stack; use stack = "quic", or remove this key',
}
"""Keys that only QUIC stacks have, with messages for the other stacks."""

RATE_BASED = {stack.control for stack in MODERN_STACKS.values() if stack.is_rate_based}
"""Congestion controls that follow the delivery rate, so that losses do not limit their window."""

DEFAULT_STACK = "linux-cubic"
"""Default preset: the stack of most current servers and phones."""

USE_CLASSIC_ADVICE = 'omit this key, or use stack = "rfc-newreno"'
"""Advice in messages about a key that only classic stacks have."""

TIMESTAMP_BYTES = 12
"""Header bytes of the timestamp option in each packet (RFC 7323, appendix A)."""


def is_modern(stack: object) -> bool:
    """Return True for a modern stack of TCP, or a QUIC stack."""
    return isinstance(stack, str) and (stack in MODERN_PRESETS or stack in QUIC_PRESETS)


def is_quic(stack: object) -> bool:
    """Return True for a QUIC stack."""
    return isinstance(stack, str) and stack in QUIC_PRESETS


def get_congestion_control(stack: str) -> str:
    """Return the congestion control of a stack with its default settings."""
    if is_quic(stack):
        return str(QUIC_PRESETS[stack]["congestion_control"])
    return MODERN_STACKS[stack].control if is_modern(stack) else "reno"


def get_header_bytes(tcp: Mapping[str, Any]) -> int:
    """Return the header bytes of a full data packet; ``tcp`` is the table as typed."""
    stack = tcp.get("stack", DEFAULT_STACK)
    if is_quic(stack):
        return QUIC_HEADER_BYTES
    has_timestamps = (
        is_modern(stack) and tcp.get("timestamps", MODERN_PRESETS[stack]["timestamps"]) is True
    )
    return HEADER_BYTES + TIMESTAMP_BYTES * has_timestamps


def get_inherited_keys(tcp: Mapping[str, Any], stack: object) -> dict[str, Any]:
    """Return the keys that a class with its own stack inherits from the top level's table.

    Classic and modern stacks inherit only common keys from each other; stacks of the same kind
    inherit all keys, except those of :data:`KEYS_OF_ONE_STACK`.
    """
    own: set[str] = set()
    if is_modern(stack) != is_modern(tcp.get("stack", DEFAULT_STACK)):
        own = _CLASSIC_VALUES if is_modern(stack) else _MODERN_ONLY
    own = own | set(UNUSED_BY_QUIC if is_quic(stack) else QUIC_ONLY)
    own = own | {key for key, owner in KEYS_OF_ONE_STACK.items() if owner != stack}
    if not has_kernel(stack):
        own = own | {"kernel"}
    return {key: value for key, value in tcp.items() if key not in own}


def has_kernel(stack: object) -> bool:
    """Return True if the rules of a stack depend on the release of Linux."""
    return is_modern(stack) and "kernel" in MODERN_PRESETS.get(str(stack), {})


def drop_classic_keys(tables: dict[str, Any]) -> dict[str, Any]:
    """Return the keys without those that only classic stacks have."""
    own = {*CLASSIC_ONLY, "rules"}
    return {key: value for key, value in tables.items() if key not in own}


def find_unsupported_modern_keys(
    stack: str, values: Mapping[str, Any]
) -> Iterator[InitErrorDetails]:
    """Find keys that a modern stack does not support; ``values`` has the format of a preset."""
    if values["kernel"] is not None and not has_kernel(stack):
        message = f"{stack} follows RFCs instead of a release of Linux; remove this key"
        yield make_error_at(message, "kernel")
    if is_quic(stack):
        yield from _find_unsupported_quic_keys(stack, values)
        return
    preset = MODERN_PRESETS[stack]
    if values["initial_ssthresh"] != preset["initial_ssthresh"]:
        message = (
            f"cannot be set with {stack}, whose slow start ends at a loss or by its own rules; "
            f"{USE_CLASSIC_ADVICE}"
        )
        yield make_error_at(message, "initial_ssthresh")
    if stack != "rfc-sack" and values["ack_timeout"] != preset["ack_timeout"]:
        message = (
            f"{stack} adapts the delay of acks to the times between packets, with a "
            f"minimum of 40 ms; {USE_CLASSIC_ADVICE}"
        )
        yield make_error_at(message, "ack_timeout")
    if values["idle_restart"] not in ("rto", "never"):
        message = f'{stack} halves its window for each idle RTO; use "rto" or "never"'
        yield make_error_at(message, "idle_restart")
    if values["ecn"] and (reason := MODERN_STACKS[stack].why_no_ecn):
        message = f'{reason}; remove this key, or use stack = "linux-cubic" or "dctcp"'
        yield make_error_at(message, "ecn")


def _find_unsupported_quic_keys(
    stack: str, values: Mapping[str, Any]
) -> Iterator[InitErrorDetails]:
    preset = QUIC_PRESETS[stack]
    for key in (*UNUSED_BY_QUIC, *CLASSIC_ONLY):
        if values[key] != preset[key]:
            message = f"{stack} is a QUIC stack, to which this rule does not apply; remove this key"
            yield make_error_at(message, key)
    if values["handshake"] in ("tcp", "tls12"):
        message = (
            f'{stack} uses TLS 1.3 without a TCP handshake; use "tls13", "tls13-resumption", '
            '"tls13-0rtt" or "none"'
        )
        yield make_error_at(message, "handshake")
    if values["ecn"] == "accurate":
        message = f"acks of {stack} always count marks (RFC 9000, section 13.4); use true"
        yield make_error_at(message, "ecn")
    if values["pacing"] == "fq" or isinstance(values["pacing"], float):
        message = f'{stack} paces its packets itself; use "internal" or "off"'
        yield make_error_at(message, "pacing")
