//! Where connections are many, each segment asks for memory that no cache holds. Asking for that of several segments
//! at once takes hardly longer than for one: they are looked at together, before one after the other is followed.

use std::hash::BuildHasher;
use std::hint::black_box;
use std::mem::take;

use super::Table;
use super::key::Key;
use super::lane::Lane;
use crate::connection::follower::FETCHED;
use crate::segment::Segment;

/// Segments that are looked up together.
pub(in crate::connection) const TOGETHER: usize = 64;

/// What a connection is found by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sought {
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
        let (mut sought, mut whose) = (take(&mut self.sought), take(&mut self.whose));
        for segment in segments {
            let (key, high) = Key::of(segment);
            // Often it is of the same connection as the one before.
            if sought.last().is_none_or(|last: &Sought| last.key != key) {
                sought.push(Sought { key, hash: self.hashes.hash_one(key), guess: 0 });
            }
            whose.push((sought.len() - 1, high));
        }
        self.guess(&mut sought);
        for (segment, &(which, high)) in segments.iter().zip(&whose) {
            let one = &mut sought[which];
            self.follow(segment, one, high);
            one.guess = self.latest;
        }
        sought.clear();
        whose.clear();
        (self.sought, self.whose) = (sought, whose);
    }

    /// Guesses where connections are, and fetches what their next segments change. Each step waits for the one
    /// before it, but not one connection for another.
    fn guess(&self, sought: &mut [Sought]) {
        black_box(sought.iter().map(|one| self.index.fetch(one.hash)).fold(0, u64::wrapping_add));
        for one in &mut *sought {
            one.guess = self.index.guess(one.hash);
        }
        let lanes = sought.iter().filter_map(|one| self.lanes.get(one.guess));
        black_box(lanes.clone().map(Lane::fetch).fold(0, u64::wrapping_add));
        black_box(lanes.map(|lane| self.chunks.fetch_next(&lane.log)).fold(0, u64::wrapping_add));
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
        let mut due = take(&mut self.due);
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
        black_box(self.chunks.fetch(lanes.map(|lane| &lane.log)));
        self.followers.fetch(places);
    }
}
