//! Rules of a stack, as options, and the rules of common stacks.

use super::cc::CongestionControlKind;
use crate::clock::{MILLISECOND, Nanos, SECOND};
use crate::packet::TIMESTAMP_BYTES;

/// Options of CUBIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CubicOptions {
    /// RFC 9438, section 4.7.
    pub fast_convergence: bool,
    /// RFC 9438, section 4.3.
    pub reno_friendly: bool,
    /// Slow start ends after an acknowledgement train of half an RTT.
    pub hystart_train: bool,
    /// Slow start ends when the RTT of a round has increased by an eighth.
    pub hystart_delay: bool,
    /// Minimum window for HyStart, in packets.
    pub hystart_low_window: u32,
}

impl CubicOptions {
    /// Options of Linux.
    pub const LINUX: Self = Self {
        fast_convergence: true,
        reno_friendly: true,
        hystart_train: true,
        hystart_delay: true,
        hystart_low_window: 16,
    };
}

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

/// Unit of window growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowGrowthUnit {
    /// Acknowledged packets.
    PacketsAcked,
    /// Acknowledgements.
    EachAck,
}

/// Condition for pacing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacingCondition {
    /// If the congestion control requests a rate (BBR).
    ByControl,
    /// Always: two windows per round-trip time in slow start, otherwise 1.2, as in Linux with the
    /// queue discipline `fq`.
    Always,
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
    /// After three duplicate acknowledgements, later ones are delayed by the minimum of RTT / 20
    /// and 1 ms, as in Linux.
    pub sack_compression: bool,
    /// As in Linux, a packet extends only SACK blocks that are being reported, even if other held
    /// data is adjacent.
    pub extends_reported: bool,
    /// Times at which the application reads.
    pub reading: ApplicationReading,
    /// Bytes accepted beyond the data read.
    pub buffer: u64,
    /// Initial growth of the advertised window in bytes: two packets per received packet.
    pub window_growth: u64,
}

/// Rules of both ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Congestion control.
    pub control: CongestionControlKind,
    /// Loss detection.
    pub detection: LossDetection,
    /// Reduction of the window.
    pub reduction: WindowReduction,
    /// Unit of window growth.
    pub growth: WindowGrowthUnit,
    /// Condition for pacing.
    pub pacing: PacingCondition,
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
    /// The send buffer holds twice the largest window so far, which limits the outstanding data in
    /// a long recovery: Linux's `tcp_sndbuf_expand`, without the limit of `tcp_wmem`.
    pub bounded_send_buffer: bool,
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
}

/// Linux advertises half of its buffer, and 5/8 once packets of 1500 bytes have arrived, which use
/// 2304 bytes of memory. The buffer is 4 MiB, a usual `tcp_rmem` for runs that the window must not
/// limit.
const WINDOW_GROWTH: u64 = (4 << 20) / 8;

/// Linux 6 with the defaults of its settings.
pub(super) const LINUX: Stack = Stack {
    control: CongestionControlKind::Cubic(CubicOptions::LINUX),
    detection: LossDetection::RACK,
    reduction: WindowReduction::Proportional,
    growth: WindowGrowthUnit::PacketsAcked,
    pacing: PacingCondition::ByControl,
    reordering: ReorderingThreshold { initial: 3, max: 300 },
    undo: true,
    frto: true,
    limited_transmit: true,
    timestamps: true,
    ecn: false,
    bounded_send_buffer: true,
    offload: true,
    idle_restart: true,
    no_delay: false,
    mss: 1448,
    initial_window: 10,
    rtt_rule: RttRule::Linux,
    min_rto: 200 * MILLISECOND,
    initial_rto: SECOND,
    fallback_rto: 3 * SECOND,
    max_rto: 120 * SECOND,
    linear_syns: 4,
    tick: 4 * MILLISECOND,
    timer_wheel: true,
    receiving: ReceiverRules {
        delayed_acks: AckDelayRule::Linux,
        dsack: true,
        sack_compression: true,
        extends_reported: true,
        reading: ApplicationReading::EachPacket,
        buffer: 1 << 40,
        window_growth: WINDOW_GROWTH,
    },
};

pub(super) const LINUX_RENO_CLASSIC: Stack = Stack {
    control: CongestionControlKind::Reno,
    detection: LossDetection::DuplicateAcks,
    reordering: ReorderingThreshold { initial: 3, max: 3 },
    frto: false,
    receiving: ReceiverRules { dsack: false, ..LINUX.receiving },
    ..LINUX
};

pub(super) const RFC_SACK: Stack = Stack {
    control: CongestionControlKind::Reno,
    detection: LossDetection::Sack { rescue: true },
    reduction: WindowReduction::Immediate,
    growth: WindowGrowthUnit::EachAck,
    reordering: ReorderingThreshold { initial: 3, max: 3 },
    undo: false,
    frto: false,
    timestamps: false,
    bounded_send_buffer: false,
    offload: false,
    idle_restart: true,
    mss: 1460,
    rtt_rule: RttRule::Rfc6298,
    min_rto: SECOND,
    max_rto: 60 * SECOND,
    linear_syns: 0,
    tick: 1,
    timer_wheel: false,
    receiving: ReceiverRules {
        delayed_acks: AckDelayRule::Fixed { timeout: SECOND / 5 },
        dsack: false,
        sack_compression: false,
        extends_reported: false,
        reading: ApplicationReading::EachPacket,
        buffer: 1 << 40,
        window_growth: 0,
    },
    ..LINUX
};

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

    /// Whether the receiver echoes each mark, as DCTCP requires: RFC 8257, section 3.2.
    #[inline(always)]
    #[must_use]
    pub fn echoes_each_mark(&self) -> bool {
        self.ecn && self.control == CongestionControlKind::Dctcp
    }
}

#[cfg(test)]
mod tests {
    use super::super::cc::Preset;
    use super::*;

    #[test]
    fn timers_are_rounded_up_to_ticks() {
        let stack = Preset::LinuxCubic.stack();
        assert_eq!(stack.round_up_to_ticks(260_760_000), 264 * MILLISECOND);
        assert_eq!(stack.round_up_to_ticks(264 * MILLISECOND), 264 * MILLISECOND);
        assert_eq!(Preset::RfcSack.stack().round_up_to_ticks(7), 7);
    }
}
