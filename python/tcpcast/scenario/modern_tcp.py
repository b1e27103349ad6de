"""Modern TCP: presets of the stacks with SACK, and checks of their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpcast.scenario.table import make_error_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic_core import InitErrorDetails

_CLASSIC_ONLY: dict[str, Any] = {"initial_ssthresh": "unlimited"}
"""Keys that only classic stacks have, with placeholder values."""

_LINUX: dict[str, Any] = {
    **_CLASSIC_ONLY,
    "initial_window": 10,
    "receiver_window": "unlimited",
    "delayed_acks": True,
    "ack_timeout": "40ms",
    "min_rto": "200ms",
    "initial_rto": "1s",
    "max_rto": "120s",
    "rto_granularity": "4ms",
    "duplicate_threshold": 3,
    "limited_transmit": True,
    "idle_restart": "rto",
    "timestamps": True,
    "handshake": "tcp",
    "ecn": False,
    "host_noise": "0.1ms",
}

MULTCP, TFRC = "multcp", "tfrc"

_MODERN_ONLY = {"timestamps", "handshake", "ecn"}
"""Keys that only modern stacks have."""

_CLASSIC_VALUES = {*_CLASSIC_ONLY, "ack_timeout", "idle_restart", "limited_transmit", "rules"}
"""Keys for which some or all values are supported only by classic stacks."""

MODERN_PRESETS: dict[str, dict[str, Any]] = {
    # Linux 6 with defaults, and Linux 6 with other congestion controls.
    "linux-cubic": _LINUX,
    "linux-reno": _LINUX,
    # BBR version 1, paced by TCP instead of a queue discipline.
    "linux-bbr": _LINUX,
    # Without SACK, DSACK, RACK, TLP and F-RTO; the reordering degree is fixed at 3.
    "linux-reno-classic": _LINUX,
    # RFC 6675 with rescue retransmissions, over RFC 5681 and RFC 6298.
    "rfc-sack": _LINUX
    | {
        "ack_timeout": "200ms",
        "min_rto": "1s",
        "max_rto": "60s",
        "rto_granularity": "0s",
        "timestamps": False,
        "handshake": "none",
        "host_noise": "0s",
    },
    # BBR version 3 (draft-ietf-ccwg-bbr-06) with the Linux defaults.
    "bbr3": _LINUX,
    # RFC 8257 with the Linux defaults; losses without marks halve the window as in Reno.
    "dctcp": _LINUX | {"ecn": True},
    # Crowcroft and Oechslin (1998) with the Linux defaults.
    MULTCP: _LINUX | {"virtual_flows": 2},
    # RFC 5348 with the Linux defaults, and 3 packets per RTT at first (section 4.2).
    TFRC: _LINUX | {"initial_window": 3},
}
"""Default values of the modern presets."""

CONTROL_BY_STACK = {
    "linux-cubic": "cubic",
    "linux-reno": "reno",
    "linux-bbr": "bbr",
    "linux-reno-classic": "reno",
    "rfc-sack": "reno",
    "bbr3": "bbr3",
    "dctcp": "dctcp",
    MULTCP: "multcp",
    TFRC: "tfrc",
}
"""Congestion control of each modern stack; classic stacks use Reno."""

RATE_BASED = {"bbr", "bbr3"}
"""Congestion controls that follow the delivery rate, so that losses do not limit their window."""

DEFAULT_STACK = "linux-cubic"
"""Default preset: the stack of most current servers and phones."""

USE_CLASSIC_ADVICE = 'leave it out, or write stack = "rfc-newreno"'
"""Advice in messages about a key that only classic stacks have."""

TIMESTAMP_BYTES = 12
"""Header bytes of the timestamp option in each packet (RFC 7323, appendix A)."""


def is_modern(stack: object) -> bool:
    """Return True for a modern stack."""
    return isinstance(stack, str) and stack in MODERN_PRESETS


def get_congestion_control(stack: str) -> str:
    """Return the congestion control of a classic or modern stack."""
    return CONTROL_BY_STACK[stack] if is_modern(stack) else "reno"


def has_timestamps(tcp: Mapping[str, Any]) -> bool:
    """Return True if packets have the timestamp option; ``tcp`` is the table as typed."""
    stack = tcp.get("stack", DEFAULT_STACK)
    preset = MODERN_PRESETS.get(stack, {}) if isinstance(stack, str) else {}
    return bool(preset) and tcp.get("timestamps", preset["timestamps"]) is True


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
    return {key: value for key, value in tcp.items() if key not in own}


def drop_classic_keys(tables: dict[str, Any]) -> dict[str, Any]:
    """Return the keys without those that only classic stacks have."""
    own = {*_CLASSIC_ONLY, "rules"}
    return {key: value for key, value in tables.items() if key not in own}


def find_unsupported_modern_keys(
    stack: str, values: Mapping[str, Any]
) -> Iterator[InitErrorDetails]:
    """Find keys that a modern stack does not support; ``values`` has the format of a preset."""
    preset = MODERN_PRESETS[stack]
    if values["initial_ssthresh"] != preset["initial_ssthresh"]:
        rule = "slow start ends at a loss or by the rules of this stack"
        message = f"{stack} has a fixed rule: {rule}; {USE_CLASSIC_ADVICE}"
        yield make_error_at(message, "initial_ssthresh")
    if stack != "rfc-sack" and values["ack_timeout"] != preset["ack_timeout"]:
        message = (
            f"{stack} adapts the delay of acks to the times between packets, with a "
            f"minimum of 40 ms; {USE_CLASSIC_ADVICE}"
        )
        yield make_error_at(message, "ack_timeout")
    if values["idle_restart"] not in ("rto", "never"):
        message = f'{stack} halves its window for each idle RTO; write "rto" or "never"'
        yield make_error_at(message, "idle_restart")
    if stack == "bbr3" and values["ecn"]:
        message = (
            "bbr3 does not use ECN: its draft (draft-ietf-ccwg-bbr-06, section 3.7) specifies no "
            'response to marks; leave it out, or write stack = "linux-cubic" or "dctcp"'
        )
        yield make_error_at(message, "ecn")
    if stack == TFRC and values["ecn"]:
        message = (
            "tfrc counts only lost packets as loss events; leave it out, or write stack = "
            '"linux-cubic" or "dctcp"'
        )
        yield make_error_at(message, "ecn")
