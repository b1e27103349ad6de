"""The return path: a link with a rate and a buffer of its own that all acks share."""

import math
from typing import Self

from pydantic import Field, model_validator

from tcpcast.scenario.aqm import AQM_TABLES
from tcpcast.scenario.link import UNLIMITED, BufferSize
from tcpcast.scenario.quantities import Rate
from tcpcast.scenario.queue import FairQueue, Queue, Red, queue_words
from tcpcast.scenario.table import Table, fault, faults

RETURN = "return"
"""What the return link is called where cross traffic names its hop."""


class ReturnLink(Table):
    """The link that the acks of all sources share, in place of the bottleneck the other way."""

    rate: Rate = Field(examples=["1mbit"], description="rate of IP bytes")
    buffer: BufferSize = Field(
        default=UNLIMITED,
        examples=["50pkt"],
        description="buffer limit in acks, with the one in transmission",
    )
    queue: Queue = Field(default="droptail", examples=["codel"], json_schema_extra=queue_words)

    @property
    def rate_bps(self) -> float:
        """The rate in bit/s."""
        return self.rate

    @property
    def varying(self) -> None:
        """Its rate is constant."""

    @property
    def polices(self) -> bool:
        """Whether it drops what exceeds its rate in place of queueing it: it does not."""
        return False

    @model_validator(mode="after")
    def _check(self) -> Self:
        found = []
        if math.isinf(self.rate):
            message = 'acks wait where there is a rate; write rate = "1mbit", or leave return out'
            found.append(fault(message, "rate"))
        if isinstance(self.queue, Red | FairQueue):
            *first, last = (f'"{name}"' for name in ("droptail", *AQM_TABLES))
            kinds = f"{', '.join(first)} or {last}"
            found.append(fault(f"{self.queue.kind} is not for acks; write {kinds}", "queue"))
        if found:
            raise faults(found)
        return self
