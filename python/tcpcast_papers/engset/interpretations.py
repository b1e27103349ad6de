"""Interpretations of terms that the paper does not define: classes of timeouts, and time in them.

The simulator counts a timeout as TOend if the whole file has been sent and one of its last three
packets timed out, otherwise as TObeg for packets 1 and 2. Time in a timeout begins when the sender
sent its last packet. Traces of some flows show the effect of other interpretations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast_papers.engset.published import INTERVALS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray
    from tcpcast.answer import Answer

    from tcpcast_papers.engset.sample import Read

    Table = dict[str, NDArray[Any]]

LAST_PACKETS = 3
"""Packets at the end of a file whose timeouts are TOend."""


@dataclass(slots=True)
class _File:
    """A file in progress; times in seconds by packet number."""

    sent_s: dict[int, float] = field(default_factory=dict)
    last_s: float = 0.0
    timed_out: int = 0
    resent_up_to: int = 0
    recovering: set[int] = field(default_factory=set)
    recovered: bool = False

    def send(self, packet: int, time_s: float, again: bool) -> None:
        # Retransmissions after a timeout, of packets sent before it, are not fast retransmits.
        if again and packet != self.timed_out and packet > self.resent_up_to:
            self.recovering.add(packet)
            self.recovered = True
        self.sent_s[packet] = self.last_s = time_s

    def time_out(self, packet: int, time_s: float) -> _Timeout:
        result = _Timeout(
            self,
            packet,
            sent=len(self.sent_s),
            repeated=packet == self.timed_out,
            in_recovery=packet in self.recovering,
            after_recovery=self.recovered,
            waited_s=time_s - self.last_s,
            packet_waited_s=time_s - self.sent_s.get(packet, time_s),
        )
        self.timed_out, self.resent_up_to = packet, max(self.sent_s, default=packet)
        self.recovering.discard(packet)
        return result


@dataclass(frozen=True, slots=True)
class _Timeout:
    file: _File
    packet: int
    sent: int
    repeated: bool
    in_recovery: bool
    after_recovery: bool
    waited_s: float
    packet_waited_s: float

    @property
    def size(self) -> int:
        return max(self.file.sent_s)

    @property
    def is_last(self) -> bool:
        return self.size - self.packet < LAST_PACKETS

    @property
    def all_sent(self) -> bool:
        return self.sent >= self.size

    def kind(self, *, end: bool, beginning_first: bool = False) -> str:
        if self.repeated or self.in_recovery:
            return "TOTO" if self.repeated else "TDTO"
        beginning = self.packet <= 2
        if end and not (beginning and beginning_first):
            return "TOend"
        return "TObeg" if beginning else "TOother"


TIMEOUT_CLASSIFIERS: dict[str, Callable[[_Timeout], str]] = {
    "TObeg before TOend": lambda t: t.kind(end=t.all_sent and t.is_last, beginning_first=True),
    "TOend as soon as the whole file was sent": lambda t: t.kind(end=t.all_sent),
    "TOend before the whole file was sent": lambda t: t.kind(end=t.is_last),
    "TOend also after a fast retransmit": lambda t: t.kind(
        end=(t.all_sent and t.is_last) or (t.after_recovery and t.packet > 2)
    ),
}
"""Interpretations of the classes of timeouts that are compared."""


def timeouts_of_trace(answer: Answer) -> Iterator[_Timeout]:
    """Yield the timeouts of the traced flows."""
    trace = answer.tables["sequences"]
    order = np.argsort(trace["flow"], kind="stable")
    columns = (trace[name][order].tolist() for name in ("time_s", "flow", "sequence", "event"))
    file, previous = _File(), -1
    for time_s, flow, packet, event in zip(*columns, strict=True):
        if flow != previous or (event == "sent" and packet == 1):
            file, previous = _File(), flow
        if event == "timeout":
            yield file.time_out(packet, time_s)
        elif event != "dropped":
            file.send(packet, time_s, event == "retransmitted")


def classify_traced_timeouts(answer: Answer) -> dict[str, Table]:
    """Return the shares of timeouts by interpretation, and times in timeouts by file size."""
    timeouts = [each for each in timeouts_of_trace(answer) if each.file.sent_s]
    names, shares = [], []
    for reading, kind in TIMEOUT_CLASSIFIERS.items():
        kinds = [kind(each) for each in timeouts]
        for name in ("TObeg", "TOend", "TOother"):
            names.append(f"{name}: {reading}")
            shares.append(kinds.count(name) / max(1, len(kinds)))
    sizes = np.array([each.size for each in timeouts])
    rows = [(sizes >= low) & (sizes <= (high or np.inf)) for low, high in (*INTERVALS, (1, None))]
    waited = np.array([each.waited_s for each in timeouts])
    packet_waited = np.array([each.packet_waited_s for each in timeouts])
    return {
        "timeout_readings": {"reading": np.array(names), "share": np.array(shares)},
        "timeout_times": {
            "low_pkts": np.array([*(low for low, _ in INTERVALS), 1]),
            "waited_s": np.array([waited[row].sum() for row in rows]),
            "packet_waited_s": np.array([packet_waited[row].sum() for row in rows]),
        },
    }


def class_share_reader(kind: str, reading: str) -> Read:
    """Return a function that extracts the share (%) of a class of timeouts."""

    def read(answer: Answer) -> float:
        table = answer.tables["timeout_readings"]
        return 100 * float(table["share"][table["reading"] == f"{kind}: {reading}"][0])

    return read


def count_since_last_transmission(read: Read, low_pkts: int = 1) -> Read:
    """Return ``read`` for timeouts whose time begins when the packet itself was last sent.

    ``read`` extracts a time in timeouts from an answer. ``low_pkts`` is the start of the size
    interval, 1 for all files.
    """

    def longer(answer: Answer) -> float:
        table = answer.tables["timeout_times"]
        (row,) = np.flatnonzero(table["low_pkts"] == low_pkts)
        shorter = table["waited_s"][row]
        return read(answer) * float(table["packet_waited_s"][row] / shorter) if shorter else np.nan

    return longer


SINCE_OWN_TRANSMISSION = "time in a timeout begins when the packet itself was last sent"


def sending_rate_reader(rtt0_ms: float, packet_ms: float) -> Read:
    """Return a function that computes F 8P/(ON - last RTT) from an answer, in kbit/s.

    The ON time without the last RTT ends when the last packet is sent (ON_s of section 4.2). The
    last RTT is RTT0 plus the transmission time of the queue that packets find: the mean queue per
    file size, averaged over files.
    """

    def read(answer: Answer) -> float:
        table = answer.tables["by_size"]
        queue = float(np.dot(table["share"], table["queue_seen_mean_pkts"]))
        bits = answer["connection_rate_bps"] * answer["on_time_s"]
        return 1e-3 * bits / (answer["on_time_s"] - 1e-3 * (rtt0_ms + packet_ms * queue))

    return read
