"""Keys of modern TCP: defaults of the presets, and checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpcast.scenario.modern_stacks import CLASSIC_ONLY, MODERN_STACKS, MULTCP
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
        "notsent_lowat",
        "tso",
        "gro",
    ),
)
"""Keys that only modern stacks have, except for the handshake."""

_MODERN_ONLY = {*MODERN_ONLY_OPTIONS, "handshake"}

_CLASSIC_VALUES = {*CLASSIC_ONLY, "ack_timeout", "idle_restart", "limited_transmit", "rules"}
"""Keys for which some or all values are supported only by classic stacks."""

MODERN_PRESETS = {name: stack.keys for name, stack in MODERN_STACKS.items()}
"""Default values of the modern presets."""

RATE_BASED = {stack.control for stack in MODERN_STACKS.values() if stack.is_rate_based}
"""Congestion controls that follow the delivery rate, so that losses do not limit their window."""

DEFAULT_STACK = "linux-cubic"
"""Default preset: the stack of most current servers and phones."""

USE_CLASSIC_ADVICE = 'omit this key, or use stack = "rfc-newreno"'
"""Advice in messages about a key that only classic stacks have."""

TIMESTAMP_BYTES = 12
"""Header bytes of the timestamp option in each packet (RFC 7323, appendix A)."""


def is_modern(stack: object) -> bool:
    """Return True for a modern stack."""
    return isinstance(stack, str) and stack in MODERN_PRESETS


def get_congestion_control(stack: str) -> str:
    """Return the congestion control of a classic or modern stack."""
    return MODERN_STACKS[stack].control if is_modern(stack) else "reno"


def has_timestamps(tcp: Mapping[str, Any]) -> bool:
    """Return True if packets have the timestamp option; ``tcp`` is the table as typed."""
    stack = tcp.get("stack", DEFAULT_STACK)
    return is_modern(stack) and tcp.get("timestamps", MODERN_PRESETS[stack]["timestamps"]) is True


def get_inherited_keys(tcp: Mapping[str, Any], stack: object) -> dict[str, Any]:
    """Return the keys that a class with its own stack inherits from the top level's table.

    Classic and modern stacks inherit only common keys from each other; stacks of the same kind
    inherit all keys, except that only ``multcp`` has ``virtual_flows``.
    """
    own: set[str] = set()
    if is_modern(stack) != is_modern(tcp.get("stack", DEFAULT_STACK)):
        own = _CLASSIC_VALUES if is_modern(stack) else _MODERN_ONLY
    if stack != MULTCP:
        own = own | {"virtual_flows"}
    if not has_kernel(stack):
        own = own | {"kernel"}
    return {key: value for key, value in tcp.items() if key not in own}


def has_kernel(stack: object) -> bool:
    """Return True if the rules of a stack depend on the release of Linux."""
    return is_modern(stack) and "kernel" in MODERN_PRESETS[str(stack)]


def drop_classic_keys(tables: dict[str, Any]) -> dict[str, Any]:
    """Return the keys without those that only classic stacks have."""
    own = {*CLASSIC_ONLY, "rules"}
    return {key: value for key, value in tables.items() if key not in own}


def find_unsupported_modern_keys(
    stack: str, values: Mapping[str, Any]
) -> Iterator[InitErrorDetails]:
    """Find keys that a modern stack does not support; ``values`` has the format of a preset."""
    preset = MODERN_PRESETS[stack]
    if values["initial_ssthresh"] != preset["initial_ssthresh"]:
        message = (
            f"cannot be set with {stack}, whose slow start ends at a loss or by its own rules; "
            f"{USE_CLASSIC_ADVICE}"
        )
        yield make_error_at(message, "initial_ssthresh")
    if values["kernel"] is not None and not has_kernel(stack):
        message = f"{stack} follows RFCs instead of a release of Linux; leave this key out"
        yield make_error_at(message, "kernel")
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
        message = f'{reason}; leave it out, or use stack = "linux-cubic" or "dctcp"'
        yield make_error_at(message, "ecn")
