//! Packet headers: bytes, timestamps, SACK blocks, ECN.

use super::receiver::{ArrivingData, EcnCodepoint};
use super::segment::{ArrivingAck, CumulativeAck, PacketToSend, SackBlock, SackBlocks, Timestamps};
use super::stack_options::ModernTcpConfig;
use crate::captured_header::CapturedHeader;
use tcpcast_link::Ecn as Codepoint;
use tcpcast_wire::{CWR, ECE, FIN, PSH, TcpOptions};

/// Returns the byte with lower bits `low` that is closest to `near`: windows are far below 2^31
/// bytes.
#[inline(always)]
fn expand_byte_near(low: u32, near: u64) -> u64 {
    near.wrapping_add_signed(i64::from(low.wrapping_sub(near as u32) as i32))
}

/// Header of a data packet, in addition to its number: five words.
#[derive(Clone, Copy, Debug, Default)]
pub struct DataHeader {
    stamps: Timestamps,
    /// Lower bits of the sequence number of the first byte; the next field is the number of bytes.
    start: u32,
    len: u32,
    marks: u32,
}

impl DataHeader {
    /// The header has timestamps.
    const HAS_TIMESTAMPS: u32 = 1;
    /// The packet ends the stream (FIN).
    const FIN: u32 = 1 << 1;
    /// The packet is ECN-capable; a queue has marked it.
    const ECN_CAPABLE: u32 = 1 << 2;
    const ECN_MARKED: u32 = 1 << 3;
    /// Congestion window reduced (CWR).
    const CWR: u32 = 1 << 4;
    /// The packet is shorter than a full one.
    const SHORT_FLAG: u32 = 1 << 5;
    /// The packet is pushed (PSH).
    const PSH: u32 = 1 << 6;

    /// Marks the placeholder.
    const PLACEHOLDER_FLAG: u32 = 1 << 31;

    /// Placeholder for the header of a packet no longer in flight.
    pub(crate) const PLACEHOLDER: Self = Self {
        stamps: Timestamps { value: 0, echo: 0 },
        start: 0,
        len: 0,
        marks: Self::PLACEHOLDER_FLAG,
    };

    /// Whether this is the placeholder.
    #[inline(always)]
    pub(crate) fn is_placeholder(&self) -> bool {
        self.has_mark(Self::PLACEHOLDER_FLAG)
    }

    /// Header of a SYN-ACK.
    pub(super) fn new_syn_ack(stamps: Timestamps, tcp: &ModernTcpConfig) -> Self {
        if tcp.stack.timestamps {
            Self { stamps, marks: Self::SHORT_FLAG | Self::HAS_TIMESTAMPS, ..Self::default() }
        } else {
            Self { marks: Self::SHORT_FLAG, ..Self::default() }
        }
    }

    /// Header of a sent packet; `stamps` are used if the stack has timestamps.
    #[inline(always)]
    pub(super) fn new(sent: &PacketToSend, stamps: Timestamps, tcp: &ModernTcpConfig) -> Self {
        let mark = |is_set: bool, mark: u32| if is_set { mark } else { 0 };
        let marks = mark(tcp.stack.timestamps, Self::HAS_TIMESTAMPS)
            | mark(sent.fin, Self::FIN)
            | mark(sent.ect, Self::ECN_CAPABLE)
            | mark(sent.cwr, Self::CWR)
            | mark(sent.push, Self::PSH)
            | mark(sent.len < tcp.stack.mss, Self::SHORT_FLAG);
        Self { stamps, start: sent.start as u32, len: sent.len, marks }
    }

    /// Advances the header to the next packet, `bytes` later.
    #[inline(always)]
    pub(super) fn advance_to_next_packet(&mut self, bytes: u32) {
        self.start = self.start.wrapping_add(bytes);
    }

    /// Sets PSH.
    #[inline(always)]
    pub(super) fn set_push_flag(&mut self) {
        self.marks |= Self::PSH;
    }

    #[inline(always)]
    fn has_mark(&self, mark: u32) -> bool {
        self.marks & mark != 0
    }

    #[inline(always)]
    pub(super) fn timestamps(&self) -> Option<Timestamps> {
        self.has_mark(Self::HAS_TIMESTAMPS).then_some(self.stamps)
    }

    /// Whether the packet ends the stream.
    #[inline(always)]
    pub(super) fn is_fin(&self) -> bool {
        self.has_mark(Self::FIN)
    }

    /// Converts the header for a receiver that expects byte `next`.
    #[inline(always)]
    pub(super) fn data_for_receiver(&self, next: u64) -> ArrivingData {
        ArrivingData {
            start: expand_byte_near(self.start, next),
            len: self.len,
            fin: self.is_fin(),
            ecn: self.ecn_codepoint(),
            cwr: self.has_mark(Self::CWR),
            push: self.has_mark(Self::PSH),
            timestamps: self.timestamps(),
        }
    }

    /// Whether the packet is ECN-capable: RFC 3168, section 6.1.
    #[inline(always)]
    #[must_use]
    pub fn is_ecn_capable(&self) -> bool {
        self.has_mark(Self::ECN_CAPABLE)
    }

    /// Whether the packet is shorter than a full one.
    #[inline(always)]
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.has_mark(Self::SHORT_FLAG)
    }

    /// Records on arrival whether the packet was marked.
    #[inline(always)]
    pub fn record_ecn_mark(&mut self, marked: bool) {
        if marked {
            self.marks |= Self::ECN_MARKED;
        }
    }

    /// Reads one word, to load its cache line.
    #[inline(always)]
    pub(crate) fn prefetch(&self) -> u64 {
        u64::from(self.start)
    }

    #[inline(always)]
    fn ecn_codepoint(&self) -> EcnCodepoint {
        if !self.is_ecn_capable() {
            EcnCodepoint::NotCapable
        } else if self.has_mark(Self::ECN_MARKED) {
            EcnCodepoint::Marked
        } else {
            EcnCodepoint::Capable
        }
    }

    /// Header as captures show it, with the ECN codepoint at the point of capture.
    #[must_use]
    pub fn captured_header(&self, codepoint: Codepoint) -> CapturedHeader {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        CapturedHeader {
            options: TcpOptions {
                timestamps: timestamp_pair(self.timestamps()),
                ..TcpOptions::default()
            },
            data: Some((self.start, self.len)),
            flags: flag(self.is_fin(), FIN)
                | flag(self.has_mark(Self::CWR), CWR)
                | flag(self.has_mark(Self::PSH), PSH),
            codepoint: codepoint as u8,
            ..CapturedHeader::default()
        }
    }
}

fn timestamp_pair(timestamps: Option<Timestamps>) -> Option<(u32, u32)> {
    timestamps.map(|stamps| (stamps.value, stamps.echo))
}

/// Header of an acknowledgement, in addition to the expected packet number.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckHeader {
    window: u64,
    timestamps: Option<Timestamps>,
    /// Lower bits of the acknowledgement number.
    ack: u32,
    /// Lower bits of the start and end of each SACK block; only the first `blocks` are valid.
    sacks: [(u32, u32); SackBlocks::MAX_BLOCKS],
    blocks: u8,
    ece: bool,
    /// The packet is a SYN.
    pub(super) syn: bool,
    /// Handshake messages that the client has sent so far, including this one.
    pub(super) messages: u8,
}

impl AckHeader {
    /// Sequence number of acknowledgements, which is constant: the receiver sends no data.
    pub(super) const ACK_SEQUENCE: u64 = 1;

    /// Empty header.
    pub(crate) const EMPTY: Self = Self {
        window: 0,
        timestamps: None,
        ack: 0,
        sacks: [(0, 0); SackBlocks::MAX_BLOCKS],
        blocks: 0,
        ece: false,
        syn: false,
        messages: 0,
    };

    /// Header of a SYN; only the first SYN offers ECN.
    pub(super) fn new_syn(value: u32, first: bool, tcp: &ModernTcpConfig) -> Self {
        let timestamps = tcp.stack.timestamps.then_some(Timestamps { value, echo: 0 });
        Self { timestamps, syn: true, ece: first && tcp.stack.ecn, ..Self::default() }
    }

    #[inline(always)]
    pub(super) fn timestamps(&self) -> Option<Timestamps> {
        self.timestamps
    }

    /// Becomes the header of an acknowledgement without SACK blocks and with timestamp `value`.
    #[inline(always)]
    pub(super) fn set_cumulative_ack(&mut self, ack: &CumulativeAck, value: u32, messages: u8) {
        self.window = ack.window;
        self.timestamps = ack.echo.map(|echo| Timestamps { value, echo });
        self.ack = ack.ack as u32;
        self.blocks = 0;
        self.ece = ack.ece;
        self.syn = false;
        self.messages = messages;
    }

    /// Adds SACK blocks; the header must have none.
    pub(super) fn add_sack_blocks(&mut self, blocks: &SackBlocks) {
        for (slot, block) in self.sacks.iter_mut().zip(blocks.as_slice()) {
            *slot = (block.start as u32, block.end as u32);
            self.blocks += 1;
        }
    }

    /// Whether the header has SACK blocks.
    #[inline(always)]
    pub(super) fn has_sack_blocks(&self) -> bool {
        self.blocks > 0
    }

    /// Converts the header without its SACK blocks, for a sender whose first unacknowledged byte is
    /// `una`.
    #[inline(always)]
    pub(super) fn cumulative_ack_part(&self, una: u64) -> CumulativeAck {
        CumulativeAck {
            ack: expand_byte_near(self.ack, una),
            window: self.window,
            seq: Self::ACK_SEQUENCE,
            echo: self.timestamps.map(|stamps| stamps.echo),
            ece: self.ece,
        }
    }

    /// Converts the header for a sender whose first unacknowledged byte is `una`.
    pub(super) fn ack_for_sender(&self, una: u64) -> ArrivingAck {
        ArrivingAck {
            ack: expand_byte_near(self.ack, una),
            window: self.window,
            seq: Self::ACK_SEQUENCE,
            carries_data: false,
            sacks: self.sack_blocks_near(una),
            timestamps: self.timestamps,
            ece: self.ece,
        }
    }

    fn sack_blocks_near(&self, una: u64) -> SackBlocks {
        let blocks = &self.sacks[..usize::from(self.blocks)];
        let block = |&(start, end): &(u32, u32)| SackBlock {
            start: expand_byte_near(start, una),
            end: expand_byte_near(end, una),
        };
        blocks.iter().map(block).collect()
    }

    /// Header as captures show it; sequence numbers start at 1.
    #[must_use]
    pub fn captured_header(&self) -> CapturedHeader {
        let timestamps = timestamp_pair(self.timestamps);
        let mut sacks = [(0, 0); SackBlocks::MAX_BLOCKS];
        let blocks = usize::from(self.blocks);
        sacks[..blocks].copy_from_slice(&self.sacks[..blocks]);
        CapturedHeader {
            options: TcpOptions { timestamps, sacks, blocks: self.blocks, ..TcpOptions::default() },
            ack: Some(self.ack),
            flags: if self.ece { ECE } else { 0 },
            ..CapturedHeader::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_near_restores_bytes_from_lower_bits() {
        let wraps = 1_u64 << 32;
        for near in [1, 5000, wraps - 1448, wraps + 1449, 7 * wraps] {
            for ahead in [-1448_i64, -1, 0, 1, 1448, 1 << 30] {
                let byte = near.saturating_add_signed(ahead);
                assert_eq!(expand_byte_near(byte as u32, near), byte);
            }
        }
    }
}
