//! Rules of TCP that differ between releases of Linux.

use super::buffer_memory::BufferMemory;
use serde::Deserialize;
use tcpcast_link::time::{MILLISECOND, NEVER, Nanos};

/// A mainline release, without the corrections of its stable series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs)]
pub enum KernelVersion {
    #[serde(rename = "4.14")]
    V4_14,
    #[serde(rename = "5.4")]
    V5_4,
    #[serde(rename = "5.15")]
    V5_15,
    #[serde(rename = "6.1")]
    V6_1,
    #[serde(rename = "6.12")]
    V6_12,
    #[serde(rename = "6.18")]
    V6_18,
    #[serde(rename = "7.0")]
    V7_0,
}

/// Detection of the end of slow start by HyStart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum HyStartRule {
    /// Until 5.5: a train ends slow start after half of the minimum RTT, also with pacing, and only
    /// the first samples of a round count for its minimum. Rounds are as until 5.15.
    FirstSamples,
    /// Until 5.15: a round begins when the window limits the rate.
    LimitedRounds,
    /// 5.16 to 6.13 (4e1fddc98d25): a round begins only if the window reaches its minimum for
    /// HyStart, so the first of these rounds lasts from the start of the connection.
    LateRounds,
    /// Since 6.14 (25c1a9ca53db).
    AllRounds,
}

/// Growth of the window below the threshold in a proportional rate reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrrRule {
    /// Until 5.13: slow start while retransmissions are acknowledged and none is lost again,
    /// otherwise the packets delivered.
    AckedRetransmission,
    /// 5.14 to 5.18 (a29cb6914681): slow start while acknowledgements advance without losses,
    /// otherwise the packets delivered.
    Advance,
    /// Since 5.19 (9ad084d66619), and RFC 9937: also the packets that were not sent before.
    Banked,
}

/// Rules that differ between releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelRules {
    /// HyStart.
    pub hystart: HyStartRule,
    /// Proportional rate reduction.
    pub prr: PrrRule,
    /// Maximum delay of compressed acknowledgements in percent of the RTT: 33 since 6.19
    /// (416dd649f3aa), 0 without compression, until 4.17 (5d9f4262b7ea).
    pub sack_compression_percent: u32,
    /// Acknowledgements without delay after a CE mark: 16 until 4.17 (522040ea5fdd).
    pub quick_acks_at_mark: u8,
    /// Whether `fq` computes departure times, from the lengths of frames: until 4.19
    /// (ab408b6dc744).
    pub fq_counts_frames: bool,
    /// Whether a DSACK of a tail loss probe does not count as one of a retransmission of the
    /// recovery: since 6.10 (0ec986ed7bab).
    pub counts_loss_probe: bool,
    /// Whether a recovery is undone if nothing was retransmitted: since 6.12 (e37ab7373696).
    pub undoes_without_retransmission: bool,
    /// Maximum time until an acknowledgement for which a partial chunk waits; half of the RTT also
    /// limits it. 1 ms since 6.18 (295ce1eb36ae), no limit before.
    pub max_deferral_for_ack: Nanos,
    /// Receive buffer by default: `tcp_adv_win_scale` until 6.5 (dfa2f0483360), `tcp_rmem` of
    /// 6 MiB until 6.15 (572be9bf9d0d).
    pub receive_memory: BufferMemory,
}

impl KernelRules {
    /// Rules of Linux 6.18.
    pub const V6_18: Self = Self {
        hystart: HyStartRule::AllRounds,
        prr: PrrRule::Banked,
        sack_compression_percent: 5,
        quick_acks_at_mark: 2,
        fq_counts_frames: false,
        counts_loss_probe: true,
        undoes_without_retransmission: true,
        max_deferral_for_ack: MILLISECOND,
        receive_memory: BufferMemory::LINUX_6_18,
    };
}

impl KernelVersion {
    /// Rules of the release.
    #[must_use]
    pub fn rules(self) -> KernelRules {
        let newest = KernelRules::V6_18;
        let v6_12 = KernelRules {
            hystart: HyStartRule::LateRounds,
            max_deferral_for_ack: NEVER,
            receive_memory: BufferMemory { max: 6 << 20, ..BufferMemory::LINUX_6_18 },
            ..newest
        };
        let v6_1 = KernelRules {
            counts_loss_probe: false,
            undoes_without_retransmission: false,
            receive_memory: BufferMemory::LINUX_5_15,
            ..v6_12
        };
        let v5_15 =
            KernelRules { hystart: HyStartRule::LimitedRounds, prr: PrrRule::Advance, ..v6_1 };
        let v5_4 = KernelRules {
            hystart: HyStartRule::FirstSamples,
            prr: PrrRule::AckedRetransmission,
            ..v5_15
        };
        match self {
            Self::V7_0 => KernelRules { sack_compression_percent: 33, ..newest },
            Self::V6_18 => newest,
            Self::V6_12 => v6_12,
            Self::V6_1 => v6_1,
            Self::V5_15 => v5_15,
            Self::V5_4 => v5_4,
            Self::V4_14 => KernelRules {
                sack_compression_percent: 0,
                quick_acks_at_mark: 16,
                fq_counts_frames: true,
                ..v5_4
            },
        }
    }
}

#[cfg(test)]
#[path = "kernel_version_tests.rs"]
mod tests;
