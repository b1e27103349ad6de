"""Flows that a program measured without a capture: their limits, and their results as a Capture.

``iperf3 -J`` and ``ss -tin`` report what the kernel of one end counted. :class:`LoggedFlow` holds
these values for one direction. :func:`capture_of_flows` converts them to the tables of a capture,
so that verdict, advice and all outputs are those of captures; what the log does not contain is NaN.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.advice import REMEDIES_BY_LIMIT
from tcpcast.captures.cause_rules import (
    LOSS_EXPLAINED_RATE_RANGE,
    MIN_FULL_QUEUE_RATIO,
    MIN_STANDING_QUEUE_RATIO,
    WINDOW_FILL_RANGE,
)
from tcpcast.captures.congestion_control import BBR, CUBIC, RENO, UNKNOWN
from tcpcast.captures.model_rates import (
    cubic_pps,
    mathis_pps,
    model_inputs,
    model_rates_or_nan,
    pftk_pps,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcpcast.array_types import Table
    from tcpcast.captures.capture import Capture

MAX_LOG_BYTES = 1 << 26
"""Maximum size of a log in bytes."""
MAX_FLOWS = 65_536
"""Maximum number of flows of a log."""
MIN_PACKETS_OF_LOSSES = 5
"""Minimum number of retransmissions for losses to explain the congestion window."""
CUBIC_REDUCTION, RENO_REDUCTION = 0.7, 0.5
"""Ratio of the windows after and before a loss (RFC 9438, section 4.6; RFC 5681)."""
EMPTY_PCAP = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)

_MEASURED_COUNTS = (
    "packets",
    "data_packets",
    "bytes",
    "unique_bytes",
    "retransmissions",
    "connection",
    "segment_bytes",
    "flight_max_bytes",
    "window_max_bytes",
    "sharing_flows",
    "service",
)
"""Integer columns of ``connections`` that logs contain, or that do not count packets."""


@dataclass(slots=True)
class LoggedFlow:
    """One direction of a connection, as one of its ends measured it.

    Unknown values are NaN. ``limited_by`` is a state of the sender. ``shares`` maps such states to
    their shares of the time; it is empty if the log does not show them.
    """

    source: str
    destination: str
    seconds: float
    unique_bytes: float
    segment_bytes: float
    is_measured_by_sender: bool
    start_ns: int | None = None
    retransmissions: float = math.nan
    packets: float = math.nan
    rtt_s: float = math.nan
    rtt_min_s: float = math.nan
    window_bytes: float = math.nan
    """The largest receive window."""
    flight_bytes: float = math.nan
    """The mean amount of data in flight."""
    link_bps: float = math.nan
    control: str = ""
    """Congestion control by its name in Linux."""
    limited_by: str = "unknown"
    shares: dict[str, float] = field(default_factory=dict)


def fills_window(bytes_per_rtt: float, window_bytes: float) -> bool:
    """Return True if a flow sends about one window per RTT."""
    low, high = WINDOW_FILL_RANGE
    return low * window_bytes <= bytes_per_rtt <= high * window_bytes


def rate_to_loss_models(flow: LoggedFlow) -> float:
    """Return the ratio of the rate to the larger one of PFTK and CUBIC, or NaN.

    p is the ratio of retransmissions.
    """
    sent = flow.unique_bytes / flow.segment_bytes + flow.retransmissions
    inputs = {
        "rtt_mean_s": flow.rtt_s,
        "t0_s": math.nan,
        "w_max_pkts": flow.window_bytes / flow.segment_bytes,
        "packets_per_ack": 1.0,
    }
    given = model_inputs({name: np.array([value]) for name, value in inputs.items()})
    if not (sent > 0 and flow.seconds > 0):
        return math.nan
    loss = np.array([flow.retransmissions / sent])
    models = [model_rates_or_nan(model, loss, given)[0] for model in (pftk_pps, cubic_pps)]
    return float(sent / flow.seconds / max(models))


def limit_of_full_window(  # noqa: PLR0913 - measured values by name
    *,
    control: str,
    rtt_s: float,
    rtt_min_s: float,
    retransmissions: float,
    is_steady: bool = False,
    rate_to_loss_models: float = math.nan,
) -> str:
    """Return why the congestion window of a sender that has data is not larger.

    The link is full if packets queue, that is, the RTT exceeds its minimum; if the rate is steady
    without losses; or if losses are too rare to explain the rate, because several packets are lost
    whenever the queue is full. BBR sends at the rate of the link, regardless of losses.

    Parameters
    ----------
    control
        Congestion control by its name in Linux.
    rtt_s, rtt_min_s
        Mean and minimum RTT in seconds; NaN if unknown.
    retransmissions
        Number of retransmitted packets.
    is_steady
        True if the rate stays the same over time.
    rate_to_loss_models
        Ratio of the rate to the rate that the losses explain; NaN if unknown.
    """
    queue = rtt_s / rtt_min_s - 1 if rtt_min_s > 0 else math.nan
    lost = retransmissions >= MIN_PACKETS_OF_LOSSES
    if control.startswith("bbr") or queue >= (
        MIN_STANDING_QUEUE_RATIO if lost else MIN_FULL_QUEUE_RATIO
    ):
        return "bottleneck"
    if lost:
        explained = not rate_to_loss_models > LOSS_EXPLAINED_RATE_RANGE[1]
        return "congestion_window" if explained else "bottleneck"
    return "bottleneck" if is_steady else "unknown"


def capture_of_flows(
    file: str,
    program: str,
    flows: Sequence[LoggedFlow],
    warnings: list[str],
    read: Callable[[bytes], Capture],
) -> Capture:
    """Return the results of a log in the tables of a capture.

    Parameters
    ----------
    file, program
        Name of the log, and the program that wrote it.
    flows
        At least one flow.
    warnings
        What to check before use of the results.
    read
        Reads the content of a capture; it returns the empty tables.
    """
    capture = read(EMPTY_PCAP)
    measured = _measured_columns(flows)
    connections = {
        name: measured.get(name, _missing_column(name, column, len(flows)))
        for name, column in capture.connections.items()
    }
    inputs, loss = model_inputs(connections), connections["loss_indication_ratio"]
    for name, model in {"pftk_pps": pftk_pps, "mathis_pps": mathis_pps}.items():
        connections[name] = model_rates_or_nan(model, loss, inputs)
    capture.file, capture.program = file, program
    capture.connections = connections
    capture.connection_count = len({frozenset((f.source, f.destination)) for f in flows})
    capture.segments = capture.frames = int(np.nansum(connections["data_packets"]))
    capture.warnings = warnings
    return capture


def _missing_column(name: str, column: Any, size: int) -> Any:
    """Return a column without values; counts become NaN, as they are unknown and not 0."""
    if (column.dtype.kind == "i" and name not in _MEASURED_COUNTS) or column.dtype.kind == "f":
        return np.full(size, np.nan)
    return np.zeros(size, dtype=column.dtype)


def _measured_columns(flows: Sequence[LoggedFlow]) -> Table:
    def column(value: Callable[[LoggedFlow], Any], dtype: Any = np.float64) -> Any:
        return np.array([value(flow) for flow in flows], dtype=dtype)

    def whole(value: Callable[[LoggedFlow], float]) -> Any:
        return np.rint(np.nan_to_num(column(value))).astype(np.int64)

    segment = np.maximum(whole(lambda f: f.segment_bytes), 1)
    unique = whole(lambda f: f.unique_bytes)
    lost = column(lambda f: f.retransmissions)
    packets = column(lambda f: f.packets)
    packets = np.where(np.isnan(packets), np.ceil(unique / segment) + np.nan_to_num(lost), packets)
    again = np.nan_to_num(lost) * segment
    seconds = column(lambda f: f.seconds)
    seconds = np.where(seconds > 0, seconds, np.nan)
    lossless = np.where(lost == 0, 0.0, np.nan)
    starts = [f.start_ns for f in flows]
    controls = {"bbr": BBR, "bbr2": BBR, "bbr3": BBR, "cubic": CUBIC, "reno": RENO}
    reductions = {"cubic": CUBIC_REDUCTION, "reno": RENO_REDUCTION}
    return {
        "src": column(lambda f: f.source, np.str_),
        "dst": column(lambda f: f.destination, np.str_),
        "tap_side": column(lambda f: "sender" if f.is_measured_by_sender else "receiver", np.str_),
        "packets": packets.astype(np.int64),
        "data_packets": packets.astype(np.int64),
        "bytes": unique + again.astype(np.int64),
        "unique_bytes": unique,
        "retransmissions": lost if np.isnan(lost).any() else lost.astype(np.int64),
        "retransmitted_bytes": np.where(np.isnan(lost), np.nan, again),
        "td": lossless,
        "to": lossless,
        "timeouts": lossless,
        "rtt_mean_s": column(lambda f: f.rtt_s),
        "rtt_min_s": column(lambda f: f.rtt_min_s),
        "tap_to_sender_s": column(lambda f: 0.0 if f.is_measured_by_sender else math.nan),
        "w_max_pkts": column(lambda f: f.window_bytes) / segment,
        "window_max_bytes": whole(lambda f: f.window_bytes),
        "flight_mean_bytes": column(lambda f: f.flight_bytes),
        "flight_max_bytes": whole(lambda f: f.flight_bytes),
        "throughput_bps": 8 * (unique + again) / seconds,
        "goodput_bps": 8 * unique / seconds,
        "bottleneck_rate_bps": column(lambda f: f.link_bps),
        "limited_by": column(lambda f: f.limited_by, np.str_),
        "connection": np.arange(len(flows)),
        "start": np.array(
            [np.datetime64("NaT", "ns") if at is None else np.datetime64(at, "ns") for at in starts]
        ),
        "duration_s": seconds,
        "end": column(lambda _: "open", np.str_),
        "segment_bytes": segment,
        "mss_bytes": segment.astype(np.float64),
        "looks_like": column(lambda f: controls.get(f.control, UNKNOWN), np.str_),
        "window_reduction": column(lambda f: reductions.get(f.control, math.nan)),
        "cause": column(lambda _: "unknown", np.str_),
        "window_grows_by": column(lambda _: "unknown", np.str_),
        "service": np.full(len(flows), -1),
        "loss_indication_ratio": lost / np.maximum(packets, 1),
        "retransmit_ratio": lost / np.maximum(packets, 1),
        "send_rate_pps": packets / seconds,
        **{
            f"share_{state}": np.array(
                [f.shares.get(state, 0.0) if f.shares else math.nan for f in flows]
            )
            for state in REMEDIES_BY_LIMIT
        },
    }
