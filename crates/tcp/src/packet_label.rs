//! Labels of packets, and lengths of headers.

use tcpcast_link::Ecn;

/// IPv4 and TCP headers without options.
pub const HEADER_BYTES: u32 = 40;
/// The timestamp option with its padding (RFC 7323, appendix A).
pub const TIMESTAMP_BYTES: u32 = 12;

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
pub struct PacketLabel(pub u32);

impl PacketLabel {
    /// Position of the kind, which uses the two highest bits.
    const KIND_SHIFT: u32 = 30;
    /// ECN: the packet is ECN-capable; a queue has marked it.
    const ECN_CAPABLE: u32 = 1 << 29;
    const ECN_MARKED: u32 = 1 << 28;
    /// Flag of packets that are shorter than full ones.
    const SHORT_FLAG: u32 = 1 << 27;
    /// Largest token: all bits are set.
    pub const TOKEN_MASK: u32 = Self::SHORT_FLAG - 1;
    const SHORT_TOKEN_BITS: u32 = 11;
    /// Largest token of a short packet.
    pub const SHORT_TOKEN_MASK: u32 = (1 << Self::SHORT_TOKEN_BITS) - 1;
    /// Maximum length of a short packet.
    const MAX_SHORT_BYTES: u32 = (1 << (27 - Self::SHORT_TOKEN_BITS)) - 1;

    /// Creates a label with a serial number.
    #[inline(always)]
    #[must_use]
    pub fn new(kind: PacketKind, serial: u16) -> Self {
        Self((kind as u32) << Self::KIND_SHIFT | u32::from(serial))
    }

    /// Creates a label with a token of at most [`PacketLabel::TOKEN_MASK`].
    #[inline(always)]
    #[must_use]
    pub fn with_token(kind: PacketKind, token: u32) -> Self {
        debug_assert!(token <= Self::TOKEN_MASK);
        Self((kind as u32) << Self::KIND_SHIFT | token)
    }

    /// Creates the label of a short packet of `bytes` with the lower bits of a token.
    #[must_use]
    pub fn for_short_packet(kind: PacketKind, token: u32, bytes: u32) -> Self {
        if bytes > Self::MAX_SHORT_BYTES {
            return Self::with_token(kind, token);
        }
        let length = bytes << Self::SHORT_TOKEN_BITS;
        let token = token & Self::SHORT_TOKEN_MASK;
        Self((kind as u32) << Self::KIND_SHIFT | Self::SHORT_FLAG | length | token)
    }

    /// Length of a short packet in bytes; `None` for a full packet.
    #[inline(always)]
    #[must_use]
    pub fn length_of_short_packet(self) -> Option<u32> {
        let bytes = (self.0 >> Self::SHORT_TOKEN_BITS) & Self::MAX_SHORT_BYTES;
        (self.0 & Self::SHORT_FLAG != 0).then_some(bytes)
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
    pub fn with_ecn_capable(self) -> Self {
        Self(self.0 | Self::ECN_CAPABLE)
    }

    /// Returns the label with the mark of a queue.
    #[inline(always)]
    #[must_use]
    pub fn with_ecn_mark(self) -> Self {
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

    /// Whether the label belongs to a full packet with this token.
    #[inline(always)]
    #[must_use]
    pub fn is_full_packet_with_token(self, token: u32) -> bool {
        self.0 & (Self::SHORT_FLAG | Self::TOKEN_MASK) == token
    }

    /// Distance of the token from `first`, modulo the range of tokens.
    #[inline(always)]
    #[must_use]
    pub fn token_distance_from(self, first: u32) -> u32 {
        let bits =
            if self.0 & Self::SHORT_FLAG == 0 { Self::TOKEN_MASK } else { Self::SHORT_TOKEN_MASK };
        self.0.wrapping_sub(first) & bits
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_label_stores_length_and_lower_token_bits() {
        let token = PacketLabel::TOKEN_MASK - 3;
        let full = PacketLabel::with_token(PacketKind::Retransmission, token);
        assert_eq!(
            (full.kind(), full.length_of_short_packet()),
            (PacketKind::Retransmission, None)
        );
        assert_eq!(full.token_distance_from(token - 7), 7);
        for bytes in [0, 40, 1499, PacketLabel::MAX_SHORT_BYTES] {
            let short = PacketLabel::for_short_packet(PacketKind::Ack, token, bytes);
            assert_eq!(
                (short.kind(), short.length_of_short_packet()),
                (PacketKind::Ack, Some(bytes))
            );
            assert_eq!(short.token_distance_from(token - 7), 7);
        }
        let long = PacketLabel::for_short_packet(
            PacketKind::Data,
            token,
            PacketLabel::MAX_SHORT_BYTES + 1,
        );
        assert_eq!(long, PacketLabel::with_token(PacketKind::Data, token));
        assert_eq!(PacketLabel::new(PacketKind::Data, u16::MAX).length_of_short_packet(), None);
    }
}
