"""Simulations of the reproduction, and their measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcpcast_papers.parallel.published import BOTTLENECKS_MBIT
from tcpcast_papers.simulations import SEED, Simulations, progress_of_run, simulate_scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tcpcast.answer import Answer

    from tcpcast_papers.parallel.loss_events import MeasuredTwoWays
    from tcpcast_papers.parallel.points import Point

    Analysis = Callable[[Point, Answer], MeasuredTwoWays]

MIN_WARMUP_S = 20.0
WARMUP_CYCLES = 12
QUEUE_WARMUP_CYCLES = 2
"""Warm-up at a queue that the flows fill themselves: few cycles, because cycles are long."""


TRACE_WARMUP_CYCLES = 5
"""Warm-up of a traced run; its slow start ends near the window that the loss allows."""


@dataclass(frozen=True, slots=True)
class SampleSizes:
    """Sample sizes of the simulations.

    Attributes
    ----------
    flows
        The n of every figure.
    varied_flows
        The n that are also simulated with other choices.
    real_flows
        The n of the stand-ins for real paths.
    losses
        Random losses, as shares.
    rates_mbit
        Rates of the shared drop-tail link.
    replications
        Independent runs of each point.
    loss_events
        Approximate number of random losses per point, over all replications.
    cycles
        With a queue, the number of times per replication that the window of a single flow would
        grow from half to the maximum.
    packets
        With a queue, the minimum number of packets per replication.
    min_measured_s
        Minimum measured time of a replication.
    traced_packets
        Packets of each traced run.
    traces
        Number of traced runs of each such point.
    """

    flows: tuple[int, ...] = (1, 2, 5, 10, 20, 50, 100)
    varied_flows: tuple[int, ...] = (1, 10, 100)
    real_flows: tuple[int, ...] = tuple(range(1, 11))
    losses: tuple[float, ...] = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
    rates_mbit: tuple[int, ...] = BOTTLENECKS_MBIT
    replications: int = 8
    loss_events: int = 20_000
    cycles: int = 5
    packets: int = 500_000
    min_measured_s: float = 50.0
    traced_packets: int = 400_000
    traces: int = 2


WHOLE = SampleSizes()
QUICK = SampleSizes(
    flows=(1, 10, 100),
    varied_flows=(1, 10),
    real_flows=(1, 4, 10),
    losses=(0.001, 0.01, 0.05, 0.1),
    rates_mbit=(1, 8, 64),
    replications=4,
    loss_events=3_000,
    cycles=2,
    packets=50_000,
    min_measured_s=10.0,
    traced_packets=100_000,
    traces=1,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Measurements of a simulated point, the inputs of the models.

    Attributes
    ----------
    point
        The simulated point.
    send_rate_pps
        Packets sent per second by all flows, including retransmissions.
    half_width
        Half-width of its 95 % interval, as a share; inf if there is none.
    p
        Loss events of any flow, per packet sent.
    p_e
        Loss events of all flows combined.
    p_r
        Lost packets per packet that arrived at the link.
    rtt_s, t0_s
        Mean round-trip time and mean first timeout.
    timeout_share
        Share of timeouts in the loss indications.
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


def make_measured_point(point: Point, result: Answer) -> Measured:
    """Return the measurements of a point from a ``packet`` answer.

    If no timer expired, T is its minimum: the larger of the minimum timeout and the RTT, as with
    ``--feed measured``.
    """
    values = {name: metric.value for name, metric in result.metrics.items()}
    rate = result.metrics["send_rate_pps"]
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


@dataclass(frozen=True, slots=True)
class PointJob:
    """A point with lengths of warm-up and measurement, and number of replications."""

    point: Point
    warmup_s: float
    measured_s: float
    replications: int

    @property
    def weight(self) -> float:
        """Approximate number of packets."""
        each_s = self.warmup_s + self.measured_s
        return self.point.rate_pps * each_s * self.replications

    def run(self, progress: Callable[[float], None]) -> Measured:
        """Run the simulation."""
        scenario = self.point.scenario(
            duration_s=self.warmup_s + self.measured_s,
            warmup_s=self.warmup_s,
            replications=self.replications,
            seed=SEED,
        )
        return make_measured_point(self.point, simulate_scenario(scenario, progress))


@dataclass(frozen=True, slots=True)
class TraceJob:
    """Traces of every packet of a point.

    Parameters
    ----------
    point
        Point to trace.
    analyse
        Function that extracts measurements; traces are too large to keep all of them.
    packets
        Packets of each trace.
    traces
        Number of traces.
    """

    point: Point
    analyse: Analysis
    packets: int
    traces: int

    @property
    def weight(self) -> float:
        """Approximate number of packets; a traced packet takes the time of about ten others."""
        return 10.0 * self.traces * self.packets

    def run(self, progress: Callable[[float], None]) -> list[MeasuredTwoWays]:
        """Simulate and analyse one trace at a time."""
        return [self._trace(index, progress) for index in range(self.traces)]

    def _trace(self, index: int, progress: Callable[[float], None]) -> MeasuredTwoWays:
        warmup_s = TRACE_WARMUP_CYCLES * self.point.cycle_s
        result = simulate_scenario(
            self.point.scenario(
                duration_s=warmup_s + self.packets / self.point.rate_pps,
                warmup_s=warmup_s,
                seed=SEED + index,
                traced=True,
            ),
            progress_of_run(progress, index, self.traces),
        )
        return self.analyse(self.point, result)


class Runs(Simulations[SampleSizes]):
    """Simulations by point: :meth:`request` all, :meth:`simulate`, then look up the results."""

    def request(self, points: Iterable[Point], *, traced: Analysis | None = None) -> None:
        """Request points, or with ``traced`` their traces and the analysis of each."""
        sample_sizes = self.sample_sizes
        for point in points:
            if traced is None:
                self._jobs[point, False] = PointJob(
                    point, *self.lengths_s(point), sample_sizes.replications
                )
            else:
                self._jobs[point, True] = TraceJob(
                    point, traced, sample_sizes.traced_packets, sample_sizes.traces
                )

    def __getitem__(self, point: Point) -> Measured:
        """Return the measurements of a point; raise Unfinished if Ctrl-C prevented them."""
        result: Measured = self._result((point, False))
        return result

    def traces(self, point: Point) -> list[MeasuredTwoWays]:
        """Return the analyses of a point's traces; raises as ``__getitem__`` does."""
        result: list[MeasuredTwoWays] = self._result((point, True))
        return result

    def lengths_s(self, point: Point) -> tuple[float, float]:
        """Return the warm-up and the measured time of a replication, in seconds."""
        sample_sizes = self.sample_sizes
        if point.loss:
            warmup = max(MIN_WARMUP_S, WARMUP_CYCLES * point.cycle_s)
            wanted = sample_sizes.loss_events / (
                point.loss * point.rate_pps * sample_sizes.replications
            )
        else:
            warmup = max(MIN_WARMUP_S, QUEUE_WARMUP_CYCLES * point.cycle_s)
            wanted = max(sample_sizes.cycles * point.cycle_s, sample_sizes.packets / point.rate_pps)
        return round(warmup, 3), round(max(sample_sizes.min_measured_s, wanted), 3)
