"""The network: a dumbbell of three links, or simply a round-trip time."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self

from pydantic import (
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import InitErrorDetails

from tcpcast.errors import UnitError
from tcpcast.scenario import units
from tcpcast.scenario.loss import Bernoulli, Loss, LossRule, RestOfRound, ratio_too
from tcpcast.scenario.quantities import (
    AckSize,
    Duration,
    PacketSize,
    PositiveDuration,
    Rate,
)
from tcpcast.scenario.queue import FairQueue, Queue, Red, RedParameters, queue_words
from tcpcast.scenario.table import Table, fault, faults

HEADER_BYTES = 40
"""IP and TCP headers of a data packet, without options."""

MOST_BUFFER_PKTS = 10**9


@dataclass(frozen=True, slots=True)
class Buffer:
    """The most a queue holds, the packet in transmission included.

    ``unit`` is ``"packets"``, ``"bytes"``, ``"bdp"`` (times link rate and ``network.rtt``) or
    ``"unlimited"``, in which case ``amount`` is inf.
    """

    unit: Literal["packets", "bytes", "bdp", "unlimited"]
    amount: float

    def packets(self, *, packet_bytes: int, rate_bps: float, rtt_s: float) -> float:
        """Return how many data packets fit.

        Parameters
        ----------
        packet_bytes
            Size of a data packet.
        rate_bps, rtt_s
            Of the link and the path, for a buffer in bandwidth-delay products, which is rounded
            up to whole packets.

        Returns
        -------
        float
            A whole number, or inf.
        """
        if self.unit == "bytes":
            return float(self.amount // packet_bytes)
        if self.unit == "bdp":
            # Decimal, because 12 Mbit/s x 50 ms is exactly 50 packets and not a little more.
            bits = math.prod(units.exact_fraction(x) for x in (self.amount, rate_bps, rtt_s))
            return float(max(1, math.ceil(bits / (8 * packet_bytes))))
        return self.amount

    def __str__(self) -> str:
        """Write it as people type it."""
        if self.unit == "unlimited":
            return "unlimited"
        suffix = {"packets": "pkt", "bytes": "B", "bdp": "bdp"}[self.unit]
        return f"{units.plain(units.exact(self.amount))}{suffix}"


UNLIMITED = Buffer("unlimited", math.inf)


def _read_buffer(value: object) -> Buffer:
    if isinstance(value, Buffer):
        return value
    if value == "unlimited":
        return UNLIMITED
    if isinstance(value, str) and value.strip().endswith("bdp"):
        amount = units.parse_packets(value.strip().removesuffix("bdp").strip() + "pkt")
        if not 0 < amount <= 1e6:
            raise UnitError(f'{units.show(value)} is out of range; write "1bdp"')
        return Buffer("bdp", amount)
    if not isinstance(value, str) or not any(c.isalpha() for c in value):
        # A bare number might be packets or bytes; 0 is wrong as either.
        number = units.parse_packets(value)
        _check_room(value, number)
        written = f'"{units.format_packets(number)}", "200KB", "1bdp" or "unlimited"'
        raise UnitError(f"{units.show(value)} has no unit; write {written}")
    if value.strip().endswith("B"):
        size = units.parse_bytes(value)
        _check_room(value, size)
        return Buffer("bytes", float(size))
    packets = units.parse_packets(value)
    _check_room(value, packets)
    if packets != int(packets):
        raise UnitError(f'{units.show(value)} is not whole packets; write "{int(packets) or 1}pkt"')
    if packets > MOST_BUFFER_PKTS:
        raise UnitError(f'{units.show(value)} is too large; write "unlimited"')
    return Buffer("packets", packets)


def _check_room(value: object, amount: float) -> None:
    if amount == 0:
        raise UnitError(
            f"{units.show(value)} holds no packet, not even the one in transmission; "
            'write at least "1pkt", or "unlimited"'
        )


BufferSize = Annotated[
    Buffer,
    PlainValidator(_read_buffer),
    PlainSerializer(str, return_type=str),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": r"^\s*\+?" + units.NUMBER + r"\s*(pkt|bdp|B|kB|KB|MB|GB|KiB|MiB|GiB)\s*$"
            r"|^unlimited$",
            "examples": ["150pkt"],
        }
    ),
]


class Link(Table):
    """A link with its queue."""

    later: ClassVar[Mapping[str, str]] = {
        "measured": "the bottleneck is the one measured, so leave it out",
    }

    rate: Rate = Field(default=math.inf, examples=["10mbit"], description="of IP bytes")
    delay: Duration | None = Field(
        default=None, examples=["10ms"], description="propagation one way, instead of network.rtt"
    )
    buffer: BufferSize = Field(
        default=UNLIMITED,
        examples=["150pkt"],
        description="the most it holds, the packet in transmission included",
    )
    queue: Queue = Field(default="droptail", examples=["droptail"], json_schema_extra=queue_words)
    loss_rule: LossRule = Field(
        default=Bernoulli(model="bernoulli", rate=0.0),
        alias="loss",
        examples=["1%"],
        description="random loss of data packets on arrival, before the queue",
        json_schema_extra=ratio_too,
    )

    @property
    def rate_bps(self) -> float:
        """The rate in bit/s; inf for an unlimited link."""
        return self.rate

    @property
    def delay_s(self) -> float | None:
        """One-way propagation in seconds, or None where the round-trip time is given instead."""
        return self.delay

    @property
    def loss(self) -> Loss | None:
        """The random loss, or None when nothing is lost at random."""
        return self.loss_rule if self.loss_rule.mean_ratio() > 0 else None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.buffer.unit == "bdp" and math.isinf(self.rate):
            message = 'a bandwidth-delay product needs a rate; write rate = "10mbit" beside it'
            raise faults([fault(message, "buffer")])
        return self


class Network(Table):
    """An ingress link for each source, one shared bottleneck, an egress link for each receiver.

    Either ``rtt`` is given, one packet and its ack on the empty path, transmission times
    included, half of the propagation each way; or the links' ``delay``, one way each.
    """

    later: ClassVar[Mapping[str, str]] = {
        "hop": "write one [network.bottleneck] instead",
    }

    rtt: PositiveDuration | None = Field(
        default=None,
        examples=["50ms"],
        description="one packet and its ack on the empty path, transmission times included",
    )
    packet: PacketSize = Field(
        default=1500, examples=["1500B"], description="a data packet, IP and TCP headers included"
    )
    ack: AckSize = Field(default=40, examples=["40B"], description="an ack, headers included")
    ingress: Link = Field(
        default=Link(), examples=[{"rate": "100mbit"}], description="one for each source"
    )
    bottleneck: Link = Field(
        default=Link(),
        examples=[{"rate": "10mbit", "buffer": "150pkt"}],
        description="shared by all",
    )
    egress: Link = Field(
        default=Link(), examples=[{"rate": "2mbit"}], description="one for each receiver"
    )

    @property
    def packet_bytes(self) -> int:
        """Size of a data packet on the wire."""
        return self.packet

    @property
    def ack_bytes(self) -> int:
        """Size of an ack on the wire."""
        return self.ack

    @property
    def payload_bytes(self) -> int:
        """Application bytes in a data packet."""
        return self.packet - HEADER_BYTES

    @property
    def rtt_s(self) -> float:
        """Time of one packet and its ack on the empty path."""
        return self.rtt if self.rtt is not None else self.path_rtt_s(self.ingress, self.egress)

    @property
    def has_delays(self) -> bool:
        """Whether the links' delays are given."""
        links = (self.ingress, self.bottleneck, self.egress)
        return any(link.delay is not None for link in links)

    def transmission_s(self, ingress: Link, egress: Link) -> float:
        """Return the transmission times of one packet and its ack over the three links."""
        bits = 8 * (self.packet + self.ack)
        return math.fsum(bits / link.rate for link in (ingress, self.bottleneck, egress))

    def path_rtt_s(self, ingress: Link, egress: Link) -> float:
        """Return the round-trip time that the links' delays give."""
        delays = [link.delay or 0.0 for link in (ingress, self.bottleneck, egress)]
        return 2 * math.fsum(delays) + self.transmission_s(ingress, egress)

    def buffer_pkts(self, link: Link) -> float:
        """Return how many data packets a link's buffer holds; inf when unlimited."""
        return link.buffer.packets(packet_bytes=self.packet, rate_bps=link.rate, rtt_s=self.rtt_s)

    @model_validator(mode="after")
    def _check(self) -> Self:
        found = []
        if self.rtt is None and not self.has_delays:
            message = 'missing; write rtt = "50ms", or a delay for each link'
            found.append(fault(message, "rtt"))
        elif self.rtt is not None:
            problem = self.rtt_problem(
                self.rtt, self.ingress, self.egress, delays_count=self.has_delays
            )
            if problem:
                found.append(fault(problem, "rtt"))
        for name in ("ingress", "bottleneck", "egress"):
            problem = self.buffer_problem(getattr(self, name))
            if problem:
                found.append(fault(problem, name, "buffer"))
        for name in ("ingress", "egress"):
            for key, problem in self.own_link_problems(getattr(self, name)):
                found.append(fault(problem, name, key))
        if not found:
            found += [*self._faults_of_red(), *self._faults_of_fair_queue()]
        if found:
            raise faults(found)
        return self

    def red_parameters(self) -> RedParameters | None:
        """Return the parameters of the bottleneck's RED as numbers, or None where it has none.

        The link's propagation is the bottleneck's ``delay``, or with ``rtt`` what that leaves.
        """
        link = self.bottleneck
        if not isinstance(link.queue, Red):
            return None
        delay_s = link.delay
        if delay_s is None:
            _, one_way = self.timing(self.rtt, self.ingress, self.egress)
            own = math.fsum(own.delay or 0.0 for own in (self.ingress, self.egress))
            delay_s = max(0.0, one_way - own)
        rate = link.rate / (8 * self.packet)
        return link.queue.parameters(packets_per_second=rate, delay_s=delay_s)

    def _faults_of_red(self) -> list[InitErrorDetails]:
        """Find what is wrong with the bottleneck's RED, given that the network is right."""
        at = ("bottleneck", "queue")
        if isinstance(self.bottleneck.queue, Red) and math.isinf(self.bottleneck.rate):
            message = 'RED drops early where packets wait; write rate = "10mbit" beside it'
            return [fault(message, *at)]
        red = self.red_parameters()
        if red is None or red.max_threshold_pkts > red.min_threshold_pkts:
            return []
        low = units.format_packets(red.min_threshold_pkts)
        high = units.format_packets(red.max_threshold_pkts)
        message = f"{high} is not above min_threshold, {low}; write more, or leave it out"
        return [fault(message, *at, "max_threshold")]

    def _faults_of_fair_queue(self) -> list[InitErrorDetails]:
        queue = self.bottleneck.queue
        if not isinstance(queue, FairQueue):
            return []
        at = ("bottleneck", "queue")
        if math.isinf(self.bottleneck.rate):
            message = 'flows take turns where packets wait; write rate = "10mbit" beside it'
            return [fault(message, *at)]
        if queue.quantum is not None and queue.quantum < self.packet:
            message = (
                f'"{queue.quantum}B" is less than one packet, so that turns would pass in vain; '
                f'write at least "{self.packet}B"'
            )
            return [fault(message, *at, "quantum")]
        return []

    def own_link_problems(self, link: Link) -> list[tuple[str, str]]:
        """Say which keys of a source's or a receiver's own link belong to the bottleneck."""
        found = []
        if isinstance(link.queue, Red):
            message = 'RED is for the bottleneck, where flows meet; write "droptail" here'
            found.append(("queue", message))
        if isinstance(link.queue, FairQueue):
            message = 'one flow has no turns to take; write "droptail" here'
            found.append(("queue", message))
        if isinstance(link.loss_rule, RestOfRound):
            message = 'the rest of a round is lost at the bottleneck only; write "1%" here'
            found.append(("loss", message))
        return found

    def timing(self, rtt_s: float | None, ingress: Link, egress: Link) -> tuple[float, float]:
        """Return the round-trip time over these links and the one-way propagation in it.

        ``rtt_s`` is the time given, or None where the links' delays are.
        """
        total = self.path_rtt_s(ingress, egress) if rtt_s is None else rtt_s
        propagation = total - self.transmission_s(ingress, egress)
        if rtt_s is None:
            # Not from the difference, which would leave rounding errors in typed delays.
            delays = [link.delay or 0.0 for link in (ingress, self.bottleneck, egress)]
            propagation = 2 * math.fsum(delays)
        return total, propagation / 2

    def buffer_problem(self, link: Link) -> str | None:
        """Say what is wrong with a link's buffer for these packets, or None."""
        if link.buffer.unit == "bytes" and link.buffer.amount < self.packet:
            return f'"{link.buffer}" is less than one packet; write at least "{self.packet}B"'
        return None

    def rtt_problem(
        self, rtt_s: float, ingress: Link, egress: Link, *, delays_count: bool
    ) -> str | None:
        """Say what is wrong with a round-trip time over these links, or None.

        ``delays_count`` says whether the links' delays are meant to give the same time.
        """
        least = self.transmission_s(ingress, egress)
        given = units.format_duration(rtt_s)
        if rtt_s < least:
            return (
                f"{given} is less than the transmission times of one packet and its ack over the "
                f"three links, {_rounded_up(least)}; write at least that, or raise the rates"
            )
        if delays_count:
            follows = self.path_rtt_s(ingress, egress)
            if abs(follows - rtt_s) > 1e-6:
                return (
                    f"{given} contradicts the links' delays, which give {follows * 1e3:.6g}ms; "
                    "write one or the other"
                )
        return None


def _rounded_up(seconds: float) -> str:
    """Write a time rounded up to 0.1 us, so that what is suggested is enough."""
    return units.format_duration(math.ceil(seconds * 1e7) / 1e7)
