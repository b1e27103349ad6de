//! Packets: data on the forward path, acknowledgements on the return path.

use std::fmt;
use tcpcast_link::Ecn;
pub use tcpcast_tcp::{HEADER_BYTES, PacketKind, TIMESTAMP_BYTES};

/// A packet. Sequence and acknowledgement numbers count packets, starting at 1.
///
/// The two words are passed in registers. Four fields would be passed in memory by calls that are
/// not inlined, which causes store-forwarding stalls.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Packet {
    /// Source index (upper half) and connection.
    flow: u64,
    /// Number (upper half) and label.
    header: u64,
}

impl Packet {
    /// Creates a packet.
    #[inline(always)]
    #[must_use]
    pub fn new(source: u32, connection: u32, number: u32, label: PacketLabel) -> Self {
        Self { flow: pack_two(source, connection), header: pack_two(number, label.0) }
    }

    /// Index of the source and its receiver.
    #[inline(always)]
    #[must_use]
    pub fn source(&self) -> u32 {
        (self.flow >> 32) as u32
    }

    /// Connection of the source; packets of earlier connections are ignored.
    #[inline(always)]
    #[must_use]
    pub fn connection(&self) -> u32 {
        self.flow as u32
    }

    /// Sequence number of a data packet, or acknowledgement number: the next expected packet.
    #[inline(always)]
    #[must_use]
    pub fn number(&self) -> u32 {
        (self.header >> 32) as u32
    }

    /// Kind and serial number or token of the packet.
    #[inline(always)]
    #[must_use]
    pub fn label(&self) -> PacketLabel {
        PacketLabel(self.header as u32)
    }

    /// Kind of the packet.
    #[inline(always)]
    #[must_use]
    pub fn kind(&self) -> PacketKind {
        self.label().kind()
    }

    /// Returns the packet with another source.
    #[inline(always)]
    #[must_use]
    pub fn with_source(self, source: u32) -> Self {
        Self { flow: pack_two(source, self.connection()), ..self }
    }

    /// Returns the packet with another label.
    #[inline(always)]
    #[must_use]
    pub fn with_label(self, label: PacketLabel) -> Self {
        self.with_number_and_label(self.number(), label)
    }

    /// Returns the packet with another number and label.
    #[inline(always)]
    #[must_use]
    pub fn with_number_and_label(self, number: u32, label: PacketLabel) -> Self {
        Self { header: pack_two(number, label.0), ..self }
    }
}

/// Packs two numbers into one.
#[inline(always)]
fn pack_two(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packet")
            .field("source", &self.source())
            .field("connection", &self.connection())
            .field("number", &self.number())
            .field("label", &self.label())
            .finish()
    }
}

/// Kind of a packet, and a serial number that identifies it in captures (the IP identification).
///
/// The serial number of a data packet counts transmissions modulo 2^16. An acknowledgement has the
/// serial number of the packet that triggered it, or 0 if a timer did. All serial numbers are 0 if
/// no probe needs them.
///
/// A single number, with the kind in the upper bits, so that a packet has no padding and is copied
/// in two moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketLabel(u32);

impl PacketLabel {
    /// Position of the kind, which uses the two highest bits.
    const KIND_SHIFT: u32 = 30;
    /// ECN: the packet is ECN-capable; a queue has marked it.
    const ECN_CAPABLE: u32 = 1 << 29;
    const ECN_MARKED: u32 = 1 << 28;

    /// Creates a label with a serial number.
    #[inline(always)]
    #[must_use]
    pub fn new(kind: PacketKind, serial: u16) -> Self {
        Self((kind as u32) << Self::KIND_SHIFT | u32::from(serial))
    }

    /// Kind of the packet.
    #[inline(always)]
    #[must_use]
    pub fn kind(self) -> PacketKind {
        match self.0 >> Self::KIND_SHIFT {
            0 => PacketKind::Data,
            1 => PacketKind::Retransmission,
            2 => PacketKind::Ack,
            _ => PacketKind::Loss,
        }
    }

    /// Serial number of the packet.
    #[inline(always)]
    #[must_use]
    pub fn serial(self) -> u16 {
        self.0 as u16
    }

    /// Returns the label with the ECN-capable bit (RFC 3168, section 5).
    #[inline(always)]
    #[must_use]
    pub(crate) fn with_ecn_capable(self) -> Self {
        Self(self.0 | Self::ECN_CAPABLE)
    }

    /// Returns the label with the mark of a queue.
    #[inline(always)]
    #[must_use]
    pub(crate) fn with_ecn_mark(self) -> Self {
        Self(self.0 | Self::ECN_MARKED)
    }

    /// ECN codepoint of a data packet.
    #[inline(always)]
    #[must_use]
    pub fn ecn(self) -> Ecn {
        if self.0 & Self::ECN_MARKED != 0 {
            Ecn::Ce
        } else if self.0 & Self::ECN_CAPABLE != 0 {
            Ecn::Ect0
        } else {
            Ecn::NotEct
        }
    }
}
