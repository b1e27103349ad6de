"""The traffic: on/off sources that send files, or bulk flows that never end."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from tcpcast.scenario import units
from tcpcast.scenario.empirical import Empirical
from tcpcast.scenario.laws import (
    Constant,
    Exponential,
    ExponentialPareto,
    Law,
    Lognormal,
    Pareto,
    TwoExponentials,
    Uniform,
)
from tcpcast.scenario.quantities import Duration, Size, counted
from tcpcast.scenario.table import Table, choice, fault, faults, not_a_word
from tcpcast.scenario.toml import write_value

MOST_SOURCES = 10_000_000

LAWS = (
    "exponential",
    "ep",
    "ee",
    "lognormal",
    "pareto",
    "constant",
    "uniform",
    "empirical",
)
KINDS = ("on-off", "bulk")
_KINDS_LATER = ("transfers", "capture")

Count = Annotated[int, *counted(1, MOST_SOURCES)]


def _law_named(example: Mapping[str, str]) -> Callable[[object], object]:
    """Return a validator that says what is wrong with the choice of a law."""

    def check(value: object) -> object:
        if isinstance(value, Law):
            return value
        if not isinstance(value, Mapping):
            constant = {"law": "constant", "value": value}
            written = write_value(constant if isinstance(value, str) else example)
            raise ValueError(f"{units.show(value)} is not a law; write {written}")
        law = value.get("law")
        if law is None:
            raise faults([fault(f'missing; write law = "{example["law"]}"', "law")])
        if law not in LAWS:
            raise faults([fault(not_a_word("law", law, LAWS), "law")])
        return value

    return check


_SIZE_EXAMPLE = {"law": "exponential", "mean": "12pkt", "minimum": "3pkt"}
_TIME_EXAMPLE = {"law": "exponential", "mean": "1s"}

SizeLaw = Annotated[
    Exponential[Size]
    | ExponentialPareto[Size]
    | TwoExponentials[Size]
    | Lognormal[Size]
    | Pareto[Size]
    | Constant[Size]
    | Uniform[Size]
    | Empirical[Size],
    Field(discriminator="law"),
    BeforeValidator(_law_named(_SIZE_EXAMPLE)),
]
TimeLaw = Annotated[
    Exponential[Duration]
    | ExponentialPareto[Duration]
    | TwoExponentials[Duration]
    | Lognormal[Duration]
    | Pareto[Duration]
    | Constant[Duration]
    | Uniform[Duration]
    | Empirical[Duration],
    Field(discriminator="law"),
    BeforeValidator(_law_named(_TIME_EXAMPLE)),
]


class OnOff(Table):
    """Sources that are silent for an OFF time, send a file, and are silent again.

    They start silent, with a fresh OFF time; each file is a new connection.
    """

    later: ClassVar[Mapping[str, str]] = {
        "arrivals": 'write kind = "on-off" with a number of sources instead',
    }

    kind: Literal["on-off"]
    declared: Count | None = Field(default=None, alias="sources", examples=[134])
    off: TimeLaw = Field(examples=[_TIME_EXAMPLE], description="law of the OFF times")
    size: SizeLaw = Field(examples=[_SIZE_EXAMPLE], description="law of the file sizes")
    connection: Annotated[
        Literal["new"], BeforeValidator(choice("kind of connection", ("new",), ("persistent",)))
    ] = "new"

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
        if found:
            raise faults(found)
        return self


def _kind_of_start(value: object) -> str:
    if isinstance(value, str):
        return "a-rule"
    return "a-list" if isinstance(value, list | tuple) else "a-law"


Start = Annotated[
    Annotated[TimeLaw, Tag("a-law")]
    | Annotated[list[Duration], Tag("a-list")]
    | Annotated[Literal["within-rtt"], Tag("a-rule")],
    Discriminator(_kind_of_start),
]


class Bulk(Table):
    """Flows that always have data to send.

    ``start`` is a law of start times, a list with one time for each flow, or ``"within-rtt"``:
    uniformly within one round-trip time.
    """

    later: ClassVar[Mapping[str, str]] = OnOff.later

    kind: Literal["bulk"]
    declared: Count | None = Field(default=None, alias="flows", examples=[10])
    start_rule: Start = Field(
        default="within-rtt",
        alias="start",
        examples=[{"law": "uniform", "low": "0s", "high": "1s"}],
        description="a law, a time for each flow, or within-rtt: uniformly within one RTT",
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
    def start(self) -> Law[Any] | list[float] | None:
        """Law of start times, times in seconds, or None: uniformly within one RTT."""
        return None if isinstance(self.start_rule, str) else self.start_rule


def _kind_named(value: object) -> object:
    if not isinstance(value, Mapping):
        return value
    if "kind" not in value:
        raise faults([fault('missing; write kind = "on-off" or kind = "bulk"', "kind")])
    try:
        return {**value, "kind": choice("kind of traffic", KINDS, _KINDS_LATER)(value["kind"])}
    except ValueError as error:
        raise faults([fault(str(error), "kind")]) from None


Traffic = Annotated[
    OnOff | Bulk,
    Field(discriminator="kind"),
    BeforeValidator(_kind_named),
]
