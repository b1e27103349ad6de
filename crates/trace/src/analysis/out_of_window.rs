//! Detection of segments with numbers beyond any window: damaged segments, or segments of another
//! connection between the same ports.

use super::flow::{ConnectionContext, Flow};
use super::sequence_numbers::unwrap_first_sequence;
use crate::segment::Segment;

/// Largest window (RFC 7323, section 2.3). A valid number is at most this far from known valid
/// numbers.
pub(super) const MAX_WINDOW: u64 = 1 << 30;

/// Result of the check of a sequence or acknowledgement number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SequenceCheck {
    Within,
    /// Too far away.
    Outside,
    /// Too far away, but near the previous such number: the sequence space restarts here.
    Moved,
}

/// Stores the last number if that number was out of the window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OutOfWindowTracker {
    last: Option<u32>,
}

impl OutOfWindowTracker {
    /// Checks `number`, which unwraps to `unwrapped`; `known` is a valid number.
    #[inline(always)]
    pub(super) fn check_sequence_number(
        &mut self,
        number: u32,
        unwrapped: u64,
        known: u64,
    ) -> SequenceCheck {
        if unwrapped.abs_diff(known) <= MAX_WINDOW {
            self.last = None;
            return SequenceCheck::Within;
        }
        self.check_far_number(number)
    }

    #[cold]
    fn check_far_number(&mut self, number: u32) -> SequenceCheck {
        let near = |last: u32| {
            u64::from(number.wrapping_sub(last).min(last.wrapping_sub(number))) <= MAX_WINDOW
        };
        let moved = self.last.replace(number).is_some_and(near);
        self.last = self.last.filter(|_| !moved);
        if moved { SequenceCheck::Moved } else { SequenceCheck::Outside }
    }
}

impl Flow {
    /// Counts an out-of-window segment; only the second of two out-of-window segments with nearby
    /// numbers is analysed.
    #[cold]
    pub(super) fn process_out_of_window(
        &mut self,
        segment: &Segment,
        check: SequenceCheck,
        context: &ConnectionContext<'_>,
    ) {
        self.counts.out_of_window += 1;
        if check == SequenceCheck::Moved {
            self.restart_sequence_at(segment.sequence);
            let (number, payload) = self.last_out_of_window;
            self.counts.unique_bytes +=
                u64::from(if number == segment.sequence { 0 } else { payload });
            if segment.payload > 0 {
                self.process_data(segment, self.next, context);
            }
            return;
        }
        self.last_out_of_window = (segment.sequence, segment.payload);
        if segment.payload > 0 {
            let packets = self.count_data(segment, context);
            self.add_data_frame(segment, packets, (self.next - self.acknowledged).min(MAX_WINDOW));
        }
    }

    /// Counts an out-of-window acknowledgement; the second of two nearby ones restarts the sequence
    /// space.
    #[cold]
    pub(super) fn on_out_of_window_ack(&mut self, segment: &Segment, check: SequenceCheck) {
        self.counts.out_of_window += 1;
        if check == SequenceCheck::Moved {
            self.restart_sequence_at(segment.acknowledgement);
        }
    }

    /// Forgets the data in flight and restarts the sequence space at `number`.
    #[cold]
    pub(super) fn restart_sequence_at(&mut self, number: u32) {
        let start = unwrap_first_sequence(number);
        self.begin_sequence(start);
        self.anchored = true;
        self.flight = Default::default();
        self.board = Default::default();
        self.recovery = Default::default();
        (self.latest, self.probed, self.gap) = (0, 0, None);
        self.edge = start.saturating_add(self.window);
        // As at the start, the first acknowledgement is not a duplicate.
        (self.window, self.window_seen) = (0, false);
        if let Some(stats) = &mut self.stats {
            stats.restart_sequence_space(start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_rejects_single_number_and_follows_second() {
        let mut window = OutOfWindowTracker::default();
        let known = unwrap_first_sequence(1000);
        let mut check = |number: u32, known: u64| {
            window.check_sequence_number(
                number,
                super::super::sequence_numbers::unwrap_near(known, number),
                known,
            )
        };
        assert_eq!(check(1 << 30, known), SequenceCheck::Within);
        assert_eq!(check(1001 + (1 << 30), known), SequenceCheck::Outside);
        assert_eq!(check(2000, known), SequenceCheck::Within);
        assert_eq!(check(1001 + (1 << 30), known), SequenceCheck::Outside);
        assert_eq!(check(2001 + (1 << 30), known), SequenceCheck::Moved);
        assert_eq!(check(3_500_000_000, unwrap_first_sequence(1 << 30)), SequenceCheck::Outside);
        assert_eq!(check(2_000_000_000, unwrap_first_sequence(100)), SequenceCheck::Outside);
    }
}
