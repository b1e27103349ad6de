"""States of BBR in an answer: phases in order, and quantities at a time or within a phase."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from tcpcast.process.errors import DomainError

if TYPE_CHECKING:
    from tcpcast.answer import Answer
CYCLE = ("probe_down", "probe_cruise", "probe_refill", "probe_up")
"""Phases of the draft's PROBE_BW, in order."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase: its name, its first row in the table, and the first row after it."""

    name: str
    first: int
    end: int
    start_s: float
    end_s: float

    @property
    def duration_s(self) -> float:
        """Length of the phase in seconds."""
        return self.end_s - self.start_s


@dataclass(frozen=True)
class States:
    """The recorded flow of an answer.

    Parameters
    ----------
    answer
        Answer of engine ``packet`` with the tables of flow 0.
    change_s
        Time of the change that the test case made, or nan.
    """

    answer: Answer
    change_s: float = np.nan

    @property
    def table(self) -> dict[str, Any]:
        """The table ``bbr``."""
        return self.answer.tables["bbr"]

    @cached_property
    def phases(self) -> list[Phase]:
        """All phases in order; the last one ends with the last row."""
        names, times = self.table["phase"], self.table["time_s"]
        starts = np.flatnonzero(np.append(True, names[1:] != names[:-1]))
        ends = np.append(starts[1:], len(names))
        return [
            Phase(
                str(names[first]),
                int(first),
                int(end),
                float(times[first]),
                float(times[min(end, len(names) - 1)]),
            )
            for first, end in zip(starts, ends, strict=True)
        ]

    def phase(
        self, name: str, after_s: float = 0.0, number: int = 1, quiet_s: float = 0.0
    ) -> Phase:
        """Return the ``number``th phase with a name that begins at or after a time.

        With ``quiet_s``, only phases count that PROBE_RTT, which interrupts any phase after 5 s,
        does not follow within this time.

        Raises
        ------
        DomainError
            There is no such phase.
        """
        interrupted = [each.start_s for each in self.phases if each.name == "probe_rtt"]
        interrupted.append(self.phases[-1].end_s)
        found = [
            each
            for each in self.phases
            if each.name == name
            and each.start_s >= after_s
            and not any(each.start_s < time_s < each.start_s + quiet_s for time_s in interrupted)
        ]
        if len(found) < number:
            raise DomainError(f"BBR enters {name} {len(found)} times after {after_s:g} s")
        return found[number - 1]

    def next_name(self, phase: Phase) -> str:
        """Return the name of the phase that follows, "" if the run ends first."""
        index = self.phases.index(phase) + 1
        return self.phases[index].name if index < len(self.phases) else ""

    def at(self, column: str, row: int) -> Any:
        """Return a quantity in a row of the table; negative rows count from the end."""
        return self.table[column][min(row, len(self.table[column]) - 1)]

    def within(self, column: str, start_s: float, end_s: float) -> Any:
        """Return a quantity in the rows between two times, with the value at the first."""
        times = self.table["time_s"]
        first = max(0, int(np.searchsorted(times, start_s, side="right")) - 1)
        return self.table[column][first : int(np.searchsorted(times, end_s, side="right"))]

    def window(self, column: str, time_s: float) -> float:
        """Return a column of ``windows`` at a time."""
        windows = self.answer.tables["windows"]
        row = int(np.searchsorted(windows["time_s"], time_s, side="right")) - 1
        return float(windows[column][max(row, 0)])

    def windows(self, column: str, start_s: float, end_s: float) -> Any:
        """Return a column of ``windows`` between two times."""
        windows = self.answer.tables["windows"]
        first, end = np.searchsorted(windows["time_s"], [start_s, end_s])
        return windows[column][first:end]

    def sent_packets(self, start_s: float, end_s: float) -> int:
        """Return the number of packets sent between two times."""
        events = self.answer.tables["sequences"]
        sent = (events["event"] == "sent") | (events["event"] == "retransmitted")
        return int(
            np.count_nonzero(sent & (events["time_s"] >= start_s) & (events["time_s"] < end_s))
        )

    def dropped_packets(self, start_s: float, end_s: float) -> int:
        """Return the number of packets dropped between two times."""
        events = self.answer.tables["sequences"]
        dropped = events["event"] == "dropped"
        inside = (events["time_s"] >= start_s) & (events["time_s"] < end_s)
        return int(np.count_nonzero(dropped & inside))
