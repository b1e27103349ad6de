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
        description="model of cross flows: independent times between packets (0); the same, with a "
        "limit for the packets of a flow in the shared router (1); or window flow "
        "control with measured service times (2)",
    )
    queue_rule: Annotated[
        Literal["delay", "cap", "fill"],
        Choice("rule"),
    ] = Field(
        default="delay",
        examples=["fill"],
        description="in scheme 1, the later packets that a delayed packet also delays: none "
        '("delay"), all ("cap"), or all except while the flow has fewer queued packets '
        'than a random number ("fill")',
    )
    conditional: StrictBool = Field(
        default=False,
        examples=[True],
        description=(
            "group measurements by the number of active flows; the group bounds grow by a factor "
            "of 2^(1/8)"
        ),
    )
    moments: Annotated[int, *integer_annotation(1, 2)] = Field(
        default=2,
        examples=[1],
        description=("fitted moments of the measured times: 1 (exponential) or 2 (lognormal)"),
    )
    references: Annotated[int, *integer_annotation(1, 10**6)] = Field(
        default=100,
        examples=[1],
        description="reference flows per class, at most a tenth of the class",
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
        description="tolerated relative difference of rates and times; for queues and losses, it "
        "is twice as large",
    )

    def _find_errors(self) -> Errors:
        if self.queue_rule != "delay" and self.scheme != 1:
            yield make_error_at("applies to scheme 1 only; remove this key", "queue_rule")
