//! Causes of retransmissions and kinds of loss indications.

use crate::segment::Nanos;

/// Cause of a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetransCause {
    /// Fast retransmit after duplicate acknowledgements, or a partial acknowledgement in that
    /// recovery.
    Duplicates,
    /// SACK blocks show that the receiver holds later segments.
    Sack,
    /// RACK (RFC 8985): after SACK, a short timer or pacing triggered the retransmission, or a
    /// retransmission that was sent later has been acknowledged.
    Rack,
    /// The retransmission timer expired; `depth` is 1 for the first expiry and grows with each
    /// backoff.
    Timeout {
        /// Number of expiries since the last new acknowledgement.
        depth: u8,
    },
    /// Retransmitted in slow start after an RTO, because all data in flight were considered lost.
    AfterTimeout,
    /// A tail-loss probe (RFC 8985, section 7).
    TailLossProbe,
    /// The capture shows no reason.
    Unexplained,
}

/// Retransmissions by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetransCauses {
    /// After duplicate acknowledgements.
    pub duplicates: u64,
    /// After SACK.
    pub sack: u64,
    /// By RACK's timer or delayed by pacing.
    pub rack: u64,
    /// By the retransmission timer.
    pub timeout: u64,
    /// In slow start after a timeout.
    pub after_timeout: u64,
    /// Tail-loss probes.
    pub tail_loss_probe: u64,
    /// Without a visible cause.
    pub unexplained: u64,
}

impl RetransCauses {
    pub(super) fn count_packets(&mut self, cause: RetransCause, packets: u64) {
        let count = match cause {
            RetransCause::Duplicates => &mut self.duplicates,
            RetransCause::Sack => &mut self.sack,
            RetransCause::Rack => &mut self.rack,
            RetransCause::Timeout { .. } => &mut self.timeout,
            RetransCause::AfterTimeout => &mut self.after_timeout,
            RetransCause::TailLossProbe => &mut self.tail_loss_probe,
            RetransCause::Unexplained => &mut self.unexplained,
        };
        *count += packets;
    }

    /// Fast retransmits of any kind.
    #[must_use]
    pub fn fast_retransmits(&self) -> u64 {
        self.duplicates + self.sack + self.rack
    }

    /// All retransmissions.
    #[must_use]
    pub fn all_retransmissions(&self) -> u64 {
        let timers = self.timeout + self.after_timeout + self.tail_loss_probe;
        self.fast_retransmits() + timers + self.unexplained
    }
}

/// Kind of loss indication, as the papers count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndicationKind {
    /// Duplicate acknowledgements, SACK or RACK: one indication per recovery.
    Td,
    /// A sequence of timeouts of the same segment.
    To,
}

/// Classification of a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RetransVerdict {
    pub(super) cause: RetransCause,
    /// Set if the retransmission starts a new loss indication.
    pub(super) indication: Option<IndicationKind>,
    /// Time since the retransmission timer was started.
    pub(super) waited: Nanos,
}

/// Verdict for data of a handshake, whose retransmission is not a loss indication.
pub(super) const HANDSHAKE_CLASS: RetransVerdict =
    RetransVerdict { cause: RetransCause::Unexplained, indication: None, waited: 0 };
