//! The table of connections: looks up the connection of a segment, and removes ended connections.

mod entry;
mod index;
mod key;
mod lifecycle;
mod log;
mod prefetch;

pub(super) use log::MAX_BYTES as MAX_LOG_BYTES;
pub(super) use prefetch::LOOKUP_BATCH;

use std::hash::BuildHasher;

use entry::{ConnectionEntry, ENDED, LIVE, SINGLE};
use index::Index;
use key::{Hashes, Key};
use lifecycle::{LIFECYCLE_FLAGS, LifecycleState};
use log::{Chunks, LogState};
use prefetch::Lookup;

use super::Limits;
use super::analyzer::PREFETCHED;
use super::analyzers::Analyzers;
use super::state::Beginning;
use crate::analysis::{ConnectionReport, End, EventQuota, RecentSegments, is_copy};
use crate::segment::{Flags, Nanos, Segment};

/// A closed connection is kept this long for packets in flight: twice the maximum segment lifetime
/// of common stacks.
const LINGER: Nanos = 60_000_000_000;
/// Number of entries examined to find one to evict.
const CANDIDATES: usize = 64;

/// Maximum number of entries reserved in advance.
const MAX_RESERVED: usize = 1 << 16;

/// Number of segments after which the next entry is checked for removal.
const SWEEP_EVERY: u64 = 8;

/// Maximum number of loss indications and retransmissions listed for all live connections.
const MAX_EVENTS: usize = 1 << 20;
/// Maximum number of plot points of all live connections.
const MAX_POINTS: usize = 1 << 20;
/// Maximum share (one sixteenth) of the remaining points granted to a connection.
const POINTS_SHARE: usize = 16;
/// Number of connections up to which the table is small.
const SMALL_TABLE: usize = 256;

/// All live connections.
#[derive(Debug)]
pub(super) struct Table {
    limits: Limits,
    index: Index,
    /// Entries of the connections, by slot.
    entries: Vec<ConnectionEntry>,
    /// Lifecycle of the connections, by slot.
    lifecycle: Vec<LifecycleState>,
    chunks: Chunks,
    /// Buffer for a complete log.
    log_bytes: Vec<u8>,
    free: Vec<usize>,
    pub(super) analyzers: Analyzers,
    /// Slot of the last segment.
    latest_slot: usize,
    /// Next slot to be checked for removal.
    sweep_slot: usize,
    hashes: Hashes,
    marks: Hashes,
    recent: RecentSegments,
    count: u64,
    pushed: u64,
    /// Plot points granted to live connections.
    granted_points: usize,
    pub(super) small_limit: usize,
    /// Lookups of the segments that are processed together; for each segment, the index of its
    /// lookup, and whether it comes from the higher end.
    lookups: Vec<Lookup>,
    owners: Vec<(usize, bool)>,
    /// Slots whose logs are due for analysis.
    due: Vec<usize>,
}

impl Table {
    pub(super) fn new(limits: Limits) -> Self {
        let hashes = Hashes::new();
        Self {
            limits: Limits { connections: limits.connections.max(1), ..limits },
            index: Index::new(),
            entries: Vec::new(),
            lifecycle: Vec::new(),
            chunks: Chunks::new(),
            log_bytes: Vec::new(),
            free: Vec::new(),
            analyzers: Analyzers::new(limits.events, EventQuota::new(MAX_EVENTS)),
            latest_slot: 0,
            sweep_slot: 0,
            hashes,
            marks: Hashes::fixed(),
            recent: RecentSegments::new(),
            count: 0,
            pushed: 0,
            granted_points: 0,
            small_limit: SMALL_TABLE,
            lookups: Vec::new(),
            owners: Vec::new(),
            due: Vec::new(),
        }
    }

    /// Whether all connections fit into the processor's cache, so that segments can be analysed
    /// immediately.
    #[inline(always)]
    pub(super) fn is_small(&self) -> bool {
        self.index.len() < self.small_limit
    }

    /// Starts analysis threads: the largest power of two up to `threads`.
    pub(super) fn start_threads(&mut self, threads: usize) {
        if threads > 0 {
            self.analyzers.start_threads(threads.ilog2());
        }
    }

    /// Processes the next segment of the capture. Returns the number of its connection.
    #[inline]
    pub(super) fn push(&mut self, segment: &Segment) -> u64 {
        let (key, high) = Key::of(segment);
        // Fast path: usually the connection of the last segment.
        let guess = self.latest_slot;
        let hash = if self.is(guess, &key) { 0 } else { self.hashes.hash_one(key) };
        self.process(segment, &Lookup { key, hash, guess }, high)
    }

    /// Looks up or opens the segment's connection. Returns its number. `high`: the segment comes
    /// from the higher end.
    #[inline]
    fn process(&mut self, segment: &Segment, lookup: &Lookup, high: bool) -> u64 {
        let mut slot = self.find(lookup);
        if let Some(old) = slot.filter(|_| segment.flags.any(Flags::SYN)) {
            if self.reopens(old, segment, high) {
                self.end(old, false);
                slot = None;
            }
        }
        let number = match slot {
            Some(slot) => {
                self.latest_slot = slot;
                self.deliver(slot, segment, high)
            }
            None => {
                self.latest_slot = self.open(lookup, segment, high);
                self.store_first(segment)
            }
        };
        self.pushed = self.pushed.wrapping_add(1);
        if self.pushed % SWEEP_EVERY == 0 {
            self.sweep(segment.time);
        }
        number
    }

    /// Stores the first segment of the latest connection for copy detection. Returns the
    /// connection's number.
    #[inline(never)]
    fn store_first(&mut self, segment: &Segment) -> u64 {
        let number = self.count - 1;
        self.recent.find(segment, number, &self.marks);
        number
    }

    /// Passes a segment to its connection, unless it is a copy. Returns the connection's number.
    #[inline]
    fn deliver(&mut self, slot: usize, segment: &Segment, high: bool) -> u64 {
        let Some(entry) = self.entries.get_mut(slot) else { return 0 };
        let (number, from) = (entry.number, entry.from(high));
        if let Some(since) = self.recent.find(segment, number, &self.marks) {
            let distinct_ids = entry.has_distinct_ids(from);
            if is_copy(segment, since, entry.is_duplicated(from), distinct_ids) {
                self.count_copy(slot, segment, from, since);
                return number;
            }
        }
        entry.record(segment, from);
        if segment.flags.any(LIFECYCLE_FLAGS) {
            self.update_lifecycle(slot, segment, from);
        }
        self.confirm(slot);
        if self.is_small() {
            self.analyze_now(slot, segment, from);
        } else {
            self.append_to_log(slot, segment, from);
        }
        number
    }

    /// Analyses the log of a slot, then a segment.
    #[inline]
    fn analyze_now(&mut self, slot: usize, segment: &Segment, from: usize) {
        self.analyze_log(slot);
        let Some(entry) = self.entries.get_mut(slot) else { return };
        let last = entry.last;
        entry.last = last.max(segment.time);
        self.analyzers.push(slot, segment, from, last);
    }

    /// Appends a segment to the log.
    #[inline]
    fn append_to_log(&mut self, slot: usize, segment: &Segment, from: usize) {
        let Some(entry) = self.entries.get_mut(slot) else { return };
        let length = self.chunks.add(&mut entry.log, segment, from, entry.last);
        entry.last = entry.last.max(segment.time);
        match length {
            LogState::Short => {}
            LogState::Due => self.mark_due(slot),
            LogState::Full => self.analyze_log(slot),
        }
    }

    /// Processes a SYN, FIN or RST.
    #[cold]
    fn update_lifecycle(&mut self, slot: usize, segment: &Segment, from: usize) {
        let (Some(entry), Some(lifecycle)) =
            (self.entries.get_mut(slot), self.lifecycle.get_mut(slot))
        else {
            return;
        };
        lifecycle.read(segment, from);
        entry.set(ENDED, lifecycle.has_ended());
    }

    /// Counts a copy of a segment captured at `since`.
    #[cold]
    fn count_copy(&mut self, slot: usize, segment: &Segment, from: usize, since: Nanos) {
        self.confirm(slot);
        let Some(entry) = self.entries.get_mut(slot) else { return };
        entry.set_duplicated(from);
        // No sender sends data twice at the same time: all frames are captured twice, including
        // those of the other end.
        let occupies = segment.payload > 0 || segment.flags.any(Flags::SYN);
        if segment.time == since && occupies {
            entry.set_duplicated(1 - from);
        }
        self.lifecycle[slot].copies[from] += 1;
    }

    /// Called for each segment after the first.
    #[inline]
    fn confirm(&mut self, slot: usize) {
        if self.entries.get(slot).is_some_and(|entry| entry.has(SINGLE)) {
            self.grant_points(slot);
        }
    }

    #[cold]
    fn grant_points(&mut self, slot: usize) {
        // Each direction has its own points.
        let points = self.limits.points.min((MAX_POINTS - self.granted_points) / POINTS_SHARE / 2);
        self.granted_points += 2 * points;
        let (entry, lifecycle) = (&mut self.entries[slot], &mut self.lifecycle[slot]);
        lifecycle.points = points;
        entry.set(SINGLE, false);
        entry.set(ENDED, lifecycle.has_ended());
    }

    /// Adds a connection to the analysis.
    #[cold]
    fn begin(&mut self, slot: usize) {
        let (entry, lifecycle) = (&mut self.entries[slot], &self.lifecycle[slot]);
        entry.analyzed = true;
        let LifecycleState { frame, time, points, .. } = *lifecycle;
        let (number, ends) = (entry.number, entry.ends());
        self.analyzers.begin(slot, &Beginning { number, frame, time, ends, points });
    }

    /// Whether a SYN opens a new connection with the ends of this one.
    fn reopens(&self, slot: usize, syn: &Segment, high: bool) -> bool {
        let (entry, lifecycle) = (&self.entries[slot], &self.lifecycle[slot]);
        let from = entry.from(high);
        lifecycle.opens_new(syn, from, entry.has_talked(from))
    }

    /// Analyses the log of a slot.
    #[inline]
    fn analyze_log(&mut self, slot: usize) {
        let Some(entry) = self.entries.get(slot) else { return };
        if !entry.analyzed {
            self.begin(slot);
        }
        let Some(entry) = self.entries.get_mut(slot) else { return };
        if entry.log.is_empty() {
            return;
        }
        self.chunks.release(&mut entry.log, &mut self.log_bytes);
        self.analyzers.analyze_log(slot, &self.log_bytes);
        self.log_bytes.clear();
    }

    /// Number of connections so far.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Takes the reports of connections that have ended since the last call. Threads may deliver
    /// reports with delay.
    pub(super) fn finished(&mut self) -> Vec<ConnectionReport> {
        std::iter::from_fn(|| self.analyzers.report(false)).collect()
    }

    /// Ends the capture. Returns the remaining reports: first of ended connections, then of live
    /// ones in the order of their first segments. Each connection is freed when its report is
    /// created. `threads`: number of additional threads.
    pub(super) fn finish(mut self, threads: usize) -> impl Iterator<Item = ConnectionReport> {
        if threads > 0 {
            self.analyzers.restart_threads((threads + 1).ilog2());
        }
        let live = |slot: &usize| self.entries[*slot].has(LIVE);
        let mut slots: Vec<_> = (0..self.entries.len()).filter(live).collect();
        slots.sort_by_key(|slot| self.entries[*slot].number);
        let mut left = slots.into_iter();
        std::iter::from_fn(move || {
            while self.analyzers.wants_reports() {
                let next: Vec<_> = left.by_ref().take(PREFETCHED).collect();
                if next.is_empty() {
                    break;
                }
                self.end_all(&next);
            }
            self.analyzers.report(true)
        })
    }

    /// Ends several connections at the end of the capture.
    fn end_all(&mut self, slots: &[usize]) {
        self.prefetch(slots);
        for &slot in slots {
            self.confirm(slot);
            self.analyze_log(slot);
            let LifecycleState { end, copies, .. } = self.lifecycle[slot];
            self.analyzers.end(slot, end, copies);
        }
    }

    #[inline]
    fn find(&self, lookup: &Lookup) -> Option<usize> {
        if self.is(lookup.guess, &lookup.key) {
            return Some(lookup.guess);
        }
        self.index.find(lookup.hash, |slot| self.is(slot, &lookup.key))
    }

    /// Whether the slot holds a live connection with this key.
    #[inline(always)]
    fn is(&self, slot: usize, key: &Key) -> bool {
        self.entries.get(slot).is_some_and(|entry| entry.key == *key && entry.has(LIVE))
    }

    fn open(&mut self, lookup: &Lookup, segment: &Segment, high: bool) -> usize {
        if self.index.len() >= self.limits.connections {
            self.evict();
        }
        let mut entry = ConnectionEntry::new(lookup.key, high, self.count, segment.time);
        let lifecycle = LifecycleState::new(segment);
        // The first end is the sender of the first segment.
        entry.record(segment, 0);
        // No more segments are expected after an unanswered SYN or a RST.
        let opens = segment.flags.any(Flags::SYN) && !segment.flags.any(Flags::ACK);
        entry.set(ENDED, opens || lifecycle.has_ended());
        self.count += 1;
        self.chunks.add(&mut entry.log, segment, 0, segment.time);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.entries[slot] = entry;
                self.lifecycle[slot] = lifecycle;
                slot
            }
            None => {
                if self.entries.len() == SMALL_TABLE {
                    self.reserve();
                }
                self.entries.push(entry);
                self.lifecycle.push(lifecycle);
                self.entries.len() - 1
            }
        };
        self.index.insert(self.hashes.hash_one(lookup.key), slot);
        slot
    }

    /// Reserves entries for many connections, so that they are not moved when the table grows.
    /// Unused memory is not committed.
    #[cold]
    fn reserve(&mut self) {
        let more = self.limits.connections.min(MAX_RESERVED);
        self.entries.reserve_exact(more);
        self.lifecycle.reserve_exact(more);
    }

    /// Evicts one of the next entries: preferably an ended connection, then one with a single
    /// segment, then the one that has been idle the longest.
    fn evict(&mut self) {
        let length = self.entries.len();
        let nearby = (0..length.min(CANDIDATES)).map(|step| (self.sweep_slot + step) % length);
        let victim = nearby.filter(|&slot| self.entries[slot].has(LIVE)).min_by_key(|&slot| {
            let entry = &self.entries[slot];
            (!entry.has(ENDED), !entry.has(SINGLE), entry.last)
        });
        self.sweep_slot = (self.sweep_slot + CANDIDATES) % length.max(1);
        if let Some(slot) = victim {
            self.end(slot, true);
        }
    }

    /// Removes the next entry if its connection ended long enough ago.
    #[inline]
    fn sweep(&mut self, now: Nanos) {
        self.sweep_slot += 1;
        if self.sweep_slot >= self.entries.len() {
            self.sweep_slot = 0;
        }
        let slot = self.sweep_slot;
        let gone =
            |entry: &ConnectionEntry| entry.has(ENDED) && now.saturating_sub(entry.last) > LINGER;
        if self.entries.get(slot).is_some_and(gone) {
            self.end(slot, false);
        }
    }

    fn end(&mut self, slot: usize, evicted: bool) {
        self.confirm(slot);
        self.analyze_log(slot);
        let (entry, lifecycle) = (&mut self.entries[slot], &self.lifecycle[slot]);
        self.index.remove(self.hashes.hash_one(entry.key), slot);
        // The entry can no longer be found or swept.
        entry.set(LIVE | ENDED, false);
        self.free.push(slot);
        self.granted_points -= 2 * lifecycle.points;
        let cut = evicted && lifecycle.end == End::Open;
        self.analyzers.end(slot, if cut { End::Evicted } else { lifecycle.end }, lifecycle.copies);
    }
}

#[cfg(test)]
#[path = "../connection_tests.rs"]
mod tests;
