//! The table of connections: finds the one that a segment belongs to, and lets go of those that are over.

mod index;
mod key;
mod live;

use std::hash::BuildHasher;

use index::Index;
use key::{Hashes, Key};
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
    free: Vec<usize>,
    /// Where the last segment went.
    latest: usize,
    /// The slot that is looked at next, whether its connection is over.
    hand: usize,
    hashes: Hashes,
    recent: Recent,
    count: u64,
    pushed: u32,
    /// Points granted to connections that are alive.
    granted: usize,
    finished: Vec<ConnectionReport>,
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
            free: Vec::new(),
            latest: 0,
            hand: 0,
            hashes,
            recent: Recent::new(),
            count: 0,
            pushed: 0,
            granted: 0,
            finished: Vec::new(),
        }
    }

    /// The next segment of the capture; the number of its connection.
    #[inline]
    pub fn push(&mut self, segment: &Segment) -> u64 {
        let key = Key::of(segment);
        let mut place = self.find(&key);
        if let Some(found) = place {
            let reopens = segment.flags.any(Flags::SYN)
                && self.connection(found).is_some_and(|known| known.reopened_by(segment));
            if reopens {
                self.end(found, false);
                place = None;
            }
        }
        let place = place.unwrap_or_else(|| self.open(key, segment));
        self.latest = place;
        let mut number = 0;
        if let Some(connection) = self.slots.get_mut(place).and_then(Option::as_mut) {
            number = connection.number();
            let usual = connection.duplicates(segment) > 0;
            if self.recent.repeats(segment, number, usual, &self.hashes) {
                connection.duplicate(segment);
            } else {
                connection.push(segment);
            }
        }
        self.pushed = self.pushed.wrapping_add(1);
        if self.pushed % SWEEP_EVERY == 0 {
            self.sweep(segment.time);
        }
        number
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
    pub fn finish(self) -> impl Iterator<Item = ConnectionReport> {
        let mut left: Vec<_> = self.slots.into_iter().flatten().collect();
        left.sort_by_key(|connection| connection.number());
        self.finished.into_iter().chain(left.into_iter().map(|connection| connection.report(false)))
    }

    #[inline]
    fn find(&self, key: &Key) -> Option<usize> {
        let is = |place| self.connection(place).is_some_and(|known| known.key == *key);
        if is(self.latest) {
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
        let connection = Connection::new(self.count, key, segment, most);
        self.count += 1;
        let slot = Some(Box::new(connection));
        let place = match self.free.pop() {
            Some(place) => {
                self.slots[place] = slot;
                place
            }
            None => {
                self.slots.push(slot);
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
            .filter_map(|place| self.connection(place).map(|known| (place, known)))
            .min_by_key(|(_, known)| (!known.over(), known.last))
            .map(|(place, _)| place);
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
        let gone = self
            .connection(place)
            .is_some_and(|known| known.over() && now.saturating_sub(known.last) > LINGER);
        if gone {
            self.end(place, false);
        }
    }

    fn end(&mut self, place: usize, evicted: bool) {
        if let Some(connection) = self.slots.get_mut(place).and_then(Option::take) {
            self.index.remove(self.hashes.hash_one(connection.key), place);
            self.free.push(place);
            self.granted -= 2 * connection.most_points;
            self.finished.push(connection.report(evicted));
        }
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
