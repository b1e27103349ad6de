//! The pcapng format: sections of blocks, with several interfaces.
//!
//! The IETF draft is draft-ietf-opsawg-pcapng.

use super::BufferedFrame;
use super::byte_order::ByteOrder;
use super::stream_buffer::{CAPACITY, StreamBuffer};
use super::summary::{DamageKind, ReadSummary};
use super::timestamp_clock::{MAX_TIME, TimestampClock};
use crate::frame::LinkType;
use crate::segment::Nanos;
use std::io::Read;

/// Type of the section header block, the same in both byte orders.
pub(super) const SECTION_BLOCK: u32 = 0x0a0d_0d0a;
const INTERFACE_BLOCK: u32 = 1;
const OLD_PACKET_BLOCK: u32 = 2;
const SIMPLE_PACKET_BLOCK: u32 = 3;
const STATISTICS_BLOCK: u32 = 5;
const ENHANCED_PACKET_BLOCK: u32 = 6;

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// Bytes of type and length before a block's body; `BLOCK_FRAMING` includes the trailing length.
const BLOCK_HEADER: usize = 8;
const BLOCK_FRAMING: usize = 12;

const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
const ISB_IFDROP: u16 = 5;

/// Maximum number of interfaces per section, to limit memory.
const MAX_INTERFACES: usize = 65_536;

#[derive(Clone, Copy, Debug)]
struct InterfaceDescription {
    link: LinkType,
    snaplen: u32,
    clock: TimestampClock,
    /// Frames dropped, by the latest statistics, which are cumulative.
    dropped: u64,
}

#[derive(Debug)]
pub(super) struct PcapngFormat {
    order: ByteOrder,
    interfaces: Vec<InterfaceDescription>,
    last: Nanos,
    /// Position of the current block.
    at: u64,
}

/// Header fields of a packet block, and the offset of its data.
struct PacketBlock {
    interface: u32,
    ticks: u64,
    kept: u32,
    original: u32,
    from: usize,
}

impl PcapngFormat {
    pub(super) fn new() -> Self {
        Self { order: ByteOrder::Little, interfaces: Vec::new(), last: 0, at: 0 }
    }

    /// Returns the next frame; the caller must skip it.
    pub(super) fn next_frame<R: Read>(
        &mut self,
        buffer: &mut StreamBuffer<R>,
        summary: &mut ReadSummary,
    ) -> Result<Option<BufferedFrame>, DamageKind> {
        loop {
            buffer.set_record_start();
            self.at = buffer.record_start();
            if !buffer.ensure_bytes(BLOCK_FRAMING) {
                return if buffer.held_bytes().is_empty() {
                    Ok(None)
                } else {
                    Err(DamageKind::HeaderCut)
                };
            }
            let kind = self.order.u32(buffer.held_bytes(), 0);
            if kind == SECTION_BLOCK {
                self.order = section_byte_order(buffer.held_bytes())?;
            }
            let length = self.order.u32(buffer.held_bytes(), 4);
            let body = self.block_body(length, buffer)?;
            if let Some(frame) = self.process_block(kind, length, body, summary)? {
                return Ok(Some(frame));
            }
            if !buffer.skip_bytes(u64::from(length)) {
                return Err(DamageKind::RecordCut);
            }
        }
    }

    /// Returns the available part of the body of a block with `length` bytes.
    #[inline(always)]
    fn block_body<'a, R: Read>(
        &self,
        length: u32,
        input: &'a mut StreamBuffer<R>,
    ) -> Result<&'a [u8], DamageKind> {
        let size = length as usize;
        if size < BLOCK_FRAMING || size % 4 != 0 {
            return Err(DamageKind::BlockLength(length));
        }
        let end = size - 4;
        if !input.ensure_bytes(size.min(CAPACITY)) || size > CAPACITY {
            let held = input.held_bytes().len().min(end);
            return Ok(&input.held_bytes()[BLOCK_HEADER..held]);
        }
        // The trailing length is checked before the block is parsed.
        match self.order.u32(input.held_bytes(), end) {
            trailer if trailer == length => Ok(&input.held_bytes()[BLOCK_HEADER..end]),
            trailer => Err(DamageKind::Trailer(length, trailer)),
        }
    }

    #[inline(always)]
    fn process_block(
        &mut self,
        kind: u32,
        length: u32,
        body: &[u8],
        summary: &mut ReadSummary,
    ) -> Result<Option<BufferedFrame>, DamageKind> {
        // Body length according to the block's length field, even if fewer bytes are available.
        let room = length as usize - BLOCK_FRAMING;
        let needed = match kind {
            ENHANCED_PACKET_BLOCK | OLD_PACKET_BLOCK => 20,
            SECTION_BLOCK => 16,
            INTERFACE_BLOCK | STATISTICS_BLOCK => 8,
            SIMPLE_PACKET_BLOCK => 4,
            _ => return Ok(None),
        };
        if room < needed {
            return Err(DamageKind::BlockShort(kind));
        }
        if body.len() < needed {
            return Err(DamageKind::RecordCut);
        }
        let packet = match kind {
            ENHANCED_PACKET_BLOCK | OLD_PACKET_BLOCK => self.parse_packet_block(kind, body),
            SIMPLE_PACKET_BLOCK => self.parse_simple_packet_block(body, room, summary),
            SECTION_BLOCK => return self.begin_section(body).map(|()| None),
            INTERFACE_BLOCK => return self.add_interface(body, summary).map(|()| None),
            _ => {
                self.add_drop_statistics(body, summary);
                return Ok(None);
            }
        };
        if packet.kept as usize > room - packet.from {
            return Err(DamageKind::BlockShort(kind));
        }
        Ok(Some(self.frame_of_packet(&packet, length, body.len(), summary)))
    }

    fn begin_section(&mut self, body: &[u8]) -> Result<(), DamageKind> {
        self.interfaces.clear();
        let (major, minor) = (self.order.u16(body, 4), self.order.u16(body, 6));
        if major == 1 { Ok(()) } else { Err(DamageKind::Version(major, minor)) }
    }

    fn add_interface(&mut self, body: &[u8], summary: &mut ReadSummary) -> Result<(), DamageKind> {
        if self.interfaces.len() == MAX_INTERFACES {
            return Err(DamageKind::Interfaces(MAX_INTERFACES));
        }
        let (mut resolution, mut offset) = (6, 0);
        let valid = self.visit_options(&body[8..], |kind, value| match (kind, value.len()) {
            (IF_TSRESOL, 1..) => resolution = value[0],
            (IF_TSOFFSET, 8..) => offset = self.order.u64(value, 0) as i64,
            _ => {}
        });
        if !valid {
            summary.add_damage(self.at, DamageKind::Option);
        }
        let clock = TimestampClock::new(resolution, offset).unwrap_or_else(|| {
            summary.add_damage(self.at, DamageKind::Resolution(resolution));
            TimestampClock::MICROSECONDS
        });
        let link = LinkType::from_number(u32::from(self.order.u16(body, 0)));
        summary.has_interfaces |= link.has_interface();
        let snaplen = match self.order.u32(body, 4) {
            0 => u32::MAX,
            some => some,
        };
        self.interfaces.push(InterfaceDescription { link, snaplen, clock, dropped: 0 });
        summary.has_interfaces |= self.interfaces.len() > 1;
        Ok(())
    }

    fn add_drop_statistics(&mut self, body: &[u8], summary: &mut ReadSummary) {
        let interface = self.order.u32(body, 0) as usize;
        let mut dropped = None;
        let options = body.get(12..).unwrap_or_default();
        let valid = self.visit_options(options, |kind, value| {
            if kind == ISB_IFDROP && value.len() >= 8 {
                dropped = Some(self.order.u64(value, 0));
            }
        });
        if !valid {
            summary.add_damage(self.at, DamageKind::Option);
        }
        if let (Some(interface), Some(dropped)) = (self.interfaces.get_mut(interface), dropped) {
            let more = dropped.saturating_sub(interface.dropped);
            summary.dropped = summary.dropped.saturating_add(more);
            interface.dropped += more;
        }
    }

    /// Calls `visit` for each option. Returns false if an option extends beyond the block.
    fn visit_options(&self, mut bytes: &[u8], mut visit: impl FnMut(u16, &[u8])) -> bool {
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
    fn parse_packet_block(&self, kind: u32, body: &[u8]) -> PacketBlock {
        let order = self.order;
        let interface = match kind {
            ENHANCED_PACKET_BLOCK => order.u32(body, 0),
            _ => u32::from(order.u16(body, 0)),
        };
        PacketBlock {
            interface,
            ticks: u64::from(order.u32(body, 4)) << 32 | u64::from(order.u32(body, 8)),
            kept: order.u32(body, 12),
            original: order.u32(body, 16),
            from: 20,
        }
    }

    fn parse_simple_packet_block(
        &self,
        body: &[u8],
        room: usize,
        summary: &mut ReadSummary,
    ) -> PacketBlock {
        summary.untimed += 1;
        let original = self.order.u32(body, 0);
        let snaplen = self.interfaces.first().map_or(u32::MAX, |interface| interface.snaplen);
        // The block is padded to four bytes, so its length is only an upper bound.
        let kept = original.min(snaplen).min((room - 4) as u32);
        PacketBlock { interface: 0, ticks: 0, kept, original, from: 4 }
    }

    #[inline(always)]
    fn frame_of_packet(
        &mut self,
        packet: &PacketBlock,
        length: u32,
        held: usize,
        summary: &mut ReadSummary,
    ) -> BufferedFrame {
        let to = held.min(packet.from + packet.kept as usize);
        let link = match self.interfaces.get(packet.interface as usize) {
            Some(interface) => {
                if packet.from == 20 {
                    self.last = interface.clock.time_of_ticks(packet.ticks);
                    if self.last > MAX_TIME {
                        self.last = MAX_TIME;
                        summary.too_late += 1;
                    }
                }
                interface.link
            }
            None => {
                summary.add_damage(self.at, DamageKind::Interface(packet.interface));
                LinkType::Undescribed
            }
        };
        BufferedFrame {
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
fn section_byte_order(block: &[u8]) -> Result<ByteOrder, DamageKind> {
    match (ByteOrder::Little.u32(block, 8), ByteOrder::Big.u32(block, 8)) {
        (BYTE_ORDER_MAGIC, _) => Ok(ByteOrder::Little),
        (_, BYTE_ORDER_MAGIC) => Ok(ByteOrder::Big),
        (_, other) => Err(DamageKind::ByteOrder(other)),
    }
}
