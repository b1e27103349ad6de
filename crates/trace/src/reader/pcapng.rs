//! The pcapng format: sections of blocks, with several interfaces.
//!
//! The IETF draft is draft-ietf-opsawg-pcapng.

use super::Frame;
use super::buffer::{Buffer, CAPACITY};
use super::bytes::ByteOrder;
use super::clock::{Clock, LATEST};
use super::summary::{Defect, Summary};
use crate::frame::Link;
use crate::segment::Nanos;
use std::io::Read;

/// Type of the section header block, the same in both byte orders.
pub(super) const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Bytes of type and length before a block's body; `BLOCK_FRAMING` includes the trailing length.
const BLOCK_HEADER: usize = 8;
const BLOCK_FRAMING: usize = 12;

const OPTION_RESOLUTION: u16 = 9;
const OPTION_OFFSET: u16 = 14;
const OPTION_DROPPED: u16 = 5;

/// Maximum number of interfaces per section, to limit memory.
const MAX_INTERFACES: usize = 65_536;

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: Link,
    snaplen: u32,
    clock: Clock,
    /// Frames dropped, by the latest statistics, which are cumulative.
    dropped: u64,
}

#[derive(Debug)]
pub(super) struct Pcapng {
    order: ByteOrder,
    interfaces: Vec<Interface>,
    last: Nanos,
    /// Position of the current block.
    at: u64,
}

/// Header fields of a packet block, and the offset of its data.
struct Packet {
    interface: u32,
    ticks: u64,
    kept: u32,
    original: u32,
    from: usize,
}

impl Pcapng {
    pub(super) fn new() -> Self {
        Self { order: ByteOrder::Little, interfaces: Vec::new(), last: 0, at: 0 }
    }

    /// Returns the next frame; the caller must skip it.
    pub(super) fn next<R: Read>(
        &mut self,
        buffer: &mut Buffer<R>,
        summary: &mut Summary,
    ) -> Result<Option<Frame>, Defect> {
        loop {
            buffer.set_mark();
            self.at = buffer.mark();
            if !buffer.ensure(BLOCK_FRAMING) {
                return if buffer.view().is_empty() { Ok(None) } else { Err(Defect::HeaderCut) };
            }
            let kind = self.order.u32(buffer.view(), 0);
            if kind == SECTION {
                self.order = byte_order(buffer.view())?;
            }
            let length = self.order.u32(buffer.view(), 4);
            let body = self.body(length, buffer)?;
            if let Some(frame) = self.block(kind, length, body, summary)? {
                return Ok(Some(frame));
            }
            if !buffer.skip(u64::from(length)) {
                return Err(Defect::RecordCut);
            }
        }
    }

    /// Returns the available part of the body of a block with `length` bytes.
    #[inline(always)]
    fn body<'a, R: Read>(&self, length: u32, input: &'a mut Buffer<R>) -> Result<&'a [u8], Defect> {
        let size = length as usize;
        if size < BLOCK_FRAMING || size % 4 != 0 {
            return Err(Defect::BlockLength(length));
        }
        let end = size - 4;
        if !input.ensure(size.min(CAPACITY)) || size > CAPACITY {
            let held = input.view().len().min(end);
            return Ok(&input.view()[BLOCK_HEADER..held]);
        }
        // The trailing length is checked before the block is parsed.
        match self.order.u32(input.view(), end) {
            trailer if trailer == length => Ok(&input.view()[BLOCK_HEADER..end]),
            trailer => Err(Defect::Trailer(length, trailer)),
        }
    }

    #[inline(always)]
    fn block(
        &mut self,
        kind: u32,
        length: u32,
        body: &[u8],
        summary: &mut Summary,
    ) -> Result<Option<Frame>, Defect> {
        // Length of the body by the block's length, even if less is available.
        let room = length as usize - BLOCK_FRAMING;
        let needed = match kind {
            PACKET | OLD_PACKET => 20,
            SECTION => 16,
            INTERFACE | STATISTICS => 8,
            SIMPLE_PACKET => 4,
            _ => return Ok(None),
        };
        if room < needed {
            return Err(Defect::BlockShort(kind));
        }
        if body.len() < needed {
            return Err(Defect::RecordCut);
        }
        let packet = match kind {
            PACKET | OLD_PACKET => self.packet(kind, body),
            SIMPLE_PACKET => self.simple_packet(body, room, summary),
            SECTION => return self.section(body).map(|()| None),
            INTERFACE => return self.interface(body, summary).map(|()| None),
            _ => {
                self.statistics(body, summary);
                return Ok(None);
            }
        };
        if packet.kept as usize > room - packet.from {
            return Err(Defect::BlockShort(kind));
        }
        Ok(Some(self.frame(&packet, length, body.len(), summary)))
    }

    fn section(&mut self, body: &[u8]) -> Result<(), Defect> {
        self.interfaces.clear();
        let (major, minor) = (self.order.u16(body, 4), self.order.u16(body, 6));
        if major == 1 { Ok(()) } else { Err(Defect::Version(major, minor)) }
    }

    fn interface(&mut self, body: &[u8], summary: &mut Summary) -> Result<(), Defect> {
        if self.interfaces.len() == MAX_INTERFACES {
            return Err(Defect::Interfaces(MAX_INTERFACES));
        }
        let (mut resolution, mut offset) = (6, 0);
        let valid = self.options(&body[8..], |kind, value| match (kind, value.len()) {
            (OPTION_RESOLUTION, 1..) => resolution = value[0],
            (OPTION_OFFSET, 8..) => offset = self.order.u64(value, 0) as i64,
            _ => {}
        });
        if !valid {
            summary.add_damage(self.at, Defect::Option);
        }
        let clock = Clock::new(resolution, offset).unwrap_or_else(|| {
            summary.add_damage(self.at, Defect::Resolution(resolution));
            Clock::MICROSECONDS
        });
        let link = Link::of(u32::from(self.order.u16(body, 0)));
        summary.has_interfaces |= link.has_interface();
        let snaplen = match self.order.u32(body, 4) {
            0 => u32::MAX,
            some => some,
        };
        self.interfaces.push(Interface { link, snaplen, clock, dropped: 0 });
        summary.has_interfaces |= self.interfaces.len() > 1;
        Ok(())
    }

    fn statistics(&mut self, body: &[u8], summary: &mut Summary) {
        let interface = self.order.u32(body, 0) as usize;
        let mut dropped = None;
        let options = body.get(12..).unwrap_or_default();
        let valid = self.options(options, |kind, value| {
            if kind == OPTION_DROPPED && value.len() >= 8 {
                dropped = Some(self.order.u64(value, 0));
            }
        });
        if !valid {
            summary.add_damage(self.at, Defect::Option);
        }
        if let (Some(interface), Some(dropped)) = (self.interfaces.get_mut(interface), dropped) {
            let more = dropped.saturating_sub(interface.dropped);
            summary.dropped = summary.dropped.saturating_add(more);
            interface.dropped += more;
        }
    }

    /// Calls `see` for each option. Returns false if an option extends beyond the block.
    fn options(&self, mut bytes: &[u8], mut visit: impl FnMut(u16, &[u8])) -> bool {
        while bytes.len() >= 4 {
            let (kind, length) = (self.order.u16(bytes, 0), self.order.u16(bytes, 2) as usize);
            if kind == 0 {
                return true;
            }
            let Some(value) = bytes.get(4..4 + length) else {
                return false;
            };
            visit(kind, value);
            bytes = bytes.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        }
        bytes.is_empty()
    }

    #[inline(always)]
    fn packet(&self, kind: u32, body: &[u8]) -> Packet {
        let order = self.order;
        let interface = match kind {
            PACKET => order.u32(body, 0),
            _ => u32::from(order.u16(body, 0)),
        };
        Packet {
            interface,
            ticks: u64::from(order.u32(body, 4)) << 32 | u64::from(order.u32(body, 8)),
            kept: order.u32(body, 12),
            original: order.u32(body, 16),
            from: 20,
        }
    }

    fn simple_packet(&self, body: &[u8], room: usize, summary: &mut Summary) -> Packet {
        summary.untimed += 1;
        let original = self.order.u32(body, 0);
        let snaplen = self.interfaces.first().map_or(u32::MAX, |interface| interface.snaplen);
        // The block is padded to four bytes, so its length is only an upper bound.
        let kept = original.min(snaplen).min((room - 4) as u32);
        Packet { interface: 0, ticks: 0, kept, original, from: 4 }
    }

    #[inline(always)]
    fn frame(&mut self, packet: &Packet, length: u32, held: usize, summary: &mut Summary) -> Frame {
        let to = held.min(packet.from + packet.kept as usize);
        let link = match self.interfaces.get(packet.interface as usize) {
            Some(interface) => {
                if packet.from == 20 {
                    self.last = interface.clock.time(packet.ticks);
                    if self.last > LATEST {
                        self.last = LATEST;
                        summary.too_late += 1;
                    }
                }
                interface.link
            }
            None => {
                summary.add_damage(self.at, Defect::Interface(packet.interface));
                Link::Undescribed
            }
        };
        Frame {
            time: self.last,
            link,
            interface: (self.interfaces.len() > 1).then_some(packet.interface),
            original: packet.original,
            kept: packet.kept,
            from: BLOCK_HEADER + packet.from,
            to: BLOCK_HEADER + to,
            length: u64::from(length),
        }
    }
}

/// Returns the byte order of a section header block.
fn byte_order(block: &[u8]) -> Result<ByteOrder, Defect> {
    match (ByteOrder::Little.u32(block, 8), ByteOrder::Big.u32(block, 8)) {
        (BYTE_ORDER_MAGIC, _) => Ok(ByteOrder::Little),
        (_, BYTE_ORDER_MAGIC) => Ok(ByteOrder::Big),
        (_, other) => Err(Defect::ByteOrder(other)),
    }
}
