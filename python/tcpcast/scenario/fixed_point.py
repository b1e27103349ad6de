"""Fixed points: what engine ``fixed-point`` is asked beside the scenario."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StrictBool

from tcpcast.scenario.quantities import PositiveDuration, Ratio, counted
from tcpcast.scenario.table import Table, choice

SCHEMES = (0, 1, 2)


def _read_scheme(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value in SCHEMES:
        return value
    raise ValueError(f"{value!r} is not a scheme; write 0, 1 or 2")


class FixedPoint(Table):
    """A few flows followed exactly among cross flows made of what was measured on them.

    ``scheme`` and ``conditional`` are those of INRIA report 4154, section 5.3. ``departures`` says
    when a packet of a cross flow has left the shared router, in scheme 2: after service times
    drawn from the law that was measured, as in the report, or when the router did serve it.
    ``moments`` of that law are kept. Of each class ``references`` flows are followed, at most a
    tenth of it; the report has 1. ``steps`` iterations of length ``step`` come before the
    measurement; ``tolerance`` is the largest difference that passes for none.
    """

    scheme: Annotated[Literal[0, 1, 2], BeforeValidator(_read_scheme)] = 2
    conditional: StrictBool = False
    departures: Annotated[
        Literal["sampled", "served"],
        BeforeValidator(choice("kind of departures", ("sampled", "served"))),
    ] = "sampled"
    moments: Annotated[int, *counted(1, 2)] = 2
    references: Annotated[int, *counted(1, 10**6)] = 100
    steps: Annotated[int, *counted(2, 1000)] = 16
    step: PositiveDuration = Field(default=30.0, examples=["30s"])
    tolerance: Ratio = Field(default=0.05, examples=["5%"])

    @property
    def step_s(self) -> float:
        """Length of an iteration in seconds."""
        return self.step
