//! The table of connections: finds the one that a segment belongs to, and lets go of those that are over.

mod prefetch;
mod index;
mod key;
mod entry;
mod log;
mod lifecycle;

pub(super) use prefetch::TOGETHER;
pub(super) use log::MAX_BYTES as MAX_LOG_BYTES;

use std::hash::BuildHasher;

use prefetch::Lookup;
use index::Index;
use key::{Hashes, Key};
use entry::{LIVE, SINGLE, ConnectionEntry, ENDED};
use log::{Chunks, LogState};
use lifecycle::{LIFECYCLE_FLAGS, LifecycleState};

use super::Limits;
use super::analyzer::PREFETCHED;
use super::analyzers::Analyzers;
use super::state::Beginning;
use crate::analysis::{EventQuota, ConnectionReport, End, RecentSegments, is_copy};
use crate::segment::{Flags, Nanos, Segment};

/// A closed connection is kept this long for packets still in flight: twice the longest time that a
/// packet lives, as common stacks have it.
const LINGER: Nanos = 60_000_000_000;
/// So many are looked at to find one that has been idle for long.
const CANDIDATES: usize = 64;

/// Room is made for so many at once.
const MAX_ROOM: usize = 1 << 16;

/// Segments after which one more connection is looked at, whether it is over.
const SWEEP_EVERY: u64 = 8;

/// Loss indications and retransmissions of all connections that are alive.
const MAX_EVENTS: usize = 1 << 20;
/// Points of all connections that are alive.
const MAX_POINTS: usize = 1 << 20;
/// One connection is not granted a larger share than this of the points that are left.
const SHARE: usize = 16;
/// So many connections are many.
const SMALL_TABLE: usize = 256;

/// All connections that are alive.
#[derive(Debug)]
pub(super) struct Table {
    limits: Limits,
    index: Index,
    /// Places of connections.
    entries: Vec<ConnectionEntry>,
    /// Beside each entry.
    lifecycle: Vec<LifecycleState>,
    chunks: Chunks,
    /// A log as a whole.
    log_bytes: Vec<u8>,
    free: Vec<usize>,
    pub(super) analyzers: Analyzers,
    /// Where the last segment went.
    latest: usize,
    /// The slot that is looked at next, whether its connection is over.
    sweep_slot: usize,
    hashes: Hashes,
    marks: Hashes,
    recent: RecentSegments,
    count: u64,
    pushed: u64,
    /// Points granted to connections that are alive.
    granted: usize,
    pub(super) small_limit: usize,
    /// The connections of segments that are looked up together, and of each segment, which it is, and whether it comes
    /// from the higher end.
    lookups: Vec<Lookup>,
    owners: Vec<(usize, bool)>,
    /// Places where there is enough to follow.
    due: Vec<usize>,
}

impl Table {
    /// An empty one.
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
            latest: 0,
            sweep_slot: 0,
            hashes,
            marks: Hashes::fixed(),
            recent: RecentSegments::new(),
            count: 0,
            pushed: 0,
            granted: 0,
            small_limit: SMALL_TABLE,
            lookups: Vec::new(),
            owners: Vec::new(),
            due: Vec::new(),
        }
    }

    /// What is known of all connections stays in a processor's cache: their segments need not wait.
    #[inline(always)]
    pub(super) fn is_small(&self) -> bool {
        self.index.len() < self.small_limit
    }

    /// From now on others follow, on so many threads or the next power of two below.
    pub(super) fn start_threads(&mut self, threads: usize) {
        if threads > 0 {
            self.analyzers.start_threads(threads.ilog2());
        }
    }

    /// The next segment of the capture; the number of its connection.
    #[inline]
    pub(super) fn push(&mut self, segment: &Segment) -> u64 {
        let (key, high) = Key::of(segment);
        // Most often it is where the last one was.
        let guess = self.latest;
        let hash = if self.is(guess, &key) { 0 } else { self.hashes.hash_one(key) };
        self.follow(segment, &Lookup { key, hash, guess }, high)
    }

    /// Finds the segment's connection, or opens it; its number. `high`: it comes from the higher end.
    #[inline]
    fn follow(&mut self, segment: &Segment, lookup: &Lookup, high: bool) -> u64 {
        let mut slot = self.find(lookup);
        if let Some(found) = slot.filter(|_| segment.flags.any(Flags::SYN)) {
            if self.reopens(found, segment, high) {
                self.end(found, false);
                slot = None;
            }
        }
        let number = match slot {
            Some(slot) => {
                self.latest = slot;
                self.deliver(slot, segment, high)
            }
            None => {
                self.latest = self.open(lookup, segment, high);
                self.note_first(segment)
            }
        };
        self.pushed = self.pushed.wrapping_add(1);
        if self.pushed % SWEEP_EVERY == 0 {
            self.sweep(segment.time);
        }
        number
    }

    /// Notes the first segment of the latest connection, so that a copy of it is known; the connection's number.
    #[inline(never)]
    fn note_first(&mut self, segment: &Segment) -> u64 {
        let number = self.count - 1;
        self.recent.find(segment, number, &self.marks);
        number
    }

    /// Shows a segment to its connection, at once or when there are several; the connection's number.
    #[inline]
    fn deliver(&mut self, slot: usize, segment: &Segment, high: bool) -> u64 {
        let Some(entry) = self.entries.get_mut(slot) else { return 0 };
        let (number, from) = (entry.number, entry.from(high));
        if let Some(since) = self.recent.find(segment, number, &self.marks) {
            let told = entry.has_distinct_ids(from);
            if is_copy(segment, since, entry.is_duplicated(from), told) {
                self.note_copy(slot, segment, from, since);
                return number;
            }
        }
        entry.note(segment, from);
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

    /// Lets the connection of a slot follow what waits, and then a segment.
    #[inline]
    fn analyze_now(&mut self, slot: usize, segment: &Segment, from: usize) {
        self.analyze_log(slot);
        let Some(entry) = self.entries.get_mut(slot) else { return };
        let last = entry.last;
        entry.last = last.max(segment.time);
        self.analyzers.push(slot, segment, from, last);
    }

    /// Lets a segment wait.
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

    /// A segment begins a connection, or ends it.
    #[cold]
    fn update_lifecycle(&mut self, slot: usize, segment: &Segment, from: usize) {
        let (Some(entry), Some(lifecycle)) = (self.entries.get_mut(slot), self.lifecycle.get_mut(slot))
        else {
            return;
        };
        lifecycle.read(segment, from);
        entry.set(ENDED, lifecycle.has_ended());
    }

    /// Counts a copy of a segment captured at `since`.
    #[cold]
    fn note_copy(&mut self, slot: usize, segment: &Segment, from: usize, since: Nanos) {
        self.confirm(slot);
        let Some(entry) = self.entries.get_mut(slot) else { return };
        entry.set_duplicated(from);
        // Nobody sends data twice at one moment: all was captured twice, what comes from the other end, too.
        let occupies = segment.payload > 0 || segment.flags.any(Flags::SYN);
        if segment.time == since && occupies {
            entry.set_duplicated(1 - from);
        }
        self.lifecycle[slot].copies[from] += 1;
    }

    /// Another segment than the first was captured.
    #[inline]
    fn confirm(&mut self, slot: usize) {
        if self.entries.get(slot).is_some_and(|entry| entry.has(SINGLE)) {
            self.grant(slot);
        }
    }

    #[cold]
    fn grant(&mut self, slot: usize) {
        // Both directions have points of their own.
        let points = self.limits.points.min((MAX_POINTS - self.granted) / SHARE / 2);
        self.granted += 2 * points;
        let (entry, lifecycle) = (&mut self.entries[slot], &mut self.lifecycle[slot]);
        lifecycle.points = points;
        entry.set(SINGLE, false);
        entry.set(ENDED, lifecycle.has_ended());
    }

    /// Begins to follow a connection.
    #[cold]
    fn begin(&mut self, slot: usize) {
        let (entry, lifecycle) = (&mut self.entries[slot], &self.lifecycle[slot]);
        entry.followed = true;
        let LifecycleState { frame, time, points, .. } = *lifecycle;
        let (number, ends) = (entry.number, entry.ends());
        self.analyzers.begin(slot, &Beginning { number, frame, time, ends, points });
    }

    /// Whether a SYN opens another connection than that of a slot.
    fn reopens(&self, slot: usize, syn: &Segment, high: bool) -> bool {
        let (entry, lifecycle) = (&self.entries[slot], &self.lifecycle[slot]);
        let from = entry.from(high);
        lifecycle.opens_new(syn, from, entry.has_talked(from))
    }

    /// Follows what waits at a slot.
    #[inline]
    fn analyze_log(&mut self, slot: usize) {
        let Some(entry) = self.entries.get(slot) else { return };
        if !entry.followed {
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

    /// Connections that were followed.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Takes the reports of connections that have ended since the last call; those that threads still work at come
    /// with a later one.
    pub(super) fn finished(&mut self) -> Vec<ConnectionReport> {
        std::iter::from_fn(|| self.analyzers.report(false)).collect()
    }

    /// The capture ends: the reports that nobody has taken yet, then those of all that are left, in the order of
    /// their first segments. Each connection goes as its report is made. `threads`: so many more than the caller's.
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

    /// The capture ends before these connections do.
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

    /// Whether the connection of a slot is that of the key.
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
        // The first end is that of the first segment.
        entry.note(segment, 0);
        // Of a SYN that nobody answers, and of a RST, no more is expected.
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
                    self.make_room();
                }
                self.entries.push(entry);
                self.lifecycle.push(lifecycle);
                self.entries.len() - 1
            }
        };
        self.index.insert(self.hashes.hash_one(lookup.key), slot);
        slot
    }

    /// Connections are many, perhaps as many as may be: what is kept of them is not to be moved as they become more.
    /// Memory that is not used is not taken.
    #[cold]
    fn make_room(&mut self) {
        let more = self.limits.connections.min(MAX_ROOM);
        self.entries.reserve_exact(more);
        self.lifecycle.reserve_exact(more);
    }

    /// Ends the one of the next few that is over, else one of a single segment, else the one that has been idle for
    /// longest.
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

    /// Looks at one connection, whether it is over for long enough.
    #[inline]
    fn sweep(&mut self, now: Nanos) {
        self.sweep_slot += 1;
        if self.sweep_slot >= self.entries.len() {
            self.sweep_slot = 0;
        }
        let slot = self.sweep_slot;
        let gone = |entry: &ConnectionEntry| entry.has(ENDED) && now.saturating_sub(entry.last) > LINGER;
        if self.entries.get(slot).is_some_and(gone) {
            self.end(slot, false);
        }
    }

    fn end(&mut self, slot: usize, evicted: bool) {
        self.confirm(slot);
        self.analyze_log(slot);
        let (entry, lifecycle) = (&mut self.entries[slot], &self.lifecycle[slot]);
        self.index.remove(self.hashes.hash_one(entry.key), slot);
        // It is looked for no more, nor swept away.
        entry.set(LIVE | ENDED, false);
        self.free.push(slot);
        self.granted -= 2 * lifecycle.points;
        let cut = evicted && lifecycle.end == End::Open;
        self.analyzers.end(slot, if cut { End::Evicted } else { lifecycle.end }, lifecycle.copies);
    }
}

#[cfg(test)]
#[path = "../connection_tests.rs"]
mod tests;
