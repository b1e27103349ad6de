//! A capture that comes twice in one file: joined to itself, or to another that has a part of it.
//!
//! Where time steps back to a segment that is there already, those that follow are compared with those that followed it,
//! one by one, and left out as long as they are the same.

use crate::segment::{Nanos, Segment};

/// Steps back that are shorter come from clocks and queues.
pub(super) const LONG_STEP: Nanos = 100_000_000;
/// Segments whose marks are kept; what comes after them is taken for a copy if they all were one.
const MAX_MARKS: usize = 1 << 20;
/// Steps back after which no more are looked into: such a file is in no order at all.
const MAX_SEARCHES: u32 = 64;

/// What has been read, in short.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    marks: Vec<u64>,
    /// The latest time of all.
    latest: Nanos,
    /// The place among the marks of the next segment, if it is a copy.
    next: Option<usize>,
    searches: u32,
}

impl Repeats {
    /// Copies are being left out.
    #[inline(always)]
    pub(super) fn is_skipping(&self) -> bool {
        self.next.is_some()
    }

    /// Notes a segment; whether it is a copy. `back`: time has stepped back before it.
    #[inline(always)]
    pub(super) fn is_copy(&mut self, segment: &Segment, back: bool) -> bool {
        if (self.next.is_some() || back) && self.matches_earlier(segment) {
            return true;
        }
        self.latest = self.latest.max(segment.time);
        if self.marks.len() < MAX_MARKS {
            self.marks.push(mark(segment));
        }
        false
    }

    #[cold]
    fn matches_earlier(&mut self, segment: &Segment) -> bool {
        let mark = mark(segment);
        if let Some(next) = self.next {
            let known = self.marks.get(next);
            // Beyond the marks time has to do.
            let beyond = next >= MAX_MARKS && segment.time <= self.latest;
            if known == Some(&mark) || beyond {
                self.next = Some(next + 1);
                return true;
            }
        }
        self.next = None;
        if self.searches < MAX_SEARCHES && segment.time <= self.latest {
            self.searches += 1;
            self.next = self.marks.iter().position(|known| *known == mark).map(|place| place + 1);
        }
        self.next.is_some()
    }
}

/// A number for what tells one segment from another: its time and its numbers.
#[inline(always)]
fn mark(segment: &Segment) -> u64 {
    // The fractions of the square roots of 2 and 3, odd.
    let numbers = u64::from(segment.sequence) << 32 | u64::from(segment.acknowledgement);
    let ends = u64::from(segment.source.port) << 48 ^ segment.time;
    ends.wrapping_mul(0x6a09_e667_f3bc_c909) ^ numbers.wrapping_mul(0xbb67_ae85_84ca_a73b)
}
