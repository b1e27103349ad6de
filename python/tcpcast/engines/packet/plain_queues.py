"""Queues and rates of :mod:`tcpcast.engines.packet.plain`."""

from __future__ import annotations

from typing import Literal, TypedDict


class RedConfig(TypedDict):
    """Thresholds in packets."""

    min_threshold: float
    max_threshold: float
    max_probability: float
    weight: float
    gentle: bool
    packets_per_second: float
    ecn: bool


class DrrConfig(TypedDict):
    """Fair queueing."""

    quantum_bytes: int
    buffers: Literal["shared", "per-flow"]
    drop: Literal["arriving", "longest-tail", "longest-head"]
    ties: Literal["latest", "random", "random-others"]


class FairConfig(DrrConfig):
    """Fair queueing of packets of one length."""

    packet_bytes: int


class CodelConfig(TypedDict):
    """Controlled delay."""

    target_ns: int
    interval_ns: int
    mtu_bytes: int
    ecn: bool
    ce_threshold_ns: int | None
    rules: Literal["linux", "rfc8289"]


class FqCodelConfig(TypedDict):
    """Fair queueing with controlled delay."""

    codel: CodelConfig
    queues: int
    quantum_bytes: int


class PieConfig(TypedDict):
    """Proportional integral controller."""

    target_ns: int
    update_ns: int
    burst_ns: int
    alpha: float
    beta: float
    mtu_bytes: int
    ecn_below: float | None
    rules: Literal["linux", "rfc8033"]


class Red(TypedDict):
    """Random early detection."""

    red: RedConfig


class Drr(TypedDict):
    """Fair queueing of packets of any length."""

    drr: DrrConfig


class Codel(TypedDict):
    """Controlled delay."""

    codel: CodelConfig


class Pie(TypedDict):
    """Proportional integral controller."""

    pie: PieConfig


FqCodel = TypedDict("FqCodel", {"fq-codel": FqCodelConfig})
Discipline = Literal["drop-tail", "head-drop"] | Red | Drr | Codel | FqCodel | Pie


class TokenRate(TypedDict):
    """A token bucket."""

    rate_bps: int
    burst_bytes: int


class Constant(TypedDict):
    """A rate that is constant."""

    constant: int | None


class Bucket(TypedDict):
    """What finds tokens leaves at once."""

    bucket: TokenRate


class Opportunities(TypedDict):
    """Times of packet opportunities in milliseconds, and how many at each."""

    opportunities: list[tuple[int, int]]


LinkRate = Constant | Bucket | Opportunities


class ManagedConfig(TypedDict):
    """A discipline in front of a link of its own rate, with a limit in bytes if it has one."""

    discipline: Discipline
    rate: LinkRate
    limit_bytes: int | None


class PolicedConfig(TypedDict):
    """A policer."""

    tokens: TokenRate
    packet_bytes: int


class Fair(TypedDict):
    """Fair queueing."""

    fair: FairConfig


class Managed(TypedDict):
    """A discipline that may drop or mark what it holds, or whose rate is not constant."""

    managed: ManagedConfig


class Policed(TypedDict):
    """No queue: a policer."""

    policed: PolicedConfig


Queue = Literal["drop-tail"] | Red | Fair | Managed | Policed
