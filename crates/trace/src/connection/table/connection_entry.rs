//! Entry of a connection in the table: the fields needed for the lookup, and the log.

use super::connection_key::ConnectionKey;
use super::segment_log::SegmentLog;
use crate::analysis::SAME_IDS;
use crate::segment::{Endpoint, Flags, Nanos, Segment};

/// Compact entry of a connection: two cache lines.
#[derive(Clone, Debug)]
pub(super) struct ConnectionEntry {
    pub(super) key: ConnectionKey,
    pub(super) number: u64,
    /// Capture time of the last segment.
    pub(super) last: Nanos,
    /// Last IP identification from each end, and the number of consecutive equal identifications
    /// before it.
    seen_ids: [u16; 2],
    same_ids: [u8; 2],
    flags: u8,
    pub(super) log: SegmentLog,
}

/// Bits of `flags`. The slot is in use.
pub(super) const LIVE: u8 = 1;
/// Only one segment was captured.
pub(super) const SINGLE: u8 = 1 << 1;
/// No more segments are expected.
pub(super) const ENDED: u8 = 1 << 2;
/// The first segment came from the higher end.
const FIRST_FROM_HIGH_END: u8 = 1 << 3;
/// Frames from the first end were captured twice; the next bit is for the second end.
const DUPLICATED: u8 = 1 << 4;
/// The first end has sent something other than a SYN; the next bit is for the second end.
const HAS_TALKED: u8 = 1 << 6;

impl ConnectionEntry {
    /// Creates an entry. `high`: the first segment comes from the higher end.
    pub(super) fn new(key: ConnectionKey, high: bool, number: u64, time: Nanos) -> Self {
        Self {
            key,
            number,
            last: time,
            seen_ids: [0; 2],
            same_ids: [0; 2],
            flags: LIVE | SINGLE | if high { FIRST_FROM_HIGH_END } else { 0 },
            log: SegmentLog::default(),
        }
    }

    /// Prefetches both cache lines. The returned sum only prevents the compiler from removing the
    /// reads.
    #[inline(always)]
    pub(super) fn prefetch(&self) -> u64 {
        self.number + u64::from(self.log.is_empty())
    }

    #[inline(always)]
    pub(super) fn has_bit(&self, bit: u8) -> bool {
        self.flags & bit != 0
    }

    pub(super) fn set_bit(&mut self, bit: u8, holds: bool) {
        self.flags = if holds { self.flags | bit } else { self.flags & !bit };
    }

    /// Whether frames from an end were captured twice.
    pub(super) fn has_duplicated_frames(&self, from: usize) -> bool {
        self.has_bit(DUPLICATED << from)
    }

    /// Records that frames from an end were captured twice.
    pub(super) fn set_duplicated_frames(&mut self, from: usize) {
        self.flags |= DUPLICATED << from;
    }

    /// Whether an end has sent something other than a SYN.
    pub(super) fn has_sent_non_syn(&self, from: usize) -> bool {
        self.has_bit(HAS_TALKED << from)
    }

    /// Whether IP identifications distinguish the packets of an end.
    pub(super) fn has_distinct_ids(&self, from: usize) -> bool {
        self.same_ids[from] < SAME_IDS
    }

    /// Records a segment that is not a copy.
    #[inline]
    pub(super) fn record_segment(&mut self, segment: &Segment, from: usize) {
        let id = segment.ip_id.unwrap_or(0);
        let same = id == self.seen_ids[from];
        self.same_ids[from] = if same { self.same_ids[from].saturating_add(1) } else { 0 };
        self.seen_ids[from] = id;
        if !segment.flags.contains_any(Flags::SYN | Flags::RST) {
            self.flags |= HAS_TALKED << from;
        }
    }

    /// Both ends; the first sent the first segment.
    pub(super) fn ends(&self) -> [Endpoint; 2] {
        let [low, high] = self.key.ends();
        if self.has_bit(FIRST_FROM_HIGH_END) { [high, low] } else { [low, high] }
    }

    /// Index of the sender, given whether it is the higher end. (If an end talks to itself, the
    /// first.)
    #[inline(always)]
    pub(super) fn sender_index(&self, high: bool) -> usize {
        usize::from(high != self.has_bit(FIRST_FROM_HIGH_END))
    }
}
