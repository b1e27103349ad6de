//! What packets of whole numbers carry beside these: stamps, SACK blocks, ECN.

use super::path::ModernTcp;
use super::receiver::{Ecn, Outgoing};
use super::segment::{Ack, SackBlock, SackBlocks, Timestamps};
use tcpcast_wire::Options;

/// What a data packet carries beside its number.
#[derive(Clone, Copy, Debug, Default)]
pub struct DataHeader {
    timestamps: Option<Timestamps>,
    ect: bool,
    cwr: bool,
    /// A queue has marked the packet on its way.
    marked: bool,
}

impl DataHeader {
    /// That of SYN-ACK.
    pub(super) fn of(timestamps: Timestamps, tcp: &ModernTcp) -> Self {
        Self { timestamps: tcp.stack.timestamps.then_some(timestamps), ..Self::default() }
    }

    /// That of a data packet; `cwr`: the sender has reduced its window.
    #[inline(always)]
    pub(super) fn sent(timestamps: Option<Timestamps>, ect: bool, cwr: bool) -> Self {
        Self { timestamps, ect, cwr, marked: false }
    }

    /// Its stamps.
    pub(super) fn timestamps(&self) -> Option<Timestamps> {
        self.timestamps
    }

    /// Whether it says that the sender has reduced its window.
    pub(super) fn reduced(&self) -> bool {
        self.cwr
    }

    /// Whether a queue may mark the packet: RFC 3168, section 6.1.
    #[inline(always)]
    #[must_use]
    pub fn is_capable(&self) -> bool {
        self.ect
    }

    /// That of a packet that arrives, marked or not.
    #[inline(always)]
    #[must_use]
    pub fn arrived(self, marked: bool) -> Self {
        Self { marked, ..self }
    }

    #[inline(always)]
    pub(super) fn ecn(&self) -> Ecn {
        match (self.ect, self.marked) {
            (true, true) => Ecn::Marked,
            (true, false) => Ecn::Capable,
            (false, _) => Ecn::NotCapable,
        }
    }

    /// As captures have it.
    #[must_use]
    pub fn options(&self) -> Options {
        Options { timestamps: self.timestamps.map(|t| (t.value, t.echo)), ..Options::default() }
    }
}

/// What an acknowledgement carries beside the number that it expects.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckHeader {
    window: u64,
    timestamps: Option<Timestamps>,
    /// Bytes of a packet.
    mss: u32,
    /// First packets of the blocks, and the packets after them.
    sacks: [(u32, u32); SackBlocks::MOST],
    blocks: u8,
    ece: bool,
    /// It is a SYN.
    pub(super) syn: bool,
    /// Messages of the handshake that the client has sent with it or before.
    pub(super) messages: u8,
}

impl AckHeader {
    pub(super) fn of_syn(value: u32, tcp: &ModernTcp) -> Self {
        let stamps = tcp.stack.timestamps.then_some(Timestamps { value, echo: 0 });
        Self { timestamps: stamps, syn: true, ..Self::default() }
    }

    /// The stamps it carries.
    pub(super) fn timestamps(&self) -> Option<Timestamps> {
        self.timestamps
    }

    #[inline(always)]
    pub(super) fn of(outgoing: &Outgoing, value: u32, tcp: &ModernTcp) -> Self {
        let mut header = Self {
            window: outgoing.window,
            timestamps: outgoing.echo.map(|echo| Timestamps { value, echo }),
            mss: tcp.stack.mss,
            ece: outgoing.ece,
            ..Self::default()
        };
        for (place, block) in header.sacks.iter_mut().zip(outgoing.sacks.as_slice()) {
            *place = (tcp.number(block.start), tcp.number(block.end));
            header.blocks += 1;
        }
        header
    }

    /// The acknowledgement that expects packet `number`.
    #[inline(always)]
    pub(super) fn ack(&self, number: u32, tcp: &ModernTcp) -> Ack {
        let blocks = &self.sacks[..usize::from(self.blocks)];
        let block =
            |&(start, end): &(u32, u32)| SackBlock { start: tcp.byte(start), end: tcp.byte(end) };
        Ack {
            ack: tcp.byte(number),
            window: self.window,
            seq: 1,
            carries_data: false,
            sacks: blocks.iter().map(block).collect(),
            timestamps: self.timestamps,
            ece: self.ece,
        }
    }

    /// As captures have it, the sequence numbers of a stream that begins with 1.
    #[must_use]
    pub fn options(&self) -> Options {
        let byte = |number: u32| (number - 1).wrapping_mul(self.mss).wrapping_add(1);
        let mut options = Options {
            timestamps: self.timestamps.map(|t| (t.value, t.echo)),
            blocks: self.blocks,
            ..Options::default()
        };
        let blocks = &self.sacks[..usize::from(self.blocks)];
        for (place, (start, end)) in options.sacks.iter_mut().zip(blocks) {
            *place = (byte(*start), byte(*end));
        }
        options
    }
}
