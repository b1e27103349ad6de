//! A batch of steps for a worker of the pool.

use super::connection_state::ConnectionBeginning;
use super::segment_encoding::{SHORTEST, SegmentEncoder};
use super::table::MAX_LOG_BYTES;
use crate::analysis::ObservedEnd;
use crate::segment::{Nanos, Segment};

/// A step for the connection of a slot.
#[derive(Clone, Copy, Debug)]
pub(super) enum AnalysisStep {
    /// Add the connection; its properties are the next in `beginnings`.
    Begin,
    /// Analyse the next `bytes` bytes of `logs`.
    Log { bytes: usize },
    /// End the connection. `number`: sequence number of its report. `copies`: number of duplicate
    /// frames sent by each end.
    End { number: u64, end: ObservedEnd, copies: [u64; 2] },
}

/// Steps of slots, with their beginnings and segments.
#[derive(Debug, Default)]
pub(super) struct AnalysisBatch {
    pub(super) steps: Vec<(usize, AnalysisStep)>,
    pub(super) beginnings: Vec<ConnectionBeginning>,
    pub(super) logs: Vec<u8>,
    /// Encoder of the last step's log, if segments can be appended to it.
    encoder: Option<SegmentEncoder>,
}

/// Limits of a batch, which fits into a first-level cache.
const MAX_STEPS: usize = 128;
const MAX_BYTES: usize = 1 << 13;

/// Maximum number of segments in a batch; the last step may exceed the limit in bytes.
pub(super) const MAX_SEGMENTS: usize = MAX_STEPS + (MAX_BYTES + MAX_LOG_BYTES) / SHORTEST;

impl AnalysisBatch {
    pub(super) fn clear(&mut self) {
        self.steps.clear();
        self.beginnings.clear();
        self.logs.clear();
        self.encoder = None;
    }

    /// Adds a step for a slot.
    pub(super) fn push_step(&mut self, slot: usize, step: AnalysisStep) {
        self.encoder = None;
        self.steps.push((slot, step));
    }

    /// Adds the start of a connection.
    pub(super) fn begin_connection(&mut self, slot: usize, beginning: &ConnectionBeginning) {
        self.push_step(slot, AnalysisStep::Begin);
        self.beginnings.push(*beginning);
    }

    /// Adds a log.
    pub(super) fn add_log(&mut self, slot: usize, log: &[u8]) {
        self.push_step(slot, AnalysisStep::Log { bytes: log.len() });
        self.logs.extend_from_slice(log);
    }

    /// Adds a segment. `last`: latest time of the previous segments.
    #[inline]
    pub(super) fn push_segment(
        &mut self,
        slot: usize,
        segment: &Segment,
        from: usize,
        last: Nanos,
    ) {
        if self.encoder.is_none() || self.steps.last().is_none_or(|step| step.0 != slot) {
            self.push_step(slot, AnalysisStep::Log { bytes: 0 });
        }
        let before = self.logs.len();
        let encoder = self.encoder.get_or_insert_default();
        encoder.append_segment(segment, from, last, &mut self.logs);
        if let Some((_, AnalysisStep::Log { bytes })) = self.steps.last_mut() {
            *bytes += self.logs.len() - before;
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.steps.len() >= MAX_STEPS || self.logs.len() >= MAX_BYTES
    }
}
