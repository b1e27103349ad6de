//! Where a sender stands in recovery, and what it remembers to undo it.
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
//!              all that was sent before is acknowledged, or undone: Open
//! ```

use super::prr::Prr;
use crate::clock::Nanos;

/// The phase, with what belongs to it. `high` is the byte after the last one sent when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing is missing.
    Open,
    /// Something may be missing or late.
    Disorder,
    /// An ECN echo or a repaired tail loss reduces the window.
    Cwr {
        /// How.
        prr: Prr,
        /// Until something beyond this is acknowledged.
        high: u64,
    },
    /// Fast recovery.
    Recovery {
        /// How the window is reduced.
        prr: Prr,
        /// Until this is acknowledged.
        high: u64,
    },
    /// A timeout is repaired.
    Loss {
        /// Until this is acknowledged.
        high: u64,
        /// Whether it may have been spurious: RFC 5682.
        frto: bool,
    },
}

/// A phase without what belongs to it; the order is that of severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PhaseName {
    /// [`Phase::Open`]
    Open,
    /// [`Phase::Disorder`]
    Disorder,
    /// [`Phase::Cwr`]
    Cwr,
    /// [`Phase::Recovery`]
    Recovery,
    /// [`Phase::Loss`]
    Loss,
}

impl Phase {
    /// Its name.
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

    /// The byte whose acknowledgement ends it, where there is one.
    #[inline(always)]
    #[must_use]
    pub fn high(&self) -> Option<u64> {
        match *self {
            Self::Open | Self::Disorder => None,
            Self::Cwr { high, .. } | Self::Recovery { high, .. } | Self::Loss { high, .. } => {
                Some(high)
            }
        }
    }

    /// The current reduction.
    #[inline(always)]
    pub fn prr_mut(&mut self) -> Option<&mut Prr> {
        match self {
            Self::Cwr { prr, .. } | Self::Recovery { prr, .. } => Some(prr),
            _ => None,
        }
    }

    /// Whether the window is being reduced.
    #[inline(always)]
    #[must_use]
    pub fn reduces(&self) -> bool {
        matches!(self, Self::Cwr { .. } | Self::Recovery { .. })
    }
}

/// How many retransmissions since the reduction have not been reported as duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreported {
    /// Nothing was retransmitted yet.
    NoneSent,
    /// This many.
    Packets(u32),
}

impl Unreported {
    /// `packets` are reported.
    pub fn report(&mut self, packets: u32) {
        if let Self::Packets(left) = self {
            *left = left.saturating_sub(packets);
        }
    }

    /// A packet is retransmitted.
    pub fn retransmit(&mut self) {
        *self = match *self {
            Self::NoneSent => Self::Packets(1),
            Self::Packets(left) => Self::Packets(left + 1),
        };
    }
}

/// What is remembered of a reduction of the window, to undo it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undo {
    /// The first byte not acknowledged when it began.
    pub marker: u64,
    /// Retransmissions that are not reported as duplicates.
    pub unreported: Unreported,
    /// It follows on a timeout.
    pub after_timeout: bool,
}

/// When the first retransmission since the last one was acknowledged was sent.
pub type RetransmittedAt = Option<Nanos>;
