"""The table of the engine ``mean-field``: how many sources stand for all."""

from typing import Annotated

from pydantic import Field

from tcpcast.scenario.quantities import counted
from tcpcast.scenario.table import Table

FEWEST_FLOWS = 100
MOST_FLOWS = 1_000_000
FLOWS = 5000


class MeanField(Table):
    """How many sources the engine ``mean-field`` simulates, each of which stands for many."""

    flows: Annotated[int, *counted(FEWEST_FLOWS, MOST_FLOWS)] = Field(
        default=FLOWS,
        examples=[10_000],
        description="simulated sources; more take longer and have smaller errors",
    )
