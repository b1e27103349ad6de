//! The pcap format: a file header and records.
//!
//! The IETF draft is draft-ietf-opsawg-pcap. Kuznetzov's "modified" format of old Linux
//! distributions has eight more bytes in the record header.

use super::BufferedFrame;
use super::byte_order::ByteOrder;
use super::stream_buffer::{CAPACITY, StreamBuffer};
use super::summary::{DamageKind, ReadSummary};
use crate::frame::LinkType;
use std::io::Read;

const MICROSECOND_MAGIC: u32 = 0xa1b2_c3d4;
const NANOSECOND_MAGIC: u32 = 0xa1b2_3c4d;
const MODIFIED_MAGIC: u32 = 0xa1b2_cd34;

const FILE_HEADER_BYTES: usize = 24;
/// The lower bits of the field are the link type; the upper ones describe a frame check sequence.
const LINK_TYPE_MASK: u32 = 0x03ff_ffff;
/// Maximum frame length, unless the snaplen in the file header is larger.
const MAX_FRAME: u32 = 1 << 20;
/// Maximum accepted snaplen, the maximum of any capture library.
const MAX_SNAPLEN: u32 = 128 << 20;

/// Order of the two lengths in a record header.
#[derive(Clone, Copy, Debug)]
enum RecordLengthOrder {
    KeptFirst,
    KeptLast,
    /// Version 2.3 was written in both orders; the captured length is at most the original length.
    SmallerIsKept,
}

#[derive(Debug)]
pub(super) struct PcapFormat {
    order: ByteOrder,
    /// Nanoseconds per unit of the fraction.
    unit: u64,
    record_header: usize,
    lengths: RecordLengthOrder,
    longest: u32,
    link: LinkType,
}

impl PcapFormat {
    /// Returns the byte order and the magic number if the bytes start a pcap file.
    pub(super) fn detect(magic: [u8; 4]) -> Option<(ByteOrder, u32)> {
        let known =
            |word: &u32| matches!(*word, MICROSECOND_MAGIC | NANOSECOND_MAGIC | MODIFIED_MAGIC);
        let little = Some(u32::from_le_bytes(magic)).filter(known);
        let big = Some(u32::from_be_bytes(magic)).filter(known);
        little
            .map(|word| (ByteOrder::Little, word))
            .or_else(|| big.map(|word| (ByteOrder::Big, word)))
    }

    pub(super) fn read_file_header<R: Read>(
        (order, magic): (ByteOrder, u32),
        buffer: &mut StreamBuffer<R>,
        summary: &mut ReadSummary,
    ) -> Result<Self, DamageKind> {
        if !buffer.ensure_bytes(FILE_HEADER_BYTES) {
            return Err(DamageKind::HeaderCut);
        }
        let header = buffer.held_bytes();
        let version = (order.u16(header, 4), order.u16(header, 6));
        let snaplen = order.u32(header, 16);
        let pcap = Self {
            order,
            unit: if magic == NANOSECOND_MAGIC { 1 } else { 1000 },
            record_header: if magic == MODIFIED_MAGIC { 24 } else { 16 },
            lengths: match version {
                (2, 3) => RecordLengthOrder::SmallerIsKept,
                (2, 0..3) | (543, 0) => RecordLengthOrder::KeptLast,
                _ => RecordLengthOrder::KeptFirst,
            },
            longest: snaplen.clamp(MAX_FRAME, MAX_SNAPLEN),
            link: LinkType::from_number(order.u32(header, 20) & LINK_TYPE_MASK),
        };
        summary.has_interfaces |= pcap.link.has_interface();
        if !matches!(version, (2, _) | (543, 0)) {
            // The magic number is right, so the records are tried anyway.
            summary.add_damage(0, DamageKind::Version(version.0, version.1));
        }
        buffer.skip_bytes(FILE_HEADER_BYTES as u64);
        Ok(pcap)
    }

    /// Returns the next frame; the caller must skip it.
    #[inline(always)]
    pub(super) fn next_frame<R: Read>(
        &self,
        buffer: &mut StreamBuffer<R>,
    ) -> Result<Option<BufferedFrame>, DamageKind> {
        buffer.set_record_start();
        if !buffer.ensure_bytes(self.record_header) {
            return if buffer.held_bytes().is_empty() {
                Ok(None)
            } else {
                Err(DamageKind::HeaderCut)
            };
        }
        let Some(header) = buffer.held_bytes().first_chunk::<16>() else {
            return Err(DamageKind::HeaderCut);
        };
        let seconds = u64::from(self.order.u32(header, 0)) * 1_000_000_000;
        let time = seconds + u64::from(self.order.u32(header, 4)) * self.unit;
        let first = self.order.u32(header, 8);
        let second = self.order.u32(header, 12);
        let (kept, original) = match self.lengths {
            RecordLengthOrder::KeptFirst => (first, second),
            RecordLengthOrder::KeptLast => (second, first),
            RecordLengthOrder::SmallerIsKept => (first.min(second), first.max(second)),
        };
        if kept > self.longest {
            return Err(DamageKind::Length(kept));
        }
        let length = self.record_header + kept as usize;
        // Only the available part of a truncated record is visible.
        buffer.ensure_bytes(length.min(CAPACITY));
        let to = length.min(buffer.held_bytes().len());
        let (from, length) = (self.record_header, length as u64);
        let (link, interface) = (self.link, None);
        Ok(Some(BufferedFrame { time, link, interface, original, kept, from, to, length }))
    }
}
