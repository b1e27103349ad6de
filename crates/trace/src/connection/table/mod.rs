//! The table of connections: looks up the connection of a segment, and removes ended connections.

mod connection_entry;
mod connection_key;
mod lifecycle;
mod prefetch;
mod segment_log;
mod slot_index;

pub(super) use prefetch::LOOKUP_BATCH;

use std::hash::BuildHasher;

use connection_entry::{ConnectionEntry, ENDED, LIVE, SINGLE};
use connection_key::{ConnectionKey, KeyHasherBuilder};
use lifecycle::{LIFECYCLE_FLAGS, LifecycleState};
use prefetch::SlotLookup;
use segment_log::LogChunks;
use slot_index::SlotIndex;

use super::MemoryLimits;
use super::connection_state::{Connection, ConnectionBeginning};
use super::segment_encoding::decode_segments;
use crate::analysis::{
    ConnectionEnd, ConnectionReport, EventQuota, ObservedEnd, RecentSegments, is_copy_of_recent,
};
use crate::segment::{Flags, Nanos, Segment};

/// A closed connection is kept this long for packets in flight: twice the maximum segment lifetime
/// of common stacks.
const CLOSED_LIFETIME: Nanos = 60_000_000_000;
/// Number of entries examined to find one to evict.
const EVICTION_CANDIDATES: usize = 64;

/// Maximum number of entries reserved in advance.
const MAX_RESERVED_ENTRIES: usize = 1 << 16;

/// Number of segments after which the next entry is checked for removal.
const SEGMENTS_PER_SWEEP: u64 = 8;

/// Maximum number of loss indications and retransmissions listed for all live connections.
const MAX_EVENTS: usize = 1 << 20;
/// Maximum number of plot points of all live connections.
const MAX_POINTS: usize = 1 << 20;
/// Maximum share (one sixteenth) of the remaining points granted to a connection.
const POINTS_DIVISOR: usize = 16;
/// Number of connections up to which the table is small.
const MAX_SMALL_TABLE: usize = 256;

/// All live connections.
#[derive(Debug)]
pub(super) struct ConnectionTable {
    limits: MemoryLimits,
    index: SlotIndex,
    /// Entries of the connections, by slot.
    entries: Vec<ConnectionEntry>,
    /// Lifecycle of the connections, by slot.
    lifecycle: Vec<LifecycleState>,
    chunks: LogChunks,
    /// Buffer for a complete log.
    log_bytes: Vec<u8>,
    free: Vec<usize>,
    /// Analyses of the connections, by slot; `None` until the first log is analysed.
    analyses: Vec<Option<Box<Connection>>>,
    /// Events that all connections may list.
    pub(super) quota: EventQuota,
    /// Reports of ended connections since [`ConnectionTable::take_finished`].
    finished: Vec<ConnectionReport>,
    /// Slot of the last segment.
    latest_slot: usize,
    /// Next slot to be checked for removal.
    sweep_slot: usize,
    hashes: KeyHasherBuilder,
    marks: KeyHasherBuilder,
    recent: RecentSegments,
    count: u64,
    pushed: u64,
    /// Plot points granted to live connections.
    granted_points: usize,
    pub(super) small_limit: usize,
    /// Lookups of the segments that are processed together; for each segment, the index of its
    /// lookup, and whether it comes from the higher end.
    lookups: Vec<SlotLookup>,
    owners: Vec<(usize, bool)>,
}

impl ConnectionTable {
    pub(super) fn new(limits: MemoryLimits) -> Self {
        let hashes = KeyHasherBuilder::new();
        Self {
            limits: MemoryLimits { connections: limits.connections.max(1), ..limits },
            index: SlotIndex::new(),
            entries: Vec::new(),
            lifecycle: Vec::new(),
            chunks: LogChunks::new(),
            log_bytes: Vec::new(),
            free: Vec::new(),
            analyses: Vec::new(),
            quota: EventQuota::new(MAX_EVENTS),
            finished: Vec::new(),
            latest_slot: 0,
            sweep_slot: 0,
            hashes,
            marks: KeyHasherBuilder::with_fixed_parameters(),
            recent: RecentSegments::new(),
            count: 0,
            pushed: 0,
            granted_points: 0,
            small_limit: MAX_SMALL_TABLE,
            lookups: Vec::new(),
            owners: Vec::new(),
        }
    }

    /// Whether all connections fit into the processor's cache, so that segments are analysed
    /// immediately. For one connection, this saves 14 % of the CPU time.
    #[inline(always)]
    pub(super) fn fits_processor_cache(&self) -> bool {
        self.index.len() < self.small_limit
    }

    /// Processes the next segment of the capture. Returns the number of its connection.
    #[inline]
    pub(super) fn push_segment(&mut self, segment: &Segment) -> u64 {
        let (key, high) = ConnectionKey::of_segment(segment);
        // Usually the connection of the last segment. With the guesses of the prefetch, this saves
        // 15 % of the CPU time for 50,000 connections.
        let guess = self.latest_slot;
        let hash = if self.slot_has_key(guess, &key) { 0 } else { self.hashes.hash_one(key) };
        self.process_with_lookup(segment, &SlotLookup { key, hash, guess }, high)
    }

    /// Looks up or opens the segment's connection. Returns its number. `high`: the segment comes
    /// from the higher end.
    #[inline]
    fn process_with_lookup(&mut self, segment: &Segment, lookup: &SlotLookup, high: bool) -> u64 {
        let mut slot = self.find_slot(lookup);
        if let Some(old) = slot.filter(|_| segment.flags.contains_any(Flags::SYN)) {
            if self.reopens_connection(old, segment, high) {
                self.end_connection(old, false, Nanos::MAX);
                slot = None;
            }
        }
        let number = match slot {
            Some(slot) => {
                self.latest_slot = slot;
                self.deliver_unless_copy(slot, segment, high)
            }
            None => {
                self.latest_slot = self.open_connection(lookup, segment, high);
                self.store_first_segment(segment)
            }
        };
        self.pushed = self.pushed.wrapping_add(1);
        if self.pushed % SEGMENTS_PER_SWEEP == 0 {
            self.remove_if_ended(segment.time);
        }
        number
    }

    /// Stores the first segment of the latest connection for copy detection. Returns the
    /// connection's number.
    #[inline(never)]
    fn store_first_segment(&mut self, segment: &Segment) -> u64 {
        let number = self.count - 1;
        self.recent.find_copy_and_store(segment, number, &self.marks);
        number
    }

    /// Passes a segment to its connection, unless it is a copy. Returns the connection's number.
    #[inline]
    fn deliver_unless_copy(&mut self, slot: usize, segment: &Segment, high: bool) -> u64 {
        let Some(entry) = self.entries.get_mut(slot) else { return 0 };
        let (number, from) = (entry.number, entry.sender_index(high));
        if let Some(since) = self.recent.find_copy_and_store(segment, number, &self.marks) {
            let distinct_ids = entry.has_distinct_ids(from);
            if is_copy_of_recent(segment, since, entry.has_duplicated_frames(from), distinct_ids) {
                self.count_copy(slot, segment, from, since);
                return number;
            }
        }
        entry.record_segment(segment, from);
        if segment.flags.contains_any(LIFECYCLE_FLAGS) {
            self.update_lifecycle(slot, segment, from);
        }
        self.grant_points_if_single(slot);
        if self.fits_processor_cache() {
            self.analyze_log_and_segment(slot, segment);
        } else {
            self.append_to_log(slot, segment, from);
        }
        number
    }

    /// Analyses the log of a slot, then a segment.
    #[inline]
    fn analyze_log_and_segment(&mut self, slot: usize, segment: &Segment) {
        self.analyze_slot_log(slot);
        if let Some(entry) = self.entries.get_mut(slot) {
            entry.last = entry.last.max(segment.time);
        }
        if let Some(Some(connection)) = self.analyses.get_mut(slot) {
            connection.process_segment(segment, &self.quota);
        }
    }

    /// Appends a segment to the log.
    #[inline]
    fn append_to_log(&mut self, slot: usize, segment: &Segment, from: usize) {
        let Some(entry) = self.entries.get_mut(slot) else { return };
        let is_full = self.chunks.append_segment(&mut entry.log, segment, from, entry.last);
        entry.last = entry.last.max(segment.time);
        if is_full {
            self.analyze_slot_log(slot);
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
        lifecycle.process_segment(segment, from, entry.has_sent_non_syn(from));
        entry.set_bit(ENDED, lifecycle.has_ended());
    }

    /// Counts a copy of a segment captured at `since`.
    #[cold]
    fn count_copy(&mut self, slot: usize, segment: &Segment, from: usize, since: Nanos) {
        self.grant_points_if_single(slot);
        let Some(entry) = self.entries.get_mut(slot) else { return };
        entry.set_duplicated_frames(from);
        // No sender sends data twice at the same time: all frames are captured twice, including
        // those of the other end.
        let occupies = segment.payload > 0 || segment.flags.contains_any(Flags::SYN);
        if segment.time == since && occupies {
            entry.set_duplicated_frames(1 - from);
        }
        self.lifecycle[slot].copies[from] += 1;
    }

    /// Called for each segment after the first.
    #[inline]
    fn grant_points_if_single(&mut self, slot: usize) {
        if self.entries.get(slot).is_some_and(|entry| entry.has_bit(SINGLE)) {
            self.grant_plot_points(slot);
        }
    }

    #[cold]
    fn grant_plot_points(&mut self, slot: usize) {
        // Each direction has its own points.
        let points =
            self.limits.points.min((MAX_POINTS - self.granted_points) / POINTS_DIVISOR / 2);
        self.granted_points += 2 * points;
        let (entry, lifecycle) = (&mut self.entries[slot], &mut self.lifecycle[slot]);
        lifecycle.points = points;
        entry.set_bit(SINGLE, false);
        entry.set_bit(ENDED, lifecycle.has_ended());
    }

    /// Begins the analysis of a connection.
    #[cold]
    fn begin_analysis(&mut self, slot: usize) {
        let (entry, lifecycle) = (&self.entries[slot], &self.lifecycle[slot]);
        let LifecycleState { frame, time, points, .. } = *lifecycle;
        let (number, ends) = (entry.number, entry.ends());
        let beginning = ConnectionBeginning { number, frame, time, ends, points };
        let connection = Connection::new(beginning, self.limits.events);
        self.analyses[slot] = Some(Box::new(connection));
    }

    /// Whether a SYN opens a new connection with the ends of this one.
    fn reopens_connection(&self, slot: usize, syn: &Segment, high: bool) -> bool {
        let (entry, lifecycle) = (&self.entries[slot], &self.lifecycle[slot]);
        let from = entry.sender_index(high);
        lifecycle.opens_new_connection(syn, from, entry.has_sent_non_syn(from))
    }

    /// Analyses the log of a slot.
    #[inline]
    fn analyze_slot_log(&mut self, slot: usize) {
        if self.analyses.get(slot).is_some_and(Option::is_none) {
            self.begin_analysis(slot);
        }
        let Some(entry) = self.entries.get_mut(slot) else { return };
        if entry.log.is_empty() {
            return;
        }
        self.chunks.release_log(&mut entry.log, &mut self.log_bytes);
        if let Some(Some(connection)) = self.analyses.get_mut(slot) {
            let (last, ends) = (connection.last_time(), connection.ends());
            decode_segments(&self.log_bytes, last, ends, |segment| {
                connection.process_segment(segment, &self.quota)
            });
        }
        self.log_bytes.clear();
    }

    /// Ends the analysis of a connection, and returns its report.
    fn end_analysis(&mut self, slot: usize, end: ObservedEnd) -> Option<ConnectionReport> {
        self.grant_points_if_single(slot);
        self.analyze_slot_log(slot);
        let connection = self.analyses.get_mut(slot)?.take()?;
        Some(connection.into_report(end, self.lifecycle[slot].copies, &self.quota))
    }

    /// Number of connections so far.
    pub(super) fn connection_count(&self) -> u64 {
        self.count
    }

    /// Takes the reports of connections that have ended since the last call.
    pub(super) fn take_finished(&mut self) -> Vec<ConnectionReport> {
        std::mem::take(&mut self.finished)
    }

    /// Ends the capture. Returns the remaining reports: first of ended connections, then of live
    /// ones in the order of their first segments. Each connection is freed when its report is
    /// created.
    pub(super) fn into_remaining_reports(mut self) -> impl Iterator<Item = ConnectionReport> {
        let live = |slot: &usize| self.entries[*slot].has_bit(LIVE);
        let mut slots: Vec<_> = (0..self.entries.len()).filter(live).collect();
        slots.sort_by_key(|slot| self.entries[*slot].number);
        let latest = slots.iter().map(|slot| self.entries[*slot].last).max().unwrap_or(0);
        let finished = self.take_finished();
        finished.into_iter().chain(slots.into_iter().filter_map(move |slot| {
            let observed = latest.saturating_sub(self.entries[slot].last);
            self.end_analysis(slot, ObservedEnd::new(self.lifecycle[slot].end, observed))
        }))
    }

    #[inline]
    fn find_slot(&self, lookup: &SlotLookup) -> Option<usize> {
        if self.slot_has_key(lookup.guess, &lookup.key) {
            return Some(lookup.guess);
        }
        self.index.find(lookup.hash, |slot| self.slot_has_key(slot, &lookup.key))
    }

    /// Whether the slot holds a live connection with this key.
    #[inline(always)]
    fn slot_has_key(&self, slot: usize, key: &ConnectionKey) -> bool {
        self.entries.get(slot).is_some_and(|entry| entry.key == *key && entry.has_bit(LIVE))
    }

    fn open_connection(&mut self, lookup: &SlotLookup, segment: &Segment, high: bool) -> usize {
        if self.index.len() >= self.limits.connections {
            self.evict_one(segment.time);
        }
        let mut entry = ConnectionEntry::new(lookup.key, high, self.count, segment.time);
        let lifecycle = LifecycleState::new(segment);
        // The first end is the sender of the first segment.
        entry.record_segment(segment, 0);
        // No more segments are expected after an unanswered SYN or a RST.
        let opens =
            segment.flags.contains_any(Flags::SYN) && !segment.flags.contains_any(Flags::ACK);
        entry.set_bit(ENDED, opens || lifecycle.has_ended());
        self.count += 1;
        self.chunks.append_segment(&mut entry.log, segment, 0, segment.time);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.entries[slot] = entry;
                self.lifecycle[slot] = lifecycle;
                slot
            }
            None => {
                if self.entries.len() == MAX_SMALL_TABLE {
                    self.reserve_entries();
                }
                self.entries.push(entry);
                self.lifecycle.push(lifecycle);
                self.analyses.push(None);
                self.entries.len() - 1
            }
        };
        self.index.insert(self.hashes.hash_one(lookup.key), slot);
        slot
    }

    /// Reserves entries for many connections, so that they are not moved when the table grows.
    /// Unused memory is not committed.
    #[cold]
    fn reserve_entries(&mut self) {
        let more = self.limits.connections.min(MAX_RESERVED_ENTRIES);
        self.entries.reserve_exact(more);
        self.lifecycle.reserve_exact(more);
        self.analyses.reserve_exact(more);
    }

    /// Evicts one of the next entries: preferably an ended connection, then one with a single
    /// segment, then the one that has been idle the longest.
    fn evict_one(&mut self, now: Nanos) {
        let length = self.entries.len();
        let nearby =
            (0..length.min(EVICTION_CANDIDATES)).map(|step| (self.sweep_slot + step) % length);
        let victim = nearby.filter(|&slot| self.entries[slot].has_bit(LIVE)).min_by_key(|&slot| {
            let entry = &self.entries[slot];
            (!entry.has_bit(ENDED), !entry.has_bit(SINGLE), entry.last)
        });
        self.sweep_slot = (self.sweep_slot + EVICTION_CANDIDATES) % length.max(1);
        if let Some(slot) = victim {
            self.end_connection(slot, true, now);
        }
    }

    /// Removes the next entry if its connection ended long enough ago.
    #[inline]
    fn remove_if_ended(&mut self, now: Nanos) {
        self.sweep_slot += 1;
        if self.sweep_slot >= self.entries.len() {
            self.sweep_slot = 0;
        }
        let slot = self.sweep_slot;
        let gone = |entry: &ConnectionEntry| {
            entry.has_bit(ENDED) && now.saturating_sub(entry.last) > CLOSED_LIFETIME
        };
        if self.entries.get(slot).is_some_and(gone) {
            self.end_connection(slot, false, now);
        }
    }

    /// Ends a connection, whose packets were awaited until `now`, or would not have come any more.
    fn end_connection(&mut self, slot: usize, evicted: bool, now: Nanos) {
        let (last, end) = (self.entries[slot].last, self.lifecycle[slot].end);
        let cut = evicted && end == ConnectionEnd::Open;
        let end = if cut { ConnectionEnd::Evicted } else { end };
        let report = self.end_analysis(slot, ObservedEnd::new(end, now.saturating_sub(last)));
        self.finished.extend(report);
        let entry = &mut self.entries[slot];
        self.index.remove(self.hashes.hash_one(entry.key), slot);
        // The entry can no longer be found or swept.
        entry.set_bit(LIVE | ENDED, false);
        self.free.push(slot);
        self.granted_points -= 2 * self.lifecycle[slot].points;
    }
}

#[cfg(test)]
#[path = "../connection_tests.rs"]
mod tests;
