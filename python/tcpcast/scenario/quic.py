"""The QUIC stacks: default values, and rules in which implementations differ."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from tcpcast.scenario.modern_stacks import CLASSIC_ONLY

QUIC_HEADER_BYTES = 20 + 8 + 27 + 8
"""Bytes of a full packet apart from stream data: IPv4, UDP, a short header with a connection ID of
8 bytes, a packet number of 2 bytes and the tag of 16 bytes (RFC 9000, section 17.3.1), and a STREAM
frame with offset and length (section 19.8)."""

_COMMON: dict[str, Any] = {
    **CLASSIC_ONLY,
    "initial_window": 10,
    "receiver_window": "unlimited",
    "delayed_acks": True,
    "ack_timeout": "25ms",
    "min_rto": "26ms",
    "initial_rto": "999ms",
    "max_rto": "120s",
    "rto_granularity": "0s",
    "duplicate_threshold": 3,
    "limited_transmit": True,
    "idle_restart": "never",
    "timestamps": False,
    "handshake": "tls13",
    "fast_open": False,
    "ecn": False,
    "pacing": "internal",
    "socket_buffers": "unlimited",
    "nodelay": False,
    "notsent_lowat": "unlimited",
    "tso": "off",
    "gro": True,
    "host_noise": "0.1ms",
    "congestion_control": "cubic",
    "ack_packets": 2,
}
"""Default values of RFC 9000 and 9002. ``min_rto`` stands for the granularity and max_ack_delay,
which the probe timeout adds to the round-trip time; ``initial_rto`` is three initial RTTs."""

UNUSED_BY_QUIC = (
    *("min_rto", "max_rto", "rto_granularity", "limited_transmit", "idle_restart", "timestamps"),
    *("fast_open", "socket_buffers", "nodelay", "notsent_lowat", "tso", "gro"),
)
"""Keys that have no meaning for QUIC."""


class QuicStack(NamedTuple):
    """A QUIC stack.

    Attributes
    ----------
    source
        Source of the rules.
    keys
        Default values of the keys.
    acks_reordering
        A packet out of order is acknowledged immediately.
    probes
        Packets sent when the probe timeout expires.
    probes_carry_data
        Probes carry unacknowledged data if there is no new data; otherwise they are pings.
    fills_window
        The window may be filled exactly; otherwise at least a byte of it stays free.
    fractional_cubic
        CUBIC follows the formulas of RFC 8312 with a window in bytes, instead of Linux's code.
    slow_start_exit
        What ends slow start, apart from a loss: nothing, a rise of the round-trip time by a
        quarter, or HyStart++.
    undo_percent
        A reduction is undone when its recovery ends, unless at least this share of the window was
        lost, and at least two packets; 0 for never.
    pacing_percent
        Pacing rate in percent of the window per smoothed RTT; 0 for no pacing.
    burst_min_packets, burst_max_packets, burst_window_percent, burst_time_s
        Size of the pacer's bucket: the larger of a share of the window and the data of a time,
        between the two limits.
    pacing_wait
        How long a sender waits for tokens: until a packet may be sent, until the bucket is full,
        or for the time of a packet if any token allows a packet.
    window_bytes
        Flow control: bytes that the receiver accepts beyond the bytes read.
    window_doubles
        The window doubles each time that half of it is used.
    """

    source: str
    keys: dict[str, Any] = _COMMON
    acks_reordering: bool = True
    probes: int = 2
    probes_carry_data: bool = True
    fills_window: bool = True
    fractional_cubic: bool = False
    slow_start_exit: Literal["loss", "rtt_rise", "hystart_plus_plus"] = "loss"
    undo_percent: int = 0
    pacing_percent: int = 125
    burst_min_packets: int = 10
    burst_max_packets: int = 10
    burst_window_percent: int = 0
    burst_time_s: float = 0.0
    pacing_wait: Literal["packet", "burst", "packet_of_any_tokens"] = "packet"
    window_bytes: int = 1 << 40
    window_doubles: bool = False


QUIC_STACKS = {
    "quic": QuicStack("RFC 9000, 9001 and 9002 without flow control"),
    # Probes are pings, because stream frames are no part of what a probe sends again.
    "quinn": QuicStack(
        "quinn-proto 0.11.19 (connection/pacing.rs, connection/spaces.rs, config/transport.rs)",
        probes_carry_data=False,
        fills_window=False,
        fractional_cubic=True,
        burst_max_packets=256,
        burst_time_s=0.002,
        pacing_wait="burst",
        window_bytes=1_250_000,
    ),
    # Each packet is acknowledged when all waiting packets are read. The application sets windows.
    "quiche": QuicStack(
        "quiche 0.30.0 (recovery/congestion/recovery.rs, cubic.rs and hystart.rs)",
        _COMMON | {"ack_packets": 1},
        probes=1,
        slow_start_exit="hystart_plus_plus",
        undo_percent=20,
        pacing_percent=0,
    ),
    # Acks wait for a timer of 1 ms, also out of order.
    "aioquic": QuicStack(
        "aioquic 1.7.2 (quic/recovery.py, quic/connection.py, quic/configuration.py)",
        _COMMON
        | {
            "congestion_control": "reno",
            "ack_timeout": "1ms",
            "ack_packets": 1000,
            "initial_rto": "300ms",
        },
        acks_reordering=False,
        probes=1,
        slow_start_exit="rtt_rise",
        pacing_percent=100,
        burst_min_packets=2,
        burst_max_packets=16,
        burst_window_percent=25,
        pacing_wait="packet_of_any_tokens",
        window_bytes=1 << 20,
        window_doubles=True,
    ),
}
"""All QUIC stacks, in the order of documents and messages."""
