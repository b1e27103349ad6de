//! What travels: a data packet on the forward path, an acknowledgement on the return path.

use std::fmt;
use tcpcast_link::Ecn;

/// A packet. Sequence and acknowledgement numbers count packets, from 1.
///
/// Two words: registers hand these over, where four fields would be in memory from the first call on
/// that is not inlined, and be read from there before they have got there.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Packet {
    /// The source and the connection.
    who: u64,
    /// The number and the label.
    what: u64,
}

impl Packet {
    /// A packet of a connection of a source.
    #[inline(always)]
    #[must_use]
    pub fn new(source: u32, connection: u32, number: u32, label: Label) -> Self {
        Self { who: two(source, connection), what: two(number, label.0) }
    }

    /// Who sent it: the index of the source, and of its receiver.
    #[inline(always)]
    #[must_use]
    pub fn source(&self) -> u32 {
        (self.who >> 32) as u32
    }

    /// Which of the source's connections it belongs to; what is left of an old one is ignored.
    #[inline(always)]
    #[must_use]
    pub fn connection(&self) -> u32 {
        self.who as u32
    }

    /// Sequence number of a data packet; of an acknowledgement, the next packet expected.
    #[inline(always)]
    #[must_use]
    pub fn number(&self) -> u32 {
        (self.what >> 32) as u32
    }

    /// What kind of packet it is, and which.
    #[inline(always)]
    #[must_use]
    pub fn label(&self) -> Label {
        Label(self.what as u32)
    }

    /// What kind of packet it is.
    #[inline(always)]
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.label().kind()
    }

    /// The same, of another source.
    #[inline(always)]
    #[must_use]
    pub fn of_source(self, source: u32) -> Self {
        Self { who: two(source, self.connection()), ..self }
    }

    /// The same, with another label.
    #[inline(always)]
    #[must_use]
    pub fn with_label(self, label: Label) -> Self {
        self.with(self.number(), label)
    }

    /// The same, with another number and another label.
    #[inline(always)]
    #[must_use]
    pub fn with(self, number: u32, label: Label) -> Self {
        Self { what: two(number, label.0), ..self }
    }
}

/// Both numbers in one.
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

/// What kind of packet one is, and by which serial number captures know it again (an IP
/// identification): that of a data packet counts those sent, modulo 2^16; that of an
/// acknowledgement is of the packet that made the receiver send it, 0 if a timer did. All are 0 if
/// nobody asks.
///
/// Where packets carry headers the number is a token, which has more bits: it counts the packets
/// that its end has sent, and finds the header of the packet. A packet shorter than others has its
/// length in place of the token's upper bits. There are two bits for ECN between the kind and the
/// number.
///
/// One number, kind before serial, so that a packet has no holes and is copied in two moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label(u32);

impl Label {
    /// A kind takes the two highest bits.
    const KIND_AT: u32 = 30;
    /// A queue may mark the packet; it has.
    const CAPABLE: u32 = 1 << 29;
    const MARKED: u32 = 1 << 28;
    /// Says that the packet is shorter than others.
    const SHORT: u32 = 1 << 27;
    /// The largest token, of which all bits are set.
    pub(crate) const TOKENS: u32 = Self::SHORT - 1;
    const SHORT_TOKEN_BITS: u32 = 11;
    /// The same, of a short packet.
    pub(crate) const SHORT_TOKENS: u32 = (1 << Self::SHORT_TOKEN_BITS) - 1;
    /// The longest that a short packet can be.
    const LONGEST: u32 = (1 << (27 - Self::SHORT_TOKEN_BITS)) - 1;

    /// A kind and a serial number.
    #[inline(always)]
    #[must_use]
    pub fn new(kind: Kind, serial: u16) -> Self {
        Self((kind as u32) << Self::KIND_AT | u32::from(serial))
    }

    /// A kind and a token, at most [`Label::TOKENS`].
    #[inline(always)]
    #[must_use]
    pub(crate) fn with_token(kind: Kind, token: u32) -> Self {
        debug_assert!(token <= Self::TOKENS);
        Self((kind as u32) << Self::KIND_AT | token)
    }

    /// The same for a packet of `bytes`, which is shorter than others; of the token the lower bits.
    #[must_use]
    pub(crate) fn of_short(kind: Kind, token: u32, bytes: u32) -> Self {
        if bytes > Self::LONGEST {
            return Self::with_token(kind, token);
        }
        let length = bytes << Self::SHORT_TOKEN_BITS;
        let token = token & Self::SHORT_TOKENS;
        Self((kind as u32) << Self::KIND_AT | Self::SHORT | length | token)
    }

    /// The bytes of a packet that is shorter than others.
    #[inline(always)]
    #[must_use]
    pub(crate) fn short_bytes(self) -> Option<u32> {
        let bytes = (self.0 >> Self::SHORT_TOKEN_BITS) & Self::LONGEST;
        (self.0 & Self::SHORT != 0).then_some(bytes)
    }

    /// The kind.
    #[inline(always)]
    #[must_use]
    pub fn kind(self) -> Kind {
        match self.0 >> Self::KIND_AT {
            0 => Kind::Data,
            1 => Kind::Retransmission,
            2 => Kind::Ack,
            _ => Kind::Loss,
        }
    }

    /// The serial number.
    #[inline(always)]
    #[must_use]
    pub fn serial(self) -> u16 {
        self.0 as u16
    }

    /// The same, of a packet that a queue may mark: RFC 3168, section 5.
    #[inline(always)]
    #[must_use]
    pub(crate) fn capable(self) -> Self {
        Self(self.0 | Self::CAPABLE)
    }

    /// The same, of a packet that a queue has marked.
    #[inline(always)]
    #[must_use]
    pub(crate) fn marked(self) -> Self {
        Self(self.0 | Self::MARKED)
    }

    /// The codepoint of a data packet.
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

    /// Whether it is that of a full packet with this token.
    #[inline(always)]
    #[must_use]
    pub(crate) fn has_token(self, token: u32) -> bool {
        self.0 & (Self::SHORT | Self::TOKENS) == token
    }

    /// How far its token is behind `first`.
    #[inline(always)]
    #[must_use]
    pub(crate) fn token_after(self, first: u32) -> u32 {
        let bits = if self.0 & Self::SHORT == 0 { Self::TOKENS } else { Self::SHORT_TOKENS };
        self.0.wrapping_sub(first) & bits
    }
}

/// What kind of packet it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Data sent for the first time.
    #[default]
    Data,
    /// Data retransmitted.
    Retransmission,
    /// An acknowledgement.
    Ack,
    /// Instantaneous loss feedback: a data packet was lost.
    Loss,
}

impl Kind {
    /// Whether it is data.
    #[must_use]
    pub fn is_data(self) -> bool {
        matches!(self, Self::Data | Self::Retransmission)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_packet_has_its_length_in_its_label() {
        let token = Label::TOKENS - 3;
        let full = Label::with_token(Kind::Retransmission, token);
        assert_eq!((full.kind(), full.short_bytes()), (Kind::Retransmission, None));
        assert_eq!(full.token_after(token - 7), 7);
        for bytes in [0, 40, 1499, Label::LONGEST] {
            let short = Label::of_short(Kind::Ack, token, bytes);
            assert_eq!((short.kind(), short.short_bytes()), (Kind::Ack, Some(bytes)));
            assert_eq!(short.token_after(token - 7), 7);
        }
        let long = Label::of_short(Kind::Data, token, Label::LONGEST + 1);
        assert_eq!(long, Label::with_token(Kind::Data, token));
        assert_eq!(Label::new(Kind::Data, u16::MAX).short_bytes(), None);
    }
}
