//! Segments that connections exchange.

use super::receiver::EcnCodepoint;
use super::segment::{SackBlocks, Timestamps};
use crate::packet_kind::{HEADER_BYTES, TIMESTAMP_BYTES};

/// SACK option with padding, without its blocks, and one block (RFC 2018, section 3).
const SACK_OPTION_BYTES: u32 = 4;
const SACK_BLOCK_BYTES: u32 = 8;

/// Flags of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct SegmentFlags {
    pub syn: bool,
    pub fin: bool,
    pub rst: bool,
    pub ack: bool,
    pub ece: bool,
    pub cwr: bool,
    pub psh: bool,
}

/// Options of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentOptions {
    /// Maximum segment size; only in SYN.
    pub mss: Option<u32>,
    /// Window scale; only in SYN.
    pub window_scale: Option<u8>,
    /// SACK permitted; only in SYN.
    pub sack_permitted: bool,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// SACK blocks.
    pub sacks: SackBlocks,
}

/// A segment on the wire. Sequence numbers begin with 0 for SYN in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number.
    pub seq: u64,
    /// Bytes of data.
    pub len: u32,
    /// Acknowledgement number.
    pub ack: u64,
    /// Window field, not scaled. Simulated segments hold windows of any size.
    pub window: u64,
    /// Flags.
    pub flags: SegmentFlags,
    /// ECN codepoint of the IP header.
    pub ecn: EcnCodepoint,
    /// Messages that a simulated application has sent so far to open its session, without bytes.
    pub messages: u8,
    /// Options.
    pub options: SegmentOptions,
}

impl Segment {
    /// Bytes of an acknowledgement's headers, with timestamps and SACK blocks.
    #[must_use]
    pub fn ack_bytes(&self) -> u32 {
        let stamps = if self.options.timestamps.is_some() { TIMESTAMP_BYTES } else { 0 };
        let blocks = self.options.sacks.as_slice().len() as u32;
        let sacks = if blocks > 0 { SACK_OPTION_BYTES + SACK_BLOCK_BYTES * blocks } else { 0 };
        HEADER_BYTES + stamps + sacks
    }
}

#[cfg(test)]
mod tests {
    use super::super::segment::SackBlock;
    use super::*;

    #[test]
    fn length_includes_options() {
        let stamped = SegmentOptions {
            timestamps: Some(Timestamps { value: 1, echo: 2 }),
            ..SegmentOptions::default()
        };
        let sacks = [SackBlock::default(); 3].into_iter().collect();
        let bytes = |options| Segment { options, ..Segment::default() }.ack_bytes();
        assert_eq!(bytes(SegmentOptions::default()), 40);
        assert_eq!(bytes(stamped), 52);
        assert_eq!(bytes(SegmentOptions { sacks, ..stamped }), 80);
    }
}
