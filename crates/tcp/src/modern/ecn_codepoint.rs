//! The ECN field of the IP header.

/// ECN codepoint of a packet: RFC 3168, section 5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnCodepoint {
    /// The sender does not use ECN.
    #[default]
    NotCapable,
    /// ECT(0).
    Capable,
    /// ECT(1): an L4S sender (RFC 9331, section 4.1).
    Scalable,
    /// Congestion experienced.
    Marked,
}
