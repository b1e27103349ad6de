//! Packets as probes see them: data on the forward path, acknowledgements on the return path.

pub use tcpcast_tcp::{HEADER_BYTES, PacketKind, TIMESTAMP_BYTES};

/// A packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Packet {
    /// Index of the source and its receiver.
    pub source: u32,
    /// Connection of the source; packets of earlier connections are ignored.
    pub connection: u32,
    /// Sequence number of a data packet, or acknowledgement number: the next expected packet. Both
    /// count packets, starting at 1.
    pub number: u32,
    /// Kind of the packet.
    pub kind: PacketKind,
}
