"""The paper's printed values, as data.

"The paper" in this package is J. Padhye, V. Firoiu, D. Towsley and J. Kurose, *Modeling TCP
throughput: a simple model and its empirical validation*, SIGCOMM 1998. Its Tables 2 and 3 are CSV
files in ``data`` with one line per trace and the digits as printed. Table 1 lists hosts and their
systems; ``table01.csv`` adds the rules of their TCP from section 4. The values in Figures 7 to 21
are not printed, and the W_max in the titles of Figures 7 to 17 is not in the text from which these
files were made.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from tcpcast.process.errors import DomainError

from tcpcast_papers.printed import Line, PublishedTable, printed_table, read_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

CITATION = (
    "J. Padhye, V. Firoiu, D. Towsley, J. Kurose: Modeling TCP throughput: a simple model and its "
    "empirical validation, SIGCOMM 1998"
)

TABLES: dict[int, str] = {2: "Summary data from 1hr traces", 3: "Summary data from 100s traces"}
"""Tables with numbers and the paper's captions."""

HOUR_S = 3600.0
"""Length of a trace of Table 2."""
CONNECTIONS, CONNECTION_S = 100, 100.0
"""Number and length of the connections in a row of Table 3."""
INTERVALS, INTERVAL_S = 36, 100.0
"""Number and length of the intervals of a trace of Table 2 (section 3)."""

PACKETS_PER_ACK = 2
"""b: the paper's receivers delay their acks (section 2)."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A row of Table 2 or 3.

    Attributes
    ----------
    line
        The row as printed.
    duration_s
        Total time in which its packets were counted.
    """

    line: Line
    duration_s: float

    @property
    def name(self) -> str:
        """Sender and receiver, as in the titles of the figures."""
        return f"{self.line['sender']} to {self.line['receiver']}"

    @property
    def sender(self) -> Line:
        """The sender's line of :func:`table_of_hosts`."""
        return table_of_hosts().line_with(host=self.line["sender"])

    @property
    def packets(self) -> int:
        """Packets sent, including retransmissions."""
        return int(self.line["packets_sent"])

    @property
    def loss_indications(self) -> int:
        """Triple duplicates and timeout sequences."""
        return int(self.line["loss_indications"])

    @property
    def td_plus_to(self) -> int:
        """Sum of the columns TD and TO, which differs from the loss indications in some rows."""
        return int(self.line["triple_duplicates"]) + int(self.line["timeouts"])

    @property
    def timeout_share(self) -> float:
        """Share of TO among TD and TO."""
        return int(self.line["timeouts"]) / self.td_plus_to

    @property
    def loss_indication_ratio(self) -> float:
        """The paper's p: loss indications per packet sent."""
        return self.loss_indications / self.packets

    @property
    def rtt_s(self) -> float:
        """Mean round-trip time by Karn's rule."""
        return self.line.value("rtt_s")

    @property
    def t0_s(self) -> float:
        """Mean duration of a "single" timeout."""
        return self.line.value("t0_s")


@cache
def table_of_hosts() -> PublishedTable:
    """Return Table 1: hosts and systems, with the rules of their TCP in section 4.

    ``duplicate_threshold`` duplicate acks indicate a loss, timeouts double up to
    ``longest_backoff`` times the first, and ``recovery`` is Reno's or Tahoe's.
    """
    return PublishedTable("Table 1", read_lines("tcpcast_papers.pftk", "table01.csv"))


@cache
def published_table(number: int) -> PublishedTable:
    """Return Table 2 or 3.

    Raises
    ------
    DomainError
        The paper has no such numeric table.
    """
    return printed_table("tcpcast_papers.pftk", TABLES, number)


def traces(number: int) -> tuple[Trace, ...]:
    """Return the rows of Table 2 (hours) or 3 (100 connections of 100 s each), in its order.

    Raises
    ------
    DomainError
        The paper has no such numeric table.
    """
    duration_s = HOUR_S if number == 2 else CONNECTIONS * CONNECTION_S
    return tuple(Trace(line, duration_s) for line in published_table(number))


def trace(number: int, name: str) -> Trace:
    """Return the trace of a table with a name such as ``"manic to spiff"``.

    Raises
    ------
    DomainError
        The table has no such trace.
    """
    for each in traces(number):
        if each.name == name:
            return each
    raise DomainError(f"table {number} has no trace {name}")


def values_of_traces(rows: Sequence[Trace], of: Callable[[Trace], float]) -> NDArray[np.float64]:
    """Return a value of each trace, ``[traces]``."""
    return np.array([of(row) for row in rows], dtype=np.float64)
