//! Named stacks, and the rules of common stacks.

use super::cc::{CongestionControlKind, CubicOptions, PragueOptions, WindowGrowthUnit};
use super::handshake::CERTIFICATE_BYTES;
use super::kernel_version::KernelRules;
use super::stack::{
    AckDelayRule, ApplicationReading, LossDetection, PacingRules, ReceiverRules,
    ReorderingThreshold, RttRule, Stack, WindowReduction,
};
use serde::Deserialize;
use serde::de::value::{self, StrDeserializer};
use std::num::NonZeroU16;
use tcpcast_link::time::{MILLISECOND, SECOND};

/// Largest window that TCP can advertise: 16 bits, shifted by at most 14 (RFC 7323, section 2.3).
const MAX_WINDOW_BYTES: u64 = 65_535 << 14;

/// One row per preset: its name in scenarios and its rules.
macro_rules! presets {
    ($($(#[$doc:meta])+ $preset:ident $name:literal $stack:expr,)+) => {
        /// Named stacks.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
        pub enum Preset {
            $($(#[$doc])+ #[serde(rename = $name)] $preset,)+
        }

        impl Preset {
            /// All presets, in the order of the documentation.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$preset),+];

            /// Name in scenarios.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$preset => $name,)+
                }
            }

            /// Rules of the preset.
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
    /// Linux with its default congestion control, CUBIC.
    LinuxCubic "linux-cubic" LINUX,
    /// Linux with Reno.
    LinuxReno "linux-reno" Stack { control: CongestionControlKind::Reno, ..LINUX },
    /// Linux with BBR version 1 and TCP's own pacing.
    LinuxBbr "linux-bbr" Stack { control: CongestionControlKind::Bbr, ..LINUX },
    /// Linux with Reno, without SACK, DSACK, RACK, TLP and F-RTO, and with a dupthresh of 3.
    LinuxRenoClassic "linux-reno-classic" LINUX_RENO_CLASSIC,
    /// RFC 6675 over RFC 5681 and RFC 6298.
    RfcSack "rfc-sack" RFC_SACK,
    /// Linux with BBR version 3 according to its draft.
    Bbr3 "bbr3" Stack { control: CongestionControlKind::Bbr3, ..LINUX },
    /// Linux with DCTCP.
    Dctcp "dctcp" Stack { control: CongestionControlKind::Dctcp, ecn: true, ..LINUX },
    /// Linux with MulTCP, by default as two flows.
    Multcp "multcp" Stack { control: MULTCP, ..LINUX },
    /// Linux with TCP Prague of June 2021.
    Prague "prague" PRAGUE,
    /// Linux with TCP Prague of August 2020.
    Prague2020 "prague-2020" Stack {
        control: CongestionControlKind::Prague(PragueOptions::V2020),
        ..PRAGUE
    },
    /// Linux with TCP Prague of 2024.
    Prague2024 "prague-2024" Stack {
        control: CongestionControlKind::Prague(PragueOptions::V2024),
        ..PRAGUE
    },
    /// Linux with TFRC.
    Tfrc "tfrc" Stack { control: CongestionControlKind::Tfrc, initial_window: 3, ..LINUX },
}

impl Preset {
    /// Returns the preset with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::deserialize(StrDeserializer::<value::Error>::new(name)).ok()
    }
}

const MULTCP: CongestionControlKind =
    CongestionControlKind::MulTcp(NonZeroU16::MIN.saturating_add(1));

/// Linux advertises half of its buffer, and 5/8 once packets of 1500 bytes have arrived, which use
/// 2304 bytes of memory. The buffer is 4 MiB, a usual `tcp_rmem` for runs that the window must not
/// limit.
const WINDOW_GROWTH: u64 = (4 << 20) / 8;

/// Linux 6 with the defaults of its settings.
const LINUX: Stack = Stack {
    control: CongestionControlKind::Cubic(CubicOptions::LINUX),
    kernel: KernelRules::V6_18,
    detection: LossDetection::RACK,
    reduction: WindowReduction::Proportional,
    growth: WindowGrowthUnit::PacketsAcked,
    pacing: PacingRules::INTERNAL,
    reordering: ReorderingThreshold { initial: 3, max: 300 },
    undo: true,
    frto: true,
    limited_transmit: true,
    timestamps: true,
    ecn: false,
    accurate_ecn: false,
    bounded_send_buffer: true,
    max_send_buffer: u64::MAX,
    socket: None,
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
        buffer: MAX_WINDOW_BYTES,
        memory: None,
        window_growth: WINDOW_GROWTH,
    },
    fast_open: false,
    certificate: CERTIFICATE_BYTES,
    quic: None,
};

const PRAGUE: Stack =
    Stack { control: CongestionControlKind::Prague(PragueOptions::V2021), ecn: true, ..LINUX };

const LINUX_RENO_CLASSIC: Stack = Stack {
    control: CongestionControlKind::Reno,
    detection: LossDetection::DuplicateAcks,
    reordering: ReorderingThreshold { initial: 3, max: 3 },
    frto: false,
    receiving: ReceiverRules { dsack: false, ..LINUX.receiving },
    ..LINUX
};

const RFC_SACK: Stack = Stack {
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
        buffer: MAX_WINDOW_BYTES,
        memory: None,
        window_growth: 0,
    },
    ..LINUX
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_found_by_name() {
        for preset in Preset::ALL {
            assert_eq!(Preset::from_name(preset.name()), Some(preset));
        }
        assert_eq!(Preset::from_name("linux"), None);
    }
}
