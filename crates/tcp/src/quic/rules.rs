//! Rules in which implementations of QUIC differ.

use serde::Deserialize;
use tcpcast_link::time::{MILLISECOND, Nanos};

/// Rules of both ends. Packets of a datagram count as one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuicRules {
    /// Ack-eliciting packets per acknowledgement: RFC 9000, section 13.2.2.
    pub ack_packets: u32,
    /// Delay after which fewer packets are acknowledged.
    #[serde(rename = "ack_delay_ns")]
    pub ack_delay: Nanos,
    /// Delay that the transport parameter `max_ack_delay` announces: RFC 9000, section 18.2.
    #[serde(rename = "max_ack_delay_ns")]
    pub max_ack_delay: Nanos,
    /// A packet out of order is acknowledged immediately: RFC 9000, section 13.2.1.
    pub acks_reordering: bool,
    /// RTT before the first sample: RFC 9002, section 6.2.2.
    #[serde(rename = "initial_rtt_ns")]
    pub initial_rtt: Nanos,
    /// Packets sent when the probe timeout expires: RFC 9002, section 6.2.4.
    pub probes: u32,
    /// A probe without new data carries unacknowledged data instead of a ping.
    pub probes_carry_data: bool,
    /// The window may be filled exactly; otherwise at least a byte of it stays free.
    pub fills_window: bool,
    /// CUBIC follows the formulas of RFC 8312 with a window in bytes, instead of Linux's code.
    pub fractional_cubic: bool,
    /// What ends slow start, apart from a loss.
    pub slow_start_exit: SlowStartExit,
    /// A reduction is undone when its recovery ends, unless at least this share of the window was
    /// lost, in percent, and at least two packets. 0: never.
    pub undo_percent: u32,
    /// Pacing rate of controls without a rate of their own, in percent of the window per smoothed
    /// round-trip time: N of RFC 9002, section 7.7. 0 for no pacing.
    pub pacing_percent: u32,
    /// Size of a burst of the pacer.
    pub burst: PacingBurst,
    /// Flow control: bytes that the receiver accepts beyond the bytes read.
    pub window: u64,
    /// The window doubles each time that half of it is used.
    pub window_doubles: bool,
}

impl QuicRules {
    /// RFC 9000 and 9002, with flow control that does not limit the rate.
    pub const RFC: Self = Self {
        ack_packets: 2,
        ack_delay: 25 * MILLISECOND,
        max_ack_delay: 25 * MILLISECOND,
        acks_reordering: true,
        initial_rtt: 333 * MILLISECOND,
        probes: 2,
        probes_carry_data: true,
        fills_window: true,
        fractional_cubic: false,
        slow_start_exit: SlowStartExit::Loss,
        undo_percent: 0,
        pacing_percent: 125,
        burst: PacingBurst {
            min_packets: 10,
            max_packets: 10,
            window_percent: 0,
            time: 0,
            wait: PacingWait::Packet,
        },
        window: 1 << 40,
        window_doubles: false,
    };
}

/// What ends slow start, apart from a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlowStartExit {
    /// Nothing.
    Loss,
    /// A rise of the round-trip time by a quarter, as in aioquic.
    RttRise,
    /// HyStart++, as in quiche.
    HystartPlusPlus,
}

/// Size of a burst of the pacer: the larger of a share of the window and the data of a time at the
/// pacing rate, between two limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PacingBurst {
    /// Smallest burst, in packets.
    pub min_packets: u32,
    /// Largest burst, in packets.
    pub max_packets: u32,
    /// Share of the window, in percent.
    pub window_percent: u32,
    /// Time at one window per round-trip time.
    #[serde(rename = "time_ns")]
    pub time: Nanos,
    /// How long a sender that must wait does so.
    pub wait: PacingWait,
}

/// How long a sender without enough tokens waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PacingWait {
    /// Until a packet may be sent.
    Packet,
    /// Until a complete burst may be sent, as in quinn.
    Burst,
    /// For the time of a packet, as in aioquic, where the last part of a packet's tokens suffices for
    /// a packet. Its timer fires late, so that each wait allows two packets.
    PacketOfAnyTokens,
}
