"""NewReno packet by packet on a path of infinite rate, for chosen lost transmissions.

An independent simulation for tests: it shares no code with the models or the packet engine.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from typing import Any


@dataclass
class Path:
    """Constant parameters: b, windows, round trip and timers."""

    b: int = 1
    initial_window: int = 2
    receiver_window: int = 30
    rtt_s: float = 0.1
    ack_timer_s: float = 0.2
    rto_s: float = 1.0


@dataclass
class Receiver:
    """Acknowledges every b-th packet, or after the timer; out-of-order packets immediately."""

    path: Path
    expected: int = 0
    waiting: int = 0
    due: float = math.inf
    early: set[int] = field(default_factory=set)

    def acknowledges(self, now: float, number: int) -> bool:
        in_order = number == self.expected and not self.early
        if number >= self.expected:
            self.early.add(number)
        while self.expected in self.early:
            self.early.remove(self.expected)
            self.expected += 1
        self.waiting += 1
        if in_order and self.waiting < self.path.b:
            self.due = min(self.due, now + self.path.ack_timer_s)
            return False
        self.waiting, self.due = 0, math.inf
        return True


@dataclass
class Transfer:
    """One transfer; ``lost`` numbers the lost transmissions. New acks reset the backoff."""

    path: Path
    packets: int
    lost: frozenset[int]
    now: float = 0.0
    una: int = 0
    nxt: int = 0
    top: int = 0
    sent: int = 0
    duplicates: int = 0
    recover: int = 0
    recovering: bool = False
    backoff: int = 1
    expiry: float = math.inf
    cwnd: float = 0.0
    ssthresh: float = 0.0
    arrivals: list[tuple[float, int, str, int]] = field(default_factory=list)
    order: int = 0

    def run(self) -> float:
        """Return the time from the first packet to the last ack."""
        self.cwnd, self.ssthresh = float(self.path.initial_window), float(self.path.receiver_window)
        receiver = Receiver(self.path)
        self._fill()
        while self.una < self.packets:
            first = self.arrivals[0][0] if self.arrivals else math.inf
            self.now = min(first, self.expiry, receiver.due)
            if first <= self.now:
                _, _, what, number = heapq.heappop(self.arrivals)
                if what == "ack":
                    self._on_ack(number)
                elif receiver.acknowledges(self.now, number):
                    self._arrive("ack", receiver.expected)
            elif receiver.due <= self.now:
                receiver.waiting, receiver.due = 0, math.inf
                self._arrive("ack", receiver.expected)
            else:
                self._on_timeout()
        return self.now

    def _arrive(self, what: str, number: int) -> None:
        heapq.heappush(self.arrivals, (self.now + self.path.rtt_s / 2, self.order, what, number))
        self.order += 1

    def _transmit(self, number: int) -> None:
        if self.sent not in self.lost:
            self._arrive("packet", number)
        self.sent += 1
        self.top = max(self.top, number + 1)
        if self.expiry == math.inf:
            self.expiry = self.now + self.path.rto_s * self.backoff

    def _fill(self) -> None:
        window = min(int(self.cwnd + 1e-9), self.path.receiver_window)
        while self.nxt < min(self.packets, self.una + window):
            self._transmit(self.nxt)
            self.nxt += 1

    def _on_ack(self, number: int) -> None:
        if number > self.una:
            self._on_new_ack(number)
        elif self.una < self.top:
            self.duplicates += 1
            if self.recovering:
                self.cwnd += 1
            elif self.duplicates == 3 and self.una >= self.recover:
                self.recovering, self.recover = True, self.top
                self.ssthresh = max((self.top - self.una) / 2, 2)
                self.cwnd = self.ssthresh + 3
                self._transmit(self.una)
                self.expiry = self.now + self.path.rto_s
        self._fill()

    def _on_new_ack(self, number: int) -> None:
        acked, self.una = number - self.una, number
        self.nxt, self.backoff = max(self.nxt, number), 1
        self.expiry = self.now + self.path.rto_s if number < self.top else math.inf
        if self.recovering and number < self.recover:
            self.cwnd = max(self.cwnd - acked + 1, 1.0)
            self._transmit(number)
        elif self.recovering:
            self.recovering, self.cwnd, self.duplicates = False, self.ssthresh, 0
        else:
            self.cwnd += 1 if self.cwnd < self.ssthresh else 1 / self.cwnd
            self.duplicates = 0

    def _on_timeout(self) -> None:
        self.ssthresh = max((self.top - self.una) / 2, 2)
        self.cwnd, self.nxt, self.duplicates = 1.0, self.una, 0
        self.recovering, self.recover = False, self.top
        self.backoff = min(2 * self.backoff, 64)
        self.expiry = math.inf
        self._fill()


@cache
def mean_duration(packets: int, losses: int, *, loss: float = 0.1, **path: Any) -> float:
    """Return the mean over all patterns of ``losses`` lost transmissions, by probability."""
    way, total, weight = Path(**path), 0.0, 0.0
    for lost in combinations(range(packets + 2 * losses + 2), losses):
        transfer = Transfer(way, packets, frozenset(lost))
        took = transfer.run()
        if losses and lost[-1] >= transfer.sent:
            continue  # one of these transmissions never happened
        odds = (1 - loss) ** (transfer.sent - packets)
        total, weight = total + odds * took, weight + odds
    return total / weight
