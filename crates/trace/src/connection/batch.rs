//! What a follower on a thread of its own is handed at a time.

use super::encoding::{Encoder, SHORTEST};
use super::live::Beginning;
use super::table::MOST_OF_LOG;
use crate::analysis::End;
use crate::segment::{Nanos, Segment};

/// What is to be done with the connection of a place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Follow it from here on: the next of the batch's beginnings is its own.
    Meet,
    /// Follow what the next so many bytes of the batch's logs say.
    Log { bytes: usize },
    /// It is over; whose turn its report is among all, and how many frames from each end were captured twice.
    End { turn: u64, end: End, copies: [u64; 2] },
}

/// Steps of places, and the beginnings and segments that they are about.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) steps: Vec<(usize, Step)>,
    pub(super) beginnings: Vec<Beginning>,
    pub(super) logs: Vec<u8>,
    /// Writes the last step's log, if that goes on.
    encoder: Option<Encoder>,
}

/// Of each, a batch has hardly more: it fits into a processor's first cache.
const MOST_STEPS: usize = 128;
const MOST_BYTES: usize = 1 << 13;

/// Segments of a batch, at most: the last step may bring some more.
pub(super) const MOST_SEGMENTS: usize = MOST_STEPS + (MOST_BYTES + MOST_OF_LOG) / SHORTEST;

impl Batch {
    pub(super) fn clear(&mut self) {
        self.steps.clear();
        self.beginnings.clear();
        self.logs.clear();
        self.encoder = None;
    }

    /// What is to be done at a place.
    pub(super) fn tell(&mut self, place: usize, step: Step) {
        self.encoder = None;
        self.steps.push((place, step));
    }

    /// Begins to follow the connection of a place.
    pub(super) fn meet(&mut self, place: usize, beginning: &Beginning) {
        self.tell(place, Step::Meet);
        self.beginnings.push(*beginning);
    }

    /// Adds a log of a place.
    pub(super) fn add(&mut self, place: usize, log: &[u8]) {
        self.tell(place, Step::Log { bytes: log.len() });
        self.logs.extend_from_slice(log);
    }

    /// Adds a segment of a place; `last`: the latest time of those before it.
    #[inline]
    pub(super) fn push(&mut self, place: usize, segment: &Segment, from: usize, last: Nanos) {
        if self.encoder.is_none() || self.steps.last().is_none_or(|step| step.0 != place) {
            self.tell(place, Step::Log { bytes: 0 });
        }
        let before = self.logs.len();
        let encoder = self.encoder.get_or_insert_default();
        encoder.write(segment, from, last, &mut self.logs);
        if let Some((_, Step::Log { bytes })) = self.steps.last_mut() {
            *bytes += self.logs.len() - before;
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.steps.len() >= MOST_STEPS || self.logs.len() >= MOST_BYTES
    }
}
