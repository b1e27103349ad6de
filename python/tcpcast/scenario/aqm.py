"""Queue disciplines that may drop or mark queued packets, as active queue management does."""

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field, StrictBool

from tcpcast.quantity import units
from tcpcast.scenario.quantities import (
    Bytes,
    PositiveDuration,
    PositiveRate,
    integer_annotation,
    number_annotation,
)
from tcpcast.scenario.rate import MAX_OVERHEAD_BYTES
from tcpcast.scenario.table import (
    Choice,
    Errors,
    Table,
    make_error_at,
)

MAX_QUANTUM = 10**9
MAX_FLOWS = 1 << 20

PIE_MAX_MARK_PROBABILITY = 0.1
"""The drop probability up to which PIE marks: RFC 8033, section 5.1."""

MARKING_TEXT = "mark the packets of stacks with tcp.ecn instead of dropping them"
SPLIT_GSO_TEXT = "enqueue the packets of a tcp.tso burst one by one"

Rules = Annotated[Literal["rfc", "linux"], Choice("set of rules")]


class ManagedQueue(Table):
    """A queue discipline that may drop queued packets, and mark them if it has a key ``ecn``."""

    label: ClassVar[str]
    """The name in reports."""

    kind: str

    @abstractmethod
    def simulator_config(self, mtu_bytes: int, /) -> str | dict[str, Any]:
        """Return the discipline for the simulator: a ``QueueConfig`` of ``crates/link``."""


class HeadDrop(ManagedQueue):
    """First in, first out: when the buffer is full, the oldest queued packet is dropped."""

    label = "head-drop"
    kind: Literal["head-drop"] = Field(description="name of the discipline")

    def simulator_config(self, _mtu_bytes: int, /) -> str:
        """Return the name, because the discipline has no parameters."""
        return "head-drop"


class Codel(ManagedQueue):
    """Controlled delay (RFC 8289)."""

    label = "CoDel"
    kind: Literal["codel"] = Field(description="name of the discipline")
    target: PositiveDuration = Field(
        default=0.005, examples=["5ms"], description="acceptable standing queueing delay"
    )
    interval: PositiveDuration = Field(
        default=0.1,
        examples=["100ms"],
        description="time for which the delay must exceed target before the first drop; typically "
        "the longest RTT",
    )
    ecn: StrictBool = Field(default=True, examples=[False], description=MARKING_TEXT)
    ce_threshold: PositiveDuration | None = Field(
        default=None,
        examples=["1ms"],
        description="delay above which every ECN-capable packet is marked, for DCTCP",
    )
    ce_threshold_selector: Annotated[Literal["any_ect", "ect1"], Choice("rule")] = Field(
        default="any_ect",
        examples=["ect1"],
        description="packets that ce_threshold marks: all ECN-capable ones, or those with ECT(1) "
        "(L4S)",
    )
    rules: Rules = Field(
        default="rfc",
        examples=["linux"],
        description='pseudo-code of RFC 8289 ("rfc"), or codel_impl.h of Linux ("linux")',
    )

    def _find_errors(self) -> Errors:
        if self.ce_threshold_selector != "any_ect" and self.ce_threshold is None:
            message = 'requires ce_threshold = "1ms", for example'
            yield make_error_at(message, "ce_threshold_selector")
        if self.target >= self.interval:
            # The ratio of the defaults, 5 ms and 100 ms (RFC 8289).
            usual = units.format_duration(float(f"{self.interval / 20:.3g}"))
            message = f'must be below interval; use "{usual}", for example'
            yield make_error_at(message, "target")

    def simulator_config(self, mtu_bytes: int, /) -> dict[str, Any]:
        """Return the parameters of CoDel."""
        threshold = self.ce_threshold
        codel = {
            "target_ns": round(self.target * 1e9),
            "interval_ns": round(self.interval * 1e9),
            "mtu_bytes": mtu_bytes,
            "ecn": self.ecn,
            "ce_threshold_ns": None if threshold is None else round(threshold * 1e9),
            "ce_threshold_ect1": self.ce_threshold_selector == "ect1",
            "rules": "linux" if self.rules == "linux" else "rfc8289",
        }
        return {"codel": codel}


class FqCodel(Codel):
    """Flow queueing with CoDel (RFC 8290): one queue per flow, new flows first."""

    label = "FQ-CoDel"
    kind: Literal["fq_codel"] = Field(description="name of the discipline")  # type: ignore[assignment]
    quantum: Bytes = Field(
        default=1514, examples=["300B"], description="bytes that a flow may send per round"
    )
    flows: Annotated[int, *integer_annotation(1, MAX_FLOWS)] = Field(
        default=1024,
        examples=[4096],
        description="number of queues, to which flows are assigned by a hash",
    )

    def _find_errors(self) -> Errors:
        yield from super()._find_errors()
        if not 0 < self.quantum <= MAX_QUANTUM:
            message = 'must be above 0 and at most 1 GB; use "1514B", for example'
            yield make_error_at(message, "quantum")

    def simulator_config(self, mtu_bytes: int, /) -> dict[str, Any]:
        """Return the parameters of CoDel and of the scheduler."""
        numbers = {"queues": self.flows, "quantum_bytes": self.quantum}
        return {"fq-codel": {**super().simulator_config(mtu_bytes), **numbers}}


class Cake(ManagedQueue):
    """CAKE: a shaper, traffic classes, fair sharing among hosts and flows, and an AQM per flow.

    As ``sch_cake`` of Linux, with the keywords of ``tc`` as values. Packets with ECN are marked.
    """

    label = "CAKE"
    ecn: ClassVar[bool] = True
    kind: Literal["cake"] = Field(description="name of the discipline")
    shaper: PositiveRate | None = Field(
        default=None,
        alias="rate",
        examples=["95mbit"],
        description="rate of the shaper in front of the link; default: none",
    )
    overhead: Annotated[int, *integer_annotation(-64, MAX_OVERHEAD_BYTES)] = Field(
        default=14,
        examples=[44],
        description="bytes that the shaper adds to each packet; the default is the Ethernet header",
    )
    mpu: Annotated[int, *integer_annotation(0, MAX_OVERHEAD_BYTES)] = Field(
        default=0, examples=[64], description="minimum length with which the shaper counts a packet"
    )
    framing: Annotated[Literal["noatm", "atm", "ptm"], Choice("framing")] = Field(
        default="noatm",
        examples=["atm"],
        description='framing that the shaper counts: none ("noatm"), 53 bytes per 48 ("atm") or 65 '
        'per 64 ("ptm")',
    )
    tins: Annotated[Literal["besteffort", "diffserv3", "diffserv4"], Choice("traffic classes")] = (
        Field(
            default="diffserv3",
            examples=["besteffort"],
            description=(
                'traffic classes by DSCP: one ("besteffort"); bulk, best effort and voice '
                '("diffserv3"); or also video ("diffserv4")'
            ),
        )
    )
    flows: Annotated[
        Literal[
            "flowblind",
            "srchost",
            "dsthost",
            "hosts",
            "flows",
            "dual-srchost",
            "dual-dsthost",
            "triple-isolate",
        ],
        Choice("kind of isolation"),
    ] = Field(
        default="triple-isolate",
        examples=["dual-dsthost"],
        description="fair sharing of the link among hosts, among flows, among hosts and then their "
        "flows (dual- and triple-), or not at all (flowblind)",
    )
    ack_filter: Annotated[Literal["off", "on", "aggressive"], Choice("mode of the filter")] = Field(
        default="off",
        examples=["on"],
        description=(
            'drop queued acks that later acks make redundant; "on" keeps two, "aggressive" keeps '
            "one"
        ),
    )
    ingress: StrictBool = Field(
        default=False,
        examples=[True],
        description="charge dropped packets to the shaper, for a shaper behind the bottleneck",
    )
    split_gso: StrictBool = Field(default=True, examples=[False], description=SPLIT_GSO_TEXT)
    rtt: PositiveDuration = Field(
        default=0.1,
        examples=["30ms"],
        description=("interval of the AQM, typically the RTT; the target is 5 % of this interval"),
    )

    def _find_errors(self) -> Errors:
        for key in ("overhead", "mpu", "framing", "ingress"):
            default = type(self).model_fields[key].default
            if self.shaper is None and getattr(self, key) != default:
                message = 'requires a shaper; add rate = "95mbit", or remove this key'
                yield make_error_at(message, key)

    def simulator_config(self, _mtu_bytes: int, /) -> dict[str, Any]:
        """Return the parameters of CAKE."""
        return {
            "cake": {
                "rate_bps": None if self.shaper is None else round(self.shaper),
                "overhead_bytes": self.overhead,
                "mpu_bytes": self.mpu,
                "framing": "none" if self.framing == "noatm" else self.framing,
                "tins": self.tins,
                "isolation": self.flows,
                "ack_filter": self.ack_filter,
                "ingress": self.ingress,
                "split_gso": self.split_gso,
                "rtt_ns": round(self.rtt * 1e9),
            }
        }


Gain = Annotated[float, *number_annotation("gain", 0, 1e6, example=0.125)]


class Pie(ManagedQueue):
    """Proportional integral controller enhanced (RFC 8033)."""

    label = "PIE"
    kind: Literal["pie"] = Field(description="name of the discipline")
    target: PositiveDuration = Field(
        default=0.015, examples=["20ms"], description="target queueing delay, QDELAY_REF"
    )
    update: PositiveDuration = Field(
        default=0.015,
        examples=["16ms"],
        description="update interval of the drop probability, T_UPDATE; since Linux 4.8, timers "
        "round it up to 16 ms (CONFIG_HZ=1000) or 20 ms (CONFIG_HZ=250)",
    )
    burst: PositiveDuration = Field(
        default=0.15,
        examples=["150ms"],
        description="time without drops when a queue begins to form, MAX_BURST",
    )
    alpha: Gain = Field(
        default=0.125,
        examples=[0.125],
        description="increase of the probability per update, for each second of delay above target",
    )
    beta: Gain = Field(
        default=1.25,
        examples=[1.25],
        description="increase of the probability per update, for each second by which the delay "
        "has grown",
    )
    ecn: StrictBool = Field(
        default=True,
        examples=[False],
        description=f"{MARKING_TEXT}, up to a drop probability of 10 % (RFC 8033, section 5.1)",
    )
    rules: Annotated[Literal["rfc", "linux", "linux-4"], Choice("set of rules")] = Field(
        default="rfc",
        examples=["linux"],
        description='pseudo-code of RFC 8033 ("rfc"), sch_pie.c of Linux ("linux"), or sch_pie.c '
        'of Linux 3.14 to 5.0, which estimates the departure rate ("linux-4")',
    )

    def simulator_config(self, mtu_bytes: int, /) -> dict[str, Any]:
        """Return the parameters of PIE."""
        pie = {
            "target_ns": round(self.target * 1e9),
            "update_ns": round(self.update * 1e9),
            "burst_ns": round(self.burst * 1e9),
            "alpha": self.alpha,
            "beta": self.beta,
            "mtu_bytes": mtu_bytes,
            "ecn_below": PIE_MAX_MARK_PROBABILITY if self.ecn else None,
            "rules": "rfc8033" if self.rules == "rfc" else self.rules,
        }
        return {"pie": pie}


MIN_DUALPI2_UPDATE_S = 1e-4


class Dualpi2(ManagedQueue):
    """DualPI2 (RFC 9332): a queue of low latency for L4S beside the classic queue.

    As ``sch_dualpi2`` of Linux, with the parameters and keywords of ``tc``.
    """

    label = "DualPI2"
    ecn: ClassVar[bool] = True
    kind: Literal["dualpi2"] = Field(description="name of the discipline")
    target: PositiveDuration = Field(
        default=0.015, examples=["20ms"], description="target delay of the classic queue"
    )
    tupdate: PositiveDuration = Field(
        default=0.016, examples=["16ms"], description="update interval of the probability"
    )
    alpha: Gain = Field(
        default=41 / 256,
        examples=[0.16],
        description="increase of the probability per update, for each second of delay above target",
    )
    beta: Gain = Field(
        default=819 / 256,
        examples=[3.2],
        description="increase of the probability per update, for each second by which the delay "
        "has grown",
    )
    coupling_factor: Annotated[int, *integer_annotation(1, 255)] = Field(
        default=2,
        examples=[2],
        description="k: classic packets are dropped or marked with probability p^2, and L4S "
        "packets are marked with k p",
    )
    step_thresh: PositiveDuration = Field(
        default=0.001,
        examples=["2ms"],
        description="delay above which every L4S packet is marked",
    )
    ramp: PositiveDuration | None = Field(
        default=None,
        examples=["1ms"],
        description="range of delay above step_thresh in which the marking probability rises to 1 "
        "(RFC 9332, appendix A.1); default: one step, as in Linux",
    )
    min_qlen_step: Annotated[int, *integer_annotation(0, MAX_FLOWS)] = Field(
        default=0,
        examples=[1],
        description="minimum number of queued L4S packets for which step_thresh applies",
    )
    classic_protection: Annotated[int, *integer_annotation(0, 100)] = Field(
        default=10,
        examples=[20],
        description="percentage of the rate for the classic queue while both hold packets",
    )
    overload: Annotated[Literal["drop_on_overload", "overflow"], Choice("rule")] = Field(
        default="drop_on_overload",
        examples=["overflow"],
        description="under overload: drop L4S packets, or queue them up to the buffer limit",
    )
    drop: Annotated[Literal["drop_dequeue", "drop_enqueue"], Choice("rule")] = Field(
        default="drop_dequeue",
        examples=["drop_enqueue"],
        description="whether packets are dropped and marked on dequeue or on enqueue",
    )
    classify: Annotated[Literal["l4s_ect", "any_ect"], Choice("rule")] = Field(
        default="l4s_ect",
        examples=["any_ect"],
        description="packets of the L4S queue: those with ECT(1) or CE, or all ECN-capable ones",
    )
    split_gso: StrictBool = Field(default=True, examples=[False], description=SPLIT_GSO_TEXT)

    def _find_errors(self) -> Errors:
        if self.tupdate < MIN_DUALPI2_UPDATE_S:
            yield make_error_at('must be at least 100 us; use "16ms", for example', "tupdate")

    def simulator_config(self, mtu_bytes: int, /) -> dict[str, Any]:
        """Return the parameters of DualPI2."""
        dualpi2 = {
            "target_ns": round(self.target * 1e9),
            "update_ns": round(self.tupdate * 1e9),
            "alpha": self.alpha,
            "beta": self.beta,
            "coupling": float(self.coupling_factor),
            "step_ns": round(self.step_thresh * 1e9),
            "ramp_ns": round((self.ramp or 0) * 1e9),
            "min_step_packets": self.min_qlen_step,
            "classic_protection": self.classic_protection,
            "drop_overload": self.overload == "drop_on_overload",
            "drop_early": self.drop == "drop_enqueue",
            "any_ect": self.classify == "any_ect",
            "split_gso": self.split_gso,
            "mtu_bytes": mtu_bytes,
        }
        return {"dualpi2": dualpi2}


AQM_TABLES: dict[str, type[ManagedQueue]] = {
    get_args(table.model_fields["kind"].annotation)[0]: table
    for table in (Codel, FqCodel, Cake, Pie, Dualpi2, HeadDrop)
}
"""The disciplines by ``kind``."""
