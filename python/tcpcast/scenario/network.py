"""The network: links in series, from each source to its receiver, or simply a round-trip time."""

import functools
import math
from typing import Self

from pydantic import Field, ValidationInfo, model_validator
from pydantic_core import InitErrorDetails

from tcpcast import units
from tcpcast.scenario.aqm import ManagedQueue
from tcpcast.scenario.hops import Hop, hop_faults, measured_hop
from tcpcast.scenario.jitter import JitterRule
from tcpcast.scenario.link import Link, PathLink
from tcpcast.scenario.loss import Loss, LossRule, RestOfRound, ratio_too
from tcpcast.scenario.quantities import AckSize, Duration, PacketSize, PositiveDuration
from tcpcast.scenario.queue import FairQueue, Red, RedParameters
from tcpcast.scenario.rate import TokenBucket
from tcpcast.scenario.return_path import RETURN, ReturnLink
from tcpcast.scenario.table import Table, fault, faults, reading

HEADER_BYTES = 40
"""IP and TCP headers of a data packet, without options."""

MOST_HOPS = 32

NO_RTT = 'missing; write rtt = "50ms", or a delay for each link'

_TIMES = {"rtt", "ingress.delay", "egress.delay"}
_RATES = {"ingress.rate", "egress.rate"}
"""Keys of classes on which their round-trip times depend."""


class Network(Table):
    """An ingress link for each source, hops that all take, an egress link for each receiver.

    The hops are ``bottleneck`` alone or a list of ``hop``, in the order of the forward path.
    Either ``rtt`` is given, one packet and its ack on the empty path, transmission times
    included, half of the propagation in each direction; or the links' ``delay``, for one direction
    each. Where the return path is longer or shorter than the forward path, ``return_delay`` is its
    propagation.
    """

    rtt: PositiveDuration | None = Field(
        default=None,
        examples=["50ms"],
        description="base RTT of a packet and its ack, with transmission times",
    )
    return_delay: Duration | None = Field(
        default=None,
        examples=["60ms"],
        description="propagation of the return path; default as the forward path",
    )
    packet: PacketSize = Field(
        default=1500, examples=["1500B"], description="size of a data packet, with headers"
    )
    ack: AckSize = Field(default=40, examples=["40B"], description=("size of an ack, with headers"))
    ingress: Link = Field(
        default=Link.model_construct(), examples=[{"rate": "100mbit"}], description="one per source"
    )
    bottleneck_link: Link = Field(
        default=Link.model_construct(),
        alias="bottleneck",
        examples=[{"rate": "10mbit", "buffer": "150pkt"}],
        description="shared by all",
    )
    jitter: JitterRule | None = Field(
        default=None,
        examples=[{"distribution": "exponential", "mean": "5ms"}],
        description="distribution of a random delay behind the bottleneck; reorder = true lets "
        "packets overtake",
    )
    hops: list[Hop] = Field(
        default=[],
        alias="hop",
        max_length=MOST_HOPS,
        examples=[[{"name": "backbone", "rate": "80mbit"}]],
        description="hops in series, in forward order, instead of bottleneck",
    )
    egress: Link = Field(
        default=Link.model_construct(), examples=[{"rate": "2mbit"}], description="one per receiver"
    )
    return_link: ReturnLink | None = Field(
        default=None,
        alias="return",
        examples=[{"rate": "1mbit", "buffer": "50pkt"}],
        description="link shared by all acks",
    )
    ack_loss_rule: LossRule | None = Field(
        default=None,
        alias="ack_loss",
        examples=["1%"],
        description="random loss of acks, before the queue",
        json_schema_extra=ratio_too,
    )

    @property
    def ack_loss(self) -> Loss | None:
        """The random loss of acks, or None when none is lost at random."""
        rule = self.ack_loss_rule
        return rule if rule is not None and rule.mean_ratio() > 0 else None

    @property
    def has_return(self) -> bool:
        """Whether acks share a link that may delay or lose them."""
        return self.return_link is not None or self.ack_loss is not None

    @property
    def return_bps(self) -> float:
        """Rate of what all acks share, bit/s; inf where it is unlimited."""
        return self.bottleneck.serial_bps if self.return_link is None else self.return_link.rate

    @property
    def return_buffer_acks(self) -> float:
        """How many acks the return link holds; inf when unlimited."""
        if self.return_link is None:
            return math.inf
        return self.return_link.buffer.packets(
            packet_bytes=self.ack, rate_bps=self.return_link.rate, rtt_s=self.rtt_s
        )

    @property
    def bottleneck(self) -> Link:
        """The hop that is measured: of several, the one that says so or the slowest shared one."""
        return self.hops[self.measured_at] if self.hops else self.bottleneck_link

    @property
    def measured_at(self) -> int:
        """Which of the hops is measured; 0 where there is only the bottleneck."""
        return measured_hop(self.hops)

    @property
    def hops_before(self) -> list[Hop]:
        """The hops between the sources' own links and the bottleneck."""
        return self.hops[: self.measured_at]

    @property
    def hops_after(self) -> list[Hop]:
        """The hops between the bottleneck and the receivers' own links."""
        return self.hops[self.measured_at + 1 :]

    # Asked for a dozen times for each answer.
    @functools.cached_property
    def own_links(self) -> tuple[PathLink, ...]:
        """The links of a source and a receiver that have none of their own, with those between."""
        measured = self.measured_at
        between = [
            PathLink(f"hop.{hop.name}", hop, hop.shared, at == measured)
            for at, hop in enumerate(self.hops)
        ]
        if not between:
            between = [PathLink("bottleneck", self.bottleneck_link, shared=True, measured=True)]
        return PathLink("ingress", self.ingress), *between, PathLink("egress", self.egress)

    def links(self, ingress: Link, egress: Link) -> tuple[PathLink, ...]:
        """Return the links that a data packet takes in their order."""
        if ingress is self.ingress and egress is self.egress:
            return self.own_links
        between = self.own_links[1:-1]
        return PathLink("ingress", ingress), *between, PathLink("egress", egress)

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
        if self.rtt is not None:
            return self.rtt
        return self.path_rtt_s(self.ingress, self.egress, self.packet)

    @property
    def has_delays(self) -> bool:
        """Whether the links' delays are given."""
        links = self.links(self.ingress, self.egress)
        return any(on.link.delay is not None for on in links)

    @property
    def is_timed(self) -> bool:
        """True if it has a round-trip time; otherwise each class has its own."""
        return self.rtt is not None or self.has_delays

    def transmission_s(self, ingress: Link, egress: Link, packet_bytes: int) -> float:
        """Return the transmission times of one packet and its ack over all links."""
        bits = 8 * (packet_bytes + self.ack)
        if self.return_link is None:
            return math.fsum(bits / on.link.serial_bps for on in self.links(ingress, egress))
        ack_bits = 8 * self.ack
        others = [
            bits / on.link.serial_bps for on in self.links(ingress, egress) if not on.measured
        ]
        shared = (bits - ack_bits) / self.bottleneck.serial_bps + ack_bits / self.return_link.rate
        return math.fsum([*others, shared])

    def delays_s(self, ingress: Link, egress: Link) -> float:
        """Return the sum of the links' delays, one way."""
        return math.fsum(on.link.delay or 0.0 for on in self.links(ingress, egress))

    def path_rtt_s(self, ingress: Link, egress: Link, packet_bytes: int) -> float:
        """Return the round-trip time that the links' delays give."""
        there, back = self.delays_s(ingress, egress), self._back_s(ingress, egress)
        return there + back + self.transmission_s(ingress, egress, packet_bytes)

    def buffer_pkts(self, link: Link) -> float:
        """Return how many data packets a link holds; inf when unlimited, 0 of a policer."""
        if link.polices:
            return 0.0
        return link.buffer.packets(packet_bytes=self.packet, rate_bps=link.rate, rtt_s=self.rtt_s)

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Self:
        of_classes = reading(info).class_keys
        found = self._faults_of_timing(of_classes)
        for at, link in self._placed_links():
            own = {f"{at[0]}.rate", f"{at[0]}.buffer"}
            problem = None if own & of_classes else self.buffer_problem(link)
            if problem:
                found.append(fault(problem, *at, "buffer"))
            if isinstance(link.varying, TokenBucket) and link.varying.burst < self.packet:
                message = f'is less than one packet; write at least "{self.packet}B"'
                found.append(fault(message, *at, "rate", "burst"))
        for name in ("ingress", "egress"):
            for key, problem in self.own_link_problems(getattr(self, name)):
                found.append(fault(problem, name, key))
        found += self._faults_of_hops() + self._faults_of_return()
        for at, link in [] if found else self._shared_links():
            found += [*self._faults_of_red(link, *at), *self._faults_of_fair_queue(link, *at)]
            if isinstance(link.queue, ManagedQueue) and math.isinf(link.rate):
                message = f'{link.queue.kind} acts where packets queue; write rate = "10mbit"'
                found.append(fault(message, *at, "queue"))
        if found:
            raise faults(found)
        return self

    def _faults_of_timing(self, of_classes: frozenset[str]) -> list[InitErrorDetails]:
        """Find what is wrong with the times; classes that set these keys are checked themselves."""
        found = []
        if not self.is_timed:
            key = self._key_of_rtt()
            if key is not None:
                message = f'missing, and {key} depends on it; write rtt = "50ms"'
                found.append(fault(message, "rtt"))
            elif not of_classes & _TIMES:
                found.append(fault(NO_RTT, "rtt"))
        elif self.rtt is not None and not of_classes & (_TIMES | _RATES):
            links = self.ingress, self.egress
            problem = self.rtt_problem(self.rtt, *links, self.packet, delays_count=self.has_delays)
            if problem:
                found.append(fault(problem, "rtt"))
        problem = (
            None if found else self.return_problem(self.rtt, self.ingress, self.egress, self.packet)
        )
        if problem:
            found.append(fault(problem, "return_delay"))
        return found

    def _key_of_rtt(self) -> str | None:
        """Return a key whose meaning depends on ``rtt``, or None."""
        for at, link in self._placed_links():
            if link.buffer.unit == "bdp":
                return ".".join(map(str, (*at, "buffer")))
            if isinstance(link.queue, Red):
                return ".".join(map(str, (*at, "queue")))
        if self.return_link is not None and self.return_link.buffer.unit == "bdp":
            return f"{RETURN}.buffer"
        return None if self.return_delay is None else "return_delay"

    def _faults_of_hops(self) -> list[InitErrorDetails]:
        found = hop_faults(self.hops)
        if self.hops and "bottleneck_link" in self.model_fields_set:
            message = "there are [[network.hop]] tables; write one of them in its place"
            found.append(fault(message, "bottleneck"))
        return found

    def _faults_of_return(self) -> list[InitErrorDetails]:
        found, link = [], self.return_link
        if link is not None and link.buffer.unit == "bytes" and link.buffer.amount < self.ack:
            message = f'"{link.buffer}" is less than one ack; write at least "{self.ack}B"'
            found.append(fault(message, RETURN, "buffer"))
        if isinstance(self.ack_loss_rule, RestOfRound):
            message = 'correlated loss within a round is of data packets; write "1%" here'
            found.append(fault(message, "ack_loss"))
        if any(hop.name == RETURN for hop in self.hops) and self.has_return:
            message = '"return" is the return link; write a new name'
            at = [hop.name for hop in self.hops].index(RETURN)
            found.append(fault(message, "hop", at, "name"))
        return found

    def _placed_links(self) -> list[tuple[tuple[str | int, ...], Link]]:
        """Return all links with the places where they are typed."""
        found: list[tuple[tuple[str | int, ...], Link]] = [(("ingress",), self.ingress)]
        found += [(("hop", at), hop) for at, hop in enumerate(self.hops)]
        if not self.hops:
            found.append((("bottleneck",), self.bottleneck_link))
        return [*found, (("egress",), self.egress)]

    def _shared_links(self) -> list[tuple[tuple[str | int, ...], Link]]:
        """Return the links where packets of different sources meet, likewise."""
        return [
            (at, link)
            for at, link in self._placed_links()[1:-1]
            if not isinstance(link, Hop) or link.shared
        ]

    def red_parameters(self, link: Link | None = None) -> RedParameters | None:
        """Return the parameters of a shared link's RED as numbers, or None where it has none.

        The link, if not told, is the bottleneck; its propagation is its ``delay``, or with ``rtt``
        what that leaves.
        """
        link = link or self.bottleneck
        if not isinstance(link.queue, Red):
            return None
        delay_s = link.delay
        if delay_s is None:
            _, there, _ = self.timing(self.rtt, self.ingress, self.egress, self.packet)
            delay_s = max(0.0, there - self.delays_s(self.ingress, self.egress))
        rate = link.rate / (8 * self.packet)
        return link.queue.parameters(packets_per_second=rate, delay_s=delay_s)

    def _faults_of_red(self, link: Link, *above: str | int) -> list[InitErrorDetails]:
        """Find what is wrong with a link's RED, given that the network is right."""
        at = (*above, "queue")
        if isinstance(link.queue, Red) and math.isinf(link.rate):
            message = 'RED drops early where packets queue; write rate = "10mbit"'
            return [fault(message, *at)]
        red = self.red_parameters(link)
        if red is None or red.max_threshold_pkts > red.min_threshold_pkts:
            return []
        low = units.format_packets(red.min_threshold_pkts)
        high = units.format_packets(red.max_threshold_pkts)
        message = f"{high} is not above min_threshold, {low}; write more, or leave it out"
        return [fault(message, *at, "max_threshold")]

    def _faults_of_fair_queue(self, link: Link, *above: str | int) -> list[InitErrorDetails]:
        queue = link.queue
        if not isinstance(queue, FairQueue):
            return []
        at = (*above, "queue")
        if math.isinf(link.rate):
            message = 'flows take turns where packets queue; write rate = "10mbit"'
            return [fault(message, *at)]
        if queue.quantum is not None and queue.quantum < self.packet:
            message = (
                f'"{queue.quantum}B" is less than one packet, so turns would pass without a '
                f'packet; write at least "{self.packet}B"'
            )
            return [fault(message, *at, "quantum")]
        return []

    def own_link_problems(self, link: Link) -> list[tuple[str, str]]:
        """Say which keys of a source's or a receiver's own link belong to the bottleneck."""
        found = []
        if isinstance(link.queue, Red):
            message = 'RED is for the bottleneck, where flows share a queue; write "droptail" here'
            found.append(("queue", message))
        if isinstance(link.queue, FairQueue):
            message = 'one flow has no turns to take; write "droptail" here'
            found.append(("queue", message))
        if isinstance(link.queue, ManagedQueue):
            message = f'{link.queue.kind} is for the bottleneck or a shared hop; write "droptail"'
            found.append(("queue", f"{message} here"))
        if link.varying is not None:
            message = (
                f'a {link.varying.kind} is for the bottleneck or a shared hop; write "10mbit" here'
            )
            found.append(("rate", message))
        if isinstance(link.loss_rule, RestOfRound):
            message = 'correlated loss within a round is for the bottleneck only; write "1%" here'
            found.append(("loss", message))
        return found

    def timing(
        self, rtt_s: float | None, ingress: Link, egress: Link, packet_bytes: int
    ) -> tuple[float, float, float]:
        """Return the round-trip time over these links, and the propagation there and back in it.

        ``rtt_s`` is the time given, or None where the links' delays are. ``return_delay`` is that
        over ``ingress`` and ``egress`` of the network: longer links of a class are longer on the
        return path, too, and of its own round-trip time the return path has the same share.
        """
        if rtt_s is None:
            # Not from a difference, which would leave rounding errors in typed delays.
            there = self.delays_s(ingress, egress)
            whole = self.path_rtt_s(ingress, egress, packet_bytes)
            return whole, there, self._back_s(ingress, egress)
        propagation = rtt_s - self.transmission_s(ingress, egress, packet_bytes)
        share = 0.5
        if self.return_delay is not None:
            whole = self.rtt_s - self.transmission_s(self.ingress, self.egress, self.packet)
            share = self.return_delay / whole if whole > 0 else math.inf
        back = propagation * share
        return rtt_s, propagation - back, back

    def _back_s(self, ingress: Link, egress: Link) -> float:
        there = self.delays_s(ingress, egress)
        if self.return_delay is None:
            return there
        return self.return_delay + there - self.delays_s(self.ingress, self.egress)

    def return_problem(
        self, rtt_s: float | None, ingress: Link, egress: Link, packet_bytes: int
    ) -> str | None:
        """Say what is wrong with ``return_delay`` over these links, or None."""
        if self.return_delay is None:
            return None
        given = units.format_duration(self.return_delay)
        _, there, back = self.timing(rtt_s, ingress, egress, packet_bytes)
        if there < 0:
            most = units.format_duration(math.floor((there + back) * 1e7) / 1e7)
            return f"{given} is more than the whole propagation; write at most {most}"
        # Acks take the links of sources and receivers and the other hops backwards.
        least = self.delays_s(ingress, egress) - (self.bottleneck.delay or 0.0)
        if back < least - 1e-12:
            return (
                f"{given} is less than the delays of the links on the return path, "
                f"{_rounded_up(least)}; write at least that, or shorter delays there"
            )
        return None

    def buffer_problem(self, link: Link) -> str | None:
        """Say what is wrong with a link's buffer for these packets, or None."""
        if link.buffer.needs_rate and math.isinf(link.rate):
            what = "a bandwidth-delay product" if link.buffer.unit == "bdp" else "a buffer in time"
            return f'{what} needs a rate; write rate = "10mbit"'
        if link.buffer.unit == "bytes" and link.buffer.amount < self.packet:
            return f'"{link.buffer}" is less than one packet; write at least "{self.packet}B"'
        return None

    def rtt_problem(
        self, rtt_s: float, ingress: Link, egress: Link, packet_bytes: int, *, delays_count: bool
    ) -> str | None:
        """Say what is wrong with a round-trip time over these links, or None.

        ``delays_count`` says whether the links' delays are meant to give the same time.
        """
        least = self.transmission_s(ingress, egress, packet_bytes)
        if rtt_s < least:
            over = "all links" if self.hops else "the three links"
            return (
                f"{units.format_duration(rtt_s)} is less than the transmission times of one packet "
                f"and its ack over {over}, {_rounded_up(least)}; write at least that, or raise the "
                "rates"
            )
        if delays_count:
            follows = self.path_rtt_s(ingress, egress, packet_bytes)
            if abs(follows - rtt_s) > 1e-6:
                return (
                    f"{units.format_duration(rtt_s)} contradicts the links' delays, which give "
                    f"{follows * 1e3:.6g}ms; write one or the other"
                )
        return None


def _rounded_up(seconds: float) -> str:
    """Write a time rounded up to 0.1 us, so that what is suggested is enough."""
    return units.format_duration(math.ceil(seconds * 1e7) / 1e7)
