"""The paper's printed figures, as data.

"The paper" throughout this package is J. Padhye, V. Firoiu, D. Towsley and J. Kurose, *Modeling TCP
throughput: a simple model and its empirical validation*, SIGCOMM 1998. Its Tables 2 and 3 are CSV
files in ``data``, a line for each trace, with the digits as printed; Table 1 names hosts. What
Figures 7 to 21 plot is not printed as numbers, and the W_max in the titles of Figures 7 to 17 is
not in the text that these files were made from.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from tcpcast.errors import DomainError

from tcpcast_papers.published import Line, PublishedTable, printed_table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

CITATION = (
    "J. Padhye, V. Firoiu, D. Towsley, J. Kurose: Modeling TCP throughput: a simple model and its "
    "empirical validation, SIGCOMM 1998"
)

TABLES: dict[int, str] = {2: "Summary data from 1hr traces", 3: "Summary data from 100s traces"}
"""The tables that hold figures, with the paper's captions."""

HOUR_S = 3600.0
"""How long a trace of Table 2 is."""
CONNECTIONS, CONNECTION_S = 100, 100.0
"""How many connections a row of Table 3 sums up, and how long each was."""
INTERVALS, INTERVAL_S = 36, 100.0
"""Into how many pieces a trace of Table 2 is cut, and how long each is (section 3)."""

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
        How long its packets were counted.
    """

    line: Line
    duration_s: float

    @property
    def name(self) -> str:
        """Sender and receiver, as in the titles of the figures."""
        return f"{self.line['sender']} to {self.line['receiver']}"

    @property
    def packets(self) -> int:
        """Packets sent, repeated ones too."""
        return int(self.line["packets_sent"])

    @property
    def loss_indications(self) -> int:
        """Triple duplicates and timeout sequences."""
        return int(self.line["loss_indications"])

    @property
    def kinds(self) -> int:
        """Sum of the columns TD and TO: not the loss indications in every row."""
        return int(self.line["triple_duplicates"]) + int(self.line["timeouts"])

    @property
    def timeout_share(self) -> float:
        """Share of TO among TD and TO."""
        return int(self.line["timeouts"]) / self.kinds

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
def table(number: int) -> PublishedTable:
    """Return Table 2 or 3.

    Raises
    ------
    DomainError
        The paper has no such table of figures.
    """
    return printed_table("tcpcast_papers.pftk", TABLES, number)


def traces(number: int) -> tuple[Trace, ...]:
    """Return the rows of Table 2 (hours) or 3 (100 connections of 100 s each), in its order.

    Raises
    ------
    DomainError
        The paper has no such table of figures.
    """
    duration_s = HOUR_S if number == 2 else CONNECTIONS * CONNECTION_S
    return tuple(Trace(line, duration_s) for line in table(number))


def trace(number: int, name: str) -> Trace:
    """Return the trace ``"manic to spiff"`` of a table.

    Raises
    ------
    DomainError
        The table has no such trace.
    """
    for each in traces(number):
        if each.name == name:
            return each
    raise DomainError(f"table {number} has no trace {name}")


def column(rows: Sequence[Trace], of: Callable[[Trace], float]) -> NDArray[np.float64]:
    """Return a figure of each trace, ``[traces]``."""
    return np.array([of(row) for row in rows], dtype=np.float64)
