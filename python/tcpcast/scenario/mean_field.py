"""Table ``[mean_field]``: number of simulated sources of the ``mean-field`` engine."""

from typing import Annotated

from pydantic import Field

from tcpcast.scenario.quantities import integer_annotation
from tcpcast.scenario.table import Table

MIN_FLOWS = 100
MAX_FLOWS = 1_000_000
DEFAULT_FLOWS = 5000


class MeanField(Table):
    """Number of sources that the ``mean-field`` engine simulates; each represents many sources."""

    flows: Annotated[int, *integer_annotation(MIN_FLOWS, MAX_FLOWS)] = Field(
        default=DEFAULT_FLOWS,
        examples=[10_000],
        description="number of simulated sources; more sources take longer, but reduce errors",
    )
