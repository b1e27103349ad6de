"""A second, simple and slow implementation of the same network and TCP, from the definitions.

Every link is a queue with one event per departure; each arrival and each timer is an event. Nothing
is computed ahead. It takes the native simulator's plain numbers and returns lists of events with
times in integer nanoseconds, so that both simulators can be compared event by event. It supports
only constant distributions and no random loss.

Rules of both simulators: at equal times departures come before arrivals, and timers come last.
Links carry fractions of nanoseconds over within a busy period. Timeouts are whole nanoseconds; each
term is truncated.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

SECOND = 10**9
DEPARTURE, ARRIVAL, TIMER = range(3)
ENDLESS = 2**32 - 2
NEVER = 2**63
PACKET = 2**32


class Agenda:
    """Scheduled events, ordered by time, then departures, arrivals, timers, then insertion."""

    def __init__(self) -> None:
        self.now = 0
        self._pending: list[tuple[int, int, int, Callable[[], object]]] = []
        self._serial = 0

    def schedule(self, time: int, rank: int, action: Callable[[], object]) -> None:
        assert time >= self.now
        self._serial += 1
        heapq.heappush(self._pending, (time, rank, self._serial, action))

    def run(self, until: int) -> None:
        while self._pending and self._pending[0][0] <= until:
            self.now, _, _, action = heapq.heappop(self._pending)
            action()
        self.now = until


@dataclass(frozen=True)
class Packet:
    source: int
    connection: int
    number: int
    size: int
    is_ack: bool = False


class Link:
    """A FIFO link that drops packets if its buffer is full."""

    def __init__(
        self,
        agenda: Agenda,
        rate_bps: int | None,
        deliver: Callable[[Packet], None],
        *,
        limit: int | None,
        limit_bytes: int | None,
        dropped: Callable[[Packet], None],
    ) -> None:
        self._agenda, self._rate, self._deliver_to = agenda, rate_bps, deliver
        self._limit, self._limit_bytes, self._dropped = limit, limit_bytes, dropped
        self._packets: deque[Packet] = deque()
        self._ends = 0  # multiples of 1/rate nanoseconds, as integers

    def __len__(self) -> int:
        return len(self._packets)

    def offer(self, packet: Packet) -> None:
        if self._rate is None:
            self._deliver_to(packet)
            return
        held = sum(other.size for other in (*self._packets, packet))
        is_full = self._limit is not None and len(self._packets) >= self._limit
        if is_full or (self._limit_bytes is not None and held > self._limit_bytes):
            self._dropped(packet)
            return
        self._packets.append(packet)
        if len(self._packets) == 1:
            self._begin(self._agenda.now * self._rate)

    def _begin(self, start: int) -> None:
        assert self._rate is not None
        self._ends = start + self._packets[0].size * 8 * SECOND
        self._agenda.schedule(self._ends // self._rate, DEPARTURE, self._depart)

    def _depart(self) -> None:
        packet = self._packets.popleft()
        if self._packets:
            self._begin(self._ends)
        self._deliver_to(packet)


class FairLink:
    """One queue per flow; the next flow is found by a linear search in service order.

    ``round_`` lists the flows with queued or transmitted packets; the flow in service comes first.
    """

    def __init__(
        self,
        agenda: Agenda,
        rate_bps: int,
        deliver: Callable[[Packet], None],
        *,
        rules: dict[str, Any],
        limit: int | None,
        dropped: Callable[[Packet], None],
    ) -> None:
        self._agenda, self._rate, self._deliver_to = agenda, rate_bps, deliver
        self._rules, self._limit, self._dropped = rules, limit, dropped
        self._round: list[int] = []
        self._waiting: dict[int, deque[Packet]] = defaultdict(deque)
        self._credit: dict[int, int] = {}
        self._last_change: dict[int, int] = {}
        self._changes = 0
        self._sending: Packet | None = None
        self._ends = 0  # multiples of 1/rate nanoseconds, as integers

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values())) + (self._sending is not None)

    def _queued_for(self, packet: Packet) -> int:
        if self._rules["buffers"] == "shared":
            return len(self)
        of_flow = self._sending is not None and self._sending.source == packet.source
        return len(self._waiting[packet.source]) + of_flow

    def _note(self, flow: int) -> None:
        self._changes += 1
        self._last_change[flow] = self._changes

    def offer(self, packet: Packet) -> None:
        full = self._limit is not None and self._queued_for(packet) >= self._limit
        flow = packet.source
        if flow not in self._round:
            self._round.append(flow)
            self._credit[flow] = 0
        before = self._last_change.get(flow, 0)
        self._waiting[flow].append(packet)
        self._note(flow)
        if full and self._make_room(flow) is packet:
            self._last_change[flow] = before
        if self._sending is None and self._waiting[flow]:
            self._credit[flow] += self._rules["quantum_bytes"]
            self._begin(self._agenda.now * self._rate)

    def _make_room(self, flow: int) -> Packet:
        """Evict and return the first or last packet of a flow."""
        if self._rules["drop"] != "arriving":
            lengths = {other: len(queue) for other, queue in self._waiting.items()}
            flow = max(lengths, key=lambda other: (lengths[other], self._last_change.get(other, 0)))
        queue = self._waiting[flow]
        evicted = queue.popleft() if self._rules["drop"] == "longest-head" else queue.pop()
        self._note(flow)
        self._dropped(evicted)
        serving = self._sending is not None and self._sending.source == flow
        if not queue and not serving:
            self._round.remove(flow)
        return evicted

    def _begin(self, start: int) -> None:
        flow = self._round[0]
        packet = self._sending = self._waiting[flow].popleft()
        self._note(flow)
        self._credit[flow] -= packet.size
        self._ends = start + packet.size * 8 * SECOND
        self._agenda.schedule(self._ends // self._rate, DEPARTURE, self._depart)

    def _depart(self) -> None:
        packet, self._sending = self._sending, None
        assert packet is not None
        flow = self._round[0]
        if not self._waiting[flow]:
            del self._round[0]
        elif self._credit[flow] < self._waiting[flow][0].size:
            self._round.append(self._round.pop(0))
        else:
            self._begin(self._ends)
        if self._sending is None and self._round:
            self._credit[self._round[0]] += self._rules["quantum_bytes"]
            self._begin(self._ends)
        self._deliver_to(packet)


class Receiver:
    """Acknowledges each packet, or every second packet (RFC 5681, section 4.2)."""

    def __init__(self, tcp: dict[str, Any]) -> None:
        self.arrived: set[int] = set()
        self.highest = 0
        self.expected = 1
        self.waiting = 0
        self.deadline: int | None = None
        self._tcp = tcp

    def on_data(self, number: int, now: int) -> int | None:
        ahead_before = self.highest > self.expected
        in_order = number == self.expected
        self.arrived.add(number)
        self.highest = max(self.highest, number)
        while self.expected in self.arrived:
            self.expected += 1
        if not self._tcp["delayed_acks"] or not in_order or ahead_before:
            return self.acknowledge()
        self.waiting += 1
        if self.waiting == 2:
            return self.acknowledge()
        self.deadline = now + self._tcp["ack_timeout_ns"]
        return None

    def acknowledge(self) -> int:
        self.waiting, self.deadline = 0, None
        return self.expected


@dataclass
class Sender:
    """Congestion control with windows in packets; methods return the numbers to send, in order."""

    tcp: dict[str, Any]
    size: int
    una: int = 1
    nxt: int = 1
    highest: int = 0
    cwnd: int = 0
    ssthresh: int = 0
    acks_counted: int = 0
    bytewise: bool = False
    unit: int = 1
    duplicates: int = 0
    recovering: bool = False
    recover: int = 0
    guard: int = -1
    timed_out: int | None = None
    timed: tuple[int, int] | None = None
    backed_off: bool = False
    srtt: int | None = None
    rttvar: int = 0
    rto: int = 0
    deadline: int | None = None
    samples: list[int] = field(default_factory=list)

    def start(self, now: int) -> list[int]:
        self.bytewise = self.tcp["window_unit"] == "bytes"
        self.unit = PACKET if self.bytewise else 1
        self.cwnd = self.tcp["initial_window"] * self.unit
        self.ssthresh = self.tcp["initial_ssthresh"] * self.unit
        self.rto = self.tcp["initial_rto_ns"]
        return self._send(now)

    def add_file(self, size: int, ack_age: int, send_age: int, now: int) -> list[int]:
        """Start the next file, with the times since the last ack and the last packet."""
        rule = self.tcp["idle_restart"]
        if rule == "after-timeout" and send_age > self.rto:
            self.cwnd = min(self.cwnd, self.tcp["initial_window"] * self.unit)
            self.acks_counted = 0
        elif isinstance(rule, dict) and ack_age > rule["after"]:
            self.cwnd = self.tcp["initial_window"] * self.unit
            self.ssthresh = self.tcp["initial_ssthresh"] * self.unit
            self.acks_counted = 0
        self.size += size
        return self._send(now)

    def finished(self) -> bool:
        return self.una > self.size

    def on_ack(self, ack: int, now: int) -> list[int]:
        if ack > self.una:
            return self._on_new(ack, now)
        if ack == self.una and self.nxt > self.una:
            return self._on_duplicate(now)
        return []

    def _on_new(self, ack: int, now: int) -> list[int]:
        acked, self.una = ack - self.una, ack
        self.nxt = max(self.nxt, ack)
        self.duplicates = 0
        if self.timed is not None and self.timed[0] < ack:
            self._sample(now - self.timed[1])
            self.timed = None
        elif self.backed_off:
            self.rto = self._estimated() if self.srtt is not None else self.tcp["initial_rto_ns"]
        self.backed_off = False
        if self.finished():
            self.deadline = None
            if self.recovering:  # for the next files of this connection
                self.recovering, self.acks_counted, self.cwnd = False, 0, self.ssthresh
                if self.tcp["slow_start_at_ssthresh"]:
                    self._grow()
            return []
        newreno = self.tcp["recovery"] != "reno"
        if self.recovering and newreno and ack - 1 < self.recover:
            return self._on_partial(acked, now)
        if self.recovering:
            self.recovering = False
            self.cwnd, self.acks_counted = self.ssthresh, 0
            if self.tcp["slow_start_at_ssthresh"]:
                self._grow()
            self._set_timer(now)
        else:
            self._grow()
            if self.tcp["timer_restart"] == "ack":
                self._set_timer(now)
        return self._send(now)

    def _grow(self) -> None:
        if self.cwnd < self.ssthresh + self.tcp["slow_start_at_ssthresh"]:
            self.cwnd += self.unit
            return
        if self.bytewise:  # RFC 5681, equation (3), with 2^32 per packet
            self.cwnd += -(-(2**64) // self.cwnd)
            return
        self.acks_counted += 1
        if self.acks_counted >= self.cwnd:
            self.cwnd, self.acks_counted = self.cwnd + 1, 0

    def _on_partial(self, acked: int, now: int) -> list[int]:
        self.cwnd = max(0, self.cwnd - acked * self.unit) + self.unit
        if self.tcp["recovery"]["newreno"]["restart_timer"]:
            self._set_timer(now)
        # The next packet in order may be the retransmitted packet itself.
        self.nxt = max(self.nxt, self.una + 1)
        return [self.una, *self._send(now)]

    def _on_duplicate(self, now: int) -> list[int]:
        self.duplicates += 1
        if self.recovering:
            self.cwnd += self.unit
            return self._send(now)
        # RFC 6582, section 3.2, steps 2 and 4, after a timeout: una covers the packets below it.
        if self.una - 1 <= self.guard:
            return []
        threshold = self._threshold()
        if self.duplicates < threshold:
            return self._send_new(now, self._max_new())
        assert self.duplicates == threshold
        self._halve()
        self.cwnd = self.ssthresh + threshold * self.unit
        self.recover = self.highest
        self.recovering, self.timed = True, None
        self._set_timer(now)
        # RFC 5681, section 3.2, step 5: new data if the inflated window allows it.
        new = self._send(now) if self.nxt > self.highest else []
        return [self.una, *new]

    def _threshold(self) -> int:
        """Duplicate threshold by Ayesta and Avrachenkov, section 3.1."""
        threshold = int(self.tcp["duplicate_threshold"])
        last = range(self.size - threshold + 1, self.size + 1)
        return int(self.tcp["last_packets_threshold"]) if self.una in last else threshold

    def _max_new(self) -> int:
        """Return the limit of new packets for this duplicate: RFC 3042, or all on the second."""
        rule = self.tcp["limited_transmit"]
        return {"off": {}, "each-duplicate": {1: 1, 2: 1}, "on-second": {2: 2}}[rule].get(
            self.duplicates, 0
        )

    def _send_new(self, now: int, limit: int) -> list[int]:
        """RFC 3042, section 2: new data within rwnd and two packets beyond cwnd."""
        if self.nxt <= self.highest:  # retransmissions are pending
            return []
        numbers: list[int] = []
        while len(numbers) < limit and self.nxt + len(numbers) <= self.size:
            outstanding = self.nxt + len(numbers) + 1 - self.una
            if outstanding > min(self.cwnd // self.unit + 2, self.tcp["receiver_window"]):
                break
            numbers.append(self.nxt + len(numbers))
        return self._sent(numbers, now)

    def on_timeout(self, now: int) -> list[int]:
        is_repeated = self.timed_out == self.una
        if not is_repeated:
            self._halve()
        self.guard = -1 if is_repeated else self.highest
        self.cwnd, self.acks_counted, self.duplicates = self.unit, 0, 0
        self.timed_out, self.nxt, self.recovering, self.timed = self.una, self.una, False, None
        self.rto = min(2 * self.rto, self.tcp["max_rto_ns"])
        self.backed_off = self.tcp["backoff_until"] == "ack"
        self._set_timer(now)
        return self._send(now)

    def _window(self) -> int:
        return int(min(self.cwnd // self.unit, self.tcp["receiver_window"]))

    def _halve(self) -> None:
        window = self._window()
        if self.recovering:  # without the inflation
            window = min(window, self.ssthresh // self.unit)
        outstanding = min(self.nxt - self.una, window)
        self.ssthresh = max(outstanding * self.unit // 2, 2 * self.unit)
        self.acks_counted = 0

    def _send(self, now: int) -> list[int]:
        numbers = list(range(self.nxt, min(self.una + self._window() - 1, self.size) + 1))
        return self._sent(numbers, now)

    def _sent(self, numbers: list[int], now: int) -> list[int]:
        if numbers and not self.recovering:
            new = [number for number in numbers if number > self.highest]
            if new and self.timed is None and not self.backed_off:
                self.timed = new[0], now
            if self.deadline is None or self.tcp["timer_restart"] == "send":
                self._set_timer(now)
        if numbers:
            self.nxt = numbers[-1] + 1
            self.highest = max(self.highest, numbers[-1])
        return numbers

    def _set_timer(self, now: int) -> None:
        self.deadline = now + self.rto

    def _sample(self, rtt: int) -> None:
        """RFC 6298 (2.2), (2.3), (2.4)."""
        self.samples.append(rtt)
        if self.srtt is None:
            self.srtt, self.rttvar = rtt, rtt // 2
        else:
            self.rttvar = self.rttvar - self.rttvar // 4 + abs(self.srtt - rtt) // 4
            self.srtt = self.srtt - self.srtt // 8 + rtt // 8
        self.rto = self._estimated()

    def _estimated(self) -> int:
        assert self.srtt is not None
        rto = self.srtt + max(self.tcp["rto_granularity_ns"], 4 * self.rttvar)
        return int(min(max(rto, self.tcp["min_rto_ns"]), self.tcp["max_rto_ns"]))


Log = dict[str, list[tuple[int, int, int]]]
"""Events by kind: (time, source, number), in order of occurrence."""


class User:
    """A server with its client, and the routes between them."""

    def __init__(self, network: Network, index: int, group: dict[str, Any]) -> None:
        self._network, self._index, self._group = network, index, group
        self._agenda, self._tcp = network.agenda, group["tcp"]["packets"]
        self._connection, self._receiver_connection, self._began = 0, 0, 0
        self._last_ack, self._last_sent = 0, 0
        self._ever_sent: set[int] = set()
        self._sender, self._receiver = Sender(self._tcp, 0), Receiver(self._tcp)
        (route,), (back,) = group["routes"], group["back"]
        self._route = network.make_route(index, route, group["delay_ns"], self._deliver)
        self._back = network.make_route(index, back, group["back_delay_ns"], self._receive_ack)
        self._ack_taps = network.ack_taps(route, back, group)

    def begin_at(self, time: int) -> None:
        self._agenda.schedule(time, TIMER, self._begin)

    def _note(self, event: str, number: int) -> None:
        self._network.log[event].append((self._agenda.now, self._index, number))

    def _begin(self) -> None:
        files = self._group["traffic"]["files"].get("on-off")
        size = ENDLESS if files is None else max(1, round(files["size"]["value"]))
        now = self._agenda.now
        if self._connection and files is not None and files["persistent"]:
            self._began = now
            off_time = now - self._last_ack, now - self._last_sent
            self._transmit(self._sender.add_file(size, *off_time, now))
            return
        self._sender, self._ever_sent = Sender(self._tcp, size), set()
        self._connection, self._began = self._connection + 1, self._agenda.now
        self._transmit(self._sender.start(self._agenda.now))

    def _transmit(self, numbers: list[int]) -> None:
        for number in numbers:
            self._note("retransmitted" if number in self._ever_sent else "sent", number)
            self._ever_sent.add(number)
            size = self._group["packet_bytes"]
            self._last_sent = self._agenda.now
            self._route(Packet(self._index, self._connection, number, size))
        if self._sender.deadline is not None:
            self._agenda.schedule(self._sender.deadline, TIMER, self._timer)

    def _timer(self) -> None:
        if self._sender.deadline == self._agenda.now:
            self._note("timeout", self._sender.una)
            self._transmit(self._sender.on_timeout(self._agenda.now))

    def _receive_ack(self, ack: Packet) -> None:
        self._note("ack received", ack.number)
        for event, before in zip(("at return", "left return"), self._ack_taps, strict=True):
            at = self._agenda.now - before
            self._network.log[event].append((at, self._index, ack.number))
        if ack.connection != self._connection or self._sender.finished():
            return
        samples = len(self._sender.samples)
        self._transmit(self._sender.on_ack(ack.number, self._agenda.now))
        for rtt in self._sender.samples[samples:]:
            self._note("rtt", rtt)
        if self._sender.finished():
            self._last_ack = self._agenda.now
            self._note("on time", self._agenda.now - self._began)
            off = self._group["traffic"]["files"]["on-off"]["off"]
            self.begin_at(self._agenda.now + nanoseconds(off["value"]))

    def _deliver(self, packet: Packet) -> None:
        if packet.connection != self._receiver_connection:
            self._receiver_connection, self._receiver = packet.connection, Receiver(self._tcp)
        self._note("delivered", packet.number)
        if packet.number not in self._receiver.arrived:
            self._note("distinct", packet.number)
        ack = self._receiver.on_data(packet.number, self._agenda.now)
        if ack is not None:
            self._acknowledge(ack)
        elif self._receiver.deadline is not None:
            self._agenda.schedule(self._receiver.deadline, TIMER, self._ack_timer)

    def _ack_timer(self) -> None:
        if self._receiver.deadline == self._agenda.now:
            self._acknowledge(self._receiver.acknowledge())

    def _acknowledge(self, number: int) -> None:
        self._note("ack sent", number)
        ack = Packet(self._index, self._receiver_connection, number, self._group["ack_bytes"], True)
        self._back(ack)


class Network:
    """All users and links, built from the native simulator's plain numbers."""

    def __init__(self, numbers: dict[str, Any]) -> None:
        self.agenda = Agenda()
        self.log: Log = defaultdict(list)
        self.first_tie = NEVER
        self._links, self.headline = numbers["links"], numbers["headline"]
        self._instances: dict[tuple[int, int], Link | FairLink] = {}
        self._delays: dict[tuple[int, int], int] = {}
        self._next: dict[tuple[int, int], Callable[[Packet], None]] = {}
        self._users: list[User] = []
        for group in numbers["classes"]:
            for index in range(group["flows"]):
                self._users.append(User(self, len(self._users), group))
                self._users[-1].begin_at(nanoseconds(_first_start(group, index)))

    def run(self, until: int) -> Log:
        self.agenda.run(until)
        return self.log

    def note(self, event: str) -> Callable[[Packet], None]:
        entries = self.log[event]
        return lambda packet: entries.append((self.agenda.now, packet.source, packet.number))

    def make_route(
        self, source: int, route: list[int], rest: int, deliver: Callable[[Packet], None]
    ) -> Callable[[Packet], None]:
        """Return the entry of a route of a source; ``rest`` is the delay behind its last link."""
        enter = deliver
        for at in reversed(range(len(route))):
            self._next[route[at], source] = enter
            delay = self._links[route[at]]["delay_ns"] + (rest if at + 1 == len(route) else 0)
            enter = self._add_link(route[at], source, delay)
        if route:
            return enter
        agenda = self.agenda
        return lambda packet: agenda.schedule(agenda.now + rest, ARRIVAL, lambda: deliver(packet))

    def _add_link(self, number: int, source: int, delay: int) -> Callable[[Packet], None]:
        link, agenda, is_headline = self._links[number], self.agenda, number == self.headline
        is_own = link["each"] == "sender"
        key = number, source if is_own else -1
        delays = self._delays
        delays[number, source] = delay

        def leave(packet: Packet) -> None:
            if is_headline:
                self.note("left bottleneck")(packet)
            deliver = self._next[number, packet.source]
            after = delays[number, packet.source]
            agenda.schedule(agenda.now + after, ARRIVAL, lambda: deliver(packet))

        def lost(packet: Packet) -> None:
            if not packet.is_ack:
                self.note("dropped on access" if is_own else "dropped")(packet)
            self.note(f"dropped at {number}")(packet)

        if key not in self._instances:
            assert link["loss"] is None
            (rate,), limit, queue = link["rate"].values(), link["limit_pkts"], link["queue"]
            limits = {"limit": limit, "limit_bytes": link["limit_bytes"], "dropped": lost}
            self._instances[key] = (
                Link(agenda, rate, leave, **limits)
                if queue == "drop-tail"
                else FairLink(agenda, rate, leave, rules=queue["drr"], limit=limit, dropped=lost)
            )
        instance = self._instances[key]

        def enter(packet: Packet) -> None:
            if is_headline:
                self.record_arrival("at bottleneck", packet)
                event = agenda.now, packet.source, len(instance)
                self.log["queue length"].append(event)
            elif is_own:
                self.note(f"at {number}")(packet)
            else:
                self.record_arrival(f"at {number}", packet)
            instance.offer(packet)

        return enter

    def ack_taps(self, route: list[int], back: list[int], group: dict[str, Any]) -> tuple[int, int]:
        """Return the times from the taps of the headline link to the sender.

        The part of the route behind the headline link precedes the taps.
        """
        size, delay = group["ack_bytes"], self._links[self.headline]["delay_ns"]
        behind = route[route.index(self.headline) + 1 :]
        after = delay + sum(self._time_over(size, link) for link in behind)
        sending = self._time_of(size, self.headline)
        total = group["back_delay_ns"] + sum(self._time_over(size, link) for link in back)
        left = max(0, total - after - sending)
        return left + sending, left

    def _time_over(self, size: int, link: int) -> int:
        return self._time_of(size, link) + int(self._links[link]["delay_ns"])

    def _time_of(self, size: int, link: int) -> int:
        (rate,) = self._links[link]["rate"].values()
        return 0 if rate is None else round_quotient(size * 8 * SECOND, rate)

    def record_arrival(self, place: str, packet: Packet) -> None:
        """Record the first simultaneous arrival of two sources; their order is a convention."""
        if self.log[place]:
            time, source, _ = self.log[place][-1]
            if time == self.agenda.now and source != packet.source:
                self.first_tie = min(self.first_tie, time)
        self.note(place)(packet)


def nanoseconds(seconds: float) -> int:
    return round(seconds * SECOND)


def round_quotient(dividend: int, divisor: int) -> int:
    """Return the integer nearest to a quotient, rounding half up."""
    return (2 * dividend + divisor) // (2 * divisor)


def _first_start(group: dict[str, Any], index: int) -> float:
    traffic = group["traffic"]["files"]
    if "on-off" in traffic:
        distribution = traffic["on-off"]["off"]
    elif "times" in traffic["bulk"]["start"]:
        times = traffic["bulk"]["start"]["times"]
        return float(times[index % len(times)])
    else:
        distribution = traffic["bulk"]["start"]["drawn"]
    assert distribution["distribution"] == "constant"
    return float(distribution["value"])
