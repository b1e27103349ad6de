//! The table of connections: finds the one that a segment belongs to, and lets go of those that are over.

mod index;
mod key;
mod lane;
mod live;

use std::hash::BuildHasher;

use index::Index;
use key::{Hashes, Key};
use lane::Lane;
use live::{Connection, Most};

use crate::analysis::{ConnectionReport, Recent};
use crate::segment::{Flags, Nanos, Segment};

/// A connection that is over is kept so long for what is still under way: twice the longest time that a
/// packet lives, as common stacks have it.
const LINGER: Nanos = 60_000_000_000;
/// So many are looked at to find one that has been idle for long.
const CANDIDATES: usize = 64;

/// Segments after which one more connection is looked at, whether it is over.
const SWEEP_EVERY: u32 = 8;

/// Points of all connections that are alive.
const MOST_POINTS: usize = 1 << 20;
/// One connection is not granted a larger share than this of the points that are left.
const SHARE: usize = 16;
/// What is known of fewer connections stays in a processor's cache; their segments need not wait.
const FEW: usize = 256;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections alive at once; beyond, one that has been idle for long is reported as [`End::Evicted`](crate::End::Evicted).
    pub connections: usize,
    /// Loss indications and retransmissions kept one by one, each, of a direction.
    pub events: usize,
    /// Points of a time-sequence plot kept of a direction; 0 for none.
    pub points: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 1 << 16, events: 1 << 14, points: 0 }
    }
}

/// Follows all connections of a capture.
///
/// Segments go in by [`push`](Self::push), in the order of the capture; reports come out by [`finished`](Self::finished)
/// as connections end, and the rest by [`finish`](Self::finish).
#[derive(Debug)]
pub struct Connections {
    limits: Limits,
    index: Index,
    slots: Vec<Option<Box<Connection>>>,
    /// Beside each slot.
    lanes: Vec<Lane>,
    free: Vec<usize>,
    /// Where the last segment went.
    latest: usize,
    /// The slot that is looked at next, whether its connection is over.
    hand: usize,
    hashes: Hashes,
    marks: Hashes,
    recent: Recent,
    count: u64,
    pushed: u32,
    /// Points granted to connections that are alive.
    granted: usize,
    finished: Vec<ConnectionReport>,
    few: usize,
}

impl Default for Connections {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Connections {
    /// An empty table.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let hashes = Hashes::new();
        Self {
            limits: Limits { connections: limits.connections.max(1), ..limits },
            index: Index::new(),
            slots: Vec::new(),
            lanes: Vec::new(),
            free: Vec::new(),
            latest: 0,
            hand: 0,
            hashes,
            marks: Hashes::fixed(),
            recent: Recent::new(),
            count: 0,
            pushed: 0,
            granted: 0,
            finished: Vec::new(),
            few: FEW,
        }
    }

    /// The next segment of the capture; the number of its connection.
    #[inline]
    pub fn push(&mut self, segment: &Segment) -> u64 {
        let key = Key::of(segment);
        let mut place = self.find(&key);
        if let Some(found) = place.filter(|_| segment.flags.any(Flags::SYN)) {
            self.settle(found);
            if self.connection(found).is_some_and(|known| known.reopened_by(segment)) {
                self.end(found, false);
                place = None;
            }
        }
        let place = place.unwrap_or_else(|| self.open(key, segment));
        self.latest = place;
        let number = self.follow(place, segment);
        self.pushed = self.pushed.wrapping_add(1);
        if self.pushed % SWEEP_EVERY == 0 {
            self.sweep(segment.time);
        }
        number
    }

    /// Shows a segment to its connection, at once or when there are several; the connection's number.
    #[inline]
    fn follow(&mut self, place: usize, segment: &Segment) -> u64 {
        let slot = self.slots.get_mut(place).and_then(Option::as_mut);
        let (Some(connection), Some(lane)) = (slot, self.lanes.get_mut(place)) else { return 0 };
        let from = lane.from(segment);
        if self.recent.repeats(segment, lane.number, lane.twice[from], &self.marks) {
            lane.twice[from] = true;
            connection.duplicate(segment);
            return lane.number;
        }
        lane.last = lane.last.max(segment.time);
        if self.index.len() >= self.few && lane.take(segment, from) {
            if lane.is_full() {
                lane.settle(connection);
            }
            return lane.number;
        }
        if !lane.is_empty() {
            lane.settle(connection);
        }
        connection.push(segment);
        lane.over = connection.over();
        lane.number
    }

    /// Follows what waits at a place.
    fn settle(&mut self, place: usize) {
        let slot = self.slots.get_mut(place).and_then(Option::as_mut);
        if let (Some(connection), Some(lane)) = (slot, self.lanes.get_mut(place)) {
            lane.settle(connection);
        }
    }

    /// Connections that were followed.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Takes the reports of connections that have ended since the last call.
    pub fn finished(&mut self) -> Vec<ConnectionReport> {
        std::mem::take(&mut self.finished)
    }

    /// The capture ends: the reports that nobody has taken yet, then those of all that are left, in the order of
    /// their first segments. Each connection goes as its report is made.
    pub fn finish(mut self) -> impl Iterator<Item = ConnectionReport> {
        (0..self.slots.len()).for_each(|place| self.settle(place));
        let mut left: Vec<_> = self.slots.into_iter().flatten().collect();
        left.sort_by_key(|connection| connection.number());
        self.finished.into_iter().chain(left.into_iter().map(|connection| connection.report(false)))
    }

    #[inline]
    fn find(&self, key: &Key) -> Option<usize> {
        // The lane of a place that is free stays, but its connection is not in the index.
        let is = |place: usize| self.lanes.get(place).is_some_and(|lane| lane.key == *key);
        if is(self.latest) && self.connection(self.latest).is_some() {
            return Some(self.latest);
        }
        self.index.find(self.hashes.hash_one(key), is)
    }

    #[inline(always)]
    fn connection(&self, place: usize) -> Option<&Connection> {
        self.slots.get(place)?.as_deref()
    }

    fn open(&mut self, key: Key, segment: &Segment) -> usize {
        if self.index.len() >= self.limits.connections {
            self.evict();
        }
        // Both directions have points of their own.
        let points = self.limits.points.min((MOST_POINTS - self.granted) / SHARE / 2);
        self.granted += 2 * points;
        let most = Most { events: self.limits.events, points };
        let connection = Connection::new(self.count, segment, most);
        let lane = Lane::new(key, self.count, segment);
        self.count += 1;
        let slot = Some(Box::new(connection));
        let place = match self.free.pop() {
            Some(place) => {
                self.slots[place] = slot;
                self.lanes[place] = lane;
                place
            }
            None => {
                self.slots.push(slot);
                self.lanes.push(lane);
                self.slots.len() - 1
            }
        };
        self.index.insert(self.hashes.hash_one(key), place);
        place
    }

    /// Ends the one of the next few that is over or, if none is, has been idle for longest.
    fn evict(&mut self) {
        let length = self.slots.len();
        let nearby = (0..length.min(CANDIDATES)).map(|step| (self.hand + step) % length);
        let victim = nearby
            .filter(|&place| self.connection(place).is_some())
            .min_by_key(|&place| (!self.lanes[place].over, self.lanes[place].last));
        self.hand = (self.hand + CANDIDATES) % length.max(1);
        if let Some(place) = victim {
            self.end(place, true);
        }
    }

    /// Looks at one connection, whether it is over for long enough.
    #[inline]
    fn sweep(&mut self, now: Nanos) {
        self.hand += 1;
        if self.hand >= self.slots.len() {
            self.hand = 0;
        }
        let place = self.hand;
        let gone = |lane: &Lane| lane.over && now.saturating_sub(lane.last) > LINGER;
        if self.lanes.get(place).is_some_and(gone) {
            self.end(place, false);
        }
    }

    fn end(&mut self, place: usize, evicted: bool) {
        self.settle(place);
        if let Some(connection) = self.slots.get_mut(place).and_then(Option::take) {
            self.index.remove(self.hashes.hash_one(self.lanes[place].key), place);
            self.free.push(place);
            self.granted -= 2 * connection.most_points;
            self.finished.push(connection.report(evicted));
        }
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
