"""Statistics of captured flows, from which ``trace --replay`` derives a scenario."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tcpcast.captures.capture_tables import tables_by_name
from tcpcast.captures.cause_rules import APPLICATION, LINK, PACING
from tcpcast.captures.congestion_control import CUBIC
from tcpcast.captures.groups import group_directions
from tcpcast.captures.limit_remedies import MAX_SMALL_WINDOW_RATIO, has_slow_reader
from tcpcast.captures.link_estimate import (
    link_bps,
    queueing_delays_at_losses_s,
    window_growth_per_round_pkts,
)
from tcpcast.captures.model_rates import (
    cubic_pps,
    has_model_inputs,
    pftk_pps,
)
from tcpcast.captures.models import measured_loss_ratio
from tcpcast.captures.predicted_gain import GainPredictor
from tcpcast.captures.sender_stack import Sender, first_timeout_s, identify_sender
from tcpcast.captures.subject import bytes_by_limit
from tcpcast.captures.table import rtts_to_sender, select_rows
from tcpcast.captures.verdict import largest_row_limited_by
from tcpcast.models.pftk import LINUX_MIN_RTO_MINUS_RTT_S, unlimited_window_pkts
from tcpcast.process.errors import CaptureError
from tcpcast.scenario.modern_tcp import TIMESTAMP_BYTES, get_congestion_control
from tcpcast.scenario.network import HEADER_BYTES

if TYPE_CHECKING:
    from tcpcast.array_types import Table
    from tcpcast.captures.capture_tables import CaptureTables

    Column = np.ndarray[Any, Any]

MAX_SHORT_TRANSFER_PKTS = 1000
"""Maximum number of packets of a completely captured transfer that is replayed as a transfer."""

MIN_FULL_LINK_SHARE = 0.95
"""Share of the link's rate above which all losses are assumed to be queue drops."""

MIN_STEADY_FLIGHT_RATIO = 0.8
"""Ratio of mean to maximum flight size above which a constant window is assumed to be the limit.
The ratio is about 0.9 with a constant window, and 0.2 to 0.4 if losses reduce the window."""
MAX_EXPLAINED_RATE_RATIO = 2.0
"""Ratio of modelled to measured rate above which the capture does not show the limit."""

MIN_OVERFLOW_QUEUE_SHARE = 0.8
"""Share of the maximum queue above which a loss is assumed to be a queue overflow."""
MIN_NON_QUEUE_LOSS_SHARE = 0.2
"""Minimum share of losses at shorter queues for them to count as random losses. With BBR, up to 20
% of the overflow losses occur at shorter queues."""

LIMITS_EXCLUDING_LINK = ("application", "receiver_window", "send_buffer", "slow_start", "timeout")
"""Limits that exclude the link as the limit if they apply most of the time."""

MIN_QUEUE_RTT_RATIO = 1.5
"""Ratio of RTT to minimum RTT from which a queue is assumed."""

MIN_CORRELATED_LOSS_RATIO = 1.5
"""Losses are considered correlated above this ratio of the measured loss ratio to the loss ratio of
independent losses with the same number of loss indications."""
MIN_CORRELATED_LOSS_RATIO_OF_FEW = 3.0
"""Replaces :data:`MIN_CORRELATED_LOSS_RATIO` if the capture has fewer loss indications than
:data:`MIN_LOSS_INDICATIONS`."""
MIN_DELAYED_ACK_PACKETS = 1.5
"""Packets per ACK above which ACKs are considered delayed. In recoveries without delayed ACKs, the
value is 1.2 to 1.4."""
LINUX_MIN_ACK_DELAY_S = 0.04
"""Initial and minimum ack delay of Linux."""
MEAN_TO_FULL_WINDOW_RATIO = {False: 0.75, True: 0.925}
"""Ratio of the mean window to the window at an overflow. CUBIC (True) grows from 0.7 of the window
by a cubic function with its plateau at the window, so the mean is 1 - 0.3 / 4. Reno grows from half
of the window linearly."""
MIN_LOSS_INDICATIONS = 20
"""Minimum number of loss indications to decide on correlation and location of losses."""


@dataclass(frozen=True, slots=True)
class CaptureStats:
    """Measured values of the flows; NaN if the capture does not show a value."""

    table: Table
    flows: int
    duration_s: float
    packets_sent: float
    rate_bps: float
    """Goodput in IP bytes, in bit/s."""
    rtt_s: float
    rtt_min_s: float
    full_queue_rtt_s: float
    link_bps: float
    """Link rate in IP bytes, in bit/s."""
    is_link_rate_from_cause: bool
    """True if ``link_bps`` is the measured rate, because the link is the cause of this rate."""
    payload_bytes: int
    window_growth_per_round_pkts: float
    non_queue_loss_share: float
    """Share of the losses while the queue of the link was not full."""
    sender: Sender
    limit: str
    """The limit of most bytes, as in :func:`tcpcast.captures.subject.bytes_by_limit`."""
    write_count: int
    """Number of times that a flow ran out of data, at least one per flow."""

    @property
    def is_application_limited(self) -> bool:
        """True if the application, which often had no data to send, is the main limit."""
        return self.limit in {APPLICATION, PACING}

    @property
    def write_bytes(self) -> float:
        """Mean data in bytes until a flow ran out of data."""
        return float(self.table["unique_bytes"].sum()) / self.write_count

    @property
    def window_pkts(self) -> float:
        """The announced receiver window, or a constant flight size; NaN if neither is known."""
        if self.limit == "send_buffer":
            flight = self.packet_weighted_mean("flight_max_bytes")
            return max(1.0, round(flight / self.payload_bytes))
        announced = self.packet_weighted_mean("w_max_pkts")
        most, usual = (
            self.packet_weighted_mean("flight_max_bytes"),
            self.packet_weighted_mean("flight_mean_bytes"),
        )
        if announced >= 1 or not usual >= MIN_STEADY_FLIGHT_RATIO * most:
            return announced
        return max(1.0, round(most / self.payload_bytes))

    @property
    def is_rate_explained_without_link(self) -> bool:
        """True if losses, the window or another limit than the link explain the rate."""
        if (
            self.has_slow_reader
            or self.is_application_limited
            or (self._time_share(LIMITS_EXCLUDING_LINK) > 0.5 and not self._has_queueing_delay)
        ):
            return True
        return (
            self.is_rate_explained_by_window
            or self.loss_limited_pps <= MAX_EXPLAINED_RATE_RATIO * self.mean_flow_pps
        )

    @property
    def has_slow_reader(self) -> bool:
        """True if the receiving application of most data closed the receive window."""
        if self.limit != "receiver_window":
            return False
        row = select_rows(self.table, [largest_row_limited_by(self.table, self.limit)])
        if has_slow_reader(GainPredictor.from_table(row))[0]:
            return True
        # The window limits the rate, but far below its largest value, so it was mostly smaller.
        per_rtt = row["throughput_bps"][0] * row["rtt_mean_s"][0] / 8
        return bool(per_rtt < MAX_SMALL_WINDOW_RATIO * row["window_max_bytes"][0])

    @property
    def is_rate_explained_by_window(self) -> bool:
        """True if the window explains the rate."""
        return self.window_pkts / self.rtt_s <= MAX_EXPLAINED_RATE_RATIO * self.mean_flow_pps

    @property
    def mean_flow_pps(self) -> float:
        """Mean rate of one flow in packets/s."""
        return self.packets_sent / self.duration_s / self.flows

    def _time_share(self, limits: tuple[str, ...]) -> float:
        """Return the share of time during which any of these limits applied."""
        return float(
            sum(np.nan_to_num(self.packet_weighted_mean(f"share_{limit}")) for limit in limits)
        )

    @property
    def _has_queueing_delay(self) -> bool:
        """True if the RTT indicates a queue on the path."""
        return self.full_queue_rtt_s > MIN_QUEUE_RTT_RATIO * self.rtt_min_s

    @property
    def is_short_transfer(self) -> bool:
        """True if this is one short transfer, captured from its handshake to its end."""
        ended = np.isin(self.table["end"], ("closed", "reset"))
        whole = self.table["syn_captured"] & ended
        return bool(whole.size == 1 and whole[0] and self.packets_sent <= MAX_SHORT_TRANSFER_PKTS)

    @property
    def sequential_transfer_count(self) -> int:
        """Number of sequential connections if each is shorter than half of the capture."""
        short = np.nan_to_num(self.table["duration_s"]) < self.duration_s / 2
        return int(short.sum()) if short.size > self.flows else 0

    @property
    def header_bytes(self) -> int:
        """Bytes of IP and TCP headers in a data packet."""
        return header_bytes(self.sender)

    @property
    def packet_bytes(self) -> int:
        """Bytes of a data packet, including headers."""
        return self.payload_bytes + self.header_bytes

    @property
    def loss_limited_pps(self) -> float:
        """Rate of one flow in packets/s predicted from its losses; NaN if they do not limit it."""
        return math.nan if self.sender.is_rate_based else pps_predicted_from_losses(self, 1.0)

    @property
    def is_link_full(self) -> bool:
        """True if the link was full."""
        if math.isnan(self.link_bps):
            return not self.is_rate_explained_without_link
        return bool(self.rate_bps >= MIN_FULL_LINK_SHARE * self.link_bps)

    @property
    def random_loss_ratio(self) -> float:
        """Random loss ratio of the scenario: losses that queue overflows do not explain."""
        if self.is_tap_behind_queue and self.is_single_paced_flow:
            return estimated_loss_ratio(self.table)
        if self.non_queue_loss_share >= MIN_NON_QUEUE_LOSS_SHARE:
            every = (
                estimated_loss_ratio(self.table)
                if self._is_recovering
                else self.independent_loss_ratio
            )
            return self.non_queue_loss_share * every
        if self.is_link_full or self.non_queue_loss_share >= 0:
            return 0.0
        return (
            self.independent_loss_ratio
            if self.has_correlated_losses
            else estimated_loss_ratio(self.table)
        )

    @property
    def is_tap_behind_queue(self) -> bool:
        """True if the capture is from behind the queue, so that measured RTTs do not include it."""
        is_receiver = bool((self.table["tap_side"] == "receiver").all())
        return is_receiver or self.mean_queue_s > self.full_queue_rtt_s - self.rtt_min_s

    @property
    def mean_queue_s(self) -> float:
        """Mean queueing delay between the sender and the tap, in seconds; NaN if unknown."""
        return self.packet_weighted_mean("queue_delay_s")

    @property
    def full_queue_before_tap_s(self) -> float:
        """Delay of the full queue before the tap, in seconds; NaN if unknown.

        Each overflow reduces a window, which then grows back. So the mean window is a constant
        share of the window at an overflow (:data:`MEAN_TO_FULL_WINDOW_RATIO`).
        """
        if not self.is_link_limited or self.sender.is_rate_based:
            return math.nan
        if not self.has_queue_overflow:
            return self.mean_queue_s
        ratio = MEAN_TO_FULL_WINDOW_RATIO[get_congestion_control(self.sender.stack) == CUBIC]
        return (self.rtt_min_s + self.mean_queue_s) / ratio - self.rtt_min_s

    @property
    def is_link_limited(self) -> bool:
        """True if the link, not the losses, determines the rate of most packets."""
        if "cause" not in self.table:
            return False
        limited = (self.table["cause"] == LINK) & self.table["cause_evident"]
        packets = self.table["data_packets"]
        return bool(2 * packets[limited].sum() > packets.sum())

    @property
    def _is_recovering(self) -> bool:
        """True for a single paced flow that is in recovery most of the time."""
        return self.is_single_paced_flow and (
            self.is_link_limited or self._time_share(("loss_recovery",)) > 0.5
        )

    @property
    def has_queue_overflow(self) -> bool:
        """True if the queue of the link is assumed to have overflowed."""
        lossless = not (self.table["td"] + self.table["to"]).any()
        return (
            self.is_link_full
            and not lossless
            and not (self.is_single_paced_flow and self.non_queue_loss_share > 0.5)
        )

    @property
    def is_single_paced_flow(self) -> bool:
        """True if there is a single flow whose losses do not determine its rate."""
        return self.sender.is_rate_based and self.flows == 1

    @property
    def has_correlated_losses(self) -> bool:
        """True if losses are correlated, that is, several packets are lost together."""
        if self.is_link_full:
            return False
        few = (self.table["td"] + self.table["to"]).sum() < MIN_LOSS_INDICATIONS
        times = MIN_CORRELATED_LOSS_RATIO_OF_FEW if few else MIN_CORRELATED_LOSS_RATIO
        return bool(estimated_loss_ratio(self.table) > times * self.independent_loss_ratio)

    @property
    def independent_loss_ratio(self) -> float:
        """Loss probability of independent losses with the measured number of loss indications.

        One loss indication covers all losses in a window of E[W] packets, which is 1 + E[W] times
        the loss probability on average. If losses do not determine the window, the mean data in
        flight replaces E[W].
        """
        seen = float((self.table["td"] + self.table["to"]).sum()) / self.packets_sent
        if not 0 < seen < 1:
            return math.inf
        window = float(unlimited_window_pkts(loss_indication_ratio=seen, packets_per_ack=1.0))
        if self.sender.is_rate_based:
            window = self.packet_weighted_mean("flight_mean_bytes") / self.payload_bytes
        most = self.window_pkts
        return seen / max(1 - seen * (min(window, most) if most >= 1 else window), 0.5)

    def packet_weighted_mean(self, name: str) -> float:
        """Return the mean of a column over the flows, weighted by packets."""
        values, weights = self.table[name], self.table["data_packets"]
        known = np.isfinite(values) & (weights > 0)
        return float(np.average(values[known], weights=weights[known])) if known.any() else math.nan


def header_bytes(sender: Sender) -> int:
    """Return the bytes of IP and TCP headers in a sender's data packet."""
    return HEADER_BYTES + (TIMESTAMP_BYTES if sender.timestamps else 0)


def make_capture_stats(capture: CaptureTables) -> CaptureStats:
    """Return the statistics of all flows of a capture.

    Raises
    ------
    CaptureError
        The flows have no round-trip time or no duration.
    """
    # RTTs as the sender would measure them, also for other taps.
    names = ("rtt_min_s", "rtt_p99_s", "rtt_karn_p50_s", "rtt_karn_p99_s", "rtt_undelayed_max_s")
    between = capture.connections["tap_to_sender_s"]
    table = {
        **capture.connections,
        **{
            name: rtts_to_sender(capture.connections, capture.connections[name], between)
            for name in names
        },
    }
    groups = group_directions(capture.connections, capture.loss_indications, by="all")
    together = {name: column[0] for name, column in groups.items()}
    sender = identify_sender(table)
    headers = header_bytes(sender)
    payload = int(np.clip(table["segment_bytes"].max(), 1, 65535 - headers))
    wire = (payload + headers) / payload
    # The number of times that a flow ran out of data, at least one per flow. A write ends with a
    # segment below the full size, unless its size is a multiple of the full size.
    rounds = tables_by_name(capture).get("rounds")
    gaps = np.where(table["cause"] == PACING, table["pacing_gaps"] + 1, 0)
    count = int(np.maximum(table["short_segments"], gaps).sum())
    if not count and rounds is not None:
        count = int((rounds["limited_by"] == APPLICATION).sum())
    found = CaptureStats(
        table=table,
        flows=max(1, round(float(together["parallel_flows"]))),
        duration_s=float(together["active_s"]),
        packets_sent=float(together["packets_sent"]),
        rate_bps=float(together["goodput_bps"]) * wire,
        rtt_s=float(together["rtt_mean_s"]),
        rtt_min_s=math.nan,
        full_queue_rtt_s=math.nan,
        link_bps=link_bps(capture) * wire,
        is_link_rate_from_cause=False,
        payload_bytes=payload,
        window_growth_per_round_pkts=window_growth_per_round_pkts(
            tables_by_name(capture).get("rounds"), table["segment_bytes"]
        ),
        non_queue_loss_share=math.nan,
        sender=sender,
        limit=str(bytes_by_limit(table)["limit"][0]),
        write_count=max(count, table["src"].size),
    )
    if found.is_application_limited:  # packets of equal size, so that each write has its mean size
        packets = math.ceil(found.write_bytes / payload)
        found = replace(found, payload_bytes=max(1, round(found.write_bytes / packets)))
    if math.isnan(found.link_bps) and found.is_link_limited:
        # Taps away from the sender do not show the rate of acks while the path was full.
        found = replace(found, link_bps=found.rate_bps, is_link_rate_from_cause=True)
    if not found.rtt_s > 0 or not found.duration_s > 0 or not found.rate_bps > 0:
        raise CaptureError(
            f"{capture.file}: no scenario can be derived, because the RTT of this direction was "
            "not measured, or all its data packets have the same timestamp; select a connection "
            "with more data"
        )
    least = found.packet_weighted_mean("rtt_min_s")
    least = least if least > 0 else found.rtt_s
    high = float(np.fmax(_full_queue_rtt_s(found), least))
    found = replace(found, rtt_min_s=least, full_queue_rtt_s=high)
    # With BBR, one loss indication covers many losses, so count retransmissions.
    which = "retransmissions" if found.is_single_paced_flow else "loss_indications"
    non_queue = math.nan
    if not found.is_tap_behind_queue and (found.is_link_full or found.link_bps > 0):
        non_queue = _non_queue_loss_share(queueing_delays_at_losses_s(capture, which), high - least)
    return replace(found, non_queue_loss_share=non_queue)


def _non_queue_loss_share(queued_s: Column, longest_s: float) -> float:
    """Return the share of losses while the queue was not full; NaN with few losses or no queue."""
    if queued_s.size < MIN_LOSS_INDICATIONS or not longest_s > 0:
        return math.nan
    return float((queued_s < MIN_OVERFLOW_QUEUE_SHARE * longest_s).mean())


def _full_queue_rtt_s(stats: CaptureStats) -> float:
    """Return the RTT in seconds with a full queue: the 99th percentile without ACK delays.

    RTT samples of new data are rare when a queue overflows, because recoveries follow. If the 99th
    percentile over all samples exceeds the percentile of new data by more than an ACK delay, the
    difference is queueing delay. With delayed ACKs, the result is at most the maximum over ACKs of
    several packets, because the ACK of a single packet may be delayed.
    """
    every, newest = (
        stats.packet_weighted_mean("rtt_p99_s"),
        stats.packet_weighted_mean("rtt_karn_p99_s"),
    )
    if every - newest > LINUX_MIN_ACK_DELAY_S:
        return every
    if not stats.packet_weighted_mean("packets_per_ack") >= MIN_DELAYED_ACK_PACKETS:
        return newest
    return float(np.fmin(newest, stats.packet_weighted_mean("rtt_undelayed_max_s")))


def estimated_loss_ratio(table: Table) -> float:
    """Return the estimated loss ratio over all flows."""
    lost = measured_loss_ratio(table)
    known = np.isfinite(lost)
    if not known.any():
        return 0.0
    return float(np.average(lost[known], weights=np.fmax(table["data_packets"][known], 1)))


def pps_predicted_from_losses(stats: CaptureStats, packets_per_ack: float) -> float:
    """Return the rate of one flow in packets/s, predicted from its losses; NaN without losses.

    The model is CUBIC's response function for CUBIC senders, otherwise PFTK with b =
    ``packets_per_ack``.
    """
    timer, window = first_timeout_s(stats.table), stats.window_pkts
    given: Table = {
        "rtt_s": np.array([stats.rtt_s]),
        "t0_s": np.array([timer if timer > 0 else stats.rtt_s + LINUX_MIN_RTO_MINUS_RTT_S]),
        "packets_per_ack": np.array([max(packets_per_ack, 1.0)]),
        "receiver_window_pkts": np.array([window if window >= 1 else math.inf]),
    }
    loss = np.array([float((stats.table["td"] + stats.table["to"]).sum()) / stats.packets_sent])
    if not has_model_inputs(loss, given).all() or not packets_per_ack > 0:
        return math.nan
    if get_congestion_control(stats.sender.stack) == CUBIC:
        return float(cubic_pps(loss, given)[0])
    return float(pftk_pps(loss, given)[0])
