//! The table of connections: finds the one that a segment belongs to, and lets go of those that are over.

mod ahead;
mod index;
mod key;
mod lane;
mod live;

use std::hash::BuildHasher;

use ahead::{FETCHED, Sought, TOGETHER};
use index::Index;
use key::{Hashes, Key};
use lane::{Lane, Waiting};
use live::{Connection, Most};

use crate::analysis::{Budget, ConnectionReport, Recent, copies};
use crate::segment::{Flags, Nanos, Segment};

/// A closed connection is kept this long for packets still in flight: twice the longest time that a
/// packet lives, as common stacks have it.
const LINGER: Nanos = 60_000_000_000;
/// So many are looked at to find one that has been idle for long.
const CANDIDATES: usize = 64;

/// Segments after which one more connection is looked at, whether it is over.
const SWEEP_EVERY: u32 = 8;

/// Loss indications and retransmissions of all connections that are alive.
const MOST_EVENTS: usize = 1 << 20;
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
    /// Loss indications and retransmissions kept one by one, each, of a direction; of all connections alive no more
    /// than a million. Those beyond are counted as omitted.
    pub events: usize,
    /// Points of a time-sequence plot kept of a direction; 0 for none.
    pub points: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 1 << 16, events: 1 << 14, points: 0 }
    }
}

/// What is kept of a connection.
#[derive(Clone, Debug, Default)]
enum Slot {
    #[default]
    Free,
    /// One segment was captured of it: a port scan is nothing else.
    Lone(Box<Segment>),
    Known(Box<Connection>),
}

impl Slot {
    #[inline(always)]
    fn known(&mut self) -> Option<&mut Connection> {
        match self {
            Self::Known(known) => Some(known),
            _ => None,
        }
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
    slots: Vec<Slot>,
    /// Beside each slot.
    lanes: Vec<Lane>,
    waiting: Vec<Waiting>,
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
    /// Events that may still be kept of them.
    events: Budget,
    finished: Vec<ConnectionReport>,
    few: usize,
    /// Segments that are put off, and what is known of them then.
    ahead: Vec<Segment>,
    sought: Vec<Sought>,
    /// Places where there is enough to follow.
    due: Vec<usize>,
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
            waiting: Vec::new(),
            free: Vec::new(),
            latest: 0,
            hand: 0,
            hashes,
            marks: Hashes::fixed(),
            recent: Recent::new(),
            count: 0,
            pushed: 0,
            granted: 0,
            events: Budget::new(MOST_EVENTS),
            finished: Vec::new(),
            few: FEW,
            ahead: Vec::new(),
            sought: Vec::new(),
            due: Vec::new(),
        }
    }

    /// The next segment of the capture.
    #[inline]
    pub fn push(&mut self, segment: &Segment) {
        if self.index.len() < self.few {
            self.number(segment);
            return;
        }
        self.ahead.push(*segment);
        if self.ahead.len() == TOGETHER {
            self.catch_up();
        }
    }

    /// The same, and at once the number of its connection, which takes longer where there are many.
    #[inline]
    pub fn number(&mut self, segment: &Segment) -> u64 {
        if !self.ahead.is_empty() {
            self.catch_up();
        }
        let (key, high) = Key::of(segment);
        // Most often it is where the last one was.
        let hash = if self.is_latest(&key) { 0 } else { self.hashes.hash_one(key) };
        self.follow(segment, &Sought { key, high, hash })
    }

    /// Finds the segment's connection, or opens it; its number.
    #[inline]
    fn follow(&mut self, segment: &Segment, sought: &Sought) -> u64 {
        let mut place = self.find(sought);
        if let Some(found) = place.filter(|_| segment.flags.any(Flags::SYN)) {
            self.settle(found);
            if self.reopens(found, segment) {
                self.end(found, false);
                place = None;
            }
        }
        let number = match place {
            Some(place) => {
                self.latest = place;
                self.show(place, segment, sought.high)
            }
            None => {
                self.latest = self.open(sought, segment);
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
    fn show(&mut self, place: usize, segment: &Segment, high: bool) -> u64 {
        let (Some(lane), Some(waiting)) = (self.lanes.get_mut(place), self.waiting.get_mut(place))
        else {
            return 0;
        };
        let (number, from) = (lane.number, lane.from(high));
        if let Some(since) = self.recent.find(segment, number, &self.marks) {
            if self.is_copy(place, segment, from, since) {
                return number;
            }
            return self.follow_up(place, segment);
        }
        // Most need not touch the connection.
        if self.index.len() >= self.few && !lane.lone && lane.take(waiting, segment, from) {
            if lane.is_due() {
                self.put_off(place);
            }
            return number;
        }
        self.follow_up(place, segment)
    }

    /// Lets the connection of a place follow what waits, and then a segment; the connection's number.
    #[inline]
    fn follow_up(&mut self, place: usize, segment: &Segment) -> u64 {
        if self.lanes.get(place).is_some_and(|lane| lane.lone) {
            self.meet(place);
        }
        let (Some(lane), Some(waiting)) = (self.lanes.get_mut(place), self.waiting.get(place))
        else {
            return 0;
        };
        let number = lane.number;
        let Some(known) = self.slots.get_mut(place).and_then(Slot::known) else { return number };
        lane.last = lane.last.max(segment.time);
        lane.settle(waiting, known, &self.events);
        known.push(segment, &self.events);
        lane.over = known.over();
        number
    }

    /// Whether a segment that looks like one captured at `since` is a copy of it; if so, it is counted.
    #[cold]
    fn is_copy(&mut self, place: usize, segment: &Segment, from: usize, since: Nanos) -> bool {
        if self.lanes.get(place).is_some_and(|lane| lane.lone) {
            self.meet(place);
        }
        self.settle(place);
        let (Some(lane), Some(known)) =
            (self.lanes.get_mut(place), self.slots.get_mut(place).and_then(Slot::known))
        else {
            return false;
        };
        let told = known.identifies(from);
        let copy = copies(segment, since, lane.twice[from], told);
        if copy {
            lane.twice[from] = true;
            // Nobody sends data twice at one moment: all was captured twice, what comes from the other end, too.
            let occupies = segment.payload > 0 || segment.flags.any(Flags::SYN);
            lane.twice[1 - from] |= segment.time == since && occupies;
            known.duplicate(segment);
        }
        copy
    }

    /// Begins to follow a connection of which one segment had been captured.
    #[cold]
    fn meet(&mut self, place: usize) {
        let Some(slot) = self.slots.get_mut(place) else { return };
        let Slot::Lone(first) = slot else { return };
        // Both directions have points of their own.
        let points = self.limits.points.min((MOST_POINTS - self.granted) / SHARE / 2);
        self.granted += 2 * points;
        let most = Most { events: self.limits.events, points };
        let lane = &mut self.lanes[place];
        let mut known = Connection::new(lane.number, first, most);
        known.push(first, &self.events);
        lane.lone = false;
        lane.over = known.over();
        *slot = Slot::Known(Box::new(known));
    }

    /// Whether a SYN opens another connection than that of a place.
    fn reopens(&mut self, place: usize, syn: &Segment) -> bool {
        if self.lanes.get(place).is_some_and(|lane| lane.lone) {
            self.meet(place);
        }
        self.connection(place).is_some_and(|known| known.reopened_by(syn))
    }

    /// Follows what waits at a place.
    fn settle(&mut self, place: usize) {
        let slot = self.slots.get_mut(place).and_then(Slot::known);
        let waiting = self.waiting.get(place);
        if let (Some(known), Some(lane), Some(waiting)) = (slot, self.lanes.get_mut(place), waiting)
        {
            lane.settle(waiting, known, &self.events);
        }
    }

    /// Connections that were followed.
    pub fn count(&mut self) -> u64 {
        self.catch_up();
        self.count
    }

    /// Takes the reports of connections that have ended since the last call.
    pub fn finished(&mut self) -> Vec<ConnectionReport> {
        self.catch_up();
        std::mem::take(&mut self.finished)
    }

    /// The capture ends: the reports that nobody has taken yet, then those of all that are left, in the order of
    /// their first segments. Each connection goes as its report is made.
    pub fn finish(mut self) -> impl Iterator<Item = ConnectionReport> {
        self.catch_up();
        let mut places: Vec<_> =
            (0..self.slots.len()).filter(|place| self.lanes[*place].live).collect();
        places.sort_by_key(|place| self.lanes[*place].number);
        let finished = std::mem::take(&mut self.finished);
        let groups = places.len().div_ceil(FETCHED);
        let rest = move |group| {
            let from = group * FETCHED;
            let group = &places[from..places.len().min(from + FETCHED)];
            self.last_of(group)
        };
        finished.into_iter().chain((0..groups).flat_map(rest))
    }

    /// The reports of connections that are cut off by the end of the capture.
    fn last_of(&mut self, places: &[usize]) -> Vec<ConnectionReport> {
        places.iter().for_each(|place| self.meet(*place));
        self.settle_all(places);
        let known: Vec<_> = places.iter().filter_map(|place| self.take(*place)).collect();
        known.into_iter().map(|known| known.report(false, &self.events)).collect()
    }

    #[inline]
    fn find(&self, sought: &Sought) -> Option<usize> {
        if self.is_latest(&sought.key) {
            return Some(self.latest);
        }
        self.index.find(sought.hash, |place| self.is(place, &sought.key))
    }

    /// Whether the connection of a place is that of the key.
    #[inline(always)]
    fn is(&self, place: usize, key: &Key) -> bool {
        self.lanes.get(place).is_some_and(|lane| lane.key == *key && lane.live)
    }

    #[inline(always)]
    fn is_latest(&self, key: &Key) -> bool {
        self.is(self.latest, key)
    }

    #[inline(always)]
    fn connection(&self, place: usize) -> Option<&Connection> {
        match self.slots.get(place)? {
            Slot::Known(known) => Some(known),
            _ => None,
        }
    }

    /// Takes the connection of a place out, that of one segment being made one.
    fn take(&mut self, place: usize) -> Option<Box<Connection>> {
        self.meet(place);
        match std::mem::take(self.slots.get_mut(place)?) {
            Slot::Known(known) => Some(known),
            _ => None,
        }
    }

    fn open(&mut self, sought: &Sought, segment: &Segment) -> usize {
        if self.index.len() >= self.limits.connections {
            self.evict();
        }
        let mut lane = Lane::new(sought.key, sought.high, self.count, segment.time);
        // Of a SYN that nobody answers, and of a RST, no more is expected.
        let opens = segment.flags.any(Flags::SYN) && !segment.flags.any(Flags::ACK);
        lane.over = opens || segment.flags.any(Flags::RST);
        self.count += 1;
        let slot = Slot::Lone(Box::new(*segment));
        let place = match self.free.pop() {
            Some(place) => {
                self.slots[place] = slot;
                self.lanes[place] = lane;
                place
            }
            None => {
                self.slots.push(slot);
                self.lanes.push(lane);
                self.waiting.push(Waiting::new());
                self.slots.len() - 1
            }
        };
        self.index.insert(self.hashes.hash_one(sought.key), place);
        place
    }

    /// Ends the one of the next few that is over, else one of a single segment, else the one that has been idle for
    /// longest.
    fn evict(&mut self) {
        let length = self.slots.len();
        let nearby = (0..length.min(CANDIDATES)).map(|step| (self.hand + step) % length);
        let victim = nearby.filter(|&place| self.lanes[place].live).min_by_key(|&place| {
            let lane = &self.lanes[place];
            (!lane.over, !lane.lone, lane.last)
        });
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
        if let Some(connection) = self.take(place) {
            self.index.remove(self.hashes.hash_one(self.lanes[place].key), place);
            self.lanes[place].live = false;
            self.free.push(place);
            self.granted -= 2 * connection.most_points;
            self.finished.push(connection.report(evicted, &self.events));
        }
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
