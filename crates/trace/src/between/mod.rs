//! The same packets at two taps: which of them got from one to the other, and how long that took.
//!
//! A packet is matched by its ends, numbers, length and IP identification. What was seen at one tap and not yet at
//! the other waits ([`waiting`]), and of very many directions those with few packets are dropped ([`directions`]), so
//! memory does not grow with the captures, whatever order they are in. The clocks need not agree: packets that both captures begin with say by how much they differ.

mod directions;
mod identity;
mod passage;
mod waiting;

use std::collections::{HashMap, VecDeque};
use std::io::Read;

use directions::Directions;
use identity::Identities;
use waiting::Waiting;

use crate::reader::{Reader, Summary};
use crate::segment::{Nanos, Segment};

pub use passage::{ClockOffset, Passage};

/// What is not seen at the other tap within this time never got there.
const LONGEST: Nanos = 20_000_000_000;
/// Segments of each capture that are looked at first, for the difference of the clocks.
const FIRST: usize = 1 << 14;

/// The tap that is read along with the connections, and the other one.
pub(crate) const BEFORE: usize = 0;
pub(crate) const AFTER: usize = 1;

/// Compares a second capture with the one whose connections are followed.
///
/// The segments of the first are shown to [`before`](Self::before) one by one; the second is read as far as needed.
pub struct TapComparison<R: Read> {
    other: Reader<R>,
    /// What was read of the other capture and not yet looked at.
    ahead: VecDeque<Segment>,
    /// What the first capture begins with, and the numbers of its connections, until the clocks are compared.
    begin: Vec<(Segment, u64)>,
    compared: bool,
    matching: Matching,
}

impl<R: Read> TapComparison<R> {
    /// `other` is the capture of the second tap.
    #[must_use]
    pub fn new(other: Reader<R>) -> Self {
        let matching = Matching::new();
        Self { other, ahead: VecDeque::new(), begin: Vec::new(), compared: false, matching }
    }

    /// The next segment at the first tap, and the number of its connection.
    pub fn before(&mut self, segment: &Segment, connection: u64) {
        if self.compared {
            self.follow(segment, connection);
            return;
        }
        self.begin.push((*segment, connection));
        if self.begin.len() == FIRST {
            self.compare();
        }
    }

    /// Both captures end: what was found, and how the reading of the second went. `interrupted`: it is not read on.
    pub fn finish(mut self, interrupted: bool) -> (Comparison, Summary) {
        if !self.compared {
            self.compare();
        }
        self.matching.ended[BEFORE] = true;
        while !interrupted && self.read_ahead() {
            self.take_ahead();
        }
        self.ahead.clear();
        (self.matching.finish(), self.other.summary().clone())
    }

    /// Compares the clocks, then goes on with what was put off for it.
    fn compare(&mut self) {
        self.compared = true;
        while self.ahead.len() < FIRST {
            let Some(segment) = self.other.next_segment() else { break };
            self.ahead.push_back(*segment);
        }
        let begin = std::mem::take(&mut self.begin);
        self.matching.compare(begin.iter().map(|first| &first.0), self.ahead.iter());
        for (segment, connection) in &begin {
            self.follow(segment, *connection);
        }
    }

    fn follow(&mut self, segment: &Segment, connection: u64) {
        while self.read_ahead() {
            let due = self.ahead.front().is_some_and(|next| {
                self.matching.aligned(AFTER, next.time) <= i128::from(segment.time)
            });
            if !due {
                break;
            }
            self.take_ahead();
        }
        self.matching.add(BEFORE, segment, Some(connection));
    }

    /// Makes sure that the next segment of the other capture is known, if there is one.
    fn read_ahead(&mut self) -> bool {
        if self.ahead.is_empty() {
            let next = self.other.next_segment().copied();
            self.matching.ended[AFTER] = next.is_none();
            self.ahead.extend(next);
        }
        !self.ahead.is_empty()
    }

    fn take_ahead(&mut self) {
        if let Some(segment) = self.ahead.pop_front() {
            self.matching.add(AFTER, &segment, None);
        }
    }
}

/// What was found at two taps.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Each direction of each connection that the first tap saw.
    pub passages: Vec<Passage>,
    /// Directions that only the second tap saw.
    pub only_after: u64,
    /// Packets that were let go of before their time, because too many waited.
    pub forgotten: u64,
    /// Directions that were dropped, because there were too many.
    pub dropped: u64,
    /// What the clocks say of each other.
    pub clocks: ClockOffset,
}

/// Two captures in one stream, packet by packet.
#[derive(Debug)]
struct Matching {
    identities: Identities,
    waiting: [Waiting; 2],
    records: Directions,
    /// The clock of the second tap less that of the first, roughly.
    offset: i128,
    first: [Option<Nanos>; 2],
    last: [Nanos; 2],
    ended: [bool; 2],
}

impl Matching {
    fn new() -> Self {
        Self {
            identities: Identities::new(),
            waiting: [Waiting::default(), Waiting::default()],
            records: Directions::default(),
            offset: 0,
            first: [None; 2],
            last: [0; 2],
            ended: [false; 2],
        }
    }

    /// Takes the difference of the clocks from what both captures begin with: the median, whichever way they go.
    fn compare<'a>(
        &mut self,
        before: impl Iterator<Item = &'a Segment>,
        after: impl Iterator<Item = &'a Segment>,
    ) {
        let known: HashMap<u64, Nanos> =
            before.map(|segment| (self.identities.of(segment), segment.time)).collect();
        let mut differences: Vec<i128> = after
            .filter_map(|segment| {
                let time = known.get(&self.identities.of(segment))?;
                Some(i128::from(segment.time) - i128::from(*time))
            })
            .collect();
        differences.sort_unstable();
        self.offset = differences.get(differences.len() / 2).copied().unwrap_or(0);
    }

    /// A time at a tap, by the first tap's clock.
    fn aligned(&self, tap: usize, time: Nanos) -> i128 {
        i128::from(time) - if tap == AFTER { self.offset } else { 0 }
    }

    /// A segment at a tap; of the first, with the number of its connection.
    fn add(&mut self, tap: usize, segment: &Segment, connection: Option<u64>) {
        self.first[tap].get_or_insert(segment.time);
        self.last[tap] = self.last[tap].max(segment.time);
        if self.identities.repeats(tap, segment) {
            return;
        }
        if self.records.are_full() {
            let indices = self.records.thin_out();
            for waiting in &mut self.waiting {
                waiting.renumber(&indices);
            }
        }
        let index = self.records.find_or_insert(segment, connection);
        let identity = self.identities.of(segment);
        self.records[index].seen[tap] += 1;
        match self.waiting[1 - tap].take(identity) {
            Some((time, other)) => {
                let mut times = [segment.time; 2];
                times[1 - tap] = time;
                // The first tap knows which connection it is, should the ends have met again.
                let known = if tap == BEFORE { index } else { other };
                if known != index {
                    self.records[index].seen[tap] -= 1;
                    self.records[known].seen[tap] += 1;
                }
                self.records[known].matched(times);
            }
            None => self.waiting[tap].insert(identity, segment.time, index),
        }
        self.expire(self.aligned(tap, segment.time) - i128::from(LONGEST));
    }

    /// What was seen before `until`, by the first tap's clock, waits no longer.
    fn expire(&mut self, until: i128) {
        for tap in [BEFORE, AFTER] {
            let until = until + if tap == AFTER { self.offset } else { 0 };
            while let Some((time, index)) = self.waiting[tap].take_expired(until) {
                self.count_unmatched(tap, time, index, self.ended[1 - tap]);
            }
        }
    }

    /// A packet was seen at one tap only; `over`: the other capture has no more.
    fn count_unmatched(&mut self, tap: usize, time: Nanos, index: usize, over: bool) {
        let other = 1 - tap;
        let Some(first) = self.first[other] else {
            self.records[index].apart[tap] += 1;
            return;
        };
        let record = &mut self.records[index];
        let (soonest, latest) = record.expected(tap, time, self.offset);
        // Late by as much again as packets were ever late.
        let long_ago = latest + (latest - soonest) < i128::from(self.last[other]);
        let count = if soonest < i128::from(first) {
            &mut record.apart
        } else if !over || record.overtaken(tap, time) || long_ago {
            &mut record.lost
        } else {
            &mut record.under_way
        };
        count[tap] += 1;
    }

    fn finish(mut self) -> Comparison {
        for tap in [BEFORE, AFTER] {
            while let Some((time, index)) = self.waiting[tap].take_expired(i128::MAX) {
                self.count_unmatched(tap, time, index, true);
            }
        }
        let forgotten = self.waiting.iter().map(|waiting| waiting.forgotten).sum();
        Comparison { forgotten, dropped: self.records.dropped, ..passage::report(self.records.all()) }
    }
}

#[cfg(test)]
#[path = "between_tests.rs"]
mod tests;
