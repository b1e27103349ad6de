"""Active queue management: CoDel, FQ-CoDel and PIE, which may mark; and head-drop."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, StrictBool, model_validator

from tcpcast.scenario.quantities import Bytes, PositiveDuration, counted
from tcpcast.scenario.table import Table, choice, fault, faults

MOST_QUANTUM = 10**9
MOST_FLOWS = 1 << 20
_MOST_GAIN = 1e6
_RULES = ("rfc", "linux")

MARKS = "mark packets of stacks with tcp.ecn = true instead of dropping them"

Rules = Annotated[Literal["rfc", "linux"], BeforeValidator(choice("set of rules", _RULES))]


class HeadDrop(Table):
    """First in, first out: a packet that finds the buffer full pushes out the oldest that waits."""

    kind: Literal["head-drop"] = Field(description="name of the discipline")


class Codel(Table):
    """Controlled delay (RFC 8289)."""

    kind: Literal["codel"] = Field(description="name of the discipline")
    target: PositiveDuration = Field(
        default=0.005, examples=["5ms"], description="acceptable standing queueing delay"
    )
    interval: PositiveDuration = Field(
        default=0.1,
        examples=["100ms"],
        description="time above target before the first drop; about the longest RTT",
    )
    ecn: StrictBool = Field(default=True, examples=[False], description=MARKS)
    ce_threshold: PositiveDuration | None = Field(
        default=None,
        examples=["1ms"],
        description="delay above which every ECN-capable packet is marked, for DCTCP",
    )
    rules: Rules = Field(
        default="rfc",
        examples=["linux"],
        description="pseudo-code of RFC 8289, or Linux's codel_impl.h",
    )


class FqCodel(Codel):
    """Flow queueing with CoDel (RFC 8290): a queue for each flow, new flows first."""

    kind: Literal["fq_codel"] = Field(description="name of the discipline")  # type: ignore[assignment]
    quantum: Bytes = Field(default=1514, examples=["300B"], description="bytes per flow and turn")
    flows: Annotated[int, *counted(1, MOST_FLOWS)] = Field(
        default=1024,
        examples=[4096],
        description="number of queues that flows are hashed to",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not 0 < self.quantum <= MOST_QUANTUM:
            raise faults([fault('out of range; write "1514B"', "quantum")])
        return self


def _gain(value: object) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= float(str(value)) <= _MOST_GAIN:
        raise ValueError(f"{value!r} is no gain; write a number such as 0.125")
    return float(str(value))


Gain = Annotated[float, BeforeValidator(_gain)]


class Pie(Table):
    """Proportional integral controller enhanced (RFC 8033)."""

    kind: Literal["pie"] = Field(description="name of the discipline")
    target: PositiveDuration = Field(
        default=0.015, examples=["20ms"], description="target queueing delay, QDELAY_REF"
    )
    update: PositiveDuration = Field(
        default=0.015,
        examples=["16ms"],
        description="update interval of the drop probability, T_UPDATE",
    )
    burst: PositiveDuration = Field(
        default=0.15, examples=["150ms"], description="maximum burst without drops, MAX_BURST"
    )
    alpha: Gain = Field(
        default=0.125,
        examples=[0.125],
        description="change of probability per second of delay above target",
    )
    beta: Gain = Field(
        default=1.25,
        examples=[1.25],
        description="change of probability per second of growth in delay",
    )
    ecn: StrictBool = Field(
        default=True,
        examples=[False],
        description=f"{MARKS}, up to a drop probability of 10 % (RFC 8033, section 5.1)",
    )
    rules: Rules = Field(
        default="rfc",
        examples=["linux"],
        description="pseudo-code of RFC 8033, or Linux's sch_pie.c",
    )


ManagedQueue = Codel | FqCodel | Pie | HeadDrop
"""A discipline that may drop or mark what it holds."""

AQM_TABLES: dict[str, type[Table]] = {
    "codel": Codel,
    "fq_codel": FqCodel,
    "pie": Pie,
    "head-drop": HeadDrop,
}
