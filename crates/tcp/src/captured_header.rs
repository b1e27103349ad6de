//! Header fields that captures show.

use tcpcast_wire::TcpOptions;

/// Header fields of a packet that a capture shows in addition to its number and kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CapturedHeader {
    /// TCP options.
    pub options: TcpOptions,
    /// Sequence number and bytes of a data packet.
    pub data: Option<(u32, u32)>,
    /// Acknowledgement number.
    pub ack: Option<u32>,
    /// Flags other than ACK.
    pub flags: u8,
    /// ECN codepoint of the IP header (RFC 3168, section 5).
    pub codepoint: u8,
}
