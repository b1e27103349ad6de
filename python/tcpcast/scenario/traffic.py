"""The traffic: on/off sources, bulk flows, transfers, requests, messages, streams, pages."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    PlainSerializer,
    PlainValidator,
    Tag,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from tcpcast.process.errors import UnitError, did_you_mean_text
from tcpcast.quantity import units
from tcpcast.scenario.byte_sizes import FileInBytes, is_in_bytes, write_size
from tcpcast.scenario.distributions import (
    Constant,
    Distribution,
    Exponential,
    ExponentialPareto,
    Lognormal,
    Pareto,
    TwoExponentials,
    Uniform,
    guess_distribution_table,
    make_constant_table,
    read_any_size,
)
from tcpcast.scenario.empirical import Empirical
from tcpcast.scenario.pages import CONNECTIONS, MAX_RECORD_BYTES, PageRule
from tcpcast.scenario.quantities import (
    BYTES_SCHEMA,
    PACKETS_SCHEMA,
    TIME_SCHEMA,
    Bytes,
    Duration,
    PositiveDuration,
    PositiveRate,
    Rate,
    Size,
    integer_annotation,
    number_annotation,
    quantity_annotation,
)
from tcpcast.scenario.table import (
    Choice,
    Errors,
    Table,
    check_selecting_key,
    get_validation_context,
    make_error_at,
    make_key_error,
    make_missing_key_error,
    make_missing_kind_error,
    make_validation_error,
    unknown_word_message,
)
from tcpcast.scenario.toml import write_value

MAX_SOURCES = 10_000_000
MAX_ISOLATED_TRANSFERS = 10**9
MAX_SIZE_PKTS = 10**9

DISTRIBUTIONS = (
    "exponential",
    "ep",
    "ee",
    "lognormal",
    "pareto",
    "constant",
    "uniform",
    "empirical",
)
TRAFFIC_KINDS = ("on-off", "bulk", "transfers", "requests", "messages", "ping", "stream", "page")

MAX_QUALITIES = 50

Count = Annotated[int, *integer_annotation(1, MAX_SOURCES)]


def _distribution_validator(
    example: Mapping[str, str], read: Callable[[object], float]
) -> Callable[[object], object]:
    """Return a validator with messages about a missing or unknown distribution.

    A single quantity is a constant distribution.
    """

    def check(value: object) -> object:
        if isinstance(value, Distribution):
            return value
        if not isinstance(value, Mapping):
            constant = make_constant_table(value, read)
            if constant is not None:
                return constant
            written = write_value(guess_distribution_table(value) or example)
            raise ValueError(f"{units.quote(value)} is not a distribution; use {written}")
        distribution = value.get("distribution")
        if distribution is None:
            raise make_validation_error(
                [
                    make_missing_kind_error(
                        value, "distribution", units.quote(example["distribution"])
                    )
                ]
            )
        if distribution not in DISTRIBUTIONS:
            raise make_key_error(
                unknown_word_message("distribution", distribution, DISTRIBUTIONS),
                "distribution",
            )
        return value

    return check


_SIZE_EXAMPLE = {"distribution": "exponential", "mean": "12pkt", "minimum": "3pkt"}
_TIME_EXAMPLE = {"distribution": "exponential", "mean": "1s"}
_BYTES_EXAMPLE = {"distribution": "exponential", "mean": "20KB"}


def _add_constant_to_schema(schema: dict[str, Any], constant: dict[str, Any]) -> None:
    schema["anyOf"] = [constant, *schema.pop("oneOf")]
    del schema["discriminator"]


_Sizes = Annotated[
    Exponential[Size]
    | ExponentialPareto[Size]
    | TwoExponentials[Size]
    | Lognormal[Size]
    | Pareto[Size]
    | Constant[Size]
    | Uniform[Size]
    | Empirical[Size],
    Field(discriminator="distribution"),
    BeforeValidator(_distribution_validator(_SIZE_EXAMPLE, read_any_size)),
]
SizeDistribution = Annotated[
    _Sizes, Field(json_schema_extra=partial(_add_constant_to_schema, constant=PACKETS_SCHEMA))
]
"""A distribution of sizes of files, or one size."""

TimeDistribution = Annotated[
    Exponential[Duration]
    | ExponentialPareto[Duration]
    | TwoExponentials[Duration]
    | Lognormal[Duration]
    | Pareto[Duration]
    | Constant[Duration]
    | Uniform[Duration]
    | Empirical[Duration],
    Field(
        discriminator="distribution",
        json_schema_extra=partial(_add_constant_to_schema, constant=TIME_SCHEMA),
    ),
    BeforeValidator(_distribution_validator(_TIME_EXAMPLE, units.parse_duration)),
]
"""A distribution of times, or one time."""

BytesDistribution = Annotated[
    Exponential[Bytes]
    | ExponentialPareto[Bytes]
    | TwoExponentials[Bytes]
    | Lognormal[Bytes]
    | Pareto[Bytes]
    | Constant[Bytes]
    | Uniform[Bytes]
    | Empirical[Bytes],
    Field(
        discriminator="distribution",
        json_schema_extra=partial(_add_constant_to_schema, constant=BYTES_SCHEMA),
    ),
    BeforeValidator(_distribution_validator(_BYTES_EXAMPLE, units.parse_bytes)),
]
"""A distribution of sizes in bytes, or one size."""


def _zero_time() -> Constant[float]:
    return Constant[Duration].model_construct(distribution="constant", value=0.0)


READ_BYTES_AT_RATE = 16 * 2**10
"""Largest number of bytes of a read of an application that reads at a rate."""


class Reading(Table):
    """An application that reads from its socket, pauses, and reads again."""

    size: Bytes = Field(
        default=65_536,
        examples=["64KiB"],
        description="maximum size of a read; default: 64KiB",
    )
    pause: TimeDistribution = Field(examples=["20ms"], description="time between two reads")

    def _find_errors(self) -> Errors:
        if self.size == 0:
            yield make_error_at('must be at least "1B"; use "64KiB", for example', "size")


class Writing(Table):
    """An application that writes blocks to its socket, with gaps between them."""

    size: BytesDistribution = Field(examples=["100KB"], description="size of a block")
    gap: TimeDistribution = Field(
        examples=["50ms"],
        description="time from the write of a whole block to the next write",
    )
    after: Duration = Field(
        default=0.0,
        examples=["3s"],
        description="the application always has data until this time of the run; default: 0s",
    )

    def _find_errors(self) -> Errors:
        if self.size.mean_value() < 1:
            yield make_error_at('the mean must be at least "1B"; use a larger size', "size")


ReadingRule = Annotated[
    Annotated[PositiveRate, Tag("a-rate")] | Annotated[Reading, Tag("a-table")],
    Discriminator(lambda value: "a-table" if isinstance(value, Mapping | Reading) else "a-rate"),
]

_READS_FIELD: Any = Field(
    default=None,
    examples=["10mbit"],
    description="how fast the receiving application reads: a rate, or a table with the size of a "
    "read and the pause after it; by default, data are read at once",
)
_NO_WRITES = {"writes": 'requires kind = "bulk"; use kind = "bulk", or remove this key'}


class OnOff(Table):
    """Sources that alternate between an OFF time and sending a file.

    With ``start = "silent"``, each source starts with a full OFF time. With ``"equilibrium"``, it
    starts with the remaining part of an OFF time or of a file.
    """

    elsewhere: ClassVar[Mapping[str, str]] = {
        "arrivals": 'requires kind = "transfers"; use kind = "transfers", or remove this key',
        "count": 'requires kind = "transfers"; use kind = "transfers", or replace count by '
        "run.transfers",
        **_NO_WRITES,
    }

    kind: Literal["on-off"]
    declared: Count | None = Field(default=None, alias="sources", examples=[134])
    off: TimeDistribution = Field(
        examples=[_TIME_EXAMPLE], description="OFF times: one time or a distribution"
    )
    size: SizeDistribution = Field(
        examples=[_SIZE_EXAMPLE], description="file sizes: one size or a distribution"
    )
    size_rounding: Annotated[
        Literal["nearest", "down"],
        Choice("rounding"),
    ] = Field(
        default="nearest",
        examples=["down"],
        description="rounding of random sizes to whole packets, at least one",
    )
    connection: Annotated[
        Literal["new", "persistent"],
        Choice("kind of connection"),
    ] = Field(
        default="new",
        examples=["persistent"],
        description=(
            "one connection per file, or one per source, which keeps its window during OFF times"
        ),
    )
    correlation: Annotated[float, *number_annotation("correlation", -1, 1, example=-0.3)] = Field(
        default=0.0,
        examples=[-0.3],
        description="Spearman's rank correlation between a file's size and the next OFF time",
    )
    start: Annotated[
        Literal["silent", "equilibrium"],
        Choice("start"),
    ] = Field(
        default="silent",
        examples=["equilibrium"],
        description="whether a source starts with an OFF time or near equilibrium",
    )
    reads: ReadingRule | None = _READS_FIELD

    @property
    def sources(self) -> int:
        """Number of sources; 0 for the top-level table if classes set the numbers."""
        return self.declared or 0

    @property
    def count(self) -> int:
        """Number of sources."""
        return self.sources

    def _find_errors(self) -> Errors:
        if self.off.mean_value() <= 0:
            message = 'the mean OFF time is 0; use mean = "1s", or kind = "bulk"'
            yield make_error_at(message, "off")
        if self.size.mean_value() < 1:
            mean = units.format_packets(self.size.mean_value())
            yield make_error_at(
                f"the mean size, {mean}, is below one packet; use a larger size", "size"
            )

        for name, distribution in (("off", self.off), ("size", self.size)):
            if self.correlation and distribution.is_constant():
                message = (
                    f"{name} is constant, so sizes and OFF times cannot be correlated; "
                    "remove correlation"
                )
                yield make_error_at(message, "correlation")


def _get_start_kind(value: object) -> str:
    if isinstance(value, list | tuple):
        return "a-list"
    is_time = not isinstance(value, str) or make_constant_table(value, units.parse_duration)
    return "a-distribution" if is_time else "a-rule"


StartRule = Annotated[
    Annotated[TimeDistribution, Tag("a-distribution")]
    | Annotated[list[Duration], Tag("a-list")]
    | Annotated[
        Literal["within-rtt", "iperf3"],
        Choice("rule for start times"),
        Tag("a-rule"),
    ],
    Discriminator(_get_start_kind),
]


class Bulk(Table):
    """Flows that always have data to send.

    ``start`` is a distribution of start times, a list with one time for each flow, or
    ``"within-rtt"``: uniformly within one round-trip time, or ``"iperf3"``: all at once, after
    ``iperf3 -P`` has connected one after another.
    """

    elsewhere: ClassVar[Mapping[str, str]] = OnOff.elsewhere

    kind: Literal["bulk"]
    declared: Count | None = Field(default=None, alias="flows", examples=[10])
    start_rule: StartRule = Field(
        default="within-rtt",
        alias="start",
        examples=[{"distribution": "uniform", "low": "0s", "high": "1s"}],
        description="start times: one time, a distribution, a list, uniform within one RTT, or as "
        "iperf3 -P, which connects one flow after another and then starts all",
    )
    reads: ReadingRule | None = _READS_FIELD
    writes: Writing | None = Field(
        default=None,
        examples=[{"size": "100KB", "gap": "50ms"}],
        description="table with the blocks that the sending application writes; by default it "
        "always has data",
    )

    @property
    def flows(self) -> int:
        """Number of flows; 0 for the top-level table if classes set the numbers."""
        return self.declared or 0

    @property
    def count(self) -> int:
        """Number of flows."""
        return self.flows

    @property
    def start(self) -> Distribution[Any] | list[float] | None:
        """Distribution of start times, or a list in seconds; None for a rule that needs the RTT."""
        return None if isinstance(self.start_rule, str) else self.start_rule

    @property
    def connects_in_turn(self) -> bool:
        """Whether the flows connect one after another, and then start at once, as in iperf3."""
        return self.start_rule == "iperf3"


def _read_transfer_size(value: object, info: ValidationInfo) -> int:
    """Read the size of a transfer in whole packets or in bytes."""
    distribution = guess_distribution_table(value)
    if distribution is not None:
        raise UnitError(f"{units.quote(value)} is not a size; use {write_value(distribution)}")
    packets = units.parse_packets(value, payload_bytes=get_validation_context(info).payload_bytes)
    in_bytes = is_in_bytes(value)
    if not in_bytes and packets != int(packets):
        raise UnitError(
            f'{units.quote(value)} is not a whole number of packets; use "{math.ceil(packets)}pkt"'
        )
    if packets == 0:
        raise UnitError(f'{units.quote(value)} is not a transfer; use at least "1pkt"')
    if packets > MAX_SIZE_PKTS:
        limit = f"more than {MAX_SIZE_PKTS:,} packets"
        raise UnitError(f'{units.quote(value)} is {limit}; use a smaller size, or kind = "bulk"')
    count = math.ceil(packets)
    return FileInBytes(count, units.parse_bytes(value)) if in_bytes else count


TransferSize = Annotated[
    int,
    PlainValidator(_read_transfer_size),
    PlainSerializer(write_size, return_type=str),
    WithJsonSchema({"anyOf": [PACKETS_SCHEMA, {"type": "integer", "minimum": 1}]}),
]
"""A size in whole packets; a size typed in bytes also keeps the number of bytes."""


def _get_size_kind(value: object) -> str:
    if isinstance(value, list | tuple):
        return "a-list"
    return "a-distribution" if isinstance(value, Mapping | Distribution) else "a-size"


SizeRule = Annotated[
    Annotated[TransferSize, Tag("a-size")]
    | Annotated[list[TransferSize], Field(min_length=1, max_length=1000), Tag("a-list")]
    | Annotated[_Sizes, Tag("a-distribution")],
    Discriminator(_get_size_kind),
]


class Arrivals(Table):
    """Random start times of transfers, which do not wait for earlier transfers."""

    distribution: Annotated[
        Literal["poisson"],
        Choice("distribution of arrivals"),
    ] = Field(examples=["poisson"], description="Poisson process")
    rate: Annotated[
        float,
        *quantity_annotation(
            units.parse_per_second,
            units.format_per_second,
            {"type": "string", "pattern": r"^[^/]*/[^/]*$", "examples": ["20/s"]},
        ),
    ] = Field(examples=["20/s"], description="mean number of starts per unit of time")


class Transfers(Table):
    """Single transfers: isolated transfers on an idle path, or arrivals on a shared path.

    Without ``arrivals``, ``count`` transfers of each size run sequentially on new connections. With
    ``arrivals``, transfers start at random times in separate connections and share the network;
    ``size`` is one size, a list of equally likely sizes, or a distribution.
    """

    elsewhere: ClassVar[Mapping[str, str]] = {
        "sources": "does not apply to transfers; use count = 1000, or add arrivals",
        "flows": "does not apply to transfers; use count = 1000, or add arrivals",
        "off": 'requires kind = "on-off"; use kind = "on-off", or replace off by arrivals',
        **_NO_WRITES,
    }

    kind: Literal["transfers"]
    size: SizeRule = Field(
        examples=[["1pkt", "8pkt", "100KB"]],
        description="one size or a list of sizes; with arrivals, also a distribution",
    )
    count: Annotated[int, *integer_annotation(1, 10**8)] | None = Field(
        default=None,
        examples=[50000],
        description="isolated transfers of each size; default: 1000",
    )
    arrivals: Arrivals | None = Field(
        default=None,
        examples=[{"distribution": "poisson", "rate": "20/s"}],
        description="random start times of transfers that share the network",
    )
    reads: ReadingRule | None = _READS_FIELD

    @property
    def sizes(self) -> list[int] | None:
        """The listed sizes in packets; None for a distribution."""
        if isinstance(self.size, Distribution):
            return None
        return [self.size] if isinstance(self.size, int) else self.size

    @property
    def mean_size_pkts(self) -> float:
        """Mean size in packets; for a distribution, before rounding."""
        if isinstance(self.size, Distribution):
            return self.size.mean_value()
        sizes = [self.size] if isinstance(self.size, int) else self.size
        return sum(sizes) / len(sizes)

    @property
    def isolated(self) -> bool:
        """Whether the transfers are isolated: one at a time on an idle path."""
        return self.arrivals is None

    @property
    def sender_count(self) -> int:
        """Number of senders: 1 for isolated transfers, 0 for arrivals."""
        return int(self.isolated)

    @property
    def total(self) -> int:
        """Total number of isolated transfers of all sizes."""
        return (self.count or 0) * len(self.sizes or [])

    @model_validator(mode="before")
    @classmethod
    def _set_default_count(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and "arrivals" not in data:
            return {"count": 1000, **data}
        return data

    def _find_errors(self) -> Errors:
        sizes = self.sizes
        if sizes is None and self.isolated:
            message = (
                'a distribution requires arrivals; use sizes such as ["1pkt", "8pkt"], or add '
                "arrivals"
            )
            yield make_missing_key_error(message, "size")
        if sizes is not None and len(set(sizes)) < len(sizes):
            twice = next(size for size in sizes if sizes.count(size) > 1)
            written = units.format_packets(twice)
            yield make_error_at(f"{written} is listed twice; remove one entry", "size")
        if not self.isolated and self.count is not None:
            message = "requires isolated transfers; with arrivals, use run.transfers instead"
            yield make_error_at(message, "count")
        if self.total > MAX_ISOLATED_TRANSFERS:
            message = f"{self.total} transfers in total; use at most {MAX_ISOLATED_TRANSFERS}"
            yield make_error_at(message, "count")
        if self.mean_size_pkts < 1:
            mean = units.format_packets(self.mean_size_pkts)
            yield make_error_at(
                f"the mean size, {mean}, is below one packet; use a larger size", "size"
            )


class _Flows(Table):
    """Traffic of a number of flows, which needs links with routes."""

    elsewhere: ClassVar[Mapping[str, str]] = {
        "sources": "unknown key; use flows",
        "count": "unknown key; use flows",
    }

    declared: Count | None = Field(default=None, alias="flows", examples=[10])

    @property
    def count(self) -> int:
        """Number of flows; 0 for the top-level table if classes set the numbers."""
        return self.declared or 0


class Requests(_Flows):
    """Clients that send a request, wait for the answer, and pause before the next request.

    With ``fan_in``, a client sends this many requests at once on as many flows, and pauses when all
    answers are complete (incast).
    """

    kind: Literal["requests"]
    request: BytesDistribution = Field(
        default_factory=lambda: Constant[Bytes].model_construct(distribution="constant", value=200),
        examples=["200B"],
        description="payload of a request; default: 200B",
    )
    answer: BytesDistribution = Field(examples=["20KB"], description="payload of an answer")
    server_time: TimeDistribution = Field(
        default_factory=_zero_time,
        examples=["10ms"],
        description="time that the server needs for an answer; default: 0s",
    )
    pause: TimeDistribution = Field(
        default_factory=_zero_time,
        examples=[{"distribution": "exponential", "mean": "1s"}],
        description="time from the answer to the next request; default: 0s",
    )
    fan_in: Annotated[int, *integer_annotation(1, 100_000)] = Field(
        default=1,
        examples=[32],
        description="requests that a client sends at once, each on a separate flow; `flows` must "
        "be a multiple of this number",
    )


class Messages(_Flows):
    """Messages of one packet without TCP, such as those of a game or a call."""

    kind: Literal["messages"]
    size: BytesDistribution = Field(examples=["200B"], description="size of a message on the link")
    interval: TimeDistribution = Field(examples=["20ms"], description="time between messages")
    ecn: Annotated[Literal["ect0", "ect1"], Choice("codepoint")] | None = Field(
        default=None,
        examples=["ect1"],
        description="ECN codepoint of the packets, whose sender ignores marks; default: not "
        "ECN-capable",
    )


class Ping(_Flows):
    """Probes of one packet that the server returns; their delay is the round-trip time."""

    kind: Literal["ping"]
    size: Bytes = Field(default=84, examples=["84B"], description="size of a probe on the link")
    interval: TimeDistribution = Field(
        default_factory=lambda: Constant[Duration].model_construct(
            distribution="constant", value=0.2
        ),
        examples=["200ms"],
        description="time between probes; default: 200ms",
    )


class Stream(_Flows):
    """Video in segments; a player requests them, chooses their rate, and buffers them."""

    kind: Literal["stream"]
    rate: Rate | None = Field(
        default=None, examples=["5mbit"], description="payload rate of a video with one quality"
    )
    ladder: Annotated[list[PositiveRate], Field(min_length=2, max_length=MAX_QUALITIES)] | None = (
        Field(
            default=None,
            examples=[["0.5mbit", "2mbit", "5mbit"]],
            description="instead of `rate`: payload rates of the qualities, lowest first",
        )
    )
    control: Annotated[Literal["buffer", "throughput"], Choice("control")] | None = Field(
        default=None,
        examples=["throughput"],
        description="how the player chooses from `ladder`: by its buffer or by the throughput; "
        "default: buffer",
    )
    segment: PositiveDuration = Field(
        default=2.0, examples=["2s"], description="playing time of a segment"
    )
    start_buffer: PositiveDuration = Field(
        default=4.0,
        examples=["4s"],
        description="buffered playing time at which playing begins, and resumes after a stall",
    )
    max_buffer: PositiveDuration = Field(
        default=30.0, examples=["30s"], description="maximum buffered playing time"
    )

    @property
    def rates(self) -> list[float]:
        """Rates of the qualities, lowest first."""
        one = [] if self.rate is None else [self.rate]
        return one if self.ladder is None else self.ladder

    def _find_errors(self) -> Errors:
        if (self.rate is None) == (self.ladder is None):
            what = "is missing" if self.rate is None else "and ladder are mutually exclusive"
            message = f'{what}; use rate = "5mbit", or ladder = ["1mbit", "5mbit"] for several'
            yield make_error_at(message, "rate")
        if any(map(math.isinf, self.rates)):
            key = "rate" if self.ladder is None else "ladder"
            yield make_error_at('the rate of a video must be finite; use "5mbit", for example', key)
        if sorted({*self.rates}) != self.rates:
            yield make_error_at("rates must increase; begin with the lowest", "ladder")
        if self.ladder is None and self.control is not None:
            yield make_error_at("requires ladder; remove this key", "control")
        least = max(self.start_buffer, self.segment)
        if self.max_buffer < least:
            message = (
                "must be at least as long as segment and start_buffer; use at least "
                f'"{units.format_duration(least)}"'
            )
            yield make_error_at(message, "max_buffer")


def _read_http_version(value: object) -> object:
    """Convert the numbers 1.1, 2 and 3 to the words that name them."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:g}" if is_number else value


class Pages(Table):
    """Browsers that load a page again and again, with a pause after each load."""

    elsewhere: ClassVar[Mapping[str, str]] = {
        "flows": "a browser opens connections as the page needs them; use sources = 10 for ten "
        "browsers",
        "count": "unknown key; use sources",
    }

    kind: Literal["page"]
    declared: Count | None = Field(
        default=None, alias="sources", examples=[10], description="number of browsers"
    )
    objects: PageRule = Field(
        examples=["median"],
        description="name of a packaged page, name of a HAR or CSV file, or list of objects",
    )
    http: Annotated[
        Literal["1.1", "2", "3"], Choice("version of HTTP"), BeforeValidator(_read_http_version)
    ] = Field(
        default="2",
        examples=["1.1"],
        description="version of HTTP: per host, six connections with one request at a time (1.1), "
        "one TCP connection (2) or one QUIC connection (3); default: 2",
    )
    order: Annotated[Literal["priority", "in-turn"], Choice("order of answers")] = Field(
        default="priority",
        examples=["in-turn"],
        description="how a server shares a connection of HTTP/2 or 3: most urgent answer first, "
        "or frames of 16 KiB of all answers in turn",
    )
    connection: Annotated[Literal["new", "persistent"], Choice("kind of connection")] = Field(
        default="new",
        examples=["persistent"],
        description="whether loads open new connections or use those of earlier loads",
    )
    record: Bytes = Field(
        default=MAX_RECORD_BYTES,
        examples=["1400B"],
        description="size of TLS records over TCP, at most 16384B",
    )
    host_rtt: dict[str, PositiveDuration] = Field(
        default={},
        examples=[{"cdn": "10ms"}],
        description="RTT to each host of the page; default: that of the class",
    )
    server_time: TimeDistribution = Field(
        default_factory=_zero_time,
        examples=["20ms"],
        description=("time that the server adds to server_time of each object; default: 0s"),
    )
    pause: TimeDistribution = Field(
        default_factory=lambda: Constant[Duration].model_construct(
            distribution="constant", value=1.0
        ),
        examples=[{"distribution": "exponential", "mean": "10s"}],
        description="time from a complete page to the next load; default: 1s",
    )

    @property
    def hosts(self) -> list[str]:
        """Hosts in the order in which the page first names them."""
        return list(dict.fromkeys(item.host for item in self.objects))

    @property
    def connections(self) -> int:
        """Largest number of connections of a browser."""
        return CONNECTIONS[self.http] * len(self.hosts)

    @property
    def count(self) -> int:
        """Number of connections of all browsers; 0 if classes set the numbers."""
        return (self.declared or 0) * self.connections

    def _find_errors(self) -> Errors:
        if not 1 <= self.record <= MAX_RECORD_BYTES:
            yield make_error_at(f"must be between 1B and {MAX_RECORD_BYTES}B", "record")
        for host in self.host_rtt:
            if host not in self.hosts:
                near = did_you_mean_text(host, self.hosts)
                message = f"the page has no host {units.quote(host)}{near}; remove this key"
                yield make_error_at(message, "host_rtt")


FlowTraffic = Requests | Messages | Ping | Stream | Pages
"""Traffic that needs links with routes."""

Traffic = Annotated[
    OnOff | Bulk | Transfers | Requests | Messages | Ping | Stream | Pages,
    Field(discriminator="kind"),
    BeforeValidator(
        partial(check_selecting_key, key="kind", what="kind of traffic", words=TRAFFIC_KINDS)
    ),
]
