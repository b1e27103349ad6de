//! Kinds of interruptions of a direction.

use crate::segment::Nanos;

/// Who was silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SilentParty {
    /// No packet of the other end arrived; the cause is the path or the other end.
    Path,
    /// The receiver of the data closed its window.
    Receiver,
}

/// A period in which data of a direction were outstanding and nothing was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interruption {
    /// First transmission without an answer or, if the receiver closed its window, this segment.
    pub start: Nanos,
    /// Transmission that was answered, or segment that opened the window. For an interruption that
    /// did not end: the last transmission.
    pub end: Nanos,
    /// Who was silent.
    pub by: SilentParty,
    /// Retransmitted packets, or window probes.
    pub copies: u32,
    /// True if the interruption ended within the capture.
    pub ended: bool,
}

/// A closed receive window: since when, and the number of window probes before.
pub(super) type ClosedWindow = Option<(Nanos, u64)>;
