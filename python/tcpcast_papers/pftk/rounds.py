"""Rounds of a simulated flow: duration and packets in transit (section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from tcpcast import _native
from tcpcast.engines.packet.configuration import make_configuration, to_nanoseconds
from tcpcast.errors import DomainError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tcpcast_papers.pftk.paths import Path

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rounds:
    """Round-trip samples of one flow, ``[samples]``.

    Attributes
    ----------
    duration_s
        Time from the first transmission of a packet to the ack that covers it.
    in_transit_pkts
        Number of packets outstanding after this packet was sent, including the packet itself.
    """

    duration_s: Floats
    in_transit_pkts: Floats

    @property
    def correlation(self) -> float:
        """Correlation coefficient of duration and packets in transit; nan if one is constant."""
        if min(np.ptp(self.duration_s), np.ptp(self.in_transit_pkts)) == 0:
            return float("nan")
        return float(np.corrcoef(self.duration_s, self.in_transit_pkts)[0, 1])


def simulate_rounds(path: Path, *, seconds: float, seed: int = 1) -> Rounds:
    """Simulate a path and time one packet at a time, as a sender does.

    A sample is left out if there was any retransmission or timeout while it was in flight. This is
    slightly stricter than Karn's rule.

    Raises
    ------
    DomainError
        ``seconds`` is so large that the simulator does not keep every point of the flow.
    """
    scenario = path.scenario(seed=seed, traced=True)
    run = _native.Simulation(make_configuration(scenario, 0.0), 1)
    run.advance(transfers=None, until_ns=to_nanoseconds(seconds), threads=1)
    traces = run.traces()
    if traces["mark_bin_ns"] or traces["window_bin_ns"]:
        raise DomainError(
            f"{seconds:,.0f} s are too long to time every packet; use a smaller number"
        )
    marks = np.array(traces["mark"])
    times = traces["mark_time_ns"].astype(np.int64)
    sent = np.sort(times[marks == "sent"])
    again = np.sort(times[(marks == "retransmitted") | (marks == "timeout")])
    seen, flight = traces["window_time_ns"].astype(np.int64), traces["flight"].astype(np.int64)
    # Packets are numbered at their first transmission; those not outstanding are acknowledged.
    acked = np.maximum.accumulate(np.searchsorted(sent, seen, side="right") - flight)
    result = []
    number = 0
    while number < len(sent):
        start = sent[number]
        end = int(np.searchsorted(acked, number, side="right"))
        if end >= len(seen):
            break
        disturbed = np.searchsorted(again, start) != np.searchsorted(again, seen[end], side="right")
        if seen[end] > start and not disturbed:
            outstanding = flight[np.searchsorted(seen, start, side="left")]
            result.append((1e-9 * (seen[end] - start), float(outstanding)))
        number = max(number + 1, int(np.searchsorted(sent, seen[end], side="left")))
    duration, transit = np.array(result).reshape(-1, 2).T
    return Rounds(duration, transit)
