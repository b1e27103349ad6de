//! What a analyzer on a thread of its own is handed at a time.

use super::encoding::{Encoder, SHORTEST};
use super::state::Beginning;
use super::table::MAX_LOG_BYTES;
use crate::analysis::End;
use crate::segment::{Nanos, Segment};

/// What is to be done with the connection of a slot.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Follow it from here on: the next of the batch's beginnings is its own.
    Begin,
    /// Follow what the next so many bytes of the batch's logs say.
    Log { bytes: usize },
    /// It is over; owners turn its report is among all, and how many frames from each end were captured twice.
    End { turn: u64, end: End, copies: [u64; 2] },
}

/// Steps of slots, and the beginnings and segments that they are about.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) steps: Vec<(usize, Step)>,
    pub(super) beginnings: Vec<Beginning>,
    pub(super) logs: Vec<u8>,
    /// Writes the last step's log, if that goes on.
    encoder: Option<Encoder>,
}

/// Of each, a batch has hardly more: it fits into a processor's first cache.
const MAX_STEPS: usize = 128;
const MAX_BYTES: usize = 1 << 13;

/// Segments of a batch, at most: the last step may bring some more.
pub(super) const MAX_SEGMENTS: usize = MAX_STEPS + (MAX_BYTES + MAX_LOG_BYTES) / SHORTEST;

impl Batch {
    pub(super) fn clear(&mut self) {
        self.steps.clear();
        self.beginnings.clear();
        self.logs.clear();
        self.encoder = None;
    }

    /// What is to be done at a slot.
    pub(super) fn push_step(&mut self, slot: usize, step: Step) {
        self.encoder = None;
        self.steps.push((slot, step));
    }

    /// Begins to follow the connection of a slot.
    pub(super) fn begin(&mut self, slot: usize, beginning: &Beginning) {
        self.push_step(slot, Step::Begin);
        self.beginnings.push(*beginning);
    }

    /// Adds a log of a slot.
    pub(super) fn add_log(&mut self, slot: usize, log: &[u8]) {
        self.push_step(slot, Step::Log { bytes: log.len() });
        self.logs.extend_from_slice(log);
    }

    /// Adds a segment of a slot; `last`: the latest time of those before it.
    #[inline]
    pub(super) fn push(&mut self, slot: usize, segment: &Segment, from: usize, last: Nanos) {
        if self.encoder.is_none() || self.steps.last().is_none_or(|step| step.0 != slot) {
            self.push_step(slot, Step::Log { bytes: 0 });
        }
        let before = self.logs.len();
        let encoder = self.encoder.get_or_insert_default();
        encoder.write(segment, from, last, &mut self.logs);
        if let Some((_, Step::Log { bytes })) = self.steps.last_mut() {
            *bytes += self.logs.len() - before;
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.steps.len() >= MAX_STEPS || self.logs.len() >= MAX_BYTES
    }
}
