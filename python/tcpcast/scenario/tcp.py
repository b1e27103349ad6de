"""TCP: a preset by name, every other key overrides it."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    SerializerFunctionWrapHandler,
    StrictBool,
    ValidationInfo,
    WithJsonSchema,
    model_serializer,
    model_validator,
)
from pydantic_core import InitErrorDetails

from tcpcast import units
from tcpcast.errors import UnitError
from tcpcast.scenario.modern_tcp import (
    DEFAULT_STACK,
    TIMESTAMP_BYTES,
    TODAYS_PRESETS,
    control_of,
    is_modern,
    shown_keys,
    todays_faults,
)
from tcpcast.scenario.network import HEADER_BYTES
from tcpcast.scenario.quantities import (
    TIME_SCHEMA,
    WINDOW_SCHEMA,
    Duration,
    Lateness,
    PositiveDuration,
    Window,
    counted,
    read_window,
    write_window,
)
from tcpcast.scenario.table import Table, choice, fault, faults
from tcpcast.scenario.tcp_rules import (
    MAX_PLUS,
    MOST_DUPLICATES,
    TcpRules,
    rule_faults,
    rules_of,
    shown_rules,
)

_RFC: dict[str, Any] = {
    "initial_window": 2,
    "initial_ssthresh": "receiver-window",
    "receiver_window": "unlimited",
    "delayed_acks": False,
    "ack_timeout": "200ms",
    "min_rto": "1s",
    "initial_rto": "1s",
    "max_rto": "64s",
    "rto_granularity": "0s",
    "duplicate_threshold": 3,
    "limited_transmit": False,
    "idle_restart": "rto",
    "host_noise": "0s",
}

_NS2_2008: dict[str, Any] = {
    "limited_transmit": True,
    "min_rto": "200ms",
    "initial_rto": "3s",
    "max_rto": "60s",
    "rto_granularity": "10ms",
    "ack_timeout": "100ms",
}
"""Defaults of Agent/TCP/Newreno and of the sinks in ns-2 of 2008: ns-default.tcl of 2.34, which
dates its changes."""

PRESETS: dict[str, dict[str, Any]] = {
    # Fast recovery ends at the first new ack (RFC 5681).
    "rfc-reno": _RFC | {"rules": {"recovery": "reno"}},
    # Partial acks retransmit and the timer restarts at every retransmission in recovery: RFC 6582
    # section 4 calls this slow-but-steady, the TCP-Engset paper impatient.
    "rfc-newreno": _RFC,
    # The timer is set at the first retransmission of a recovery only, so a long one times out:
    # the RFC's own impatient variant also resets it at the first partial ack.
    "rfc-newreno-patient": _RFC | {"rules": {"recovery": "newreno-patient"}},
    # Reno's window with losses that are known at once: INRIA report 4154, sections 4, 5 and 7. What
    # the report leaves open is as in the simulation of every flow that it is compared with.
    MAX_PLUS: _RFC | {"initial_window": 1, "initial_rto": "3s", "idle_restart": "10s"},
    # The TCP-Engset report. Section 3.1: the timer is set on each packet sent, not restarted by
    # acks alone. Not in words, but Figure 15 shows it: two packets are sent when a recovery ends.
    "engset-newreno": _RFC | {"rules": {"timer_restart": "send", "slow_start_at_ssthresh": True}},
    # Padhye, Firoiu, Towsley and Kurose: Reno and a receiver that delays acks; timeouts double up
    # to 64 times the first (section 2.2).
    "pftk-reno": _RFC | {"delayed_acks": True, "rules": {"recovery": "reno"}},
    # The paper on parallel flows does not say that it has other than ns-2's defaults. But the
    # window is unlimited: the 20 packets of ns-2 would limit every flow where loss is low.
    "parallel-newreno": _RFC | _NS2_2008 | {"rules": {"recovery": "newreno-patient"}},
    # Ayesta and Avrachenkov, section 4; limited transmit as in their section 2.1. How long ns-2
    # delays an ack by default; the paper names no other.
    "short-newreno": _RFC
    | {
        "initial_ssthresh": 30,
        "receiver_window": 30,
        "ack_timeout": "100ms",
        "rules": {"limited_transmit_on": "second"},
    },
}
"""Every default of every preset of classic TCP."""

STACKS = {**PRESETS, **TODAYS_PRESETS}
"""Every default of every preset."""

_NOT_MAX_PLUS = ("delayed_acks", "duplicate_threshold", "limited_transmit")
"""Keys of what senders do not do that have instantaneous loss feedback."""

_FORMULAS = {"cubic": "cubic-response", "bbr": "bbr-bound"}
"""Engines that are formulas of what is not simulated yet, by what the name of a stack has in it."""

_LATER_BBR = ".*bbr[^0-9a-z]?v?[^0-9a-z]?[23].*"
"""How BBR of version 3, or its predecessor 2, is called elsewhere."""

_OF_THE_STACK = {
    "sack": 'with SACK or without is the stack\'s; write stack = "linux-reno-classic", without',
    "rack": 'with RACK or without is the stack\'s; write stack = "rfc-sack", without',
    "pacing": 'whether packets are paced is the stack\'s; write stack = "linux-bbr", paced',
    "congestion_control": 'is the stack\'s; write stack = "linux-cubic", say',
}
"""What other programs have a switch for."""


def _read_ssthresh(value: object, info: ValidationInfo) -> float | str:
    if value == "receiver-window":
        return "receiver-window"
    try:
        return read_window(value, info)
    except ValueError as error:
        raise ValueError(f'{error}, or "receiver-window", or "unlimited"') from None


def _write_ssthresh(value: float | str) -> int | str:
    return value if isinstance(value, str) else write_window(value)


Threshold = Annotated[
    float | Literal["receiver-window"],
    PlainValidator(_read_ssthresh),
    PlainSerializer(_write_ssthresh),
    WithJsonSchema({"anyOf": [WINDOW_SCHEMA, {"const": "receiver-window"}]}),
]


def _read_idle_restart(value: object) -> float | str:
    if value in ("never", "rto"):
        return str(value)
    try:
        return units.parse_duration(value)
    except ValueError as error:
        raise ValueError(f'{error}, or "rto" (RFC 5681, section 4.1), or "never"') from None


IdleRestart = Annotated[
    float | Literal["never", "rto"],
    PlainValidator(_read_idle_restart),
    PlainSerializer(
        lambda value: value if isinstance(value, str) else units.format_duration(value),
        return_type=str,
    ),
    WithJsonSchema({"anyOf": [TIME_SCHEMA, {"enum": ["never", "rto"]}]}),
]


def _optional_keys(schema: dict[str, Any]) -> None:
    """Tell the JSON Schema that the preset fills what is left out."""
    schema.pop("required", None)
    for name, value in shown_keys(STACKS[DEFAULT_STACK]).items():
        schema["properties"][name]["default"] = value


def _stack(value: object) -> str:
    """Read a preset; of one that is not simulated, say which formula tells of it."""
    if isinstance(value, str) and value != "bbr3" and re.fullmatch(_LATER_BBR, value.lower()):
        if "2" in value:
            raise UnitError(
                f'{units.show(value)}: BBR version 2 is not simulated; write "linux-bbr" for '
                'version 1, or "bbr3" for version 3'
            )
        raise UnitError(f'{units.show(value)} is not a stack; write "bbr3"')
    for name, engine in _FORMULAS.items():
        if isinstance(value, str) and name in value.lower() and value not in STACKS:
            known = next(each for each in TODAYS_PRESETS if name in each)
            raise UnitError(
                f'{units.show(value)} is not a stack; write "{known}", whose formula is engine '
                f"{engine}"
            )
    if value == "reno":
        raise UnitError(
            '"reno" is not a stack; write "linux-reno", or "rfc-reno", which is without SACK'
        )
    return choice("stack", tuple(STACKS))(value)


class Tcp(Table):
    """How the senders and receivers behave; what is left out follows from the preset."""

    model_config = ConfigDict(json_schema_extra=_optional_keys)

    elsewhere: ClassVar[Mapping[str, str]] = _OF_THE_STACK

    stack: Annotated[
        str,
        BeforeValidator(_stack),
        WithJsonSchema({"enum": list(STACKS)}),
    ] = Field(examples=["linux-cubic"], description="preset, below")
    initial_window: Annotated[int, *counted(1, 10**6)] = Field(
        examples=[2], description="packets sent before the first ack"
    )
    ssthresh: Threshold = Field(
        alias="initial_ssthresh",
        examples=["receiver-window"],
        description="end of slow start of a new connection",
    )
    receiver_window: Window = Field(
        examples=[44],
        description=(
            'maximum data in flight, as packets or bytes of payload. With `"unlimited"`, classic '
            "stacks have at most twice the window of the loss in flight during fast recovery"
        ),
    )
    delayed_acks: StrictBool = Field(
        examples=[True], description="one ack per two packets, or after ack_timeout"
    )
    ack_timeout: PositiveDuration = Field(examples=["200ms"], description="maximum delay of an ack")
    min_rto: PositiveDuration = Field(examples=["1s"], description="minimum RTO")
    initial_rto: PositiveDuration = Field(
        examples=["1s"], description="RTO before the first RTT sample"
    )
    max_rto: PositiveDuration = Field(examples=["64s"], description="maximum RTO")
    rto_granularity: Duration = Field(examples=["0s"], description="clock granularity G (RFC 6298)")
    duplicate_threshold: Annotated[int, *counted(1, MOST_DUPLICATES)] = Field(
        examples=[3], description="duplicate acks that indicate a loss"
    )
    limited_transmit: StrictBool = Field(
        examples=[True],
        description="send new packets on duplicate acks below the threshold (RFC 3042)",
    )
    idle_restart: IdleRestart = Field(
        examples=["10s"],
        description=(
            "idle time before a persistent connection restarts slow start: a time since the last "
            "ack (resets window and threshold), rto since the last sending (RFC 5681, 4.1), or "
            "never"
        ),
    )
    host_noise: Lateness = Field(
        examples=["0.1ms"],
        description="mean delay by the host's scheduling, interrupts and timers, exponential",
    )
    timestamps: StrictBool | None = Field(
        default=None,
        examples=[False],
        description="timestamps (RFC 7323), 12 bytes per packet",
    )
    handshake: (
        Annotated[
            Literal["none", "tcp", "tls13", "tls12"],
            BeforeValidator(choice("handshake", ("none", "tcp", "tls13", "tls12"))),
        ]
        | None
    ) = Field(
        default=None,
        examples=["tls13"],
        description=(
            "packets before the data: none, TCP handshake, or also a full TLS 1.3 or 1.2 "
            "handshake with certificates"
        ),
    )
    ecn: StrictBool | None = Field(
        default=None,
        examples=[True],
        description="ECN (RFC 3168): queues mark packets instead of dropping them",
    )
    rules: TcpRules = Field(
        examples=[{"timer_restart": "send"}],
        description="`[tcp.rules]`, below",
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_from_preset(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        stack = data.get("stack", DEFAULT_STACK)
        preset = STACKS.get(stack, _RFC) if isinstance(stack, str) else _RFC
        typed = data.get("rules", {})
        rules = {**rules_of(str(stack), preset), **typed} if isinstance(typed, Mapping) else typed
        return {"stack": stack, **preset, **data, "rules": rules}

    @model_serializer(mode="wrap")
    def _leave_out(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        tables: dict[str, Any] = handler(self)
        if self.is_modern:
            return shown_keys(tables)
        own = STACKS[self.stack].get("rules", {})
        return {**tables, "rules": shown_rules(self.stack, tables["rules"], own)}

    @model_validator(mode="after")
    def _check(self) -> Self:
        found = []
        for key in ("min_rto", "initial_rto"):
            if getattr(self, key) > self.max_rto:
                largest = units.format_duration(self.max_rto)
                given = units.format_duration(getattr(self, key))
                message = f"{given} is above max_rto, {largest}; write less, or raise max_rto"
                found.append(fault(message, key))
        found += [*self._faults_of_rules(), *self._faults_of_max_plus()]
        if self.is_modern:
            found += todays_faults(self.stack, self._typed())
        else:
            found += self._faults_of_classic()
        if found:
            raise faults(found)
        return self

    def _faults_of_classic(self) -> Iterator[InitErrorDetails]:
        instead = 'write stack = "linux-reno", or leave it out'
        absent = (key for key in ("timestamps", "ecn") if getattr(self, key) is not None)
        yield from (fault(f"{self.stack} has none; {instead}", key) for key in absent)
        if self.handshake not in (None, "none"):
            yield fault(f"{self.stack} begins with the first data packet; {instead}", "handshake")

    def _faults_of_rules(self) -> Iterator[InitErrorDetails]:
        yield from rule_faults(self.stack, self.rules, is_modern=self.is_modern)
        if self.is_modern:
            return
        if self.last_packets_threshold > self.duplicate_threshold:
            message = (
                f"{self.last_packets_threshold} is above tcp.duplicate_threshold, "
                f"{self.duplicate_threshold}, of which the last packets are to need fewer; "
                f'write at most {self.duplicate_threshold}, or "duplicate-threshold"'
            )
            yield fault(message, "rules", "last_packets_threshold")
        of_preset = STACKS[self.stack].get("rules", {}).get("limited_transmit_on", "each")
        if not self.limited_transmit and self.rules.limited_transmit_on != of_preset:
            message = "needs tcp.limited_transmit = true; write that as well, or leave it out"
            yield fault(message, "rules", "limited_transmit_on")

    def _faults_of_max_plus(self) -> list[InitErrorDetails]:
        if self.stack != MAX_PLUS:
            return []
        message = (
            f"{MAX_PLUS} has instantaneous loss feedback and an ack for each packet; leave it out"
        )
        return [fault(message, key) for key in _NOT_MAX_PLUS if getattr(self, key) != _RFC[key]]

    def _typed(self) -> dict[str, Any]:
        """Return the values as people type them, by the keys that they type."""
        fields = {field.alias or name: name for name, field in type(self).model_fields.items()}
        return {key: getattr(self, name) for key, name in fields.items()} | {
            "initial_ssthresh": _write_ssthresh(self.ssthresh),
            "ack_timeout": units.format_duration(self.ack_timeout),
        }

    @property
    def is_modern(self) -> bool:
        """Whether it is one of today's stacks."""
        return is_modern(self.stack)

    @property
    def control(self) -> str:
        """The congestion control: ``reno``, ``cubic``, ``bbr``, ``bbr3`` or ``dctcp``."""
        return control_of(self.stack)

    @property
    def header_bytes(self) -> int:
        """Bytes of IP and TCP headers in a data packet."""
        return HEADER_BYTES + (TIMESTAMP_BYTES if self.timestamps else 0)

    @property
    def packets_per_growth(self) -> int:
        """B of the formulas: packets for each step by which the window grows.

        With delayed acks two, where the window grows with each ack; Linux lets it grow with the
        packets that are acked.
        """
        grows_with_acks = not self.is_modern or self.stack == "rfc-sack"
        return 2 if self.delayed_acks and grows_with_acks else 1

    def timeout_s(self, rtt_s: float) -> float:
        """Return the first timeout of a sequence on a path without variation.

        RFC 6298 takes the larger of ``min_rto`` and the round-trip time, Linux their sum.
        """
        if self.adds_min_rto:
            return rtt_s + self.min_rto
        return max(self.min_rto, rtt_s)

    @property
    def adds_min_rto(self) -> bool:
        """Whether the timeout is the round-trip time and ``min_rto``, as Linux has it."""
        return self.is_modern and self.stack != "rfc-sack"

    @property
    def has_sack(self) -> bool:
        """Whether the receiver says what arrived beyond a loss (RFC 2018)."""
        return self.is_modern and self.stack != "linux-reno-classic"

    @property
    def probes_tails(self) -> bool:
        """Whether RACK and tail loss probes find losses (RFC 8985)."""
        return self.has_sack and self.stack != "rfc-sack"

    @property
    def initial_ssthresh(self) -> float:
        """Slow-start threshold of a new connection in packets; inf for none."""
        return self.receiver_window if isinstance(self.ssthresh, str) else self.ssthresh

    @property
    def last_packets_threshold(self) -> int:
        """Duplicate acks that are a loss of one of the last packets of a transfer."""
        last = self.rules.last_packets_threshold
        return self.duplicate_threshold if isinstance(last, str) else last

    @property
    def ack_timeout_s(self) -> float:
        """How long a receiver may hold back an ack, when it delays acks at all."""
        return self.ack_timeout

    @property
    def min_rto_s(self) -> float:
        """Least retransmission timeout."""
        return self.min_rto

    @property
    def initial_rto_s(self) -> float:
        """Retransmission timeout before the first RTT sample."""
        return self.initial_rto

    @property
    def max_rto_s(self) -> float:
        """Largest retransmission timeout, reached by doubling."""
        return self.max_rto

    @property
    def has_loss_feedback(self) -> bool:
        """Whether senders hear of each loss at the moment of the loss."""
        return self.stack == MAX_PLUS

    @property
    def rto_granularity_s(self) -> float:
        """Clock granularity G of RFC 6298."""
        return self.rto_granularity

    @property
    def host_noise_s(self) -> float:
        """Mean lateness of a host with a packet or a pacing timer."""
        return self.host_noise
