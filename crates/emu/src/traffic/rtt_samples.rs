//! Round-trip times of a connection, from its packets at the sender's end of the links.

use crate::path::is_sequence_after;
use std::collections::VecDeque;
use tcpcast_link::time::Nanos;

/// A segment without acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SentSegment {
    end: u32,
    entered: Nanos,
    is_retransmitted: bool,
}

/// Segments without acknowledgement, in the order of their sequence numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RttSamples(VecDeque<SentSegment>);

impl RttSamples {
    /// Adds a segment with the bytes from `begin` to `end`, or marks the retransmitted ones.
    pub(super) fn add_sent(&mut self, now: Nanos, begin: u32, end: u32) {
        if self.0.back().is_none_or(|last| is_sequence_after(end, last.end)) {
            self.0.push_back(SentSegment { end, entered: now, is_retransmitted: false });
            return;
        }
        let first = self.0.partition_point(|segment| !is_sequence_after(segment.end, begin));
        for segment in self.0.range_mut(first..) {
            segment.is_retransmitted = true;
            if !is_sequence_after(end, segment.end) {
                break;
            }
        }
    }

    /// Removes the segments up to an acknowledgement number. Returns the time at which the first
    /// one entered, unless one was retransmitted (Karn's rule; Linux's `tcp_clean_rtx_queue`).
    pub(super) fn take_acked(&mut self, ack: u32) -> Option<Nanos> {
        let count = self.0.partition_point(|segment| !is_sequence_after(segment.end, ack));
        let first = self.0.front()?.entered;
        let mut is_ambiguous = false;
        for segment in self.0.drain(..count) {
            is_ambiguous |= segment.is_retransmitted;
        }
        (count > 0 && !is_ambiguous).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_is_that_of_the_first_new_segment_without_retransmission() {
        let mut samples = RttSamples::default();
        let start = u32::MAX - 150;
        for number in 0..5_u32 {
            let begin = start.wrapping_add(100 * number);
            samples.add_sent(u64::from(number), begin, begin.wrapping_add(100));
        }
        let end_of = |count: u32| start.wrapping_add(100 * count);
        assert_eq!(samples.take_acked(start), None);
        assert_eq!(samples.take_acked(end_of(2)), Some(0));
        assert_eq!(samples.take_acked(end_of(2)), None, "a duplicate");
        samples.add_sent(9, end_of(3), end_of(4));
        assert_eq!(samples.take_acked(end_of(3)), Some(2));
        assert_eq!(samples.take_acked(end_of(5)), None, "one of two was retransmitted");
        assert_eq!(samples.take_acked(end_of(6)), None);
    }
}
