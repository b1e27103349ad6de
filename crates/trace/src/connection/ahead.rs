//! Where connections are many, each segment asks for memory that no cache holds. Asking for that of several segments
//! at once takes hardly longer than for one: they are looked at together, before one after the other is followed.

use std::hash::BuildHasher;
use std::hint::black_box;

use super::Connections;
use super::key::Key;

/// Segments that are looked up together.
pub(super) const TOGETHER: usize = 32;
/// Connections that are fetched together.
pub(super) const FETCHED: usize = 16;

/// What a segment's connection is found by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sought {
    pub(super) key: Key,
    /// It comes from the higher end.
    pub(super) high: bool,
    pub(super) hash: u64,
}

impl Connections {
    /// Follows the segments that were put off.
    pub(super) fn catch_up(&mut self) {
        let mut segments = std::mem::take(&mut self.ahead);
        let mut sought = std::mem::take(&mut self.sought);
        sought.extend(segments.iter().map(|segment| {
            let (key, high) = Key::of(segment);
            Sought { key, high, hash: self.hashes.hash_one(key) }
        }));
        let mut guesses = [0; TOGETHER];
        for (guess, sought) in guesses.iter_mut().zip(&sought) {
            *guess = self.index.guess(sought.hash);
        }
        let lanes = guesses.iter().take(sought.len()).filter_map(|place| self.lanes.get(*place));
        black_box(lanes.map(|lane| lane.number).fold(0, u64::wrapping_add));
        let lanes = guesses.iter().take(sought.len()).filter_map(|place| self.lanes.get(*place));
        black_box(lanes.map(|lane| self.chunks.fetch_next(&lane.log)).fold(0, u64::wrapping_add));
        for (segment, sought) in segments.iter().zip(&sought) {
            self.follow(segment, sought);
        }
        segments.clear();
        sought.clear();
        (self.ahead, self.sought) = (segments, sought);
    }

    /// Notes that there is enough to follow at a place.
    #[inline]
    pub(super) fn put_off(&mut self, place: usize) {
        self.due.push(place);
        if self.due.len() == FETCHED {
            self.settle_due();
        }
    }

    fn settle_due(&mut self) {
        let mut due = std::mem::take(&mut self.due);
        self.settle_all(&due);
        due.clear();
        self.due = due;
    }

    /// Follows what waits at these places, a few.
    fn settle_all(&mut self, places: &[usize]) {
        self.fetch(places);
        places.iter().for_each(|place| self.settle(*place));
    }

    /// Fetches what following these places, a few, reads and changes.
    pub(super) fn fetch(&self, places: &[usize]) {
        let lanes = places.iter().filter_map(|place| self.lanes.get(*place));
        black_box(lanes.map(|lane| self.chunks.fetch(&lane.log)).fold(0, u64::wrapping_add));
        self.followers.fetch(places);
    }
}
