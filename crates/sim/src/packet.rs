//! What travels: a data packet on its way out, or the acknowledgement on its way back.

/// A packet. Sequence and acknowledgement numbers count packets, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Packet {
    /// Who sent it: the index of the source, and of its receiver.
    pub source: u32,
    /// Which of the source's connections it belongs to; what is left of an old one is ignored.
    pub connection: u32,
    /// Sequence number of a data packet; of an acknowledgement, the next packet expected.
    pub number: u32,
    /// What kind of packet it is.
    pub kind: Kind,
    /// Which of the data packets sent it is, modulo 2^16, by which captures know it again (an IP identification);
    /// of an acknowledgement, the packet that made the receiver send it, 0 if a timer did.
    pub serial: u16,
}

/// What kind of packet it is.
///
/// As wide as half a number, so that a packet has no holes and is copied in two moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub enum Kind {
    /// Data sent for the first time.
    #[default]
    Data,
    /// Data sent again.
    Retransmission,
    /// An acknowledgement.
    Ack,
    /// The news of the loss of a data packet, where senders hear of that.
    Loss,
}

impl Kind {
    /// Whether it is data.
    #[must_use]
    pub fn is_data(self) -> bool {
        matches!(self, Self::Data | Self::Retransmission)
    }
}
