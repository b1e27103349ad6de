//! A captured TCP segment: header fields, options and lengths.

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

/// Flags of a TCP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// The sender has no more data.
    pub const FIN: u8 = 0x01;
    /// Opens the connection.
    pub const SYN: u8 = 0x02;
    /// Resets the connection.
    pub const RST: u8 = 0x04;
    /// The receiver should deliver the data immediately.
    pub const PSH: u8 = 0x08;
    /// The acknowledgement field is valid.
    pub const ACK: u8 = 0x10;
    /// ECN echo.
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced.
    pub const CWR: u8 = 0x80;

    /// Whether any of `bits` is set.
    #[inline(always)]
    #[must_use]
    pub fn contains_any(self, bits: u8) -> bool {
        self.0 & bits != 0
    }
}

impl Segment {
    /// The field ACE of accurate ECN: RFC 9768, section 3.2.2.
    pub(crate) fn ace(&self) -> u8 {
        u8::from(self.ae) << 2 | self.flags.0 >> 6
    }
}

/// Maximum number of SACK blocks that fit into the options.
pub const MAX_SACK_BLOCKS: usize = 4;

/// TCP options that the analysis uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size, from a SYN.
    pub mss: Option<u16>,
    /// Window scale, from a SYN; shifts above 14 count as 14 (RFC 7323).
    pub window_scale: Option<u8>,
    /// SACK permitted, from a SYN.
    pub sack_permitted: bool,
    /// SACK blocks, left and right edge; the first `sack_blocks` of them.
    pub sack: [(u32, u32); MAX_SACK_BLOCKS],
    /// Number of SACK blocks.
    pub sack_blocks: u8,
    /// Timestamps: value and echo reply.
    pub timestamps: Option<(u32, u32)>,
    /// Bytes received with CE, modulo 2^24: the option of accurate ECN (RFC 9768).
    pub ce_bytes: Option<u32>,
    /// True if the options are truncated or malformed, so that absent options may have been sent.
    pub cut: bool,
}

/// One TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Frame number in the capture, from 1.
    pub frame: u64,
    /// Capture time.
    pub time: Nanos,
    /// Sender.
    pub source: Endpoint,
    /// Receiver.
    pub destination: Endpoint,
    /// IPv4 identification; `None` for IPv6.
    pub ip_id: Option<u16>,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// ECN field of the IP header (two bits).
    pub ecn: u8,
    /// Length of the IP packet, including headers, from the IP header, bytes.
    pub ip_bytes: u32,
    /// TCP payload by the IP header, bytes.
    pub payload: u32,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number, valid if the ACK flag is set.
    pub acknowledgement: u32,
    /// Flags.
    pub flags: Flags,
    /// The flag AE of accurate ECN.
    pub ae: bool,
    /// Window as sent, without scaling.
    pub window: u16,
    /// Options.
    pub options: Options,
    /// True for the first fragment of a packet; other fragments have no TCP header.
    pub fragment: bool,
}
