"""The configuration that the native simulator takes: plain data, of these names and types.

The names are those of the Rust types, which refuse any other (``crates/sim/src/config.rs`` and
what it is made of say what each means). Times are whole nanoseconds, rates whole bits a second and
buffers whole packets; None is unlimited. A choice is the name of the chosen one, or a dict of one
key, the name, with what belongs to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from tcpcast.engines.packet.plain_queues import Queue

Distribution = dict[str, Any]
"""``law`` and its numbers, as :meth:`tcpcast.scenario.laws.Law.parameters` gives them."""


class GilbertElliottStates(TypedDict):
    """Probabilities of two states."""

    to_bad: float
    to_good: float
    loss_good: float
    loss_bad: float


class Bernoulli(TypedDict):
    """Independent loss with this probability."""

    bernoulli: float


GilbertElliott = TypedDict("GilbertElliott", {"gilbert-elliott": GilbertElliottStates})
LossModel = Bernoulli | GilbertElliott


class OfPackets(TypedDict):
    """Packet by packet, whoever sent it."""

    packet: LossModel


RestOfRound = TypedDict("RestOfRound", {"rest-of-round": float})
BottleneckLoss = OfPackets | RestOfRound


class LinkLoss(TypedDict):
    """Random loss of a link, and its place there."""

    model: LossModel
    at: Literal["before", "behind"]


class BottleneckLinkLoss(TypedDict):
    """Random loss of the bottleneck, and its place there."""

    model: BottleneckLoss
    at: Literal["before", "behind"]


class InstantLoss(TypedDict):
    """Rules of instantaneous loss feedback."""

    growth: str
    whole_halves: bool
    halve_once: bool
    timeout: bool


class OfAnyTcp(TypedDict):
    """What both kinds of TCP have."""

    duplicate_threshold: int
    initial_window: int
    delayed_acks: bool
    ack_timeout_ns: int
    min_rto_ns: int
    initial_rto_ns: int
    max_rto_ns: int
    rto_granularity_ns: int


class StackOptions(OfAnyTcp):
    """Today's TCP: a preset, and the options over it."""

    stack: str
    mss: int
    receiver_window: int | None
    limited_transmit: bool
    idle_restart: bool
    timestamps: bool
    handshake: str
    ecn: bool


class RestartTimer(TypedDict):
    """Whether each retransmission of NewReno restarts the timer."""

    restart_timer: bool


class NewReno(TypedDict):
    """NewReno's recovery."""

    newreno: RestartTimer


class After(TypedDict):
    """An idle time in nanoseconds."""

    after: int


class TcpConfig(OfAnyTcp):
    """TCP; with ``modern``, the rest of it means nothing."""

    recovery: Literal["reno"] | NewReno
    timer_restart: str
    backoff_until: str
    last_packets_threshold: int
    limited_transmit: str
    window_unit: str
    initial_ssthresh: int
    slow_start_at_ssthresh: bool
    receiver_window: int
    idle_restart: Literal["never", "after-timeout"] | After
    instant: InstantLoss | None
    modern: StackOptions | None


class AccessConfig(TypedDict):
    """A link of a source's own."""

    rate_bps: int | None
    delay_ns: int
    limit_pkts: int | None
    loss: LinkLoss | None


class HopConfig(TypedDict):
    """A hop of the path beside the bottleneck."""

    rate_bps: int | None
    delay_ns: int
    buffer_pkts: int | None
    queue: Queue
    loss: LinkLoss | None
    shared: bool


class ReturnConfig(TypedDict):
    """The link that acknowledgements share."""

    rate_bps: int | None
    buffer_pkts: int | None
    queue: Queue
    loss: LossModel | None


class JitterConfig(TypedDict):
    """Random delay behind the bottleneck, in seconds."""

    delay: Distribution
    reorder: bool


class Poisson(TypedDict):
    """Independent packets, so many a second."""

    law: Literal["poisson"]
    rate: float


class Gamma(TypedDict):
    """Every ``shape``-th of independent packets."""

    law: Literal["gamma"]
    rate: float
    shape: float


class Fgn(TypedDict):
    """A rate that is fractional Gaussian noise, in packets a second."""

    law: Literal["fgn"]
    mean: float
    sd: float
    hurst: float
    bin_ns: int
    bins: int


class ParetoSources(TypedDict):
    """Sources that send at one rate, packets a second, or not at all."""

    law: Literal["pareto"]
    sources: int
    peak: float
    on: float
    off: float
    alpha: float
    together: bool


class Replay(TypedDict):
    """What was recorded, over and over."""

    law: Literal["trace"]
    times_ns: list[int]
    packets: list[float]
    period_ns: int
    offset_ns: int | None


Process = Poisson | Gamma | Fgn | ParetoSources | Replay


class CrossConfig(TypedDict):
    """A stream of cross traffic, and where it is."""

    stage: int
    bin_ns: int
    bins: int
    series: int
    process: Process


class EquilibriumShare(TypedDict):
    """The probability of being active, and within how many seconds what is left begins."""

    active: float
    within: float


class Equilibrium(TypedDict):
    """As someone finds sources who comes at any time."""

    equilibrium: EquilibriumShare


class WholeBytes(TypedDict):
    """Bytes of data in a full packet, where sizes are whole bytes."""

    bytes: int


Rounding = Literal["nearest", "down"] | WholeBytes


class OnOffSources(TypedDict):
    """OFF times in seconds, sizes in packets."""

    off: Distribution
    size: Distribution
    rounding: Rounding
    persistent: bool
    coupling: float
    begin: Literal["off"] | Equilibrium


class Drawn(TypedDict):
    """Each start is drawn, in seconds."""

    drawn: Distribution


class Times(TypedDict):
    """Starts in seconds."""

    times: list[float]


class Flows(TypedDict):
    """Endless flows, which stop at a time in seconds."""

    start: Drawn | Times
    stop: float | None


class Sizes(TypedDict):
    """Files in turn: packets, and the bytes that the last one lacks of a full one."""

    sizes: list[tuple[int, int]]


class Arriving(TypedDict):
    """Times between transfers in seconds, sizes in packets."""

    gap: Distribution
    size: Distribution
    rounding: Rounding


OnOff = TypedDict("OnOff", {"on-off": OnOffSources})


class Bulk(TypedDict):
    """Endless flows."""

    bulk: Flows


class Transfers(TypedDict):
    """Single transfers one after the other."""

    transfers: Sizes


class Arrivals(TypedDict):
    """Single transfers that begin at random times."""

    arrivals: Arriving


Traffic = OnOff | Bulk | Transfers | Arrivals


class ClassConfig(TypedDict):
    """A class of sources; ``scale`` is how many sources each stands for, if there is a scale.

    ``packet_bytes`` is None if its packets have the length of the run.
    """

    sources: int
    ingress: AccessConfig
    egress: AccessConfig
    forward_ns: int
    back_ns: int
    packet_bytes: int | None
    traffic: Traffic
    tcp: TcpConfig
    host_noise_ns: int
    scale: float | None


class ProbeConfig(TypedDict):
    """What is recorded."""

    size_bounds: list[int]
    traced: list[int]
    trace_points: int | None
    course: bool
    captures: list[tuple[str, int]]
    goodput_packets: int
    goodput_least: int
    report_at_ns: list[int]


class RunConfig(TypedDict):
    """A whole run."""

    seed: int
    packet_bytes: int
    ack_bytes: int
    bottleneck_bps: int | None
    buffer_pkts: int | None
    queue: Queue
    loss: BottleneckLinkLoss | None
    jitter: JitterConfig | None
    cross: list[CrossConfig]
    hops_before: list[HopConfig]
    hops_after: list[HopConfig]
    return_link: ReturnConfig | None
    tcp: TcpConfig
    classes: list[ClassConfig]
    warmup_ns: int
    probes: ProbeConfig


class FixedPointConfig(TypedDict):
    """A fixed point; of each class, the gaps between packets and service times to begin with."""

    scheme: str
    conditional: bool
    moments: int
    references: list[int]
    steps: int
    step_ns: int
    initial: list[tuple[float, float]]
