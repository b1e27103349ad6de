"""Requirements of a path: bandwidth-delay product, window, socket buffers, flows, time."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tcpcast.engines.formula.collect_inputs import MIN_LOSS
from tcpcast.models.bbr import TOLERATED_LOSS_RATIO
from tcpcast.models.cubic import CUBIC_BETA, cubic_response
from tcpcast.models.domain import is_in_domain
from tcpcast.models.pftk import LINUX_MIN_RTO_MINUS_RTT_S, path_domain_values
from tcpcast.models.short import ShortTransfer, lossless_latency_s
from tcpcast.quantity import readable_units, units
from tcpcast.scenario.tcp import MAX_WINDOW_BYTES

if TYPE_CHECKING:
    from tcpcast.scenario import Scenario

DEFAULT_TCP_RMEM = (4096, 131_072, 33_554_432)
DEFAULT_TCP_WMEM = (4096, 16_384, 4_194_304)
"""Minimum, initial and maximum bytes of ``tcp_rmem`` and ``tcp_wmem`` of Linux with ample memory
(ip-sysctl): ``tcp_rmem`` since version :data:`LARGER_RMEM_SINCE`."""

LARGER_RMEM_SINCE = "6.16"
OLD_MAX_RMEM_BYTES = 6_291_456
"""Maximum of ``tcp_rmem`` in earlier versions."""

BUFFER_BYTES_PER_WINDOW_BYTE = 2
"""Bytes of socket buffer per byte of window. The payload's share of the receive buffer is half by
default, and up to 5/8 as measured on packets of 1500 bytes (``scaling_ratio``, since Linux 6.6;
before, ``tcp_adv_win_scale`` = 1 gave half). The send buffer grows to twice the window, to hold
lost and new data during a recovery (``tcp_sndbuf_expand``); up to its maximum, all of it can be in
flight."""

RENO_DECREASE = 0.5
"""Window of Reno after a loss, relative to before. BBR has up to two BDP in flight."""

MAX_LOSSY_SHARE = 0.5
"""Share of the link's rate below which loss, not the socket buffers, determines the goodput."""

DEFAULT_AMOUNT_BYTES = 1e9
"""Default amount for which the transfer time is shown: 1 GB."""

ROUNDING_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRequirements:
    """Requirements to fill a path's slowest link.

    Attributes
    ----------
    flows
        Number of flows that share the path.
    bdp_bytes, bdp_pkts
        Link rate times RTT of the idle path, in IP bytes and in packets.
    window_pkts, window_bytes
        Per flow: its part of the BDP in full packets, and their payload in bytes.
    full_window_pkts, full_window_bytes
        Window per flow that keeps the link full: after a reduction it is still ``window_pkts``.
        With BBR two BDP.
    socket_buffer_bytes
        Required maximum of each flow's send and receive buffer for this window, or for
        :data:`MAX_WINDOW_BYTES` if this window is larger.
    tcp_rmem, tcp_wmem
        Values of these Linux keys with that maximum, never below the current defaults.
    default_rate_bps
        Total payload rate with the defaults of these keys, at most that of the link, in bit/s.
    allowed_window_bytes
        Largest window in bytes of payload that the scenario's receiver window, its socket buffers
        and TCP (:data:`MAX_WINDOW_BYTES`) allow.
    cubic_flows
        Number of CUBIC flows with at most this window that fill the link at the specified loss, by
        the response function; None outside its domain, where timeouts lower the rate.
    bbr_flows
        Number of BBR flows, version 1, with at most this window that fill the link up to a loss of
        20 %; None beyond (no number is enough).
    """

    flows: int
    bdp_bytes: float
    bdp_pkts: float
    window_pkts: int
    window_bytes: int
    full_window_pkts: int
    full_window_bytes: int
    socket_buffer_bytes: int
    tcp_rmem: tuple[int, int, int]
    tcp_wmem: tuple[int, int, int]
    default_rate_bps: float
    allowed_window_bytes: int
    cubic_flows: int | None
    bbr_flows: int | None

    def to_json(self) -> dict[str, Any]:
        """Return the values as JSON data."""
        return asdict(self) | {"tcp_rmem": list(self.tcp_rmem), "tcp_wmem": list(self.tcp_wmem)}


def compute_path_requirements(scenario: Scenario) -> PathRequirements | None:
    """Return the requirements to fill the path; None if the bottleneck has no rate.

    Parameters
    ----------
    scenario
        One class of bulk flows; the RTT counts one packet and its ACK on the idle path.
    """
    group = scenario.populations[0]
    rate_bps, rtt = scenario.bottleneck.rate_bps, group.rtt_s
    if math.isinf(rate_bps):
        return None
    flows, packet_bits = group.count, 8 * scenario.network.packet_bytes
    pipe = rate_bps * rtt / packet_bits
    window = max(1, math.ceil(pipe / flows - ROUNDING_TOLERANCE))
    kept = CUBIC_BETA if group.tcp.control == "cubic" else RENO_DECREASE
    full_window = max(1, math.ceil(pipe / flows / kept - ROUNDING_TOLERANCE))
    payload = scenario.payload_bytes
    buffer = BUFFER_BYTES_PER_WINDOW_BYTE * min(full_window * payload, MAX_WINDOW_BYTES)
    allowed_window = round(min(payload * min(group.allowed_windows_pkts), MAX_WINDOW_BYTES))
    min_flows = _min_flows_by_window(pipe * payload, allowed_window)
    link_bps = rate_bps * 8 * payload / packet_bits
    loss = scenario.path(group).loss
    cubic_flows: int | None = min_flows
    if loss >= MIN_LOSS:
        rate = float(cubic_response(rtt_s=rtt, loss_ratio=loss).rate_pps)
        rate = min(rate, allowed_window / payload / rtt)
        enough = math.ceil(rate_bps / packet_bits / rate - ROUNDING_TOLERANCE)
        values = path_domain_values(
            loss_indication_ratio=loss,
            rtt_s=rtt,
            t0_s=rtt + LINUX_MIN_RTO_MINUS_RTT_S,
            packets_per_ack=1,
            receiver_window_pkts=math.inf,
        )
        is_reliable = bool(is_in_domain("cubic-response", **values))
        cubic_flows = max(min_flows, enough) if is_reliable else None
    return PathRequirements(
        flows=flows,
        bdp_bytes=rate_bps * rtt / 8,
        bdp_pkts=pipe,
        window_pkts=window,
        window_bytes=window * payload,
        full_window_pkts=full_window,
        full_window_bytes=full_window * payload,
        socket_buffer_bytes=buffer,
        tcp_rmem=(*DEFAULT_TCP_RMEM[:2], max(DEFAULT_TCP_RMEM[-1], buffer)),
        tcp_wmem=(*DEFAULT_TCP_WMEM[:2], max(DEFAULT_TCP_WMEM[-1], buffer)),
        # The send buffer fills with the window. Every default of tcp_rmem allows more.
        default_rate_bps=min(link_bps, flows * 8 * DEFAULT_TCP_WMEM[-1] / rtt),
        allowed_window_bytes=allowed_window,
        cubic_flows=cubic_flows,
        bbr_flows=min_flows if loss <= TOLERATED_LOSS_RATIO else None,
    )


def _min_flows_by_window(total_bytes: float, window_bytes: int = MAX_WINDOW_BYTES) -> int:
    """Return the number of flows whose largest windows have this total."""
    return max(1, math.ceil(total_bytes / window_bytes - ROUNDING_TOLERANCE))


def path_requirement_texts(sizing: PathRequirements) -> list[str]:
    """Return the requirements as sentences: BDP and windows, then socket buffers."""
    each = "one flow" if sizing.flows == 1 else f"each of {sizing.flows:,} flows"
    pipe = readable_units.count_text(math.ceil(sizing.bdp_pkts - ROUNDING_TOLERANCE), "packet")
    window = readable_units.count_text(sizing.window_pkts, "packet")
    payload = bytes_text(sizing.full_window_bytes)
    full = f"{readable_units.count_text(sizing.full_window_pkts, 'packet')} ({payload} of payload)"
    limit, chosen = "", "the larger window"
    if sizing.full_window_bytes > MAX_WINDOW_BYTES:
        fill, keep = (
            _min_flows_by_window(size * sizing.flows)
            for size in (sizing.window_bytes, sizing.full_window_bytes)
        )
        to_fill = f", and {fill:,} to fill it" if fill > sizing.flows else ""
        chosen = "a window of 1 GiB"
        limit = (
            " A flow sends at most 1 GiB per RTT, the largest window of TCP (RFC 7323). At least "
            f"{keep:,} flows are needed to keep the link full after a loss{to_fill}."
        )
    needed = sizing.socket_buffer_bytes
    rmem, wmem = (
        f"net.ipv4.{name}={' '.join(map(str, (*values[:2], needed)))}"
        for name, values in (("tcp_rmem", DEFAULT_TCP_RMEM), ("tcp_wmem", DEFAULT_TCP_WMEM))
    )
    rate = readable_units.rate_text(sizing.default_rate_bps)
    slow = f"; with the default tcp_wmem, the rate is at most about {rate}"
    if sizing.window_bytes <= DEFAULT_TCP_WMEM[-1]:
        slow = "; the default tcp_wmem fills the link, but not after a loss"
    if needed <= DEFAULT_TCP_WMEM[-1]:
        keys = "the defaults of tcp_rmem and tcp_wmem are large enough"
    elif needed <= OLD_MAX_RMEM_BYTES:
        keys = f"set {wmem}{slow}"
    elif needed <= DEFAULT_TCP_RMEM[-1]:
        keys = f"set {wmem}; before Linux {LARGER_RMEM_SINCE}, also set {rmem}{slow}"
    else:
        keys = f"set {rmem} and {wmem}{slow}"
    return [
        f"The BDP is {bytes_text(sizing.bdp_bytes)} ({pipe}). To fill the link, {each} needs a "
        f"window of {window}. For the link to stay full after a loss, {each} needs "
        f"{full}.{limit}",
        f"For {chosen}, Linux needs socket buffers of {bytes_text(needed)}: {keys}.",
    ]


def lossy_buffer_text(
    sizing: PathRequirements, scenario: Scenario, goodput_bps: float
) -> str | None:
    """Return the socket buffers for a goodput far below the link's rate, as a sentence.

    None unless random loss holds the goodput of all flows below :data:`MAX_LOSSY_SHARE` of the
    link's rate and of the rate that the windows allow, so that larger ones would not help.
    """
    group = scenario.populations[0]
    link_bps = 8 * sizing.bdp_bytes / group.rtt_s
    windows_bps = 8 * sizing.flows * sizing.allowed_window_bytes / group.rtt_s
    most_bps = MAX_LOSSY_SHARE * min(link_bps, windows_bps)
    if not goodput_bps < most_bps or scenario.path(group).loss == 0:
        return None
    # The window before a loss is at most twice the mean one.
    needed = 2 * BUFFER_BYTES_PER_WINDOW_BYTE * goodput_bps / sizing.flows * group.rtt_s / 8
    if needed > DEFAULT_TCP_WMEM[-1]:
        return None
    return (
        f"Loss limits this goodput, not the socket buffers: {bytes_text(needed)} suffice, and the "
        "defaults of tcp_rmem and tcp_wmem are larger."
    )


def flows_to_fill_text(sizing: PathRequirements) -> str:
    """Return the known numbers of CUBIC and BBR flows that fill the link, as a sentence."""
    fill = "To fill the link"
    if sizing.allowed_window_bytes < min(sizing.window_bytes, MAX_WINDOW_BYTES):
        fill += f" with windows of at most {bytes_text(sizing.allowed_window_bytes)}"
    no_bbr = "BBR does not fill the link, because the loss is above 20 %."
    if sizing.cubic_flows is None:
        if sizing.bbr_flows is None:
            return no_bbr
        return f"{fill}, use {readable_units.count_text(sizing.bbr_flows, 'flow')} of BBR."
    cubic = f"{readable_units.count_text(sizing.cubic_flows, 'flow')} of CUBIC"
    if sizing.bbr_flows is None:
        return f"{fill}, use {cubic}. {no_bbr}"
    return f"{fill}, use {cubic} or {sizing.bbr_flows} of BBR."


def time_for_amount_s(scenario: Scenario, amount_bytes: float, goodput_bps: float) -> float:
    """Return the time for an amount at a total goodput of all flows; nan if the goodput is not > 0.

    For modern TCP, the time includes slow start, in rounds of full windows until the goodput is
    reached, and the link carries the data of all flows. For classic stacks, the time excludes the
    start-up.
    """
    if not (math.isfinite(goodput_bps) and goodput_bps > 0):
        return math.nan
    tcp, group = scenario.populations[0].tcp, scenario.populations[0]
    if not tcp.is_modern:
        return 8 * amount_bytes / goodput_bps
    packet_bits = 8 * scenario.payload_bytes * group.count
    flow = ShortTransfer(
        rtt_s=group.rtt_s,
        initial_window_pkts=tcp.initial_window,
        receiver_window_pkts=tcp.receiver_window,
        whole_rounds=True,
        link_pps=goodput_bps / packet_bits,
    )
    slow_start_s = float(lossless_latency_s(flow, max(1.0, 8 * amount_bytes / packet_bits)))
    # The initial windows of many flows exceed a BDP. The RTT includes the time of one packet.
    link_bps = scenario.bottleneck.rate_bps * scenario.payload_bytes / group.packet_bytes
    queued_bytes = max(0.0, amount_bytes - scenario.payload_bytes)
    return max(slow_start_s, group.rtt_s + 8 * queued_bytes / link_bps)


def time_for_amount_text(scenario: Scenario, amount_bytes: float, goodput_bps: float) -> str:
    """Return the time for an amount at a goodput as a sentence, "" if unknown."""
    seconds = time_for_amount_s(scenario, amount_bytes, goodput_bps)
    if math.isnan(seconds):
        return ""
    group = scenario.populations[0]
    over = f" over {group.count:,} flows" if group.count > 1 else ""
    duration = f"{bytes_text(amount_bytes)}{over} takes {_seconds_text(seconds)}"
    tcp = group.tcp
    if not tcp.is_modern:
        return f"{duration} at this goodput, not including the start-up."
    return f"{duration} at this goodput, including slow start from {tcp.initial_window} packets."


def _seconds_text(seconds: float) -> str:
    """Format a time in seconds; long times also in hours or days."""
    if seconds < 1:
        return f"{1e3 * seconds:.4g} ms"
    for unit, scale in (("days", 86400.0), ("h", 3600.0)):
        if seconds >= 2 * scale:
            return f"{units.digits(seconds)} s ({seconds / scale:.3g} {unit})"
    return f"{units.digits(seconds)} s"


def bytes_text(size: float) -> str:
    """Format a size with three digits."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if size >= scale:
            return f"{float(f'{size / scale:.3g}'):g} {unit}"
    return f"{size:.0f} B"
