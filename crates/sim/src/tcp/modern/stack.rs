//! The rules of a stack, as options; [`Preset`] names those that are in use.

use crate::clock::{Nanos, SECOND};
use serde::Deserialize;
use serde::de::value::{self, StrDeserializer};

/// A millisecond.
pub const MILLISECOND: Nanos = 1_000_000;

/// How the window grows and shrinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// RFC 5681.
    Reno,
    /// RFC 9438.
    Cubic(Cubic),
    /// BBR version 1 as Linux has it (draft-cardwell-iccrg-bbr-congestion-control-00).
    Bbr,
    /// BBR version 3 (draft-ietf-ccwg-bbr-06).
    Bbr3,
    /// RFC 8257.
    Dctcp,
}

/// The options of CUBIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cubic {
    /// RFC 9438, section 4.7.
    pub fast_convergence: bool,
    /// RFC 9438, section 4.3.
    pub reno_friendly: bool,
    /// Slow start ends when the acknowledgements of a round arrive in a train of half an RTT.
    pub hystart_train: bool,
    /// Slow start ends when the RTT of a round has grown by an eighth.
    pub hystart_delay: bool,
    /// The window from which HyStart looks, in packets.
    pub hystart_low_window: u32,
}

impl Cubic {
    /// As Linux has it.
    pub const LINUX: Self = Self {
        fast_convergence: true,
        reno_friendly: true,
        hystart_train: true,
        hystart_delay: true,
        hystart_low_window: 16,
    };
}

/// How losses are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detection {
    /// Without SACK: by duplicate acknowledgements, and one more for each partial one (RFC 6582).
    DuplicateAcks,
    /// RFC 6675.
    Sack {
        /// A rescue retransmission: section 4, NextSeg rule (4).
        rescue: bool,
    },
    /// RFC 8985 with Linux's adaptive reordering window.
    Rack {
        /// Section 7.
        tail_loss_probe: bool,
        /// Section 6.2 without the threshold of duplicates where no reordering was seen.
        no_dupthresh: bool,
        /// The reordering window does not adapt to DSACKs.
        static_window: bool,
    },
}

impl Detection {
    /// RACK with tail loss probes.
    pub const RACK: Self =
        Self::Rack { tail_loss_probe: true, no_dupthresh: false, static_window: false };

    /// Whether the two ends use SACK.
    #[inline(always)]
    #[must_use]
    pub fn uses_sack(self) -> bool {
        !matches!(self, Self::DuplicateAcks)
    }
}

/// How the window comes down to the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Proportional rate reduction: RFC 9937.
    Proportional,
    /// At once, with the scoreboard's `pipe` as clock: RFC 6675, section 5.
    Immediate,
}

/// How the round-trip time is smoothed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttRule {
    /// Linux: the deviation is at least the smallest RTO, so that RTO is srtt + 200 ms or more,
    /// and falls once a window.
    Linux,
    /// RFC 6298.
    Rfc6298,
}

/// What the window grows by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Packets acknowledged.
    PacketsAcked,
    /// Acknowledgements.
    EachAck,
}

/// When packets are paced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// Where the congestion control asks for it (BBR).
    ByControl,
    /// Always: twice the window a round-trip time in slow start, 1.2 times else, as Linux does it
    /// over the queue discipline `fq`.
    Always,
}

/// What loss detection knows of reordering, in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reordering {
    /// At first.
    pub initial: u32,
    /// At most.
    pub max: u32,
}

/// When the receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayedAcks {
    /// Each packet.
    Off,
    /// Every second packet or after this time: RFC 5681, section 4.2.
    Fixed {
        /// The longest delay.
        timeout: Nanos,
    },
    /// As Linux does: at once at the start, then with a delay that follows the arrivals.
    Linux,
}

/// When the application at the receiving end reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// When it is told to.
    OnRequest,
    /// Each packet as it comes.
    EachPacket,
    /// All that has come at an instant, behind the last of it.
    EachInstant,
}

/// The rules of the receiving end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receiving {
    /// When it acknowledges.
    pub delayed_acks: DelayedAcks,
    /// Duplicates are reported: RFC 2883.
    pub dsack: bool,
    /// After three duplicate acknowledgements, those that follow wait for up to a twentieth of an
    /// RTT and a millisecond, as Linux does it.
    pub sack_compression: bool,
    /// SACK blocks are what Linux reports: a packet extends those alone that are reported, whatever
    /// else is held beside it.
    pub extends_reported: bool,
    /// When the application reads.
    pub reading: Reading,
    /// Bytes that it takes beyond what was read.
    pub buffer: u64,
    /// By how much the advertised window grows at first, two packets for each that comes.
    pub window_growth: u64,
}

/// All rules of the two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    /// How the window grows and shrinks.
    pub control: Control,
    /// How losses are found.
    pub detection: Detection,
    /// How the window comes down.
    pub reduction: Reduction,
    /// What it grows by.
    pub growth: Growth,
    /// What is paced.
    pub pacing: Pacing,
    /// Threshold of reordering.
    pub reordering: Reordering,
    /// Reductions that were unnecessary are undone: RFC 3708, RFC 3522.
    pub undo: bool,
    /// RFC 5682.
    pub frto: bool,
    /// Duplicates below the threshold let new packets out: RFC 3042.
    pub limited_transmit: bool,
    /// RFC 7323.
    pub timestamps: bool,
    /// RFC 3168.
    pub ecn: bool,
    /// The socket's buffer holds twice the widest window so far, which bounds what is in flight in
    /// a long recovery: Linux's `tcp_sndbuf_expand`, without the limit of `tcp_wmem`.
    pub bounded_send_buffer: bool,
    /// Packets go in chunks, of which one that is not full may wait: Linux's segmentation offload.
    pub offload: bool,
    /// After an idle time the window is halved for each RTO, down to the initial window, and it
    /// shrinks while the application limits: RFC 2861.
    pub idle_restart: bool,
    /// Small packets are not held back: RFC 9293, section 3.7.4.
    pub no_delay: bool,
    /// Bytes of data in a full packet.
    pub mss: u32,
    /// First congestion window, in packets.
    pub initial_window: u32,
    /// How RTO follows from the samples.
    pub rtt_rule: RttRule,
    /// Smallest retransmission timeout.
    pub min_rto: Nanos,
    /// Timeout before the first sample.
    pub initial_rto: Nanos,
    /// Timeout where the handshake was retransmitted and gave no sample: RFC 6298 (5.7).
    pub fallback_rto: Nanos,
    /// Largest timeout.
    pub max_rto: Nanos,
    /// After so many retransmitted SYNs does their timeout double.
    pub linear_syns: u32,
    /// Timers are rounded up to this, and CUBIC's clock ticks so.
    pub tick: Nanos,
    /// Timers expire as those of Linux's wheel do (`kernel/time/timer.c`): at the tick after, and
    /// from 63 ticks on at the next multiple of 8, from 504 of 64, from 4032 of 512.
    pub timer_wheel: bool,
    /// The receiving end.
    pub receiving: Receiving,
}

/// A row for each preset: its name in scenarios and its rules.
macro_rules! presets {
    ($($(#[$says:meta])+ $preset:ident $name:literal $stack:expr,)+) => {
        /// Stacks by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Preset {
            $($(#[$says])+ $preset,)+
        }

        impl Preset {
            /// All, in the order of the documentation.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$preset),+];

            /// The name in scenarios.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$preset => $name,)+
                }
            }

            /// Its rules.
            #[must_use]
            pub fn stack(self) -> Stack {
                match self {
                    $(Self::$preset => $stack,)+
                }
            }
        }
    };
}

presets! {
    /// Linux with its default, CUBIC.
    LinuxCubic "linux-cubic" LINUX,
    /// Linux with Reno.
    LinuxReno "linux-reno" Stack { control: Control::Reno, ..LINUX },
    /// Linux with BBR version 1 and TCP's own pacing.
    LinuxBbr "linux-bbr" Stack { control: Control::Bbr, ..LINUX },
    /// Linux with Reno, and SACK, DSACK, RACK, TLP and F-RTO off, reordering fixed at 3.
    LinuxRenoClassic "linux-reno-classic" LINUX_RENO_CLASSIC,
    /// RFC 6675 over RFC 5681 and RFC 6298.
    RfcSack "rfc-sack" RFC_SACK,
    /// Linux with BBR version 3 by its draft.
    Bbr3 "bbr3" Stack { control: Control::Bbr3, ..LINUX },
    /// Linux with DCTCP.
    Dctcp "dctcp" Stack { control: Control::Dctcp, ecn: true, ..LINUX },
}

impl Preset {
    /// The preset of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::deserialize(StrDeserializer::<value::Error>::new(name)).ok()
    }
}

/// Linux advertises half of its buffer, and 5/8 of it once packets of 1500 bytes have come, which take
/// 2304 in memory: of 4 MiB, as `tcp_rmem` has it where a window is not to be in the way.
const WINDOW_GROWTH: u64 = (4 << 20) / 8;

/// Linux 6 with the defaults of its settings.
const LINUX: Stack = Stack {
    control: Control::Cubic(Cubic::LINUX),
    detection: Detection::RACK,
    reduction: Reduction::Proportional,
    growth: Growth::PacketsAcked,
    pacing: Pacing::ByControl,
    reordering: Reordering { initial: 3, max: 300 },
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
    receiving: Receiving {
        delayed_acks: DelayedAcks::Linux,
        dsack: true,
        sack_compression: true,
        extends_reported: true,
        reading: Reading::EachPacket,
        buffer: 1 << 40,
        window_growth: WINDOW_GROWTH,
    },
};

const LINUX_RENO_CLASSIC: Stack = Stack {
    control: Control::Reno,
    detection: Detection::DuplicateAcks,
    reordering: Reordering { initial: 3, max: 3 },
    frto: false,
    receiving: Receiving { dsack: false, ..LINUX.receiving },
    ..LINUX
};

const RFC_SACK: Stack = Stack {
    control: Control::Reno,
    detection: Detection::Sack { rescue: true },
    reduction: Reduction::Immediate,
    growth: Growth::EachAck,
    reordering: Reordering { initial: 3, max: 3 },
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
    receiving: Receiving {
        delayed_acks: DelayedAcks::Fixed { timeout: SECOND / 5 },
        dsack: false,
        sack_compression: false,
        extends_reported: false,
        reading: Reading::EachPacket,
        buffer: 1 << 40,
        window_growth: 0,
    },
    ..LINUX
};

impl Stack {
    /// A span of time that a timer waits: rounded up to the clock's ticks.
    #[inline(always)]
    #[must_use]
    pub fn in_ticks(&self, span: Nanos) -> Nanos {
        span.div_ceil(self.tick) * self.tick
    }

    /// Bytes of a full packet without options: what the other end is told as its largest.
    #[must_use]
    pub fn full_segment(&self) -> u32 {
        self.mss + if self.timestamps { 12 } else { 0 }
    }

    /// Whether the receiver echoes each mark, as DCTCP needs it: RFC 8257, section 3.2.
    #[inline(always)]
    #[must_use]
    pub fn echoes_each_mark(&self) -> bool {
        self.ecn && self.control == Control::Dctcp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_have_names() {
        for preset in Preset::ALL {
            assert_eq!(Preset::from_name(preset.name()), Some(preset));
        }
        assert_eq!(Preset::from_name("linux"), None);
    }

    #[test]
    fn timers_are_rounded_up_to_ticks() {
        let stack = Preset::LinuxCubic.stack();
        assert_eq!(stack.in_ticks(260_760_000), 264 * MILLISECOND);
        assert_eq!(stack.in_ticks(264 * MILLISECOND), 264 * MILLISECOND);
        assert_eq!(Preset::RfcSack.stack().in_ticks(7), 7);
    }
}
