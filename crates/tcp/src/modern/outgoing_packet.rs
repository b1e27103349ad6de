//! Packets to send, and the mapping from bytes to packet numbers. Bytes and
//! packet numbers count from 1.

use super::stack_options::ModernTcpConfig;
use super::wire_segment::Segment;
use crate::packet_kind::PacketKind;

/// Position in the stream: a byte and its packet number. The next lookup is usually close.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketNumberCursor {
    byte: u64,
    number: u32,
}

impl Default for PacketNumberCursor {
    fn default() -> Self {
        Self { byte: 1, number: 1 }
    }
}

impl PacketNumberCursor {
    /// See [`ModernTcpConfig::packet_number_of_byte`].
    #[inline(always)]
    pub(super) fn packet_number_of_byte(&mut self, byte: u64, tcp: &ModernTcpConfig) -> u32 {
        if byte != self.byte {
            let ahead =
                byte.checked_sub(self.byte).and_then(|ahead| tcp.packets_if_one_or_two(ahead));
            self.number = ahead
                .map_or_else(|| tcp.packet_number_of_byte(byte), |packets| self.number + packets);
            self.byte = byte;
        }
        debug_assert_eq!(self.number, tcp.packet_number_of_byte(byte));
        self.number
    }
}

/// A packet to send now.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingPacket<'a> {
    /// Packet number.
    pub number: u32,
    /// New or retransmitted.
    pub kind: PacketKind,
    /// Packet length if the packet is shorter than a full one.
    pub short: Option<u32>,
    /// Segment of a modern end; empty for others.
    pub segment: &'a Segment,
}

#[cfg(test)]
mod tests {
    use super::super::handshake::HandshakeKind;
    use super::super::presets::Preset;
    use super::super::stack::Stack;
    use super::*;

    #[test]
    fn cursor_finds_packet_numbers_in_any_order() {
        let stack = Stack { mss: 1000, ..Preset::LinuxCubic.stack() };
        let handshake = HandshakeKind::None;
        let tcp = ModernTcpConfig { stack, handshake, rtt: 0, syn_bytes: 0, closes: false };
        let mut cursor = PacketNumberCursor::default();
        for byte in [1, 1001, 3001, 3501, 4501, 9_000_001, 1000, 1, 2000, 2001] {
            let full = u32::try_from((byte - 1_u64).div_ceil(1000)).unwrap();
            assert_eq!(cursor.packet_number_of_byte(byte, &tcp), full + 1, "{byte}");
        }
    }
}
