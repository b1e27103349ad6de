//! Kinds of packets, and lengths of headers.

/// IPv4 and TCP headers without options.
pub const HEADER_BYTES: u32 = 40;
/// The timestamp option with its padding (RFC 7323, appendix A).
pub const TIMESTAMP_BYTES: u32 = 12;

/// Kind of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacketKind {
    /// First transmission of data.
    #[default]
    Data,
    /// Retransmitted data.
    Retransmission,
    /// An acknowledgement.
    Ack,
    /// Instantaneous loss feedback: a data packet was lost.
    Loss,
}

impl PacketKind {
    /// Whether the packet carries data.
    #[must_use]
    pub fn is_data(self) -> bool {
        matches!(self, Self::Data | Self::Retransmission)
    }
}
