"""A link with its queue: rate, propagation, buffer, queue discipline, random loss."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import (
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
)

from tcpcast.process.errors import UnitError
from tcpcast.quantity import units
from tcpcast.quantity.unit_tables import TIME_UNITS
from tcpcast.scenario.aqm import Cake
from tcpcast.scenario.loss import (
    Bernoulli,
    Loss,
    LossPlace,
    LossRule,
    RestOfRound,
    add_ratio_to_schema,
)
from tcpcast.scenario.quantities import Duration
from tcpcast.scenario.queue import Queue, add_queue_words_to_schema
from tcpcast.scenario.rate import LinkRate, TokenBucket, VaryingRate, compute_mean_bps
from tcpcast.scenario.table import Errors, Table, make_error_at

MAX_BUFFER_PKTS = 10**9
MAX_BUFFER_S = 3600.0
MAX_BUFFER_BDP = 10**6


@dataclass(frozen=True, slots=True)
class Buffer:
    """Buffer limit of a queue, including the packet in transmission.

    ``unit`` is ``"packets"``, ``"bytes"``, ``"bdp"`` (link rate times ``network.rtt``),
    ``"seconds"`` (data that the link sends in one second), or ``"unlimited"`` with ``amount`` inf.
    """

    unit: Literal["packets", "bytes", "bdp", "seconds", "unlimited"]
    amount: float

    def packets(self, *, packet_bytes: int, rate_bps: float, rtt_s: float) -> float:
        """Return the number of data packets that fit in the buffer.

        Parameters
        ----------
        packet_bytes
            Size of a data packet.
        rate_bps, rtt_s
            Rate of the link and round-trip time of the path, used for a buffer in
            bandwidth-delay products or in seconds. The result is rounded up to whole packets.

        Returns
        -------
        float
            A whole number, or inf.
        """
        if self.unit == "bytes":
            return float(self.amount // packet_bytes)
        if self.needs_rate and math.isinf(rate_bps):
            return math.inf
        if self.needs_rate:
            over_s = (self.amount, rtt_s) if self.unit == "bdp" else (self.amount,)
            # Exact fractions: 12 Mbit/s x 50 ms must give 50 packets, not slightly more.
            bits = math.prod(units.exact_fraction(x) for x in (*over_s, rate_bps))
            return float(max(1, math.ceil(bits / (8 * packet_bytes))))
        return self.amount

    @property
    def needs_rate(self) -> bool:
        """True if the number of packets depends on the link rate."""
        return self.unit in {"bdp", "seconds"}

    def __str__(self) -> str:
        """Format the buffer as in a scenario."""
        if self.unit == "unlimited":
            return "unlimited"
        if self.unit == "seconds":
            return units.format_duration(self.amount)
        suffix = {"packets": "pkt", "bytes": "B", "bdp": "bdp"}[self.unit]
        return f"{units.decimal_text(units.exact_decimal(self.amount))}{suffix}"


UNLIMITED = Buffer("unlimited", math.inf)


def read_buffer(value: object) -> Buffer:
    """Read a buffer as typed: ``"150pkt"``, ``"64MB"``, ``"1bdp"``, ``"50ms"``, ``"unlimited"``.

    Raises
    ------
    UnitError
        The value is not a buffer, has no unit, is 0 or is too large.
    """
    if isinstance(value, Buffer):
        return value
    if value == "unlimited":
        return UNLIMITED
    if isinstance(value, str) and value.strip().endswith("bdp"):
        units.check_leading_digit(value, "buffer", '"1bdp"', bare=True)
        try:
            amount = units.parse_packets(value.strip().removesuffix("bdp").strip() + "pkt")
        except UnitError:  # its message has the unit pkt
            amount = 0.0
        if not 0 < amount <= MAX_BUFFER_BDP:
            raise UnitError(
                f"{units.quote(value)} must be above 0 and at most {MAX_BUFFER_BDP:,} "
                'bandwidth-delay products; use "1bdp", for example'
            )
        return Buffer("bdp", amount)
    if not isinstance(value, str) or units.is_bare_number(value):
        # Check 0 first: it is wrong in every unit. Other bare numbers need a unit.
        number = units.parse_packets(value)
        _check_buffer_size(value, number)
        written = f'"{units.format_packets(number)}", "200KB", "1bdp" or "unlimited"'
        raise UnitError(f"{units.quote(value)} has no unit; use {written}")
    if value.strip().endswith("B"):
        size = units.parse_bytes(value)
        _check_buffer_size(value, size)
        return Buffer("bytes", float(size))
    if re.fullmatch(rf"\s*{units.NUMBER}\s*({'|'.join(TIME_UNITS)})\s*", value):
        seconds = units.parse_duration(value)
        _check_buffer_size(value, seconds)
        if seconds > MAX_BUFFER_S:
            raise UnitError(
                f"{units.quote(value)} is too large for a buffer; use a shorter time, such as "
                '"50ms", or "unlimited"'
            )
        return Buffer("seconds", seconds)
    packets = units.parse_packets(value)
    _check_buffer_size(value, packets)
    if packets != int(packets):
        raise UnitError(
            f'{units.quote(value)} is not a whole number of packets; use "{int(packets) or 1}pkt"'
        )
    if packets > MAX_BUFFER_PKTS:
        raise UnitError(f'{units.quote(value)} is too large; use "unlimited"')
    return Buffer("packets", packets)


def _check_buffer_size(value: object, amount: float) -> None:
    if amount == 0:
        raise UnitError(
            f"{units.quote(value)} has no space for the packet in transmission; use at least "
            '"1pkt", or "unlimited"'
        )


BufferSize = Annotated[
    Buffer,
    PlainValidator(read_buffer),
    PlainSerializer(str, return_type=str),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": r"^\s*\+?" + units.NUMBER + r"\s*(pkt|bdp|B|kB|KB|MB|GB|KiB|MiB|GiB"
            r"|ns|[uµμ]s|ms|s|min|h)\s*$|^unlimited$",
            "examples": ["150pkt"],
        }
    ),
]


class Link(Table):
    """A link with its queue."""

    elsewhere: ClassVar[Mapping[str, str]] = {
        "policer": "is a kind of rate; use "
        'rate = { bucket = "20mbit", burst = "100KB", policer = true }',
        "measured": "belongs to [[network.hop]] tables; remove this key if there is a single "
        "bottleneck",
        "shared": "belongs to [[network.hop]] tables; remove this key",
        "name": "belongs to [[network.hop]] tables; remove this key",
    }

    rate_rule: LinkRate = Field(
        default=math.inf,
        alias="rate",
        examples=["10mbit"],
        description=("rate in IP bytes"),
    )
    delay: Duration | None = Field(
        default=None,
        examples=["10ms"],
        description="one-way propagation delay, instead of network.rtt",
    )
    buffer: BufferSize = Field(
        default=UNLIMITED,
        examples=["150pkt"],
        description="buffer limit, including the packet in transmission",
    )
    queue: Queue = Field(
        default="droptail", examples=["droptail"], json_schema_extra=add_queue_words_to_schema
    )
    loss_rule: LossRule = Field(
        default=Bernoulli.model_construct(model="bernoulli", rate=0.0),
        alias="loss",
        examples=["1%"],
        description="random loss of data packets",
        json_schema_extra=add_ratio_to_schema,
    )
    loss_at: LossPlace = Field(
        default="before",
        examples=["behind"],
        description="whether random loss acts before the queue or behind the transmitter",
    )

    @property
    def rate(self) -> float:
        """Long-term rate in bit/s; inf for an unlimited link."""
        return compute_mean_bps(self.rate_rule)

    @property
    def rate_bps(self) -> float:
        """Long-term rate in bit/s, like ``rate``."""
        return self.rate

    @property
    def varying(self) -> VaryingRate | None:
        """The varying rate, or None if the rate is constant."""
        return None if isinstance(self.rate_rule, float | int) else self.rate_rule

    @property
    def idle_access_s(self) -> float:
        """Mean time for which a packet waits for access to the medium of an idle link, s."""
        return 0.0

    @property
    def serial_bps(self) -> float:
        """Transmission rate of a single packet on an idle link in bit/s, or inf.

        The rate is inf for token buckets, which send immediately while they have tokens. It is also
        inf for packet opportunities, because a packet then waits for them in the queue.
        """
        return self.rate if self.varying is None else math.inf

    @property
    def is_policer(self) -> bool:
        """True if the link is a policer, which has no queue."""
        return isinstance(self.rate_rule, TokenBucket) and self.rate_rule.policer

    @property
    def delay_s(self) -> float | None:
        """One-way propagation delay in seconds, or None if ``network.rtt`` is given instead."""
        return self.delay

    @property
    def loss(self) -> Loss | None:
        """The random loss, or None if its ratio is 0."""
        return self.loss_rule if self.loss_rule.mean_ratio() > 0 else None

    def _find_errors(self) -> Errors:
        for key, typed in (
            ("buffer", self.buffer != UNLIMITED),
            ("queue", self.queue != "droptail"),
        ):
            if self.is_policer and typed:
                message = "a policer has no queue; remove either this key or policer = true"
                yield make_error_at(message, key)
        shaper = self.queue.shaper if isinstance(self.queue, Cake) else None
        if shaper is not None and shaper > self.rate_bps:
            message = (
                f"{units.format_rate(shaper)} is above the rate of the link, "
                f"{units.format_rate(self.rate_bps)}; use a lower rate, or remove this key"
            )
            yield make_error_at(message, "queue", "rate")
        if self.loss_at == "behind":
            if "loss_rule" not in self.model_fields_set:
                message = 'this link has no random loss; use loss = "1%", or remove loss_at'
                yield make_error_at(message, "loss_at")
            if isinstance(self.loss_rule, RestOfRound):
                message = (
                    'correlated loss within a round always occurs before the queue; use "before"'
                )
                yield make_error_at(message, "loss_at")
