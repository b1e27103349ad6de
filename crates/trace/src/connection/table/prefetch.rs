//! Where connections are many, each segment asks for memory that no cache holds. Asking for that of several segments
//! at once takes hardly longer than for one: they are looked at together, before one after the other is followed.

use std::hash::BuildHasher;
use std::hint::black_box;
use std::mem::take;

use super::Table;
use super::key::Key;
use super::entry::ConnectionEntry;
use crate::connection::analyzer::PREFETCHED;
use crate::segment::Segment;

/// Segments that are looked up together.
pub(in crate::connection) const TOGETHER: usize = 64;

/// What a connection is found by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lookup {
    pub(super) key: Key,
    pub(super) hash: u64,
    /// Where it may be.
    pub(super) guess: usize,
}

impl Table {
    /// The next segments of the capture.
    pub(in crate::connection) fn push_all(&mut self, segments: &[Segment]) {
        for segments in segments.chunks(TOGETHER) {
            if self.is_small() {
                segments.iter().for_each(|segment| _ = self.push(segment));
            } else {
                self.push_together(segments);
            }
        }
    }

    /// A few of them, where connections are many.
    fn push_together(&mut self, segments: &[Segment]) {
        let (mut lookups, mut owners) = (take(&mut self.lookups), take(&mut self.owners));
        for segment in segments {
            let (key, high) = Key::of(segment);
            // Often it is of the same connection as the one before.
            if lookups.last().is_none_or(|last: &Lookup| last.key != key) {
                lookups.push(Lookup { key, hash: self.hashes.hash_one(key), guess: 0 });
            }
            owners.push((lookups.len() - 1, high));
        }
        self.guess(&mut lookups);
        for (segment, &(which, high)) in segments.iter().zip(&owners) {
            let one = &mut lookups[which];
            self.follow(segment, one, high);
            one.guess = self.latest;
        }
        lookups.clear();
        owners.clear();
        (self.lookups, self.owners) = (lookups, owners);
    }

    /// Guesses where connections are, and fetches what their next segments change. Each step waits for the one
    /// before it, but not one connection for another.
    fn guess(&self, lookups: &mut [Lookup]) {
        black_box(lookups.iter().map(|one| self.index.prefetch(one.hash)).fold(0, u64::wrapping_add));
        for one in &mut *lookups {
            one.guess = self.index.guess(one.hash);
        }
        let entries = lookups.iter().filter_map(|one| self.entries.get(one.guess));
        black_box(entries.clone().map(ConnectionEntry::prefetch).fold(0, u64::wrapping_add));
        black_box(entries.map(|entry| self.chunks.prefetch_next(&entry.log)).fold(0, u64::wrapping_add));
    }

    /// Notes that there is enough to follow at a slot.
    #[inline]
    pub(super) fn mark_due(&mut self, slot: usize) {
        self.due.push(slot);
        if self.due.len() == PREFETCHED {
            self.analyze_due();
        }
    }

    fn analyze_due(&mut self) {
        let mut due = take(&mut self.due);
        self.analyze_all(&due);
        due.clear();
        self.due = due;
    }

    /// Follows what waits at these slots, a few.
    fn analyze_all(&mut self, slots: &[usize]) {
        self.prefetch(slots);
        slots.iter().for_each(|slot| self.analyze_log(*slot));
    }

    /// Fetches what following these slots, a few, reads and changes.
    pub(super) fn prefetch(&self, slots: &[usize]) {
        let entries = slots.iter().filter_map(|slot| self.entries.get(*slot));
        black_box(self.chunks.prefetch(entries.map(|entry| &entry.log)));
        self.analyzers.prefetch(slots);
    }
}
