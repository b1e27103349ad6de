"""Types of the compiled part of tcpcast; a test compares them with the module."""

from collections.abc import Callable
from os import PathLike
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from tcpcast.engines.packet.config_types import Config

__all__ = [
    "CLASS_CELLS",
    "GOODPUT_BUCKETS",
    "GOODPUT_KINDS",
    "LINK_CELLS",
    "LINK_CLASS_CELLS",
    "LINK_TOTAL_CELLS",
    "MIN_RTT_S",
    "RATE_UNITS",
    "SIZE_CELLS",
    "STEP_CELLS",
    "TIMEOUT_KINDS",
    "TIME_BUCKET_LIMITS_NS",
    "TIME_KINDS",
    "TIME_SERIES_CELLS",
    "Ack",
    "Simulation",
    "__version__",
    "fixed_point_bytes",
    "gamma_quantile",
    "read_trace",
    "register_control",
    "run_bytes",
    "run_link",
    "run_traffic",
    "student_quantile",
    "student_tail_probability",
]

__version__: str
LINK_CELLS: list[str]
CLASS_CELLS: list[str]
SIZE_CELLS: list[str]
LINK_TOTAL_CELLS: list[str]
LINK_CLASS_CELLS: list[str]
TIME_KINDS: list[str]
TIME_BUCKET_LIMITS_NS: list[int]
TIME_SERIES_CELLS: list[str]
STEP_CELLS: list[str]
TIMEOUT_KINDS: list[str]
RATE_UNITS: float
MIN_RTT_S: float
GOODPUT_KINDS: list[str]
GOODPUT_BUCKETS: tuple[int, int]

_SlotColumns = tuple[
    int,
    NDArray[np.uint64],
    NDArray[np.uint64],
    NDArray[np.uint64],
    NDArray[np.uint64],
]
"""Number of slots; then one array per column: slot, group, bucket, count."""

@final
class Simulation:
    def __new__(cls, config: Config, replications: int) -> Simulation: ...
    @classmethod
    def fixed_point(cls, config: Config, spec: Config, replications: int) -> Simulation: ...
    def advance(
        self,
        *,
        transfers: int | None,
        until_ns: int,
        threads: int,
        max_wall_s: float | None = None,
        progress: Callable[[float], object] | None = None,
    ) -> str: ...
    def clocks(self) -> list[tuple[int, bool]]: ...
    def counters(self) -> list[NDArray[np.uint64]]: ...
    def cross_flow_counters(self) -> list[NDArray[np.uint64]]: ...
    def steps(self) -> list[NDArray[np.float64]]: ...
    def totals(self) -> dict[str, Any]: ...
    def loss_events(self, apart_ns: int) -> list[NDArray[np.int64]] | None: ...
    def file_goodputs(self) -> list[_SlotColumns]: ...
    def link_classes(self) -> list[tuple[int, int]]: ...
    def class_times(self) -> list[_SlotColumns]: ...
    def link_waits(self) -> list[_SlotColumns]: ...
    def stages(self) -> list[NDArray[np.uint8]]: ...
    def unfinished(self) -> list[list[tuple[int, int]]]: ...
    def delivered(self) -> list[list[list[int]]]: ...
    def sources(self) -> list[tuple[NDArray[np.uint64], NDArray[np.uint64]]]: ...
    def time_series(self) -> list[NDArray[np.uint64]]: ...
    def time_counts(
        self, together: bool
    ) -> list[tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[np.uint64]]]: ...
    def traces(self) -> dict[str, Any]: ...
    def begin_capture(self, index: int, path: str | PathLike[str]) -> None: ...
    def end_capture(self, index: int) -> bool: ...

@final
class Ack:
    now_s: float
    delivered: int
    acked: int
    lost: int
    rtt_s: float | None
    min_rtt_s: float | None
    srtt_s: float | None
    delivery_rate_bps: float | None
    is_app_limited: bool
    is_cwnd_limited: bool
    prior_in_flight: int
    in_flight: int
    total_delivered: int
    total_lost: int
    total_marked: int
    prior_delivered: int | None
    in_recovery: bool
    mss: int

def register_control(control: type[object]) -> int: ...
def student_quantile(freedom: float, level: float) -> float: ...
def student_tail_probability(t: float, freedom: float) -> float: ...
def gamma_quantile(shape: float, level: float) -> float: ...
def run_bytes(config: Config, replications: int) -> int: ...
def fixed_point_bytes(config: Config, replications: int) -> int: ...
def read_trace(
    source: str | PathLike[str] | bytes | None = None,
    after: str | PathLike[str] | bytes | None = None,
    trail_points: int = 0,
    max_connections: int | None = None,
) -> dict[str, Any]: ...
def run_link(link: dict[str, Any], *, lifeline: int, answer: int) -> int: ...
def run_traffic(traffic: dict[str, Any], *, lifeline: int, answer: int) -> int: ...
