"""The network: links in series from each source to its receiver, or a round-trip time."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

from pydantic import (
    Field,
    ValidationInfo,
    model_validator,
)

from tcpcast.quantity import units
from tcpcast.scenario.hops import Hop, find_hop_errors, find_measured_hop
from tcpcast.scenario.jitter import JitterRule
from tcpcast.scenario.link import Link
from tcpcast.scenario.links import NetworkLink
from tcpcast.scenario.loss import Loss, LossRule, RestOfRound, add_ratio_to_schema
from tcpcast.scenario.path import PathLink
from tcpcast.scenario.quantities import (
    AckSize,
    Duration,
    PacketSize,
    PositiveDuration,
)
from tcpcast.scenario.queue import FairQueue, Red, RedParameters
from tcpcast.scenario.rate import TokenBucket
from tcpcast.scenario.return_path import RETURN, ReturnLink
from tcpcast.scenario.table import (
    Table,
    get_validation_context,
    make_error_at,
    make_validation_error,
)

HEADER_BYTES = 40
"""IP and TCP headers of a data packet, without options."""

MAX_HOPS = 32

MISSING_RTT_TEXT = 'missing; add rtt = "50ms", or a delay for each link'
_RANDOM_LOSS = 'use a random loss here, such as "1%"'

_TIMES = {"rtt", "ingress.delay", "egress.delay"}
_RATES = {"ingress.rate", "egress.rate"}
"""Keys of a class that affect its round-trip time."""


class Network(Table):
    """One ingress link per source, hops for all packets, and one egress link per receiver.

    The hops are either ``bottleneck`` or a list of ``hop`` in the order of the forward path. The
    propagation delay is given either by ``rtt`` or by the one-way ``delay`` of the links. ``rtt``
    is the base round-trip time of one packet and its ACK, including transmission times; its
    propagation delay is divided equally between both directions. ``return_delay`` is the
    propagation delay of a return path that is longer or shorter than the forward path.
    """

    rtt: PositiveDuration | None = Field(
        default=None,
        examples=["50ms"],
        description="idle RTT of a packet and its ack, including transmission times",
    )
    return_delay: Duration | None = Field(
        default=None,
        examples=["60ms"],
        description="propagation delay of the return path; default: that of the forward path",
    )
    packet: PacketSize = Field(
        default=1500, examples=["1500B"], description="size of a data packet, including headers"
    )
    ack: AckSize = Field(
        default=40, examples=["40B"], description="size of an ack, including headers"
    )
    ingress: Link = Field(
        default=Link.model_construct(),
        examples=[{"rate": "100mbit"}],
        description="access link of each source",
    )
    bottleneck_link: Link = Field(
        default=Link.model_construct(),
        alias="bottleneck",
        examples=[{"rate": "10mbit", "buffer": "150pkt"}],
        description="link shared by all sources",
    )
    jitter: JitterRule | None = Field(
        default=None,
        examples=[{"distribution": "exponential", "mean": "5ms"}],
        description="distribution of a random delay behind the queue; with reorder = true, "
        "packets overtake each other",
    )
    hops: list[Hop] = Field(
        default=[],
        alias="hop",
        max_length=MAX_HOPS,
        examples=[[{"name": "backbone", "rate": "80mbit"}]],
        description="hops in series on the forward path, instead of bottleneck",
    )
    egress: Link = Field(
        default=Link.model_construct(),
        examples=[{"rate": "2mbit"}],
        description="access link of each receiver",
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
        json_schema_extra=add_ratio_to_schema,
    )

    @property
    def ack_loss(self) -> Loss | None:
        """Random loss of acks, or None if its ratio is 0."""
        rule = self.ack_loss_rule
        return rule if rule is not None and rule.mean_ratio() > 0 else None

    @property
    def has_return(self) -> bool:
        """True if the ACKs of all sources share a link with a rate and a queue."""
        return self.return_link is not None or self.ack_loss is not None

    @property
    def return_bps(self) -> float:
        """Rate of the shared return link in bit/s; inf if unlimited."""
        return self.bottleneck.serial_bps if self.return_link is None else self.return_link.rate

    @property
    def return_buffer_acks(self) -> float:
        """Buffer of the return link in acks; inf if unlimited."""
        if self.return_link is None:
            return math.inf
        return self.return_link.buffer.packets(
            packet_bytes=self.ack, rate_bps=self.return_link.rate, rtt_s=self.rtt_s
        )

    def return_as_link(self) -> NetworkLink:
        """Return the link that the acks share, with their loss."""
        own: dict[str, Any] = {}
        if self.return_link is not None:
            link = self.return_link
            own = {"rate_rule": link.rate, "buffer": link.buffer, "queue": link.queue}
        if self.ack_loss is not None:
            own["loss_rule"] = self.ack_loss
        return NetworkLink.model_construct(None, **own)

    @property
    def bottleneck(self) -> Link:
        """The measured hop: the hop marked as measured, or else the slowest shared hop."""
        return self.hops[self.measured_index] if self.hops else self.bottleneck_link

    @property
    def measured_index(self) -> int:
        """Index of the measured hop; 0 if there is only the bottleneck."""
        return find_measured_hop(self.hops)

    @property
    def hops_before(self) -> list[Hop]:
        """The hops between the ingress links and the bottleneck."""
        return self.hops[: self.measured_index]

    @property
    def hops_after(self) -> list[Hop]:
        """The hops between the bottleneck and the egress links."""
        return self.hops[self.measured_index + 1 :]

    def links(self, ingress: Link, egress: Link) -> tuple[PathLink, ...]:
        """Return the links of the forward path of a class in order, without their buffers."""
        at = self.measured_index
        between = [
            PathLink(f"network.hop.{hop.name}", hop.name, hop, hop.shared, index == at)
            for index, hop in enumerate(self.hops)
        ] or [PathLink("network.bottleneck", "bottleneck", self.bottleneck_link, True, True)]
        return (
            PathLink("network.ingress", "ingress", ingress),
            *between,
            PathLink("network.egress", "egress", egress),
        )

    def route(self, ingress: Link, egress: Link, senders: int) -> tuple[PathLink, ...]:
        """Return the links of the forward path of a class of ``senders`` in order."""
        return tuple(
            replace(
                on,
                instances=1 if on.shared else senders,
                buffer_pkts=self.buffer_pkts(on.link),
            )
            for on in self.links(ingress, egress)
        )

    @property
    def packet_bytes(self) -> int:
        """Size of a data packet on the wire in bytes."""
        return self.packet

    @property
    def ack_bytes(self) -> int:
        """Size of an ACK on the wire in bytes."""
        return self.ack

    @property
    def payload_bytes(self) -> int:
        """Application bytes in a data packet."""
        return self.packet - HEADER_BYTES

    @property
    def rtt_s(self) -> float:
        """Base round-trip time in seconds."""
        if self.rtt is not None:
            return self.rtt
        return self.path_rtt_s(self.ingress, self.egress, self.packet)

    @property
    def has_delays(self) -> bool:
        """Whether any link has a delay."""
        links = self.links(self.ingress, self.egress)
        return any(on.link.delay is not None for on in links)

    @property
    def has_rtt(self) -> bool:
        """True if the network has a round-trip time; otherwise each class sets one."""
        return self.rtt is not None or self.has_delays

    def transmission_s(self, ingress: Link, egress: Link, packet_bytes: int) -> float:
        """Return the total transmission time of one packet and its ack over all links."""
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
        """Return the sum of the one-way delays of the links."""
        return math.fsum(on.link.delay or 0.0 for on in self.links(ingress, egress))

    def path_rtt_s(self, ingress: Link, egress: Link, packet_bytes: int) -> float:
        """Return the base round-trip time in seconds, computed from the delays of the links."""
        there, back = self.delays_s(ingress, egress), self._return_delay_s(ingress, egress)
        return there + back + self.transmission_s(ingress, egress, packet_bytes)

    def buffer_pkts(self, link: Link) -> float:
        """Return the buffer of a link in data packets; inf if unlimited, 0 for a policer."""
        if link.is_policer:
            return 0.0
        return link.buffer.packets(packet_bytes=self.packet, rate_bps=link.rate, rtt_s=self.rtt_s)

    @model_validator(mode="after")
    def _check_links_and_delays(self, info: ValidationInfo) -> Self:
        context = get_validation_context(info)
        of_classes = context.class_keys
        if context.has_links:
            return self
        # Delays and round-trip times, except for keys that classes set.
        errors = []
        if not self.has_rtt:
            key = self._find_key_that_needs_rtt()
            if key is not None:
                message = f'missing, and {key} depends on it; use "50ms", for example'
                errors.append(make_error_at(message, "rtt"))
            elif not of_classes & _TIMES:
                errors.append(make_error_at(MISSING_RTT_TEXT, "rtt"))
        elif self.rtt is not None and not of_classes & (_TIMES | _RATES):
            links = self.ingress, self.egress
            problem = self.rtt_problem(self.rtt, *links, self.packet, delays_count=self.has_delays)
            if problem:
                errors.append(make_error_at(problem, "rtt"))
        problem = (
            None
            if errors
            else self.return_problem(self.rtt, self.ingress, self.egress, self.packet)
        )
        if problem:
            errors.append(make_error_at(problem, "return_delay"))
        for above, link in self._links_with_keys():
            own = {f"{above[0]}.rate", f"{above[0]}.buffer"}
            problems = () if own & of_classes else self._size_problems(link)
            errors += [make_error_at(problem, *above, *keys) for keys, problem in problems]
        for name in ("ingress", "egress"):
            for key, problem in self.own_link_problems(getattr(self, name)):
                errors.append(make_error_at(problem, name, key))
        errors += find_hop_errors(self.hops)
        if self.hops and "bottleneck_link" in self.model_fields_set:
            message = (
                "cannot be combined with [[network.hop]] tables; describe the bottleneck as one of "
                "these tables"
            )
            errors.append(make_error_at(message, "bottleneck"))
        back = self.return_link
        if back is not None and back.buffer.unit == "bytes" and back.buffer.amount < self.ack:
            message = f'"{back.buffer}" is less than one ack; use at least "{self.ack}B"'
            errors.append(make_error_at(message, RETURN, "buffer"))
        if isinstance(self.ack_loss_rule, RestOfRound):
            message = f"correlated loss within a round applies only to data packets; {_RANDOM_LOSS}"
            errors.append(make_error_at(message, "ack_loss"))
        if any(hop.name == RETURN for hop in self.hops) and self.has_return:
            message = '"return" is the name of the return link; use another name'
            index = [hop.name for hop in self.hops].index(RETURN)
            errors.append(make_error_at(message, "hop", index, "name"))
        for above, link in [] if errors else self._links_with_keys()[1:-1]:
            if isinstance(link, Hop) and not link.shared:
                continue
            problems = self._queue_problems(link)
            errors += [make_error_at(problem, *above, *keys) for keys, problem in problems]
        if errors:
            raise make_validation_error(errors)
        return self

    def link_problems(self, link: Link) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the keys and error messages of a link with this packet size."""
        yield from self._size_problems(link)
        yield from self._queue_problems(link)

    def _size_problems(self, link: Link) -> Iterator[tuple[tuple[str, ...], str]]:
        problem = self.buffer_problem(link)
        if problem:
            yield ("buffer",), problem
        if isinstance(link.varying, TokenBucket) and link.varying.burst < self.packet:
            yield ("rate", "burst"), f'is less than one packet; use at least "{self.packet}B"'

    def _queue_problems(self, link: Link) -> Iterator[tuple[tuple[str, ...], str]]:
        if math.isinf(link.rate) and link.queue != "droptail":
            message = f'{link.queue.label} requires a limited rate; use "10mbit", for example'
            yield ("rate",), message
            return
        red = self.red_parameters(link)
        if red is not None and red.max_threshold_pkts <= red.min_threshold_pkts:
            low = units.format_packets(red.min_threshold_pkts)
            high = units.format_packets(red.max_threshold_pkts)
            yield (
                ("queue", "max_threshold"),
                f"{high} must be above min_threshold, {low}; use a larger threshold, or remove it",
            )
        quantum = link.queue.quantum if isinstance(link.queue, FairQueue) else None
        if quantum is not None and quantum < self.packet:
            yield (
                ("queue", "quantum"),
                f'"{quantum}B" is less than one packet, so a flow would send no packet in some '
                f'rounds; use at least "{self.packet}B"',
            )

    def _find_key_that_needs_rtt(self) -> str | None:
        """Return a key of the network that requires ``rtt``, or None."""
        for key, link in self._links_with_keys():
            if link.buffer.unit == "bdp":
                return ".".join(map(str, (*key, "buffer")))
            if isinstance(link.queue, Red):
                return ".".join(map(str, (*key, "queue")))
        if self.return_link is not None and self.return_link.buffer.unit == "bdp":
            return f"{RETURN}.buffer"
        return None if self.return_delay is None else "return_delay"

    def _links_with_keys(self) -> list[tuple[tuple[str | int, ...], Link]]:
        """Return all links with their keys."""
        links: list[tuple[tuple[str | int, ...], Link]] = [(("ingress",), self.ingress)]
        links += [(("hop", index), hop) for index, hop in enumerate(self.hops)]
        if not self.hops:
            links.append((("bottleneck",), self.bottleneck_link))
        return [*links, (("egress",), self.egress)]

    def red_parameters(self, link: Link | None = None) -> RedParameters | None:
        """Return the RED parameters of a shared link as numbers, or None if it has no RED.

        The default link is the bottleneck. The estimate uses the ``delay`` of the link or, if
        ``rtt`` is given, the remaining delay of the path.
        """
        link = link or self.bottleneck
        if not isinstance(link.queue, Red):
            return None
        delay_s = link.delay
        if delay_s is None:
            _, there, _ = self.rtt_and_delays_s(self.rtt, self.ingress, self.egress, self.packet)
            delay_s = max(0.0, there - self.delays_s(self.ingress, self.egress))
        rate = link.rate / (8 * self.packet)
        return link.queue.parameters(packets_per_second=rate, delay_s=delay_s)

    def own_link_problems(self, link: Link) -> list[tuple[str, str]]:
        """Return the keys of an ingress or egress link that only the bottleneck can have."""
        problems = []
        if link.queue != "droptail":
            message = f"{link.queue.label} is possible only at the bottleneck or a shared hop"
            problems.append(("queue", f'{message}; use "droptail" here'))
        if link.varying is not None:
            message = (
                f"a {link.varying.kind} is possible only at the bottleneck or a shared hop; use "
                '"10mbit" here'
            )
            problems.append(("rate", message))
        if isinstance(link.loss_rule, RestOfRound):
            message = (
                f"correlated loss within a round is possible only at the bottleneck; {_RANDOM_LOSS}"
            )
            problems.append(("loss", message))
        return problems

    def rtt_and_delays_s(
        self, rtt_s: float | None, ingress: Link, egress: Link, packet_bytes: int
    ) -> tuple[float, float, float]:
        """Return the base RTT and its forward and return propagation delays, in seconds.

        ``rtt_s`` is the given RTT, or None if the links have delays. ``return_delay`` is valid for
        the ``ingress`` and ``egress`` links of the network. If the links of a class are longer, its
        return path is longer by the same delays. If a class has a separate RTT, its return path
        keeps its share of the propagation delay.
        """
        if rtt_s is None:
            # A sum instead of a difference avoids rounding errors in typed delays.
            there = self.delays_s(ingress, egress)
            rtt_s = self.path_rtt_s(ingress, egress, packet_bytes)
            return rtt_s, there, self._return_delay_s(ingress, egress)
        propagation = rtt_s - self.transmission_s(ingress, egress, packet_bytes)
        share = 0.5
        if self.return_delay is not None:
            total = self.rtt_s - self.transmission_s(self.ingress, self.egress, self.packet)
            share = self.return_delay / total if total > 0 else math.inf
        back = propagation * share
        return rtt_s, propagation - back, back

    def _return_delay_s(self, ingress: Link, egress: Link) -> float:
        there = self.delays_s(ingress, egress)
        if self.return_delay is None:
            return there
        return self.return_delay + there - self.delays_s(self.ingress, self.egress)

    def return_problem(
        self, rtt_s: float | None, ingress: Link, egress: Link, packet_bytes: int
    ) -> str | None:
        """Return the error message for ``return_delay`` with these links, or None."""
        if self.return_delay is None:
            return None
        given = units.format_duration(self.return_delay)
        _, there, back = self.rtt_and_delays_s(rtt_s, ingress, egress, packet_bytes)
        if there < 0:
            largest = units.format_duration(math.floor((there + back) * 1e7) / 1e7)
            return f"{given} is more than the total propagation delay; use at most {largest}"
        # ACKs traverse the ingress link, the egress link and all hops but the bottleneck in
        # reverse.
        smallest = self.delays_s(ingress, egress) - (self.bottleneck.delay or 0.0)
        if back < smallest - 1e-12:
            return (
                f"{given} is less than the total delay of the links on the return path, "
                f"{_format_time_rounded_up(smallest)}; use at least this time, or shorter delays "
                "of these links"
            )
        return None

    def buffer_problem(self, link: Link) -> str | None:
        """Return the error message for a link's buffer with this packet size, or None."""
        if link.buffer.needs_rate and math.isinf(link.rate):
            what = "a bandwidth-delay product" if link.buffer.unit == "bdp" else "a buffer in time"
            return f'{what} requires a rate; use rate = "10mbit"'
        if link.buffer.unit == "bytes" and link.buffer.amount < self.packet:
            return f'"{link.buffer}" is less than one packet; use at least "{self.packet}B"'
        return None

    def rtt_problem(
        self, rtt_s: float, ingress: Link, egress: Link, packet_bytes: int, *, delays_count: bool
    ) -> str | None:
        """Return the error message for a round-trip time with these links, or None.

        With ``delays_count``, the round-trip time must equal that computed from the links' delays.
        """
        smallest = self.transmission_s(ingress, egress, packet_bytes)
        if rtt_s < smallest:
            over = "all links" if self.hops else "the three links"
            return (
                f"{units.format_duration(rtt_s)} is less than the transmission times of one packet "
                f"and its ack over {over}, {_format_time_rounded_up(smallest)}; use at least "
                "this time, or raise the rates"
            )
        if delays_count:
            follows = self.path_rtt_s(ingress, egress, packet_bytes)
            if abs(follows - rtt_s) > 1e-6:
                return (
                    f"{units.format_duration(rtt_s)} contradicts the links' delays, which give an "
                    f"RTT of {follows * 1e3:.6g}ms; use either network.rtt or the delays"
                )
        return None


def _format_time_rounded_up(seconds: float) -> str:
    """Format a time rounded up to 0.1 us, so that a suggested minimum is valid."""
    return units.format_duration(math.ceil(seconds * 1e7) / 1e7)
