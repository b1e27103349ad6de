"""The return path as a link with a separate rate and buffer."""

import math

from pydantic import Field

from tcpcast.scenario.aqm import AQM_TABLES
from tcpcast.scenario.link import UNLIMITED, BufferSize
from tcpcast.scenario.quantities import Rate
from tcpcast.scenario.queue import FairQueue, Queue, Red, add_queue_words_to_schema
from tcpcast.scenario.table import Errors, Table, make_error_at

RETURN = "return"
"""Name of the return link as a hop of cross traffic."""


class ReturnLink(Table):
    """The link that the ACKs of all sources share, instead of a return path without a queue."""

    rate: Rate = Field(examples=["1mbit"], description="rate in IP bytes")
    buffer: BufferSize = Field(
        default=UNLIMITED,
        examples=["50pkt"],
        description="buffer limit in acks, including the ack in transmission",
    )
    queue: Queue = Field(
        default="droptail", examples=["codel"], json_schema_extra=add_queue_words_to_schema
    )

    @property
    def rate_bps(self) -> float:
        """Rate in bit/s."""
        return self.rate

    @property
    def varying(self) -> None:
        """None: the rate is constant."""

    @property
    def is_policer(self) -> bool:
        """False: the link queues packets instead of policing them."""
        return False

    def _find_errors(self) -> Errors:
        if math.isinf(self.rate):
            message = (
                'with an unlimited rate, no ack waits in a queue; use rate = "1mbit", or remove '
                "the table [network.return]"
            )
            yield make_error_at(message, "rate")
        if isinstance(self.queue, Red | FairQueue):
            *first, last = (f'"{name}"' for name in ("droptail", *AQM_TABLES))
            kinds = f"{', '.join(first)} or {last}"
            yield make_error_at(
                f"{self.queue.kind} is not available for acks; use {kinds}", "queue"
            )
