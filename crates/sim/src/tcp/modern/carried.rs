//! What packets carry beside their numbers: bytes, stamps, SACK blocks, ECN.

use super::path::ModernTcp;
use super::receiver::{Data, Ecn};
use super::segment::{Ack, Cumulative, SackBlock, SackBlocks, Timestamps, Transmit};
use crate::probe::CapturedHeader;
use tcpcast_link::Ecn as Codepoint;
use tcpcast_wire::{CWR, ECE, FIN, Options, PSH};

/// The byte whose lower bits are `low` and that is next to `near`: windows are far below 2^31 bytes.
#[inline(always)]
fn byte_near(low: u32, near: u64) -> u64 {
    near.wrapping_add_signed(i64::from(low.wrapping_sub(near as u32) as i32))
}

/// What a data packet carries beside its number: five words, which are copied at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct DataHeader {
    stamps: Timestamps,
    /// The lower bits of its first byte, and how many bytes there are.
    start: u32,
    len: u32,
    marks: u32,
}

impl DataHeader {
    /// It has stamps.
    const STAMPED: u32 = 1;
    /// It ends the stream.
    const LAST: u32 = 1 << 1;
    /// A queue may mark the packet, and one on its way has.
    const CAPABLE: u32 = 1 << 2;
    const MARKED: u32 = 1 << 3;
    /// The window was reduced.
    const REDUCED: u32 = 1 << 4;
    /// It is shorter than others.
    const SHORT: u32 = 1 << 5;
    /// The receiver is to hand on what it has.
    const PUSHED: u32 = 1 << 6;

    /// No packet has it.
    const NOTHING: u32 = 1 << 31;

    /// That of a packet which is on its way no more.
    pub(in crate::tcp) const GONE: Self =
        Self { stamps: Timestamps { value: 0, echo: 0 }, start: 0, len: 0, marks: Self::NOTHING };

    /// Whether it is that.
    #[inline(always)]
    pub(in crate::tcp) fn is_gone(&self) -> bool {
        self.has(Self::NOTHING)
    }

    /// That of SYN-ACK.
    pub(super) fn of_syn_ack(stamps: Timestamps, tcp: &ModernTcp) -> Self {
        if tcp.stack.timestamps {
            Self { stamps, marks: Self::SHORT | Self::STAMPED, ..Self::default() }
        } else {
            Self { marks: Self::SHORT, ..Self::default() }
        }
    }

    /// That of a packet that is sent; `stamps` count where the stack has them.
    #[inline(always)]
    pub(super) fn of(sent: &Transmit, stamps: Timestamps, tcp: &ModernTcp) -> Self {
        let mark = |is_set: bool, mark: u32| if is_set { mark } else { 0 };
        let marks = mark(tcp.stack.timestamps, Self::STAMPED)
            | mark(sent.fin, Self::LAST)
            | mark(sent.ect, Self::CAPABLE)
            | mark(sent.cwr, Self::REDUCED)
            | mark(sent.push, Self::PUSHED)
            | mark(sent.len < tcp.stack.mss, Self::SHORT);
        Self { stamps, start: sent.start as u32, len: sent.len, marks }
    }

    /// That of the packet behind one of so many bytes.
    #[inline(always)]
    pub(super) fn go_on(&mut self, bytes: u32) {
        self.start = self.start.wrapping_add(bytes);
    }

    /// It is pushed.
    #[inline(always)]
    pub(super) fn push(&mut self) {
        self.marks |= Self::PUSHED;
    }

    #[inline(always)]
    fn has(&self, mark: u32) -> bool {
        self.marks & mark != 0
    }

    /// Its stamps.
    #[inline(always)]
    pub(super) fn timestamps(&self) -> Option<Timestamps> {
        self.has(Self::STAMPED).then_some(self.stamps)
    }

    /// Whether it ends the stream.
    #[inline(always)]
    pub(super) fn is_fin(&self) -> bool {
        self.has(Self::LAST)
    }

    /// The packet for a receiver that expects byte `next`.
    #[inline(always)]
    pub(super) fn data(&self, next: u64) -> Data {
        Data {
            start: byte_near(self.start, next),
            len: self.len,
            fin: self.is_fin(),
            ecn: self.ecn(),
            cwr: self.has(Self::REDUCED),
            push: self.has(Self::PUSHED),
            timestamps: self.timestamps(),
        }
    }

    /// Whether a queue may mark the packet: RFC 3168, section 6.1.
    #[inline(always)]
    #[must_use]
    pub fn is_capable(&self) -> bool {
        self.has(Self::CAPABLE)
    }

    /// Whether it is shorter than others.
    #[inline(always)]
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.has(Self::SHORT)
    }

    /// Its packet arrives, marked or not.
    #[inline(always)]
    pub fn arrive(&mut self, marked: bool) {
        if marked {
            self.marks |= Self::MARKED;
        }
    }

    /// A word of it.
    #[inline(always)]
    pub(crate) fn fetch(&self) -> u64 {
        u64::from(self.start)
    }

    #[inline(always)]
    fn ecn(&self) -> Ecn {
        if !self.is_capable() {
            Ecn::NotCapable
        } else if self.has(Self::MARKED) {
            Ecn::Marked
        } else {
            Ecn::Capable
        }
    }

    /// As captures have it, with the codepoint that it has where it is captured.
    #[must_use]
    pub fn shown(&self, codepoint: Codepoint) -> CapturedHeader {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        CapturedHeader {
            options: Options { timestamps: stamps(self.timestamps()), ..Options::default() },
            data: Some((self.start, self.len)),
            flags: flag(self.is_fin(), FIN)
                | flag(self.has(Self::REDUCED), CWR)
                | flag(self.has(Self::PUSHED), PSH),
            codepoint: codepoint as u8,
            ..CapturedHeader::default()
        }
    }
}

fn stamps(timestamps: Option<Timestamps>) -> Option<(u32, u32)> {
    timestamps.map(|stamps| (stamps.value, stamps.echo))
}

/// What an acknowledgement carries beside the number that it expects.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckHeader {
    window: u64,
    timestamps: Option<Timestamps>,
    /// The lower bits of the byte that it expects.
    ack: u32,
    /// Those of the first bytes of the blocks, and of the bytes after them; `blocks` of them count.
    sacks: [(u32, u32); SackBlocks::MOST],
    blocks: u8,
    ece: bool,
    /// It is a SYN.
    pub(super) syn: bool,
    /// Messages of the handshake that the client has sent with it or before.
    pub(super) messages: u8,
}

impl AckHeader {
    /// The receiver sends no data: its sequence number stays.
    pub(super) const SEQ: u64 = 1;

    /// That of nothing.
    pub(crate) const NONE: Self = Self {
        window: 0,
        timestamps: None,
        ack: 0,
        sacks: [(0, 0); SackBlocks::MOST],
        blocks: 0,
        ece: false,
        syn: false,
        messages: 0,
    };

    /// That of SYN; only the first one offers ECN.
    pub(super) fn of_syn(value: u32, first: bool, tcp: &ModernTcp) -> Self {
        let timestamps = tcp.stack.timestamps.then_some(Timestamps { value, echo: 0 });
        Self { timestamps, syn: true, ece: first && tcp.stack.ecn, ..Self::default() }
    }

    /// The stamps it carries.
    #[inline(always)]
    pub(super) fn timestamps(&self) -> Option<Timestamps> {
        self.timestamps
    }

    /// Becomes that of an acknowledgement without blocks, whose stamp is `value`.
    #[inline(always)]
    pub(super) fn become_that_of(&mut self, told: &Cumulative, value: u32, messages: u8) {
        self.window = told.window;
        self.timestamps = told.echo.map(|echo| Timestamps { value, echo });
        self.ack = told.ack as u32;
        self.blocks = 0;
        self.ece = told.ece;
        self.syn = false;
        self.messages = messages;
    }

    /// The blocks of one that had none.
    pub(super) fn set_blocks(&mut self, blocks: &SackBlocks) {
        for (place, block) in self.sacks.iter_mut().zip(blocks.as_slice()) {
            *place = (block.start as u32, block.end as u32);
            self.blocks += 1;
        }
    }

    /// Whether it says what is held beyond.
    #[inline(always)]
    pub(super) fn has_blocks(&self) -> bool {
        self.blocks > 0
    }

    /// The acknowledgement without its blocks for a sender whose first byte not acknowledged is `una`.
    #[inline(always)]
    pub(super) fn cumulative(&self, una: u64) -> Cumulative {
        Cumulative {
            ack: byte_near(self.ack, una),
            window: self.window,
            seq: Self::SEQ,
            echo: self.timestamps.map(|stamps| stamps.echo),
            ece: self.ece,
        }
    }

    /// The acknowledgement for such a sender.
    pub(super) fn ack(&self, una: u64) -> Ack {
        Ack {
            ack: byte_near(self.ack, una),
            window: self.window,
            seq: Self::SEQ,
            carries_data: false,
            sacks: self.blocks_near(una),
            timestamps: self.timestamps,
            ece: self.ece,
        }
    }

    fn blocks_near(&self, una: u64) -> SackBlocks {
        let blocks = &self.sacks[..usize::from(self.blocks)];
        let block = |&(start, end): &(u32, u32)| SackBlock {
            start: byte_near(start, una),
            end: byte_near(end, una),
        };
        blocks.iter().map(block).collect()
    }

    /// As captures have it, the sequence numbers of a stream that begins with 1.
    #[must_use]
    pub fn shown(&self) -> CapturedHeader {
        let timestamps = stamps(self.timestamps);
        let mut sacks = [(0, 0); SackBlocks::MOST];
        let blocks = usize::from(self.blocks);
        sacks[..blocks].copy_from_slice(&self.sacks[..blocks]);
        CapturedHeader {
            options: Options { timestamps, sacks, blocks: self.blocks, ..Options::default() },
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
    fn bytes_are_known_by_their_lower_bits() {
        let wraps = 1_u64 << 32;
        for near in [1, 5000, wraps - 1448, wraps + 1449, 7 * wraps] {
            for ahead in [-1448_i64, -1, 0, 1, 1448, 1 << 30] {
                let byte = near.saturating_add_signed(ahead);
                assert_eq!(byte_near(byte as u32, near), byte);
            }
        }
    }
}
