//! Identifies the same packet at both taps.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash, Hasher, RandomState};

use super::unmatched_packets::Part;
use super::{FIRST_TAP, SECOND_TAP};
use crate::analysis::{RecentSegments, SAME_IDS, is_copy_of_recent};
use crate::segment::{Flags, Segment};

/// Hashes of packets, and the state to detect copies.
#[derive(Debug)]
pub(super) struct PacketIdentities {
    hashes: RandomState,
    /// Fixed hash function, because results depend on it.
    marks: BuildHasherDefault<DefaultHasher>,
    recent: [RecentSegments; 2],
    /// True if frames were captured twice at the tap.
    has_copies: [bool; 2],
    /// Last IP identification at each tap, and the number of consecutive equal ones before it.
    ids: [(u16, u8); 2],
}

impl PacketIdentities {
    pub(super) fn new() -> Self {
        let recent = [FIRST_TAP, SECOND_TAP].map(|_| RecentSegments::new());
        let (hashes, marks) = (RandomState::new(), BuildHasherDefault::default());
        Self { hashes, marks, recent, has_copies: [false; 2], ids: [(0, 0); 2] }
    }

    /// Returns the packet as a range of its payload, or as a whole without payload. `index`: index
    /// of its direction.
    pub(super) fn part_of(&self, segment: &Segment, index: usize) -> Part {
        // The data of a SYN begin after its sequence number.
        let has_range = segment.payload > 0 && !segment.flags.contains_any(Flags::SYN);
        let (key, start, length) = if has_range {
            let ends = self.hashes.hash_one((segment.source, segment.destination));
            (ends, segment.sequence, segment.payload)
        } else {
            (self.identity_of(segment), 0, 0)
        };
        let timestamp = segment.options.timestamps.map(|timestamps| timestamps.0);
        let id = segment.ip_id.unwrap_or(0);
        Part { key, start, length, time: segment.time, index, id, timestamp }
    }

    /// Returns a number that is the same at both taps for packets without payload, from fields that
    /// routers do not change. Without an identification (as in IPv6), window and timestamps are
    /// included; otherwise these bytes are omitted, because snaplens differ.
    fn identity_of(&self, segment: &Segment) -> u64 {
        let mut state = self.hashes.build_hasher();
        (segment.source, segment.destination).hash(&mut state);
        let numbers = u64::from(segment.sequence) << 32 | u64::from(segment.acknowledgement);
        let id = segment.ip_id.unwrap_or(0);
        state.write_u64(numbers);
        state.write_u64(
            u64::from(segment.payload) << 32 | u64::from(segment.flags.0) << 16 | u64::from(id),
        );
        if id == 0 {
            let (value, echo) = segment.options.timestamps.unwrap_or_default();
            state.write_u64(u64::from(value) << 32 | u64::from(echo));
            state.write_u16(segment.window);
        }
        state.finish()
    }

    /// Whether the same frame was captured at this tap a moment ago.
    pub(super) fn store_and_check_duplicate(&mut self, tap: usize, segment: &Segment) -> bool {
        let ends = self.marks.hash_one((segment.source, segment.destination));
        let (last, same) = &mut self.ids[tap];
        let distinct_ids = *same < SAME_IDS;
        let since = self.recent[tap].find_copy_and_store(segment, ends, &self.marks);
        let repeated = since.is_some_and(|since| {
            is_copy_of_recent(segment, since, self.has_copies[tap], distinct_ids)
        });
        self.has_copies[tap] |= repeated;
        if !repeated {
            let id = segment.ip_id.unwrap_or(0);
            *same = if id == *last { same.saturating_add(1) } else { 0 };
            *last = id;
        }
        repeated
    }
}
