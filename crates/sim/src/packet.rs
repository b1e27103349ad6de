//! Packets: data on the forward path, acknowledgements on the return path.

use std::fmt;
use tcpcast_link::Ecn;

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
    pub fn new(source: u32, connection: u32, number: u32, label: Label) -> Self {
        Self { flow: two(source, connection), header: two(number, label.0) }
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
    pub fn label(&self) -> Label {
        Label(self.header as u32)
    }

    /// Kind of the packet.
    #[inline(always)]
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.label().kind()
    }

    /// Returns the packet with another source.
    #[inline(always)]
    #[must_use]
    pub fn with_source(self, source: u32) -> Self {
        Self { flow: two(source, self.connection()), ..self }
    }

    /// Returns the packet with another label.
    #[inline(always)]
    #[must_use]
    pub fn with_label(self, label: Label) -> Self {
        self.with(self.number(), label)
    }

    /// Returns the packet with another number and label.
    #[inline(always)]
    #[must_use]
    pub fn with(self, number: u32, label: Label) -> Self {
        Self { header: two(number, label.0), ..self }
    }
}

/// Packs two numbers into one.
#[inline(always)]
fn two(high: u32, low: u32) -> u64 {
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
/// Packets with headers have a token instead of a serial number. A token has more bits, counts the
/// packets that the sending end has sent, and locates the header of the packet. Short packets store
/// their length instead of the upper bits of the token. Two ECN bits are stored between the kind
/// and the token.
///
/// A single number, with the kind in the upper bits, so that a packet has no padding and is copied
/// in two moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label(u32);

impl Label {
    /// Position of the kind, which uses the two highest bits.
    const KIND_SHIFT: u32 = 30;
    /// ECN: the packet is ECN-capable; a queue has marked it.
    const CAPABLE: u32 = 1 << 29;
    const MARKED: u32 = 1 << 28;
    /// Flag of packets that are shorter than full ones.
    const SHORT: u32 = 1 << 27;
    /// Largest token: all bits are set.
    pub(crate) const TOKENS: u32 = Self::SHORT - 1;
    const SHORT_TOKEN_BITS: u32 = 11;
    /// Largest token of a short packet.
    pub(crate) const SHORT_TOKENS: u32 = (1 << Self::SHORT_TOKEN_BITS) - 1;
    /// Maximum length of a short packet.
    const MAX_SHORT_BYTES: u32 = (1 << (27 - Self::SHORT_TOKEN_BITS)) - 1;

    /// Creates a label with a serial number.
    #[inline(always)]
    #[must_use]
    pub fn new(kind: Kind, serial: u16) -> Self {
        Self((kind as u32) << Self::KIND_SHIFT | u32::from(serial))
    }

    /// Creates a label with a token of at most [`Label::TOKENS`].
    #[inline(always)]
    #[must_use]
    pub(crate) fn with_token(kind: Kind, token: u32) -> Self {
        debug_assert!(token <= Self::TOKENS);
        Self((kind as u32) << Self::KIND_SHIFT | token)
    }

    /// Creates the label of a short packet of `bytes` with the lower bits of a token.
    #[must_use]
    pub(crate) fn of_short(kind: Kind, token: u32, bytes: u32) -> Self {
        if bytes > Self::MAX_SHORT_BYTES {
            return Self::with_token(kind, token);
        }
        let length = bytes << Self::SHORT_TOKEN_BITS;
        let token = token & Self::SHORT_TOKENS;
        Self((kind as u32) << Self::KIND_SHIFT | Self::SHORT | length | token)
    }

    /// Length of a short packet in bytes; `None` for a full packet.
    #[inline(always)]
    #[must_use]
    pub(crate) fn short_bytes(self) -> Option<u32> {
        let bytes = (self.0 >> Self::SHORT_TOKEN_BITS) & Self::MAX_SHORT_BYTES;
        (self.0 & Self::SHORT != 0).then_some(bytes)
    }

    /// Kind of the packet.
    #[inline(always)]
    #[must_use]
    pub fn kind(self) -> Kind {
        match self.0 >> Self::KIND_SHIFT {
            0 => Kind::Data,
            1 => Kind::Retransmission,
            2 => Kind::Ack,
            _ => Kind::Loss,
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
    pub(crate) fn capable(self) -> Self {
        Self(self.0 | Self::CAPABLE)
    }

    /// Returns the label with the mark of a queue.
    #[inline(always)]
    #[must_use]
    pub(crate) fn marked(self) -> Self {
        Self(self.0 | Self::MARKED)
    }

    /// ECN codepoint of a data packet.
    #[inline(always)]
    #[must_use]
    pub fn ecn(self) -> Ecn {
        if self.0 & Self::MARKED != 0 {
            Ecn::Ce
        } else if self.0 & Self::CAPABLE != 0 {
            Ecn::Ect0
        } else {
            Ecn::NotEct
        }
    }

    /// Whether the label belongs to a full packet with this token.
    #[inline(always)]
    #[must_use]
    pub(crate) fn has_token(self, token: u32) -> bool {
        self.0 & (Self::SHORT | Self::TOKENS) == token
    }

    /// Distance of the token from `first`, modulo the range of tokens.
    #[inline(always)]
    #[must_use]
    pub(crate) fn token_after(self, first: u32) -> u32 {
        let bits = if self.0 & Self::SHORT == 0 { Self::TOKENS } else { Self::SHORT_TOKENS };
        self.0.wrapping_sub(first) & bits
    }
}

/// Kind of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
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

impl Kind {
    /// Whether the packet carries data.
    #[must_use]
    pub fn is_data(self) -> bool {
        matches!(self, Self::Data | Self::Retransmission)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_label_stores_length_and_lower_token_bits() {
        let token = Label::TOKENS - 3;
        let full = Label::with_token(Kind::Retransmission, token);
        assert_eq!((full.kind(), full.short_bytes()), (Kind::Retransmission, None));
        assert_eq!(full.token_after(token - 7), 7);
        for bytes in [0, 40, 1499, Label::MAX_SHORT_BYTES] {
            let short = Label::of_short(Kind::Ack, token, bytes);
            assert_eq!((short.kind(), short.short_bytes()), (Kind::Ack, Some(bytes)));
            assert_eq!(short.token_after(token - 7), 7);
        }
        let long = Label::of_short(Kind::Data, token, Label::MAX_SHORT_BYTES + 1);
        assert_eq!(long, Label::with_token(Kind::Data, token));
        assert_eq!(Label::new(Kind::Data, u16::MAX).short_bytes(), None);
    }
}
