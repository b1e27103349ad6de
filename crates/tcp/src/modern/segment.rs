//! Packets, acknowledgements and SACK blocks exchanged by the two ends.

use super::accurate_ecn::AccEcnOption;
use tcpcast_link::time::Nanos;

/// Tick of the timestamp option's clock: 1 ms.
pub const TIMESTAMP_TICK: Nanos = 1_000_000;

/// Bytes that the receiver holds above its cumulative acknowledgement: RFC 2018, section 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First byte.
    pub start: u64,
    /// Byte after the last one.
    pub end: u64,
}

impl SackBlock {
    /// Whether `other` lies completely in this block.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// List of SACK blocks, limited by the space for options.
#[derive(Clone, Copy, Debug, Default)]
pub struct SackBlocks {
    /// The blocks from `len` on have no meaning.
    blocks: [SackBlock; Self::MAX_BLOCKS],
    len: u8,
}

impl PartialEq for SackBlocks {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for SackBlocks {}

impl SackBlocks {
    /// Maximum number of blocks in 40 bytes of options: RFC 2018, section 3.
    pub const MAX_BLOCKS: usize = 4;

    /// Appends a block unless the list is full.
    pub fn push(&mut self, block: SackBlock) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.len)) {
            *slot = block;
            self.len += 1;
        }
    }

    /// Removes all blocks.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Replaces the blocks by those of another list.
    #[inline(always)]
    pub fn copy_from(&mut self, other: &Self) {
        self.len = other.len;
        if other.len > 0 {
            self.blocks = other.blocks;
        }
    }

    /// Blocks in wire order.
    #[inline(always)]
    #[must_use]
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.len)]
    }

    /// First block.
    #[inline(always)]
    pub fn first_mut(&mut self) -> Option<&mut SackBlock> {
        self.blocks[..usize::from(self.len)].first_mut()
    }

    /// Whether the list is empty.
    #[inline(always)]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl FromIterator<SackBlock> for SackBlocks {
    fn from_iter<I: IntoIterator<Item = SackBlock>>(blocks: I) -> Self {
        let mut all = Self::default();
        blocks.into_iter().for_each(|block| all.push(block));
        all
    }
}

/// The timestamp option, RFC 7323, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// Time of sending.
    pub value: u32,
    /// Most recent timestamp received from the other end.
    pub echo: u32,
}

/// Timestamp of a packet sent at `now`.
#[inline(always)]
#[must_use]
pub fn timestamp_at(now: Nanos) -> u32 {
    (now / TIMESTAMP_TICK) as u32
}

/// An acknowledgement that arrives at the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrivingAck {
    /// Next byte that the receiver expects.
    pub ack: u64,
    /// Receive window, in bytes.
    pub window: u64,
    /// Sequence number of the packet that carries the acknowledgement. If two packets have the same
    /// `ack`, the later one determines the window.
    pub seq: u64,
    /// Whether the packet carries data, so it is not a duplicate acknowledgement.
    pub carries_data: bool,
    /// SACK blocks. A first block below `ack` or within the second block reports a duplicate: RFC
    /// 2883.
    pub sacks: SackBlocks,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// ECN echo (RFC 3168, section 6.1), or accurate ECN that may report marks.
    pub ece: bool,
    /// ACE field of accurate ECN.
    pub ace: u8,
    /// Option of accurate ECN.
    pub accurate_ecn: Option<AccEcnOption>,
}

/// An acknowledgement without SACK blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CumulativeAck {
    /// Next byte that the receiver expects.
    pub ack: u64,
    /// Receive window, in bytes.
    pub window: u64,
    /// Sequence number of the packet: see [`ArrivingAck::seq`].
    pub seq: u64,
    /// Echoed timestamp.
    pub echo: Option<u32>,
    /// ECN echo.
    pub ece: bool,
}

impl ArrivingAck {
    /// Returns the acknowledgement without its SACK blocks.
    #[inline(always)]
    #[must_use]
    pub fn cumulative_ack_part(&self) -> CumulativeAck {
        let Self { ack, window, seq, timestamps, ece, .. } = *self;
        CumulativeAck { ack, window, seq, echo: timestamps.map(|stamps| stamps.echo), ece }
    }
}

/// An acknowledgement to send now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutgoingAck {
    /// Next byte expected.
    pub ack: u64,
    /// Receive window, in bytes.
    pub window: u64,
    /// SACK blocks.
    pub sacks: SackBlocks,
    /// Echoed timestamp.
    pub echo: Option<u32>,
    /// ECN echo.
    pub ece: bool,
}

/// Reason for sending a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendReason {
    /// First transmission of data.
    New,
    /// Retransmission of data.
    Retransmission,
    /// No data: probes a closed window (RFC 9293, section 3.8.6.1).
    WindowProbe,
}

/// A packet to send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketToSend {
    /// Packet number, from 0 in the order of bytes; retransmissions keep the original number.
    pub number: u32,
    /// First byte.
    pub start: u64,
    /// Bytes of data.
    pub len: u32,
    /// Reason for sending.
    pub sending: SendReason,
    /// Whether the packet ends the stream.
    pub fin: bool,
    /// Whether the packet is ECN-capable.
    pub ect: bool,
    /// Congestion window reduced: RFC 3168, section 6.1.2.
    pub cwr: bool,
    /// Push: RFC 9293, section 3.9.1.
    pub push: bool,
}

impl PacketToSend {
    /// Sequence number after the packet; FIN occupies one.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.len) + u64::from(self.fin)
    }
}
