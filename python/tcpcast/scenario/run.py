"""The run: how long, how often, from which seed; and what is watched on the way."""

import itertools
import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from tcpcast import units
from tcpcast.metrics import METRICS
from tcpcast.scenario.quantities import (
    RATIO_SCHEMA,
    TIME_SCHEMA,
    PositiveDuration,
    Ratio,
    RunTime,
    Size,
    TimeLimit,
    counted,
)
from tcpcast.scenario.table import Table, choice, fault, faults, not_a_word, reading

PRECISION_METRICS = tuple(name for name, row in METRICS.items() if row.has_precision)
"""Metrics with an interval, so that a precision can be asked of them."""

MAX_TRANSFERS = 10**12
MOST_LEAST = 10**9
MOST_SEED = 2**63 - 1
LEAST_PRECISION = 2.0**-52
"""Relative width of an interval below which it lies between two neighbouring figures."""
_LINKS = ("sender", "bottleneck-in", "bottleneck-out", "receiver")


def _read_warmup(value: object) -> float | str:
    if value == "mser-5":
        return "mser-5"
    try:
        return units.parse_duration(value, example="10s")
    except ValueError as error:
        raise ValueError(f'{error}, or "mser-5" to find it from the queue') from None


def _write_warmup(value: float | str) -> str:
    return value if isinstance(value, str) else units.format_duration(value)


def _read_precision(value: object, info: ValidationInfo) -> object:
    """Turn a bare ``"1%"`` into that precision of the scenario's main metric."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        return {reading(info).precision_metric: _read_relative_width(value)}
    if not value:
        raise ValueError('names no metric; write "1%", or { loss_ratio = "5%" }')
    found = [
        fault(not_a_word("metric", name, PRECISION_METRICS), str(name))
        for name in value
        if name not in PRECISION_METRICS
    ]
    if found:
        raise faults(found)
    return dict(value)


def _read_relative_width(value: object) -> float:
    ratio = units.parse_ratio(value)
    if ratio < LEAST_PRECISION:
        raise ValueError(
            f'{units.show(value)} can never be reached: figures have 16 digits; write "1%"'
        )
    return ratio


def _at_most_one_length(schema: dict[str, Any]) -> None:
    schema["not"] = {"required": ["transfers", "duration"]}


WarmUp = Annotated[
    float | Literal["mser-5"],
    PlainValidator(_read_warmup),
    PlainSerializer(_write_warmup, return_type=str),
    WithJsonSchema({"anyOf": [TIME_SCHEMA, {"enum": [0, "mser-5"]}]}),
]

Precision = Annotated[
    dict[str, Annotated[Ratio, BeforeValidator(_read_relative_width)]] | None,
    BeforeValidator(_read_precision),
    WithJsonSchema(
        {
            "anyOf": [
                RATIO_SCHEMA,
                {
                    "type": "object",
                    "propertyNames": {"enum": list(PRECISION_METRICS)},
                    "additionalProperties": RATIO_SCHEMA,
                    "minProperties": 1,
                },
            ]
        }
    ),
]


def _rising(times: list[float]) -> list[float]:
    if any(later <= time for time, later in itertools.pairwise(times)):
        raise ValueError('are not in rising order; write ["100ms", "200ms"], each time once')
    return times


ReportTimes = Annotated[
    list[PositiveDuration],
    Field(min_length=1, max_length=1000),
    AfterValidator(_rising),
]


class Run(Table):
    """How long each replication lasts, how many there are, and from which seed.

    ``transfers`` counts transfers completed after the warm-up; ``duration`` is the time
    simulated, the warm-up included. Either is per replication. Transfers that are each alone need
    neither: they end by themselves, and have nothing to warm up.
    """

    model_config = ConfigDict(json_schema_extra=_at_most_one_length)

    elsewhere: ClassVar[Mapping[str, str]] = {"connections": "unknown key; write run.transfers"}

    transfers: Annotated[int, *counted(1, MAX_TRANSFERS)] | None = Field(
        default=None,
        examples=[200000],
        description="transfers completed after the warm-up, per replication",
    )
    duration: RunTime | None = Field(
        default=None,
        examples=["300s"],
        description="simulated time per replication, with warm-up",
    )
    warmup: WarmUp = Field(
        default="mser-5",
        examples=["20s"],
        description=("end of the warm-up; mser-5 detects it from the queue"),
    )
    replications: Annotated[int, *counted(1, 100_000)] = Field(
        default=1, examples=[4], description=("independent runs; with 1, intervals use batch means")
    )
    seed: Annotated[int, *counted(0, MOST_SEED)] = Field(default=1, examples=[1])
    precision: Precision = Field(
        default=None,
        examples=["1%"],
        description=(
            "extend the run until the half width of 95 % intervals is this share of the value"
        ),
    )
    max_wall: TimeLimit = Field(
        default=math.inf,
        examples=["60s"],
        description="wall-clock limit per engine, or for a complete plan",
    )

    report_at: ReportTimes | None = Field(
        default=None,
        examples=[["100ms", "1s"]],
        description="times after the start of bulk flows for the table delivered",
    )

    @property
    def duration_s(self) -> float | None:
        """Simulated time of a replication, warm-up included; None when transfers are counted."""
        return self.duration

    @property
    def warmup_s(self) -> float | None:
        """Time left out at the start; None: found by MSER-5 from the queue and the classes."""
        return None if isinstance(self.warmup, str) else self.warmup

    @property
    def max_wall_s(self) -> float | None:
        """Time on the clock after which the answer may be partial; None for no limit."""
        return None if math.isinf(self.max_wall) else self.max_wall

    @model_validator(mode="before")
    @classmethod
    def _fill_warmup(cls, data: Any, info: ValidationInfo) -> Any:
        if isinstance(data, Mapping) and reading(info).ends_by_itself:
            return {"warmup": "0s", **data}
        return data

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Self:
        if reading(info).ends_by_itself:
            return self._check_of_transfers()
        if self.transfers is None and self.duration is None:
            message = 'missing; write duration = "300s", or transfers = 200000'
            raise faults([fault(message, "duration")])
        if self.transfers is not None and self.duration is not None:
            message = "transfers and duration are both given; write one of them"
            raise faults([fault(message, "duration")])
        if self.duration is not None and (self.warmup_s or 0) >= self.duration:
            message = (
                f"{units.format_duration(self.warmup_s or 0)} leaves nothing of the duration, "
                f"{units.format_duration(self.duration)}; write a shorter warmup"
            )
            raise faults([fault(message, "warmup")])
        return self

    def _check_of_transfers(self) -> Self:
        ends = "transfers that run each alone end by themselves"
        found = [
            fault(f"{ends}; leave it out (traffic.count says how many), or write arrivals", name)
            for name in ("transfers", "duration")
            if getattr(self, name) is not None
        ]
        if self.warmup_s != 0:
            message = "transfers that run each alone have nothing to warm up; leave it out"
            found.append(fault(message, "warmup"))
        if found:
            raise faults(found)
        return self


class PacketCapture(Table):
    """A pcap file of the packets at one place; at most ``packets`` of them."""

    link: Annotated[
        Literal["sender", "bottleneck-in", "bottleneck-out", "receiver"],
        BeforeValidator(choice("place to capture", _LINKS)),
    ] = Field(examples=["bottleneck-in"])
    file: Annotated[str, Field(min_length=1, max_length=4096)] = Field(
        examples=["in.pcap"],
        description="where to write it, in or below the scenario's folder",
    )
    packets: Annotated[int, *counted(1, 10**9)] = 1_000_000


def _read_share(value: object) -> float:
    share = float(value) if isinstance(value, int | float) else units.parse_ratio(value)
    if not 0 < share < 1:
        raise ValueError(f'{units.show(value)} is no share of the files; write "95%", or 0.95')
    return share


Share = Annotated[
    Ratio,
    RunTime,
    BeforeValidator(_read_share),
    WithJsonSchema(RATIO_SCHEMA),
]


class Probes(Table):
    """What is recorded beside the figures: windows of chosen flows, packets at chosen places.

    And of the goodput of files, which a user feels: what some shares of the files exceed, and the
    probability of more over blocks of packets, files and large files.
    """

    flows: list[Annotated[int, *counted(0, 10**7 - 1)]] = Field(
        default=[], max_length=1000, examples=[[0, 1]]
    )
    pcap: list[PacketCapture] = Field(
        default=[], max_length=16, examples=[[{"link": "bottleneck-in", "file": "in.pcap"}]]
    )
    goodput_shares: list[Share] = Field(
        default=[0.95, 0.9, 0.8, 0.5],
        min_length=1,
        max_length=100,
        examples=[["95%", "50%"]],
        description="shares of files that reach the reported goodputs",
    )
    goodput_packets: Annotated[int, *counted(1, 10**6)] | None = Field(
        default=None,
        examples=[10],
        description="also report goodput per block of this many packets",
    )
    goodput_least: Size = Field(
        default=10,
        examples=["10pkt"],
        description="files above this size are large",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        shares = self.goodput_shares
        twice = next((share for share in shares if shares.count(share) > 1), None)
        if twice is not None:
            message = f"{units.format_ratio(twice)} is listed twice; write each share once"
            raise faults([fault(message, "goodput_shares")])
        if self.goodput_least > MOST_LEAST:
            written = units.format_packets(self.goodput_least)
            message = f'no file has more than {written}; write "10pkt"'
            raise faults([fault(message, "goodput_least")])
        return self
