"""The simulations of the reproduction, and what they measure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tcpcast.engines import RunOptions, answer
from tcpcast.papers.parallel.published import BOTTLENECKS_MBIT
from tcpcast.papers.reproduction import Unfinished

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tcpcast.answer import Answer
    from tcpcast.papers.parallel.points import Point
    from tcpcast.scenario import Scenario

    Look = Callable[[Point, Answer], "tuple[Measured, Measured]"]

SEED = 1
SHORTEST_WARMUP_S = 20.0
WARMUP_CYCLES = 12
QUEUE_WARMUP_CYCLES = 2
"""A queue that flows fill themselves finds its rhythm at once; its cycles are long."""


TRACE_WARMUP_CYCLES = 5
"""Of a run that is traced, whose slow start ends where the loss would have the window."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much to simulate.

    Attributes
    ----------
    flows
        The n of every figure.
    varied_flows
        Those that are simulated with other choices too.
    losses
        Random losses, as shares.
    rates_mbit
        Rates of the shared drop-tail link.
    replications
        Independent runs of each point.
    loss_events
        About so many losses at random of each point, all replications together.
    cycles
        At a queue, so many times that a lone flow's window grows from half to whole, in each
        replication.
    packets
        At a queue at least so many packets in each replication.
    shortest_s
        No replication is measured for less.
    traced_packets
        Packets of each run that is traced for its single losses.
    traces
        How many runs of each such point.
    """

    flows: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 100)
    varied_flows: tuple[int, ...] = (1, 10, 100)
    losses: tuple[float, ...] = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
    rates_mbit: tuple[int, ...] = BOTTLENECKS_MBIT
    replications: int = 8
    loss_events: int = 20_000
    cycles: int = 5
    packets: int = 500_000
    shortest_s: float = 50.0
    traced_packets: int = 400_000
    traces: int = 2


WHOLE = Effort()
QUICK = Effort(
    flows=(1, 10, 100),
    varied_flows=(1, 10),
    losses=(0.001, 0.01, 0.05, 0.1),
    rates_mbit=(1, 8, 64),
    replications=4,
    loss_events=3_000,
    cycles=2,
    packets=50_000,
    shortest_s=10.0,
    traced_packets=100_000,
    traces=1,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a simulated point shows; what the models are fed with.

    Attributes
    ----------
    point
        What was simulated.
    send_rate_pps
        Packets sent a second, all flows, retransmissions included.
    half_width
        Of its 95 % interval, as a share; inf where there is none.
    p
        Loss events of any flow, per packet sent.
    p_e
        Loss events of all flows taken as one.
    p_r
        Packets lost, per packet that came to the link.
    rtt_s, t0_s
        Mean round-trip time and mean first timeout.
    timeout_share
        Of loss indications.
    """

    point: Point
    send_rate_pps: float
    half_width: float
    p: float
    p_e: float
    p_r: float
    rtt_s: float
    t0_s: float
    timeout_share: float


def measured(point: Point, found: Answer) -> Measured:
    """Return what a ``packet`` answer says of a point.

    Where no timer expired T is what it would have been at least: the larger of the least timeout
    and the RTT, as ``--feed measured`` has it.
    """
    values = {name: metric.value for name, metric in found.metrics.items()}
    rate = found.metrics["send_rate_pps"]
    arms = None if rate.low is None or rate.high is None else rate.high - rate.low
    least = point.scenario(duration_s=2.0, warmup_s=1.0).tcp.min_rto_s
    return Measured(
        point=point,
        send_rate_pps=rate.value,
        half_width=float("inf") if arms is None else arms / 2 / rate.value,
        p=values.get("loss_indication_ratio", 0.0),
        p_e=values.get("loss_event_ratio_cumulative", 0.0),
        p_r=values["loss_ratio"],
        rtt_s=values["rtt_mean_s"],
        t0_s=values.get("t0_s") or max(least, values["rtt_mean_s"]),
        timeout_share=values.get("timeout_share", 0.0),
    )


@dataclass(slots=True)
class Runs:
    """Simulations by point: :meth:`want` them all, :meth:`simulate`, then look them up.

    Attributes
    ----------
    effort
        How long each one is.
    threads
        Replications that run at once (None: one a core).
    progress
        Called with the share of all packets simulated, 0 to 1.
    interrupted
        Whether the reader gave up before all was simulated.
    """

    effort: Effort
    threads: int | None = None
    progress: Callable[[float], None] | None = None
    interrupted: bool = False
    _wanted: dict[tuple[Point, Look | None], None] = field(default_factory=dict)
    _found: dict[Point, Measured] = field(default_factory=dict)
    _traces: dict[Point, list[tuple[Measured, Measured]]] = field(default_factory=dict)

    def want(self, points: Iterable[Point], *, traced: Look | None = None) -> None:
        """Ask for points; one that is asked for twice is run once.

        ``traced`` asks for traces of every packet, and says what to keep of each: a trace itself is
        too large to be kept until all are there.
        """
        for point in points:
            self._wanted[point, traced] = None

    def simulate(self) -> None:
        """Run what was asked for and is not yet there.

        A reader who gives up ends it: :attr:`interrupted` is true, and what is finished is kept.
        """
        try:
            self._simulate()
        except KeyboardInterrupt:
            self.interrupted = True

    def _simulate(self) -> None:
        total, ready = sum(self._packets(*each) for each in self._wanted), 0.0
        for point, traced in self._wanted:
            if traced is not None:
                self._traces[point] = [
                    traced(point, self._trace(point, SEED + at)) for at in range(self.effort.traces)
                ]
            elif point not in self._found:
                self._found[point] = measured(point, self._run(point))
            ready += self._packets(point, traced)
            if self.progress is not None:
                self.progress(min(1.0, ready / total))

    def __getitem__(self, point: Point) -> Measured:
        """Return what a point showed."""
        if self.interrupted and point not in self._found:
            raise Unfinished
        return self._found[point]

    def __len__(self) -> int:
        """Return the number of simulations asked for, each with its replications."""
        return len(self._wanted)

    def traces(self, point: Point) -> list[tuple[Measured, Measured]]:
        """Return what was kept of the traces of a point."""
        if self.interrupted and point not in self._traces:
            raise Unfinished
        return self._traces[point]

    def lengths_s(self, point: Point) -> tuple[float, float]:
        """Return how long a replication is warmed up and measured, in seconds."""
        effort = self.effort
        if point.loss:
            warmup = max(SHORTEST_WARMUP_S, WARMUP_CYCLES * point.cycle_s)
            wanted = effort.loss_events / (point.loss * point.rate_pps * effort.replications)
        else:
            warmup = max(SHORTEST_WARMUP_S, QUEUE_WARMUP_CYCLES * point.cycle_s)
            wanted = max(effort.cycles * point.cycle_s, effort.packets / point.rate_pps)
        return round(warmup, 3), round(max(effort.shortest_s, wanted), 3)

    def _packets(self, point: Point, traced: Look | None) -> float:
        if traced is not None:
            # A packet that is traced takes the time of some ten others.
            return 10.0 * self.effort.traces * self.effort.traced_packets
        return point.rate_pps * sum(self.lengths_s(point)) * self.effort.replications

    def _run(self, point: Point) -> Answer:
        warmup, length = self.lengths_s(point)
        scenario = point.scenario(
            duration_s=warmup + length,
            warmup_s=warmup,
            replications=self.effort.replications,
            seed=SEED,
        )
        return _packet(scenario, self.threads)

    def _trace(self, point: Point, seed: int) -> Answer:
        warmup = TRACE_WARMUP_CYCLES * point.cycle_s
        length = self.effort.traced_packets / point.rate_pps
        scenario = point.scenario(
            duration_s=warmup + length, warmup_s=warmup, seed=seed, traced=True
        )
        return _packet(scenario, 1)


def _packet(scenario: Scenario, threads: int | None) -> Answer:
    (given,) = answer(scenario, ["packet"], RunOptions(threads=threads))
    if given.interrupted:
        raise KeyboardInterrupt
    return given
