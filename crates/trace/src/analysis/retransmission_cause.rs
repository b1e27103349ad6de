//! Causes of retransmissions and kinds of loss indications.

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

/// Kind of loss indication, as the papers count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndicationKind {
    /// Duplicate acknowledgements, SACK or RACK: one indication per recovery.
    Td,
    /// A sequence of timeouts of the same segment.
    To,
}
