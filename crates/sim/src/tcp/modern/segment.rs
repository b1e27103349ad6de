//! What the two ends of a connection say to each other: packets, acknowledgements, SACK blocks.

use crate::clock::Nanos;

/// The clock of the timestamp option ticks every millisecond.
pub const TIMESTAMP_TICK: Nanos = 1_000_000;

/// Bytes that the receiver holds beyond its acknowledgement: RFC 2018, section 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// The first byte of the block.
    pub start: u64,
    /// The byte after its last.
    pub end: u64,
}

impl SackBlock {
    /// Whether all of `other` lies in this block.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// As many blocks as the options of an acknowledgement have room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [SackBlock; Self::MAX_BLOCKS],
    len: u8,
}

impl SackBlocks {
    /// The most blocks in 40 bytes of options: RFC 2018, section 3.
    pub const MAX_BLOCKS: usize = 4;

    /// Appends a block where there is room for one.
    pub fn push(&mut self, block: SackBlock) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.len)) {
            *slot = block;
            self.len += 1;
        }
    }

    /// The blocks in the order in which they are on the wire.
    #[inline(always)]
    #[must_use]
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.len)]
    }

    /// The first of them.
    #[inline(always)]
    pub fn first_mut(&mut self) -> Option<&mut SackBlock> {
        self.blocks[..usize::from(self.len)].first_mut()
    }

    /// Whether there is none.
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
    /// When the packet was sent.
    pub value: u32,
    /// The newest stamp that its sender has from the other end.
    pub echo: u32,
}

/// The stamp of a packet that is sent at `now`.
#[inline(always)]
#[must_use]
pub fn stamp(now: Nanos) -> u32 {
    (now / TIMESTAMP_TICK) as u32
}

/// What an arriving acknowledgement says to the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// The next byte that the receiver expects.
    pub ack: u64,
    /// How many bytes beyond that it takes.
    pub window: u64,
    /// The sequence number of the packet that carries the acknowledgement: of two that
    /// acknowledge the same, the one that was sent later says what the window is.
    pub seq: u64,
    /// Whether that packet has data: then it is no duplicate acknowledgement.
    pub carries_data: bool,
    /// What else the receiver holds; a first block below `ack` or within the second is a
    /// duplicate: RFC 2883.
    pub sacks: SackBlocks,
    /// The stamps it carries.
    pub timestamps: Option<Timestamps>,
    /// ECN echo: RFC 3168, section 6.1.
    pub ece: bool,
}

/// An acknowledgement but for what is held beyond it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cumulative {
    /// The next byte that the receiver expects.
    pub ack: u64,
    /// How many bytes beyond that it takes.
    pub window: u64,
    /// The sequence number of the packet that carries it: see [`Ack::seq`].
    pub seq: u64,
    /// The stamp that it echoes.
    pub echo: Option<u32>,
    /// ECN echo.
    pub ece: bool,
}

impl Ack {
    /// It without its blocks.
    #[inline(always)]
    #[must_use]
    pub fn cumulative(&self) -> Cumulative {
        let Self { ack, window, seq, timestamps, ece, .. } = *self;
        Cumulative { ack, window, seq, echo: timestamps.map(|stamps| stamps.echo), ece }
    }
}

/// An acknowledgement to send now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outgoing {
    /// The next byte expected.
    pub ack: u64,
    /// How many bytes beyond that are taken.
    pub window: u64,
    /// What else is held.
    pub sacks: SackBlocks,
    /// The stamp that it echoes.
    pub echo: Option<u32>,
    /// ECN echo.
    pub ece: bool,
}

impl Outgoing {
    /// It without its blocks.
    pub(super) fn cumulative(&self) -> Cumulative {
        let Self { ack, window, echo, ece, .. } = *self;
        Cumulative { ack, window, seq: 0, echo, ece }
    }
}

/// Why a packet is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// Data for the first time.
    New,
    /// Data that was sent before.
    Retransmission,
    /// No data: asks a closed window whether it is still closed (RFC 9293, section 3.8.6.1).
    WindowProbe,
}

/// A packet to send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Its number, from 0 in the order of the bytes; a retransmission has that of the original.
    pub number: u32,
    /// Its first byte.
    pub start: u64,
    /// Bytes of data.
    pub len: u32,
    /// Why it is sent.
    pub sending: Sending,
    /// Whether the stream ends with it.
    pub fin: bool,
    /// Whether it is ECN-capable.
    pub ect: bool,
    /// Congestion window reduced: RFC 3168, section 6.1.2.
    pub cwr: bool,
    /// The receiver is to hand on what it has: RFC 9293, section 3.9.1.
    pub push: bool,
}

impl Transmit {
    /// The sequence number after the packet; FIN counts for one.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.len) + u64::from(self.fin)
    }
}
