//! A stack on a path: how whole packets, counted from 1, are bytes of its connections, counted from 1.

use super::options::ModernTcp;
use super::packet_header::DataHeader;
use crate::packet::Kind;

/// A packet that was found by its first byte; the next one mostly is not far behind.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketCursor {
    byte: u64,
    number: u32,
}

impl Default for PacketCursor {
    fn default() -> Self {
        Self { byte: 1, number: 1 }
    }
}

impl PacketCursor {
    /// See [`ModernTcp::number`].
    #[inline(always)]
    pub(super) fn number_at(&mut self, byte: u64, tcp: &ModernTcp) -> u32 {
        if byte != self.byte {
            let ahead = byte.checked_sub(self.byte).and_then(|ahead| tcp.one_or_two(ahead));
            self.number = ahead.map_or_else(|| tcp.number(byte), |packets| self.number + packets);
            self.byte = byte;
        }
        debug_assert_eq!(self.number, tcp.number(byte));
        self.number
    }
}

/// A packet to send now.
#[derive(Clone, Copy, Debug)]
pub struct PacketOut {
    /// Its number.
    pub number: u32,
    /// New or retransmitted.
    pub kind: Kind,
    /// What it carries beside its number.
    pub header: DataHeader,
    /// Its length, where it is shorter than others.
    pub short: Option<u32>,
}

/// Packets to send now, which differ in their numbers and bytes alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunOut {
    /// The first one.
    pub first: PacketOut,
    /// How many there are.
    pub packets: u32,
    /// Whether the last one is pushed.
    pub push: bool,
    /// Whether nothing else is to be sent now.
    pub ends: bool,
}

impl PacketOut {
    /// The next one, of a run of full packets.
    #[inline(always)]
    pub(crate) fn advance(&mut self, mss: u32) {
        self.number += 1;
        self.header.advance(mss);
    }

    /// It is the last one, and pushed.
    #[inline(always)]
    pub(crate) fn push(&mut self) {
        self.header.push();
    }
}

#[cfg(test)]
mod tests {
    use super::super::handshake::Handshake;
    use super::super::stack::{Preset, Stack};
    use super::*;

    #[test]
    fn packets_are_found_by_their_bytes_in_any_order() {
        let stack = Stack { mss: 1000, ..Preset::LinuxCubic.stack() };
        let handshake = Handshake::None;
        let tcp = ModernTcp { stack, handshake, rtt: 0, syn_bytes: 0, closes: false };
        let mut cursor = PacketCursor::default();
        for byte in [1, 1001, 3001, 3501, 4501, 9_000_001, 1000, 1, 2000, 2001] {
            let whole = u32::try_from((byte - 1_u64).div_ceil(1000)).unwrap();
            assert_eq!(cursor.number_at(byte, &tcp), whole + 1, "{byte}");
        }
    }
}
