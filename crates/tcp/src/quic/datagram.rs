//! Datagrams, their packets and frames, and lengths on the wire.

use crate::modern::SackBlock;
use tcpcast_link::Ecn;
use tcpcast_link::time::Nanos;

/// IPv4 and UDP headers.
pub(super) const UDP_HEADER_BYTES: u32 = 28;
/// Smallest maximum datagram, to which datagrams with Initial packets are padded: RFC 9000, section
/// 14.1.
pub(super) const MIN_DATAGRAM: u32 = 1200;
/// Connection identifiers of 8 bytes, as most implementations use them.
const CONNECTION_ID: u32 = 8;
/// Packet numbers of 2 bytes, which suffice for 2^15 packets in flight (RFC 9000, section 17.1), and
/// the tag of the AEAD (RFC 9001, section 5.3).
const NUMBER_AND_TAG: u32 = 2 + 16;
/// Short header: RFC 9000, section 17.3.1.
const SHORT_HEADER: u32 = 1 + CONNECTION_ID + NUMBER_AND_TAG;
/// Long header with a length of 2 bytes: RFC 9000, section 17.2.
const LONG_HEADER: u32 = 1 + 4 + 2 * (1 + CONNECTION_ID) + 2 + NUMBER_AND_TAG;
/// CRYPTO frame without data: type, offset and length.
pub(super) const CRYPTO_HEADER: u32 = 1 + 2 + 2;
/// STREAM frame without data: type, identifier, offset and length.
pub(super) const STREAM_HEADER: u32 = 1 + 1 + 4 + 2;
/// Bytes of a UDP payload with stream data, without the data.
pub(super) const STREAM_OVERHEAD: u32 = SHORT_HEADER + STREAM_HEADER;

/// Packet number space: RFC 9000, section 12.3. Packets with 0-RTT and 1-RTT keys share one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Space {
    /// Initial packets.
    Initial,
    /// Handshake packets.
    Handshake,
    /// 0-RTT and 1-RTT packets.
    #[default]
    Application,
}

impl Space {
    /// All spaces in the order of the handshake.
    pub const ALL: [Self; 3] = [Self::Initial, Self::Handshake, Self::Application];
}

/// Part of a stream of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// First byte.
    pub start: u64,
    /// Bytes.
    pub len: u32,
}

impl Chunk {
    /// Byte after the chunk.
    #[inline(always)]
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }
}

/// A packet with its frames.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct QuicPacket {
    /// Packet number space.
    pub space: Space,
    /// Packet number.
    pub number: u64,
    /// Whether 0-RTT keys protect the packet.
    pub zero_rtt: bool,
    /// ACK frame: acknowledged ranges in ascending order; none if empty.
    pub acked: Vec<SackBlock>,
    /// Bytes of the ACK frame.
    pub ack_bytes: u32,
    /// Delay of the acknowledgement of the largest number.
    pub ack_delay: Nanos,
    /// Packets with a congestion mark so far: ECN-CE count of the ACK frame.
    pub ce_count: u64,
    /// Data: of a STREAM frame with the keys of the application, otherwise of a CRYPTO frame.
    pub data: Option<Chunk>,
    /// MAX_STREAM_DATA frame.
    pub max_data: Option<u64>,
    /// HANDSHAKE_DONE frame.
    pub handshake_done: bool,
    /// PING frame.
    pub ping: bool,
}

impl Clone for QuicPacket {
    fn clone(&self) -> Self {
        let mut copy = Self::default();
        copy.clone_from(self);
        copy
    }

    /// Keeps the memory of the ranges.
    #[inline]
    fn clone_from(&mut self, other: &Self) {
        self.space = other.space;
        self.number = other.number;
        self.zero_rtt = other.zero_rtt;
        self.acked.clear();
        self.acked.extend_from_slice(&other.acked);
        self.ack_bytes = other.ack_bytes;
        self.ack_delay = other.ack_delay;
        self.ce_count = other.ce_count;
        self.data = other.data;
        self.max_data = other.max_data;
        self.handshake_done = other.handshake_done;
        self.ping = other.ping;
    }
}

impl QuicPacket {
    /// Makes this an empty packet, and keeps the memory of its ranges.
    #[inline]
    pub(super) fn reset(&mut self, space: Space, number: u64, zero_rtt: bool) {
        (self.space, self.number, self.zero_rtt) = (space, number, zero_rtt);
        self.acked.clear();
        self.ack_bytes = 0;
        (self.data, self.max_data) = (None, None);
        (self.handshake_done, self.ping) = (false, false);
    }

    /// Whether the packet must be acknowledged: RFC 9002, section 2.
    #[inline]
    #[must_use]
    pub fn is_ack_eliciting(&self) -> bool {
        self.data.is_some() || self.max_data.is_some() || self.handshake_done || self.ping
    }

    /// Bytes of the packet.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u32 {
        let mut bytes = self.header_bytes() + self.ack_bytes;
        if let Some(data) = self.data {
            let is_stream = self.space == Space::Application;
            bytes += data.len + if is_stream { STREAM_HEADER } else { CRYPTO_HEADER };
        }
        bytes += self.max_data.map_or(0, |limit| 2 + varint_bytes(limit));
        bytes + u32::from(self.handshake_done) + u32::from(self.ping)
    }

    /// Bytes of the header and of the tag.
    #[inline]
    fn header_bytes(&self) -> u32 {
        header_bytes(self.space, self.zero_rtt)
    }
}

/// Bytes of the header of a packet, and of its tag.
#[inline]
pub(super) fn header_bytes(space: Space, zero_rtt: bool) -> u32 {
    match space {
        // An empty token takes one byte.
        Space::Initial => LONG_HEADER + 1,
        Space::Application if !zero_rtt => SHORT_HEADER,
        Space::Handshake | Space::Application => LONG_HEADER,
    }
}

/// Bytes of a variable-length integer: RFC 9000, section 16.
#[inline]
fn varint_bytes(value: u64) -> u32 {
    match value {
        0..64 => 1,
        64..16_384 => 2,
        16_384..0x4000_0000 => 4,
        _ => 8,
    }
}

/// Bytes of an ACK frame with a delay of 2 bytes: RFC 9000, section 19.3. `older` are the bytes of
/// all ranges except the newest one.
#[inline]
pub(super) fn ack_frame_bytes(ranges: usize, newest: SackBlock, older: u32) -> u32 {
    let numbers = varint_bytes(newest.end - 1) + varint_bytes(ranges as u64 - 1);
    1 + 2 + numbers + varint_bytes(newest.end - newest.start - 1) + older
}

/// Bytes of the ranges of an ACK frame below the last one, with the gaps above them.
pub(super) fn older_ranges_bytes(ranges: &[SackBlock]) -> u32 {
    let bytes = |pair: &[SackBlock]| {
        let length = pair[0].end - pair[0].start;
        varint_bytes(length - 1) + varint_bytes(pair[1].start - pair[0].end - 1)
    };
    ranges.windows(2).map(bytes).sum()
}

/// A UDP datagram: one packet, except during the handshake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Datagram {
    /// First packet.
    pub first: QuicPacket,
    /// Packets coalesced with the first one.
    pub others: Vec<QuicPacket>,
    /// Bytes of the UDP payload, with padding.
    pub payload: u32,
    /// ECN codepoint of the IP header.
    pub ecn: Ecn,
}

impl Datagram {
    /// Packets in order.
    pub fn packets(&self) -> impl Iterator<Item = &QuicPacket> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Copies another datagram, and keeps the memory of ranges.
    #[inline]
    pub fn copy_from(&mut self, other: &Self) {
        self.first.clone_from(&other.first);
        self.others.clone_from(&other.others);
        (self.payload, self.ecn) = (other.payload, other.ecn);
    }

    /// Bytes of the IP packet.
    #[inline]
    #[must_use]
    pub fn ip_bytes(&self) -> u32 {
        self.payload + UDP_HEADER_BYTES
    }

    /// Bytes of stream data.
    #[inline]
    #[must_use]
    pub fn stream_bytes(&self) -> u32 {
        let streams = self.packets().filter(|packet| packet.space == Space::Application);
        streams.map(|packet| packet.data.map_or(0, |chunk| chunk.len)).sum()
    }

    /// Whether a packet must be acknowledged.
    #[must_use]
    pub fn is_ack_eliciting(&self) -> bool {
        self.packets().any(QuicPacket::is_ack_eliciting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_frames_follow_rfc_9000() {
        let packet =
            QuicPacket { data: Some(Chunk { start: 0, len: 1165 }), ..QuicPacket::default() };
        assert_eq!(packet.bytes(), 1200);
        assert_eq!(UDP_HEADER_BYTES + STREAM_OVERHEAD, 63);
        // Type, largest 99, delay, no more ranges, first range of 100 packets.
        let ack = |acked: &[SackBlock]| {
            ack_frame_bytes(acked.len(), acked[acked.len() - 1], older_ranges_bytes(acked))
        };
        assert_eq!(ack(&[SackBlock { start: 0, end: 100 }]), 1 + 2 + 2 + 1 + 2);
        let two = [SackBlock { start: 0, end: 80 }, SackBlock { start: 90, end: 100 }];
        assert_eq!(ack(&two), 1 + 2 + 2 + 1 + 1 + 1 + 2);
        let initial = QuicPacket {
            space: Space::Initial,
            data: Some(Chunk { start: 0, len: 300 }),
            ..QuicPacket::default()
        };
        assert_eq!(initial.bytes(), 45 + 1 + 5 + 300 - 2);
    }
}
