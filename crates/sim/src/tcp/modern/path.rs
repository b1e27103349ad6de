//! A stack on a path: how whole packets, counted from 1, are bytes of its connections, counted from 1.

use super::carried::DataHeader;
use super::handshake::Handshake;
use super::options::StackOptions;
use super::stack::Stack;
use crate::clock::Nanos;
use crate::packet::Kind;
use serde::Deserialize;

/// A stack, and what the handshake of a connection over its path has told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "StackOptions")]
pub struct ModernTcp {
    /// The rules of both ends.
    pub stack: Stack,
    /// What comes before the data of a connection.
    pub handshake: Handshake,
    /// Where nothing does, the first round-trip sample. The network knows it.
    pub rtt: Nanos,
    /// Bytes of SYN-ACK with its headers. The network knows that, too.
    pub syn_bytes: u32,
    /// Whether the sender closes its connection behind a file. The network knows that, too.
    pub closes: bool,
}

/// Bytes of IPv4 and TCP headers, and of the timestamp option with what fills its words.
const HEADER_BYTES: u32 = 40;
const TIMESTAMP_BYTES: u32 = 12;

impl ModernTcp {
    /// The packet that `byte` is expected to begin, if all before were full but the last.
    #[inline(always)]
    pub(super) fn number(&self, byte: u64) -> u32 {
        (byte - 1).div_ceil(u64::from(self.stack.mss)) as u32 + 1
    }

    /// Whether so many bytes are one full packet or two, as mostly: a division takes long.
    #[inline(always)]
    fn one_or_two(&self, bytes: u64) -> Option<u32> {
        let mss = u64::from(self.stack.mss);
        if bytes == mss { Some(1) } else { (bytes == 2 * mss).then_some(2) }
    }

    pub(super) fn bytes(&self, packets: u32) -> u64 {
        u64::from(packets) * u64::from(self.stack.mss)
    }

    /// The length of a packet with so many bytes of data.
    pub(super) fn length(&self, data: u32) -> u32 {
        data + HEADER_BYTES + if self.stack.timestamps { TIMESTAMP_BYTES } else { 0 }
    }
}

/// A packet that was found by its first byte; the next one mostly is not far behind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    byte: u64,
    number: u32,
}

impl Default for Place {
    fn default() -> Self {
        Self { byte: 1, number: 1 }
    }
}

impl Place {
    /// See [`ModernTcp::number`].
    #[inline(always)]
    pub(super) fn find(&mut self, byte: u64, tcp: &ModernTcp) -> u32 {
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
    pub(crate) fn go_on(&mut self, mss: u32) {
        self.number += 1;
        self.header.go_on(mss);
    }

    /// It is the last one, and pushed.
    #[inline(always)]
    pub(crate) fn push(&mut self) {
        self.header.push();
    }
}

#[cfg(test)]
mod tests {
    use super::super::stack::Preset;
    use super::*;

    #[test]
    fn packets_are_found_by_their_bytes_in_any_order() {
        let stack = Stack { mss: 1000, ..Preset::LinuxCubic.stack() };
        let handshake = Handshake::None;
        let tcp = ModernTcp { stack, handshake, rtt: 0, syn_bytes: 0, closes: false };
        let mut place = Place::default();
        for byte in [1, 1001, 3001, 3501, 4501, 9_000_001, 1000, 1, 2000, 2001] {
            let whole = u32::try_from((byte - 1_u64).div_ceil(1000)).unwrap();
            assert_eq!(place.find(byte, &tcp), whole + 1, "{byte}");
        }
    }
}
