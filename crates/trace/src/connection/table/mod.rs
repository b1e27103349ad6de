//! The table of connections: finds the one that a segment belongs to, and lets go of those that are over.

mod ahead;
mod index;
mod key;
mod lane;
mod log;
mod turns;

pub(super) use ahead::TOGETHER;
pub(super) use log::MOST as MOST_OF_LOG;

use std::hash::BuildHasher;

use ahead::Sought;
use index::Index;
use key::{Hashes, Key};
use lane::{LIVE, LONE, Lane, OVER};
use log::{Chunks, Length};
use turns::{TURNS, Turns};

use super::Limits;
use super::follower::FETCHED;
use super::followers::Followers;
use super::live::Beginning;
use crate::analysis::{Budget, ConnectionReport, End, Recent, copies};
use crate::segment::{Flags, Nanos, Segment};

/// A closed connection is kept this long for packets still in flight: twice the longest time that a
/// packet lives, as common stacks have it.
const LINGER: Nanos = 60_000_000_000;
/// So many are looked at to find one that has been idle for long.
const CANDIDATES: usize = 64;

/// Room is made for so many at once.
const MOST_ROOM: usize = 1 << 16;

/// Segments after which one more connection is looked at, whether it is over.
const SWEEP_EVERY: u64 = 8;

/// Loss indications and retransmissions of all connections that are alive.
const MOST_EVENTS: usize = 1 << 20;
/// Points of all connections that are alive.
const MOST_POINTS: usize = 1 << 20;
/// One connection is not granted a larger share than this of the points that are left.
const SHARE: usize = 16;
/// So many connections are many.
const FEW: usize = 256;

/// All connections that are alive.
#[derive(Debug)]
pub(super) struct Table {
    limits: Limits,
    index: Index,
    /// Places of connections.
    lanes: Vec<Lane>,
    /// Beside each lane.
    turns: Vec<Turns>,
    chunks: Chunks,
    /// A log as a whole.
    whole: Vec<u8>,
    free: Vec<usize>,
    pub(super) followers: Followers,
    /// Where the last segment went.
    latest: usize,
    /// The place that is looked at next, whether its connection is over.
    hand: usize,
    hashes: Hashes,
    marks: Hashes,
    recent: Recent,
    count: u64,
    pushed: u64,
    /// Points granted to connections that are alive.
    granted: usize,
    pub(super) few: usize,
    /// The connections of segments that are looked up together, and of each segment, which it is, and whether it comes
    /// from the higher end.
    sought: Vec<Sought>,
    whose: Vec<(usize, bool)>,
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
            lanes: Vec::new(),
            turns: Vec::new(),
            chunks: Chunks::new(),
            whole: Vec::new(),
            free: Vec::new(),
            followers: Followers::new(limits.events, Budget::new(MOST_EVENTS)),
            latest: 0,
            hand: 0,
            hashes,
            marks: Hashes::fixed(),
            recent: Recent::new(),
            count: 0,
            pushed: 0,
            granted: 0,
            few: FEW,
            sought: Vec::new(),
            whose: Vec::new(),
            due: Vec::new(),
        }
    }

    /// What is known of all connections stays in a processor's cache: their segments need not wait.
    #[inline(always)]
    pub(super) fn is_small(&self) -> bool {
        self.index.len() < self.few
    }

    /// From now on others follow, on so many threads or the next power of two below.
    pub(super) fn part(&mut self, threads: usize) {
        if threads > 0 {
            self.followers.part(threads.ilog2());
        }
    }

    /// The next segment of the capture; the number of its connection.
    #[inline]
    pub(super) fn push(&mut self, segment: &Segment) -> u64 {
        let (key, high) = Key::of(segment);
        // Most often it is where the last one was.
        let guess = self.latest;
        let hash = if self.is(guess, &key) { 0 } else { self.hashes.hash_one(key) };
        self.follow(segment, &Sought { key, hash, guess }, high)
    }

    /// Finds the segment's connection, or opens it; its number. `high`: it comes from the higher end.
    #[inline]
    fn follow(&mut self, segment: &Segment, sought: &Sought, high: bool) -> u64 {
        let mut place = self.find(sought);
        if let Some(found) = place.filter(|_| segment.flags.any(Flags::SYN)) {
            if self.reopens(found, segment, high) {
                self.end(found, false);
                place = None;
            }
        }
        let number = match place {
            Some(place) => {
                self.latest = place;
                self.show(place, segment, high)
            }
            None => {
                self.latest = self.open(sought, segment, high);
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
        let Some(lane) = self.lanes.get_mut(place) else { return 0 };
        let (number, from) = (lane.number, lane.from(high));
        if let Some(since) = self.recent.find(segment, number, &self.marks) {
            let told = lane.identifies(from);
            if copies(segment, since, lane.twice(from), told) {
                self.note_copy(place, segment, from, since);
                return number;
            }
        }
        lane.note(segment, from);
        if segment.flags.any(TURNS) {
            self.turn(place, segment, from);
        }
        self.meet(place);
        if self.is_small() {
            self.follow_up(place, segment, from);
        } else {
            self.write_down(place, segment, from);
        }
        number
    }

    /// Lets the connection of a place follow what waits, and then a segment.
    #[inline]
    fn follow_up(&mut self, place: usize, segment: &Segment, from: usize) {
        self.settle(place);
        let Some(lane) = self.lanes.get_mut(place) else { return };
        let last = lane.last;
        lane.last = last.max(segment.time);
        self.followers.push(place, segment, from, last);
    }

    /// Lets a segment wait.
    #[inline]
    fn write_down(&mut self, place: usize, segment: &Segment, from: usize) {
        let Some(lane) = self.lanes.get_mut(place) else { return };
        let length = self.chunks.add(&mut lane.log, segment, from, lane.last);
        lane.last = lane.last.max(segment.time);
        match length {
            Length::Short => {}
            Length::Due => self.put_off(place),
            Length::Full => self.settle(place),
        }
    }

    /// A segment begins a connection, or ends it.
    #[cold]
    fn turn(&mut self, place: usize, segment: &Segment, from: usize) {
        let (Some(lane), Some(turns)) = (self.lanes.get_mut(place), self.turns.get_mut(place))
        else {
            return;
        };
        turns.read(segment, from);
        lane.say(OVER, turns.over());
    }

    /// Counts a copy of a segment captured at `since`.
    #[cold]
    fn note_copy(&mut self, place: usize, segment: &Segment, from: usize, since: Nanos) {
        self.meet(place);
        let Some(lane) = self.lanes.get_mut(place) else { return };
        lane.say_twice(from);
        // Nobody sends data twice at one moment: all was captured twice, what comes from the other end, too.
        let occupies = segment.payload > 0 || segment.flags.any(Flags::SYN);
        if segment.time == since && occupies {
            lane.say_twice(1 - from);
        }
        self.turns[place].copies[from] += 1;
    }

    /// Another segment than the first was captured.
    #[inline]
    fn meet(&mut self, place: usize) {
        if self.lanes.get(place).is_some_and(|lane| lane.is(LONE)) {
            self.grant(place);
        }
    }

    #[cold]
    fn grant(&mut self, place: usize) {
        // Both directions have points of their own.
        let points = self.limits.points.min((MOST_POINTS - self.granted) / SHARE / 2);
        self.granted += 2 * points;
        let (lane, turns) = (&mut self.lanes[place], &mut self.turns[place]);
        turns.points = points;
        lane.say(LONE, false);
        lane.say(OVER, turns.over());
    }

    /// Begins to follow a connection.
    #[cold]
    fn begin(&mut self, place: usize) {
        let (lane, turns) = (&mut self.lanes[place], &self.turns[place]);
        lane.followed = true;
        let Turns { frame, time, points, .. } = *turns;
        let (number, ends) = (lane.number, lane.ends());
        self.followers.meet(place, &Beginning { number, frame, time, ends, points });
    }

    /// Whether a SYN opens another connection than that of a place.
    fn reopens(&self, place: usize, syn: &Segment, high: bool) -> bool {
        let (lane, turns) = (&self.lanes[place], &self.turns[place]);
        let from = lane.from(high);
        turns.reopened_by(syn, from, lane.talked(from))
    }

    /// Follows what waits at a place.
    #[inline]
    fn settle(&mut self, place: usize) {
        let Some(lane) = self.lanes.get(place) else { return };
        if !lane.followed {
            self.begin(place);
        }
        let Some(lane) = self.lanes.get_mut(place) else { return };
        if lane.log.is_empty() {
            return;
        }
        self.chunks.release(&mut lane.log, &mut self.whole);
        self.followers.settle(place, &self.whole);
        self.whole.clear();
    }

    /// Connections that were followed.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Takes the reports of connections that have ended since the last call; those that threads still work at come
    /// with a later one.
    pub(super) fn finished(&mut self) -> Vec<ConnectionReport> {
        std::iter::from_fn(|| self.followers.report(false)).collect()
    }

    /// The capture ends: the reports that nobody has taken yet, then those of all that are left, in the order of
    /// their first segments. Each connection goes as its report is made. `threads`: so many more than the caller's.
    pub(super) fn finish(mut self, threads: usize) -> impl Iterator<Item = ConnectionReport> {
        if threads > 0 {
            self.followers.part_anew((threads + 1).ilog2());
        }
        let live = |place: &usize| self.lanes[*place].is(LIVE);
        let mut places: Vec<_> = (0..self.lanes.len()).filter(live).collect();
        places.sort_by_key(|place| self.lanes[*place].number);
        let mut left = places.into_iter();
        std::iter::from_fn(move || {
            while self.followers.has_time() {
                let next: Vec<_> = left.by_ref().take(FETCHED).collect();
                if next.is_empty() {
                    break;
                }
                self.end_all(&next);
            }
            self.followers.report(true)
        })
    }

    /// The capture ends before these connections do.
    fn end_all(&mut self, places: &[usize]) {
        self.fetch(places);
        for &place in places {
            self.meet(place);
            self.settle(place);
            let Turns { end, copies, .. } = self.turns[place];
            self.followers.end(place, end, copies);
        }
    }

    #[inline]
    fn find(&self, sought: &Sought) -> Option<usize> {
        if self.is(sought.guess, &sought.key) {
            return Some(sought.guess);
        }
        self.index.find(sought.hash, |place| self.is(place, &sought.key))
    }

    /// Whether the connection of a place is that of the key.
    #[inline(always)]
    fn is(&self, place: usize, key: &Key) -> bool {
        self.lanes.get(place).is_some_and(|lane| lane.key == *key && lane.is(LIVE))
    }

    fn open(&mut self, sought: &Sought, segment: &Segment, high: bool) -> usize {
        if self.index.len() >= self.limits.connections {
            self.evict();
        }
        let mut lane = Lane::new(sought.key, high, self.count, segment.time);
        let turns = Turns::new(segment);
        // The first end is that of the first segment.
        lane.note(segment, 0);
        // Of a SYN that nobody answers, and of a RST, no more is expected.
        let opens = segment.flags.any(Flags::SYN) && !segment.flags.any(Flags::ACK);
        lane.say(OVER, opens || turns.over());
        self.count += 1;
        self.chunks.add(&mut lane.log, segment, 0, segment.time);
        let place = match self.free.pop() {
            Some(place) => {
                self.lanes[place] = lane;
                self.turns[place] = turns;
                place
            }
            None => {
                if self.lanes.len() == FEW {
                    self.make_room();
                }
                self.lanes.push(lane);
                self.turns.push(turns);
                self.lanes.len() - 1
            }
        };
        self.index.insert(self.hashes.hash_one(sought.key), place);
        place
    }

    /// Connections are many, perhaps as many as may be: what is kept of them is not to be moved as they become more.
    /// Memory that is not used is not taken.
    #[cold]
    fn make_room(&mut self) {
        let more = self.limits.connections.min(MOST_ROOM);
        self.lanes.reserve_exact(more);
        self.turns.reserve_exact(more);
    }

    /// Ends the one of the next few that is over, else one of a single segment, else the one that has been idle for
    /// longest.
    fn evict(&mut self) {
        let length = self.lanes.len();
        let nearby = (0..length.min(CANDIDATES)).map(|step| (self.hand + step) % length);
        let victim = nearby.filter(|&place| self.lanes[place].is(LIVE)).min_by_key(|&place| {
            let lane = &self.lanes[place];
            (!lane.is(OVER), !lane.is(LONE), lane.last)
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
        if self.hand >= self.lanes.len() {
            self.hand = 0;
        }
        let place = self.hand;
        let gone = |lane: &Lane| lane.is(OVER) && now.saturating_sub(lane.last) > LINGER;
        if self.lanes.get(place).is_some_and(gone) {
            self.end(place, false);
        }
    }

    fn end(&mut self, place: usize, evicted: bool) {
        self.meet(place);
        self.settle(place);
        let (lane, turns) = (&mut self.lanes[place], &self.turns[place]);
        self.index.remove(self.hashes.hash_one(lane.key), place);
        // It is looked for no more, nor swept away.
        lane.say(LIVE | OVER, false);
        self.free.push(place);
        self.granted -= 2 * turns.points;
        let cut = evicted && turns.end == End::Open;
        self.followers.end(place, if cut { End::Evicted } else { turns.end }, turns.copies);
    }
}

#[cfg(test)]
#[path = "../connection_tests.rs"]
mod tests;
