//! What a follower on a thread of its own is handed at a time.

use super::lane::{Brief, ROOM};
use crate::analysis::End;
use crate::segment::Segment;

/// What is to be done with the connection of a place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Follow it from here on: the batch's next segment is its first.
    Meet { number: u64, points: usize },
    /// Follow the batch's next segment,
    One,
    /// or its next so many briefs.
    Several { count: u32 },
    /// A frame from this end was captured twice.
    Duplicate { from: usize },
    /// It is over; whose turn its report is among all.
    End { turn: u64, end: End },
}

/// Steps of places, and the segments that they are about.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) steps: Vec<(usize, Step)>,
    pub(super) segments: Vec<Segment>,
    pub(super) briefs: Vec<Brief>,
}

/// Of each, a batch has hardly more: it fits into a processor's first cache.
const MOST_STEPS: usize = 128;
const MOST_BRIEFS: usize = 1024;

/// Segments of a batch, at most: the last step may bring some more.
pub(super) const MOST_SEGMENTS: usize = MOST_STEPS + MOST_BRIEFS + ROOM;

impl Batch {
    pub(super) fn clear(&mut self) {
        self.steps.clear();
        self.segments.clear();
        self.briefs.clear();
    }

    /// Adds briefs of a place, to the last step if that is of the same.
    #[inline]
    pub(super) fn add(&mut self, place: usize, briefs: &[Brief]) {
        self.briefs.extend_from_slice(briefs);
        self.count(place, briefs.len() as u32);
    }

    /// Adds one.
    #[inline(always)]
    pub(super) fn push(&mut self, place: usize, brief: Brief) {
        self.briefs.push(brief);
        self.count(place, 1);
    }

    #[inline(always)]
    fn count(&mut self, place: usize, more: u32) {
        match self.steps.last_mut() {
            Some((last, Step::Several { count })) if *last == place => *count += more,
            _ => self.steps.push((place, Step::Several { count: more })),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.steps.len() >= MOST_STEPS || self.briefs.len() >= MOST_BRIEFS
    }
}
