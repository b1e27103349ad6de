//! Recovery phases of a sender, and the state needed to undo a reduction.
//!
//! ```text
//!            SACK, duplicate                  loss found
//!      Open <---------------> Disorder ----------------------+
//!       |  ^ \                 |    ^ |                      v
//!  ECE  |  |  \ RTO        ECE |    | | RTO               Recovery --+
//!       v  |   \               v    | |         loss found ^  |  ^   | partial ack
//!      Cwr-+    +----------> Loss <-|-+--------------------|--+  +---+
//!       |                     |     |                      |
//!       +---------------------|-----|----------------------+
//!       all data sent before the phase is acknowledged, or the reduction is undone: Open
//! ```

use super::prr::ProportionalRateReduction;

/// Recovery phase. `high` is the end of the data sent before the phase began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryPhase {
    /// No packet is missing.
    Open,
    /// Packets may be lost or reordered.
    Disorder,
    /// The window is reduced because of an ECN echo or a repaired tail loss.
    Cwr {
        /// State of the reduction.
        prr: ProportionalRateReduction,
        /// The phase ends when data beyond this byte is acknowledged.
        high: u64,
    },
    /// Fast recovery.
    Recovery {
        /// State of the reduction.
        prr: ProportionalRateReduction,
        /// The phase ends when this byte is acknowledged.
        high: u64,
    },
    /// Recovery from a timeout.
    Loss {
        /// The phase ends when this byte is acknowledged.
        high: u64,
        /// Whether the timeout may have been spurious: RFC 5682.
        frto: bool,
    },
}

/// Name of a phase; ordered by severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PhaseName {
    /// [`RecoveryPhase::Open`]
    Open,
    /// [`RecoveryPhase::Disorder`]
    Disorder,
    /// [`RecoveryPhase::Cwr`]
    Cwr,
    /// [`RecoveryPhase::Recovery`]
    Recovery,
    /// [`RecoveryPhase::Loss`]
    Loss,
}

impl RecoveryPhase {
    /// Name of the phase.
    #[inline(always)]
    #[must_use]
    pub fn name(&self) -> PhaseName {
        match self {
            Self::Open => PhaseName::Open,
            Self::Disorder => PhaseName::Disorder,
            Self::Cwr { .. } => PhaseName::Cwr,
            Self::Recovery { .. } => PhaseName::Recovery,
            Self::Loss { .. } => PhaseName::Loss,
        }
    }

    /// Byte whose acknowledgement ends the phase.
    #[inline(always)]
    #[must_use]
    pub fn end_of_phase(&self) -> Option<u64> {
        match *self {
            Self::Open | Self::Disorder => None,
            Self::Cwr { high, .. } | Self::Recovery { high, .. } | Self::Loss { high, .. } => {
                Some(high)
            }
        }
    }

    /// State of the current reduction.
    #[inline(always)]
    pub fn prr_mut(&mut self) -> Option<&mut ProportionalRateReduction> {
        match self {
            Self::Cwr { prr, .. } | Self::Recovery { prr, .. } => Some(prr),
            _ => None,
        }
    }

    /// Whether the window is being reduced.
    #[inline(always)]
    #[must_use]
    pub fn reduces_window(&self) -> bool {
        matches!(self, Self::Cwr { .. } | Self::Recovery { .. })
    }
}

/// Number of retransmissions since the reduction that were not reported as duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreportedRetransmissions {
    /// Nothing was retransmitted yet.
    NoneSent,
    /// Number of packets.
    Packets(u32),
}

impl UnreportedRetransmissions {
    /// Subtracts `packets` reported as duplicates.
    pub fn subtract_reported(&mut self, packets: u32) {
        if let Self::Packets(left) = self {
            *left = left.saturating_sub(packets);
        }
    }

    /// Counts a retransmission.
    pub fn count_retransmission(&mut self) {
        *self = match *self {
            Self::NoneSent => Self::Packets(1),
            Self::Packets(left) => Self::Packets(left + 1),
        };
    }
}

/// State saved at a window reduction, in order to undo it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndoState {
    /// First unacknowledged byte when the reduction began.
    pub marker: u64,
    /// Retransmissions not reported as duplicates.
    pub unreported: UnreportedRetransmissions,
    /// Whether a timeout caused the reduction.
    pub after_timeout: bool,
}
