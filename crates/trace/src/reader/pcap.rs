//! The pcap format: a file header and records.
//!
//! The IETF draft is draft-ietf-opsawg-pcap. Kuznetzov's "modified" format of old Linux
//! distributions has eight more bytes in the record header.

use super::Frame;
use super::buffer::{Buffer, CAPACITY};
use super::bytes::ByteOrder;
use super::summary::{Defect, Summary};
use crate::frame::Link;
use std::io::Read;

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const MODIFIED: u32 = 0xa1b2_cd34;

const FILE_HEADER: usize = 24;
/// The lower bits of the field are the link type; the upper ones describe a frame check sequence.
const LINK_BITS: u32 = 0x03ff_ffff;
/// Maximum frame length, unless the snaplen in the file header is larger.
const MAX_FRAME: u32 = 1 << 20;
/// Maximum accepted snaplen, the maximum of any capture library.
const MAX_SNAPLEN: u32 = 128 << 20;

/// Order of the two lengths in a record header.
#[derive(Clone, Copy, Debug)]
enum Lengths {
    KeptFirst,
    KeptLast,
    /// Version 2.3 was written in both orders; the captured length is at most the original length.
    SmallerIsKept,
}

#[derive(Debug)]
pub(super) struct Pcap {
    order: ByteOrder,
    /// Nanoseconds per unit of the fraction.
    unit: u64,
    record_header: usize,
    lengths: Lengths,
    longest: u32,
    link: Link,
}

impl Pcap {
    /// Returns the byte order and the magic number if the bytes start a pcap file.
    pub(super) fn detect(magic: [u8; 4]) -> Option<(ByteOrder, u32)> {
        let known = |word: &u32| matches!(*word, MICROSECONDS | NANOSECONDS | MODIFIED);
        let little = Some(u32::from_le_bytes(magic)).filter(known);
        let big = Some(u32::from_be_bytes(magic)).filter(known);
        little
            .map(|word| (ByteOrder::Little, word))
            .or_else(|| big.map(|word| (ByteOrder::Big, word)))
    }

    pub(super) fn open<R: Read>(
        (order, magic): (ByteOrder, u32),
        buffer: &mut Buffer<R>,
        summary: &mut Summary,
    ) -> Result<Self, Defect> {
        if !buffer.ensure(FILE_HEADER) {
            return Err(Defect::HeaderCut);
        }
        let header = buffer.view();
        let version = (order.u16(header, 4), order.u16(header, 6));
        let snaplen = order.u32(header, 16);
        let pcap = Self {
            order,
            unit: if magic == NANOSECONDS { 1 } else { 1000 },
            record_header: if magic == MODIFIED { 24 } else { 16 },
            lengths: match version {
                (2, 3) => Lengths::SmallerIsKept,
                (2, 0..3) | (543, 0) => Lengths::KeptLast,
                _ => Lengths::KeptFirst,
            },
            longest: snaplen.clamp(MAX_FRAME, MAX_SNAPLEN),
            link: Link::of(order.u32(header, 20) & LINK_BITS),
        };
        summary.has_interfaces |= pcap.link.has_interface();
        if !matches!(version, (2, _) | (543, 0)) {
            // The magic number is right, so the records are tried anyway.
            summary.add_damage(0, Defect::Version(version.0, version.1));
        }
        buffer.skip(FILE_HEADER as u64);
        Ok(pcap)
    }

    /// Returns the next frame; the caller must skip it.
    #[inline(always)]
    pub(super) fn next<R: Read>(&self, buffer: &mut Buffer<R>) -> Result<Option<Frame>, Defect> {
        buffer.set_mark();
        if !buffer.ensure(self.record_header) {
            return if buffer.view().is_empty() { Ok(None) } else { Err(Defect::HeaderCut) };
        }
        let Some(header) = buffer.view().first_chunk::<16>() else {
            return Err(Defect::HeaderCut);
        };
        let seconds = u64::from(self.order.u32(header, 0)) * 1_000_000_000;
        let time = seconds + u64::from(self.order.u32(header, 4)) * self.unit;
        let first = self.order.u32(header, 8);
        let second = self.order.u32(header, 12);
        let (kept, original) = match self.lengths {
            Lengths::KeptFirst => (first, second),
            Lengths::KeptLast => (second, first),
            Lengths::SmallerIsKept => (first.min(second), first.max(second)),
        };
        if kept > self.longest {
            return Err(Defect::Length(kept));
        }
        let length = self.record_header + kept as usize;
        // Only the available part of a truncated record is visible.
        buffer.ensure(length.min(CAPACITY));
        let to = length.min(buffer.view().len());
        let (from, length) = (self.record_header, length as u64);
        let (link, interface) = (self.link, None);
        Ok(Some(Frame { time, link, interface, original, kept, from, to, length }))
    }
}
