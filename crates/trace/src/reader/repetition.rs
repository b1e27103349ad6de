//! Detection of a capture that is repeated in one file: joined to itself or to an overlapping
//! capture.
//!
//! If time steps back to an already known segment, the next segments are compared with the segments
//! after the known one, and skipped while they are equal.

use crate::segment::{Nanos, Segment};

/// Shorter backward steps are caused by clocks and queues.
pub(super) const MIN_STEP_BACK: Nanos = 100_000_000;
/// Maximum number of stored hashes. Segments beyond this limit count as copies if all stored
/// segments were copies.
const MAX_SEGMENT_HASHES: usize = 1 << 20;
/// Maximum number of backward steps examined; a file with more is unordered.
const MAX_SEARCHES: u32 = 64;

/// Hashes of the segments read so far.
#[derive(Debug, Default)]
pub(super) struct RepetitionDetector {
    marks: Vec<u64>,
    /// Latest time of all segments.
    latest: Nanos,
    /// Index of the next expected hash while copies are skipped.
    next: Option<usize>,
    searches: u32,
}

impl RepetitionDetector {
    /// Whether copies are being skipped.
    #[inline(always)]
    pub(super) fn is_skipping(&self) -> bool {
        self.next.is_some()
    }

    /// Adds a segment. Returns true if the segment is a copy. `back`: time stepped back before this
    /// segment.
    #[inline(always)]
    pub(super) fn add_and_check_repetition(&mut self, segment: &Segment, back: bool) -> bool {
        if (self.next.is_some() || back) && self.advance_repetition_match(segment) {
            return true;
        }
        self.latest = self.latest.max(segment.time);
        if self.marks.len() < MAX_SEGMENT_HASHES {
            self.marks.push(hash_segment(segment));
        }
        false
    }

    #[cold]
    fn advance_repetition_match(&mut self, segment: &Segment) -> bool {
        let mark = hash_segment(segment);
        if let Some(next) = self.next {
            let known = self.marks.get(next);
            // Beyond the stored hashes, only the time is compared.
            let beyond = next >= MAX_SEGMENT_HASHES && segment.time <= self.latest;
            if known == Some(&mark) || beyond {
                self.next = Some(next + 1);
                return true;
            }
        }
        self.next = None;
        if self.searches < MAX_SEARCHES && segment.time <= self.latest {
            self.searches += 1;
            self.next = self.marks.iter().position(|known| *known == mark).map(|index| index + 1);
        }
        self.next.is_some()
    }
}

/// Hash of the time and numbers that identify a segment.
#[inline(always)]
fn hash_segment(segment: &Segment) -> u64 {
    // Odd fractional parts of the square roots of 2 and 3.
    let numbers = u64::from(segment.sequence) << 32 | u64::from(segment.acknowledgement);
    let ends = u64::from(segment.source.port) << 48 ^ segment.time;
    ends.wrapping_mul(0x6a09_e667_f3bc_c909) ^ numbers.wrapping_mul(0xbb67_ae85_84ca_a73b)
}
