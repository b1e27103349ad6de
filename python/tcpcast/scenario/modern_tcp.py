"""Today's TCP: the presets of stacks with SACK and what their keys may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcpcast.scenario.table import error_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic_core import InitErrorDetails

_NOT_ITS_OWN: dict[str, Any] = {"initial_ssthresh": "unlimited"}
"""Keys of the classic stacks alone; the values stand in their places and mean nothing."""

_LINUX: dict[str, Any] = {
    **_NOT_ITS_OWN,
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

_OWN = {"timestamps", "handshake", "ecn"}
"""Keys of today's TCP alone."""

_NOT_BOTH = {*_NOT_ITS_OWN, "ack_timeout", "idle_restart", "limited_transmit", "rules"}
"""Keys whose values may mean something to classic stacks alone."""

TODAYS_PRESETS: dict[str, dict[str, Any]] = {
    # Linux 6 with its defaults, and with another congestion control each.
    "linux-cubic": _LINUX,
    "linux-reno": _LINUX,
    # BBR, version 1, with pacing by TCP itself.
    "linux-bbr": _LINUX,
    # SACK, DSACK, RACK, tail loss probes and F-RTO off, reordering fixed at 3.
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
    # BBR, version 3, by draft-ietf-ccwg-bbr-06, over Linux.
    "bbr3": _LINUX,
    # RFC 8257 over Linux; where no queue marks packets it halves at losses as Reno does.
    "dctcp": _LINUX | {"ecn": True},
}
"""Every default of every preset of today's TCP."""

CONTROLS = {
    "linux-cubic": "cubic",
    "linux-reno": "reno",
    "linux-bbr": "bbr",
    "linux-reno-classic": "reno",
    "rfc-sack": "reno",
    "bbr3": "bbr3",
    "dctcp": "dctcp",
}
"""The congestion control of each stack of today's TCP; a classic stack's is Reno's."""

RATE_BASED = {"bbr", "bbr3"}
"""Congestion controls that follow the rate of delivery: losses do not end their growth."""

DEFAULT_STACK = "linux-cubic"
"""The preset where none is named: what most servers and phones run today."""

OF_CLASSIC = 'leave it out, or write stack = "rfc-newreno"'
"""What to do about a key of classic TCP."""

TIMESTAMP_BYTES = 12
"""What the timestamp option adds to the header of each packet (RFC 7323, appendix A)."""


def is_modern(stack: object) -> bool:
    """Say whether a stack is one of today's TCP."""
    return isinstance(stack, str) and stack in TODAYS_PRESETS


def control_of(stack: str) -> str:
    """Return the congestion control of a stack, classic or of today."""
    return CONTROLS[stack] if is_modern(stack) else "reno"


def has_timestamps(tcp: Mapping[str, Any]) -> bool:
    """Say whether a table of TCP, as it was typed, has packets carry timestamps."""
    stack = tcp.get("stack", DEFAULT_STACK)
    preset = TODAYS_PRESETS.get(stack, {}) if isinstance(stack, str) else {}
    return bool(preset) and tcp.get("timestamps", preset["timestamps"]) is True


def inherited(tcp: Mapping[str, Any], stack: object) -> dict[str, Any]:
    """Return what a class takes from the top level's table, given the stack that it names.

    Between classic and today's TCP that is what both know; all of it within one kind.
    """
    if is_modern(stack) == is_modern(tcp.get("stack", DEFAULT_STACK)):
        return dict(tcp)
    own = _NOT_BOTH if is_modern(stack) else _OWN
    return {key: value for key, value in tcp.items() if key not in own}


def shown_keys(tables: dict[str, Any]) -> dict[str, Any]:
    """Return the keys of today's TCP, without those of the classic stacks alone."""
    own = {*_NOT_ITS_OWN, "rules"}
    return {key: value for key, value in tables.items() if key not in own}


def todays_errors(stack: str, values: Mapping[str, Any]) -> Iterator[InitErrorDetails]:
    """Find keys that say what today's TCP does otherwise; ``values`` as the preset has them."""
    preset = TODAYS_PRESETS[stack]
    if values["initial_ssthresh"] != preset["initial_ssthresh"]:
        rule = "slow start ends at a loss, or where its own rules say so"
        message = f"{stack} has a rule of its own: {rule}; {OF_CLASSIC}"
        yield error_at(message, "initial_ssthresh")
    if stack != "rfc-sack" and values["ack_timeout"] != preset["ack_timeout"]:
        message = f"the delays of {stack} follow the arrivals, from 40 ms on; {OF_CLASSIC}"
        yield error_at(message, "ack_timeout")
    if values["idle_restart"] not in ("rto", "never"):
        message = f'{stack} halves its window for each timeout of silence; write "rto" or "never"'
        yield error_at(message, "idle_restart")
    if stack == "bbr3" and values["ecn"]:
        message = (
            "bbr3 does not use ECN: its draft (draft-ietf-ccwg-bbr-06, section 3.7) specifies no "
            'response to marks; leave it out, or write stack = "linux-cubic" or "dctcp"'
        )
        yield error_at(message, "ecn")
