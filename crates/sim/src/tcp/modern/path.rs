//! A stack on a path: how whole packets, counted from 1, are bytes of its connections, counted from 1.

use super::carried::DataHeader;
use super::handshake::Handshake;
use super::stack::Stack;
use crate::clock::Nanos;
use crate::packet::Kind;

/// A stack, and what the handshake of a connection over its path has told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

    pub(super) fn bytes(&self, packets: u32) -> u64 {
        u64::from(packets) * u64::from(self.stack.mss)
    }

    /// The length of a packet with so many bytes of data.
    pub(super) fn length(&self, data: u32) -> u32 {
        data + HEADER_BYTES + if self.stack.timestamps { TIMESTAMP_BYTES } else { 0 }
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
