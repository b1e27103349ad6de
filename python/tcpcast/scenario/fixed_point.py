"""Fixed points: what engine ``fixed-point`` is asked beside the scenario."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StrictBool

from tcpcast.scenario.quantities import PositiveDuration, Ratio, counted
from tcpcast.scenario.table import Table

SCHEMES = (0, 1, 2)


def _read_scheme(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value in SCHEMES:
        return value
    raise ValueError(f"{value!r} is not a scheme; write 0, 1 or 2")


class FixedPoint(Table):
    """A few flows followed exactly among cross flows made of what was measured on them.

    ``scheme`` and ``conditional`` are those of INRIA report 4154, section 5.3. Cross flows go by
    distributions measured on the reference flows, of which ``moments`` are kept. Of each class
    ``references`` flows are followed, at most a tenth of it; the report has 1. ``steps`` iterations
    of length ``step`` come before the measurement; ``tolerance`` is the largest difference that
    passes for none.
    """

    scheme: Annotated[Literal[0, 1, 2], BeforeValidator(_read_scheme)] = Field(
        default=2,
        examples=[2],
        description="model of cross flows: 0, independent times between packets; 1, the same with "
        "delays that limit a flow's packets in the shared router; 2, window flow control with "
        "measured service times",
    )
    conditional: StrictBool = Field(
        default=False,
        examples=[True],
        description="group measurements by the number of active flows (eighths of an octave)",
    )
    moments: Annotated[int, *counted(1, 2)] = Field(
        default=2,
        examples=[1],
        description="moments of the measured times: 1 exponential, 2 lognormal",
    )
    references: Annotated[int, *counted(1, 10**6)] = Field(
        default=100,
        examples=[1],
        description="reference flows per class, at most a tenth of it; 1 in the report",
    )
    steps: Annotated[int, *counted(2, 1000)] = Field(
        default=16, examples=[24], description="iterations before the measurement"
    )
    step: PositiveDuration = Field(
        default=30.0, examples=["60s"], description="duration of an iteration"
    )
    tolerance: Ratio = Field(
        default=0.05,
        examples=["5%"],
        description="tolerated difference of rates and times; twice that for queues and losses",
    )
