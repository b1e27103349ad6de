"""TCP settings: a preset, and keys that override it."""

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    PlainValidator,
    SerializerFunctionWrapHandler,
    StrictBool,
    Tag,
    ValidationInfo,
    WithJsonSchema,
    model_serializer,
    model_validator,
)

from tcpcast.process.errors import UnitError
from tcpcast.quantity import units
from tcpcast.scenario.classic_tcp import PRESETS, RFC_DEFAULTS
from tcpcast.scenario.modern_stacks import (
    KEYS_OF_ONE_STACK,
    MODERN_STACKS,
    NEWEST_MEASURED_KERNEL,
    RECEIVE_BUFFERS,
    TFRC,
)
from tcpcast.scenario.modern_tcp import (
    DEFAULT_STACK,
    MODERN_ONLY_OPTIONS,
    MODERN_PRESETS,
    QUIC_ONLY,
    QUIC_PRESETS,
    drop_classic_keys,
    find_unsupported_modern_keys,
    get_congestion_control,
    get_header_bytes,
    is_modern,
    is_quic,
)
from tcpcast.scenario.quantities import (
    BYTES_SCHEMA,
    RATE_SCHEMA,
    TIME_SCHEMA,
    WINDOW_SCHEMA,
    Bytes,
    Duration,
    HostDelay,
    PositiveDuration,
    Window,
    integer_annotation,
    read_positive_rate,
    read_window,
    words_annotation,
    write_window,
)
from tcpcast.scenario.stack_descriptions import describe_stack
from tcpcast.scenario.table import (
    Choice,
    Errors,
    Table,
    choice_validator,
    make_error_at,
)
from tcpcast.scenario.tcp_rules import (
    MAX_DUPLICATES,
    MAX_PLUS,
    TcpRules,
    drop_inapplicable_rules,
    find_inapplicable_rules,
    get_preset_rules,
)

MAX_VIRTUAL_FLOWS = 1000
MAX_ACK_PACKETS = 1000

STACKS = {**PRESETS, **MODERN_PRESETS, **QUIC_PRESETS}
"""Default values of all presets."""

_KEYS_UNUSED_BY_MAX_PLUS = ("delayed_acks", "duplicate_threshold", "limited_transmit")
"""Keys that have no effect for senders with instantaneous loss feedback."""

_FORMULA_BY_STACK_NAME = {"cubic": "cubic-response", "bbr": "bbr-bound"}
"""Formula engines to suggest for unknown stacks, by a part of the typed name."""

_LATER_BBR_PATTERN = ".*bbr[^0-9a-z]?v?[^0-9a-z]?[23].*"
"""Pattern of other names for BBR version 2 or 3."""

_STACK_DETERMINED_KEYS = {
    "sack": 'the stack determines SACK; use stack = "linux-reno-classic" for TCP without SACK',
    "rack": 'the stack determines RACK; use stack = "rfc-sack" for TCP without RACK',
}
"""Messages for keys that are settings of other programs."""


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


IdleRestart = Annotated[
    float | Literal["never", "rto"],
    *words_annotation(units.parse_duration, units.format_duration, TIME_SCHEMA, "never", "rto"),
]


Pacing = Annotated[
    float | Literal["internal", "fq", "off"],
    *words_annotation(read_positive_rate, units.format_rate, RATE_SCHEMA, "internal", "fq", "off"),
    BeforeValidator(lambda value: "off" if value is False else value),
]


LowWater = Annotated[
    int | Literal["unlimited"],
    *words_annotation(units.parse_bytes, units.format_bytes, BYTES_SCHEMA, "unlimited"),
]


def _read_ecn_use(value: object) -> object:
    if isinstance(value, bool) or value == "accurate":
        return value
    raise UnitError(f'{units.quote(value)} is not a mode of ECN; use true, false or "accurate"')


EcnUse = Annotated[
    bool | Literal["accurate"],
    PlainValidator(_read_ecn_use),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, {"enum": ["accurate"]}]}),
]
"""Whether a stack uses ECN, and whether its feedback is accurate."""


class SocketBuffers(Table):
    """Maximum memory of the buffers of a socket, as the third values of Linux's settings."""

    send: Bytes = Field(
        examples=["4MiB"], description="third value of tcp_wmem: memory for unacknowledged data"
    )
    receive: Bytes = Field(
        examples=["32MiB"],
        description="third value of tcp_rmem; Linux 6.18 advertises five eighths of it as the "
        "window",
    )

    def _find_errors(self) -> Errors:
        if self.receive < _MIN_RECEIVE_BYTES:
            least = units.format_bytes(_MIN_RECEIVE_BYTES)
            text = f'must be at least "{least}", the minimum of Linux; use "32MiB", for example'
            yield make_error_at(text, "receive")


_TIMES = ("ack_timeout", "min_rto", "max_rto", "rto_granularity")
"""Keys with durations that some stacks do not support."""

_BUFFER_DEFAULTS = ("unlimited", "kernel", "linux-5.15", "linux-6.18")
_DEFAULT_WMEM = 4 * 2**20
MAX_INITIAL_WINDOW = 10**6
"""Largest initial window, in packets."""

MAX_WINDOW_BYTES = 65_535 << 14
"""Largest TCP window: a field of 16 bits, shifted by at most 14 (RFC 7323, section 2.3). A socket
buffer for it fits in the signed 32 bits of the Linux keys."""

_MIN_RECEIVE_BYTES = 2304
"""``SOCK_MIN_RCVBUF``; a window that never opens would stop the connection."""

_SocketBuffersRule = Annotated[
    Annotated[
        Literal["unlimited", "kernel", "linux-5.15", "linux-6.18"],
        BeforeValidator(choice_validator("setting of socket buffers", _BUFFER_DEFAULTS)),
        Tag("a-rule"),
    ]
    | Annotated[SocketBuffers, Tag("a-table")],
    Discriminator(
        lambda value: "a-table" if isinstance(value, Mapping | SocketBuffers) else "a-rule"
    ),
]


def _make_keys_optional_in_schema(schema: dict[str, Any]) -> None:
    """Make all keys optional in the JSON Schema, because the preset sets omitted keys."""
    schema.pop("required", None)
    for name, value in drop_classic_keys(STACKS[DEFAULT_STACK]).items():
        schema["properties"][name]["default"] = value


def _read_stack(value: object) -> str:
    """Read a preset; the error for a stack that is not simulated names a formula engine."""
    if (
        isinstance(value, str)
        and value != "bbr3"
        and re.fullmatch(_LATER_BBR_PATTERN, value.lower())
    ):
        if "2" in value:
            raise UnitError(
                f'{units.quote(value)}: BBR version 2 is not simulated; use "linux-bbr" for '
                'version 1, or "bbr3" for version 3'
            )
        raise UnitError(f'{units.quote(value)} is not a stack; use "bbr3"')
    for name, engine in _FORMULA_BY_STACK_NAME.items():
        if isinstance(value, str) and name in value.lower() and value not in STACKS:
            raise UnitError(
                f'{units.quote(value)} is not a stack; use "linux-{name}", or use the '
                f"{engine} formula"
            )
    if value == "reno":
        raise UnitError(
            '"reno" is not a stack; use "linux-reno", or "rfc-reno", which does not use SACK'
        )
    return choice_validator("stack", tuple(STACKS))(value)


class Tcp(Table):
    """Behaviour of senders and receivers; the preset determines omitted keys."""

    model_config = ConfigDict(json_schema_extra=_make_keys_optional_in_schema)

    elsewhere: ClassVar[Mapping[str, str]] = _STACK_DETERMINED_KEYS

    stack: Annotated[
        str,
        BeforeValidator(_read_stack),
        WithJsonSchema(
            {"enum": list(STACKS), "enumDescriptions": [describe_stack(name) for name in STACKS]}
        ),
    ] = Field(
        examples=["linux-cubic"],
        description="preset of TCP: a kernel's stack, or the TCP of a paper",
    )
    initial_window: Annotated[int, *integer_annotation(1, MAX_INITIAL_WINDOW)] = Field(
        examples=[2], description="number of packets sent before the first ack"
    )
    ssthresh: Threshold = Field(
        alias="initial_ssthresh",
        examples=["receiver-window"],
        description="window at which slow start of a new connection ends",
    )
    receiver_window: Window = Field(
        examples=[44],
        description="maximum data in flight, as packets or bytes of payload",
    )
    delayed_acks: StrictBool = Field(
        examples=[True], description="send one ack per two packets, or after ack_timeout"
    )
    ack_timeout: PositiveDuration = Field(examples=["200ms"], description="maximum delay of an ack")
    min_rto: PositiveDuration = Field(examples=["1s"], description="minimum RTO")
    initial_rto: PositiveDuration = Field(
        examples=["1s"], description="RTO before the first RTT sample"
    )
    max_rto: PositiveDuration = Field(examples=["64s"], description="maximum RTO")
    rto_granularity: Duration = Field(examples=["0s"], description="clock granularity G (RFC 6298)")
    duplicate_threshold: Annotated[int, *integer_annotation(1, MAX_DUPLICATES)] = Field(
        examples=[3], description="number of duplicate acks that indicate a loss"
    )
    limited_transmit: StrictBool = Field(
        examples=[True],
        description="send new packets on duplicate acks below the threshold (RFC 3042)",
    )
    idle_restart: IdleRestart = Field(
        examples=["10s"],
        description=(
            "when a persistent connection restarts slow start: never, one RTO after the last sent "
            "packet (RFC 5681, 4.1), or a time after the last ack; a time also resets ssthresh"
        ),
    )
    host_noise: HostDelay = Field(
        examples=["0.1ms"],
        description="mean delay that the host's scheduling, interrupts and timers add; "
        "exponentially distributed",
    )
    kernel: (
        Annotated[
            Literal["4.14", "5.4", "5.15", "6.1", "6.12", "6.18", "7.0"],
            Choice("release of Linux"),
            # TOML and options read 6.12 as a number; there is no other release with its value.
            BeforeValidator(lambda value: str(value) if isinstance(value, float) else value),
        ]
        | None
    ) = Field(
        default=None,
        examples=["6.12"],
        description="release of Linux whose rules the stack follows",
    )
    timestamps: StrictBool | None = Field(
        default=None,
        examples=[False],
        description="timestamps (RFC 7323), 12 bytes per packet",
    )
    handshake: (
        Annotated[
            Literal["none", "tcp", "tls13", "tls12", "tls13-resumption", "tls13-0rtt"],
            Choice("handshake"),
        ]
        | None
    ) = Field(
        default=None,
        examples=["tls13"],
        description=(
            "handshake before the data: none, TCP alone, or TCP followed by TLS 1.2 or 1.3. TLS "
            "1.3 can resume a session, also with 0-RTT data"
        ),
    )
    certificate: Bytes | None = Field(
        default=None,
        examples=["4kB"],
        description="size of the certificates in a full TLS handshake; default: 3 kB",
    )
    fast_open: StrictBool | None = Field(
        default=None,
        examples=[True],
        description="TCP Fast Open (RFC 7413) with a cookie: the request, or first TLS message, "
        "travels with the SYN",
    )
    congestion_control: (
        Annotated[Literal["cubic", "reno", "bbr", "bbr3"], Choice("congestion control")] | None
    ) = Field(
        default=None,
        examples=["bbr"],
        description="congestion control of a QUIC stack",
    )
    ack_packets: Annotated[int, *integer_annotation(1, MAX_ACK_PACKETS)] | None = Field(
        default=None,
        examples=[10],
        description="ack-eliciting packets per ack of a QUIC stack; fewer packets are acknowledged "
        "after ack_timeout",
    )
    ecn: EcnUse | None = Field(
        default=None,
        examples=["accurate"],
        description="AQM marks packets instead of dropping them, and the receiver echoes marks "
        "(true, RFC 3168) or counts them (accurate, RFC 9768)",
    )
    pacing: Pacing | None = Field(
        default=None,
        examples=["fq"],
        description="what paces packets: TCP itself for BBR and TFRC only (internal), the queue "
        "discipline of the host (fq), TCP itself with this maximum rate (SO_MAX_PACING_RATE), "
        "or nothing (off)",
    )
    socket_buffers: _SocketBuffersRule | None = Field(
        default=None,
        examples=["linux-6.18"],
        description="maximum sizes of the autotuned socket buffers: the defaults of tcp.kernel "
        '("kernel") or of another Linux release, or a table { send, receive }',
    )
    nodelay: StrictBool | None = Field(
        default=None,
        examples=[True],
        description="send small packets at once (TCP_NODELAY), without Nagle's algorithm in "
        "Minshall's variant",
    )
    notsent_lowat: LowWater | None = Field(
        default=None,
        examples=["128KB"],
        description="a writing application waits while this many bytes are not sent "
        "(TCP_NOTSENT_LOWAT)",
    )
    tso: Annotated[Literal["off", "auto"], Choice("setting of segmentation offload")] | None = (
        Field(
            default=None,
            examples=["auto"],
            description="segmentation offload: packets that Linux sends together, up to 64 KB, "
            "are one unit for queues, shapers, policers and losses",
        )
    )
    gro: StrictBool | None = Field(
        default=None,
        examples=[False],
        description="receive offload: a unit of tso arrives as one packet and causes one ack",
    )
    virtual_flows: Annotated[int, *integer_annotation(1, MAX_VIRTUAL_FLOWS)] | None = Field(
        default=None,
        examples=[4],
        description="number of Reno flows that one connection of `multcp` emulates",
    )
    ecn_fallback: StrictBool | None = Field(
        default=None,
        examples=[True],
        description="`prague` detects queues with classic ECN by their delay, and reduces its "
        "window there like Reno",
    )
    rules: TcpRules = Field(
        examples=[{"timer_restart": "send"}],
        description="details of TCP for the experiments of papers",
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_from_preset(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        stack = data.get("stack", DEFAULT_STACK)
        preset = STACKS.get(stack, RFC_DEFAULTS) if isinstance(stack, str) else RFC_DEFAULTS
        typed = data.get("rules", {})
        rules = (
            {**get_preset_rules(str(stack), preset), **typed}
            if isinstance(typed, Mapping)
            else typed
        )
        return {"stack": stack, **preset, **data, "rules": rules}

    @model_serializer(mode="wrap")
    def _serialize_applicable_keys(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        tables: dict[str, Any] = handler(self)
        if self.is_modern:
            return drop_classic_keys(tables)
        own = STACKS[self.stack].get("rules", {})
        return {**tables, "rules": drop_inapplicable_rules(self.stack, tables["rules"], own)}

    def _find_errors(self) -> Errors:
        for key in ("min_rto", "initial_rto"):
            if getattr(self, key) > self.max_rto:
                largest = units.format_duration(self.max_rto)
                given = units.format_duration(getattr(self, key))
                message = (
                    f"{given} is above max_rto, {largest}; use a shorter time, or raise max_rto"
                )
                yield make_error_at(message, key)
        yield from find_inapplicable_rules(self.stack, self.rules, is_modern=self.is_modern)
        if not self.is_modern:
            if self.last_packets_threshold > self.duplicate_threshold:
                message = (
                    f"{self.last_packets_threshold} is above tcp.duplicate_threshold, "
                    f"{self.duplicate_threshold}; use at most {self.duplicate_threshold}, or "
                    '"duplicate-threshold"'
                )
                yield make_error_at(message, "rules", "last_packets_threshold")
            of_preset = STACKS[self.stack].get("rules", {}).get("limited_transmit_on", "each")
            if not self.limited_transmit and self.rules.limited_transmit_on != of_preset:
                message = (
                    "requires tcp.limited_transmit = true; set tcp.limited_transmit, or remove "
                    "limited_transmit_on"
                )
                yield make_error_at(message, "rules", "limited_transmit_on")
        if self.certificate is not None and self.handshake not in ("tls13", "tls12"):
            message = (
                'requires handshake = "tls13" or "tls12"; set one of them, or remove certificate'
            )
            yield make_error_at(message, "certificate")
        if self.is_modern and self.fast_open and self.handshake in (None, "none"):
            message = 'requires a TCP handshake; set tcp.handshake = "tcp" or "tls13"'
            yield make_error_at(message, "fast_open")
        if self.fast_open and self.ecn == "accurate":
            message = 'does not support tcp.ecn = "accurate"; use ecn = true, or remove this key'
            yield make_error_at(message, "fast_open")
        if not self.is_quic:
            for key, message in QUIC_ONLY.items():
                if getattr(self, key) is not None:
                    yield make_error_at(message, key)
        if self.stack == MAX_PLUS:
            message = (
                f"{MAX_PLUS} uses instantaneous loss feedback and one ack per packet; remove this "
                "key"
            )
            for key in _KEYS_UNUSED_BY_MAX_PLUS:
                if getattr(self, key) != RFC_DEFAULTS[key]:
                    yield make_error_at(message, key)
        for key, stack in KEYS_OF_ONE_STACK.items():
            if getattr(self, key) is not None and self.stack != stack:
                message = f'requires stack = "{stack}"; set it, or remove this key'
                yield make_error_at(message, key)
        if self.is_modern:
            fields = {field.alias or name: name for name, field in type(self).model_fields.items()}
            yield from find_unsupported_modern_keys(
                self.stack,
                (
                    {key: getattr(self, name) for key, name in fields.items()}
                    | {
                        "initial_ssthresh": _write_ssthresh(self.ssthresh),
                        **{key: units.format_duration(getattr(self, key)) for key in _TIMES},
                    }
                ),
            )
        else:
            instead = 'use stack = "linux-reno", or remove this key'
            absent = (key for key in MODERN_ONLY_OPTIONS if getattr(self, key) is not None)
            yield from (
                make_error_at(f"{self.stack} does not support this key; {instead}", key)
                for key in absent
            )
            if self.handshake not in (None, "none"):
                yield make_error_at(
                    f"{self.stack} does not model a handshake; {instead}", "handshake"
                )

    @property
    def is_modern(self) -> bool:
        """Whether the stack is modern."""
        return is_modern(self.stack)

    @property
    def is_quic(self) -> bool:
        """Whether the stack is one of QUIC."""
        return is_quic(self.stack)

    @property
    def is_external(self) -> bool:
        """Whether the congestion control is a registered class of Python."""
        stack = MODERN_STACKS.get(self.stack)
        return stack is not None and stack.external is not None

    @property
    def control(self) -> str:
        """Name of the congestion control, such as ``reno`` or ``cubic``."""
        return self.congestion_control or get_congestion_control(self.stack)

    @property
    def header_bytes(self) -> int:
        """Bytes of headers in a full data packet."""
        return get_header_bytes({"stack": self.stack, "timestamps": bool(self.timestamps)})

    @property
    def packets_per_growth(self) -> int:
        """Parameter b of the formulas: acknowledged packets per increment of the window.

        The value is 2 with delayed acks if the window grows with each ack. Linux increases the
        window by the number of acknowledged packets, so the value is 1.
        """
        grows_with_acks = not self.is_modern or self.stack == "rfc-sack"
        return 2 if self.delayed_acks and grows_with_acks else 1

    def timeout_s(self, rtt_s: float) -> float:
        """Return the first timeout of a sequence on a path with a constant RTT, in seconds.

        The timeout is the maximum of ``min_rto`` and the RTT (RFC 6298), or their sum (Linux). The
        equation of TFRC has a t_RTO of at least four RTTs (RFC 5348, section 4.3).
        """
        if self.control == TFRC:
            return max(self.min_rto, 4 * rtt_s)
        if self.adds_min_rto:
            return rtt_s + self.min_rto
        return max(self.min_rto, rtt_s)

    @property
    def timeout_rule(self) -> str:
        """Rule of :meth:`timeout_s` as text."""
        if self.control == TFRC:
            return "max(tcp.min_rto, 4 RTT)"
        return "RTT + tcp.min_rto" if self.adds_min_rto else "max(tcp.min_rto, RTT)"

    @property
    def adds_min_rto(self) -> bool:
        """Whether the timeout is the sum of RTT and ``min_rto``, as in Linux."""
        return self.is_modern and self.stack != "rfc-sack"

    @property
    def has_sack(self) -> bool:
        """Whether acks have SACK blocks (RFC 2018)."""
        return self.is_modern and self.stack != "linux-reno-classic"

    @property
    def has_tail_loss_probes(self) -> bool:
        """True if the sender detects losses by RACK and tail loss probes (RFC 8985)."""
        return self.has_sack and self.stack != "rfc-sack"

    @property
    def initial_ssthresh(self) -> float:
        """Slow-start threshold of a new connection in packets; inf for none."""
        return self.receiver_window if isinstance(self.ssthresh, str) else self.ssthresh

    @property
    def last_packets_threshold(self) -> int:
        """Number of duplicate ACKs that indicate the loss of one of a transfer's last packets."""
        last = self.rules.last_packets_threshold
        return self.duplicate_threshold if isinstance(last, str) else last

    @property
    def ack_timeout_s(self) -> float:
        """Maximum delay of an ACK in seconds; relevant if the receiver delays ACKs."""
        return self.ack_timeout

    @property
    def min_rto_s(self) -> float:
        """Minimum retransmission timeout in seconds."""
        return self.min_rto

    @property
    def initial_rto_s(self) -> float:
        """Retransmission timeout before the first RTT sample, in seconds."""
        return self.initial_rto

    @property
    def max_rto_s(self) -> float:
        """Maximum retransmission timeout in seconds, reached by doubling."""
        return self.max_rto

    @property
    def max_rate_bps(self) -> float:
        """Largest rate of the data of a connection in bit/s, by pacing; inf for none."""
        return self.pacing if isinstance(self.pacing, float) else math.inf

    @property
    def max_window_bytes(self) -> tuple[float, float]:
        """Largest windows in bytes that the send buffer and the receive buffer allow.

        Unlimited buffers allow the largest window of TCP, or an infinite one of other protocols.
        """
        if self.socket_buffers is None or self.socket_buffers == "unlimited":
            is_tcp = self.is_modern and not self.is_quic
            return math.inf, MAX_WINDOW_BYTES if is_tcp else math.inf
        kernel = self.kernel or NEWEST_MEASURED_KERNEL
        if isinstance(self.socket_buffers, SocketBuffers):
            send, receive = self.socket_buffers.send, self.socket_buffers.receive
        else:
            if self.socket_buffers != "kernel":
                kernel = self.socket_buffers.removeprefix("linux-")
            send, receive = _DEFAULT_WMEM, RECEIVE_BUFFERS[kernel][0]
        return send, receive * RECEIVE_BUFFERS[kernel][1]

    @property
    def max_send_memory_bytes(self) -> int:
        """Third value of ``tcp_wmem``, which limits an application that writes in blocks."""
        if isinstance(self.socket_buffers, SocketBuffers):
            return self.socket_buffers.send
        return _DEFAULT_WMEM

    @property
    def has_finite_receive_buffer(self) -> bool:
        """Whether the receiver advertises less when its application does not read."""
        unlimited = self.socket_buffers is None or self.socket_buffers == "unlimited"
        return not unlimited or math.isfinite(self.receiver_window)

    @property
    def has_loss_feedback(self) -> bool:
        """True if senders have instantaneous loss feedback."""
        return self.stack == MAX_PLUS

    @property
    def rto_granularity_s(self) -> float:
        """Clock granularity G of RFC 6298, in seconds."""
        return self.rto_granularity

    @property
    def host_noise_s(self) -> float:
        """Mean delay in seconds until a host handles a packet or a pacing timer."""
        return self.host_noise
