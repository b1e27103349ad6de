//! Detection of segments with numbers beyond any window: of another stream between the same ports,
//! or damaged.

use super::flow::Flow;
use super::sequence::first;
use crate::segment::Segment;

/// Largest window (RFC 7323, section 2.3), the maximum distance of valid numbers from known ones.
pub(super) const MAX_WINDOW: u64 = 1 << 30;

/// Result of the check of a sequence or acknowledgement number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    Within,
    /// Too far away.
    Outside,
    /// Too far away, but near the previous such number: the sequence space restarts here.
    Moved,
}

/// The last number that was too far away, if it was the last number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OutOfWindow {
    last: Option<u32>,
}

impl OutOfWindow {
    /// Checks `number`, which unwraps to `unwrapped`; `known` is a valid number.
    #[inline(always)]
    pub(super) fn check(&mut self, number: u32, unwrapped: u64, known: u64) -> Reach {
        if unwrapped.abs_diff(known) <= MAX_WINDOW {
            self.last = None;
            return Reach::Within;
        }
        self.check_outside(number)
    }

    #[cold]
    fn check_outside(&mut self, number: u32) -> Reach {
        let near = |last: u32| {
            u64::from(number.wrapping_sub(last).min(last.wrapping_sub(number))) <= MAX_WINDOW
        };
        let moved = self.last.replace(number).is_some_and(near);
        self.last = self.last.filter(|_| !moved);
        if moved { Reach::Moved } else { Reach::Outside }
    }
}

impl Flow {
    /// Counts an out-of-window acknowledgement; the second of two nearby ones restarts the sequence
    /// space.
    #[cold]
    pub(super) fn on_out_of_window_ack(&mut self, segment: &Segment, reach: Reach) {
        self.counts.out_of_window += 1;
        if reach == Reach::Moved {
            self.move_to(segment.acknowledgement);
        }
    }

    /// Forgets the data in flight and restarts the sequence space at `number`.
    #[cold]
    pub(super) fn move_to(&mut self, number: u32) {
        let start = first(number);
        self.begin(start);
        self.anchored = true;
        self.flight = Default::default();
        self.board = Default::default();
        self.recovery = Default::default();
        (self.latest, self.probed) = (0, 0);
        self.edge = start.saturating_add(self.window);
        // As at the start, the first acknowledgement is not a duplicate.
        (self.window, self.window_seen) = (0, false);
        if let Some(stats) = &mut self.stats {
            stats.reset_sequence(start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_rejects_single_number_and_follows_second() {
        let mut window = OutOfWindow::default();
        let known = first(1000);
        let mut check = |number: u32, known: u64| {
            window.check(number, super::super::sequence::unwrapped(known, number), known)
        };
        assert_eq!(check(1 << 30, known), Reach::Within);
        assert_eq!(check(1001 + (1 << 30), known), Reach::Outside);
        assert_eq!(check(2000, known), Reach::Within);
        assert_eq!(check(1001 + (1 << 30), known), Reach::Outside);
        assert_eq!(check(2001 + (1 << 30), known), Reach::Moved);
        assert_eq!(check(3_500_000_000, first(1 << 30)), Reach::Outside);
        assert_eq!(check(2_000_000_000, first(100)), Reach::Outside);
    }
}
