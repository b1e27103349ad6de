"""Table ``[fixed_point]``: additional parameters of the ``fixed-point`` engine."""

from typing import Annotated, Literal

from pydantic import Field, StrictBool

from tcpcast.scenario.quantities import PositiveDuration, Ratio, integer_annotation
from tcpcast.scenario.table import (
    Choice,
    Errors,
    Table,
    make_error_at,
)


class FixedPoint(Table):
    """Parameters of the fixed point: reference flows simulated among synthetic cross flows.

    ``scheme`` and ``conditional`` are defined in INRIA report 4154, section 5.3. The cross flows
    follow distributions measured on the reference flows; only the first ``moments`` moments are
    fitted. Each class has ``references`` reference flows, at most 10 % of its flows; the report
    uses 1. ``steps`` iterations of length ``step`` precede the measurement. The fixed point has
    converged if the remaining differences are at most ``tolerance``.
    """

    scheme: Annotated[int, *integer_annotation(0, 2)] = Field(
        default=2,
        examples=[2],
        description="model of cross flows. 0: independent times between packets; 1: like 0, but "
        "packets are delayed while their flow has too many packets in the shared router; "
        "2: window flow control with measured service times",
    )
    queue_rule: Annotated[
        Literal["delay", "cap", "fill"],
        Choice("rule"),
    ] = Field(
        default="delay",
        examples=["fill"],
        description='for scheme 1: with "delay", a delayed packet does not delay later packets; '
        'with "cap", it delays all later packets; "fill" works like "cap", but a flow also sends '
        "while it has fewer queued packets than a random number",
    )
    conditional: StrictBool = Field(
        default=False,
        examples=[True],
        description=(
            "group measurements by the number of active flows; the bounds of the groups grow by a "
            "factor of 2^(1/8)"
        ),
    )
    moments: Annotated[int, *integer_annotation(1, 2)] = Field(
        default=2,
        examples=[1],
        description=(
            "number of moments of the measured times that are fitted: 1 (exponential) or "
            "2 (lognormal)"
        ),
    )
    references: Annotated[int, *integer_annotation(1, 10**6)] = Field(
        default=100,
        examples=[1],
        description="reference flows per class, at most a tenth of the flows of the class; the "
        "report of Baccelli, Hong and Liu uses 1",
    )
    steps: Annotated[int, *integer_annotation(2, 1000)] = Field(
        default=16, examples=[24], description="iterations before the measurement"
    )
    step: PositiveDuration = Field(
        default=30.0, examples=["60s"], description="duration of an iteration"
    )
    tolerance: Ratio = Field(
        default=0.05,
        examples=["5%"],
        description="tolerated relative difference of rates and times; for queues and "
        "losses, twice this value is tolerated",
    )

    def _find_errors(self) -> Errors:
        if self.queue_rule != "delay" and self.scheme != 1:
            yield make_error_at("applies to scheme 1 only; remove this key", "queue_rule")
