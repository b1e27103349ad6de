//! Kept for each connection, in little memory: enough to find it, and its log.

use super::key::Key;
use super::log::Log;
use crate::analysis::SAME_IDS;
use crate::segment::{Endpoint, Flags, Nanos, Segment};

/// What is at hand of a connection: two lines of memory.
#[derive(Clone, Debug)]
pub(super) struct ConnectionEntry {
    pub(super) key: Key,
    pub(super) number: u64,
    /// When its last segment was captured.
    pub(super) last: Nanos,
    /// The last IP identification from each end, and how many before it in a row were the same.
    seen_ids: [u16; 2],
    same_ids: [u8; 2],
    flags: u8,
    /// A analyzer knows of it.
    pub(super) followed: bool,
    pub(super) log: Log,
}

/// What is flags of a entry, a bit each. It has a connection;
pub(super) const LIVE: u8 = 1;
/// one segment was captured of it;
pub(super) const SINGLE: u8 = 1 << 1;
/// nothing more is expected of it;
pub(super) const ENDED: u8 = 1 << 2;
/// the first segment came from the higher end;
const HIGH: u8 = 1 << 3;
/// frames have been captured twice that came from the first end, and from the second;
const DUPLICATED: u8 = 1 << 4;
/// the first end has sent anything but a SYN, and the second.
const HAS_TALKED: u8 = 1 << 6;

impl ConnectionEntry {
    /// `high`: the first segment comes from the higher end.
    pub(super) fn new(key: Key, high: bool, number: u64, time: Nanos) -> Self {
        Self {
            key,
            number,
            last: time,
            seen_ids: [0; 2],
            same_ids: [0; 2],
            flags: LIVE | SINGLE | if high { HIGH } else { 0 },
            followed: false,
            log: Log::default(),
        }
    }

    /// Fetches both lines from memory; what comes of it says nothing.
    #[inline(always)]
    pub(super) fn prefetch(&self) -> u64 {
        self.number + u64::from(self.log.is_empty())
    }

    #[inline(always)]
    pub(super) fn has(&self, bit: u8) -> bool {
        self.flags & bit != 0
    }

    pub(super) fn set(&mut self, bit: u8, holds: bool) {
        self.flags = if holds { self.flags | bit } else { self.flags & !bit };
    }

    /// Frames have been captured twice that came from an end.
    pub(super) fn is_duplicated(&self, from: usize) -> bool {
        self.has(DUPLICATED << from)
    }

    /// They have been now.
    pub(super) fn set_duplicated(&mut self, from: usize) {
        self.flags |= DUPLICATED << from;
    }

    /// An end has sent anything but a SYN.
    pub(super) fn has_talked(&self, from: usize) -> bool {
        self.has(HAS_TALKED << from)
    }

    /// Whether the packets of an end have identifications that tell them apart.
    pub(super) fn has_distinct_ids(&self, from: usize) -> bool {
        self.same_ids[from] < SAME_IDS
    }

    /// Notes a segment that is no copy.
    #[inline]
    pub(super) fn note(&mut self, segment: &Segment, from: usize) {
        let id = segment.ip_id.unwrap_or(0);
        let same = id == self.seen_ids[from];
        self.same_ids[from] = if same { self.same_ids[from].saturating_add(1) } else { 0 };
        self.seen_ids[from] = id;
        if !segment.flags.any(Flags::SYN | Flags::RST) {
            self.flags |= HAS_TALKED << from;
        }
    }

    /// The first is that of who sent the first segment.
    pub(super) fn ends(&self) -> [Endpoint; 2] {
        let [low, high] = self.key.ends();
        if self.has(HIGH) { [high, low] } else { [low, high] }
    }

    /// Which end sent what comes from the higher one, or not. (One end talking to itself is taken for the first.)
    #[inline(always)]
    pub(super) fn from(&self, high: bool) -> usize {
        usize::from(high != self.has(HIGH))
    }
}
