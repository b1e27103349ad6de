"""Queue disciplines of a link: drop-tail, random early detection (RED), fair queueing.

The others are in :mod:`.aqm`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Union

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    StrictBool,
    Tag,
    model_validator,
)

from tcpcast.process.errors import UnitError
from tcpcast.quantity import units
from tcpcast.scenario.aqm import AQM_TABLES, MAX_QUANTUM, ManagedQueue
from tcpcast.scenario.quantities import (
    Bytes,
    PositiveDuration,
    Ratio,
    number_annotation,
    words_annotation,
)
from tcpcast.scenario.table import (
    Choice,
    Errors,
    Table,
    choice_validator,
    make_error_at,
)

AUTOMATIC = "automatic"
_DISCIPLINES = ("droptail", "red", "fq", *AQM_TABLES)

_MAX_THRESHOLD = 1e9
_MIN_THRESHOLD_PKTS = 5.0
_MIN_RTT_S = 0.1


def _read_threshold(value: object) -> float:
    if not isinstance(value, str) or not value.strip().endswith("pkt"):
        raise UnitError(f'{units.quote(value)} is not a threshold; use a size such as "15pkt"')
    packets = units.parse_packets(value)
    if not 0 < packets <= _MAX_THRESHOLD:
        raise UnitError(f'{units.quote(value)} is out of range; use a size such as "15pkt"')
    return packets


Threshold = Annotated[
    float | str,
    *words_annotation(
        _read_threshold,
        units.format_packets,
        {
            "type": "string",
            "pattern": rf"^\s*\+?{units.NUMBER}\s*pkt\s*$",
            "examples": ["15pkt"],
        },
        AUTOMATIC,
    ),
]

_WEIGHT: Any = number_annotation("weight", 0, 1, example=0.002, above_low=True)
Weight = Annotated[
    float | str, *words_annotation(_WEIGHT[0].func, float, _WEIGHT[1].json_schema, AUTOMATIC)
]


@dataclass(frozen=True, slots=True)
class RedParameters:
    """RED with numeric parameters; thresholds are in queued packets."""

    min_threshold_pkts: float
    max_threshold_pkts: float
    max_probability: float
    weight: float
    gentle: bool
    adaptive: bool
    rules: Literal["ns-2", "linux"]
    packets_per_second: float


class Red(Table):
    """Random early detection (Floyd and Jacobson 1993) as in ns-2 2.35.

    ``"automatic"`` values are computed from the link, as in ns-2 if ``thresh_``, ``maxthresh_``
    and ``q_weight_`` are not set.
    """

    label: ClassVar[str] = "RED"
    kind: Literal["red"] = Field(description="name of the discipline")
    min_threshold: Threshold = Field(
        default=AUTOMATIC,
        examples=["5pkt"],
        description="mean queue below which no packet is dropped early",
    )
    max_threshold: Threshold = Field(
        default=AUTOMATIC,
        examples=["15pkt"],
        description="mean queue at which packets are dropped early with max_probability",
    )
    max_probability: Ratio = Field(
        default=0.1, examples=["10%"], description="probability of an early drop at max_threshold"
    )
    weight: Weight = Field(
        default=AUTOMATIC,
        examples=[0.002],
        description="weight of a new sample in the mean queue",
    )
    gentle: StrictBool = Field(
        default=True,
        examples=[True],
        description="above max_threshold, raise the drop probability gradually, up to 1 at twice "
        "max_threshold",
    )
    adaptive: StrictBool = Field(
        default=False,
        examples=[True],
        description="twice a second, adapt the probability so that the mean queue stays midway "
        "between the thresholds",
    )
    rules: Annotated[Literal["ns-2", "linux"], Choice("set of rules")] = Field(
        default="ns-2",
        examples=["linux"],
        description='"linux": the mean queue counts bytes, and at a probability p, early drops are '
        "1 to 1/p packets apart; requires gentle = false",
    )
    target_delay: PositiveDuration = Field(
        default=0.005,
        examples=["5ms"],
        description="target queueing delay of the automatic thresholds",
    )
    ecn: StrictBool | None = Field(
        default=None,
        examples=[False],
        description=("mark packets of stacks with tcp.ecn while the drop probability is below 1"),
    )

    def _find_errors(self) -> Errors:
        if self.max_probability == 0:
            message = 'must be above 0, otherwise RED never drops early; use "10%", for example'
            yield make_error_at(message, "max_probability")
        if self.rules == "linux" and self.gentle:
            yield make_error_at(
                'rules = "linux" requires gentle = false; use gentle = false', "gentle"
            )

    def parameters(self, *, packets_per_second: float, delay_s: float) -> RedParameters:
        """Return all parameters as numbers.

        The defaults follow ``REDQueue::initialize_params`` in ns-2 2.35 (queue/red.cc). With
        C packets per second, they are ``min_th = max(5, target_delay C / 2)``, ``max_th = 3
        min_th`` and ``w = 1 - exp(-1 / (10 R C))``. The estimated round-trip time is ``R = max(0.1
        s, 3 (delay + 1/C))``.

        Parameters
        ----------
        packets_per_second
            Rate of the link, above 0 and finite.
        delay_s
            One-way propagation delay of the link.
        """
        low, high, weight = self.min_threshold, self.max_threshold, self.weight
        if isinstance(low, str):
            low = max(_MIN_THRESHOLD_PKTS, self.target_delay * packets_per_second / 2)
        if isinstance(high, str):
            high = 3 * low
        if isinstance(weight, str):
            round_trip_s = max(_MIN_RTT_S, 3 * (delay_s + 1 / packets_per_second))
            weight = -math.expm1(-1 / (10 * round_trip_s * packets_per_second))
        return RedParameters(
            min_threshold_pkts=low,
            max_threshold_pkts=high,
            max_probability=self.max_probability,
            weight=weight,
            gentle=self.gentle,
            adaptive=self.adaptive,
            rules=self.rules,
            packets_per_second=packets_per_second,
        )


class FairQueue(Table):
    """Fair queueing: one queue per active flow, served in turn.

    ``"round-robin"`` sends one packet of each flow in turn. ``"drr"`` is deficit round robin by
    bytes (Shreedhar and Varghese 1995): each turn adds ``quantum`` bytes to the credit of a flow,
    which keeps unused credit while it has packets.
    """

    label: ClassVar[str] = "FQ"
    kind: Literal["fq"] = Field(description="name of the discipline")
    scheduler: Annotated[Literal["round-robin", "drr"], Choice("scheduler")] = Field(
        default="round-robin",
        examples=["drr"],
        description="round robin by packets, or deficit round robin by bytes",
    )
    quantum: Bytes | None = Field(
        default=None,
        examples=["3000B"],
        description="credit per turn with drr; default: one packet",
    )
    buffers: Annotated[
        Literal["shared", "individual"],
        Choice("kind of buffers"),
    ] = Field(
        default="shared",
        examples=["individual"],
        description="one buffer for all flows, or one per flow",
    )
    drop: Annotated[
        Literal["longest", "longest-head", "arriving"],
        Choice("drop"),
    ] = Field(
        default="longest",
        examples=["arriving"],
        description=(
            "packet that a full shared buffer drops: the last or first of the longest queue, or "
            "the arriving packet"
        ),
    )
    ties: (
        Annotated[
            Literal["latest", "random"],
            Choice("rule for ties"),
        ]
        | None
    ) = Field(
        default=None,
        examples=["random"],
        description=(
            "which of equally long queues loses a packet: the one with the latest arrival (the "
            "default), or a random one (the default of max-plus-reno)"
        ),
    )

    head_of_line: (
        Annotated[
            Literal["in buffer", "in service"],
            Choice("place of the first packet of each flow"),
        ]
        | None
    ) = Field(
        default=None,
        examples=["in service"],
        description=(
            'whether the first packet of each flow occupies the buffer (the default); "in '
            'service" requires max-plus-reno'
        ),
    )

    @model_validator(mode="before")
    @classmethod
    def _set_default_drop(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and data.get("buffers") == "individual":
            return {"drop": "arriving", **data}
        return data

    def _find_errors(self) -> Errors:
        if self.quantum is not None and self.scheduler != "drr":
            message = 'requires scheduler = "drr"; use this scheduler, or remove quantum'
            yield make_error_at(message, "quantum")
        if self.quantum is not None and self.quantum > MAX_QUANTUM:
            message = f'is too large; use at most "{units.format_bytes(MAX_QUANTUM)}"'
            yield make_error_at(message, "quantum")
        if self.drop != "arriving" and self.buffers == "individual":
            message = (
                'requires buffers = "shared", because per-flow buffers drop the arriving packet; '
                "remove drop"
            )
            yield make_error_at(message, "drop")
        if self.ties not in (None, "latest") and self.drop == "arriving":
            message = (
                "selects one of several equally long queues, but this drop policy does not "
                'need the longest queue; use drop = "longest" or "longest-head", or remove '
                "ties"
            )
            yield make_error_at(message, "ties")


_TABLES: dict[str, type[Table]] = {"red": Red, "fq": FairQueue, **AQM_TABLES}


def _has_required_keys(name: str) -> bool:
    fields = _TABLES[name].model_fields if name in _TABLES else {}
    return any(field.is_required() for key, field in fields.items() if key != "kind")


QUEUE_NAMES = tuple(name for name in _DISCIPLINES if not _has_required_keys(name))
"""Disciplines that can be given by name alone, because all keys of their tables have defaults."""


def _read_queue(value: object) -> object:
    """Convert a name such as ``"red"`` to a table, and a drop-tail table to ``"droptail"``."""
    if isinstance(value, Red | FairQueue | ManagedQueue):
        return value
    if isinstance(value, Mapping):
        # A list rather than a set, because the value may not be hashable.
        if value.get("kind") in list(_TABLES):
            return value
        if "kind" not in value:
            raise UnitError('the key kind is missing; use kind = "codel", for example')
        if len(value) > 1 and value["kind"] in list(_DISCIPLINES):
            raise UnitError(f'{value["kind"]} has no keys; use queue = "{value["kind"]}"')
        value = value["kind"]
    name = choice_validator("queue discipline", _DISCIPLINES)(value)
    return {"kind": name} if name in _TABLES else name


def _get_queue_kind(value: object) -> str:
    if isinstance(value, Mapping):
        return str(value["kind"])
    return value.kind if isinstance(value, Red | FairQueue | ManagedQueue) else "droptail"


def add_queue_words_to_schema(schema: dict[str, Any]) -> None:
    """Add the names of disciplines, and drop-tail as a table, to the JSON Schema."""
    tables = [part for part in schema.pop("oneOf") if "$ref" in part]
    droptail = {
        "type": "object",
        "properties": {"kind": {"const": "droptail"}},
        "required": ["kind"],
        "additionalProperties": False,
    }
    schema["anyOf"] = [{"enum": list(QUEUE_NAMES)}, droptail, *tables]


if TYPE_CHECKING:
    _QueueTable = Red | FairQueue | ManagedQueue
else:
    _tagged_tables = tuple(Annotated[table, Tag(kind)] for kind, table in _TABLES.items())
    _QueueTable = Union[_tagged_tables]  # noqa: UP007 - of a tuple

Queue = Annotated[
    Annotated[Literal["droptail"], Tag("droptail")] | _QueueTable,
    Discriminator(_get_queue_kind),
    BeforeValidator(_read_queue),
]
"""``"droptail"``, RED, fair queueing, or active queue management."""
