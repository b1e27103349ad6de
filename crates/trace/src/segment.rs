//! A TCP segment as it was captured: the fixed header, what is left of the options, and lengths.

use std::net::IpAddr;

/// Nanoseconds since 1970 in UTC.
pub type Nanos = u64;

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    /// IPv4 or IPv6 address.
    pub address: IpAddr,
    /// TCP port.
    pub port: u16,
}

/// The flags of a TCP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// The sender has nothing more to send.
    pub const FIN: u8 = 0x01;
    /// The connection begins.
    pub const SYN: u8 = 0x02;
    /// The connection is cut.
    pub const RST: u8 = 0x04;
    /// The receiver should deliver at once.
    pub const PSH: u8 = 0x08;
    /// The acknowledgement field counts.
    pub const ACK: u8 = 0x10;
    /// ECN echo.
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced.
    pub const CWR: u8 = 0x80;

    /// Whether any of `bits` is set.
    #[inline(always)]
    #[must_use]
    pub fn any(self, bits: u8) -> bool {
        self.0 & bits != 0
    }
}

/// The most SACK blocks that fit into the options.
pub const MAX_SACK_BLOCKS: usize = 4;

/// The TCP options that matter here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size, of a SYN.
    pub mss: Option<u16>,
    /// Window scale, of a SYN; larger shifts than 14 are taken for 14 (RFC 7323).
    pub window_scale: Option<u8>,
    /// SACK permitted, of a SYN.
    pub sack_permitted: bool,
    /// SACK blocks, left and right edge; the first `sack_blocks` of them.
    pub sack: [(u32, u32); MAX_SACK_BLOCKS],
    /// How many SACK blocks there are.
    pub sack_blocks: u8,
    /// Timestamps: value and echo reply.
    pub timestamps: Option<(u32, u32)>,
    /// Options are cut by the capture, or malformed: what is missing is not known to be absent.
    pub cut: bool,
}

/// One TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Number of its frame in the capture, from 1.
    pub frame: u64,
    /// When it was captured.
    pub time: Nanos,
    /// Who sent it.
    pub source: Endpoint,
    /// To whom.
    pub destination: Endpoint,
    /// IPv4 identification; `None` for IPv6.
    pub ip_id: Option<u16>,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// The two ECN bits of the IP header.
    pub ecn: u8,
    /// Bytes of the IP packet, headers included, as the IP header says, however little was captured.
    pub ip_bytes: u32,
    /// Bytes of TCP payload, likewise.
    pub payload: u32,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number; it counts if the flag is set.
    pub acknowledgement: u32,
    /// Flags.
    pub flags: Flags,
    /// Window as sent, without its scale.
    pub window: u16,
    /// Options.
    pub options: Options,
    /// It is the first fragment of a fragmented packet; the others carry no TCP header.
    pub fragment: bool,
}
