"""Table ``[tcp.rules]``: details of TCP that the presets of papers set."""

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field, PlainSerializer, PlainValidator, StrictBool, WithJsonSchema
from pydantic_core import InitErrorDetails

from tcpcast.quantity import units
from tcpcast.scenario.modern_tcp import USE_CLASSIC_ADVICE
from tcpcast.scenario.quantities import words_annotation
from tcpcast.scenario.table import Choice, Table, make_error_at

MAX_PLUS = "max-plus-reno"

MAX_DUPLICATES = 10**6


def _count_or_word(word: str) -> tuple[PlainValidator, PlainSerializer, WithJsonSchema]:
    read = partial(units.parse_count, minimum=1, maximum=MAX_DUPLICATES)
    schema = {"type": "integer", "minimum": 1, "maximum": MAX_DUPLICATES}
    return words_annotation(read, int, schema, word)


LastPacketsThreshold = Annotated[
    int | Literal["duplicate-threshold"], *_count_or_word("duplicate-threshold")
]
MaxBurst = Annotated[int | Literal["unlimited"], *_count_or_word("unlimited")]


class MaxPlusRules(Table):
    """Details of instantaneous loss feedback for ``stack = "max-plus-reno"``."""

    growth: Annotated[
        Literal["after-halving", "every-ack"],
        Choice("rule of growth"),
    ] = Field(
        default="after-halving",
        examples=["every-ack"],
        description=(
            "acks that increase the window: only acks of packets sent after the last halving, or "
            "all"
        ),
    )
    whole_halves: StrictBool = Field(
        default=True,
        examples=[False],
        description="round half a window down to whole packets, at least one",
    )
    halve_once: StrictBool = Field(
        default=True,
        examples=[False],
        description="ignore losses of packets sent before the last halving",
    )
    timeout: StrictBool = Field(
        default=True,
        examples=[False],
        description=(
            "reduce the window to one packet when the oldest packet in flight is older than the RTO"
        ),
    )
    retransmit: StrictBool = Field(
        default=True,
        examples=[False],
        description="retransmit the packet that timed out",
    )


class TcpRules(Table):
    """Details of TCP for the experiments of papers; the preset determines omitted keys."""

    recovery: Annotated[
        Literal["reno", "newreno", "newreno-patient", "tahoe"],
        Choice("recovery rule"),
    ] = Field(
        default="newreno",
        examples=["reno"],
        description="recovery from losses, as in the stack of this name",
    )
    slow_start_at_ssthresh: StrictBool = Field(
        default=False,
        examples=[True],
        description="use slow start at cwnd = ssthresh, where RFC 5681 allows both",
    )
    window_unit: Annotated[Literal["packets", "bytes"], Choice("unit")] = Field(
        default="packets",
        examples=["bytes"],
        description=(
            "unit of cwnd and ssthresh. With packets, cwnd grows by one packet per window of "
            "acks, and half a window is rounded down; with bytes, by 1/cwnd per ack (RFC 5681, "
            "equation 3)"
        ),
    )
    timer_restart: Annotated[Literal["ack", "send"], Choice("rule")] = Field(
        default="ack",
        examples=["send"],
        description=(
            "what restarts the RTO timer outside recovery: an ack of new data (RFC 6298, 5.3), "
            "or sending (TCP-Engset report, 3.1)"
        ),
    )
    backoff_until: Annotated[Literal["sample", "ack"], Choice("rule")] = Field(
        default="sample",
        examples=["ack"],
        description=(
            "what ends the backoff of the RTO: a new RTT sample (RFC 6298), or any ack of new data"
        ),
    )
    last_packets_threshold: LastPacketsThreshold = Field(
        default="duplicate-threshold",
        examples=[1],
        description=(
            "duplicate_threshold for a transfer's last packets; Ayesta and Avrachenkov (3.1) "
            "propose 1"
        ),
    )
    limited_transmit_on: Annotated[
        Literal["each", "second"],
        Choice("duplicate"),
    ] = Field(
        default="each",
        examples=["second"],
        description=(
            "limited transmit sends a packet on each of the first two duplicate acks (RFC 3042), "
            "or two on the second one"
        ),
    )
    max_burst: MaxBurst = Field(
        default="unlimited",
        examples=[2],
        description="maximum burst in packets; retransmissions in recovery do not count",
    )
    max_plus: MaxPlusRules | None = Field(
        default=None,
        examples=[{"growth": "every-ack", "timeout": False}],
        description="rules of max-plus-reno",
    )

    def changed_keys(self) -> list[str]:
        """Return the keys of classic recovery whose values are not the defaults."""
        return [key for key in _CLASSIC_RULES if getattr(self, key) != getattr(_DEFAULTS, key)]


_DEFAULTS = TcpRules.model_construct()
_CLASSIC_RULES = [key for key in TcpRules.model_fields if key != "max_plus"]

_MODERN_RULES = {
    "recovery": "losses are found by SACK or RACK",
    "slow_start_at_ssthresh": "slow start continues below ssthresh",
    "window_unit": "windows are counted in packets",
    "timer_restart": "an ack of new data restarts the timer",
    "backoff_until": "an ack of new data ends the doubling of the timeout",
    "last_packets_threshold": "tail loss probes detect losses of the last packets",
    "limited_transmit_on": "limited transmit follows RFC 3042",
    "max_burst": "pacing and TSO determine the bursts",
}


def get_preset_rules(stack: str, preset: dict[str, Any]) -> dict[str, Any]:
    """Return the rules of a preset as typed, including defaults of ``max-plus-reno``."""
    own: dict[str, Any] = {"max_plus": {}} if stack == MAX_PLUS else {}
    return {**own, **preset.get("rules", {})}


def drop_inapplicable_rules(
    stack: str, rules: dict[str, Any], preset: dict[str, Any]
) -> dict[str, Any]:
    """Return the rules that apply to a classic stack.

    The recovery of the preset itself is omitted, so that a class with another stack does not
    inherit it.
    """
    known = {"max_plus"} if stack == MAX_PLUS else set(_CLASSIC_RULES)
    if rules.get("recovery") == preset.get("recovery", _DEFAULTS.recovery):
        known -= {"recovery"}
    return {key: value for key, value in rules.items() if key in known}


def find_inapplicable_rules(
    stack: str, rules: TcpRules, *, is_modern: bool
) -> Iterator[InitErrorDetails]:
    """Find rules that do not apply to a stack."""
    if stack != MAX_PLUS and rules.max_plus is not None:
        message = f'requires stack = "{MAX_PLUS}"; use this stack, or remove max_plus'
        yield make_error_at(message, "rules", "max_plus")
    for key in rules.changed_keys():
        if is_modern:
            instead = _MODERN_RULES[key]
            message = f"the rule of {stack} is fixed: {instead}; {USE_CLASSIC_ADVICE}"
            yield make_error_at(message, "rules", key)
        elif stack == MAX_PLUS:
            message = (
                f"{MAX_PLUS} uses instantaneous loss feedback, to which this rule does not apply; "
                "remove this key"
            )
            yield make_error_at(message, "rules", key)
