"""The traffic: on/off sources, bulk flows that never end, single transfers, or a capture."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

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

from tcpcast import units
from tcpcast.errors import UnitError
from tcpcast.scenario.distributions import (
    Constant,
    Distribution,
    Exponential,
    ExponentialPareto,
    Lognormal,
    Pareto,
    TwoExponentials,
    Uniform,
    always,
    meant,
    not_one_time,
    read_any_size,
)
from tcpcast.scenario.empirical import Empirical
from tcpcast.scenario.quantities import PACKETS_SCHEMA, Duration, Size, counted
from tcpcast.scenario.sizes import FileInBytes, is_in_bytes, write_size
from tcpcast.scenario.table import (
    Table,
    choice,
    fault,
    faults,
    lack,
    no_choice,
    not_a_word,
    reading,
)
from tcpcast.scenario.toml import write_value

MOST_SOURCES = 10_000_000
MOST_TRANSFERS = 10**9
MOST_SIZE_PKTS = 10**9
MOST_CONNECTIONS = 10**12

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
KINDS = ("on-off", "bulk", "transfers", "capture")
CAPTURE = "capture"
"""The kind of traffic that was measured: it has no network, TCP and run to ask for."""

Count = Annotated[int, *counted(1, MOST_SOURCES)]


def _distribution_named(
    example: Mapping[str, str], read: Callable[[object], float]
) -> Callable[[object], object]:
    """Return a validator that says what is wrong with the choice of a distribution of such quantities."""

    def check(value: object) -> object:
        if isinstance(value, Distribution):
            return value
        if not isinstance(value, Mapping):
            written = write_value(meant(value) or always(value, read) or example)
            raise ValueError(f"{units.show(value)} is not a distribution; write {written}")
        distribution = value.get("distribution")
        if distribution is None:
            raise faults([no_choice(value, "distribution", units.show(example["distribution"]))])
        if distribution not in DISTRIBUTIONS:
            raise faults(
                [fault(not_a_word("distribution", distribution, DISTRIBUTIONS), "distribution")]
            )
        return value

    return check


_SIZE_EXAMPLE = {"distribution": "exponential", "mean": "12pkt", "minimum": "3pkt"}
_TIME_EXAMPLE = {"distribution": "exponential", "mean": "1s"}

SizeDistribution = Annotated[
    Exponential[Size]
    | ExponentialPareto[Size]
    | TwoExponentials[Size]
    | Lognormal[Size]
    | Pareto[Size]
    | Constant[Size]
    | Uniform[Size]
    | Empirical[Size],
    Field(discriminator="distribution"),
    BeforeValidator(_distribution_named(_SIZE_EXAMPLE, read_any_size)),
]
TimeDistribution = Annotated[
    Exponential[Duration]
    | ExponentialPareto[Duration]
    | TwoExponentials[Duration]
    | Lognormal[Duration]
    | Pareto[Duration]
    | Constant[Duration]
    | Uniform[Duration]
    | Empirical[Duration],
    Field(discriminator="distribution"),
    BeforeValidator(_distribution_named(_TIME_EXAMPLE, units.parse_duration)),
]


def _read_correlation(value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and -1 <= value <= 1:
        return float(value)
    raise UnitError(f"{units.show(value)} is no correlation; write from -1 to 1, such as -0.3")


class OnOff(Table):
    """Sources that are silent for an OFF time, send a file, and are silent again.

    ``start`` says whether they begin silent, with a fresh OFF time, or as someone finds them who
    comes at any time: with what is left of an OFF time, or of a file.
    """

    elsewhere: ClassVar[Mapping[str, str]] = {
        "arrivals": 'belongs to kind = "transfers"; write that kind, or leave it out',
        "count": 'belongs to kind = "transfers"; write that kind, or run.transfers',
    }

    kind: Literal["on-off"]
    declared: Count | None = Field(default=None, alias="sources", examples=[134])
    off: TimeDistribution = Field(examples=[_TIME_EXAMPLE], description="distribution of OFF times")
    size: SizeDistribution = Field(
        examples=[_SIZE_EXAMPLE], description="distribution of file sizes"
    )
    size_rounding: Annotated[
        Literal["nearest", "down"], BeforeValidator(choice("rounding", ("nearest", "down")))
    ] = Field(
        default="nearest",
        examples=["down"],
        description="rounding of drawn sizes to whole packets, at least one",
    )
    connection: Annotated[
        Literal["new", "persistent"],
        BeforeValidator(choice("kind of connection", ("new", "persistent"))),
    ] = Field(
        default="new",
        examples=["persistent"],
        description=(
            "one connection per file, or one per source, which keeps its window during OFF times "
            "(see tcp.idle_restart)"
        ),
    )
    correlation: Annotated[
        float,
        BeforeValidator(_read_correlation),
        WithJsonSchema({"type": "number", "minimum": -1, "maximum": 1}),
    ] = Field(
        default=0.0,
        examples=[-0.3],
        description="Spearman's rank correlation of a file's size and the next OFF time",
    )
    start: Annotated[
        Literal["silent", "equilibrium"],
        BeforeValidator(choice("start", ("silent", "equilibrium"))),
    ] = Field(
        default="silent",
        examples=["equilibrium"],
        description="initial state: a new OFF time, or equilibrium",
    )

    @property
    def sources(self) -> int:
        """How many sources; 0 at the top level when the classes count them."""
        return self.declared or 0

    @property
    def count(self) -> int:
        """The same as ``sources``."""
        return self.sources

    @model_validator(mode="after")
    def _check(self) -> Self:
        found = []
        if self.off.mean_value() <= 0:
            message = 'the mean OFF time is 0; write mean = "1s", or kind = "bulk"'
            found.append(fault(message, "off"))
        if self.size.mean_value() < 1:
            mean = units.format_packets(self.size.mean_value())
            found.append(fault(f"the mean size, {mean}, is below one packet; write more", "size"))
        for name, distribution in (("off", self.off), ("size", self.size)):
            if self.correlation and distribution.is_constant():
                message = f"nothing goes with {name}, which is constant; leave it out"
                found.append(fault(message, "correlation"))
        if found:
            raise faults(found)
        return self


def _kind_of_start(value: object) -> str:
    if isinstance(value, str):
        return "a-rule"
    return "a-list" if isinstance(value, list | tuple) else "a-distribution"


Start = Annotated[
    Annotated[TimeDistribution, Tag("a-distribution")]
    | Annotated[list[Duration], Tag("a-list")]
    | Annotated[Literal["within-rtt"], BeforeValidator(not_one_time), Tag("a-rule")],
    Discriminator(_kind_of_start),
]


class Bulk(Table):
    """Flows that always have data to send.

    ``start`` is a distribution of start times, a list with one time for each flow, or ``"within-rtt"``:
    uniformly within one round-trip time.
    """

    elsewhere: ClassVar[Mapping[str, str]] = OnOff.elsewhere

    kind: Literal["bulk"]
    declared: Count | None = Field(default=None, alias="flows", examples=[10])
    start_rule: Start = Field(
        default="within-rtt",
        alias="start",
        examples=[{"distribution": "uniform", "low": "0s", "high": "1s"}],
        description="distribution, list of times, or uniform within one RTT",
    )

    @property
    def flows(self) -> int:
        """How many flows; 0 at the top level when the classes count them."""
        return self.declared or 0

    @property
    def count(self) -> int:
        """The same as ``flows``."""
        return self.flows

    @property
    def start(self) -> Distribution[Any] | list[float] | None:
        """Distribution of start times, times in seconds, or None: uniformly within one RTT."""
        return None if isinstance(self.start_rule, str) else self.start_rule


def _read_size(value: object, info: ValidationInfo) -> int:
    """Read the size of a transfer: whole packets, or bytes, the last packet perhaps not full."""
    distribution = meant(value)
    if distribution is not None:
        raise UnitError(f"{units.show(value)} is not a size; write {write_value(distribution)}")
    packets = units.parse_packets(value, payload_bytes=reading(info).payload_bytes)
    in_bytes = is_in_bytes(value)
    if not in_bytes and packets != int(packets):
        raise UnitError(
            f'{units.show(value)} is not whole packets; write "{math.ceil(packets)}pkt"'
        )
    if packets == 0:
        raise UnitError(f'{units.show(value)} is no transfer; write at least "1pkt"')
    if packets > MOST_SIZE_PKTS:
        most = f"more than {MOST_SIZE_PKTS:,} packets"
        raise UnitError(f'{units.show(value)} is {most}; write less, or kind = "bulk"')
    whole = math.ceil(packets)
    return FileInBytes(whole, units.parse_bytes(value)) if in_bytes else whole


TransferSize = Annotated[
    int,
    PlainValidator(_read_size),
    PlainSerializer(write_size, return_type=str),
    WithJsonSchema({"anyOf": [PACKETS_SCHEMA, {"type": "integer", "minimum": 1}]}),
]
"""Whole packets; what was written in bytes is remembered."""


def _kind_of_size(value: object) -> str:
    if isinstance(value, list | tuple):
        return "a-list"
    return "a-distribution" if isinstance(value, Mapping | Distribution) else "a-size"


SizeRule = Annotated[
    Annotated[TransferSize, Tag("a-size")]
    | Annotated[list[TransferSize], Field(min_length=1, max_length=1000), Tag("a-list")]
    | Annotated[SizeDistribution, Tag("a-distribution")],
    Discriminator(_kind_of_size),
]


class Arrivals(Table):
    """When the transfers of open traffic begin."""

    distribution: Annotated[
        Literal["poisson"], BeforeValidator(choice("distribution of arrivals", ("poisson",)))
    ] = Field(examples=["poisson"], description="Poisson process")
    rate: Annotated[
        float,
        BeforeValidator(units.parse_per_second),
        PlainSerializer(units.format_per_second, return_type=str),
        WithJsonSchema({"type": "string", "pattern": r"^[^/]*/[^/]*$", "examples": ["20/s"]}),
    ] = Field(examples=["20/s"], description="mean number of starts per unit of time")


class Transfers(Table):
    """Single transfers: each alone on the empty path, or at random times on a shared one.

    Without ``arrivals``, ``count`` transfers of each size, one after the other, each from fresh
    state and with no packet of the one before in flight. With ``arrivals``, transfers begin
    at random times as connections of their own and share the network; ``size`` is one size, a
    list of which each is as likely as another, or a distribution.
    """

    elsewhere: ClassVar[Mapping[str, str]] = {
        "sources": "transfers come from no source; write count = 1000, or arrivals",
        "flows": "transfers are no flows; write count = 1000, or arrivals",
        "off": 'belongs to kind = "on-off"; write that kind, or arrivals',
    }

    kind: Literal["transfers"]
    size: SizeRule = Field(
        examples=[["1pkt", "8pkt", "100KB"]],
        description="one size or a list; with arrivals also a distribution",
    )
    count: Annotated[int, *counted(1, 10**8)] | None = Field(
        default=None,
        examples=[50000],
        description="isolated transfers of each size; default 1000",
    )
    arrivals: Arrivals | None = Field(
        default=None,
        examples=[{"distribution": "poisson", "rate": "20/s"}],
        description="random start times of transfers that share the network",
    )

    @property
    def sizes(self) -> list[int] | None:
        """The sizes in packets as listed; None where a distribution gives them."""
        if isinstance(self.size, Distribution):
            return None
        return [self.size] if isinstance(self.size, int) else self.size

    @property
    def mean_size_pkts(self) -> float:
        """Mean size; of a distribution before rounding."""
        if isinstance(self.size, Distribution):
            return self.size.mean_value()
        sizes = [self.size] if isinstance(self.size, int) else self.size
        return sum(sizes) / len(sizes)

    @property
    def alone(self) -> bool:
        """Whether each is alone on the empty path."""
        return self.arrivals is None

    @property
    def at_once(self) -> int:
        """How many senders there are: one, or 0 where they come and go."""
        return int(self.alone)

    @property
    def total(self) -> int:
        """How many transfers of all sizes together, each alone."""
        return (self.count or 0) * len(self.sizes or [])

    @model_validator(mode="before")
    @classmethod
    def _fill_count(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and "arrivals" not in data:
            return {"count": 1000, **data}
        return data

    @model_validator(mode="after")
    def _check(self) -> Self:
        found = []
        sizes = self.sizes
        if sizes is None and self.alone:
            message = (
                'a distribution needs arrivals; write sizes such as ["1pkt", "8pkt"], or arrivals'
            )
            found.append(lack(message, "size"))
        if sizes is not None and len(set(sizes)) < len(sizes):
            twice = next(size for size in sizes if sizes.count(size) > 1)
            written = units.format_packets(twice)
            found.append(fault(f"{written} is listed twice; write each size once", "size"))
        if not self.alone and self.count is not None:
            message = "counts transfers that run each alone; with arrivals write run.transfers"
            found.append(fault(message, "count"))
        if self.total > MOST_TRANSFERS:
            message = f"{self.total} transfers in all; write at most {MOST_TRANSFERS} together"
            found.append(fault(message, "count"))
        if self.mean_size_pkts < 1:
            mean = units.format_packets(self.mean_size_pkts)
            found.append(fault(f"the mean size, {mean}, is below one packet; write more", "size"))
        if found:
            raise faults(found)
        return self


def _read_capture_name(value: object, info: ValidationInfo) -> str:
    """Read the name of a capture, which starts at the scenario's folder."""
    needs = 'write file = "slow.pcap"'
    if not isinstance(value, str) or not value or "\0" in value:
        raise UnitError(f"{units.show(value)} is not a file name; {needs}")
    path = (reading(info).folder or Path()) / value
    try:
        found = path.is_file()
    except OSError as error:
        raise UnitError(f"{path} cannot be read ({error}); {needs}") from None
    if not found:
        raise UnitError(f"there is no file {path}; {needs}")
    return str(path)


def _read_connection(value: object) -> int | str:
    if isinstance(value, str) and not value.strip():
        raise UnitError('is empty; write 0, or an end such as "10.0.0.1:5001", or "all"')
    if isinstance(value, str) and not value.strip().isdecimal():
        return value.strip()
    try:
        number = int(value) if isinstance(value, str) else value
        return units.parse_count(number, minimum=0, maximum=MOST_CONNECTIONS)
    except ValueError as error:
        raise UnitError(f'{error}, or an end such as "10.0.0.1:5001", or "all"') from None


Chosen = Annotated[
    int | str,
    PlainValidator(_read_connection),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": MOST_CONNECTIONS},
                {"type": "string", "pattern": r"\S"},
            ]
        }
    ),
]
"""Of a capture: the number of a connection, or ends of some."""


class Captured(Table):
    """Flows of a packet capture: what they did is measured, and models are fed with it.

    Network, TCP and run are what they were, so that a scenario of this kind has no such tables.
    """

    elsewhere: ClassVar[Mapping[str, str]] = {
        "flows": 'the capture has their number; write connection = "all"',
        "sources": 'the capture has their number; write connection = "all"',
        "size": "the capture has the sizes; leave it out",
        "count": "the capture has the number; leave it out",
    }

    kind: Literal["capture"]
    file: Annotated[str, BeforeValidator(_read_capture_name)] = Field(
        examples=["slow.pcap"], description="pcap or pcapng, relative to the scenario's folder"
    )
    connection: Chosen | None = Field(
        default=None,
        examples=[3],
        description=(
            'number as in `tcpcast trace --csv`, an end ("10.0.0.1:5001"), both ends ("10.0.0.1 >'
            ' 10.0.0.2"), or "all"; default the direction with the most data'
        ),
    )

    @property
    def declared(self) -> int:
        """No sender is asked for."""
        return 0

    @property
    def count(self) -> int:
        """The same as ``declared``: the capture knows how many flows there are."""
        return 0


def _kind_named(value: object) -> object:
    if not isinstance(value, Mapping):
        return value
    if "kind" not in value:
        message = 'missing; write kind = "on-off", "bulk", "transfers" or "capture"'
        raise faults([lack(message, "kind")])
    try:
        return {**value, "kind": choice("kind of traffic", KINDS)(value["kind"])}
    except ValueError as error:
        raise faults([fault(str(error), "kind")]) from None


Traffic = Annotated[
    OnOff | Bulk | Transfers | Captured,
    Field(discriminator="kind"),
    BeforeValidator(_kind_named),
]
