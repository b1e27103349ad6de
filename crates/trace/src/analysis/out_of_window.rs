//! Segments whose numbers no window reaches: of another stream between the same ports, or damaged.

use super::flow::Flow;
use super::sequence::first;
use crate::segment::Segment;

/// The largest window (RFC 7323, section 2.3): all that can be sent or acknowledged lies so near to what is known.
pub(super) const MAX_WINDOW: u64 = 1 << 30;

/// What to make of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    Within,
    /// Too far away.
    Stray,
    /// Too far away, but near the last one that was: from here on it is counted anew.
    Moved,
}

/// The last number that was too far away, if it was the last of all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OutOfWindow {
    last: Option<u32>,
}

impl OutOfWindow {
    /// Judges `number`, which is `at` by what is `known`.
    #[inline(always)]
    pub(super) fn check(&mut self, number: u32, at: u64, known: u64) -> Reach {
        if at.abs_diff(known) <= MAX_WINDOW {
            self.last = None;
            return Reach::Within;
        }
        self.stray(number)
    }

    #[cold]
    fn stray(&mut self, number: u32) -> Reach {
        let near = |last: u32| {
            u64::from(number.wrapping_sub(last).min(last.wrapping_sub(number))) <= MAX_WINDOW
        };
        let moved = self.last.replace(number).is_some_and(near);
        self.last = self.last.filter(|_| !moved);
        if moved { Reach::Moved } else { Reach::Stray }
    }
}

impl Flow {
    /// An acknowledgement of which the number is too far away: it counts, but says nothing but where to go on.
    #[cold]
    pub(super) fn on_out_of_window_ack(&mut self, segment: &Segment, reach: Reach) {
        self.counts.out_of_window += 1;
        if reach == Reach::Moved {
            self.move_to(segment.acknowledgement);
        }
    }

    /// Forgets what was in flight, and begins anew at `number`.
    #[cold]
    pub(super) fn move_to(&mut self, number: u32) {
        let at = first(number);
        self.begin(at);
        self.anchored = true;
        self.flight = Default::default();
        self.board = Default::default();
        self.recovery = Default::default();
        (self.latest, self.probed) = (0, 0);
        self.edge = at.saturating_add(self.window);
        // As at its beginning: the first acknowledgement repeats none.
        (self.window, self.answered) = (0, false);
        if let Some(stats) = &mut self.stats {
            stats.reset_sequence(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_left_out_and_two_in_a_row_are_followed() {
        let mut strays = OutOfWindow::default();
        let known = first(1000);
        let mut check = |number: u32, known: u64| {
            strays.check(number, super::super::sequence::unwrapped(known, number), known)
        };
        assert_eq!(check(1 << 30, known), Reach::Within);
        assert_eq!(check(1001 + (1 << 30), known), Reach::Stray);
        assert_eq!(check(2000, known), Reach::Within);
        assert_eq!(check(1001 + (1 << 30), known), Reach::Stray);
        assert_eq!(check(2001 + (1 << 30), known), Reach::Moved);
        assert_eq!(check(3_500_000_000, first(1 << 30)), Reach::Stray);
        assert_eq!(check(2_000_000_000, first(100)), Reach::Stray);
    }
}
