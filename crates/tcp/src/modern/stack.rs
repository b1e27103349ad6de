//! Rules of a stack, as options.

use super::buffer_memory::BufferMemory;
use super::cc::{AnyCongestionControl, CongestionControlKind, ControlRules, WindowGrowthUnit};
use super::kernel_version::KernelRules;
use super::socket_state::SocketOptions;
use crate::packet_kind::TIMESTAMP_BYTES;
use crate::quic::QuicRules;
use tcpcast_link::time::Nanos;

/// Loss detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossDetection {
    /// Without SACK: duplicate acknowledgements, and one loss per partial one (RFC 6582).
    DuplicateAcks,
    /// RFC 6675.
    Sack {
        /// Rescue retransmission: section 4, NextSeg rule (4).
        rescue: bool,
    },
    /// RFC 8985 with Linux's adaptive reordering window.
    Rack {
        /// Tail loss probe: section 7.
        tail_loss_probe: bool,
        /// Section 6.2 without the duplicate threshold if no reordering was observed.
        no_dupthresh: bool,
        /// The reordering window does not adapt to DSACKs.
        static_window: bool,
    },
}

impl LossDetection {
    /// RACK with tail loss probes.
    pub const RACK: Self =
        Self::Rack { tail_loss_probe: true, no_dupthresh: false, static_window: false };

    /// Whether both ends use SACK.
    #[inline(always)]
    #[must_use]
    pub fn uses_sack(self) -> bool {
        !matches!(self, Self::DuplicateAcks)
    }
}

/// Reduction of the window to the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowReduction {
    /// Proportional rate reduction: RFC 9937.
    Proportional,
    /// Immediate, with the scoreboard's `pipe` as clock: RFC 6675, section 5.
    Immediate,
}

/// Rule for smoothing the round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttRule {
    /// Linux: the deviation is at least the minimum RTO, so the RTO is srtt + 200 ms or more, and
    /// the deviation decreases once per window.
    Linux,
    /// RFC 6298.
    Rfc6298,
}

/// Condition for pacing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacingCondition {
    /// Packets are paced if the congestion control requests a rate (BBR).
    ByControl,
    /// Always: two windows per round-trip time in slow start, otherwise 1.2, as in Linux with the
    /// queue discipline `fq`.
    Always,
    /// Never, although BBR relies on it.
    Never,
}

/// Rules for pacing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacingRules {
    /// When packets are paced.
    pub condition: PacingCondition,
    /// Bytes of headers per packet that count towards the rate. Linux's own pacing counts only the
    /// data; `fq` counted the frame until 4.19.
    pub header_bytes: u32,
    /// Packets that TCP may hand to `fq` before they are due. They use the window like packets in
    /// flight.
    pub queued_packets: u32,
    /// Largest rate in bytes per second: `SO_MAX_PACING_RATE`.
    pub max_rate: u64,
}

impl PacingRules {
    /// Linux's own pacing of controls that request a rate.
    pub const INTERNAL: Self = Self {
        condition: PacingCondition::ByControl,
        header_bytes: 0,
        queued_packets: 0,
        max_rate: u64::MAX,
    };
}

/// Reordering threshold of loss detection, in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReorderingThreshold {
    /// Initial value.
    pub initial: u32,
    /// Maximum.
    pub max: u32,
}

/// Delay of acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckDelayRule {
    /// Every packet is acknowledged immediately.
    Off,
    /// An acknowledgement is sent for every second packet, or after a timeout: RFC 5681, section
    /// 4.2.
    Fixed {
        /// Maximum delay.
        timeout: Nanos,
    },
    /// As in Linux: immediate at the start, then with a delay that adapts to arrivals.
    Linux,
}

/// Times at which the receiving application reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplicationReading {
    /// When `on_read` is called.
    OnRequest,
    /// Each packet on arrival.
    EachPacket,
    /// All packets that arrived at the same time are read together, after the last of them.
    EachInstant,
}

/// Rules of the receiving end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverRules {
    /// Delay of acknowledgements.
    pub delayed_acks: AckDelayRule,
    /// Duplicates are reported: RFC 2883.
    pub dsack: bool,
    /// After three duplicate acknowledgements, later ones are delayed by the minimum of a share of
    /// the RTT and 1 ms, as in Linux.
    pub sack_compression: bool,
    /// As in Linux, a packet extends only SACK blocks that are being reported, even if other held
    /// data is adjacent.
    pub extends_reported: bool,
    /// Times at which the application reads.
    pub reading: ApplicationReading,
    /// Bytes accepted beyond the data read, unless the buffer grows.
    pub buffer: u64,
    /// Memory of a buffer that grows; [`None`] for a buffer of constant size.
    pub memory: Option<BufferMemory>,
    /// Initial growth of the advertised window in bytes: two packets per received packet.
    pub window_growth: u64,
}

impl ReceiverRules {
    /// Window that a connection advertises at its start.
    #[must_use]
    pub fn initial_window(&self) -> u64 {
        self.memory.map_or(self.buffer, |memory| memory.initial_window())
    }
}

/// Rules of both ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Congestion control.
    pub control: CongestionControlKind,
    /// Rules that depend on the release of Linux.
    pub kernel: KernelRules,
    /// Loss detection.
    pub detection: LossDetection,
    /// Reduction of the window.
    pub reduction: WindowReduction,
    /// Unit of window growth.
    pub growth: WindowGrowthUnit,
    /// Pacing.
    pub pacing: PacingRules,
    /// Reordering threshold.
    pub reordering: ReorderingThreshold,
    /// Unnecessary reductions are undone: RFC 3708, RFC 3522.
    pub undo: bool,
    /// F-RTO: RFC 5682.
    pub frto: bool,
    /// Duplicates below the threshold send new packets: RFC 3042.
    pub limited_transmit: bool,
    /// Timestamps: RFC 7323.
    pub timestamps: bool,
    /// ECN: RFC 3168.
    pub ecn: bool,
    /// Accurate ECN feedback (RFC 9768) is offered and, in a connection, used; only with `ecn`.
    pub accurate_ecn: bool,
    /// The send buffer holds twice the largest window so far, which limits the outstanding data in
    /// a long recovery: Linux's `tcp_sndbuf_expand`, without the limit of `tcp_wmem`.
    pub bounded_send_buffer: bool,
    /// Maximum of the data in the send buffer, in bytes: third value of `tcp_wmem`, without the
    /// memory that buffers of segmentation offload need beside their data.
    pub max_send_buffer: u64,
    /// Options of the sending socket if its application waits for space in the send buffer; [`None`]
    /// if the buffer accepts all data.
    pub socket: Option<SocketOptions>,
    /// Packets are sent in chunks, and a partial chunk may wait: Linux's segmentation offload.
    pub offload: bool,
    /// The window is halved per RTO of idle time, down to the initial window, and shrinks while the
    /// rate is limited by the application: RFC 2861.
    pub idle_restart: bool,
    /// Small packets are not delayed (no Nagle algorithm): RFC 9293, section 3.7.4.
    pub no_delay: bool,
    /// Bytes of data per full packet.
    pub mss: u32,
    /// Initial congestion window, in packets.
    pub initial_window: u32,
    /// Rule for computing the RTO from samples.
    pub rtt_rule: RttRule,
    /// Minimum retransmission timeout.
    pub min_rto: Nanos,
    /// Timeout before the first sample.
    pub initial_rto: Nanos,
    /// Timeout if the handshake was retransmitted and gave no sample: RFC 6298 (5.7).
    pub fallback_rto: Nanos,
    /// Maximum timeout.
    pub max_rto: Nanos,
    /// The client has a cookie for TCP Fast Open: its SYN carries data, and the server answers
    /// before its SYN-ACK is acknowledged (RFC 7413).
    pub fast_open: bool,
    /// Number of retransmitted SYNs before their timeout doubles.
    pub linear_syns: u32,
    /// Tick to which timers are rounded up; also the tick of CUBIC's clock.
    pub tick: Nanos,
    /// Timers use Linux's wheel (`kernel/time/timer.c`), which delays them to the next multiple of a
    /// granularity: 1 tick for durations below 63 ticks, 8 ticks below 504, 64 ticks below 4032,
    /// and 512 ticks for longer durations.
    pub timer_wheel: bool,
    /// Rules of the receiving end.
    pub receiving: ReceiverRules,
    /// Bytes of the certificates of the server in a full handshake of TLS.
    pub certificate: u32,
    /// Rules of QUIC, which then replaces TCP: of the other rules, only the congestion control, its
    /// initial window, the reordering threshold and ECN apply.
    pub quic: Option<QuicRules>,
}

impl Stack {
    /// Rounds a timer's duration up to clock ticks.
    #[inline(always)]
    #[must_use]
    pub fn round_up_to_ticks(&self, span: Nanos) -> Nanos {
        span.div_ceil(self.tick) * self.tick
    }

    /// Bytes of a full packet including options: the advertised maximum segment size.
    #[must_use]
    pub fn full_segment_bytes(&self) -> u32 {
        self.mss + if self.timestamps { TIMESTAMP_BYTES } else { 0 }
    }

    /// Rules that the congestion control needs.
    pub(super) fn control_rules(&self) -> ControlRules {
        ControlRules {
            mss: self.mss,
            initial_window: self.initial_window,
            growth: self.growth,
            min_rto: self.min_rto,
            tick: self.tick,
            uses_sack: self.detection.uses_sack(),
            uses_ecn: self.ecn,
        }
    }

    /// Creates the congestion control of a connection: see [`AnyCongestionControl::new`].
    pub(crate) fn new_control(&self, now: Nanos, start: u64, seed: u64) -> AnyCongestionControl {
        AnyCongestionControl::new(self.control, &self.control_rules(), now, start, seed)
    }

    /// Whether the sender uses ECT(1): RFC 9331, section 4.1.
    #[inline(always)]
    #[must_use]
    pub fn is_l4s(&self) -> bool {
        self.ecn && matches!(self.control, CongestionControlKind::Prague(_))
    }

    /// Whether the receiver echoes each mark, as DCTCP requires: RFC 8257, section 3.2; also that of
    /// BBR version 3 (`bbr_precise_ece_ack`). For Prague without accurate ECN, this gives the sender
    /// the same numbers.
    #[inline(always)]
    #[must_use]
    pub fn echoes_each_mark(&self) -> bool {
        self.ecn
            && !self.accurate_ecn
            && matches!(
                self.control,
                CongestionControlKind::Dctcp
                    | CongestionControlKind::Prague(_)
                    | CongestionControlKind::Bbr3
            )
    }
}

#[cfg(test)]
mod tests {
    use super::super::presets::Preset;
    use tcpcast_link::time::MILLISECOND;

    #[test]
    fn timers_are_rounded_up_to_ticks() {
        let stack = Preset::LinuxCubic.stack();
        assert_eq!(stack.round_up_to_ticks(260_760_000), 264 * MILLISECOND);
        assert_eq!(stack.round_up_to_ticks(264 * MILLISECOND), 264 * MILLISECOND);
        assert_eq!(Preset::RfcSack.stack().round_up_to_ticks(7), 7);
    }
}
